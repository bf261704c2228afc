"""Largest and smallest numbers, of which NaN is one in every mode."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import chain, nan_where, unbroadcast
from tfsafe.ops import _precision
from tfsafe.ops._division import ratio

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
      axis: Axis or axes to reduce; all of them where None.
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
      A zero incoming gradient gives zero gradients, whatever stands in the row.

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
      axis: Axis or axes to reduce; all of them where None.
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
      A zero incoming gradient gives zero gradients, whatever stands in the row.

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
        return _larger(tf.maximum, x, y)


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
        return _larger(tf.minimum, x, y)


def _reduced(
    reduction: Callable[..., tf.Tensor],
    x: Any,
    axis: int | Sequence[int] | None,
    keepdims: bool,
) -> tf.Tensor:
    x = _args.float_tensor(x, "x")
    along = _args.axes(axis, x.shape)
    value = _extremum(reduction, x, along)
    return value if keepdims else _precision.drop(value, along)


def _extremum(
    reduction: Callable[..., tf.Tensor], x: tf.Tensor, axis: _Axis
) -> tf.Tensor:
    @tf.custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        is_nan = tf.math.is_nan(x)
        has_nan = tf.reduce_any(is_nan, axis, keepdims=True)
        value = reduction(x, axis, keepdims=True) + nan_where(has_nan, x.dtype)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            hits = tf.where(has_nan, is_nan, tf.equal(x, value))
            # In float32: half precision cannot count beyond 2048 or 256.
            wide = x.dtype if x.dtype.size > 2 else tf.float32
            hits = tf.cast(hits, wide)
            ties = tf.reduce_sum(hits, axis, keepdims=True)
            return tf.cast(chain(tf.cast(upstream, wide), ratio(hits, ties)), x.dtype)

        return value, vjp

    return function(x)


def _larger(choice: Callable[..., tf.Tensor], x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    @tf.custom_gradient
    def function(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
        value = choice(x, y)
        value = tf.where(tf.math.is_nan(y), y, value)
        value = tf.where(tf.math.is_nan(x), x, value)

        def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return (
                unbroadcast(upstream * _share(x, y, value), x),
                unbroadcast(upstream * _share(y, x, value), y),
            )

        return value, vjp

    return function(x, y)


def _share(x: tf.Tensor, y: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    """Returns 1 where `x` alone is the value, 0.5 where `y` is as well, and 0."""
    is_x = tf.equal(x, value) | tf.math.is_nan(x)
    is_y = tf.equal(y, value) | tf.math.is_nan(y)
    both = is_x & is_y
    one = tf.ones_like(value)
    return tf.where(both, 0.5 * one, tf.where(is_x, one, tf.zeros_like(one)))
