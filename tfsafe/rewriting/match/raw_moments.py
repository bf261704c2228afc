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
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import square_of

_PRODUCTS = frozenset({"BatchMatMulV2", "Einsum", "MatMul"})
# Operations that add up elements of their first input.
_AVERAGES = frozenset({
    *("AvgPool", "Conv2D", "Cumsum", "DepthwiseConv2dNative", "Mean", "SegmentMean"),
    *("Sum", *SEGMENT_SUMS),
})
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
# Powers that moments are made of.
_ORDERS = range(2, 7)

_Pairs = frozenset[frozenset[int]]
_NONE: frozenset[int] = frozenset()
_NO_PAIRS: _Pairs = frozenset()


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
