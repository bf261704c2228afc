"""Normalisation by the values' own mean and deviation, for the layers.

The layer checks its arguments and converts half precision: all of this runs in float32
or float64. `statistics` has the moments themselves, for any order of
gradient, and `layer_norm` the plain formula, for loops.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe._gradients import custom_gradient, nan_where, unbroadcast
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.statistics import moments as statistics
from tfsafe.ops.kernels.zeros import times_upstream


def standardize(
    x: tf.Tensor, axis: Sequence[int], epsilon: float, *, centre: bool = True
) -> tf.Tensor:
    """Computes `(x - mean) / sqrt(variance + epsilon)` over some axes.

    Args:
      x: Tensor of float32 or float64; a row is what lies along `axis`.
      axis: Axes, not negative.
      epsilon: Added to the variance, which is the mean of the squares.
      centre: Whether the mean is subtracted. If not, this is `x / rms(x)`.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Numerics:
      error         <= 8 ulp of the largest result in the row, however large the mean
      variance = 0  value 0; slope that of the formula, or 0 where epsilon is 0 as well
      inf           value NaN in the whole row; uncentred: NaN there and 0 elsewhere
      NaN           value NaN in the whole row
      A row without incoming gradient gives a zero gradient, whatever it holds.
      The row is scaled, so that nothing overflows.

    References:
      Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
      Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467,
      2019, for the uncentred form.
    """
    axis = list(axis)

    def average(x: tf.Tensor) -> tf.Tensor:
        return precision.reduce_in_runs(tf.reduce_mean, x, axis)

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        # Small rows are scaled as far as epsilon can follow.
        rest, _, inverse = precision.scaled(x, axis, least=epsilon**0.5)
        if centre:
            # Shifted first: a mean far above the spread is rounded by more than that.
            rest -= statistics.an_element(rest, axis)
            rest -= average(rest)
        unit = _rsqrt_zero_at_zero(
            average(tf.square(rest)) + epsilon * tf.square(inverse)
        )
        value = rest * unit

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            # In a row that holds a NaN the factors are NaN and count where something
            # comes in.
            slope = upstream - average(upstream) if centre else upstream
            slope -= tf.math.multiply_no_nan(
                value, average(tf.math.multiply_no_nan(value, upstream))
            )
            return tf.math.multiply_no_nan(unit * inverse, slope)

        return value, vjp

    return function(x)


@custom_gradient
def scale(
    value: tf.Tensor, gain: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Computes `value * gain`; the gradient in `gain` ignores what nothing asks for."""

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        in_value = unbroadcast(upstream * gain, value)
        return in_value, unbroadcast(times_upstream(upstream, value), gain)

    return value * gain, vjp


def standardize_batch(
    x: tf.Tensor,
    gain: tf.Tensor,
    shift: tf.Tensor,
    *,
    axis: Sequence[int],
    epsilon: float,
    mask: tf.Tensor | None = None,
    otherwise: tuple[tf.Tensor, tf.Tensor],
    across: Callable[[tf.Tensor], tf.Tensor] = lambda x: x,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Computes `gain * (x - mean) / sqrt(variance + epsilon) + shift` and its moments.

    Args:
      x: Tensor of float32 or float64; a channel is what lies along `axis`.
      gain: Tensor of the same dtype, one number for each channel, of the rank of `x`.
      shift: The same for the shift.
      axis: Axes, not negative.
      epsilon: Added to the variance.
      mask: Booleans of the shape of `x`: what counts. None for everything.
      otherwise: Mean and variance of a channel in which nothing counts, like `gain`.
      across: Sums a tensor over the replicas that have common statistics.

    Returns:
      The result with the shape of `x`; mean, variance and count of each channel, which
      carry no gradient.

    Numerics:
      error     <= 8 ulp of the largest result in the channel, however large the mean
      masked    does not count, NaN included; is normalised like the others
      overflow  value NaN in the channel where the variance overflows
      inf, NaN  value NaN in the whole channel
      A channel without incoming gradient gives zero gradients, whatever it holds.

    References:
      Ioffe and Szegedy, "Batch Normalization", arXiv:1502.03167, 2015.
    """
    axis = list(axis)

    def kept(x: tf.Tensor) -> tf.Tensor:
        return x if mask is None else tf.where(mask, x, tf.zeros_like(x))

    def total(x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(x, axis, keepdims=True)

    count = across(total(kept(tf.ones_like(x))) if mask is not None else _size(x, axis))
    is_empty = tf.equal(count, 0)
    divisor = tf.where(is_empty, tf.ones_like(count), count)

    def average(x: tf.Tensor) -> tf.Tensor:
        return across(total(kept(x))) / divisor

    @custom_gradient
    def function(x: tf.Tensor, gain: tf.Tensor, shift: tf.Tensor) -> Any:
        mean = tf.where(is_empty, otherwise[0], average(x))
        centred = x - mean
        # The mean was rounded, by more than the spread where it is far larger.
        centred -= average(centred)
        variance = tf.where(is_empty, otherwise[1], average(tf.square(centred)))
        # What overflowed must not pass for a channel of zeros.
        overflow = nan_where(tf.logical_not(tf.math.is_finite(variance)), x.dtype)
        unit = _rsqrt_zero_at_zero(variance + epsilon) + overflow
        value = centred * (unit * gain) + shift

        def vjp(upstream: tf.Tensor, *_: Any) -> tuple[tf.Tensor, ...]:
            along = tf.math.multiply_no_nan(centred, upstream)
            shared = tf.math.multiply_no_nan(
                unit, tf.math.multiply_no_nan(unit, average(along))
            )
            slope = upstream - kept(
                average(upstream) + tf.math.multiply_no_nan(centred, shared)
            )
            return (
                tf.math.multiply_no_nan(unit * gain, slope),
                unbroadcast(tf.math.multiply_no_nan(unit, total(along)), gain),
                unbroadcast(total(upstream), shift),
            )

        return (value, mean, variance), vjp

    value, mean, variance = function(x, gain, shift)
    return value, tf.stop_gradient(mean), tf.stop_gradient(variance), count


def standardize_by(
    x: tf.Tensor,
    gain: tf.Tensor,
    shift: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    *,
    epsilon: float,
) -> tf.Tensor:
    """Computes the result of `standardize_batch` from known moments."""
    return (x - mean) * (gain * tf.math.rsqrt(variance + epsilon)) + shift


def _size(x: tf.Tensor, axis: Sequence[int]) -> tf.Tensor:
    return tf.cast(tf.reduce_prod(tf.gather(tf.shape(x), list(axis))), x.dtype)


def _rsqrt_zero_at_zero(x: tf.Tensor) -> tf.Tensor:
    """Computes `1 / sqrt(x)`, and 0 where `x` is 0."""
    is_zero = tf.equal(x, 0)
    root = tf.math.rsqrt(tf.where(is_zero, tf.ones_like(x), x))
    return tf.where(is_zero, tf.zeros_like(x), root)
