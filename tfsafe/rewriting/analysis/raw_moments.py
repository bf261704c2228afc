"""Finds averages of products and products of averages in a tensor.

Both are sets of pairs of tensors: `(x, y)` where `x * y` is averaged, or where an
average of `x` is multiplied by one of `y`. An average is any operation that sums:
over axes, segments or windows, with weights, as a product of matrices.
"""

import functools
from collections.abc import Set
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import DIVISIONS, SEGMENT_SUMS, SUMS
from tfsafe.rewriting.facts.tensors import NARROW, Reader, is_float
from tfsafe.rewriting.match.arithmetic import square_of, terms

_PRODUCTS = frozenset({"BatchMatMulV2", "Einsum", "MatMul"})
# Operations that add up elements of their first input, within windows and altogether.
_WINDOWS = frozenset({
    *("AvgPool", "Conv2D", "Conv3D", "Cumsum", "DepthwiseConv2dNative"),
})
_AVERAGES = _WINDOWS | {"Mean", "SegmentMean", "Sum", *SEGMENT_SUMS}
# Operations of many inputs that keep the elements.
_JOINS = frozenset({"ConcatV2", "Pack"})
_LAYOUTS = frozenset({
    *("ExpandDims", "Neg", "Pad", "Reshape", "Squeeze", "StridedSlice", "Transpose"),
    *("BatchToSpaceND", "SpaceToBatchND"),
})
# What a formula of moments is made of, each input of it of the same dtype.
LINEAR = (
    SUMS | DIVISIONS | _PRODUCTS | _AVERAGES | _LAYOUTS | _JOINS | {"Mul", "Square"}
)
# Longer formulas are left alone.
_DEPTH = 12
_MOST_PAIRS = 1024
_MOST_TERMS = 8
# Powers that moments are made of.
_ORDERS = range(2, 7)

_Pairs = frozenset[frozenset[int]]
_NONE: frozenset[int] = frozenset()
_NO_PAIRS: _Pairs = frozenset()


def is_known_window(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether an operation sums over windows, by weights that are known."""
    weights = op.inputs[1:]
    return op.type in _WINDOWS and all(reader.constant(x) is not None for x in weights)


def whole_power(reader: Reader, op: tf.Operation) -> int | None:
    """Returns the exponent of a power that is a product of a few factors."""
    order = reader.scalar(op.inputs[1]) if op.type == "Pow" else None
    return None if order is None or order not in _ORDERS else int(order)


class Moments(NamedTuple):
    """What a tensor is made of.

    Attributes:
      plain: Tensors that are factors of its terms.
      averaged: Tensors that are averaged.
      products: Pairs that are multiplied.
      averages_of_products: Pairs whose product is averaged.
      products_of_averages: Pairs whose averages are multiplied.
    """

    plain: frozenset[int] = _NONE
    averaged: frozenset[int] = _NONE
    products: _Pairs = _NO_PAIRS
    averages_of_products: _Pairs = _NO_PAIRS
    products_of_averages: _Pairs = _NO_PAIRS


class MomentReader:
    """Reads the moments of the tensors of one graph."""

    def __init__(self, reader: Reader):
        self._reader = reader
        self._leaves: dict[tuple[int, tf.DType], int] = {}
        self._known: dict[str, Moments] = {}

    def of(self, tensor: tf.Tensor, depth: int = _DEPTH) -> Moments:
        """Returns what a tensor is made of."""
        source = self._reader.source(tensor)
        if source.name not in self._known:
            self._known[source.name] = self._read(source, depth)
        return self._known[source.name]

    def _read(self, tensor: tf.Tensor, depth: int) -> Moments:
        op = tensor.op
        root = square_of(self._reader, tensor)
        power = whole_power(self._reader, op)
        if not depth or not is_float(tensor):
            return self._leaf(tensor)
        if root is not None:
            x = self.of(root, depth - 1)
            return _multiplied(x, x)
        if power is not None:
            x = self.of(op.inputs[0], depth - 1)
            return functools.reduce(_multiplied, [x] * power)
        if op.type == "Mul":
            return _multiplied(*(self.of(each, depth - 1) for each in op.inputs))
        if op.type in _PRODUCTS and len(op.inputs) == 2:
            a, b = (self.of(each, depth - 1) for each in op.inputs)
            return _contracted(a, b)
        if op.type in _AVERAGES:
            return _averaged(self.of(op.inputs[0], depth - 1))
        if op.type in DIVISIONS | _LAYOUTS:
            return self.of(op.inputs[0], depth - 1)
        if op.type in SUMS | _JOINS:
            parts = [self.of(each, depth - 1) for each in op.inputs]
            return Moments(
                *(frozenset().union(*sets) for sets in zip(*parts, strict=True))
            )
        return self._leaf(tensor)

    def _leaf(self, tensor: tf.Tensor) -> Moments:
        if self._reader.scalar(tensor) is not None:
            return Moments()
        leaf = self._reader.number(tensor), tensor.dtype
        return Moments(
            plain=frozenset({self._leaves.setdefault(leaf, len(self._leaves))})
        )


def _pairs(a: Set[int], b: Set[int]) -> _Pairs:
    if len(a) * len(b) > _MOST_PAIRS:
        return _NO_PAIRS
    return frozenset(frozenset({x, y}) for x in a for y in b)


def _multiplied(a: Moments, b: Moments) -> Moments:
    averages = _pairs(a.averaged, b.averaged)
    return Moments(
        a.plain | b.plain,
        a.averaged | b.averaged,
        a.products | b.products | _pairs(a.plain, b.plain),
        a.averages_of_products | b.averages_of_products,
        a.products_of_averages | b.products_of_averages | averages,
    )


def _averaged(x: Moments) -> Moments:
    return Moments(
        averaged=x.plain | x.averaged,
        averages_of_products=x.products | x.averages_of_products,
        products_of_averages=x.products_of_averages,
    )


def _contracted(a: Moments, b: Moments) -> Moments:
    return _averaged(_multiplied(a, b))


class _Memory(dict[str, bool]):
    """Whether operations are differences of moments, by name."""


def is_difference(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether a sum or difference is one of raw moments, and a whole one."""
    if op.type not in SUMS or op.outputs[0].dtype not in NARROW:
        return False
    if not _has_difference(reader, op):
        return False
    # What is a difference by itself is replaced by itself.
    for inner, other in (op.inputs, reversed(op.inputs)):
        each = reader.op(inner)
        has_difference = each.type in SUMS and _has_difference(reader, each)
        if has_difference and not _is_completed(reader, inner, other):
            return False
    return True


def _is_completed(reader: Reader, inner: tf.Tensor, other: tf.Tensor) -> bool:
    """Returns whether `E[x^3] - 3 E[x] E[x^2]` is to be seen with `2 E[x]^3`."""
    moments = reader.memory.setdefault(MomentReader, MomentReader(reader))
    products = moments.of(inner).averages_of_products
    return bool(products & moments.of(other).products_of_averages)


def _has_difference(reader: Reader, op: tf.Operation) -> bool:
    memory = reader.memory.setdefault(_Memory, _Memory())
    if op.name not in memory:
        memory[op.name] = False
        memory[op.name] = _computed(reader, op)
    return bool(memory[op.name])


def _computed(reader: Reader, op: tf.Operation) -> bool:
    found = terms(reader, op.outputs[0])
    if not 2 <= len(found) <= _MOST_TERMS:
        return False
    moments = reader.memory.setdefault(MomentReader, MomentReader(reader))
    return any(
        moments.of(a.tensor).averages_of_products
        & moments.of(b.tensor).products_of_averages
        for a in found
        for b in found
        if a.factor * b.factor < 0
    )
