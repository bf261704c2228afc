"""Computes the entropies of Tsallis and Renyi, also at order 1."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas.limits import removable
from tfsafe.ops.kernels import precision

# Nearer to order 1, the powers are 1 plus a logarithm.
_NEAR = 0.1
# A sum of probabilities may be so many units in the last place off 1, for each of them.
_ULPS = 4


def tsallis(
    p: tf.Tensor, q: tf.Tensor, axes: tuple[int, ...], keepdims: bool
) -> tf.Tensor:
    """Computes `(1 - sum(p ** q)) / (q - 1)`.

    Returns:
      The entropies; at order 1, those of Shannon.
    """

    def compute(p: tf.Tensor, q: tf.Tensor) -> tf.Tensor:
        return _near_or_plain(
            p,
            q,
            axes,
            keepdims,
            lambda entropy, _: entropy,
            lambda total, q: (1 - total) / (q - 1),
        )

    return precision.in_float32(compute, p, q)


def renyi(
    p: tf.Tensor, q: tf.Tensor, axes: tuple[int, ...], keepdims: bool
) -> tf.Tensor:
    """Computes `log(sum(p ** q)) / (1 - q)`; arguments as of `tsallis`."""

    def near(entropy: tf.Tensor, q: tf.Tensor) -> tf.Tensor:
        return entropy * removable.log1p_over_x((1 - q) * entropy)

    def compute(p: tf.Tensor, q: tf.Tensor) -> tf.Tensor:
        return _near_or_plain(
            p,
            q,
            axes,
            keepdims,
            near,
            lambda total, q: tf.math.log(total) / (1 - q),
        )

    return precision.in_float32(compute, p, q)


def _near_or_plain(
    p: tf.Tensor,
    q: tf.Tensor,
    axes: tuple[int, ...],
    keepdims: bool,
    near: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    plain: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    off = 1 - tf.reduce_sum(p, axes, keepdims=keepdims)
    terms = tf.size(p) / tf.maximum(tf.size(off), 1)
    limit = _ULPS * LIMITS[p.dtype.name].eps * tf.cast(terms, p.dtype)
    is_near = (
        (tf.abs(q - 1) < _NEAR)
        & (tf.abs(off) <= limit)
        & tf.reduce_all(p >= 0, axes, keepdims=keepdims)
    )
    inside = is_near if keepdims else tf.reshape(is_near, tf.shape(_kept(p, axes)))
    part = tf.where(inside & (p > 0), p, tf.ones_like(p))
    step = q - 1
    log = tf.math.log(part)
    entropy = -tf.reduce_sum(
        part * log * removable.expm1_over_x(step * log), axes, keepdims=keepdims
    )
    # At order 1 what the sum is off 1 has no limit; the probabilities are meant.
    is_one = tf.equal(step, 0)
    rest = off / tf.where(is_one, tf.ones_like(step), step)
    entropy += tf.where(is_near & ~is_one, rest, tf.zeros_like(rest))
    far = tf.where(inside, tf.ones_like(p), p)
    order = tf.where(is_one, 2 * tf.ones_like(q), q)
    # At order 1 a sum that is not 1 stays infinite, with the sign of the quotient.
    far = plain(tf.reduce_sum(tf.pow(far, order), axes, keepdims=keepdims), order)
    infinite = plain(tf.reduce_sum(p, axes, keepdims=keepdims), q)
    far = tf.where(is_one & ~is_near, tf.stop_gradient(infinite), far)
    return tf.where(is_near, near(entropy, q), far)


def _kept(p: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
    return tf.reduce_sum(p, axes, keepdims=True)


def impurity(
    p: tf.Tensor, log: tf.Tensor, axes: Sequence[int], keepdims: bool
) -> tf.Tensor:
    """Computes `sum(p * (1 - p))` of probabilities and their logarithms."""
    return tf.reduce_sum(p * -ops.expm1(log), axes, keepdims=keepdims)
