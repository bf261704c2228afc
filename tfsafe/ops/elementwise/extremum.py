"""Maximum and minimum, which are NaN where an element is NaN, in every mode."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import custom_gradient, nan_where, unbroadcast
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import times_upstream

_Axis = Sequence[int] | None
_Gradient = Callable[[tf.Tensor], tf.Tensor]
_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


def reduce_max(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = "reduce_max",
) -> tf.Tensor:
    """Computes the largest element, and NaN where there is one.

    `tf.reduce_max` may pass over a NaN under XLA: the maximum of NaN and 1 is NaN in
    eager mode and 1 with `jit_compile=True`.

    Args:
      x: Floating `Tensor`.
      axis: Axis or axes to reduce; by default all of them.
      keepdims: Whether the reduced axes stay, with size 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and its shape without the reduced axes.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `axis` is not an
        integer.
      ValueError: If `axis` is out of range or names an axis twice.

    Numerics:
      ties      the gradient is shared evenly (the subgradient of least norm)
      inf       value inf, gradient shared by the infinite elements
      NaN       value NaN, gradient shared by the NaN elements
      no entry  value -inf
      A zero incoming gradient gives zero gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.reduce_max(tf.constant([float("nan"), 1.0])).numpy())
      nan
    """
    with tf.name_scope(name):
        return _reduced(tf.reduce_max, x, axis, keepdims)


def reduce_min(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = "reduce_min",
) -> tf.Tensor:
    """Computes the smallest element, and NaN where there is one.

    `tf.reduce_min` may pass over a NaN under XLA: the minimum of NaN and 1 is NaN in
    eager mode and 1 with `jit_compile=True`.

    Args:
      x: Floating `Tensor`.
      axis: Axis or axes to reduce; by default all of them.
      keepdims: Whether the reduced axes stay, with size 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and its shape without the reduced axes.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `axis` is not an
        integer.
      ValueError: If `axis` is out of range or names an axis twice.

    Numerics:
      ties      the gradient is shared evenly (the subgradient of least norm)
      -inf      value -inf, gradient shared by the infinite elements
      NaN       value NaN, gradient shared by the NaN elements
      no entry  value inf
      A zero incoming gradient gives zero gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.reduce_min(tf.constant([float("nan"), 1.0])).numpy())
      nan
    """
    with tf.name_scope(name):
        return _reduced(tf.reduce_min, x, axis, keepdims)


def maximum(x: Any, y: Any, *, name: str = "maximum") -> tf.Tensor:
    """Computes the larger of two numbers elementwise, and NaN if one of them is.

    `tf.maximum` may pass over a NaN under XLA.

    Args:
      x: Floating `Tensor`.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      x = 1, y = 1    value 1, slopes 0.5 (the subgradient of least norm)
      x = NaN, y = 1  value NaN, slopes 1 and 0
      x = 1, y = NaN  value NaN, slopes 0 and 1
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.maximum(tf.constant([1.0, 3.0]), 2.0).numpy())
      [2. 3.]
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        return _chosen(tf.greater_equal, x, y)


def minimum(x: Any, y: Any, *, name: str = "minimum") -> tf.Tensor:
    """Computes the smaller of two numbers elementwise, and NaN if one of them is.

    `tf.minimum` may pass over a NaN under XLA.

    Args:
      x: Floating `Tensor`.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      x = 1, y = 1    value 1, slopes 0.5 (the subgradient of least norm)
      x = NaN, y = 1  value NaN, slopes 1 and 0
      x = 1, y = NaN  value NaN, slopes 0 and 1
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.minimum(tf.constant([1.0, 3.0]), 2.0).numpy())
      [1. 2.]
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        return _chosen(tf.less_equal, x, y)


def _reduced(
    reduction: Callable[..., tf.Tensor],
    x: Any,
    axis: int | Sequence[int] | None,
    keepdims: bool,
) -> tf.Tensor:
    x = _args.float_tensor(x, "x")
    along = _args.axes(axis, x.shape)
    value = _extremum(reduction, x, along)
    return value if keepdims else precision.drop(value, along)


def _extremum(
    reduction: Callable[..., tf.Tensor], x: tf.Tensor, axis: _Axis
) -> tf.Tensor:
    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        is_nan = tf.math.is_nan(x)
        has_nan = tf.reduce_any(is_nan, axis, keepdims=True)
        value = reduction(x, axis, keepdims=True) + nan_where(has_nan, x.dtype)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            # In float32: half precision cannot count beyond 2048 or 256.
            wide = x.dtype if x.dtype.size > 2 else tf.float32
            hits = tf.cast(tf.equal(x, value) | is_nan, wide)
            ties = tf.reduce_sum(hits, axis, keepdims=True)
            return tf.cast(
                times_upstream(tf.cast(upstream, wide) / ties, hits), x.dtype
            )

        return value, vjp

    return function(x)


def _chosen(
    at_least: Callable[..., tf.Tensor], x: tf.Tensor, y: tf.Tensor
) -> tf.Tensor:
    # `at_least` says whether its first argument is chosen, or as good.

    @custom_gradient
    def function(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
        # No comparison holds for a NaN.
        is_x = at_least(x, y) | tf.math.is_nan(x)

        def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            is_y = at_least(y, x) | tf.math.is_nan(y)
            # 0, or plus or minus a half.
            lead = 0.5 * (tf.cast(is_x, x.dtype) - tf.cast(is_y, x.dtype))
            in_x, in_y = (times_upstream(upstream, 0.5 + s) for s in (lead, -lead))
            return unbroadcast(in_x, x), unbroadcast(in_y, y)

        return tf.where(is_x, x, y), vjp

    return function(x, y)
