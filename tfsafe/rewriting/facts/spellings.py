"""Reads operations in their usual spelling, by which the rules know most formulas.

`x * (1 / y)` is `x / y`, `-(a - b)` is `b - a`, `1 / (1 + exp(-x))` is a sigmoid. The
usual spelling is an operation of its own in the graph that is read, which is never
computed.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe.graph import ADDITIONS, DIVISIONS, MATRIX_PRODUCTS, RECIPROCALS
from tfsafe.rewriting.facts.layouts import same_shape
from tfsafe.rewriting.facts.moves import Moves, created
from tfsafe.rewriting.facts.sums import contraction
from tfsafe.rewriting.facts.tensors import Reader, both_ways, is_float


class _Usual(NamedTuple):
    """The type of an operation, its inputs, and its attributes but the dtype."""

    op_type: str
    inputs: tuple[tf.Tensor, ...]
    attributes: Mapping[str, Any] = {}


def respell(written: Reader, usual: Reader) -> frozenset[str]:
    """Has a reader see operations in their usual spelling.

    Args:
      written: A reader of the graph.
      usual: Another, which is to see them; it was not asked anything before.

    Returns:
      The names of the operations that are respelled or depend on such a one.
    """
    moves = Moves(written, usual)
    reached: set[str] = set()
    for op in usual.operations:
        seen = _made(usual, op) if op.type in _USUAL else moves.inward(op)
        if seen is not None:
            usual.respell(op.outputs[0], seen)
        if seen is not None or any(each.op.name in reached for each in op.inputs):
            reached.add(op.name)
    return frozenset(reached)


def _made(reader: Reader, op: tf.Operation) -> tf.Tensor | None:
    """Returns the usual spelling of an operation; None if it has it."""
    written = op.outputs[0]
    if not is_float(written) or written.name in reader.kept:
        return None
    usual = next(_USUAL[op.type](reader, op), None)
    if usual is None:
        return None
    dtype = written.dtype
    number = {"T": tf.compat.v1.AttrValue(type=dtype.as_datatype_enum)}
    attributes = {**number, **usual.attributes}
    made = created(op.graph, usual.op_type, usual.inputs, dtype, attributes)
    # A constant may have given the result its shape.
    return made if same_shape(made, written) else None


def _product(reader: Reader, op: tf.Operation) -> Iterator[_Usual]:
    for x, other in both_ways(op):
        y = _inverse(reader, other)
        if reader.scalar(other) == -1:
            yield _Usual("Neg", (x,))
        elif y is not None and _inverse(reader, x) is None:
            yield _Usual("RealDiv", (x, y))


def _inverse(reader: Reader, tensor: tf.Tensor) -> tf.Tensor | None:
    """Returns `y` of `1 / y`."""
    op = reader.op(tensor)
    if op.type in DIVISIONS and reader.scalar(op.inputs[0]) == 1:
        return op.inputs[1]
    return op.inputs[0] if op.type in RECIPROCALS else None


def _negative(reader: Reader, tensor: tf.Tensor) -> tf.Tensor | None:
    """Returns `x` of `-x`."""
    # The written operation first: `-(a - b)` is seen as `b - a`.
    for op in (tensor.op, reader.op(tensor)):
        if op.type == "Neg":
            return op.inputs[0]
    return None


def _quotient(reader: Reader, op: tf.Operation) -> Iterator[_Usual]:
    y = _inverse(reader, op.outputs[0])
    if y is not None:
        yield from _reciprocal(reader, y)
    elif op.type in DIVISIONS:
        yield from _mean(reader, *op.inputs)


def _reciprocal(reader: Reader, y: tf.Tensor) -> Iterator[_Usual]:
    below = reader.op(y)
    if below.type in {"Sqrt", "Rsqrt"}:
        yield _Usual("Rsqrt" if below.type == "Sqrt" else "Sqrt", (below.inputs[0],))
    elif below.type == "Exp":
        x = _negative(reader, below.inputs[0])
        if x is not None:
            yield _Usual("Exp", (x,))
    for power in _added_to_one(reader, below):
        x = _negative(reader, power.inputs[0]) if power.type == "Exp" else None
        if x is not None:
            yield _Usual("Sigmoid", (x,))


def _added_to_one(reader: Reader, op: tf.Operation) -> Iterator[tf.Operation]:
    """Yields the operation that makes `x` of `1 + x`."""
    for x, one in both_ways(op, "Add", "AddV2"):
        if reader.scalar(one) == 1:
            yield reader.op(x)


def _mean(reader: Reader, x: tf.Tensor, count: tf.Tensor) -> Iterator[_Usual]:
    total = reader.op(x)
    if total.type != "Sum":
        return
    shape = total.inputs[0].shape
    axes = reader.axes(total.inputs[1], shape.rank)
    if axes and shape.rank is not None:
        sizes = [shape[axis] for axis in axes]
        if None not in sizes and reader.scalar(count) == math.prod(sizes):
            names = ("Tidx", "keep_dims")
            attributes = {name: total.node_def.attr[name] for name in names}
            yield _Usual("Mean", tuple(total.inputs), attributes)


def _power(reader: Reader, op: tf.Operation) -> Iterator[_Usual]:
    x, exponent = op.inputs
    name = _POWERS.get(reader.scalar(exponent) or 1)
    if name is not None:
        yield _Usual(name, (x,))
    elif reader.is_number(x, math.e):
        yield _Usual("Exp", (exponent,))


def _opposite(reader: Reader, op: tf.Operation) -> Iterator[_Usual]:
    inner = reader.op(op.inputs[0])
    if inner.type == "Sub":
        a, b = inner.inputs
        yield _Usual("Sub", (b, a))


def _total(reader: Reader, op: tf.Operation) -> Iterator[_Usual]:
    found = contraction(reader, op)
    if found is not None:
        with op.graph.as_default(), tf.control_dependencies(None):
            x, *others = found.factors
            for each in others:
                x = x * each
            axes = tf.constant(found.axes)
        keepdims = tf.compat.v1.AttrValue(b=found.keepdims)
        yield _Usual("Sum", (x, axes), {"keep_dims": keepdims})


def _sum(reader: Reader, op: tf.Operation) -> Iterator[_Usual]:
    yield from _total(reader, op)
    if len(op.inputs) != 2:
        return
    for a, other in both_ways(op):
        b = _negative(reader, other)
        if b is not None and _negative(reader, a) is None:
            yield _Usual("Sub", (a, b))


def _difference(reader: Reader, op: tf.Operation) -> Iterator[_Usual]:
    a, other = op.inputs
    b = _negative(reader, other)
    if reader.scalar(a) == 0:
        yield _Usual("Neg", (other,))
    elif b is not None:
        yield _Usual("AddV2", (a, b))
    elif reader.op(a).type == "Exp" and reader.scalar(other) == 1:
        yield _Usual("Expm1", tuple(reader.op(a).inputs))


def _logarithm(reader: Reader, op: tf.Operation) -> Iterator[_Usual]:
    inner = reader.op(op.inputs[0])
    if op.type == "Log1p" and inner.type == "Exp":
        yield _Usual("Softplus", tuple(inner.inputs))
    for power in _added_to_one(reader, inner) if op.type == "Log" else ():
        if power.type == "Exp":
            yield _Usual("Softplus", tuple(power.inputs))


def _choice(reader: Reader, op: tf.Operation) -> Iterator[_Usual]:
    condition, a, b = op.inputs
    inner = reader.op(condition)
    if inner.type == "LogicalNot":
        yield _Usual("SelectV2", (inner.inputs[0], b, a))


_POWERS = {-1: "Reciprocal", -0.5: "Rsqrt", 0.5: "Sqrt"}
_USUAL: Mapping[str, Callable[[Reader, tf.Operation], Iterator[_Usual]]] = {
    **dict.fromkeys(DIVISIONS | RECIPROCALS, _quotient),
    **dict.fromkeys(ADDITIONS, _sum),
    **dict.fromkeys({"Einsum", *MATRIX_PRODUCTS}, _total),
    "Log": _logarithm,
    "Log1p": _logarithm,
    "Mul": _product,
    "Neg": _opposite,
    "Pow": _power,
    "SelectV2": _choice,
    "Sub": _difference,
}
