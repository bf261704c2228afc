"""Recognises sums, products, squares and roots, however they are written."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import ADDITIONS, DIVISIONS, RECIPROCALS, OpFact, op_types
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.facts.tensors import Reader, both_ways, is_float

_KEEP_SHAPE = op_types(OpFact.KEEPS_SHAPE)
# Deeper sums are not taken apart.
_DEPTH = 12


class Base(NamedTuple):
    """What is squared: `x`, or `x - minus`."""

    x: tf.Tensor
    minus: tf.Tensor | None = None

    def make(self, value: Value) -> tf.Tensor:
        """Returns the base in the graph that is made."""
        return (
            value(self.x) if self.minus is None else value(self.x) - value(self.minus)
        )


class Term(NamedTuple):
    """A number times a tensor."""

    factor: float
    tensor: tf.Tensor

    def make(self, value: Value) -> tf.Tensor:
        """Returns the term in the graph that is made."""
        x = value(self.tensor)
        return x if self.factor == 1 else self.factor * x


def number(reader: Reader, tensor: tf.Tensor, operand: tf.Tensor) -> float | None:
    """Returns the number that all elements of `tensor` are, or None.

    Args:
      reader: Reader of the graph.
      tensor: A constant, or ones and the like of the shape of another tensor.
      operand: What it is combined with; the combination must keep the shape of this.
    """
    op = reader.op(tensor)
    if op.type == "OnesLike" and _has_shape(reader, operand, op.inputs[0]):
        return 1.0
    value = reader.scalar(tensor)
    return value if value is not None and _fits(tensor.shape, operand.shape) else None


def exp_less_one(reader: Reader, op: tf.Operation) -> tuple[tf.Tensor, float] | None:
    """Reads `exp(x) - 1` and `1 - exp(x)`; returns x and the sign."""
    if op.type != "Sub":
        return None
    for power, one, sign in ((*op.inputs, 1.0), (*reversed(op.inputs), -1.0)):
        if reader.op(power).type == "Exp" and number(reader, one, power) == 1:
            return reader.op(power).inputs[0], sign
    return None


def _has_shape(reader: Reader, tensor: tf.Tensor, of: tf.Tensor) -> bool:
    """Returns whether `tensor` is `of`, or an elementwise function of it."""
    while not reader.same(tensor, of):
        op = reader.op(tensor)
        if op.type not in _KEEP_SHAPE:
            return False
        tensor = op.inputs[0]
    return True


def _fits(shape: tf.TensorShape, operand: tf.TensorShape) -> bool:
    if shape.rank == 0:
        return True
    if operand.rank is None or shape.rank > operand.rank:
        return False
    last = list(operand)[operand.rank - shape.rank :]
    return all(a == 1 or a == b for a, b in zip(shape, last, strict=True))


def squared(reader: Reader, tensor: tf.Tensor) -> Base | None:
    """Returns what `tensor` is the square of, or None."""
    op = reader.op(tensor)
    if not is_float(tensor):
        return None
    if op.type == "SquaredDifference":
        return Base(*op.inputs)
    is_square = (
        op.type == "Square"
        or (op.type == "Mul" and reader.same(*op.inputs))
        or (op.type == "Pow" and number(reader, op.inputs[1], op.inputs[0]) == 2)
    )
    return Base(op.inputs[0]) if is_square else None


def root_of(reader: Reader, tensor: tf.Tensor) -> tf.Tensor | None:
    """Returns what `tensor` is the square root of, or None."""
    op = reader.op(tensor)
    is_root = op.type == "Sqrt" or (
        op.type == "Pow" and number(reader, op.inputs[1], op.inputs[0]) == 0.5
    )
    return op.inputs[0] if is_root and is_float(tensor) else None


def without_floor(reader: Reader, tensor: tf.Tensor) -> tf.Tensor:
    """Returns `x` for `maximum(x, 0)`, `relu(x)` and `abs(x)`."""
    op = reader.op(tensor)
    if op.type in {"Relu", "Abs"}:
        return op.inputs[0]
    for x, floor in both_ways(op, "Maximum"):
        if number(reader, floor, x) == 0:
            return x
    return tensor


class _Terms(dict[str, Sequence[Term]]):
    """The terms of the tensors of a graph, by their names."""


def terms(reader: Reader, tensor: tf.Tensor) -> list[Term]:
    """Takes a sum apart, through negation and multiplication by numbers."""
    known = reader.memory.setdefault(_Terms, _Terms())
    if tensor.name not in known:
        known[tensor.name] = _terms(reader, tensor, _DEPTH)
    return list(known[tensor.name])


def _terms(reader: Reader, tensor: tf.Tensor, depth: int) -> list[Term]:
    op = reader.op(tensor)
    if op.type in ADDITIONS and depth:
        return [t for each in op.inputs for t in _terms(reader, each, depth - 1)]
    if op.type == "Sub" and depth:
        left, right = (_terms(reader, each, depth - 1) for each in op.inputs)
        return left + [Term(-t.factor, t.tensor) for t in right]
    found = multiplied(reader, op) if depth else None
    if found is None or reader.constant(tensor) is not None:
        return [Term(1.0, reader.source(tensor))]
    return [
        Term(t.factor * found.factor, t.tensor)
        for t in _terms(reader, found.tensor, depth - 1)
    ]


def beside_number(reader: Reader, tensor: tf.Tensor) -> Iterator[tuple[Term, float]]:
    """Yields `c * x` and the number d where a tensor is `c * x + d`."""
    found = terms(reader, tensor)
    for term, other in (found, found[::-1]) if len(found) == 2 else ():
        d = number(reader, other.tensor, term.tensor)
        if d is not None:
            yield term, other.factor * d


# What people add to a root, or to what they take the logarithm of.
LOST_EPSILON = 1e-8


def adds_lost_epsilon(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether a sum of two has an epsilon that is 0 in half precision."""
    if op.type not in {"Add", "AddV2"} or op.outputs[0].dtype not in precision.HALF:
        return False
    # Python's `sum` adds to a 0 in front.
    epsilon = reader.op(op.inputs[1])
    is_number = epsilon.type == "Const" and epsilon.outputs[0].shape.rank == 0
    return is_number and reader.scalar(op.inputs[1]) == 0


def walk(
    reader: Reader, tensor: tf.Tensor, inside: Collection[str], depth: int
) -> Iterator[tuple[tf.Tensor, bool]]:
    """Yields the tensors that a formula is made of, level by level and each once.

    Args:
      reader: Reader of the graph.
      tensor: What the formula computes.
      inside: Types of the operations that belong to the formula.
      depth: Number of operations from the tensor to the deepest one in the formula.

    Yields:
      A tensor, and whether the formula goes on with the inputs of its operation.
    """
    seen: set[int] = set()
    level = [tensor]
    for left in reversed(range(depth + 1)):
        inputs: list[tf.Tensor] = []
        for each in level:
            alike = reader.number(each)
            if alike in seen:
                continue
            seen.add(alike)
            op = reader.op(each)
            is_inside = left > 0 and op.type in inside
            inputs += op.inputs if is_inside else ()
            yield each, is_inside
        level = inputs


def multiplied(reader: Reader, op: tf.Operation) -> Term | None:
    """Reads an operation as a number times its input."""
    if op.type == "Neg":
        return Term(-1.0, op.inputs[0])
    for x, other in both_ways(op, "Mul"):
        factor = number(reader, other, x)
        if factor is not None:
            return Term(factor, x)
    if op.type in DIVISIONS:
        divisor = number(reader, op.inputs[1], op.inputs[0])
        if divisor:
            return Term(1 / divisor, op.inputs[0])
    return None


def is_sum(op: tf.Operation) -> bool:
    """Returns whether `op` adds tensors."""
    return op.type in ADDITIONS


def square_of(reader: Reader, tensor: tf.Tensor) -> tf.Tensor | None:
    """Recognises `x * x`, `square(x)` and `x ** 2`; returns `x`."""
    base = squared(reader, tensor)
    return None if base is None or base.minus is not None else base.x


def negated(reader: Reader, tensor: tf.Tensor) -> tf.Tensor | None:
    """Recognises `-x`, `-1 * x` and `0 - x`; returns `x`."""
    op = reader.op(tensor)
    if op.type == "Neg":
        return op.inputs[0]
    for x, constant in both_ways(op, "Mul"):
        if number(reader, constant, x) == -1:
            return x
    if op.type == "Sub" and number(reader, *op.inputs) == 0:
        return op.inputs[1]
    return None


def are_opposite(reader: Reader, a: tf.Tensor, b: tf.Tensor) -> bool:
    """Returns whether one tensor is the negative of the other: `-x * x` of `x * x`."""
    minus_a, minus_b = negated(reader, a), negated(reader, b)
    if minus_a is not None or minus_b is not None:
        return (minus_a is not None and reader.same(minus_a, b)) or (
            minus_b is not None and reader.same(minus_b, a)
        )
    first, second = _unsigned(reader, a), _unsigned(reader, b)
    return first[0] * second[0] < 0 and first[1] == second[1]


def _unsigned(reader: Reader, tensor: tf.Tensor) -> tuple[int, list[int]]:
    """Returns the sign of `-x * y`, and the numbers of x and y."""
    op = reader.op(tensor)
    if op.type == "Square":
        return 1, 2 * [reader.number(op.inputs[0])]
    if op.type != "Mul":
        return 0, []
    minus = [negated(reader, each) for each in op.inputs]
    inside = [
        each if other is None else other
        for each, other in zip(op.inputs, minus, strict=True)
    ]
    sign = (-1) ** sum(each is not None for each in minus)
    return sign, sorted(map(reader.number, inside))


def one_plus(reader: Reader, op: tf.Operation, op_type: str) -> tf.Tensor | None:
    """Recognises `1 + f(u)`, f being the function of an operation type; returns `u`."""
    for x, constant in both_ways(op) if is_sum(op) else ():
        if number(reader, constant, x) == 1 and reader.op(x).type == op_type:
            return reader.op(x).inputs[0]
    return None


def cosh_argument(op: tf.Operation, reader: Reader) -> tf.Tensor | None:
    """Recognises `exp(u) + exp(-u)`; returns `u`."""
    a, b = (reader.op(each) for each in op.inputs)
    if a.type != "Exp" or b.type != "Exp":
        return None
    u, v = a.inputs[0], b.inputs[0]
    return u if are_opposite(reader, u, v) else None


def is_never_0(reader: Reader, tensor: tf.Tensor) -> bool:
    """Returns whether a tensor is a number, or a number that is divided."""
    op = reader.op(tensor)
    while op.type == "Neg":
        op = reader.op(op.inputs[0])
    is_quotient = op.type in DIVISIONS and reader.scalar(op.inputs[0]) not in {None, 0}
    return is_quotient or op.type in RECIPROCALS or reader.scalar(tensor) is not None
