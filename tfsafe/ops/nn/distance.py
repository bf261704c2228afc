"""Distances between vectors, with gradient 0 where two of them are equal."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.lengths import euclidean
from tfsafe.ops.reductions.norm import norm_of_order


def distance(
    a: Any,
    b: Any,
    ord: str | float = "euclidean",
    axis: int | Sequence[int] | None = -1,
    keepdims: bool = False,
    *,
    name: str = "distance",
) -> tf.Tensor:
    """Computes `norm(a - b, ord, axis)`, with gradient 0 where the two are equal.

    Use it in contrastive and triplet losses: the gradient of
    `tf.sqrt(tf.reduce_sum((a - b) ** 2))` is NaN for two equal vectors.

    Args:
      a: Floating `Tensor`.
      b: Floating `Tensor` of the dtype of `a`, of a shape that broadcasts with it.
      ord: As in `norm`.
      axis: Axis or axes that make a vector; by default all of them.
      keepdims: Whether the reduced axes stay, with size 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `a` and the broadcast shape without the axes.

    Raises:
      TypeError: If a dtype is not floating, if the two differ, or if `axis` is not an
        integer.
      ValueError: If the shapes do not broadcast, or if `ord` or `axis` is refused by
        `norm`.

    Numerics:
      error  that of `norm`, after the difference has been rounded
      a = b  value 0, gradients 0 (the subgradient of least norm)
      inf    value inf, or NaN where both are the same infinity
      NaN    value NaN, gradients NaN
      A zero incoming gradient gives zero gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> a = tf.constant([[0.0, 3e20], [1.0, 2.0]])
      >>> b = tf.constant([[4e20, 0.0], [1.0, 2.0]])
      >>> print(tfsafe.ops.distance(a, b).numpy())
      [5.e+20 0.e+00]
    """
    with tf.name_scope(name):
        a, b = _args.float_tensors(a=a, b=b)
        _args.check_broadcast(a=a, b=b)
        along = _args.axes(axis, tf.broadcast_static_shape(a.shape, b.shape))
        function = norm_of_order(ord, axis)
        value = precision.in_float32(lambda a, b: function(a - b, along), a, b)
        return value if keepdims else precision.drop(value, along)


def cdist(a: Any, b: Any, *, name: str = "cdist") -> tf.Tensor:
    """Computes the Euclidean distance of each vector in `a` from each in `b`.

    The differences are formed, not `|a|^2 + |b|^2 - 2 a b`, which loses every digit for
    near points and is NaN for some equal ones. It takes memory for all of them:
    `m * n * d` numbers.

    Args:
      a: Floating `Tensor` of shape `[..., m, d]`.
      b: Floating `Tensor` of shape `[..., n, d]`, of the dtype of `a`.
      name: Name scope of the operations created.

    Returns:
      `Tensor` of shape `[..., m, n]`, of the dtype of `a`.

    Raises:
      TypeError: If a dtype is not floating, or the two differ.
      ValueError: If one has fewer than two axes, or if the shapes do not belong
        together.

    Numerics:
      error  that of `norm`, after the difference has been rounded
      equal  value 0, gradients 0 (the subgradient of least norm)
      inf    value inf, or NaN where both are the same infinity
      NaN    value NaN, gradients NaN
      A zero incoming gradient gives zero gradients, whatever they hold.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[1.0, 2.0], [4.0, 6.0]])
      >>> print(tfsafe.ops.cdist(x, x).numpy())
      [[0. 5.]
       [5. 0.]]
    """
    with tf.name_scope(name):
        a, b = _args.float_tensors(a=a, b=b)
        for each, letter in ((a, "a"), (b, "b")):
            if each.shape.rank is not None and each.shape.rank < 2:
                raise ValueError(
                    f"`{letter}` must have at least two axes: the vectors, and their "
                    f"entries. Received: shape={each.shape}."
                )
        if not a.shape[-1:].is_compatible_with(b.shape[-1:]):
            raise ValueError(
                "`a` and `b` must have vectors of one size along their last axis. "
                f"Received: a of shape {a.shape}, b of shape {b.shape}."
            )
        rows, columns = tf.expand_dims(a, -2), tf.expand_dims(b, -3)
        _args.check_broadcast(a=rows, b=columns)
        value = precision.in_float32(lambda a, b: euclidean(a - b, [-1]), rows, columns)
        return tf.squeeze(value, -1)
