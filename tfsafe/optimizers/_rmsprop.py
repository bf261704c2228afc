"""Provides Keras' `RMSprop` with a variance that does not become negative."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe._limits import LIMITS


@keras.saving.register_keras_serializable(package="tfsafe")
class RMSprop(keras.optimizers.RMSprop):
    """Keras' `RMSprop`, without its NaN for `centered=True`.

    Centered, Keras divides by the square root of `velocity - average**2 + epsilon`: the
    variance of the gradient, as a difference of two moving averages. While a gradient
    stays the same, both are equal but for rounding, and a difference below `-epsilon`
    makes the weight NaN for ever: at a gradient of 10, in step 136.

    Here `velocity` stays above `average**2` by more than rounding may take from it, so
    that the deviation never falls below 0.2 % of the average in float32, which can
    hardly tell a smaller one from 0. Where the deviation is larger, and without
    `centered`, each step is Keras' own. All arguments are as in Keras.

    Numerics:
      constant gradient    finite steps, at most about 500 times `learning_rate`
      NaN, infinity        as in Keras; see `SafeOptimizer`

    Examples:
      >>> import keras
      >>> import tensorflow as tf
      >>> from tfsafe.optimizers import RMSprop
      >>> weight = keras.Variable(0.0)
      >>> optimizer = RMSprop(0.001, centered=True)
      >>> for _ in range(200):
      ...     optimizer.apply([tf.constant(10.0)], [weight])
      >>> bool(tf.math.is_finite(weight.value))
      True
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Takes one step for one variable, as Keras asks for it."""
        if self.centered:
            velocity, average = _compat.centered_moments(self, variable)
            # After the decay by `rho`, 32 units in the last place of the square are
            # left. The rounding of the two averages takes a few of them.
            margin = 32.0 * LIMITS[velocity.dtype].eps / self.rho
            least = tf.square(average) * (1.0 + margin)
            self.assign(velocity, tf.maximum(velocity, least))
        super().update_step(gradient, variable, learning_rate)
