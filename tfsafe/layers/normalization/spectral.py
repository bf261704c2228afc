"""Divides the kernel of a layer by its spectral norm."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe._limits import LIMITS
from tfsafe.ops.kernels.precision import wide


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
        kernel = tf.convert_to_tensor(self.kernel)
        exact = wide(kernel)
        # The quotient does not change with the scale, so that this may be a constant.
        largest = _stand_in(tf.stop_gradient(tf.reduce_max(tf.abs(exact))))
        exact /= largest
        matrix = tf.reshape(exact, [-1, exact.shape[-1]])
        old = tf.cast(self.vector_u, exact.dtype)
        left, right = self._iterated(tf.stop_gradient(matrix), old)
        norm = tf.matmul(tf.matmul(left, matrix), right, transpose_b=True)[0, 0]
        is_usable = tf.math.is_finite(norm) & tf.not_equal(norm, 0)
        vector = tf.where(is_usable, right, old)
        return (
            tf.cast(exact / _stand_in(norm), kernel.dtype),
            tf.cast(vector, self.vector_u.dtype),
        )

    def _iterated(
        self, matrix: tf.Tensor, right: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns approximate singular vectors of a matrix whose largest entry is 1."""
        tiny = LIMITS[matrix.dtype.name].tiny
        for _ in range(self.power_iterations):
            left = tf.matmul(right, matrix, transpose_b=True)
            left = tf.math.l2_normalize(left, epsilon=tiny)
            right = tf.math.l2_normalize(tf.matmul(left, matrix), epsilon=tiny)
        return left, right


def _stand_in(x: tf.Tensor) -> tf.Tensor:
    """Returns 1 where `x` is 0, and else `x`."""
    return tf.where(tf.equal(x, 0), tf.ones_like(x), x)
