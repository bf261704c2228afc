"""Softmax under a mask and at any temperature."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe._gradients import (
    custom_gradient_in,
    known,
    local,
    nan_where,
    unbroadcast,
)
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels.zeros import quotient_for_gradient, times_upstream

_Axis = Sequence[int] | None
_Gradient = Callable[[tf.Tensor], tf.Tensor]


def hide(x: tf.Tensor, keep: tf.Tensor | None) -> tf.Tensor:
    """Puts the lowest finite number where `keep` is False."""
    # The lowest finite number instead of -inf, so that numeric checks do not flag it.
    lowest = tf.constant(-LIMITS[x.dtype.name].max, x.dtype)
    return x if keep is None else tf.where(keep, x, lowest)


def is_minus_inf(x: tf.Tensor) -> tf.Tensor:
    """Returns whether `x` is `-inf`, without a `-inf` to compare with."""
    return x < tf.constant(-LIMITS[x.dtype.name].max, x.dtype)


def _largest(x: tf.Tensor, axis: _Axis) -> tf.Tensor:
    """Returns the largest of each row, and 0 for a row of nothing but `-inf`."""
    largest = tf.reduce_max(x, axis, keepdims=True)
    return tf.where(is_minus_inf(largest), tf.zeros_like(largest), largest)


@custom_gradient_in(2)
def temper(
    x: tf.Tensor, temperature: tf.Tensor, axis: _Axis
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Returns `(x - max(x)) / temperature`; the lowest finite number where it is lower.

    What is `-inf` stays so. The gradient leaves out what comes through the maximum: it
    is for functions whose gradients along `axis` sum to 0.
    """
    inputs = x, temperature
    below = x - _largest(x, axis)
    is_zero = tf.equal(temperature, 0)
    quotient = below / tf.where(is_zero, tf.ones_like(temperature), temperature)
    is_lowest = (is_zero & (below < 0)) | is_minus_inf(quotient)
    # No `~is_lowest`: a graph makes `x >= y` of `not x < y`, and a NaN is lost.
    lowest = tf.constant(-LIMITS[x.dtype.name].max, x.dtype)
    value = tf.where(is_lowest, lowest, quotient)
    value = tf.where(is_minus_inf(x), x, value)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        in_x = quotient_for_gradient(upstream, temperature)
        again = known(value, lambda x, t: temper(x, t, axis), *inputs)
        in_temperature = -times_upstream(in_x, again)
        return in_x, unbroadcast(in_temperature, temperature)

    return value + nan_where(temperature < 0, x.dtype), vjp


@custom_gradient_in(1)
def softmax(
    x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None = None
) -> tuple[tf.Tensor, _Gradient]:
    """Computes the softmax of what `keep` keeps; all else must be finite, and is 0."""
    # Not `tf.nn.softmax`, which on a CPU gives 0 in a row with NaN or infinity.
    exponentials = tf.exp(x - _largest(x, axis))
    if keep is not None:
        exponentials = tf.where(keep, exponentials, tf.zeros_like(x))
    total = tf.reduce_sum(exponentials, axis, keepdims=True)
    value = exponentials / tf.where(tf.equal(total, 0), tf.ones_like(total), total)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        mask = local(keep)
        if mask is not None:
            upstream = tf.where(mask, upstream, tf.zeros_like(upstream))
        probs = known(value, lambda x: softmax(x, axis, mask), x)
        return softmax_vjp(probs, upstream, axis)

    return value, vjp


def softmax_vjp(probs: tf.Tensor, upstream: tf.Tensor, axis: _Axis) -> tf.Tensor:
    """Returns `p * (u - sum(p * u))` without the `1 - p` of a dominating class."""
    return times_upstream(centered(upstream, probs, axis), probs)


def centered(upstream: tf.Tensor, probs: tf.Tensor, axis: _Axis) -> tf.Tensor:
    """Returns `u - sum(p * u)`, with the digits of the entry of a dominating class.

    The difference is the same for `u` and for `u` minus a constant. With the mean taken
    off, the entry of a dominating class is all but 0, and the second mean exact.
    """
    for _ in range(2):
        upstream -= tf.reduce_sum(times_upstream(upstream, probs), axis, keepdims=True)
    return upstream
