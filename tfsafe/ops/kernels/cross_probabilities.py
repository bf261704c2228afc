"""Cross entropy of probabilities, where no logits are known."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import chain, custom_gradient, nan_where
from tfsafe.ops.elementwise.division import ratio
from tfsafe.ops.elementwise.logarithm import log
from tfsafe.ops.kernels import cross_rows
from tfsafe.ops.kernels.known import known
from tfsafe.ops.kernels.zeros import least
from tfsafe.ops.kernels.zeros import log as bounded_log

_Gradients = tuple[tf.Tensor, tf.Tensor]


def surprise(probs: tf.Tensor, axis: int, bounded: bool) -> tf.Tensor:
    """Returns `-log(p)` for each class, `p` divided by its sum along `axis`."""
    log = _logarithm(bounded)
    return log(tf.reduce_sum(probs, axis, keepdims=True)) - log(probs)


def sparse(
    indices: tf.Tensor, probs: tf.Tensor, bounded: bool, normalize: bool = True
) -> tf.Tensor:
    """Returns `-log(p[index])` for each row, by default divided by its sum."""
    log = _logarithm(bounded)
    is_class, classified = cross_rows.known_classes(indices, probs)
    loss = -log(tf.gather_nd(probs, cross_rows.places(classified)))
    if normalize:
        loss += log(tf.reduce_sum(probs, -1))
    return cross_rows.nan_unless(is_class, loss)


def _logarithm(bounded: bool) -> Callable[[tf.Tensor], tf.Tensor]:
    return bounded_log if bounded else log


@custom_gradient
def weigh(
    loss: tf.Tensor, weight: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Gradients]]:
    """Returns `loss * weight`, and 0 where the weight is 0."""

    def vjp(upstream: tf.Tensor) -> _Gradients:
        # The slope in a label is infinite where its class is impossible. There it is
        # taken as 0: a teacher's softmax would multiply it by a 0 of its own.
        return chain(upstream, weight), chain(upstream, zero_where_inf(loss))

    return tf.math.multiply_no_nan(loss, weight), vjp


@custom_gradient
def binary(
    target: tf.Tensor, p: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Gradients]]:
    """Returns `-y * log(p) - (1 - y) * log(1 - p)`, NaN where `p` is no probability."""
    inside = p + nan_where((p < 0) | (p > 1), p.dtype)
    yes, no = tf.math.log(inside), tf.math.log1p(-inside)

    def vjp(upstream: tf.Tensor) -> _Gradients:
        slope = tf.math.divide_no_nan(1 - target, 1 - inside)
        slope -= tf.math.divide_no_nan(target, inside)
        slope = known(slope, _binary_slope, target, p)
        finite = zero_where_inf(no) - zero_where_inf(yes)
        return chain(upstream, finite), chain(upstream, slope)

    value = tf.math.multiply_no_nan(yes, target)
    return -value - tf.math.multiply_no_nan(no, 1 - target), vjp


def _binary_slope(target: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
    return ratio(1 - target, 1 - p) - ratio(target, p)


@custom_gradient
def bounded_binary(
    target: tf.Tensor, p: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Gradients]]:
    """Returns `binary`, with both logarithms continued as `bounded_log` does."""
    smallest = least(p)
    complement = 1 - p
    is_one = complement < smallest
    yes = tf.math.log(tf.maximum(p, smallest)) + tf.minimum(p - smallest, 0)
    no = tf.where(
        is_one,
        tf.math.log(smallest) + complement,
        tf.math.log1p(-tf.where(is_one, tf.zeros_like(p), p)),
    )

    def vjp(upstream: tf.Tensor) -> _Gradients:
        slope = (1 - target) / _one_below(complement) - target / _one_below(p)
        slope = known(slope, _bounded_slope, target, p)
        return chain(upstream, no - yes), chain(upstream, slope)

    return -target * yes - (1 - target) * no, vjp


def _bounded_slope(target: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
    return ratio(1 - target, _one_below(1 - p)) - ratio(target, _one_below(p))


def _one_below(x: tf.Tensor) -> tf.Tensor:
    """Returns `x`, and 1 below the smallest normal number."""
    return tf.where(x < least(x), tf.ones_like(x), x)


def zero_where_inf(x: tf.Tensor) -> tf.Tensor:
    """Bounds the slope in a label, which is infinite where its class is impossible."""
    return tf.where(tf.math.is_inf(x), tf.zeros_like(x), x)
