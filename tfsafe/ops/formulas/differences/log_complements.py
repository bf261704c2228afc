"""Computes logarithms and differences that nearly cancel: softmax, tanh, erf, lgamma.

They are made of public operations and have the gradients of these. `tfsafe.rewriting`
puts them in the place of hand-written formulas.
"""

import math
from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe._gradients import custom_gradient
from tfsafe.ops.formulas.limits import removable
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import times_upstream

_Function = Callable[[tf.Tensor], tf.Tensor]


def log_one_minus_softmax(
    x: tf.Tensor, axis: Sequence[int] | None, mask: tf.Tensor | None
) -> tf.Tensor:
    """Computes `log(1 - softmax(x))`."""
    # For the likeliest class it is the logarithm of the sum of all others: once these
    # underflow, nothing is left of them in its own probability.
    log_probs = ops.log_softmax(x, axis, mask=mask)
    # Only one is likelier than 1/2, and near that nothing is lost either way.
    is_top = log_probs > -0.6
    others = ops.logsumexp(log_probs, axis, keepdims=True, mask=~is_top)
    safe = tf.where(is_top, -tf.ones_like(log_probs), log_probs)
    return tf.where(is_top, others, ops.log1mexp(safe))


def log_of_minus_log(log_p: tf.Tensor, left: tf.Tensor) -> tf.Tensor:
    """Computes `log(-log(p))` from `log(p)` and `left`, which is `log(1 - p)`."""
    is_likely = left < -8
    near = tf.where(is_likely, left, tf.constant(-9, left.dtype))
    far = tf.where(is_likely, -tf.ones_like(log_p), log_p)
    return tf.where(is_likely, near + 0.5 * ops.exp(near), ops.log(-far))


def log_one_minus_tanh(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 - tanh(x))`."""
    # Near 0 the two terms of the form for large x cancel.
    near = ops.log1p(-ops.tanh(tf.minimum(x, 0.5)))
    far = math.log(2) + ops.log_sigmoid(-2 * tf.maximum(x, 0.5))
    return tf.where(x > 0.5, far, near)


def log_one_minus_part(w: tf.Tensor, log_p: tf.Tensor, left: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 - w * p)` from `log(p)` and `left`, which is `log(1 - p)`."""
    product = w * ops.exp(log_p)
    # At p = 1 only a weight of 1 leaves nothing, and `left` has no slope.
    has_slope = tf.math.is_finite(left) | tf.equal(w, 1)
    is_far = (product >= 0.5) & (log_p <= 0) & has_slope
    half = tf.fill(tf.shape(product), tf.constant(0.5, product.dtype))
    near = ops.log1p(-tf.where(is_far, half, product))
    far = _log_of_rest(tf.where(is_far, w, half), tf.where(is_far, left, -math.log(2)))
    return tf.where(is_far, far, near)


@custom_gradient
def _log_of_rest(
    w: tf.Tensor, left: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Computes `log((1 - w) + w * exp(left))`, for w near 1."""
    rest = (1 - w) + w * ops.exp(left)
    is_whole = tf.equal(w, 1)
    value = tf.where(
        is_whole, left, ops.log(tf.where(is_whole, tf.ones_like(rest), rest))
    )

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        in_w = ops.expm1(left) * ops.exp(-value)
        in_left = w * ops.exp(left - value)
        return times_upstream(upstream, in_w), times_upstream(upstream, in_left)

    return value, vjp


def lgamma_difference(x: tf.Tensor, y: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
    """Computes `lgamma(x + y) - lgamma(x)`, also where an argument is not positive.

    Args:
      x: The one argument.
      y: How far the other is from it.
      total: The other, `x + y`, which has digits that the sum loses where it is small.

    Returns:
      The difference.
    """
    is_usual = (x > 0) & (total > 0.5 * x)
    one = tf.ones_like(total)
    usual = ops.log_pochhammer(tf.where(is_usual, x, one), tf.where(is_usual, y, one))
    unusual = tf.math.lgamma(tf.where(is_usual, one, total)) - tf.math.lgamma(
        tf.where(is_usual, one, x)
    )
    return tf.where(is_usual, usual, unusual)


def lgamma_of_sum(x: tf.Tensor, axis: int, keepdims: bool) -> tf.Tensor:
    """Computes `lgamma(sum(x)) - sum(lgamma(x))`, also where an element is large."""
    # The sum cancels with its largest element alone. Its place is compared and not its
    # value, which XLA may compute twice and round in two ways.
    place = tf.argmax(x, axis)
    is_whole = tf.one_hot(place, tf.shape(x)[axis], True, False, axis, dtype=tf.bool)
    zero, one = tf.zeros_like(x), tf.ones_like(x)
    largest, rest = (
        tf.reduce_sum(tf.where(is_whole, a, b), axis, keepdims=keepdims)
        for a, b in ((x, zero), (zero, x))
    )
    others = tf.math.lgamma(tf.where(is_whole, one, x))
    return lgamma_difference(largest, rest, largest + rest) - tf.reduce_sum(
        others, axis, keepdims=keepdims
    )


def log_softplus(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(softplus(x))`."""
    return _log_of_change(
        x, removable.log1p_over_x, lambda x: ops.log(tf.nn.softplus(x))
    )


def log_one_minus_exp_of_exp(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 - exp(-exp(x)))`."""
    return _log_of_change(
        x, lambda t: removable.expm1_over_x(-t), lambda x: ops.log1mexp(-ops.exp(x))
    )


def _log_of_change(x: tf.Tensor, over: _Function, usual: _Function) -> tf.Tensor:
    """Computes `log(f(exp(x)))`, of `f(t) / t` where t is small: f is 0 at 0."""
    low = tf.minimum(x, -5.0)
    shifted = low + ops.log(over(ops.exp(low)))
    return tf.where(x < -5, shifted, usual(tf.maximum(x, -5.0)))


def log_erf_difference(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `log(erf(x) - erf(y))`, of two that may be in the same tail."""
    dtype = x.dtype
    x, y = tf.cast(x, tf.float64), tf.cast(y, tf.float64)
    # Mirrored, so that both are in the upper tail if they are in one.
    is_low = x + y < 0
    high, low = tf.where(is_low, -y, x), tf.where(is_low, -x, y)
    is_tail = (low > 0.5) & (high > 0.5)
    one, two = tf.ones_like(high), 2 * tf.ones_like(high)
    tail = ops.log_sub_exp(
        ops.log_erfc(tf.where(is_tail, low, one)),
        ops.log_erfc(tf.where(is_tail, high, two)),
    )
    middle = ops.log(
        tf.math.erf(tf.where(is_tail, one, high))
        - tf.math.erf(tf.where(is_tail, -one, low))
    )
    return tf.cast(tf.where(is_tail, tail, middle), dtype)


@precision.runs_in_float32
def log_half_erfc(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(erfc(x) / 2)`, which is small where x is very negative."""
    is_near_one = x < 0
    zero = tf.zeros_like(x)
    half = 0.5 * tf.math.erfc(-tf.where(is_near_one, x, zero))
    other = ops.log_erfc(tf.where(is_near_one, zero, x)) - math.log(2)
    return tf.where(is_near_one, tf.math.log1p(-half), other)


def log_fraction(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `log(x / (x + y))`, also where `y` is much smaller than `x`."""
    is_near = 2 * tf.abs(y) < tf.abs(x)
    one, zero = tf.ones_like(x), tf.zeros_like(y)
    near = -ops.log1p(tf.where(is_near, y, zero) / tf.where(is_near, x, one))
    usual_x, usual_y = tf.where(is_near, one, x), tf.where(is_near, zero, y)
    return tf.where(is_near, near, ops.log(usual_x / (usual_x + usual_y)))


def log_elu_plus_one(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(elu(x) + 1)`, which is `x` where x is negative."""
    is_positive = x > 0
    return tf.where(
        is_positive, ops.log1p(tf.where(is_positive, x, tf.zeros_like(x))), x
    )
