"""Finds out which of many patterns may fit an operation, without trying them.

A pattern is a formula as `trees` describes it. An operation is looked at two steps
deep: the types of what it is made of, and where a number may be.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe.graph import DIVISIONS, RECIPROCALS, SUMS
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, terms

# A name, a number, or the type of an operation and its inputs.
Pattern = str | float | tuple[Any, ...]

_TYPES = {
    "Add": SUMS,
    "Div": DIVISIONS,
    "Neg": ("Neg", "Mul"),
    "Reciprocal": RECIPROCALS,
    "Sqrt": ("Sqrt", "Pow"),
    "Square": ("Square", "SquaredDifference", "Mul", "Pow"),
    "Sub": SUMS,
}
_DEPTH = 2


@functools.cache
def types_of(pattern: Pattern) -> Sequence[str]:
    """Returns the types of the operations that a pattern may end in."""
    heads = pattern[0].split("|") if isinstance(pattern, tuple) else []
    return tuple(each for head in heads for each in _TYPES.get(head, (head,)))


@functools.cache
def signed(pattern: Pattern, sign: int) -> Sequence[tuple[int, Pattern]]:
    """Returns the terms of a sum and their signs."""
    if not isinstance(pattern, tuple) or pattern[0] not in {"Add", "Sub"}:
        return ((sign, pattern),)
    first, *rest = pattern[1:]
    other = -sign if pattern[0] == "Sub" else sign
    return (*signed(first, sign), *(t for each in rest for t in signed(each, other)))


class Index:
    """Finds the patterns that may fit an operation."""

    def __init__(self, patterns: Sequence[Pattern]):
        self._patterns = patterns
        # By what the operation looks like: those of a graph look much alike.
        self._places: dict[Look, Sequence[int]] = {}

    def places(self, reader: Reader, op: tf.Operation) -> Sequence[int]:
        """Returns the positions of the patterns that may fit."""
        look = _look_of(reader, op.outputs[0], _DEPTH)
        if look not in self._places:
            self._places[look] = [
                place
                for place, pattern in enumerate(self._patterns)
                if _may_be(pattern, look)
            ]
        return self._places[look]


@dataclasses.dataclass(frozen=True, eq=False)
class SumLook:
    """How many terms a sum has, and what they look like."""

    size: int
    terms: frozenset["Look"]


class Summands(NamedTuple):
    """The terms of a sum, and what they look like."""

    terms: Sequence[Term]
    look: SumLook


@dataclasses.dataclass(frozen=True, eq=False)
class Look:
    """What is seen of a tensor; there is one object for each look.

    So a look is compared and hashed by its identity: it holds those of its inputs,
    which hold theirs.

    Attributes:
      op_type: The type of its operation.
      is_number: Whether it may be a number.
      inputs: The inputs of the operation; None where they are not looked at.
      sums: The terms of a sum, as written and with the sums in it taken apart.
    """

    op_type: str
    is_number: bool
    inputs: Sequence["Look"] | None = None
    sums: Sequence[SumLook] = ()


_look = functools.cache(Look)
_sum_of = functools.cache(SumLook)


class _Looks(dict[tuple[int, int], tuple[tf.Tensor, Look]]):
    """What is seen of the tensors of a graph, by their `id` and how deep.

    A tensor is kept with its look, so that its `id` stays taken.
    """


class _Parts(dict[str, Sequence[Sequence[Term]]]):
    """The terms of the sums of a graph, by the names of their operations."""


class _Sums(dict[str, Sequence[Summands]]):
    """The same, with what they look like."""


def sums_of(reader: Reader, op: tf.Operation) -> Sequence[Summands]:
    """Returns the terms of a sum, as written and with the sums in it taken apart."""
    known = reader.memory.setdefault(_Sums, _Sums())
    if op.name not in known:
        known[op.name] = [
            Summands(each, _sum_look(reader, each, _DEPTH - 1))
            for each in _parts_of(reader, op)
        ]
    found: Sequence[Summands] = known[op.name]
    return found


def _parts_of(reader: Reader, op: tf.Operation) -> Sequence[Sequence[Term]]:
    known = reader.memory.setdefault(_Parts, _Parts())
    if op.name not in known:
        second = -1.0 if op.type == "Sub" else 1.0
        written = [Term(second if i else 1.0, x) for i, x in enumerate(op.inputs)]
        known[op.name] = written, terms(reader, op.outputs[0])
    found: Sequence[Sequence[Term]] = known[op.name]
    return found


def _sum_look(reader: Reader, found: Sequence[Term], depth: int) -> SumLook:
    looks = (_look_of(reader, each.tensor, depth) for each in found)
    return _sum_of(len(found), frozenset(looks))


def _look_of(reader: Reader, tensor: tf.Tensor, depth: int) -> Look:
    looks = reader.memory.setdefault(_Looks, _Looks())
    known = looks.get((id(tensor), depth))
    if known is None:
        op = reader.op(tensor)
        # Ones of the shape of another tensor count as the number.
        is_number = op.type == "OnesLike" or reader.scalar(tensor) is not None
        if not depth:
            look = _look(op.type, is_number)
        elif op.type in SUMS:
            parts = _parts_of(reader, op)
            sums = [_sum_look(reader, each, depth - 1) for each in parts]
            look = _look(op.type, is_number, (), tuple(sums))
        else:
            inputs = [_look_of(reader, each, depth - 1) for each in op.inputs]
            look = _look(op.type, is_number, tuple(inputs))
        known = looks[id(tensor), depth] = tensor, look
    found: Look = known[1]
    return found


def _may_be(pattern: Pattern, look: Look) -> bool:
    """Returns False for a tensor that a pattern does not fit."""
    if not isinstance(pattern, tuple):
        is_open = isinstance(pattern, str) and not pattern.startswith("#")
        return is_open or look.is_number
    if look.op_type not in types_of(pattern):
        return False
    if look.inputs is None:
        return True
    head, *parts = pattern
    if head in {"Add", "Sub"}:
        return any(may_sum(signed(pattern, 1), each) for each in look.sums)
    if head in {"Neg", "Sqrt", "Square"}:
        if look.op_type == "Pow":
            return look.inputs[1].is_number
        return look.op_type != head or _may_be(parts[0], look.inputs[0])
    return any(
        all(map(_may_be, parts, inputs)) for inputs in (look.inputs, look.inputs[::-1])
    )


def may_sum(wanted: Sequence[tuple[int, Pattern]], look: SumLook) -> bool:
    """Returns False for terms that fit in no order, without trying the orders."""
    return look.size == len(wanted) and all(
        # A name fits any term.
        isinstance(pattern, str) or any(_may_be(pattern, each) for each in look.terms)
        for _, pattern in wanted
    )
