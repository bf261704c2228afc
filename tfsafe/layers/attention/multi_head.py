"""Makes Keras' attention with several heads safe for masks that leave no key."""

import math
import string
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat, ops
from tfsafe.layers.core.masking import hide
from tfsafe.layers.options import member_of_family
from tfsafe.ops.kernels.precision import wide

# Mixin; the Keras layer comes next in the MRO.
_KerasLayer: Any = object


_SHARED = """
    Call arguments:
      query: Tensor of shape `(batch, Tq, dim)`.
      value: Tensor of shape `(batch, Tv, dim)`.
      key: Tensor of that shape; the value if None.
      query_mask: Booleans of shape `(batch, Tq)`.
      value_mask: Booleans of shape `(batch, Tv)`.
      key_mask: The same of the key.
      attention_mask: Booleans of shape `(batch, Tq, Tv)`, or `(Tq, Tv)` for the whole
        batch, or with an axis for the heads after the batch, or of a shape that
        broadcasts to it.
      return_attention_scores: Whether to return the weights as well.
      training: Whether to drop.
      use_causal_mask: Whether a query sees the keys up to its own position only.

    Numerics:
      no key for a query  every head gives 0, with gradient 0, with and without
                          `return_attention_scores`; Keras averages the padding
      NaN masked          in queries without a key and in keys without a query: ignored,
                          gradient 0, in the weights of the projections too
      mixed precision     the logits are computed in float32, where they cannot
                          overflow
    """


class _SafeHeads(_KerasLayer):
    """Masks the inputs of a Keras attention layer with heads; scores in float32."""

    def call(
        self,
        query: tf.Tensor,
        value: tf.Tensor,
        key: tf.Tensor | None = None,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
        attention_mask: Any = None,
        return_attention_scores: bool = False,
        training: Any = None,
        use_causal_mask: bool = False,
    ) -> Any:
        """Returns the attention's output, and the weights if requested."""
        given = query, value, key
        allowed = _merged(query_mask, value_mask, key_mask, attention_mask)
        if allowed is not None:
            axes = self._attended(query.shape.rank + 1)
            if len(axes) == query.shape.rank - 2:
                queries, keys = _used(allowed, len(axes))
                query, value = hide(query, queries), hide(value, keys)
                key = None if key is None else hide(key, keys)
        copies: list[tuple[Any, Any]] = []
        if isinstance(self, keras.layers.MultiHeadAttention):
            pairs = zip(given, (query, value, key), strict=True)
            copies = [(tensor, copy) for tensor, copy in pairs if tensor is not copy]
        for tensor, copy in copies:
            _compat.set_keras_mask(copy, _compat.keras_mask(tensor))
        # Keras 3.3 warns of a projection that drops a mask; they are all in `allowed`.
        for projection in _compat.sublayers(self):
            projection.supports_masking = True
        outputs = super().call(
            query,
            value,
            key,
            attention_mask=allowed,
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
        )
        # That of Keras takes the masks away from its inputs: of `x + attention(x, x)`
        # the sum has none.
        for tensor, copy in copies:
            _compat.set_keras_mask(tensor, _compat.keras_mask(copy))
        return outputs

    # Keras documents this method as the one to override.
    def _compute_attention(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        attention_mask: Any = None,
        training: Any = None,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        # Keras' own chooses between two computations, which differ where a query has no
        # key. This one returns the weights, with and without
        # `return_attention_scores`.
        del return_attention_scores
        query, key, value = map(tf.convert_to_tensor, (query, key, value))
        axes = self._attended(query.shape.rank)
        to_scores, to_output = _equations(query.shape.rank, axes)
        dtype = query.dtype
        scale = 1 / math.sqrt(query.shape[-1])
        # A product of float16 vectors overflows.
        scores = tf.einsum(to_scores, wide(query) * scale, wide(key))
        if use_causal_mask:
            # Keras' `call` merges it into the mask; a subclass may call this directly.
            sizes = tf.shape(scores)[-2:]
            causal = tf.linalg.band_part(tf.ones(sizes, tf.bool), -1, 0)
            attention_mask = _merged(None, None, None, attention_mask, causal)
        if attention_mask is not None:
            attention_mask = tf.cast(attention_mask, tf.bool)
            missing = scores.shape.rank - attention_mask.shape.rank
            for heads in [-2 * len(axes) - 1] * missing:
                attention_mask = tf.expand_dims(attention_mask, heads)
        over = range(-len(axes), 0)
        weights = tf.cast(ops.softmax(scores, list(over), mask=attention_mask), dtype)
        dropped = _compat.attention_dropout(self)(weights, training=training)
        return tf.einsum(to_output, dropped, value), weights

    def _attended(self, rank: int) -> list[int]:
        """Returns the axes of a projected tensor that are attended over."""
        axes = getattr(self, "attention_axes", None) or range(1, rank - 2)
        return [axis % (rank - 1) for axis in axes]


def _merged(query: Any, value: Any, key: Any, *attention: Any) -> tf.Tensor | None:
    """Returns what may attend to what, of shape `(batch, Tq, Tv)`, or None for all."""
    parts = [
        None if query is None else query[..., tf.newaxis],
        None if value is None else value[..., tf.newaxis, :],
        None if key is None else key[..., tf.newaxis, :],
        *attention,
    ]
    allowed = None
    for part in parts:
        if part is not None:
            part = tf.cast(part, tf.bool)
            allowed = part if allowed is None else tf.logical_and(allowed, part)
    return allowed


def _used(allowed: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns which queries have a key, and which keys have a query, in any head."""
    if allowed.shape.rank == 2 * count + 2:
        allowed = tf.reduce_any(allowed, 1)
    if allowed.shape.rank == 2 * count:
        # One mask for the whole batch.
        allowed = allowed[tf.newaxis]
    keys = list(range(-count, 0))
    queries = list(range(-2 * count, -count))
    return tf.reduce_any(allowed, keys), tf.reduce_any(allowed, queries)


def _equations(rank: int, axes: Sequence[int]) -> tuple[str, str]:
    """Returns the products of queries and keys, and of weights and values."""
    query = string.ascii_lowercase[:rank]
    key = "".join(c.upper() if i in axes else c for i, c in enumerate(query))
    shared = "".join(query[i] for i in range(rank - 1) if i not in axes)
    both = "".join([query[i] for i in axes] + [key[i] for i in axes])
    scores = shared + both
    return f"{query},{key}->{scores}", f"{scores},{key}->{query}"


@member_of_family(_SHARED)
class MultiHeadAttention(_SafeHeads, keras.layers.MultiHeadAttention):
    """`keras.layers.MultiHeadAttention` for masks that leave no key.

    Args:
      num_heads: Number of heads.
      key_dim: Size of a query and of a key in each head.
      *args: What `keras.layers.MultiHeadAttention` takes next.
      **kwargs: The same by name: `value_dim`, `dropout`, `use_bias`, and more.

    Output shape:
      `(batch, Tq, dim)`; the weights are of shape `(batch, heads, Tq, Tv)`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> attention = layers.MultiHeadAttention(2, 3)
      >>> x, mask = tf.ones([1, 2, 4]), tf.constant([[False, False]])
      >>> print(attention(x, x, value_mask=mask).numpy())
      [[[0. 0. 0. 0.]
        [0. 0. 0. 0.]]]
    """


@member_of_family(_SHARED)
class GroupQueryAttention(_SafeHeads, keras.layers.GroupQueryAttention):
    """`keras.layers.GroupQueryAttention` for masks that leave no key.

    Args:
      head_dim: Size of a query, a key and a value in each head.
      num_query_heads: Number of heads of the query.
      num_key_value_heads: Number of heads of key and value; a divisor of it.
      *args: What `keras.layers.GroupQueryAttention` takes next.
      **kwargs: The same by name: `dropout`, `use_bias`, and more.

    Output shape:
      `(batch, Tq, dim)`; the weights are of shape `(batch, query heads, Tq, Tv)`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> attention = layers.GroupQueryAttention(3, 4, 2)
      >>> x, mask = tf.ones([1, 2, 4]), tf.constant([[False, False]])
      >>> print(attention(x, x, value_mask=mask).numpy())
      [[[0. 0. 0. 0.]
        [0. 0. 0. 0.]]]
    """
