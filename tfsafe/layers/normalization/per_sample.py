"""Normalizes each sample by its own values."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfsafe import _compat, ops
from tfsafe.ops.kernels.precision import wide
from tfsafe.ops.kernels.statistics.standardization import scale, standardize

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfsafe.layers.options import LayerNormalizationOptions

_RMSNormalization: Any = _compat.keras_class("layers", "RMSNormalization")


@keras.saving.register_keras_serializable(package="tfsafe")
class LayerNormalization(keras.layers.LayerNormalization):
    """Layer normalization that keeps its digits at a large mean.

    `keras.layers.LayerNormalization` computes `x * inv - mean * inv`, which cancels
    where the mean is far above the deviation, and its squares overflow above 1e19. Its
    `rms_scaling=True` divides by the deviation instead of the root mean square.

    Args:
      *args: Those of `keras.layers.LayerNormalization`.
      rms_scaling: Whether to divide by the root mean square, without centring and
        without offset.
      **kwargs: Those of `keras.layers.LayerNormalization`.

    Call arguments:
      inputs: Floating tensor.

    Input shape:
      Any; the axes that are normalized have known sizes.

    Output shape:
      That of the input.

    Numerics:
      error      <= 8 ulp of the largest result in the row, however large the mean
      all equal  value beta
      inf, NaN   value NaN in the whole row
      A row without incoming gradient gives zero gradients, whatever its values.
      Computed in float32 under `mixed_float16` and `mixed_bfloat16`, and rounded once.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.constant([[1e4, 1e4 + 0.01, 1e4 + 0.02, 1e4 + 0.03]])
      >>> print(layers.LayerNormalization(epsilon=1e-6)(x).numpy())
      [[-1.3187 -0.45398 0.4107 1.3619]]
      >>> x = tf.constant([[5.0, 5.0, 5.0]])
      >>> print(layers.LayerNormalization(rms_scaling=True)(x).numpy())
      [[1. 1. 1.]]

    References:
      Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
    """

    def __init__(
        self,
        *args: Any,
        rms_scaling: bool = False,
        **kwargs: "Unpack[LayerNormalizationOptions]",
    ):
        # Not passed on: Keras 3.15 would warn that it divides by the deviation.
        super().__init__(*args, **kwargs)
        self.rms_scaling: bool = self.rms_scaling or rms_scaling
        self.autocast = False

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the normalized inputs."""
        x = wide(inputs)
        axes = _positive(self.axis, x)
        outputs = standardize(x, axes, self.epsilon, centre=not self.rms_scaling)
        if self.gamma is not None:
            outputs = scale(outputs, _along(self.gamma, x, axes))
        if self.beta is not None:
            outputs += _along(self.beta, x, axes)
        return tf.cast(outputs, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs."""
        return {**super().get_config(), "rms_scaling": self.rms_scaling}


@keras.saving.register_keras_serializable(package="tfsafe")
class GroupNormalization(keras.layers.GroupNormalization):
    """Group normalization that keeps its digits at a large mean.

    Arguments, shapes and weights are those of `keras.layers.GroupNormalization`, which
    computes `x * inv - mean * inv` and cancels where the mean is far above the
    deviation.

    Numerics:
      error      <= 8 ulp of the largest result in the group, however large the mean
      all equal  value beta
      inf, NaN   value NaN in the whole group
      A group without incoming gradient gives zero gradients, whatever its values.
      Computed in float32 under `mixed_float16` and `mixed_bfloat16`, and rounded once.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.constant([[1e4, 1e4 + 0.01, 1e4 + 0.02, 1e4 + 0.03]])
      >>> print(layers.GroupNormalization(groups=1, epsilon=1e-6)(x).numpy())
      [[-1.3187 -0.45398 0.4107 1.3619]]

    References:
      Wu and He, "Group Normalization", arXiv:1803.08494, 2018.
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the normalized inputs."""
        x = wide(inputs)
        (axis,) = _positive(self.axis, x)
        shape, size = tf.shape(x), x.shape[axis]
        groups = [self.groups, size // self.groups]
        grouped = tf.reshape(x, tf.concat([shape[:axis], groups, shape[axis + 1 :]], 0))
        within = [each for each in range(1, x.shape.rank + 1) if each != axis]
        outputs = standardize(grouped, within, self.epsilon)
        outputs = tf.ensure_shape(tf.reshape(outputs, shape), x.shape)
        if self.gamma is not None:
            outputs = scale(outputs, _along(self.gamma, x, [axis]))
        if self.beta is not None:
            outputs += _along(self.beta, x, [axis])
        return tf.cast(outputs, self.compute_dtype)


@keras.saving.register_keras_serializable(package="tfsafe")
class RMSNormalization(_RMSNormalization):
    """Division by the root mean square, which neither overflows nor underflows.

    Arguments, shapes and weights are those of `keras.layers.RMSNormalization`, whose
    squares overflow above 1e19 in float32; it returns 0 there. Needs Keras 3.9.

    Numerics:
      error     <= 8 ulp of the largest result in the row
      all 0     value 0, slope scale / sqrt(epsilon)
      inf, NaN  value NaN there; 0 elsewhere in the row of an inf, NaN in that of a NaN
      A row without incoming gradient gives zero gradients, whatever its values.
      Computed in float32 under `mixed_float16` and `mixed_bfloat16`, and rounded once.

    Examples:
      >>> import keras
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> if hasattr(keras.layers, "RMSNormalization"):
      ...     row = layers.RMSNormalization()(tf.constant([[1e20, 1e20]]))
      ...     assert tf.reduce_all(row == 1)

    References:
      Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467,
      2019.
    """

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Returns the normalized inputs."""
        x = wide(x)
        axes = _positive(self.axis, x)
        outputs = standardize(x, axes, self.epsilon, centre=False)
        outputs = scale(outputs, _along(self.scale, x, axes))
        return tf.cast(outputs, self.compute_dtype)


@keras.saving.register_keras_serializable(package="tfsafe")
class UnitNormalization(keras.layers.UnitNormalization):
    """Division by the Euclidean norm; a row of zeros stays one, with gradient 0.

    Arguments and shapes are those of `keras.layers.UnitNormalization`, whose gradient
    at a row of zeros is 1e12, NaN under XLA, and whose value is NaN in float16.

    Numerics:
      all 0     value 0, gradient 0 (a choice: the direction is undefined)
      inf, NaN  as `tfsafe.ops.l2_normalize`
      A row without incoming gradient gives a zero gradient, whatever its values.
      The row is scaled, so that neither the squares nor the norm leave the range.
      Computed in float32 under `mixed_float16` and `mixed_bfloat16`, and rounded once.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.constant([[0.0, 4e30], [0.0, 0.0]])
      >>> print(layers.UnitNormalization()(x).numpy())
      [[0. 1.]
       [0. 0.]]
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the rows, divided by their norms."""
        return ops.l2_normalize(tf.cast(inputs, self.compute_dtype), self.axis)


def _positive(axis: int | Sequence[int], x: tf.Tensor) -> list[int]:
    axes = [axis] if isinstance(axis, int) else axis
    return sorted(each % x.shape.rank for each in axes)


def _along(weight: Any, x: tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
    """Gives a weight over `axes` the rank and dtype of `x`."""
    shape = [size if each in axes else 1 for each, size in enumerate(x.shape)]
    return tf.reshape(tf.cast(weight, x.dtype), shape)
