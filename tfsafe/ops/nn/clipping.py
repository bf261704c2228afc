"""Clipping by the Euclidean norm, where the squares would overflow as well."""

import numbers
from collections.abc import Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tfsafe import _args
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels import precision, sums
from tfsafe.ops.kernels.lengths import direction, euclidean
from tfsafe.ops.kernels.power import sqrt

Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices


def clip_by_norm(
    t: Any,
    clip_norm: Any,
    axes: int | Sequence[int] | None = None,
    *,
    name: str = "clip_by_norm",
) -> Gradient:
    """Scales `t` down to the Euclidean norm `clip_norm` where its norm is above that.

    `tf.clip_by_norm` squares first: a vector of numbers above 1e19 becomes 0, in
    float16 above 255.

    Args:
      t: Floating `Tensor`, or `IndexedSlices`, whose rows are summed where they come
        more than once.
      clip_norm: Largest norm: a number above 0 or a scalar `Tensor` of the dtype of
        `t`.
      axes: Axis or axes that make a vector; by default all of them.
      name: Name scope of the operations created.

    Returns:
      What `t` is, of its shape and dtype.

    Raises:
      TypeError: If `t` does not have a floating dtype, or if `axes` or `clip_norm` has
        a wrong type.
      ValueError: If `clip_norm` is a number not above 0, if `axes` is out of range or
        names an axis twice, or if `axes` comes with `IndexedSlices`.

    Numerics:
      error   <= 4 ulp where clipped, else none; gradient <= 8 ulp of the row's largest
      within  value t, slope 1, at the limit itself as well
      all 0   value 0, slope 1
      inf     value NaN there and 0 elsewhere
      NaN     value NaN, in the whole row
      A row of zero incoming gradients gets zero gradients, whatever it holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[3e20, 4e20], [0.3, 0.4]])
      >>> print(tfsafe.ops.clip_by_norm(x, 1.0, axes=-1).numpy())
      [[0.6 0.8]
       [0.3 0.4]]
    """
    with tf.name_scope(name):
        if isinstance(t, tf.IndexedSlices):
            if axes is not None:
                raise ValueError(
                    "`axes` must be None for `IndexedSlices`. Received: "
                    f"axes={axes!r}. Convert `t` first, with `tf.convert_to_tensor(t)`."
                )
            limit = _limit(clip_norm, t.dtype)
            return _clipped([[_with_shape(t)]], limit)[0][0]
        x = _args.float_tensor(t, "t")
        limit = _limit(clip_norm, x.dtype)
        along = _args.axes(axes, x.shape, "axes")
        if isinstance(limit, float):
            return precision.in_float32(lambda x: _shortened(x, limit, along), x)
        return precision.in_float32(
            lambda x, limit: _shortened(x, limit, along), x, limit
        )


def _shortened(x: tf.Tensor, limit: Any, axis: Sequence[int] | None) -> tf.Tensor:
    is_within = tf.stop_gradient(euclidean(x, axis)) <= limit
    return tf.where(is_within, x, limit * direction(x, axis))


def clip_by_global_norm(
    t_list: Sequence[Any],
    clip_norm: Any,
    use_norm: Any = None,
    *,
    name: str = "clip_by_global_norm",
) -> tuple[list[Any], tf.Tensor]:
    """Scales all tensors by one factor where their common norm is above `clip_norm`.

    `tf.clip_by_global_norm` squares first: numbers above 1e19, in float16 above 255,
    make everything NaN.

    Args:
      t_list: Floating `Tensor`s, `IndexedSlices`, whose rows are summed where they come
        more than once, and None, which stays.
      clip_norm: Largest norm: a number above 0 or a scalar `Tensor`.
      use_norm: The common norm, where it is known already.
      name: Name scope of the operations created.

    Returns:
      The list, and the norm before clipping as a scalar of float32, or of float64 if
      one of the tensors is.

    Raises:
      TypeError: If `t_list` is not a list or tuple, or if something in it is not
        floating.
      ValueError: If `clip_norm` is a number not above 0.

    Numerics:
      error   <= 3 ulp where clipped, and half the relative error of the sum of squares
      within  values as they are, slope 1
      all 0   values 0, slope 1
      NaN     values or norm not finite
      The norm that is returned may overflow; the values are right all the same.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> tensors = [tf.constant([3e20]), None, tf.constant([4e20])]
      >>> clipped, norm = tfsafe.ops.clip_by_global_norm(tensors, 1.0)
      >>> print(clipped[0].numpy(), clipped[1], clipped[2].numpy(), norm.numpy())
      [0.6] None [0.8] 5e+20
    """
    with tf.name_scope(name):
        if not isinstance(t_list, list | tuple):
            raise TypeError(
                "`t_list` must be a list or a tuple of tensors. Received: "
                f"{type(t_list).__name__}. For one tensor see `clip_by_norm`."
            )
        tensors = [_floating(t) for t in t_list if t is not None]
        dtype = _wide_dtype(tensors)
        limit = tf.cast(_limit(clip_norm, dtype), dtype)
        if use_norm is not None:
            norm = tf.cast(use_norm, dtype)
            clipped, _ = _clip_plainly([tensors], [norm**2], limit)
            clipped = list(map(_with_values, tensors, clipped))
        elif tensors:
            clipped, (norm,) = _clipped([tensors], limit)
        else:
            clipped, norm = [], tf.zeros([], dtype)
        rest = iter(clipped)
        return [None if t is None else next(rest) for t in t_list], norm


def _floating(t: Any) -> Gradient:
    if isinstance(t, tf.IndexedSlices):
        _args.float_tensor(t.values, "t_list")
        return _with_shape(t)
    return _args.float_tensor(t, "t_list")


def _with_shape(t: tf.IndexedSlices) -> tf.IndexedSlices:
    if t.dense_shape is None:
        raise ValueError(
            "`IndexedSlices` must have a `dense_shape` to be clipped. Received: "
            f"dense_shape=None, values of shape {t.values.shape}."
        )
    return t


def _limit(clip_norm: Any, dtype: tf.DType) -> Any:
    if hasattr(clip_norm, "dtype") and not isinstance(clip_norm, numbers.Real):
        return _args.float_tensor(clip_norm, "clip_norm")
    value = _args.number(clip_norm, "clip_norm", dtype)
    if not value > 0:
        raise ValueError(
            f"`clip_norm` must be above 0. Received: clip_norm={clip_norm!r}."
        )
    return value


def clip_each(
    gradients: Sequence[Gradient],
    clip_norm: Any,
    halves: Sequence[tf.Tensor | None] = (),
    holds: Any = True,
) -> list[Gradient]:
    """Scales each gradient whose norm is above `clip_norm` down to that norm.

    Keras squares first: a gradient of 3e19 becomes 0, in float16 one of 300.

    Args:
      gradients: Floating `Tensor`s and `IndexedSlices`.
      clip_norm: Largest norm, positive.
      halves: Half the sum of the squares of each gradient, where it is known, in
        float32 or float64. That of `IndexedSlices` is not used: rows may repeat.
      holds: Whether these sums are right; if not, the norm is computed from scratch.

    Returns:
      The gradients. One whose norm is not above `clip_norm` is returned bit for bit.

    Numerics:
      error          <= 3 ulp where clipped, and half the relative error of
                     TensorFlow's sum of the squares; half precision is rounded once
      all 0          0
      NaN, infinity  the result is not finite: they must be dealt with before
      `IndexedSlices`
                     stay sparse; rows that come more than once count as their sum
    """
    return _clipped([[gradient] for gradient in gradients], clip_norm, halves, holds)[0]


def clip_together(
    gradients: Sequence[Gradient],
    clip_norm: Any,
    halves: Sequence[tf.Tensor | None] = (),
    holds: Any = True,
) -> list[Gradient]:
    """Scales all gradients by one factor if their common norm is above `clip_norm`.

    Keras squares first: a gradient of 3e19 makes everything NaN.

    Returns:
      The gradients, with the `Numerics` of `clip_each`.
    """
    return _clipped([gradients], clip_norm, halves, holds)[0] if gradients else []


def half_of_squares(values: tf.Tensor) -> tf.Tensor:
    """Returns half the sum of the squares of a gradient's values.

    In float64 for float64 and complex128, else in float32.
    """
    if values.dtype.is_complex:
        values = tf.abs(values)
    if values.dtype.size < 4:
        values = tf.cast(values, tf.float32)
    if sums.takes_product(values):
        return tf.reduce_sum(sums.sums_of_rows(tf.square(values), 0.5))
    return tf.nn.l2_loss(values)


def _clipped(
    groups: Sequence[Sequence[Gradient]],
    clip_norm: Any,
    halves: Sequence[tf.Tensor | None] = (),
    holds: Any = True,
) -> tuple[list[Gradient], list[tf.Tensor]]:
    """Clips each group of gradients by its common norm; returns the norms as well."""
    gradients = [gradient for group in groups for gradient in group]
    if not gradients:
        return [], []
    dtype = _wide_dtype(gradients)
    clip_norm = tf.cast(clip_norm, dtype)
    known = iter(halves or [None] * len(gradients))
    squares = tf.stack([
        tf.add_n([_squares(gradient, next(known), dtype) for gradient in group])
        for group in groups
    ])
    # The scaled way takes more passes over the gradients, and hardly ever a step.
    values, norms = tf.cond(
        _are_in_range(squares, clip_norm) & holds,
        lambda: _clip_plainly(groups, tf.unstack(squares), clip_norm),
        lambda: _clip_scaled(groups, dtype, clip_norm),
    )
    clipped = [
        _with_values(gradient, value)
        for gradient, value in zip(gradients, values, strict=True)
    ]
    return clipped, norms


def _wide_dtype(gradients: Sequence[Gradient]) -> tf.DType:
    has_float64 = any(gradient.dtype == tf.float64 for gradient in gradients)
    return tf.float64 if has_float64 else tf.float32


def _are_in_range(squares: tf.Tensor, clip_norm: tf.Tensor) -> tf.Tensor:
    limits = LIMITS[squares.dtype.name]
    # Below this, a square may have lost digits to underflow. It does not matter where
    # the norm is far below the one to clip to.
    lowest = limits.tiny / limits.eps
    is_enough = (squares >= lowest) | (clip_norm**2 >= lowest)
    return tf.reduce_all(is_enough & (squares <= limits.max))


def _clip_plainly(
    groups: Sequence[Sequence[Gradient]], squares: Sequence[Any], clip_norm: tf.Tensor
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    result, norms = [], []
    for group, square in zip(groups, squares, strict=True):
        norms.append(sqrt(square))
        factor = clip_norm / tf.maximum(norms[-1], clip_norm)
        for gradient in group:
            # A factor of 1 changes no bit.
            clipped = tf.cast(_values(gradient), factor.dtype) * factor
            result.append(tf.cast(clipped, gradient.dtype))
    return result, norms


def _clip_scaled(
    groups: Sequence[Sequence[Gradient]], dtype: tf.DType, clip_norm: tf.Tensor
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    result, norms = [], []
    for group in groups:
        length, power = _length(group, dtype)
        norms.append(length * power)
        is_above = norms[-1] > clip_norm
        factor = clip_norm / tf.where(is_above, length, tf.ones_like(length))
        for gradient in group:
            values = _values(gradient)
            # In this order: the norm itself may be above the largest number. And no
            # product of three, which TensorFlow's graph optimizer would reorder.
            clipped = tf.cast(values, dtype) / power * factor
            result.append(tf.where(is_above, tf.cast(clipped, values.dtype), values))
    return result, norms


def _length(group: Sequence[Gradient], dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the common norm as a number that cannot overflow, and a power of 2."""
    powers, lengths = [], []
    for gradient in group:
        scaled, power, _ = precision.scaled(tf.cast(_values(gradient), dtype), None)
        # A sum of equal rows does not overflow after the scaling.
        length = sqrt(_sum_of_squares(_with_values(gradient, scaled)))
        # A gradient of zeros has the power 1, which must not outweigh a tiny one.
        powers.append(tf.where(length > 0, tf.squeeze(power), tf.zeros_like(length)))
        lengths.append(length)
    shares, power, _ = precision.scaled(tf.stack(powers), None)
    total = euclidean(shares * tf.stack(lengths), None)
    return tf.squeeze(total), tf.squeeze(power)


def _squares(gradient: Gradient, half: Any, dtype: tf.DType) -> tf.Tensor:
    if half is None or isinstance(gradient, tf.IndexedSlices):
        return _sum_of_squares(_wide(gradient, dtype))
    return 2 * tf.cast(half, dtype)


def _sum_of_squares(gradient: Gradient) -> tf.Tensor:
    if isinstance(gradient, tf.IndexedSlices):
        gradient = _row_sums(gradient)
    return tf.reduce_sum(tf.square(gradient))


def _row_sums(slices: tf.IndexedSlices) -> tf.Tensor:
    """Returns the sums of equal rows, then zeros: as many rows as there are slices.

    The table itself may be too large to be held a second time.
    """
    order = tf.argsort(slices.indices)
    indices = tf.gather(slices.indices, order)
    is_next = tf.cast(tf.not_equal(indices[1:], indices[:-1]), order.dtype)
    numbers = tf.cumsum(tf.concat([tf.zeros_like(order[:1]), is_next], axis=0))
    number_of = tf.scatter_nd(order[:, tf.newaxis], numbers, tf.shape(order))
    count = tf.size(order)
    return tf.math.unsorted_segment_sum(slices.values, number_of, count)


def _wide(gradient: Gradient, dtype: tf.DType) -> Gradient:
    return _with_values(gradient, tf.cast(_values(gradient), dtype))


def _values(gradient: Gradient) -> tf.Tensor:
    is_sparse = isinstance(gradient, tf.IndexedSlices)
    return gradient.values if is_sparse else gradient


def _with_values(gradient: Gradient, values: tf.Tensor) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return values
