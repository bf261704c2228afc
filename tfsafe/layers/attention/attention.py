"""Makes Keras' attention without heads safe for masks that leave no key."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe.layers.core.masking import hide
from tfsafe.layers.options import member_of_family
from tfsafe.ops.kernels.precision import wide

# Mixin; the Keras layer comes next in the MRO.
_KerasLayer: Any = object


_SHARED = """
    Call arguments:
      inputs: List of the query of shape `(batch, Tq, dim)`, the value of shape
        `(batch, Tv, dim)` and, if it is not the value, the key of that shape.
      mask: List of the query's and the value's mask, booleans of shape `(batch, Tq)`
        and `(batch, Tv)`, or None.
      training: Whether to drop.
      return_attention_scores: Whether to return the weights as well.
      use_causal_mask: Whether a query sees the keys up to its own position only.

    Output shape:
      `(batch, Tq, dim)`; the weights are of shape `(batch, Tq, Tv)`.

    Raises:
      ValueError: If `inputs` or `mask` is not a list.
    """


class _SafeAttention(_KerasLayer):
    """Masks the inputs of a Keras attention layer and computes in float32."""

    def call(
        self,
        inputs: list[tf.Tensor],
        mask: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        """Returns the mean of the values, weighted for each query, and the weights."""
        if mask is not None:
            self._check_mask(mask)
        query_mask, value_mask = mask[:2] if mask else (None, None)
        hidden = [query_mask, value_mask, value_mask]
        allowed = _allowed(inputs, value_mask, use_causal_mask)
        if value_mask is not None:
            # A query without a key attends to all, so that nothing overflows, and its
            # result is dropped.
            exists = tf.reduce_any(allowed, -1, keepdims=True)
            allowed = tf.logical_or(allowed, tf.logical_not(exists))
        # A product of float16 vectors overflows.
        found = super().call(
            [wide(hide(x, m)) for x, m in zip(inputs, hidden, strict=False)],
            mask=[query_mask, allowed],
            training=training,
            return_attention_scores=True,
        )
        if value_mask is not None:
            found = [tf.where(exists, x, tf.zeros([], x.dtype)) for x in found]
        output, scores = (tf.cast(x, self.compute_dtype) for x in found)
        return (output, scores) if return_attention_scores else output

    def _check_mask(self, mask: Any) -> None:
        name = type(self).__name__
        if not isinstance(mask, list | tuple):
            raise ValueError(
                f"{name} layer mask must be a list, namely [query_mask, value_mask]. "
                f"Received: mask={mask!r}. Either may be None, as in "
                "`mask=[None, mask]`."
            )
        if len(mask) not in (2, 3):
            raise ValueError(
                f"{name} layer accepts mask list of length 2 or 3. Received: {mask!r}."
            )

    def compute_mask(self, inputs: list[tf.Tensor], mask: Any = None) -> Any:
        """Returns the query's mask."""
        if mask is None:
            # Keras 3.3 looks for a mask at the list.
            return _compat.keras_mask(inputs[0])
        return super().compute_mask(inputs, mask)


def _allowed(inputs: list[tf.Tensor], mask: Any, is_causal: bool) -> tf.Tensor | None:
    """Returns which query may attend to which key, or None for all of them."""
    # With an axis for the queries: Keras 3.3 takes a mask without for theirs.
    allowed = None if mask is None else tf.cast(mask, tf.bool)[..., tf.newaxis, :]
    if is_causal:
        sizes = [tf.shape(x)[-2] for x in inputs[:2]]
        lower = tf.linalg.band_part(tf.ones([1, *sizes], tf.bool), -1, 0)
        allowed = lower if allowed is None else tf.logical_and(allowed, lower)
    return allowed


@member_of_family(_SHARED)
class Attention(_SafeAttention, keras.layers.Attention):
    """`keras.layers.Attention` for masks that leave no key, and for half precision.

    Args:
      *args: What `keras.layers.Attention` takes: `use_scale`, `score_mode`,
        `dropout`, `seed`.
      **kwargs: The same by name, and what every Keras layer takes.

    Numerics:
      no key for a query  value and weights 0, gradient 0; Keras averages the padding,
                          or gives NaN in float16
      NaN masked          in query, key or value: ignored, gradient 0
      mixed precision     computed in float32 and rounded once; a product of float16
                          vectors beyond 65504 does not overflow

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.constant([[[1.0], [2.0]]])
      >>> mask = [tf.constant([[True, True]]), tf.constant([[False, False]])]
      >>> print(layers.Attention()([x, x], mask=mask).numpy()[0, :, 0])
      [0. 0.]
    """


@member_of_family(_SHARED)
class AdditiveAttention(_SafeAttention, keras.layers.AdditiveAttention):
    """`keras.layers.AdditiveAttention` for masks that leave no key.

    Args:
      *args: What `keras.layers.AdditiveAttention` takes: `use_scale`, `dropout`.
      **kwargs: The same by name, and what every Keras layer takes.

    Numerics:
      no key for a query  value and weights 0, gradient 0; Keras averages the padding,
                          or gives NaN in float16
      NaN masked          in query, key or value: ignored, gradient 0
      mixed precision     computed in float32 and rounded once

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.constant([[[1.0], [2.0]]])
      >>> mask = [tf.constant([[True, True]]), tf.constant([[False, False]])]
      >>> print(layers.AdditiveAttention()([x, x], mask=mask).numpy()[0, :, 0])
      [0. 0.]
    """
