"""The rule for differences of raw moments that have no exact form without them."""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import SUMS, raw_kernel
from tfsafe.ops.kernels.statistics.moments import normalised, without_rounding
from tfsafe.rewriting.analysis.raw_moments import LINEAR, is_difference, whole_power
from tfsafe.rewriting.engine.rule import Build, Rule, Value, first
from tfsafe.rewriting.facts.tensors import NARROW, Reader
from tfsafe.rewriting.log_space import probabilities
from tfsafe.rewriting.log_space.analysis import logarithms
from tfsafe.rewriting.log_space.form import Widened
from tfsafe.rewriting.match.arithmetic import square_of
from tfsafe.rewriting.rules import references
from tfsafe.rewriting.rules.masks import empty_sums

_DEPTH = 24
# Weights whose sum is that near to 1 are meant to add up to 1.
_ROUNDED = 1e-5


def _match(op: tf.Operation, reader: Reader, parts: Sequence[Rule]) -> Build | None:
    return _Wide(op, reader, parts).build if is_difference(reader, op) else None


def _kernel(
    op: tf.Operation, reader: Reader
) -> Callable[[Sequence[tf.Tensor]], tf.Tensor]:
    # An empty sum over an empty count is 0, in float64 as in float32.
    if first([empty_sums.FRACTION_OF_ZERO], op, reader) is not None:
        return lambda inputs: ops.xdivy(*inputs)
    return lambda inputs: raw_kernel(op)(inputs)[0]


class _Wide:
    """A formula that is computed in float64."""

    def __init__(self, op: tf.Operation, reader: Reader, parts: Sequence[Rule]):
        self._op = op
        self._parts = parts
        self._reader = reader

    def build(self, value: Value) -> tf.Tensor:
        """Builds the result, rounded once."""
        made: dict[str, tf.Tensor] = {}

        def wide(tensor: tf.Tensor, depth: int) -> tf.Tensor:
            source = self._reader.source(tensor)
            if source.name not in made:
                made[source.name] = compute(source, depth)
            return made[source.name]

        def compute(tensor: tf.Tensor, depth: int) -> tf.Tensor:
            op = tensor.op
            if tensor.dtype not in NARROW:
                return value(tensor)
            root = square_of(self._reader, tensor)
            if depth and root is not None:
                return tf.square(wide(root, depth - 1))
            found = first(self._parts, op, self._reader) if depth else None
            if found is not None:
                return found[1](Widened(lambda x: wide(x, depth - 1), tf.float64))
            is_inside = op.type in LINEAR or whole_power(self._reader, op) is not None
            if depth and is_inside and self._weights(op) is None:
                inputs = [wide(each, depth - 1) for each in op.inputs]
                result = _kernel(op, self._reader)(inputs)
                if is_difference(self._reader, op):
                    return without_rounding(result, inputs[0])
                return result
            scale = self._weights(op) or self._constant_weights(tensor)
            x = tf.cast(value(tensor), tf.float64)
            return x if scale is None else scale(x)

        whole = self._op.outputs[0]
        return tf.cast(compute(whole, _DEPTH), whole.dtype)

    def _weights(self, op: tf.Operation) -> Callable[[tf.Tensor], tf.Tensor] | None:
        """Returns how to make the weights of a softmax add up to 1 in float64."""
        found = probabilities.softmax_of(op, logarithms(self._reader))
        if found is None:
            return None
        axis = found.axis
        return lambda x: normalised(x, axis)

    def _constant_weights(
        self, tensor: tf.Tensor
    ) -> Callable[[tf.Tensor], tf.Tensor] | None:
        """Returns how to scale constant weights, such as a filter's, that add up to 1.

        The last two axes of a filter are those of the channels.
        """
        number = self._reader.constant(tensor)
        if number is None or number.size < 2:
            return None
        axes = tuple(range(max(number.ndim - 2, 1)))
        total = number.astype(np.float64).sum(axes, keepdims=True)
        if not np.all(np.abs(total - 1) < _ROUNDED):
            return None
        return lambda x: x / total


def rule(parts: Sequence[Rule]) -> Rule:
    """Returns the rule for differences of raw moments.

    Args:
      parts: Rules for logarithms in them, which can be made in float64.
    """
    return Rule(
        name="raw-moments",
        before="sum(w * x * x) - sum(w * x) ** 2, avg_pool(x * y) - avg_pool(x) * "
        "avg_pool(y), matmul(x, x) / n - mean(x) * mean(x), cumsum(x * x) / n - ...",
        after="the same, computed in float64 and rounded once",
        fails_when="the means are much larger than the spread: no digit is left",
        reference=references.VARIANCE,
        op_types=SUMS,
        match=functools.partial(_match, parts=parts),
    )
