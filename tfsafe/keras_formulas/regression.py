"""Computes errors of regression, for losses and metrics."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe._gradients import custom_gradient, unbroadcast
from tfsafe._limits import LIMITS
from tfsafe.keras_formulas.arguments import formula
from tfsafe.ops.kernels import exponential, zeros
from tfsafe.ops.kernels.zeros import quotient, quotient_for_gradient, times_upstream

_Gradient = Callable[[tf.Tensor], tf.Tensor]
_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


@formula
def mean_squared_error(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Computes the mean of `(y_pred - y_true)^2` along the last axis.

    As `keras.losses.mean_squared_error`, but safe under a weight of 0, and in half
    precision computed and summed in float32.

    Args:
      y_true: Targets of shape `[..., n]`, of any numeric dtype.
      y_pred: Predictions of the same shape, of any numeric dtype.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      NaN  value NaN, gradient NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.mean_squared_error([[0.0, 1.0]], [[2.0, 1.0]]).numpy())
      [2.]
    """
    return tf.reduce_mean(zeros.square(y_pred - y_true), -1)


@formula
def mean_absolute_error(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Computes the mean of `|y_pred - y_true|` along the last axis.

    As `keras.losses.mean_absolute_error`, but safe under a weight of 0, and in half
    precision computed and summed in float32.

    Args:
      y_true: Targets of shape `[..., n]`, of any numeric dtype.
      y_pred: Predictions of the same shape, of any numeric dtype.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      no error  value 0, slope 0
      NaN       value NaN, gradient NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.mean_absolute_error([[0.0, 1.0]], [[2.0, 1.0]]).numpy())
      [1.]
    """
    return tf.reduce_mean(zeros.absolute(y_pred - y_true), -1)


@formula
def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Computes 100 times the mean of `|y_pred - y_true| / |y_true|` on the last axis.

    As `keras.losses.mean_absolute_percentage_error`, which divides by 1e-7 where a
    target is 0, so that one such target is all that its mean shows.

    Args:
      y_true: Targets of shape `[..., n]`, of any numeric dtype.
      y_pred: Predictions of the same shape, of any numeric dtype.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      target 0  an error counts 100 and has slope 0, as the quotient by the larger of
                the two does (a bounded choice); no error counts 0
      NaN       value NaN, gradient NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> percent = losses.mean_absolute_percentage_error
      >>> print(percent([[2.0, 4.0], [0.0, 4.0]], [[1.0, 4.0], [1.0, 4.0]]).numpy())
      [25. 50.]
    """
    size = zeros.absolute(y_pred - y_true)
    relative = quotient(size, zeros.absolute(y_true))
    # NaN does not count as wrong: it comes out of the quotient.
    wrong = tf.equal(y_true, 0) & (tf.abs(y_pred) > 0)
    return 100 * tf.reduce_mean(relative + tf.cast(wrong, y_pred.dtype), -1)


@formula
def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Computes the mean of `(log(1 + y_pred) - log(1 + y_true))^2` on the last axis.

    As `keras.losses.mean_squared_logarithmic_error`, which clips both at 1e-7: an
    output between -1 and 0 has no gradient there, and small errors lose their digits.
    Targets outside the domain count 0, as in Keras.

    Args:
      y_true: Targets of shape `[..., n]`, of any numeric dtype, above -1.
      y_pred: Predictions of the same shape, of any numeric dtype, above -1.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      y_pred <= -1  the logarithm continues with slope 1 from its value at the next
                    number above -1, -16.6 in float32 (a bounded choice)
      y_true <= -1  counts as 0, slope 0 (a bounded choice, that of Keras)
      NaN           value NaN, gradient NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> square = losses.mean_squared_logarithmic_error([[1.0]], [[-0.5]])
      >>> print(square.numpy())
      [1.9218121]
    """
    # A comparison that lets NaN through.
    y_true = tf.where(y_true <= -1, tf.zeros_like(y_true), y_true)
    return tf.reduce_mean(zeros.square(_log1p_difference(y_pred, y_true)), -1)


@custom_gradient
def _log1p_difference(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `log1p(x) - log1p(y)`, each continued with slope 1 from -1 down."""
    least = tf.constant(LIMITS[x.dtype.name].eps / 2 - 1, x.dtype)

    def slope(upstream: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
        inside = tf.where(z < least, tf.ones_like(z), 1 + z)
        return unbroadcast(quotient_for_gradient(upstream, inside), z)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return slope(upstream, x), -slope(upstream, y)

    a, b = tf.maximum(x, least), tf.maximum(y, least)
    # One logarithm of a number above 1: the difference of two would lose the digits
    # that they have in common.
    step = tf.math.log1p(tf.abs(a - b) / (1 + tf.minimum(a, b)))
    below = tf.minimum(x - least, 0) - tf.minimum(y - least, 0)
    return tf.sign(a - b) * step + below, vjp


@formula
def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> tf.Tensor:
    """Computes the mean of Huber's loss of the errors along the last axis.

    As `keras.losses.huber`, but safe under a weight of 0, and in half precision
    computed and summed in float32.

    Args:
      y_true: Targets of shape `[..., n]`, of any numeric dtype.
      y_pred: Predictions of the same shape, of any numeric dtype.
      delta: The error at which the square becomes a line.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      NaN  value NaN, gradient NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.huber([[0.0, 0.0]], [[0.5, 3.0]]).numpy())
      [1.3125]
    """
    return tf.reduce_mean(_huber(y_pred - y_true, delta), -1)


def _huber(x: tf.Tensor, delta: Any) -> tf.Tensor:
    delta = tf.cast(delta, x.dtype)

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        size = tf.abs(x)
        inside = size <= delta

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            return times_upstream(upstream, tf.where(inside, x, delta * tf.sign(x)))

        half = tf.constant(0.5, x.dtype)
        return tf.where(inside, half * tf.square(x), delta * (size - half * delta)), vjp

    return function(x)


@formula
def log_cosh(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Computes the mean of `log(cosh(y_pred - y_true))` along the last axis.

    As `keras.losses.log_cosh`, which is 0 for errors up to 1e-4, but with all digits.

    Args:
      y_true: Targets of shape `[..., n]`, of any numeric dtype.
      y_pred: Predictions of the same shape, of any numeric dtype.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      NaN  value NaN, gradient NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.log_cosh([[0.0]], [[1e-4]]).numpy())
      [5.e-09]
    """
    return tf.reduce_mean(exponential.log_cosh(y_pred - y_true), -1)
