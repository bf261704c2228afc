"""Softmax and log-probabilities as layers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfsafe import _args, _compat, ops
from tfsafe.keras_formulas.logit_recovery import attach_logits
from tfsafe.layers.core.masking import with_features

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfsafe.layers.options import LayerOptions


@keras.saving.register_keras_serializable(package="tfsafe")
class LogSigmoid(keras.layers.Layer):
    """Log-probability of a binary outcome, `log(sigmoid(x))`, accurate in both tails.

    Use it instead of `Dense(..., activation="sigmoid")` and a logarithm.

    Args:
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor of any shape.

    Input shape:
      Any.

    Output shape:
      That of the input.

    Numerics:
      x = inf   value 0, slope 0
      x = -inf  value -inf, slope 1
      x = NaN   value NaN, slope NaN
      Computed in float32 under `mixed_float16` and `mixed_bfloat16`, and rounded once.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.LogSigmoid()(tf.constant([-200.0, 0.0, 50.0])).numpy())
      [-2.0000000e+02 -6.9314718e-01 -1.9287499e-22]

    References:
      Maechler, "Accurately Computing log(1 - exp(-|a|))", Rmpfr vignette, 2012,
      for `log(1 + exp(x))`.
    """

    def __init__(self, **kwargs: "Unpack[LayerOptions]"):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the logarithm of the sigmoid, elementwise."""
        return ops.log_sigmoid(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the input shape."""
        return input_shape


@keras.saving.register_keras_serializable(package="tfsafe")
class Softmax(keras.layers.Softmax):
    """`keras.layers.Softmax` for rows in which no class is possible.

    Args:
      axis: Axis along which the probabilities sum to 1, or several.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor, the logits.
      mask: Booleans, True where a class is possible; of a shape that broadcasts to that
        of `inputs`. A mask of steps that Keras passes on rules out whole rows.

    Input shape:
      Any.

    Output shape:
      That of the input.

    Raises:
      ValueError: If the shape of the mask does not fit.

    Numerics:
      masked    value 0, gradient 0, NaN included
      one -inf  value 0, gradient 0
      all -inf  value 0, gradient 0 (a choice); all masked is the same
      NaN       value NaN, gradient NaN, in the whole row
      Computed in float32 under `mixed_float16` and `mixed_bfloat16`, and rounded once.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.constant([[1.0, 1.0, 5.0], [1.0, 2.0, 3.0]])
      >>> mask = tf.constant([[True, True, False], [False, False, False]])
      >>> print(layers.Softmax()(x, mask=mask).numpy())
      [[0.5 0.5 0. ]
       [0.  0.  0. ]]
    """

    def call(self, inputs: tf.Tensor, mask: Any = None) -> tf.Tensor:
        """Returns the probabilities."""
        mask = _fit(mask, inputs)
        outputs = ops.softmax(inputs, self.axis, mask=mask)
        if mask is None:
            attach_logits(outputs, inputs, self.axis)
        return outputs


@keras.saving.register_keras_serializable(package="tfsafe")
class LogSoftmax(keras.layers.Layer):
    """Logarithm of the softmax, accurate where the probability is 0 or 1.

    Use it instead of `Softmax` and a logarithm.

    Args:
      axis: Axis along which the probabilities sum to 1, or several.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor, the logits.
      mask: Booleans, True where a class is possible; of a shape that broadcasts to that
        of `inputs`. A mask of steps that Keras passes on rules out whole rows.

    Input shape:
      Any.

    Output shape:
      That of the input.

    Raises:
      TypeError: If `axis` is not of integers.
      ValueError: If the shape of the mask does not fit.

    Numerics:
      masked    value -inf, gradient 0, NaN included
      one -inf  value -inf, gradient that of a class of probability 0
      all -inf  value -inf, gradient 0 (a choice); all masked is the same
      NaN       value NaN, gradient NaN, in the whole row
      Computed in float32 under `mixed_float16` and `mixed_bfloat16`, and rounded once.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.LogSoftmax()(tf.constant([[0.0, -200.0]])).numpy())
      [[   0. -200.]]
    """

    def __init__(
        self, axis: int | Sequence[int] = -1, **kwargs: "Unpack[LayerOptions]"
    ):
        super().__init__(**kwargs)
        _args.axes(axis, tf.TensorShape(None))
        self.axis = list(axis) if isinstance(axis, list | tuple) else axis
        self.supports_masking = True

    def call(self, inputs: tf.Tensor, mask: Any = None) -> tf.Tensor:
        """Returns the logarithms of the probabilities."""
        return ops.log_softmax(inputs, self.axis, mask=_fit(mask, inputs))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the input shape."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs."""
        return {**super().get_config(), "axis": self.axis}


def _fit(mask: Any, inputs: tf.Tensor) -> tf.Tensor | None:
    """Gives Keras' own mask, one of the leading axes, the rank of the inputs."""
    if mask is None:
        return None
    is_own = mask is _compat.keras_mask(inputs)
    mask = tf.convert_to_tensor(mask)
    missing = inputs.shape.rank - mask.shape.rank
    # Any other mask broadcasts from the last axis.
    leads = mask.shape.is_compatible_with(inputs.shape[: mask.shape.rank])
    if missing > 0 and leads and (is_own or not _broadcasts(mask.shape, inputs.shape)):
        return with_features(mask, inputs.shape.rank)
    return mask


def _broadcasts(mask: tf.TensorShape, inputs: tf.TensorShape) -> bool:
    pairs = zip(reversed(mask), reversed(inputs), strict=False)
    return all(m in {1, None} or n in {m, None} for m, n in pairs)
