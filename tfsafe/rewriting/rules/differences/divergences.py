"""Recognises divergences: weighted logarithms whose first-order terms cancel."""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import DIVISIONS
from tfsafe.ops.formulas.differences import tangents
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space.analysis import logarithms
from tfsafe.rewriting.match.linear import (
    Group,
    Part,
    merged,
    minus,
    parts,
    same_sizes,
    total,
)

_Ratio = tuple[tf.Tensor, tf.Tensor]


def of_product(reader: Reader, part: Part, op: tf.Operation) -> Iterator[Group]:
    """Yields `x * log(x / y) - x + y`, for a part that is a product."""
    for x, log in both_ways(op):
        yield from _entropy(reader, part, x, _ratio_of_log(reader, log))
        yield from _entropy_near_one(reader, part, x, reader.op(log))


def of_xlogy(reader: Reader, part: Part, op: tf.Operation) -> Iterator[Group]:
    """Yields `xlogy(x, x / y) - x + y`."""
    yield from _entropy(reader, part, op.inputs[0], _ratio(reader, op.inputs[1]))


def summed(reader: Reader, x: tf.Tensor, part: Part) -> list[Part]:
    """Returns the parts of an argument, summed as the function of it is."""
    found = parts(reader, x)
    if part.axes is None:
        return found
    return [Part(1.0, x, part.axes, part.keepdims)]


def _ratio_of_log(reader: Reader, tensor: tf.Tensor) -> _Ratio | None:
    """Reads `log(a / b)` and `log(a) - log(b)`."""
    op = reader.op(tensor)
    if op.type == "Log":
        return _ratio(reader, op.inputs[0])
    if op.type == "Sub":
        a, b = (reader.op(each) for each in op.inputs)
        if a.type == b.type == "Log":
            return a.inputs[0], b.inputs[0]
    return None


def _ratio(reader: Reader, tensor: tf.Tensor) -> _Ratio | None:
    op = reader.op(tensor)
    return (op.inputs[0], op.inputs[1]) if op.type in DIVISIONS else None


def _entropy(
    reader: Reader, part: Part, x: tf.Tensor, ratio: _Ratio | None
) -> Iterator[Group]:
    """Yields `x log(x / y) - x + y`."""
    if ratio is None or not reader.same(x, ratio[0]) or not line_up(part, *ratio):
        return
    y = ratio[1]
    wanted = [
        each._replace(factor=sign * part.factor * each.factor)
        for sign, tensor in ((-1, x), (1, y))
        for each in summed(reader, tensor, part)
    ]
    yield Group(
        [part, *wanted],
        part,
        _bregman(reader, *ratio),
    )


def _entropy_near_one(
    reader: Reader, part: Part, x: tf.Tensor, log: tf.Operation
) -> Iterator[Group]:
    """Yields `x log(x) - x + 1` and `(1 + y) log1p(y) - y`."""
    if part.axes is not None or log.type not in {"Log", "Log1p"}:
        return
    step, inside = parts(reader, x), parts(reader, log.inputs[0])
    step = merged(reader, [*step, Part(-1.0, None)])
    if log.type == "Log":
        inside = [*inside, Part(-1.0, None)]
    if merged(reader, [*step, *minus(inside)]):
        return
    wanted = [each._replace(factor=-part.factor * each.factor) for each in step]

    def build(value: Value) -> tf.Tensor:
        a = value(x)
        difference = total(step, value, x) + tf.zeros_like(a)
        return tangents.bregman_of_entropy(a, tf.ones_like(a), difference)

    yield Group([part, *wanted], part, build)


def _bregman(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> Build:
    """Returns how to build `x log(x / y) - x + y`."""
    left = merged(reader, [*parts(reader, x), *minus(parts(reader, y))])
    log_ratio = _log_ratio(reader, x, y)

    def build(value: Value) -> tf.Tensor:
        a, b = value(x), value(y)
        difference = total(left, value, x) + tf.zeros_like(a)
        known = [] if log_ratio is None else [log_ratio(value) + tf.zeros_like(a)]
        return tangents.bregman_of_entropy(a, b, difference, *known)

    return build


def _log_ratio(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> Build | None:
    """Returns how to build `log(x / y)` of two probabilities or exponentials."""
    a, b = (logarithms(reader).of(each) for each in (x, y))
    if a is None or b is None or not (a.name and b.name):
        return None
    if not all(each.is_nonnegative and not each.is_partial for each in (a, b)):
        return None
    return lambda value: a.whole_log(value) - b.whole_log(value)


class _WeightedLog(NamedTuple):
    """A part `x log(x / y)` of a sum, or the two parts `x log(x) - x log(y)`."""

    parts: Sequence[Part]
    x: tf.Tensor
    y: tf.Tensor


def of_all(reader: Reader, found: Sequence[Part]) -> Iterator[Group]:
    """Yields `p log(p / q) + (1 - p) log((1 - p) / (1 - q))` and the like.

    Each logarithm is that of `x log(x / y) - x + y` where the rest cancels.
    """
    logs = list(_weighted_logs(reader, found))
    if len(logs) < 2:
        return
    first = logs[0].parts[0]
    rest = [
        each._replace(factor=log.parts[0].factor * each.factor)
        for log in logs
        for each in (*parts(reader, log.x), *minus(parts(reader, log.y)))
    ]
    is_alike = all(
        (p.axes, p.keepdims) == (first.axes, first.keepdims)
        and line_up(p, log.x, log.y)
        for log in logs
        for p in log.parts
    )
    if merged(reader, rest) or not is_alike:
        return

    def build(value: Value) -> tf.Tensor:
        terms = [
            log.parts[0].factor * _bregman(reader, log.x, log.y)(value) for log in logs
        ]
        return functools.reduce(tf.add, terms)

    yield Group(
        [each for log in logs for each in log.parts], first._replace(factor=1.0), build
    )


def _weighted_logs(reader: Reader, found: Sequence[Part]) -> Iterator[_WeightedLog]:
    single: list[tuple[Part, tf.Tensor, tf.Tensor]] = []
    for part in found:
        op = reader.op(part.tensor) if part.tensor is not None else None
        for x, log in both_ways(op, "Mul") if op is not None else ():
            inner = reader.op(log)
            ratio = _ratio_of_log(reader, log)
            if ratio is not None and reader.same(x, ratio[0]):
                yield _WeightedLog([part], *ratio)
                break
            if inner.type == "Log" and reader.op(x).type != "Log":
                single.append((part, x, inner.inputs[0]))
                break
    for part, x, y in single:
        for other, z, inside in single:
            is_pair = abs(part.factor + other.factor) < 1e-6 * abs(part.factor)
            if is_pair and reader.same(x, z) and reader.same(z, inside):
                yield _WeightedLog([other, part], x, y)
                break


def line_up(part: Part, a: tf.Tensor, b: tf.Tensor) -> bool:
    """Returns whether what is summed over axes is not repeated along them."""
    return part.axes is None or same_sizes(a.shape, b.shape, part.axes)
