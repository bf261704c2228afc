"""Penalties on directions that are not orthogonal."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import ops


@keras.saving.register_keras_serializable(package="tfsafe")
class OrthogonalRegularizer(keras.regularizers.OrthogonalRegularizer):
    """Penalty on rows or columns that are not orthogonal, with gradient 0 at 0.

    Arguments are those of `keras.regularizers.OrthogonalRegularizer`, whose gradient at
    a row of zeros, as pruning leaves them, is NaN under XLA.

    Numerics:
      row of zeros  orthogonal to every other; gradient 0 (a choice)
      one row       penalty 0: it has no pair
      inf, NaN      penalty NaN
      Rows are scaled, so that neither the squares nor the norm leave the range.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import regularizers
      >>> kernel = tf.constant([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
      >>> print(regularizers.OrthogonalRegularizer(0.3)(kernel).numpy())
      0.1
    """

    def __call__(self, inputs: Any) -> tf.Tensor:
        """Returns `factor` times the mean cosine, without sign, of all pairs."""
        x = tf.convert_to_tensor(inputs)
        if x.shape.rank != 2:
            raise ValueError(
                "Inputs to OrthogonalRegularizer must have rank 2. Received: "
                f"inputs.shape={x.shape}. Reshape a kernel of higher rank first, for "
                "example with `tf.reshape(kernel, [-1, kernel.shape[-1]])`."
            )
        axis = 1 if self.mode == "rows" else 0
        unit = ops.l2_normalize(x, axis)
        cosines = tf.matmul(unit, unit, transpose_a=axis == 0, transpose_b=axis == 1)
        pairs = tf.linalg.band_part(cosines, 0, -1) - tf.linalg.band_part(cosines, 0, 0)
        size = x.shape[1 - axis]
        count = max(size * (size - 1) // 2, 1)
        return tf.cast(self.factor, x.dtype) * tf.reduce_sum(tf.abs(pairs)) / count
