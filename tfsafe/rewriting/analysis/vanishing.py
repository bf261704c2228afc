"""Finds the tensors with which a product, a sum or a norm vanishes."""

import itertools
from collections.abc import Iterator

import tensorflow as tf

from tfsafe.graph import ADDITIONS, DIVISIONS, SEGMENT_SUMS, OpFact, op_types
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import number
from tfsafe.rewriting.match.reductions import reduction, single_mean

# The degree of the result in one of degree 1.
_POWERS = {"Abs": 1.0, "Neg": 1.0, "Square": 2.0, "Sqrt": 0.5}
_REDUCTIONS = {"Sum", "Mean", "EuclideanNorm", *SEGMENT_SUMS}
_PASSED = _REDUCTIONS | op_types(OpFact.RESHAPES) | {"BroadcastTo", "Tile"}
# Deeper formulas and longer ones are left alone.
_DEPTH, _MOST = 10, 64


def factors(reader: Reader, tensor: tf.Tensor) -> list[tuple[tf.Tensor, float]]:
    """Returns tensors that are 0 only where `tensor` is, with their degrees.

    A product of others is taken apart, through sums over axes, roots and squares.
    """
    found = list(itertools.islice(_factors(reader, tensor, 1.0, _DEPTH), _MOST + 1))
    return found if len(found) <= _MOST else [(reader.source(tensor), 1.0)]


def _factors(
    reader: Reader, tensor: tf.Tensor, degree: float, depth: int
) -> Iterator[tuple[tf.Tensor, float]]:
    op = reader.op(tensor)
    if reader.constant(tensor) is not None:
        return
    inner = _parts(reader, op, degree) if depth else []
    if not inner:
        yield reader.source(tensor), degree
    for each, power in inner:
        yield from _factors(reader, each, power, depth - 1)


def _parts(
    reader: Reader, op: tf.Operation, degree: float
) -> list[tuple[tf.Tensor, float]]:
    if op.type == "Mul":
        return [(each, degree) for each in op.inputs]
    power = _POWERS.get(op.type, 1.0 if op.type in _PASSED else 0.0)
    if op.type == "Pow":
        power = reader.scalar(op.inputs[1]) or 0.0
    elif op.type in DIVISIONS:
        power = 1.0 if _is_plain_divisor(reader, op.inputs[1]) else 0.0
    return [(op.inputs[0], degree * power)] if power > 0 else []


def _is_plain_divisor(reader: Reader, tensor: tf.Tensor) -> bool:
    """Returns whether a divisor leaves the degree: a number, or what a mask keeps."""
    if reader.constant(tensor) is not None or reader.bounds(tensor).low > 0:
        return True
    found = reduction(reader, tensor, "Sum")
    return found is not None and reader.is_mask(found.x)


def summands(
    reader: Reader, tensor: tf.Tensor, power: float = 1.0, depth: int = _DEPTH
) -> list[tuple[tf.Tensor, float]]:
    """Takes a divisor apart into terms and factors, with the powers they are in."""
    op = reader.op(tensor)
    inner: list[tf.Tensor] = []
    if depth and op.type in ADDITIONS | {"Mul"}:
        inner = list(op.inputs)
    elif depth and op.type in {"Sqrt", *op_types(OpFact.RESHAPES)}:
        inner = [op.inputs[0]]
        power = power / 2 if op.type == "Sqrt" else power
    for x, floor in both_ways(op, "Maximum"):
        if depth and number(reader, floor, x) == 0:
            inner = [x]
    found = [each for x in inner for each in summands(reader, x, power, depth - 1)]
    return found if 0 < len(found) <= _MOST else [(tensor, power)]


def vanish_together(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether `y` sums what `x` is a product of, to no higher degree.

    Then what makes `y` 0 everywhere makes `x` 0: `sum(a * b)` and `sum(a) + sum(b)`.
    """
    above = factors(reader, x)
    degree = sum(power for _, power in above)
    return any(
        _shares(reader, above, degree / power, each)
        for each, power in summands(reader, y)
    )


def _shares(
    reader: Reader, above: list[tuple[tf.Tensor, float]], degree: float, y: tf.Tensor
) -> bool:
    is_sum = _is_reduced(reader, y)
    # What is masked is 0 or stays.
    below = [each for each in factors(reader, y) if not reader.is_mask(each[0])]
    return (
        is_sum
        and sum(power for _, power in below) <= degree + 1e-6
        and any(_alike(reader, a, b) for a, _ in above for b, _ in below)
    )


def _alike(reader: Reader, a: tf.Tensor, b: tf.Tensor) -> bool:
    """Returns whether `a` is `b`, or both are one tensor less its mean."""
    if reader.same(a, b):
        return True
    first, second = _centred(reader, a), _centred(reader, b)
    if first is None:
        return False
    # What is 0 everywhere is its own mean.
    return reader.same(first, b if second is None else second)


def _centred(reader: Reader, tensor: tf.Tensor) -> tf.Tensor | None:
    op = reader.op(tensor)
    if op.type not in {"Sub", "SquaredDifference"}:
        return None
    for x, mean in (tuple(op.inputs), tuple(op.inputs)[::-1]):
        found = single_mean(reader, mean)
        if found is not None and reader.same(found.x, x):
            return x
    return None


def _is_reduced(reader: Reader, tensor: tf.Tensor, depth: int = _DEPTH) -> bool:
    op = reader.op(tensor)
    if op.type in _REDUCTIONS:
        return True
    passed = {*_POWERS, "Mul", "Pow", *_PASSED, *DIVISIONS}
    return bool(
        depth
        and op.type in passed
        and any(_is_reduced(reader, each, depth - 1) for each in op.inputs)
    )


def counts_of(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether `x / y` is a mean over segments: 0 / 0 in an empty one."""
    found = summands(reader, y)
    total, count = reader.op(x), reader.op(found[0][0])
    if count.type == "Cast":
        count = reader.op(count.inputs[0])
    if len(found) != 1 or total.type != count.type or total.type not in SEGMENT_SUMS:
        return False
    if not reader.same(total.inputs[1], count.inputs[1]):
        return False
    ones = reader.op(count.inputs[0])
    number = reader.scalar(count.inputs[0])
    return ones.type == "OnesLike" or (number is not None and number > 0)
