"""Embedding that treats a wrong id alike in every mode."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfsafe._gradients import nan_where


@keras.saving.register_keras_serializable(package="tfsafe")
class Embedding(keras.layers.Embedding):
    """`keras.layers.Embedding` that returns NaN for a wrong id, in every mode.

    For an id that the table does not have, Keras' layer raises an error on a CPU, gives
    another id's row under XLA, and zeros on a GPU; it counts negative ids from the end.
    Here such an id has a row of NaN, which every check finds, and gives no gradient to
    any row of the table.

    Args:
      input_dim: Number of rows of the table.
      output_dim: Size of a row.
      *args: What `keras.layers.Embedding` takes next.
      **kwargs: The same by name: `embeddings_initializer`, `embeddings_regularizer`,
        `embeddings_constraint`, `mask_zero`, `weights`, `lora_rank`, and what every
        Keras layer takes.

    Call arguments:
      inputs: Ids, of any shape; integers, or floating numbers that are rounded towards
        0. A `tf.SparseTensor` has the id 0 where it holds nothing.

    Output shape:
      That of the input, followed by `output_dim`.

    Numerics:
      id < 0, id >= input_dim, id NaN  value NaN, gradient 0; after `quantize` too

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> table = layers.Embedding(3, 2, embeddings_initializer="ones")
      >>> print(table(tf.constant([2, 3])).numpy())
      [[ 1. 1.]
       [nan nan]]
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the rows of the table."""
        return self._rows(inputs, super().call)

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """Quantizes the table as Keras does, which refuses every subclass of its own.

        Args:
          mode: "int8" or "int4".
          type_check: Whether to refuse subclasses of this layer.
          config: Quantization config, as Keras takes it.

        Raises:
          NotImplementedError: If this is a subclass and `type_check` is True.
        """
        if type_check and type(self) is not Embedding:
            raise NotImplementedError(
                f"Layer {type(self).__name__} does not have a `quantize()` method "
                "implemented."
            )
        super().quantize(mode, type_check=False, config=config)

    def quantized_call(self, inputs: tf.Tensor, *args: Any, **kwargs: Any) -> tf.Tensor:
        """Returns the rows of the quantized table."""
        call = super().quantized_call
        return self._rows(inputs, lambda ids: call(ids, *args, **kwargs))

    def _rows(self, inputs: Any, look_up: Callable[[tf.Tensor], tf.Tensor]) -> Any:
        if isinstance(inputs, tf.SparseTensor):
            inputs = tf.sparse.to_dense(inputs)
        elif not isinstance(inputs, tf.RaggedTensor):
            inputs = tf.convert_to_tensor(inputs)
        # Wide enough to hold `input_dim` exactly.
        dtype = tf.float64 if inputs.dtype.is_floating else tf.int64
        ids = tf.cast(inputs, dtype)
        exists = tf.logical_and(ids >= 0, ids < self.input_dim)
        ids = tf.cast(tf.where(exists, ids, tf.zeros_like(ids)), tf.int32)
        rows = look_up(ids)
        exists = exists[..., tf.newaxis]
        return tf.where(exists, rows, nan_where(tf.logical_not(exists), rows.dtype))
