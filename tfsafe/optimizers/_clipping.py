"""Clipping within a wrapper, where the norm of the gradients cannot overflow."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe.ops.nn import clipping
from tfsafe.optimizers import _gradient_check
from tfsafe.optimizers._delegation import DelegatingOptimizer


class ClippingOptimizer(DelegatingOptimizer):
    """A wrapper that clips, if it is told to, in the inner optimizer's place.

    Subclasses call `_set_clipping` once there is an `inner_optimizer`.
    """

    # Until `_set_clipping`, while Keras' constructor sets its defaults.
    _clips: bool = False
    _own_clipnorm: float | None
    _own_global_clipnorm: float | None

    def _set_clipping(
        self, clipnorm: float | None, global_clipnorm: float | None
    ) -> None:
        self._own_clipnorm = clipnorm
        self._own_global_clipnorm = global_clipnorm
        # For good: later settings of the attributes go where the first ones went, so
        # that nothing is clipped twice.
        self._clips = clipnorm is not None or global_clipnorm is not None

    @property
    def _clip_norm(self) -> float | None:
        if not self._clips:
            return None
        return self._own_clipnorm or self._own_global_clipnorm or None

    def _lets_all_finite_pass(self) -> bool:
        """Returns whether the clipping leaves nothing above the default limits."""
        largest = _gradient_check.DEFAULT_LIMITS["float32"]
        return self._clip_norm is not None and self._clip_norm <= largest

    def _clipped(self, grads: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Clips as Keras would, but leaves out what are no gradients."""
        result = list(grads)
        clip_norm = self._clip_norm
        if clip_norm is None:
            return result
        clipped = [
            index
            for index, variable in enumerate(variables)
            if grads[index] is not None and not _gradient_check.is_overwritten(variable)
        ]
        # The inner optimizer divides by the scale only afterwards.
        clip_norm *= self.loss_scale_factor or 1.0
        clip = clipping.clip_each if self._own_clipnorm else clipping.clip_together
        known = [_with_shape(grads[index], variables[index]) for index in clipped]
        for index, gradient in zip(clipped, clip(known, clip_norm), strict=True):
            result[index] = gradient
        return result


def _with_shape(gradient: Any, variable: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices) and gradient.dense_shape is None:
        shape = tf.constant(tuple(variable.shape), gradient.indices.dtype)
        return tf.IndexedSlices(gradient.values, gradient.indices, shape)
    return gradient


def _own_or_delegated(name: str) -> property:
    own, inner = f"_own_{name}", getattr(DelegatingOptimizer, name)

    def read(optimizer: ClippingOptimizer) -> Any:
        if optimizer._clips:
            return getattr(optimizer, own)
        return inner.fget(optimizer)

    def write(optimizer: ClippingOptimizer, value: Any) -> None:
        if optimizer._clips:
            setattr(optimizer, own, value)
        else:
            inner.fset(optimizer, value)

    return property(
        read, write, doc=f"`{name}` of whichever clips: the wrapper or the inner one."
    )


for _name in ("clipnorm", "global_clipnorm"):
    setattr(ClippingOptimizer, _name, _own_or_delegated(_name))
