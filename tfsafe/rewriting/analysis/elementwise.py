"""Reads formulas that are computed element by element, and tries them on numbers."""

import functools
import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe.graph import ADDITIONS, DIVISIONS, RECIPROCALS, SUMS
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import terms, walk
from tfsafe.rewriting.match.products import factored

_Function = Callable[..., np.ndarray]


def _each(function: Callable[[float], float]) -> _Function:
    made = np.vectorize(function, otypes=[np.float64])
    return lambda x: made(x).astype(x.dtype)


def _sum(*terms: np.ndarray) -> np.ndarray:
    return functools.reduce(np.add, terms)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, x.dtype.type(0))


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Computes `x ** y`; `1 ** inf` is NaN, as 0 / 0 is: it may have any limit."""
    return np.where((x == 1) & np.isinf(y), np.nan, np.power(x, y))


_ARITHMETIC: Mapping[str, _Function] = {
    **dict.fromkeys(ADDITIONS, _sum),
    **dict.fromkeys(DIVISIONS, np.divide),
    **dict.fromkeys(RECIPROCALS, lambda x: 1 / x),
    "Mul": np.multiply,
    "Neg": np.negative,
    "Square": np.square,
    "SquaredDifference": lambda x, y: (x - y) ** 2,
    "Sub": np.subtract,
}
_CURVES: Mapping[str, _Function] = {
    "Acosh": np.arccosh,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Erf": _each(math.erf),
    "Erfc": _each(math.erfc),
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Pow": _power,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Softplus": _softplus,
    "Sqrt": np.sqrt,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
FUNCTIONS: Mapping[str, _Function] = {**_ARITHMETIC, **_CURVES}
# Longer formulas, and those of more tensors, are computed as they are written.
_DEPTH, _MOST, MOST_LEAVES = 24, 48, 4


class Elementwise:
    """A formula that is computed element by element from a few tensors.

    Attributes:
      reader: Reader of the graph.
      whole: What it computes.
      leaves: The tensors that it begins with, without constants.
    """

    def __init__(self, reader: Reader, whole: tf.Tensor, leaves: Sequence[tf.Tensor]):
        self.reader = reader
        self.whole = reader.source(whole)
        self.leaves = leaves

    def cut(self, parts: Sequence[tf.Tensor]) -> "Elementwise":
        """Returns the same formula where some parts of it are leaves."""
        return Elementwise(self.reader, self.whole, [*self.leaves, *parts])

    def is_leaf(self, tensor: tf.Tensor) -> bool:
        """Returns whether the formula begins with a tensor."""
        return any(self.reader.same(tensor, each) for each in self.leaves)

    def leaves_of(self, tensor: tf.Tensor, cut: Collection[int] = ()) -> set[int]:
        """Returns the numbers of the leaves of a part, without what others begin."""
        reader, found, stack = self.reader, set(), [tensor]
        seen = set(cut)
        while stack:
            top = stack.pop()
            number = reader.number(top)
            if number in seen:
                continue
            seen.add(number)
            if self.is_leaf(top):
                found.add(number)
            elif reader.constant(top) is None:
                stack.extend(reader.op(top).inputs)
        return found

    def parts(self) -> list[tf.Tensor]:
        """Returns the tensors inside the formula, the whole first, without leaves."""
        found = walk(self.reader, self.whole, FUNCTIONS, _DEPTH)
        return [
            self.reader.source(each)
            for each, is_inside in found
            if is_inside
            and self.reader.constant(each) is None
            and not self.is_leaf(each)
        ]

    def form(self) -> Hashable:
        """Returns what is equal for formulas that give equal numbers."""
        places = {self.reader.number(each): i for i, each in enumerate(self.leaves)}
        lines: list[Hashable] = [self.reader.bounds(each) for each in self.leaves]

        def place_of(tensor: tf.Tensor) -> int:
            key = self.reader.number(tensor)
            if key not in places:
                source = self.reader.source(tensor)
                constant = self.reader.scalar(source)
                line: Hashable = constant
                if constant is None:
                    line = source.op.type, *map(place_of, source.op.inputs)
                places[key] = len(lines)
                lines.append(line)
            return places[key]

        place_of(self.whole)
        return self.whole.dtype, self.whole.shape.rank is None, tuple(lines)

    def at(
        self,
        numbers: Mapping[int, np.ndarray],
        dtype: Any = np.float64,
        rounded: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Computes the formula.

        Args:
          numbers: What the leaves are, or parts of the formula, by number.
          dtype: What it is computed in.
          rounded: Dtypes by the names of tensors that are rounded to them once.

        Returns:
          The numbers that it is.
        """
        made: dict[int, np.ndarray] = {
            key: each.astype(dtype) for key, each in numbers.items()
        }

        def compute(tensor: tf.Tensor) -> np.ndarray:
            source = self.reader.source(tensor)
            key = self.reader.number(source)
            if key not in made:
                made[key] = new(source)
            return made[key]

        def new(source: tf.Tensor) -> np.ndarray:
            constant = self.reader.scalar(source)
            if constant is not None:
                return np.asarray(constant, dtype)
            if rounded and source.name in rounded:
                part = Elementwise(self.reader, source, self.leaves)
                return part.at(numbers).astype(rounded[source.name]).astype(dtype)
            function = FUNCTIONS[source.op.type]
            return np.asarray(function(*map(compute, source.op.inputs)), dtype)

        with np.errstate(all="ignore"):
            return compute(self.whole)


def elementwise(reader: Reader, whole: tf.Tensor) -> Elementwise | None:
    """Reads a formula with a function, or a sum that is divided."""
    leaves: list[tf.Tensor] = []
    count, is_curved = 0, False
    for each, is_inside in walk(reader, whole, FUNCTIONS, _DEPTH):
        if reader.constant(each) is not None:
            if reader.scalar(each) is None:
                return None
            continue
        count += is_inside
        if not is_inside:
            leaves.append(reader.source(each))
        elif reader.op(each).type in _CURVES:
            is_curved = True
        if count > _MOST or len(leaves) > MOST_LEAVES or each.dtype != whole.dtype:
            return None
    if not (is_curved or _divides_sum(reader, whole)):
        return None
    if not leaves or not all(map(is_float, leaves)):
        return None
    # A constant may have more axes than the rest.
    if whole.shape.rank not in {each.shape.rank for each in leaves}:
        return None
    return Elementwise(reader, whole, leaves)


def _divides_sum(reader: Reader, whole: tf.Tensor) -> bool:
    """Returns whether a sum is divided, also one of several factors."""
    op = reader.op(whole)
    if op.type not in DIVISIONS:
        return False
    product = factored(reader, op)
    below = {each.name for each in product.below}
    return any(
        reader.op(x).type in SUMS and x.name not in below and not _is_0(reader, x)
        for x in product.above
    )


def _is_0(reader: Reader, total: tf.Tensor) -> bool:
    """Returns whether the terms of a sum are each other's negatives, as in `x - x`."""
    factors: dict[str, float] = {}
    for each in terms(reader, total):
        name = each.tensor.name
        factors[name] = factors.get(name, 0.0) + each.factor
    return not any(factors.values())
