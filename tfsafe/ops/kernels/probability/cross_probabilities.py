"""Cross entropy of probabilities, where no logits are known."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import custom_gradient, known, nan_where
from tfsafe.ops.kernels.logarithm import log
from tfsafe.ops.kernels.probability import cross_rows
from tfsafe.ops.kernels.zeros import (
    log_continued,
    magnitude,
    one_below_normal,
    quotient_for_gradient,
    smallest_normal,
    times_upstream,
    zero_where_inf,
)

_Gradients = tuple[tf.Tensor, tf.Tensor]


def negative_log(probs: tf.Tensor, axis: int, bounded: bool) -> tf.Tensor:
    """Returns `-log(p)` for each class, `p` divided by its sum along `axis`.

    A negative number counts in the sum with its magnitude: no class exceeds the sum,
    and no loss is negative.
    """
    logarithm = _logarithm(bounded)
    total = tf.reduce_sum(magnitude(probs), axis, keepdims=True)
    return logarithm(total) - logarithm(probs)


def sparse(
    indices: tf.Tensor, probs: tf.Tensor, bounded: bool, normalize: bool = True
) -> tf.Tensor:
    """Returns `-log(p[index])` for each row, by default divided by its sum.

    The sum is that of `negative_log`; without it, a number above 1 costs `log(p)`.
    """
    logarithm = _logarithm(bounded)
    is_class, classified = cross_rows.known_classes(indices, probs)
    loss = -logarithm(tf.gather_nd(probs, cross_rows.places(classified)))
    if normalize:
        loss += logarithm(tf.reduce_sum(magnitude(probs), -1))
    else:
        loss = magnitude(loss)
    return cross_rows.nan_unless(is_class, loss)


def _logarithm(bounded: bool) -> Callable[[tf.Tensor], tf.Tensor]:
    return log_continued if bounded else log


@custom_gradient
def binary(
    target: tf.Tensor, p: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Gradients]]:
    """Returns `-y * log(p) - (1 - y) * log(1 - p)`, NaN for `p` outside [0, 1]."""
    inside = p + nan_where((p < 0) | (p > 1), p.dtype)
    yes, no = tf.math.log(inside), tf.math.log1p(-inside)

    def vjp(upstream: tf.Tensor) -> _Gradients:
        slope = tf.math.divide_no_nan(1 - target, 1 - inside)
        slope -= tf.math.divide_no_nan(target, inside)
        slope = known(slope, _binary_slope, target, p)
        finite = zero_where_inf(no) - zero_where_inf(yes)
        return times_upstream(upstream, finite), times_upstream(upstream, slope)

    value = tf.math.multiply_no_nan(yes, target)
    return -value - tf.math.multiply_no_nan(no, 1 - target), vjp


def _binary_slope(target: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
    return quotient_for_gradient(1 - target, 1 - p) - quotient_for_gradient(target, p)


@custom_gradient
def bounded_binary(
    target: tf.Tensor, p: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Gradients]]:
    """Returns `binary`, with both logarithms continued as `log_continued` does.

    Above 1, where a logarithm is positive, it is taken with the other sign.
    """
    smallest = smallest_normal(p)
    complement = 1 - p
    is_one = complement < smallest
    yes = tf.math.log(tf.maximum(p, smallest)) + tf.minimum(p - smallest, 0)
    yes = -magnitude(yes)
    no = tf.where(
        is_one,
        tf.math.log(smallest) + complement,
        -magnitude(tf.math.log1p(-tf.where(is_one, tf.zeros_like(p), p))),
    )

    def vjp(upstream: tf.Tensor) -> _Gradients:
        slope = (1 - target) / _divisor(complement) - target / _divisor(p)
        slope = known(slope, _bounded_slope, target, p)
        return times_upstream(upstream, no - yes), times_upstream(upstream, slope)

    return -target * yes - (1 - target) * no, vjp


def _bounded_slope(target: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
    missed = quotient_for_gradient(1 - target, _divisor(1 - p))
    return missed - quotient_for_gradient(target, _divisor(p))


def _divisor(p: tf.Tensor) -> tf.Tensor:
    """Returns what 1 is divided by for the slope of the logarithm of `p`."""
    return tf.where(p > 1, -p, one_below_normal(p))
