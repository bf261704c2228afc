"""Finds gradients that a `LossScaleOptimizer` skips but its scale cannot help."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import tensorflow as tf

from tfsafe.debugging.explain.training.layers import alive

_PREFIX = "gradient of "
# A scale that is halved so often began far too high.
_HALVINGS = 8


def fallen_scale() -> str:
    """Returns a warning of a `LossScaleOptimizer` whose scale began far too high.

    Each of its halvings is a step that it skipped, while all that is checked is
    finite.

    Returns:
      The warning; empty without one.
    """
    for each in alive(keras.optimizers.LossScaleOptimizer):
        if not getattr(each, "built", False):
            continue
        scale = float(keras.ops.convert_to_numpy(each.dynamic_scale))
        if not 0.0 < scale < each.initial_scale:
            continue
        halvings = round(math.log2(each.initial_scale / scale))
        if halvings >= _HALVINGS:
            return (
                f"LossScaleOptimizer skipped at least {halvings} steps, in which the "
                f"weights stayed as they were: its scale fell from "
                f"{each.initial_scale:.4g} to {scale:.4g}. Begin lower: "
                f"initial_scale=2.0**{math.floor(math.log2(scale))}."
            )
    return ""


def hidden_gradients(
    optimizer: Any, pairs: Iterable[tuple[Any, Any]]
) -> Iterator[tuple[str, tf.Tensor]]:
    """Notes the gradients that a step passes to a `LossScaleOptimizer`.

    It skips non-finite ones by design, and halves the scale. But a scale of 1 or less
    makes nothing larger: such gradients are non-finite by themselves, and the training
    would stop making progress without a message.

    Args:
      optimizer: The optimizer, which is built.
      pairs: Gradients and their variables.

    Yields:
      For each gradient its label and a number: 0, or NaN or infinite where the gradient
      is non-finite by itself.
    """
    # A smaller scale is allowed where gradients need it.
    smallest = min(1.0, getattr(optimizer, "minimum_scale", 1.0))
    is_mute = tf.convert_to_tensor(optimizer.dynamic_scale) <= smallest
    for gradient, variable in pairs:
        if gradient is not None:
            path = getattr(variable, "path", variable.name)
            yield _PREFIX + path, _nonfinite_part(gradient, is_mute)


def without_gradients(results: Any) -> Any:
    """Returns the results of a step, without the noted gradients."""
    if not isinstance(results, dict):
        return results
    return {
        name: value
        for name, value in results.items()
        if not str(name).startswith(_PREFIX)
    }


def _nonfinite_part(gradient: Any, is_mute: tf.Tensor) -> tf.Tensor:
    values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    zeros = tf.zeros_like(values)
    nonfinite = tf.reduce_sum(tf.where(tf.math.is_finite(values), zeros, values))
    return tf.where(is_mute, nonfinite, tf.zeros_like(nonfinite))
