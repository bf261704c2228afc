"""Products, powers and logarithms that decide what 0, NaN and Inf give."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import chain, custom_gradient, product, unbroadcast
from tfsafe._limits import LIMITS
from tfsafe.ops.elementwise.division import ratio

_Gradient = Callable[[tf.Tensor], tf.Tensor]
_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


@custom_gradient
def square(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes `x * x`; a zero incoming gradient gives 0, NaN or not."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return product(upstream, 2 * x)

    return tf.square(x), vjp


@custom_gradient
def absolute(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes `|x|`; a zero incoming gradient gives 0, NaN or not."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return chain(upstream, tf.sign(x))

    return tf.abs(x), vjp


@custom_gradient
def weighted(weight: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `weight * x`, and 0 for a weight of 0 unless `x` is NaN."""

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return (
            unbroadcast(product(upstream, x), weight),
            unbroadcast(product(upstream, weight), x),
        )

    unused = tf.equal(weight, 0) & tf.math.is_inf(x)
    return weight * tf.where(unused, tf.zeros_like(x), x), vjp


@custom_gradient
def log(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes `log(x)`, continued with slope 1 below the smallest normal number."""
    smallest = least(x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return ratio(upstream, tf.where(x < smallest, tf.ones_like(x), x))

    return tf.math.log(tf.maximum(x, smallest)) + tf.minimum(x - smallest, 0), vjp


def least(x: tf.Tensor) -> tf.Tensor:
    """Returns the smallest positive normal number of the dtype of `x`."""
    return tf.constant(LIMITS[x.dtype.name].tiny, x.dtype)
