"""Computes logarithms and differences that nearly cancel, of softmax, tanh and lgamma.

They are made of public operations and have the gradients of these. `tfsafe.rewriting`
puts them in the place of hand-written formulas.
"""

import math
from collections.abc import Sequence

import tensorflow as tf

from tfsafe import ops


def log_one_minus_softmax(
    x: tf.Tensor, axis: Sequence[int] | None, mask: tf.Tensor | None
) -> tf.Tensor:
    """Computes `log(1 - softmax(x))`."""
    # For the likeliest class it is the logarithm of the sum of all others: once these
    # underflow, nothing is left of them in its own probability.
    log_probs = ops.log_softmax(x, axis, mask=mask)
    largest = tf.reduce_max(log_probs, axis, keepdims=True)
    is_top = tf.equal(log_probs, largest) & (largest > -math.log(2))
    others = ops.logsumexp(log_probs, axis, keepdims=True, mask=~is_top)
    safe = tf.where(is_top, -tf.ones_like(log_probs), log_probs)
    return tf.where(is_top, others, ops.log1mexp(safe))


def log_one_minus_tanh(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 - tanh(x))`."""
    # Near 0 the two terms of the form for large x cancel.
    near = ops.log1p(-ops.tanh(tf.minimum(x, 0.5)))
    far = math.log(2) + ops.log_sigmoid(-2 * tf.maximum(x, 0.5))
    return tf.where(x > 0.5, far, near)


def lgamma_difference(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `lgamma(x + y) - lgamma(x)`, also where an argument is not positive."""
    total = x + y
    is_usual = (x > 0) & (total > 0)
    one = tf.ones_like(total)
    usual = ops.log_pochhammer(tf.where(is_usual, x, one), tf.where(is_usual, y, one))
    unusual = tf.math.lgamma(tf.where(is_usual, one, total)) - tf.math.lgamma(
        tf.where(is_usual, one, x)
    )
    return tf.where(is_usual, usual, unusual)
