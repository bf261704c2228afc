"""What 0 * x, x / 0 and log(0) give: one place for the choices.

Every formula of this package takes its products, quotients and logarithms near 0 from
this table. "Slope at the hole" is the derivative where the value is a choice.

Products `x * y`:

    name                   value at 0             NaN             slope at the hole
    times_upstream         0 where x is 0         y ignored at 0  0 where x is 0
    times_where_nonzero    0 where x or y is 0    ignored at 0    0 where x or y is 0
    weighted_unless_nan    0 where x is 0         of y counts     y, and x
    weighted_loss          0 where y is 0         x ignored at 0  0 in y where x is inf
    square, absolute       0                      counts          0

Quotients `x / y`:

    name                   value at y = 0         NaN             slope at the hole
    quotient               `at_zero`              of x counts     0
    quotient_no_nan        0                      x ignored at 0  0
    quotient_for_gradient  0; also where x is 0   y ignored where 0
                                                  x is 0
    divide_unless_zero     x                      counts          1 in x
    quotient_positive      x / outside            NaN `outside`   0 where outside is 0
    reciprocal             `at_zero`              counts          0
    reciprocal_positive    0, and NaN for y < 0   counts          0

Logarithms:

    name                   value at 0             below 0         slope at the hole
    log_zero_at_zero       0                      NaN             0
    log1p_zero_at_minus_one  the same, of 1 + x
    log_continued          log(tiny) - tiny       falls with slope 1

Used for: `times_upstream` for an incoming gradient times a slope ("zero upstream, zero
gradient"); `times_where_nonzero` where either factor carries an incoming gradient, as
in the gradient of a gradient; `weighted_unless_nan` for labels and weights, which
exclude infinities and no NaN; `weighted_loss` for losses by their labels; `quotient`
and `reciprocal` for the public operations; `quotient_no_nan` for TensorFlow's namesake
and for slopes; `quotient_for_gradient` for an incoming gradient over a number;
`divide_unless_zero` where x is 0 as well where y is 0; `quotient_positive` and
`reciprocal_positive` for the slopes of logarithms; `log_zero_at_zero` for the slope of
`x * log(y)` in x; `log_continued` for Keras' losses, whose gradient has to lead back.
TensorFlow's own values at 0, with these slopes, are in `unchanged_values`.
"""

import functools
from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import (
    custom_gradient,
    custom_gradient_in,
    known,
    nan_where,
    unbroadcast,
)
from tfsafe._limits import LIMITS

_Pair = tuple[tf.Tensor, tf.Tensor]
_Gradient = Callable[[tf.Tensor], tf.Tensor]
_Gradients = Callable[[tf.Tensor], _Pair]


# Selections, as arithmetic: on a CPU `tf.where` takes as long as three products.


def zero_unless(condition: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Returns `x` where `condition` holds, and 0 elsewhere, whatever `x` is there."""
    return tf.math.multiply_no_nan(x, tf.cast(condition, x.dtype))


def one_where_zero(x: tf.Tensor) -> tf.Tensor:
    """Returns 1 where `x` is 0, and 0 elsewhere: `x` plus this is never 0."""
    return tf.cast(tf.equal(x, 0), x.dtype)


def nan_of(x: tf.Tensor) -> tf.Tensor:
    """Returns NaN where `x` is NaN, and 0 elsewhere."""
    return zero_unless(tf.math.is_nan(x), x)


# Products.


@custom_gradient
def times_upstream(
    upstream: tf.Tensor, slope: tf.Tensor
) -> tuple[tf.Tensor, _Gradients]:
    """Returns `upstream * slope`, and 0 where `upstream` is 0, whatever the slope.

    This is the rule "zero upstream, zero gradient". The gradient of this product keeps
    the rule as well.
    """

    def vjp(outer: tf.Tensor) -> _Pair:
        return (
            unbroadcast(times_upstream(outer, slope), upstream),
            unbroadcast(times_where_nonzero(outer, upstream), slope),
        )

    return tf.math.multiply_no_nan(slope, upstream), vjp


def with_slope(slope: _Gradient) -> Callable[[_Gradient], _Gradient]:
    """Gives a function of one tensor its slope elementwise, by `times_upstream`."""

    def decorate(function: _Gradient) -> _Gradient:
        @functools.wraps(function)
        def both(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
            return function(x), lambda upstream: times_upstream(upstream, slope(x))

        return custom_gradient(both)

    return decorate


@custom_gradient
def times_where_nonzero(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Returns `x * y`, and 0 where one of them is 0, whatever the other.

    This is `times_upstream` where either factor carries an incoming gradient, as
    happens in the gradient of a gradient.
    """
    value = tf.math.multiply_no_nan(x, y)
    return zero_unless(tf.not_equal(x, 0), value), product_vjp(x, y)


@custom_gradient
def weighted_unless_nan(
    weight: tf.Tensor, x: tf.Tensor
) -> tuple[tf.Tensor, _Gradients]:
    """Returns `weight * x`, and 0 for a weight of 0 unless `x` is NaN."""
    used = tf.not_equal(weight, 0) | ~tf.math.is_inf(x)
    value = weight * zero_unless(used, x)
    return value, product_vjp(weight, x)


def product_vjp(x: tf.Tensor, y: tf.Tensor) -> _Gradients:
    """Returns the gradient function of a product: zero upstream, zero gradients."""

    def vjp(upstream: tf.Tensor) -> _Pair:
        return (
            unbroadcast(times_where_nonzero(upstream, y), x),
            unbroadcast(times_where_nonzero(upstream, x), y),
        )

    return vjp


@custom_gradient
def weighted_loss(loss: tf.Tensor, weight: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Returns `loss * weight`, and 0 where the weight is 0."""

    def vjp(upstream: tf.Tensor) -> _Pair:
        in_weight = times_upstream(upstream, zero_where_inf(loss))
        return times_upstream(upstream, weight), in_weight

    return tf.math.multiply_no_nan(loss, weight), vjp


def zero_where_inf(x: tf.Tensor) -> tf.Tensor:
    """Returns the slope of a loss in a label, 0 where the class is impossible.

    There the slope is infinite, and a teacher's softmax would multiply it by its own 0.
    """
    return zero_unless(~tf.math.is_inf(x), x)


@custom_gradient
def square(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Returns `x * x`; a zero incoming gradient gives 0, NaN or not."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return times_where_nonzero(upstream, 2 * x)

    return tf.square(x), vjp


@with_slope(lambda x: tf.sign(x))
def absolute(x: tf.Tensor) -> tf.Tensor:
    """Returns `|x|`; a zero incoming gradient gives 0, NaN or not."""
    return tf.abs(x)


# Quotients.


@custom_gradient_in(2)
def quotient(
    x: tf.Tensor, y: tf.Tensor, at_zero: float = 0.0
) -> tuple[tf.Tensor, _Gradients]:
    """Returns `x / y`, and `at_zero` where `y` is 0 unless `x` is NaN."""
    # Never divides by 0, so that numeric checks find nothing.
    regular = value = tf.math.divide_no_nan(x, y)
    if at_zero:
        value = tf.where(tf.equal(y, 0), tf.constant(at_zero, y.dtype), value)
    return value + nan_of(x), quotient_vjp(x, y, regular)


@custom_gradient
def quotient_no_nan(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Returns `x / y`, and 0 where `y` is 0, whatever `x` is."""
    value = tf.math.divide_no_nan(x, y)
    return value, quotient_vjp(x, y, value)


def quotient_vjp(x: tf.Tensor, y: tf.Tensor, value: tf.Tensor) -> _Gradients:
    """Returns the gradient function of a quotient: slopes 0 where `y` is 0.

    Args:
      x: Numerator.
      y: Denominator.
      value: `quotient_no_nan(x, y)`, from the forward pass.
    """

    def vjp(upstream: tf.Tensor) -> _Pair:
        # Divided twice, because the square of y may leave the range.
        slope = quotient_no_nan(known(value, quotient_no_nan, x, y), y)
        in_x = times_upstream(upstream, reciprocal(y))
        in_y = -times_upstream(upstream, slope)
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return vjp


@custom_gradient
def quotient_for_gradient(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Returns `x / y`, and 0 where `x` or `y` is 0.

    This is the division of an incoming gradient `x`. A zero one gives 0 even if `y` is
    NaN; a NaN in `x` stays.
    """
    # Where x is 0 or NaN, the result is x.
    usual = zero_unless(tf.abs(x) > 0, tf.math.divide_no_nan(x, y))
    value = usual + nan_of(x)

    def vjp(upstream: tf.Tensor) -> _Pair:
        slope = known(value, quotient_for_gradient, x, y)
        slope = quotient_for_gradient(slope, y)
        slope = zero_unless(tf.not_equal(y, 0), slope)
        in_x = times_upstream(upstream, reciprocal(y))
        in_y = -times_upstream(upstream, slope)
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return value, vjp


def divide_unless_zero(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns `x / y`, and `x` where `y` is 0; for values, with TensorFlow's slopes."""
    return x / (y + one_where_zero(y))


def quotient_positive(x: tf.Tensor, y: tf.Tensor, outside: tf.Tensor) -> tf.Tensor:
    """Returns `x / y` where `y` is positive, and `x / outside` elsewhere; 0 if `x` is.

    For the slope of `x * log(y)`: with the function's own value as `outside`, the slope
    is NaN where the value is NaN, 0 where it is infinite, and 0 over 0 is 0.
    """
    return _quotient_positive(x, y, tf.stop_gradient(outside))


@custom_gradient
def _quotient_positive(
    x: tf.Tensor, y: tf.Tensor, outside: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, None]]]:
    denominator = tf.where(y > 0, y, outside)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, None]:
        upstream = zero_unless(tf.not_equal(denominator, 0), upstream)
        in_x = _quotient_positive(upstream, y, outside)
        in_y = -times_where_nonzero(in_x, _quotient_positive(x, y, outside))
        return unbroadcast(in_x, x), unbroadcast(in_y, y), None

    return tf.math.xdivy(x, denominator), vjp


@custom_gradient_in(1)
def reciprocal(x: tf.Tensor, at_zero: float = 0.0) -> tuple[tf.Tensor, _Gradient]:
    """Returns `1 / x`, and `at_zero` where `x` is 0, with slope 0 there."""
    inverse = tf.math.reciprocal_no_nan(x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = known(inverse, reciprocal, x)
        return times_upstream(times_upstream(upstream, slope), -slope)

    if not at_zero:
        return inverse, vjp
    singular = tf.constant(at_zero, x.dtype)
    return tf.where(tf.equal(x, 0), singular, inverse), vjp


@custom_gradient
def reciprocal_positive(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Returns `1 / x`, 0 where `x` is 0 and NaN where it is negative."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = reciprocal_positive(x)
        return -times_where_nonzero(times_upstream(upstream, slope), slope)

    # The sign of the root is 0, 1 or NaN, for less than a comparison and a selection.
    return tf.math.divide_no_nan(tf.sign(tf.sqrt(x)), x), vjp


# Logarithms.


@custom_gradient
def log_zero_at_zero(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Returns `log(x)`, and 0 where `x` is 0: the slope of `y * log(x)` in `y`."""
    # Takes no logarithm of 0, so that numeric checks find nothing.
    value = tf.math.log(x + one_where_zero(x))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        inside = times_upstream(upstream, 1 + nan_where(x < 0, x.dtype))
        return quotient_for_gradient(inside, x)

    return value, vjp


@custom_gradient
def log1p_zero_at_minus_one(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Returns `log(1 + x)`, and 0 where `x` is -1."""
    value = tf.math.log1p(x + one_where_zero(1 + x))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        inside = times_upstream(upstream, 1 + nan_where(x < -1, x.dtype))
        return quotient_for_gradient(inside, 1 + x)

    return value, vjp


@custom_gradient
def log_continued(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Returns `log(x)`, continued with slope 1 below the smallest normal number."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return quotient_for_gradient(upstream, one_below_normal(x))

    smallest = smallest_normal(x)
    return tf.math.log(tf.maximum(x, smallest)) + tf.minimum(x - smallest, 0), vjp


def magnitude(x: tf.Tensor) -> tf.Tensor:
    """Returns `|x|`, with slope 1 at 0, where that of `tf.abs` is 0."""
    return tf.where(x < 0, -x, x)


def one_below_normal(x: tf.Tensor) -> tf.Tensor:
    """Returns `x`, and 1 below the smallest normal number."""
    return tf.where(x < smallest_normal(x), tf.ones_like(x), x)


def smallest_normal(x: tf.Tensor) -> tf.Tensor:
    """Returns the smallest positive normal number of the dtype of `x`."""
    return tf.constant(LIMITS[x.dtype.name].tiny, x.dtype)
