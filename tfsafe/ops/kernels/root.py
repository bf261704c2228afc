"""Square root and its reciprocal, with slope 0 at 0."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import custom_gradient
from tfsafe.ops.kernels.known import known
from tfsafe.ops.kernels.zeros import (
    quotient_for_gradient,
    quotient_no_nan,
    times_upstream,
)

_Gradient = Callable[[tf.Tensor], tf.Tensor]


@custom_gradient
def sqrt(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes the square root elementwise, with slope 0 at 0."""
    root = tf.sqrt(x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        half = tf.constant(0.5, x.dtype)
        return times_upstream(upstream, quotient_no_nan(half, known(root, sqrt, x)))

    return root, vjp


def rsqrt(x: tf.Tensor, at_zero: float = 0.0) -> tf.Tensor:
    """Computes `1 / sqrt(x)` elementwise, and `at_zero` where `x` is 0."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        inverse = tf.math.reciprocal_no_nan(tf.sqrt(x))

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            # -0.5 * value / x: the cube of the value is never formed. The value is 0
            # where x is.
            return -0.5 * quotient_for_gradient(
                times_upstream(upstream, known(inverse, rsqrt, x)), x
            )

        if not at_zero:
            return inverse, vjp
        singular = tf.constant(at_zero, x.dtype)
        return tf.where(tf.equal(x, 0), singular, inverse), vjp

    return function(x)
