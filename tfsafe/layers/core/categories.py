"""Turns numbers into categories, where NaN is a missing number."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf


@keras.saving.register_keras_serializable(package="tfsafe")
class Discretization(keras.layers.Discretization):
    """Bins of numbers; NaN falls into none.

    With `keras.layers.Discretization` a NaN falls into the first, a middle or the last
    bin, depending on the execution mode, and `adapt` may learn NaN as a boundary.

    Arguments and shapes are those of `keras.layers.Discretization`.

    Numerics:
      NaN  index -1 under `output_mode="int"`, as in pandas; all zeros under "one_hot";
           not counted under "multi_hot" and "count"; skipped by `adapt`

    Examples:
      >>> import numpy as np
      >>> from tfsafe import layers
      >>> layer = layers.Discretization(bin_boundaries=[0.0, 1.0])
      >>> print(layer(np.array([[-5.0, 0.5, float("nan"), 2.0]])).numpy())
      [[ 0  1 -1  2]]
    """

    def __call__(self, inputs: Any, **kwargs: Any) -> Any:
        """Calls the layer, without the cast to integers that Keras 3.3 begins with."""
        return keras.layers.Layer.__call__(self, inputs, **kwargs)

    def update_state(self, data: Any) -> None:
        """Adds data to what `adapt` has seen."""
        values = np.asarray(data, np.float32)
        super().update_state(values[~np.isnan(values)])

    def call(self, inputs: Any) -> Any:
        """Returns the bins."""
        x = tf.convert_to_tensor(inputs)
        if not x.dtype.is_floating:
            return super().call(x)
        missing = tf.math.is_nan(x)
        x = tf.where(missing, tf.constant(float("-inf"), x.dtype), x)
        in_first = x < tf.cast([*self.bin_boundaries, float("inf")][0], x.dtype)
        return _forget(super().call(x), missing, in_first, self.output_mode)


@keras.saving.register_keras_serializable(package="tfsafe")
class CategoryEncoding(keras.layers.CategoryEncoding):
    """Encoding of categories; NaN belongs to none.

    With `keras.layers.CategoryEncoding` a NaN is an error in eager mode and category 0
    under XLA.

    Arguments and shapes are those of `keras.layers.CategoryEncoding`.

    Numerics:
      NaN  all zeros under `output_mode="one_hot"`; not counted under "multi_hot" and
           "count"

    Examples:
      >>> import numpy as np
      >>> from tfsafe import layers
      >>> layer = layers.CategoryEncoding(3, output_mode="count")
      >>> print(layer(np.array([[float("nan"), 1.0, 1.0]])).numpy())
      [[0. 2. 0.]]
    """

    def call(self, inputs: Any, count_weights: Any = None) -> Any:
        """Returns the encoded categories."""
        if isinstance(inputs, tf.SparseTensor):
            return super().call(inputs, count_weights=count_weights)
        x = tf.convert_to_tensor(inputs)
        if not x.dtype.is_floating:
            return super().call(x, count_weights=count_weights)
        missing = tf.math.is_nan(x)
        categories = tf.cast(tf.where(missing, tf.zeros_like(x), x), tf.int32)
        outputs = super().call(categories, count_weights=count_weights)
        in_first = tf.equal(categories, 0)
        return _forget(outputs, missing, in_first, self.output_mode, count_weights)


@keras.saving.register_keras_serializable(package="tfsafe")
class Hashing(keras.layers.Hashing):
    """Hashing of categories; NaN has its own hash, or that of the mask value.

    `keras.layers.Hashing` converts NaN to an integer, which is -2**63 on some
    processors and 0 on others, and hashes that.

    Arguments and shapes are those of `keras.layers.Hashing`.

    Numerics:
      NaN  the bin of `mask_value` if there is one, else the hash of "nan"

    Examples:
      >>> import numpy as np
      >>> from tfsafe import layers
      >>> layer = layers.Hashing(num_bins=3, mask_value=-1)
      >>> print(layer(np.array([[float("nan"), -1.0]])).numpy())
      [[0 0]]
    """

    def call(self, inputs: Any) -> Any:
        """Returns the bins."""
        if not isinstance(inputs, tf.SparseTensor | tf.RaggedTensor):
            inputs = tf.convert_to_tensor(inputs)
        if inputs.dtype.is_floating and isinstance(inputs, tf.Tensor):
            missing = tf.math.is_nan(inputs)
            if self.mask_value is not None:
                stand_in = tf.constant(self.mask_value, inputs.dtype)
                inputs = tf.where(missing, stand_in, inputs)
            else:
                known = tf.where(missing, tf.zeros_like(inputs), inputs)
                known = tf.strings.as_string(tf.cast(known, tf.int64))
                inputs = tf.where(missing, "nan", known)
        return super().call(inputs)


def _forget(
    outputs: Any,
    missing: tf.Tensor,
    in_first: tf.Tensor,
    mode: str,
    weights: Any = None,
) -> Any:
    """Removes missing values from the first category, as which they were encoded."""
    if isinstance(outputs, tf.SparseTensor):
        dense = tf.sparse.to_dense(outputs)
        return tf.sparse.from_dense(_forget(dense, missing, in_first, mode, weights))
    if mode == "int":
        return tf.where(missing, tf.constant(-1, outputs.dtype), outputs)
    if mode == "one_hot":
        same_rank = outputs.shape.rank == missing.shape.rank
        hidden = missing if same_rank else missing[..., tf.newaxis]
        return tf.where(hidden, tf.zeros_like(outputs), outputs)
    counts = tf.cast(in_first & ~missing, outputs.dtype)
    if weights is not None:
        counts *= tf.cast(weights, outputs.dtype)
    counts = tf.reduce_sum(counts, min(1, missing.shape.rank - 1))[..., tf.newaxis]
    if mode == "multi_hot":
        counts = tf.minimum(counts, tf.ones_like(counts))
    return tf.concat([counts, outputs[..., 1:]], -1)
