"""The rule for the entropy of a mean less the mean entropy.

It is the mean divergence from the mean, and small where the distributions are alike.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe._limits import LIMITS
from tfsafe.graph import SUMS
from tfsafe.ops.formulas.differences import tangents
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import NARROW, Reader, both_ways
from tfsafe.rewriting.match.arithmetic import terms
from tfsafe.rewriting.match.linear import Part, merged, minus, parts, total
from tfsafe.rewriting.match.reductions import single_mean

# Numbers up to this one keep a logarithm off 0; probabilities are to be far above.
_LARGEST_EPSILON = 1e-5
_FAR_ABOVE = 1e4
_MOST_TERMS = 4


class _Entropy(NamedTuple):
    """A number times `x * log(x + epsilon)`, averaged and summed over axes of x."""

    factor: float
    x: Sequence[Part]
    mean: frozenset[int]
    summed: frozenset[int]
    epsilon: float


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    if op.outputs[0].dtype not in NARROW:
        return None
    found = parts(reader, op.outputs[0])
    if not 2 <= len(found) <= _MOST_TERMS:
        return None
    of_means, means_of = [], []
    for part in found:
        inside = _entropies(reader, part)
        one = None if inside else _of_mean(reader, part)
        if not inside and one is None:
            return None
        means_of += inside
        of_means += [] if one is None else [one]
    pairs = [_pair(reader, each, of_means) for each in means_of]
    if not pairs or len(pairs) != len(of_means) or not all(pairs):
        return None
    return _built(op.outputs[0], found, means_of, reader)


def _pair(reader: Reader, one: _Entropy, others: Sequence[_Entropy]) -> bool:
    """Returns whether one of the entropies of a mean belongs to a mean entropy."""
    return any(
        abs(one.factor + other.factor) < 1e-6 * abs(one.factor)
        and (one.mean, one.summed) == (other.mean, other.summed)
        and not merged(reader, [*one.x, *minus(other.x)])
        for other in others
    )


class _Product(NamedTuple):
    """A number times `x * log(x + epsilon)`."""

    factor: float
    x: tf.Tensor
    epsilon: float = 0.0


def _log_inside(reader: Reader, tensor: tf.Tensor | None) -> _Product | None:
    op = None if tensor is None else reader.op(tensor)
    if op is None:
        return None
    if op.type == "Xlogy" and reader.same(*op.inputs):
        return _Product(1.0, op.inputs[0])
    for whole, log in both_ways(op, "Mul"):
        found, inner = terms(reader, whole), reader.op(log)
        if inner.type not in {"Log", "LogSoftmax"}:
            continue
        (factor, x), inside = (1.0, whole), inner.inputs[0]
        if len(found) == 1:
            factor, x = found[0]
        if inner.type == "LogSoftmax":
            softmax = reader.op(x)
            if softmax.type == "Softmax" and reader.same(softmax.inputs[0], inside):
                return _Product(factor, x)
        elif reader.same(x, inside):
            return _Product(factor, x)
        else:
            epsilon = _less(reader, inside, x)
            if epsilon is not None:
                return _Product(factor, x, epsilon)
    return None


def _less(reader: Reader, tensor: tf.Tensor, x: tf.Tensor) -> float | None:
    """Returns the small number that a tensor is more than another."""
    for inner, number in both_ways(reader.op(tensor), "Add", "AddV2"):
        epsilon = reader.scalar(number)
        if epsilon is not None and 0 < epsilon <= _LARGEST_EPSILON:
            return epsilon if reader.same(inner, x) else None
    return None


class _Layout(list[int | None]):
    """The axes of a tensor that are left, as places in its shape."""

    def reduced(self, axes: Sequence[int], *, keepdims: bool) -> frozenset[int]:
        """Takes axes away, counted from the front; returns which they are."""
        gone = [self[axis] for axis in axes]
        self[:] = [
            None if each in gone else each
            for each in self
            if keepdims or each not in gone
        ]
        return frozenset(each for each in gone if each is not None)


def _of_mean(reader: Reader, part: Part) -> _Entropy | None:
    """Reads the entropy of a mean; x is what the mean is taken of."""
    found = _log_inside(reader, part.tensor)
    if found is None:
        return None
    number, x, epsilon = found
    # `1 - mean(p)` is the mean of `1 - p`.
    numbers = [each for each in parts(reader, x) if each.tensor is None]
    others = [each for each in parts(reader, x) if each.tensor is not None]
    if len(others) != 1 or others[0].axes is not None:
        return None
    mean = single_mean(reader, others[0].tensor)
    if mean is None or mean.axes is None or mean.x.shape.rank is None:
        return None
    inside = numbers + [
        each._replace(factor=others[0].factor * each.factor)
        for each in parts(reader, mean.x)
    ]
    layout = _Layout(range(mean.x.shape.rank))
    over = layout.reduced(mean.axes, keepdims=mean.keepdims)
    axes = [len(layout) + axis for axis in part.axes or ()]
    summed = layout.reduced(axes, keepdims=part.keepdims)
    return _Entropy(number * part.factor, inside, over, summed, epsilon)


def _entropies(reader: Reader, part: Part) -> list[_Entropy]:
    """Reads the terms of a mean entropy; x is the mean of what each is taken of."""
    mean = None if part.tensor is None else single_mean(reader, part.tensor)
    if mean is None or mean.axes is None:
        return []
    made = []
    for inner in parts(reader, mean.x):
        found = _log_inside(reader, inner.tensor)
        if found is None or found.x.shape.rank is None:
            return []
        number, x, epsilon = found
        layout = _Layout(range(x.shape.rank))
        axes = [len(layout) + axis for axis in inner.axes or ()]
        summed = layout.reduced(axes, keepdims=inner.keepdims)
        over = layout.reduced(mean.axes, keepdims=mean.keepdims)
        axes = [len(layout) + axis for axis in part.axes or ()]
        summed |= layout.reduced(axes, keepdims=part.keepdims)
        factor = number * part.factor * inner.factor
        made.append(_Entropy(factor, parts(reader, x), over, summed, epsilon))
    return made


def _in_float64(reader: Reader, part: Part, value: Value) -> tf.Tensor:
    """Builds a part; probabilities from their logits."""
    if part.tensor is None:
        return tf.constant(part.factor, tf.float64)
    op = reader.op(part.tensor)
    function = _PROBABILITIES.get(op.type)
    if function is None:
        return part.scaled(tf.cast(value(part.tensor), tf.float64))
    return part.scaled(function(tf.cast(value(op.inputs[0]), tf.float64)))


def _built(
    whole: tf.Tensor,
    found: Sequence[Part],
    entropies: Sequence[_Entropy],
    reader: Reader,
) -> Build:
    lowest = LIMITS[whole.dtype.name].tiny

    def build(value: Value) -> tf.Tensor:
        terms = [
            tangents.EntropyOfMean(
                entropy.factor,
                functools.reduce(
                    tf.add, [_in_float64(reader, each, value) for each in entropy.x]
                ),
                sorted(entropy.mean),
                sorted(entropy.summed),
                max(lowest, _FAR_ABOVE * entropy.epsilon),
            )
            for entropy in entropies
        ]
        return tangents.mutual_information(terms, total(found, value, whole))

    return build


_PROBABILITIES = {"Sigmoid": tf.sigmoid, "Softmax": tf.nn.softmax}
RULES = (
    Rule(
        name="mutual-information",
        before="-sum(m * log(m)) + mean(sum(p * log(p))) with m = mean(p)",
        after="mean(sum(p * log(p / m) - p + m)), computed in float64 and rounded once",
        fails_when="the members of the ensemble are nearly equal",
        reference="Houlsby et al., Bayesian Active Learning for Classification and "
        "Preference Learning, 2011",
        op_types=SUMS,
        match=_match,
    ),
)
