"""Norms and polar coordinates whose powers cannot overflow, with gradient 0 at 0."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe._gradients import (
    custom_gradient,
    custom_gradient_in,
    known,
    nan_where,
    unbroadcast,
)
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import (
    divide_unless_zero,
    nan_of,
    quotient_for_gradient,
    reciprocal,
    times_upstream,
)

_Axis = Sequence[int] | None
_Gradient = Callable[[tf.Tensor], tf.Tensor]


@custom_gradient_in(1)
def euclidean(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Gradient]:
    """Computes the Euclidean norm; the axes stay, with size 1."""
    scaled, power, _ = precision.scaled(x, axis)
    length = _length(scaled, axis)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        unit = divide_unless_zero(scaled, length)
        return times_upstream(upstream, known(unit, lambda x: direction(x, axis), x))

    return power * length, vjp


@custom_gradient_in(1)
def direction(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Gradient]:
    """Computes `x` over its Euclidean norm, and 0 where the norm is 0."""
    scaled, power, _ = precision.scaled(x, axis)
    length = _length(scaled, axis)
    value = divide_unless_zero(scaled, length)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        unit = known(value, lambda x: direction(x, axis), x)
        total = known(power * length, lambda x: euclidean(x, axis), x)
        along = tf.reduce_sum(times_upstream(upstream, unit), axis, keepdims=True)
        return times_upstream(upstream - times_upstream(along, unit), reciprocal(total))

    return value, vjp


def _length(x: tf.Tensor, axis: _Axis) -> tf.Tensor:
    return tf.sqrt(tf.reduce_sum(tf.square(x), axis, keepdims=True))


@custom_gradient_in(1)
def sum_of_magnitudes(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Gradient]:
    """Computes the sum of the magnitudes, with slope 0 at 0."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return times_upstream(upstream, tf.sign(x))

    return tf.reduce_sum(tf.abs(x), axis, keepdims=True), vjp


@custom_gradient_in(1)
def largest_magnitude(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Gradient]:
    """Computes the largest magnitude; its slope is shared among the largest."""
    magnitude = tf.abs(x)
    # The magnitude of nothing is 0, and a NaN is not to be passed over.
    largest = tf.maximum(tf.reduce_max(magnitude, axis, keepdims=True), 0)
    has_nan = tf.reduce_any(tf.math.is_nan(x), axis, keepdims=True)
    largest += nan_where(has_nan, x.dtype)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        is_largest = tf.cast(tf.equal(magnitude, largest), x.dtype)
        ties = tf.reduce_sum(is_largest, axis, keepdims=True)
        # A row with NaN has no largest, and 0 / 0 is the NaN that it should have.
        return times_upstream(upstream, tf.sign(x) * (is_largest / ties))

    return largest, vjp


@custom_gradient_in(1)
def p_norm(x: tf.Tensor, axis: _Axis, p: float) -> tuple[tf.Tensor, _Gradient]:
    """Computes the p-norm; the axes stay, with size 1."""
    largest = tf.reduce_max(tf.abs(x), axis, keepdims=True)
    usable = tf.logical_and(largest > 0, tf.math.is_finite(largest))
    largest = tf.where(usable, largest, tf.ones_like(largest))
    shares = x / largest
    total = tf.reduce_sum(tf.abs(shares) ** p, axis, keepdims=True) ** (1 / p)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        relative = known(
            quotient_for_gradient(shares, total),
            lambda x: quotient_for_gradient(x, p_norm(x, axis, p)),
            x,
        )
        return times_upstream(upstream, _signed_power(relative, p - 1))

    return largest * total, vjp


@custom_gradient_in(1)
def _signed_power(x: tf.Tensor, power: float) -> tuple[tf.Tensor, _Gradient]:
    """Computes `sign(x) * abs(x)**power`, and 0 at 0."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        at_zero = float(power == 1)
        return times_upstream(upstream, power * _magnitude_power(x, power - 1, at_zero))

    return tf.sign(x) * _magnitude_power(x, power, 0.0), vjp


def _magnitude_power(x: tf.Tensor, power: float, at_zero: float) -> tf.Tensor:
    is_zero = tf.equal(x, 0)
    regular = tf.abs(tf.where(is_zero, tf.ones_like(x), x)) ** power
    return tf.where(is_zero, tf.constant(at_zero, x.dtype), regular)


def over_spectral_norm(
    kernel: tf.Tensor, vector: tf.Tensor, iterations: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes `kernel / norm` for the spectral norm by power iterations.

    Args:
      kernel: Tensor; all axes but the last are the rows of a matrix.
      vector: Row with an approximate right singular vector, of float32 or float64.
      iterations: How often the vector is multiplied by the matrix.

    Returns:
      The quotient, unchanged where the norm is 0, and the better vector, or `vector`
      where the norm is 0 or not finite.
    """
    exact = precision.wide(kernel)
    # The quotient does not change with the scale, so that this may be a constant.
    exact /= _one_for_zero(tf.stop_gradient(tf.reduce_max(tf.abs(exact))))
    matrix = tf.reshape(exact, [-1, exact.shape[-1]])
    old = right = tf.cast(vector, exact.dtype)
    fixed, tiny = tf.stop_gradient(matrix), LIMITS[matrix.dtype.name].tiny
    for _ in range(iterations):
        left = tf.matmul(right, fixed, transpose_b=True)
        left = tf.math.l2_normalize(left, epsilon=tiny)
        right = tf.math.l2_normalize(tf.matmul(left, fixed), epsilon=tiny)
    norm = tf.matmul(tf.matmul(left, matrix), right, transpose_b=True)[0, 0]
    is_usable = tf.math.is_finite(norm) & tf.not_equal(norm, 0)
    return (
        tf.cast(exact / _one_for_zero(norm), kernel.dtype),
        tf.cast(tf.where(is_usable, right, old), vector.dtype),
    )


def _one_for_zero(x: tf.Tensor) -> tf.Tensor:
    return tf.where(tf.equal(x, 0), tf.ones_like(x), x)


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
