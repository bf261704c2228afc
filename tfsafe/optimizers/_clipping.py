"""Clips gradients by a norm that cannot overflow."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe.ops.nn import clipping
from tfsafe.optimizers import _gradient_check


class GradientClipping:
    """Clips in place of the inner optimizer, if one of two norms is given.

    Attributes:
      is_on: Whether a norm was given. It stays so, whatever is assigned to the norms
        later: the inner optimizer never clips then, and nothing is clipped twice.
    """

    def __init__(self, clipnorm: float | None, global_clipnorm: float | None):
        self.clipnorm = clipnorm
        self.global_clipnorm = global_clipnorm
        self.is_on = clipnorm is not None or global_clipnorm is not None

    def lets_all_finite_pass(self) -> bool:
        """Returns whether no clipped gradient exceeds the default limits."""
        largest = _gradient_check.DEFAULT_LIMITS["float32"]
        norm = self._norm
        return norm is not None and norm <= largest

    def clip(
        self,
        grads: Sequence[Any],
        variables: Sequence[Any],
        scale: float | None,
        halves: Sequence[tf.Tensor | None],
        is_replaced: tf.Tensor,
    ) -> list[Any]:
        """Returns the gradients, clipped as Keras would clip them.

        Args:
          grads: `Tensor`, `IndexedSlices` or None for each variable.
          variables: The variables. Those that are overwritten are not clipped.
          scale: Factor by which the loss was scaled, and the gradients with it, or
            None. The inner optimizer divides by it after the clipping.
          halves: `half_squares` of the gradients before elements were replaced.
          is_replaced: Whether any were.
        """
        result = list(grads)
        norm = self._norm
        if norm is None:
            return result
        clipped = [
            index
            for index, variable in enumerate(variables)
            if grads[index] is not None and not _gradient_check.is_overwritten(variable)
        ]
        clip = clipping.clip_each if self.clipnorm else clipping.clip_together
        known = [_with_shape(grads[index], variables[index]) for index in clipped]
        scaled_norm = norm * (scale or 1.0)
        known_halves = [halves[index] for index in clipped]
        results = clip(known, scaled_norm, known_halves, ~is_replaced)
        for index, gradient in zip(clipped, results, strict=True):
            result[index] = gradient
        return result

    @property
    def _norm(self) -> float | None:
        return self.clipnorm or self.global_clipnorm or None


def _with_shape(gradient: Any, variable: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices) and gradient.dense_shape is None:
        shape = tf.constant(tuple(variable.shape), gradient.indices.dtype)
        return tf.IndexedSlices(gradient.values, gradient.indices, shape)
    return gradient
