"""Mean, variance and standard deviation of what a mask keeps.

A row is scaled by a power of 2, so that no sum and no square leaves the range, and
shifted by one of its own elements, so that the spread keeps its digits however large
the mean is and that equal elements have a variance of exactly 0.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe._gradients import custom_gradient, known, local
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.probabilities import hide
from tfsafe.ops.kernels.zeros import divide_unless_zero, reciprocal, times_upstream

_Axis = Sequence[int] | None
_Gradient = Callable[[tf.Tensor], tf.Tensor]


def mean(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None) -> tf.Tensor:
    """Computes the mean, and 0 where there is nothing to take it of."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        count = _count(x, axis, keep)
        scaled, power, _ = precision.scaled(_zero_unless(keep, x), axis)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            portion = tf.broadcast_to(upstream / count, tf.shape(x))
            return _zero_unless(keep, portion)

        return power * (tf.reduce_sum(scaled, axis, keepdims=True) / count), vjp

    return function(x)


def variance(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None) -> tf.Tensor:
    """Computes the mean of the squared distances from the mean."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        row = _row(x, axis, keep)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            mask = local(keep)
            deviation = known(
                row.power * row.centred, lambda x: _deviation(x, axis, mask), x
            )
            return times_upstream(2 * upstream / row.count, deviation)

        # Not a product of three, in which a graph would square the power first: that
        # may overflow.
        return tf.square(row.power * tf.sqrt(row.variance)), vjp

    return function(x)


def std(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None) -> tf.Tensor:
    """Computes the standard deviation, with gradient 0 where all elements are equal."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        row = _row(x, axis, keep)
        root = tf.sqrt(row.variance)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            mask = local(keep)
            score = known(
                divide_unless_zero(row.centred, root),
                lambda x: _score(x, axis, mask),
                x,
            )
            return times_upstream(upstream / row.count, score)

        return row.power * root, vjp

    return function(x)


def _deviation(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None) -> tf.Tensor:
    """Returns `x` less its mean, and 0 where it is masked."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        row = _row(x, axis, keep)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            return _centre(upstream, row.count, axis, keep)

        return row.power * row.centred, vjp

    return function(x)


def _score(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None) -> tf.Tensor:
    """Returns the deviation over the standard deviation; 0 where both are 0."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        row = _row(x, axis, keep)
        root = tf.sqrt(row.variance)
        value = divide_unless_zero(row.centred, root)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            mask = local(keep)
            score = known(value, lambda x: _score(x, axis, mask), x)
            along = tf.reduce_sum(times_upstream(upstream, score), axis, keepdims=True)
            slope = _centre(upstream, row.count, axis, mask)
            slope -= times_upstream(along / row.count, score)
            deviation = known(row.power * root, lambda x: std(x, axis, mask), x)
            return times_upstream(slope, reciprocal(deviation))

        return value, vjp

    return function(x)


class _Row(NamedTuple):
    """A row over a power of 2; the deviations are 0 where it is masked."""

    centred: tf.Tensor
    variance: tf.Tensor
    power: tf.Tensor
    count: tf.Tensor


def _row(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None) -> _Row:
    scaled, power, _ = precision.scaled(_zero_unless(keep, x), axis)
    first = an_element(scaled, axis, keep)
    count = _count(x, axis, keep)
    centred = _centre(scaled - first, count, axis, keep)
    variance = tf.reduce_sum(tf.square(centred), axis, keepdims=True) / count
    return _Row(centred, variance, power, count)


def _centre(
    x: tf.Tensor, count: tf.Tensor, axis: _Axis, keep: tf.Tensor | None
) -> tf.Tensor:
    total = tf.reduce_sum(_zero_unless(keep, x), axis, keepdims=True)
    return _zero_unless(keep, x - total / count)


def an_element(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None = None) -> tf.Tensor:
    """Returns one of the elements that count in each row; 0 if it is not finite."""
    if keep is None and axis is not None and x.shape.rank is not None:
        # The first of each row, or nothing in a row of size 0.
        x = x[tuple(slice(1 if i in axis else None) for i in range(x.shape.rank))]
    if keep is not None:
        x = hide(x, keep)
    first = tf.reduce_max(x, axis, keepdims=True)
    return tf.where(tf.math.is_finite(first), first, tf.zeros_like(first))


def _count(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None) -> tf.Tensor:
    """Returns how many elements count in each row, and 1 for rows without any."""
    if keep is not None:
        count = tf.reduce_sum(tf.cast(keep, x.dtype), axis, keepdims=True)
    elif axis is None:
        count = tf.size(x, tf.int64)
    else:
        shape = tf.shape(x, tf.int64)
        count = tf.reduce_prod(tf.stack([1, *(shape[each] for each in axis)]))
    return tf.maximum(tf.cast(count, x.dtype), 1)


def _zero_unless(keep: tf.Tensor | None, x: tf.Tensor) -> tf.Tensor:
    return x if keep is None else tf.where(keep, x, tf.zeros_like(x))
