"""Length, cosine and angle of a point of the plane."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import custom_gradient, known, unbroadcast
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels.zeros import nan_of, reciprocal, times_upstream

_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


@custom_gradient
def hypot(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `sqrt(x^2 + y^2)` elementwise, with slopes 0 at 0."""
    largest, root = _scaled_length(x, y)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        cosine, sine = _direction(x, y, largest, root)
        in_x, in_y = times_upstream(upstream, cosine), times_upstream(upstream, sine)
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return largest * root, vjp


@custom_gradient
def atan2(y: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes the angle of the point `(x, y)`, with slopes 0 at the origin."""

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        largest, root = _scaled_length(x, y)
        cosine, sine = _direction(x, y, largest, root)
        length = known(largest * root, hypot, x, y)
        shared = times_upstream(upstream, reciprocal(length))
        in_y, in_x = times_upstream(shared, cosine), times_upstream(shared, sine)
        return unbroadcast(in_y, y), -unbroadcast(in_x, x)

    return tf.math.atan2(y, x), vjp


@custom_gradient
def cosine_of(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `x / hypot(x, y)`, and 0 where both are 0."""
    largest, root = _scaled_length(x, y)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        cosine, sine = _direction(x, y, largest, root)
        length = known(largest * root, hypot, x, y)
        shared = times_upstream(times_upstream(upstream, sine), reciprocal(length))
        in_x, in_y = times_upstream(shared, sine), times_upstream(shared, cosine)
        return unbroadcast(in_x, x), -unbroadcast(in_y, y)

    return tf.math.divide_no_nan(x, largest) / root, vjp


def _direction(
    x: tf.Tensor, y: tf.Tensor, largest: tf.Tensor, root: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the cosine and the sine, where `_scaled_length` is there already."""
    cosine = tf.math.divide_no_nan(x, largest) / root
    sine = tf.math.divide_no_nan(y, largest) / root
    return known(cosine, cosine_of, x, y), known(sine, _sine, x, y)


def _sine(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return cosine_of(y, x)


def _scaled_length(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns two factors of the length: the larger magnitude, and 1 to sqrt(2)."""
    x, y = tf.abs(x), tf.abs(y)
    largest, least = tf.maximum(x, y), tf.minimum(x, y)
    # Over an infinite length, a finite number is 0.
    bound = tf.constant(LIMITS[x.dtype.name].max, x.dtype)
    ratio = tf.math.divide_no_nan(tf.minimum(least, bound), largest)
    # Under XLA, the maximum of a NaN and a number may be the number.
    return largest, tf.sqrt(1 + tf.square(ratio)) + nan_of(x + y)
