"""Notes what the optimizer of a step receives and does, as results of the step."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe.debugging.explain.training.history import (
    HALF_OF_SQUARES,
    LARGEST_UPDATE,
    bits,
)
from tfsafe.debugging.models import loss_scale

# Variables of so many bytes are not kept twice to see how far they move.
_LARGE = 2**26


@contextlib.contextmanager
def noted(optimizer: Any, level: str) -> Iterator[dict[str, tf.Tensor]]:
    """Notes what a step passes to an optimizer.

    A step at level `watch` computes one sum of squares a gradient, and of these one
    sum; it keeps no copy of a weight. A `SafeOptimizer` has these sums, and TensorFlow
    computes equal operations of a graph once.

    Args:
      optimizer: The optimizer of the step; None notes nothing.
      level: Level of the checks.

    Yields:
      The numbers by their labels, once the step is taken: half the sum of the squares
      of all gradients, the largest change of a weight, and
      `loss_scale.hidden_gradients`. The first two are `bits`: no check fails at them.
    """
    found: dict[str, tf.Tensor] = {}
    is_scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    is_looked_at = level != "watch"
    if not hasattr(optimizer, "apply"):
        yield found
        return
    apply, graph = optimizer.apply, _graph()

    def wrapped(grads: Any, trainable_variables: Any = None) -> Any:
        grads = list(grads)
        # A tensor of a branch or a loop cannot be used outside of it.
        is_known = optimizer.built or not is_scaled
        if not is_known or trainable_variables is None or _graph() is not graph:
            return apply(grads, trainable_variables)
        variables = list(trainable_variables)
        if is_scaled:
            pairs = zip(grads, variables, strict=False)
            found.update(loss_scale.hidden_gradients(optimizer, pairs))
        half = _half_of_squares(grads)
        if is_scaled:
            half /= tf.square(optimizer.dynamic_scale)
        found[HALF_OF_SQUARES] = bits(half)
        old = _values(variables) if is_looked_at else []
        result = apply(grads, variables)
        if old:
            moves = zip(old, _values(variables), strict=True)
            largest = [tf.reduce_max(tf.abs(new - each)) for each, new in moves]
            found[LARGEST_UPDATE] = bits(tf.reduce_max(tf.stack(largest)))
        return result

    optimizer.apply = wrapped
    try:
        yield found
    finally:
        del optimizer.apply


def _half_of_squares(gradients: Sequence[Any]) -> tf.Tensor:
    halves = []
    for each in gradients:
        values = each.values if isinstance(each, tf.IndexedSlices) else each
        if values is not None and values.dtype.is_floating:
            if values.dtype.size < 4:
                values = tf.cast(values, tf.float32)
            halves.append(tf.cast(tf.nn.l2_loss(values), tf.float32))
    return tf.add_n(halves) if halves else tf.zeros([])


def _values(variables: Sequence[Any]) -> list[tf.Tensor]:
    """Returns the values of variables in float32; none if they are large."""
    sizes = [math.prod(each.shape) for each in variables]
    if 4 * sum(sizes) > _LARGE:
        return []
    return [
        tf.cast(tf.convert_to_tensor(each), tf.float32)
        for each, size in zip(variables, sizes, strict=True)
        if size
    ]


def _graph() -> Any:
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
