"""Makes Keras' pooling over steps respect the mask."""

import math
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfsafe import _args, ops
from tfsafe.layers.options import member_of_family
from tfsafe.layers.pooling.safe_mean import SafeMeanPooling
from tfsafe.ops.kernels.precision import wide

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfsafe.layers.options import LayerOptions, OptionsButName

# Mixin; the Keras layer comes next in the MRO.
_KerasLayer: Any = object

_GLOBAL = """
    Call arguments:
      inputs: Floating tensor of shape `(batch, steps, features)`, or
        `(batch, features, steps)` with `"channels_first"`.
      mask: Booleans of shape `(batch, steps)`, True where a step counts.

    Output shape:
      `(batch, features)`, or with an axis of size 1 for the steps.

    Raises:
      TypeError: If `empty_value` is not a number.

    Numerics:
      mask all False, or no step  value empty_value, gradient 0
      NaN masked                  ignored, gradient 0
      NaN kept                    value NaN
    """

_WINDOWS = """
    Call arguments:
      inputs: Floating tensor of shape `(batch, steps, features)`, or
        `(batch, features, steps)` with `"channels_first"`.
      mask: Booleans of shape `(batch, steps)`, True where a step counts.

    Output shape:
      That of the Keras layer. Its mask says which windows hold a step that counts.

    Raises:
      TypeError: If `empty_value` is not a number.

    Numerics:
      no step counts  value empty_value, gradient 0
      NaN masked      ignored, gradient 0
    """


@member_of_family(_GLOBAL)
class GlobalAveragePooling1D(SafeMeanPooling, keras.layers.GlobalAveragePooling1D):
    """`keras.layers.GlobalAveragePooling1D`, right for a sequence without a step.

    Where Keras divides 0 by 0, as for an empty text after
    `Embedding(mask_zero=True)`, this gives `empty_value`, with gradient 0. Sums run in
    float32 under `mixed_float16` and `mixed_bfloat16`, and cannot overflow where the
    mean does not.

    Args:
      data_format: `"channels_last"`, `"channels_first"`, or None for Keras' default.
      keepdims: Whether the axis of the steps stays, with size 1.
      empty_value: The mean of a sequence without a step.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.constant([[[1.0], [3.0]], [[5.0], [6.0]]])
      >>> mask = tf.constant([[True, True], [False, False]])
      >>> print(layers.GlobalAveragePooling1D()(x, mask=mask).numpy())
      [[2.]
       [0.]]
    """

    def __init__(
        self,
        data_format: str | None = None,
        keepdims: bool = False,
        *,
        empty_value: float = 0.0,
        **kwargs: "Unpack[LayerOptions]",
    ):
        data_format = data_format or keras.config.image_data_format()
        # What comes first is tfsafe's, what it passes on goes to Keras' class.
        initialize: Any = super().__init__
        initialize(
            1 if data_format == "channels_last" else 2,
            keepdims,
            empty_value,
            data_format=data_format,
            **kwargs,
        )

    def call(self, inputs: tf.Tensor, mask: Any = None) -> tf.Tensor:
        """Returns the mean of the steps that the mask keeps."""
        if mask is not None:
            mask = _over(mask, self.data_format)
        return super().call(inputs, mask)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Returns None: the output has no steps."""

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs."""
        config = super().get_config()
        del config["axis"]
        return config


class _MasksSteps(_KerasLayer):
    """Adds `empty_value` to a Keras pooling layer, and passes its mask on."""

    def __init__(self, *args: Any, empty_value: float = 0.0, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.empty_value = _args.number(empty_value, "empty_value", tf.float64)
        self.supports_masking = True

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs."""
        return {**super().get_config(), "empty_value": self.empty_value}


def _over(mask: Any, data_format: str) -> tf.Tensor:
    """Gives a mask of the steps an axis for the features."""
    axis = 2 if data_format == "channels_last" else 1
    return tf.expand_dims(tf.cast(mask, tf.bool), axis)


def _kept(inputs: tf.Tensor, mask: tf.Tensor, filler: float) -> tf.Tensor:
    return tf.where(mask, inputs, tf.constant(filler, inputs.dtype))


def _or(empty_value: float, exists: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    return tf.where(exists, value, tf.constant(empty_value, value.dtype))


@member_of_family(_GLOBAL)
class GlobalMaxPooling1D(_MasksSteps, keras.layers.GlobalMaxPooling1D):
    """`keras.layers.GlobalMaxPooling1D` that respects the mask.

    Keras' layer drops the mask, with a warning, so that the zeros of the padding win
    over negative steps. The gradient is split equally among equal steps.

    Args:
      data_format: `"channels_last"`, `"channels_first"`, or None for Keras' default.
      keepdims: Whether the axis of the steps stays, with size 1.
      empty_value: The value of a sequence without a step.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = layers.Masking()(tf.constant([[[-5.0], [0.0]]]))
      >>> print(layers.GlobalMaxPooling1D()(x).numpy())
      [[-5.]]
    """

    def __init__(
        self,
        data_format: str | None = None,
        keepdims: bool = False,
        *,
        empty_value: float = 0.0,
        **kwargs: "Unpack[LayerOptions]",
    ):
        super().__init__(data_format, keepdims, empty_value=empty_value, **kwargs)

    def call(self, inputs: tf.Tensor, mask: Any = None) -> tf.Tensor:
        """Returns the largest of the steps that the mask keeps."""
        axis = 1 if self.data_format == "channels_last" else 2
        if mask is None:
            exists = tf.shape(inputs)[axis] > 0
        else:
            mask = _over(mask, self.data_format)
            exists = tf.reduce_any(mask, axis, keepdims=self.keepdims)
            inputs = _kept(inputs, mask, -math.inf)
        largest = ops.reduce_max(inputs, axis, keepdims=self.keepdims)
        return _or(self.empty_value, exists, largest)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Returns None: the output has no steps."""


class _MasksWindows(_MasksSteps):
    def compute_mask(self, _: Any, mask: Any = None) -> Any:
        """Returns which windows hold a step that counts."""
        if mask is None:
            return None
        steps = tf.cast(mask, tf.float32)[..., tf.newaxis]
        pooled = keras.ops.max_pool(
            steps, self.pool_size, self.strides, self.padding, "channels_last"
        )
        return pooled[..., 0] > 0


@member_of_family(_WINDOWS)
class AveragePooling1D(_MasksWindows, keras.layers.AveragePooling1D):
    """`keras.layers.AveragePooling1D` that respects the mask and passes it on.

    Keras' layer drops the mask, with a warning, and averages the padding in. Here a
    window's average is that of its steps that count, NaN if one of them is NaN;
    computed in float32 under `mixed_float16` and `mixed_bfloat16` if there is a mask.

    Args:
      pool_size: Size of a window.
      strides: From window to window; `pool_size` if None.
      padding: `"valid"` or `"same"`.
      data_format: `"channels_last"`, `"channels_first"`, or None for Keras' default.
      name: Name of the layer.
      empty_value: The average of a window in which no step counts.
      **kwargs: What every Keras layer takes: `dtype`, `trainable`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = layers.Masking()(tf.constant([[[-4.0], [0.0], [0.0], [0.0]]]))
      >>> print(layers.AveragePooling1D(2)(x).numpy()[0, :, 0])
      [-4. 0.]
    """

    def __init__(
        self,
        pool_size: int,
        strides: int | None = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        *,
        empty_value: float = 0.0,
        **kwargs: "Unpack[OptionsButName]",
    ):
        super().__init__(
            pool_size,
            strides,
            padding,
            data_format,
            name,
            empty_value=empty_value,
            **kwargs,
        )

    def call(self, inputs: tf.Tensor, mask: Any = None) -> tf.Tensor:
        """Returns the average of the steps that count in each window."""
        if mask is None:
            return super().call(inputs)
        mask, x = _over(mask, self.data_format), wide(inputs)
        # Both averages ignore the positions beyond the ends, so that these cancel.
        total = super().call(_kept(x, mask, 0.0))
        fraction = super().call(tf.cast(mask, x.dtype))
        exists = fraction > 0
        mean = total / tf.where(exists, fraction, tf.ones_like(fraction))
        return _or(self.empty_value, exists, tf.cast(mean, inputs.dtype))


@member_of_family(_WINDOWS)
class MaxPooling1D(_MasksWindows, keras.layers.MaxPooling1D):
    """`keras.layers.MaxPooling1D` that respects the mask and passes it on.

    Keras' layer drops the mask, with a warning, so that the zeros of the padding win
    over negative steps.

    Args:
      pool_size: Size of a window.
      strides: From window to window; `pool_size` if None.
      padding: `"valid"` or `"same"`.
      data_format: `"channels_last"`, `"channels_first"`, or None for Keras' default.
      name: Name of the layer.
      empty_value: The value of a window in which no step counts.
      **kwargs: What every Keras layer takes: `dtype`, `trainable`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = layers.Masking()(tf.constant([[[-4.0], [0.0], [0.0], [0.0]]]))
      >>> print(layers.MaxPooling1D(2)(x).numpy()[0, :, 0])
      [-4. 0.]
    """

    def __init__(
        self,
        pool_size: int = 2,
        strides: int | None = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        *,
        empty_value: float = 0.0,
        **kwargs: "Unpack[OptionsButName]",
    ):
        super().__init__(
            pool_size,
            strides,
            padding,
            data_format,
            name,
            empty_value=empty_value,
            **kwargs,
        )

    def call(self, inputs: tf.Tensor, mask: Any = None) -> tf.Tensor:
        """Returns the largest of the steps that count in each window."""
        if mask is None:
            return super().call(inputs)
        exists = _over(self.compute_mask(inputs, mask), self.data_format)
        kept = _kept(inputs, _over(mask, self.data_format), -math.inf)
        return _or(self.empty_value, exists, super().call(kept))
