"""Divides the kernel of a layer by its spectral norm."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe.ops.kernels.lengths import over_spectral_norm


@keras.saving.register_keras_serializable(package="tfsafe")
class SpectralNormalization(keras.layers.SpectralNormalization):
    """Calls a layer with its kernel divided by the kernel's spectral norm.

    `keras.layers.SpectralNormalization` overwrites the kernel with the quotient before
    the call, so that no gradient goes through the norm; its power iteration is NaN for
    a kernel below 1e-19, whose squares underflow; and the output of an `Embedding` is
    rounded to integers, the dtype of its inputs. Here the kernel stays what the
    optimizer made of it; every call, in inference too, takes the quotient, with its
    gradient.

    Arguments, shapes and weights are those of `keras.layers.SpectralNormalization`.

    Call arguments:
      inputs: Those of the wrapped layer.
      training: Whether to keep what the power iteration found.

    Numerics:
      W = 0     used unchanged, with its own gradient, so that it can leave 0
      inf, NaN  value NaN; the vector of the iteration is kept
      The kernel is scaled, so that no square leaves the range.
      A kernel of half precision is normalized in float32.

    Examples:
      >>> import keras
      >>> import numpy as np
      >>> from tfsafe import layers
      >>> small = keras.initializers.Constant(1e-25)
      >>> dense = layers.SpectralNormalization(
      ...     keras.layers.Dense(2, kernel_initializer=small)
      ... )
      >>> print(dense(np.ones((1, 2)), training=True).numpy())
      [[1. 1.]]

    References:
      Miyato, Kataoka, Koyama and Yoshida, "Spectral Normalization for Generative
      Adversarial Networks", arXiv:1802.05957, 2018.
    """

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the output of the layer under the normalized kernel."""
        kernel, vector = self.normalized_weights()
        if training:
            self.vector_u.assign(vector)
        scope = keras.StatelessScope([(self.kernel, kernel)], collect_losses=True)
        with scope:
            outputs = self.layer(inputs)
        for loss in scope.losses:
            self.add_loss(loss)
        for variable in self.layer.non_trainable_variables:
            value = scope.get_current_value(variable)
            if value is not None and variable is not self.kernel:
                variable.assign(value)
        return tf.cast(outputs, self.compute_dtype)

    def normalized_weights(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the kernel of norm 1 and the vector of the next power iteration."""
        return over_spectral_norm(
            tf.convert_to_tensor(self.kernel), self.vector_u, self.power_iterations
        )
