"""Recognises formulas that are fixed trees of operations, written as tuples.

`("Sub", ("Exp", "x"), 1)` is `exp(x) - 1`. A string is any tensor, the same one where
it is repeated, and `"#k"` is any constant number. A number is itself, as a scalar or of
a shape that changes no other. A tuple is an operation and its inputs:

- `Add` and `Sub` are sums, in any order and with any signs: `-1 + exp(x)` is recognised
  too. A sum at the root also with all signs changed, `1 - exp(x)`: the replacement is
  then negated.
- The inputs of commutative operations may change places.
- `Sqrt` is also a power of 0.5, `Square` also `x * x` and a power of 2, `Neg` also
  `-1 * x`, `Div` every division, `Reciprocal` also `Inv`. A `Mul` of a tensor with
  itself is a `Square` only.
- `"RealDiv|DivNoNan"` is one of the two.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe.graph import SUMS
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import (
    Base,
    Term,
    are_opposite,
    negated,
    number,
    root_of,
    squared,
)
from tfsafe.rewriting.match.index import (
    Index,
    Pattern,
    may_sum,
    signed,
    sums_of,
    types_of,
)
from tfsafe.rewriting.match.products import scaled

# Each name with its tensor or number.
_Found = Mapping[str, Term | Base | float]


class Tree(NamedTuple):
    """One formula.

    Attributes:
      pattern: The formula.
      replacement: Takes the tensors and numbers of the names, in the order in which the
        names first occur; returns the stable form.
      where: Takes the numbers; returns whether they fit.
    """

    pattern: Pattern
    replacement: Callable[..., tf.Tensor]
    where: Callable[..., bool] | None = None


class Trees:
    """The match function of a rule for fixed trees.

    Args:
      *trees: The formulas, the first that fits counts.

    Attributes:
      op_types: Types of the operations that the formulas end in.
    """

    def __init__(self, *trees: Tree):
        self._trees = trees
        self._index = Index([tree.pattern for tree in trees])
        self.op_types: list[str] = sorted({
            op_type for tree in trees for op_type in types_of(tree.pattern)
        })

    def __call__(self, op: tf.Operation, reader: Reader) -> Build | None:
        """Returns how to build the stable form; None for another formula."""
        for place in self._index.places(reader, op):
            tree = self._trees[place]
            for sign, found in at_root(reader, op.outputs[0], tree.pattern):
                if _fits(tree, found):
                    return _built(tree, sign, found)
        return None


def _fits(tree: Tree, found: _Found) -> bool:
    numbers = [each for each in found.values() if isinstance(each, float)]
    return tree.where is None or tree.where(*numbers)


def _built(tree: Tree, sign: int, found: _Found) -> Build:
    names = dict.fromkeys(_names(tree.pattern))

    def build(value: Value) -> tf.Tensor:
        arguments = [found[name] for name in names]
        made = tree.replacement(
            *(
                each if isinstance(each, float) else each.make(value)
                for each in arguments
            )
        )
        return made if sign > 0 else -made

    return build


def _names(pattern: Pattern) -> Iterator[str]:
    if isinstance(pattern, str):
        yield pattern
    elif isinstance(pattern, tuple):
        for each in pattern[1:]:
            yield from _names(each)


def at_root(
    reader: Reader, tensor: tf.Tensor, pattern: Pattern
) -> Iterator[tuple[int, _Found]]:
    """Yields the sign of a tree and what its names are."""
    assert isinstance(pattern, tuple)  # noqa: S101
    if pattern[0] not in {"Add", "Sub"}:
        yield from ((1, each) for each in _matches(reader, tensor, pattern, {}))
        return
    for sign in (1, -1):
        for found in _sum(reader, tensor, pattern, {}, sign):
            yield sign, found


def argument(
    reader: Reader, tensor: tf.Tensor, pattern: Pattern
) -> tuple[int, Term] | None:
    """Reads a tree of one name.

    Returns:
      The sign of the tree and the tensor of the name; None for another formula.
    """
    if reader.op(tensor).type in types_of(pattern):
        for sign, found in at_root(reader, tensor, pattern):
            (term,) = found.values()
            if isinstance(term, Term):
                return sign, term
    return None


def first_argument(
    reader: Reader, tensor: tf.Tensor, patterns: Sequence[Pattern], index: Index
) -> tuple[int, int, Term] | None:
    """Reads the first tree of one name that fits.

    Returns:
      Its position, its sign and the tensor of the name; None if none fits.
    """
    for place in index.places(reader, reader.op(tensor)):
        found = argument(reader, tensor, patterns[place])
        if found is not None:
            return place, *found
    return None


def scaled_argument(
    reader: Reader, tensor: tf.Tensor, patterns: Sequence[Pattern]
) -> Iterator[tuple[int, Term, float]]:
    """Reads trees of one name and perhaps a number.

    Yields:
      The sign of the tree, the tensor of the name, and the number; 1 without one.
    """
    for pattern in patterns:
        if reader.op(tensor).type not in types_of(pattern):
            continue
        for sign, found in at_root(reader, tensor, pattern):
            named = [each for each in found.values() if isinstance(each, Term)]
            numbers = [each for each in found.values() if isinstance(each, float)]
            if len(named) == 1:
                yield sign, named[0], numbers[0] if numbers else 1.0


def _matches(
    reader: Reader, tensor: tf.Tensor, pattern: Pattern, found: _Found
) -> Iterator[_Found]:
    """Yields assignments of the names that make the pattern `tensor`."""
    if isinstance(pattern, str):
        yield from _bound(reader, pattern, Term(1.0, reader.source(tensor)), found)
        return
    op = reader.op(tensor)
    if not isinstance(pattern, tuple) or op.type not in types_of(pattern):
        return
    head, *parts = pattern
    if head in {"Add", "Sub"}:
        yield from _sum(reader, tensor, pattern, found, 1)
    elif head == "Square":
        yield from _square(reader, tensor, parts[0], found)
    elif head in {"Sqrt", "Neg"}:
        inner = (root_of if head == "Sqrt" else negated)(reader, tensor)
        if inner is not None:
            yield from _matches(reader, inner, parts[0], found)
    elif op.type in types_of(pattern):
        for inputs in _orders(reader, op):
            yield from _inputs(reader, inputs, parts, found)


def _square(
    reader: Reader, tensor: tf.Tensor, pattern: Pattern, found: _Found
) -> Iterator[_Found]:
    base = squared(reader, tensor)
    if base is None:
        return
    if base.minus is None:
        yield from _matches(reader, base.x, pattern, found)
    elif isinstance(pattern, str):
        yield from _bound(reader, pattern, base, found)


def _orders(reader: Reader, op: tf.Operation) -> Iterator[Sequence[tf.Tensor]]:
    if op.type == "Mul" and reader.same(*op.inputs):
        return
    yield op.inputs
    yield from itertools.islice(both_ways(op), 1, None)


def _inputs(
    reader: Reader,
    inputs: Sequence[tf.Tensor],
    patterns: Sequence[Pattern],
    found: _Found,
) -> Iterator[_Found]:
    """Yields assignments of the names that make the patterns the inputs."""
    if not patterns:
        yield found
        return
    first, *rest = patterns
    # The numbers are last: their shape must fit that of the other input.
    numeric = isinstance(first, float | int) or str(first).startswith("#")
    for each in (
        _number(reader, inputs[0], inputs[-1], first, found)
        if numeric
        else _matches(reader, inputs[0], first, found)
    ):
        yield from _inputs(reader, [*inputs[1:], inputs[0]], rest, each)


def _number(
    reader: Reader, tensor: tf.Tensor, operand: tf.Tensor, wanted: Any, found: _Found
) -> Iterator[_Found]:
    value = number(reader, tensor, operand)
    if isinstance(wanted, str):
        if value is not None and found.get(wanted, value) == value:
            yield {**found, wanted: value}
    elif value == wanted:
        yield found


def _sum(
    reader: Reader, tensor: tf.Tensor, pattern: Any, found: _Found, sign: int
) -> Iterator[_Found]:
    op = reader.op(tensor)
    if op.type not in SUMS:
        return
    wanted = signed(pattern, sign)
    for summands in sums_of(reader, op):
        if may_sum(wanted, summands.look):
            for order in itertools.permutations(summands.terms):
                yield from _terms(reader, order, wanted, found)


def _terms(
    reader: Reader,
    order: Sequence[Term],
    wanted: Sequence[tuple[int, Pattern]],
    found: _Found,
    place: int = 0,
) -> Iterator[_Found]:
    if place == len(wanted):
        yield found
        return
    term, (sign, pattern) = order[place], wanted[place]
    if isinstance(pattern, float | int):
        operand = order[place - 1].tensor
        one = number(reader, term.tensor, operand)
        is_number = one is not None and one * term.factor == sign * pattern
        options = iter([found] if is_number else [])
    elif isinstance(pattern, str):
        # Next to a number, another constant would only be folded.
        numeric = any(isinstance(each, float | int) for _, each in wanted)
        is_open = not numeric or reader.constant(term.tensor) is None
        signed = Term(term.factor * sign, reader.source(term.tensor))
        options = _bound(reader, pattern, signed, found) if is_open else iter(())
    else:
        is_signed = term.factor == sign
        options = iter(())
        if is_signed:
            options = _matches(reader, term.tensor, pattern, found)
    for each in options:
        yield from _terms(reader, order, wanted, each, place + 1)


def _bound(
    reader: Reader, name: str, what: Term | Base, found: _Found
) -> Iterator[_Found]:
    if name not in found:
        yield {**found, name: what}
    elif _alike(reader, found[name], what):
        yield found


def _alike(reader: Reader, a: Term | Base | float, b: Term | Base | float) -> bool:
    if not isinstance(a, Term) or not isinstance(b, Term):
        return False
    if a.factor == b.factor and reader.same(a.tensor, b.tensor):
        return True
    first, second = (scaled(reader, each.tensor, each.factor) for each in (a, b))
    if first.factor == second.factor:
        return reader.same(first.tensor, second.tensor)
    is_negative = first.factor == -second.factor
    return is_negative and are_opposite(reader, first.tensor, second.tensor)
