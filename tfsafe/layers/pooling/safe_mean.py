"""Averages over the steps that a mask keeps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfsafe import _args, ops
from tfsafe.layers.core.masking import with_features

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfsafe.layers.options import LayerOptions


@keras.saving.register_keras_serializable(package="tfsafe")
class SafeMeanPooling(keras.layers.Layer):
    """Mean over the steps that a mask keeps; an empty sequence gives no NaN.

    Where `keras.layers.GlobalAveragePooling1D` divides 0 by 0 for a sequence without a
    step, this gives `empty_value`, with gradient 0. Masked values do not matter,
    NaN included.

    Args:
      axis: Axis or axes of the mean, without the batch axis.
      keepdims: Whether the reduced axes stay, with size 1.
      empty_value: The mean of nothing.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor, or a `tf.RaggedTensor`, whose rows end where they end.
      mask: Booleans, True where an element counts, or weights that are at least 0.
        Either for the leading axes, as Keras' own masks of shape `(batch, steps)` are,
        or with all axes of `inputs`, each of its size or 1.

    Input shape:
      Any, with at least two axes.

    Output shape:
      That of the input without `axis`, or with 1 in its place.

    Raises:
      TypeError: If `axis` is not of integers, or `empty_value` is not a number.
      ValueError: If `axis` is out of range or holds the batch axis, or if the shape of
        the mask does not fit.

    Numerics:
      mask all False  value empty_value, gradient 0
      NaN masked      ignored, gradient 0
      NaN kept        value NaN
      Sums run in float32 under `mixed_float16` and `mixed_bfloat16` and cannot overflow
      where the mean does not.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.constant([[[1.0], [3.0], [9.0]], [[5.0], [6.0], [7.0]]])
      >>> mask = tf.constant([[True, True, False], [False, False, False]])
      >>> print(layers.SafeMeanPooling()(x, mask=mask).numpy())
      [[2.]
       [0.]]
    """

    def __init__(
        self,
        axis: int | Sequence[int] = 1,
        keepdims: bool = False,
        empty_value: float = 0.0,
        **kwargs: "Unpack[LayerOptions]",
    ):
        super().__init__(**kwargs)
        if axis is None:
            raise TypeError(
                "`axis` must be an integer or a sequence of integers. Received: "
                "axis=None. Name the axes without the batch axis, for example (1, 2)."
            )
        _args.axes(axis, tf.TensorShape(None))
        self.axis = list(axis) if isinstance(axis, list | tuple) else axis
        self.keepdims = _args.one_of(keepdims, (False, True), "keepdims")
        self.empty_value = _args.number(empty_value, "empty_value", tf.float64)
        self.supports_masking = True

    def call(self, inputs: tf.Tensor, mask: Any = None) -> tf.Tensor:
        """Returns the mean of what the mask keeps."""
        axes = self._axes(inputs.shape)
        if isinstance(inputs, tf.RaggedTensor):
            exists = tf.ones_like(inputs, tf.bool).to_tensor()
            inputs = inputs.to_tensor()
            mask = exists if mask is None else _hide(_fit(mask, inputs), exists)
        if mask is not None:
            mask = _fit(mask, inputs)
        return ops.mean(
            inputs,
            axis=axes,
            keepdims=self.keepdims,
            mask=mask,
            empty_value=self.empty_value,
        )

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns which means are of something, or None without a step axis left."""
        if mask is None or len(mask.shape) == len(inputs.shape):
            return None
        steps = [a for a in self._axes(inputs.shape) if a < len(mask.shape)]
        mask = keras.ops.any(mask, axis=steps, keepdims=self.keepdims)
        return mask if len(mask.shape) > 1 else None

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Returns the input shape without the axes, or with 1 in their place."""
        axes = self._axes(input_shape)
        return tuple(
            1 if axis in axes else size
            for axis, size in enumerate(input_shape)
            if self.keepdims or axis not in axes
        )

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs."""
        return {
            **super().get_config(),
            "axis": self.axis,
            "keepdims": self.keepdims,
            "empty_value": self.empty_value,
        }

    def _axes(self, shape: Any) -> list[int]:
        axes = _args.axes(self.axis, tf.TensorShape(shape)) or []
        if 0 in axes or not axes:
            raise ValueError(
                "`axis` must name at least one axis, and not the batch axis. Received: "
                f"axis={self.axis!r} for inputs of shape {tuple(shape)}."
            )
        return axes


def _fit(mask: Any, inputs: tf.Tensor) -> tf.Tensor:
    """Gives a mask of the leading axes the rank of the inputs."""
    if isinstance(mask, tf.RaggedTensor):
        mask = mask.to_tensor()
    mask, shape = tf.convert_to_tensor(mask), inputs.shape
    missing = -1 if mask.shape.rank is None else shape.rank - mask.shape.rank
    if missing < 0 or any(
        given not in (size, 1, None) and size is not None
        for given, size in zip(mask.shape, shape, strict=False)
    ):
        raise ValueError(
            "`mask` must have the leading axes of `inputs`, or all of them, each of "
            f"its size or 1. Received: mask.shape={mask.shape}, inputs.shape={shape}."
        )
    return with_features(mask, shape.rank)


def _hide(mask: tf.Tensor, exists: tf.Tensor) -> tf.Tensor:
    return tf.where(exists, mask, tf.zeros([], mask.dtype))
