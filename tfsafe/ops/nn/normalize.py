"""Vectors of length 1 and cosines, with a value and a gradient for the zero vector."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import custom_gradient, nan_where
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.lengths import direction, euclidean
from tfsafe.ops.kernels.zeros import quotient_for_gradient, times_where_nonzero
from tfsafe.ops.reductions.norm import norm_of_order

_Axis = Sequence[int] | None


def l2_normalize(
    x: Any,
    axis: int | Sequence[int] | None = None,
    epsilon: float = 0.0,
    *,
    name: str = "l2_normalize",
) -> tf.Tensor:
    """Computes `x / norm(x)`, and 0 with gradient 0 where the norm is 0.

    The gradient of `tf.math.l2_normalize` is 1e6 at 0, and in float16 value and
    gradient are NaN; a vector of numbers above 1e19, in float16 above 255, becomes 0.

    Args:
      x: Floating `Tensor`.
      axis: Axis or axes that make a vector; by default all of them.
      epsilon: Where the square of the norm is below this, it counts as this, as in
        TensorFlow: the length of the result is then below 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype, if `axis` is not an integer, or
        if `epsilon` is not a number.
      ValueError: If `axis` is out of range or names an axis twice, or if `epsilon` is
        negative.

    Numerics:
      error  value <= 3 ulp, gradient <= 8 ulp of the row's largest
      all 0  value 0, gradient 0 (a choice: the direction is undefined), for any epsilon
      inf    value NaN there and 0 elsewhere, gradient 0 elsewhere
      NaN    value NaN, gradient NaN, in the whole row
      A row of zero incoming gradients gets zero gradients, whatever it holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[3e20, 4e20], [0.0, 0.0]])
      >>> print(tfsafe.ops.l2_normalize(x, axis=-1).numpy())
      [[0.6 0.8]
       [0.  0. ]]
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        along = _args.axes(axis, x.shape)
        floor = _args.number(epsilon, "epsilon", tf.float64)
        if not floor >= 0:
            raise ValueError(
                f"`epsilon` must be at least 0. Received: epsilon={epsilon!r}."
            )
        return precision.in_float32(lambda x: unit(x, along, floor**0.5), x)


def unit(x: tf.Tensor, axis: _Axis, floor: float = 0.0) -> tf.Tensor:
    """Computes `x / max(norm(x), floor)`, and 0 with gradient 0 where `x` is 0."""
    value = direction(x, axis)
    if not floor:
        return value
    length = tf.stop_gradient(euclidean(x, axis))
    is_short = tf.logical_and(length > 0, length < floor)
    return tf.where(is_short, x / tf.constant(floor, x.dtype), value)


def normalize(
    x: Any,
    ord: str | float = "euclidean",
    axis: int | Sequence[int] | None = None,
    *,
    name: str = "normalize",
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes `x / norm(x, ord, axis)` and the norm, with 0 over 0 as 0.

    `tf.linalg.normalize` is NaN where the norm is 0.

    Args:
      x: Floating `Tensor`.
      ord: As in `norm`.
      axis: Axis or axes that make a vector; by default all of them.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`, and the norm, which keeps the axes with
      size 1.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `axis` is not an
        integer.
      ValueError: If `ord` or `axis` is refused by `norm`.

    Numerics:
      error  <= 3 ulp for the Euclidean norm, else <= 8 ulp
      all 0  values 0, gradients 0 (a choice: the direction is undefined)
      inf    value NaN there and 0 elsewhere, norm inf
      NaN    values NaN, in the whole row
      A row of zero incoming gradients gets zero gradients, whatever it holds.
      The first result is right even where the norm itself overflows.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> value, length = tfsafe.ops.normalize(tf.constant([1.0, 3.0]), ord=1)
      >>> print(value.numpy(), length.numpy())
      [0.25 0.75] [4.]
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        along = _args.axes(axis, x.shape)
        function = norm_of_order(ord, axis)

        def value(x: tf.Tensor) -> tf.Tensor:
            if function is euclidean:
                return direction(x, along)
            # Scaled by a constant, because the norm itself may overflow.
            _, _, inverse = precision.scaled(tf.stop_gradient(x), along)
            return quotient_for_gradient(x * inverse, function(x * inverse, along))

        return (
            precision.in_float32(value, x),
            precision.in_float32(lambda x: function(x, along), x),
        )


def cosine_similarity(
    a: Any,
    b: Any,
    axis: int | Sequence[int] | None = -1,
    *,
    name: str = "cosine_similarity",
) -> tf.Tensor:
    """Computes the cosine of the angle between vectors, and 0 for the zero vector.

    Unlike `keras.losses.cosine_similarity` it has no sign, and no gradient of 1e7 at
    the zero vector. It is never above 1 or below -1 by rounding.

    Args:
      a: Floating `Tensor`.
      b: Floating `Tensor` of the dtype of `a`, of a shape that broadcasts with it.
      axis: Axis or axes that make a vector; by default all of them.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `a` and the broadcast shape without the axes, from -1
      to 1.

    Raises:
      TypeError: If a dtype is not floating, if the two differ, or if `axis` is not an
        integer.
      ValueError: If the shapes do not broadcast, or if `axis` is out of range or names
        an axis twice.

    Numerics:
      error  <= 4 ulp of 1, gradient <= 8 ulp of the row's largest
      all 0  value 0, gradients 0 (a choice: the angle is undefined)
      inf    value NaN
      NaN    value NaN, gradients NaN
      A zero incoming gradient gives zero gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> a = tf.constant([[1e30, 0.0], [0.0, 0.0]])
      >>> b = tf.constant([[1e-30, 1e-30], [1.0, 1.0]])
      >>> print(tfsafe.ops.cosine_similarity(a, b).numpy())
      [0.70710677 0.        ]
    """
    with tf.name_scope(name):
        a, b = _args.float_tensors(a=a, b=b)
        _args.check_broadcast(a=a, b=b)
        shape = tf.broadcast_static_shape(a.shape, b.shape)
        along = _args.axes(axis, shape)

        def cosine(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
            return _cosine(a, b, along)

        if a.shape != b.shape or not a.shape.is_fully_defined():
            size = tf.broadcast_dynamic_shape(tf.shape(a), tf.shape(b))
            a, b = tf.broadcast_to(a, size), tf.broadcast_to(b, size)
        return precision.drop(precision.in_float32(cosine, a, b), along)


def _cosine(a: tf.Tensor, b: tf.Tensor, axis: _Axis) -> tf.Tensor:
    a, b = direction(a, axis), direction(b, axis)
    # The product is 0 where either factor is, for its gradients; a NaN still counts.
    is_nan = tf.math.is_nan(tf.reduce_sum(a + b, axis, keepdims=True))
    cosine = tf.reduce_sum(times_where_nonzero(a, b), axis, keepdims=True)
    return _within_1(cosine) + nan_where(is_nan, cosine.dtype)


@custom_gradient
def _within_1(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """Takes off what rounding adds to a cosine of 1 or -1, and nothing of the slope."""
    # Not `tf.clip_by_value`, which XLA made a NaN pass over in TensorFlow 2.16.
    one = tf.ones([], x.dtype)
    return tf.where(x > one, one, tf.where(x < -one, -one, x)), tf.identity
