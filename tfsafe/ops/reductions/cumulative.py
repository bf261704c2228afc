"""Running products and sums, and the largest of each segment."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import custom_gradient, nan_where
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import times_upstream

_Gradient = Callable[[tf.Tensor], tf.Tensor]


def cumprod(
    x: Any,
    axis: int = 0,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = "cumprod",
) -> tf.Tensor:
    """Computes the running product, whose gradient is right where a factor is 0.

    `tf.math.cumprod` divides by the factors in its gradient, and has 0 or NaN in place
    of the slopes behind a factor of 0.

    Args:
      x: Floating `Tensor` of at least one axis.
      axis: The axis along which to multiply.
      exclusive: Whether each product stops before its own element; the first is 1.
      reverse: Whether to begin at the end.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`. float16 and bfloat16 are multiplied in
      float32.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `axis` is not an integer.
      ValueError: If `axis` is out of range.

    Numerics:
      error  half an ulp for each factor, and for each term of the gradient
      0      value 0 from there on; slopes those of the other factors' product
      inf    value inf, or NaN with a 0 before or behind
      NaN    value NaN from there on
      Elements with zero incoming gradients from there on get zero gradients.
      The gradient takes `log2(n)` steps over the tensor, and no division.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([2.0, 0.0, 3.0])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.cumprod(x)
      >>> print(y.numpy(), tape.gradient(y, x).numpy())
      [2. 0. 0.] [1. 8. 0.]

    References:
      Blelloch, "Prefix Sums and Their Applications", CMU-CS-90-190, 1990, for the
      recurrence of the gradient.
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        _check_axis(axis, x)
        return precision.in_float32(
            lambda x: _along(x, axis, lambda x: _directed(x, exclusive, reverse)), x
        )


def _check_axis(axis: Any, x: tf.Tensor) -> None:
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise TypeError(f"`axis` must be an integer. Received: axis={axis!r}.")
    if x.shape.rank == 0:
        raise ValueError(
            "`x` must have at least one axis. Received: a scalar. Give it one, for "
            "example `x[tf.newaxis]`."
        )
    _args.axes(axis, x.shape)


def _along(x: tf.Tensor, axis: int, function: _Gradient) -> tf.Tensor:
    """Runs `function` on `x` in the shape `[before, size, behind]`."""
    shape, rank = tf.shape(x), tf.rank(x)
    place = axis if axis >= 0 else axis + rank
    before, behind = shape[:place], shape[place + 1 :]
    packed = tf.reshape(
        x, tf.stack([tf.reduce_prod(before), shape[place], tf.reduce_prod(behind)])
    )
    if x.shape.rank is not None:
        packed = tf.ensure_shape(packed, [None, x.shape[axis], None])
    return tf.ensure_shape(tf.reshape(function(packed), shape), x.shape)


def _directed(x: tf.Tensor, exclusive: bool, reverse: bool) -> tf.Tensor:
    if reverse:
        x = tf.reverse(x, [1])
    if exclusive:
        x = _later(x, 1.0)
    x = _cumprod(x)
    return tf.reverse(x, [1]) if reverse else x


@custom_gradient
def _cumprod(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        # With the product of all before i taken out, the slope in i is
        # s_i = u_i + x_{i+1} * s_{i+1}.
        return times_upstream(_recurrence(upstream, x), _cumprod(_later(x, 1.0)))

    return tf.math.cumprod(x, 1), vjp


def _recurrence(u: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Solves `s_i = u_i + x_{i+1} * s_{i+1}` by doubling the stretch that is summed."""
    factors, stretch = _earlier(x, 1), 1
    # Without a static size, as many steps as a tensor could need.
    size = 2**31 if x.shape[1] is None else x.shape[1]
    while stretch < size:
        u += times_upstream(_earlier(u, stretch), factors)
        factors = _times(factors, _earlier(factors, stretch))
        stretch *= 2
    return u


@custom_gradient
def _times(
    x: tf.Tensor, y: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    return x * y, lambda upstream: (
        times_upstream(upstream, y),
        times_upstream(upstream, x),
    )


def _earlier(x: tf.Tensor, steps: int) -> tf.Tensor:
    """Moves `x` towards the beginning; zeros fill the end."""
    moved = x[:, steps:]
    return tf.pad(moved, [[0, 0], [0, tf.shape(x)[1] - tf.shape(moved)[1]], [0, 0]])


def _later(x: tf.Tensor, first: float) -> tf.Tensor:
    """Moves `x` one step towards the end; `first` fills the beginning."""
    return tf.concat(
        [tf.fill(tf.shape(x[:, :1]), tf.constant(first, x.dtype)), x[:, :-1]], 1
    )


def cumsum(
    x: Any,
    axis: int = 0,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = "cumsum",
) -> tf.Tensor:
    """Computes the running sum, in float32 where `x` has half precision.

    `tf.cumsum` adds bfloat16 in bfloat16, where 256 ones and one more are 256.

    Args:
      x: Floating `Tensor` of at least one axis.
      axis: The axis along which to add.
      exclusive: Whether each sum stops before its own element; the first is 0.
      reverse: Whether to begin at the end.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `axis` is not an integer.
      ValueError: If `axis` is out of range.

    Numerics:
      error  half an ulp of each partial sum; half precision is rounded once
      inf    value inf from there on
      NaN    value NaN from there on
      A zero incoming gradient gives zero gradients.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.ones([1000], tf.bfloat16)
      >>> print(float(tfsafe.ops.cumsum(x)[-1]), float(tf.cumsum(x)[-1]))
      1000.0 256.0
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        _check_axis(axis, x)
        return precision.in_float32(
            lambda x: tf.cumsum(x, axis, exclusive=exclusive, reverse=reverse), x
        )


def unsorted_segment_max(
    data: Any,
    segment_ids: Any,
    num_segments: Any,
    *,
    empty_value: float = 0.0,
    name: str = "unsorted_segment_max",
) -> tf.Tensor:
    """Computes the largest of each segment, and `empty_value` for one without elements.

    There `tf.math.unsorted_segment_max` has the lowest number of the dtype, which
    the next layer of a graph network turns into infinities.

    Args:
      data: Floating `Tensor`.
      segment_ids: Integer `Tensor` whose shape is that of the leading axes of `data`;
        elements with a negative one are ignored.
      num_segments: Integer, the number of segments.
      empty_value: The value of a segment without elements.
      name: Name scope of the operations created.

    Returns:
      `Tensor` of shape `[num_segments, ...]` with the dtype of `data`.

    Raises:
      TypeError: If `data` does not have a floating dtype, if `segment_ids` is not
        integer, or if `empty_value` is not a number.
      ValueError: If `empty_value` does not fit the dtype.

    Numerics:
      no entry  value empty_value, gradient 0 (a choice)
      ties      the gradient is shared
      NaN       value NaN
      A zero incoming gradient gives zero gradients.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.unsorted_segment_max([1.0, 2.0], [0, 0], 2).numpy())
      [2. 0.]
    """
    with tf.name_scope(name):
        data = _args.float_tensor(data, "data")
        empty_value = _args.number(empty_value, "empty_value", data.dtype)
        ids = tf.convert_to_tensor(segment_ids)
        if not ids.dtype.is_integer:
            raise TypeError(
                "`segment_ids` must have an integer dtype. Received: "
                f"dtype={ids.dtype.name}, shape={ids.shape}."
            )
        largest = tf.math.unsorted_segment_max(data, ids, num_segments)
        # XLA passes over a NaN.
        nans = tf.cast(tf.math.is_nan(data), tf.int32)
        has_nan = tf.math.unsorted_segment_sum(nans, ids, num_segments) > 0
        largest += nan_where(has_nan, data.dtype)
        counts = tf.math.unsorted_segment_sum(tf.ones_like(ids), ids, num_segments)
        extra = tf.ones([tf.rank(largest) - 1], tf.int32)
        is_empty = tf.reshape(counts < 1, tf.concat([[-1], extra], 0))
        return tf.where(is_empty, tf.constant(empty_value, data.dtype), largest)
