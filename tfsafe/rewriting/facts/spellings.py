"""Reads operations in their usual spelling, by which the rules know most formulas.

`x * (1 / y)` is `x / y`, `-(a - b)` is `b - a`, `1 / (1 + exp(-x))` is a sigmoid, and
a part that `tf.split` or `tf.unstack` returns is a slice. The usual spelling is an
operation of its own in the graph that is read, which is never computed.
"""

import collections
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import tensorflow as tf

from tfsafe.graph import (
    ADDITIONS,
    DIVISIONS,
    MATRIX_PRODUCTS,
    RECIPROCALS,
    OpFact,
    op_types,
)
from tfsafe.rewriting.facts.identities import ROWS, Formula, Tree
from tfsafe.rewriting.facts.layouts import divided, reshapes, same_shape, same_size
from tfsafe.rewriting.facts.moves import Moves, created
from tfsafe.rewriting.facts.sums import contraction
from tfsafe.rewriting.facts.tensors import Reader, is_float

# What the names of a formula are.
_Found = Mapping[str, tf.Tensor]

_TYPES = {
    "Add": ADDITIONS,
    "Div": DIVISIONS | RECIPROCALS,
    "Above": frozenset({"Greater", "GreaterEqual"}),
    "Below": frozenset({"Less", "LessEqual"}),
}
_MADE: Mapping[str, str] = {"Add": "AddV2", "Div": "RealDiv"}
_REDUCTIONS = frozenset({"Max", "Mean", "Min", "Prod", "Sum"})
_COMMUTATIVE = frozenset({"Add", "Maximum", "Minimum", "Mul"})
_SPLITS = frozenset({"Split", "SplitV", "Unpack"})
_MOVES = op_types(OpFact.MOVES)
# Formulas whose parts are looked at: the gates of a recurrence are sums.
_DIVIDED = (op_types(OpFact.ELEMENTWISE) | {"LogSoftmax", "Softmax"}) - ADDITIONS


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
        for part, taken in _slices(usual, op) if op.type in _SPLITS else ():
            usual.respell(part, taken)
            reached.add(op.name)
        seen = _usual(usual, op)
        if seen is None:
            seen = moves.inward(op)
        if seen is not None:
            usual.respell(op.outputs[0], seen)
        if seen is not None or any(each.op.name in reached for each in op.inputs):
            reached.add(op.name)
    return frozenset(reached)


def _usual(reader: Reader, op: tf.Operation) -> tf.Tensor | None:
    """Returns the usual spelling of an operation; None if it has it."""
    if op.type not in _BY_TYPE:
        return None
    written = op.outputs[0]
    if not is_float(written) or written.name in reader.kept:
        return None
    types = {each.type for x in op.inputs for each in _both(reader, x)}
    for needed, make in _BY_TYPE[op.type]:
        if needed and types.isdisjoint(needed):
            continue
        for made in make(reader, op):
            # A constant may have given the result its shape.
            is_other = made is not written and same_shape(made, written)
            return made if is_other else None
    return None


def _slices(reader: Reader, op: tf.Operation) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
    """Yields the outputs of `tf.split` and of `tf.unstack`, and them as slices."""
    found = divided(reader, op)
    if found is None:
        return
    whole, axis = found
    formula = reader.op(whole)
    while formula.type in _MOVES:
        formula = reader.op(formula.inputs[0])
    if formula.type not in _DIVIDED or not is_float(whole):
        return
    places: Sequence[int | slice] = range(len(op.outputs))
    if op.type != "Unpack":
        sizes = [each.shape[axis] for each in op.outputs]
        if None in sizes:
            return
        ends = itertools.accumulate(sizes)
        places = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    before = [slice(None)] * axis
    with op.graph.as_default(), tf.control_dependencies(None):
        for part, place in zip(op.outputs, places, strict=True):
            if part.consumers():
                yield part, whole[(*before, place)]


def _both(reader: Reader, tensor: tf.Tensor) -> Sequence[tf.Operation]:
    """Returns the operation that makes a tensor, in both spellings.

    `-(x - y)` is also seen as `y - x`.
    """
    seen = reader.source(tensor)
    written = reader.written(seen)
    return (seen.op,) if written is seen else (seen.op, written.op)


def _by_row(formula: Tree, usual: Formula | None) -> "_Make":
    def make(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
        for found in _inside(reader, op, formula, {}):
            yield op.outputs[0] if usual is None else _made(reader, op, usual, found)

    return make


def _made(
    reader: Reader, op: tf.Operation, formula: Formula, found: _Found
) -> tf.Tensor:
    """Writes a formula of what its names are."""
    if isinstance(formula, str):
        return found[formula]
    dtype = op.outputs[0].dtype
    if not isinstance(formula, tuple):
        with op.graph.as_default(), tf.control_dependencies(None):
            return tf.constant(formula, dtype)
    head, *parts = formula
    inputs = [_made(reader, op, each, found) for each in parts]
    number = {"T": tf.compat.v1.AttrValue(type=dtype.as_datatype_enum)}
    made = created(op.graph, _MADE.get(head, head), inputs, dtype, number)
    seen = _usual(reader, made.op)
    return made if seen is None else seen


def _matches(
    reader: Reader, tensor: tf.Tensor, formula: Formula, found: _Found
) -> Iterator[_Found]:
    """Yields what the names are for `tensor` to be the formula."""
    if isinstance(formula, str):
        if formula not in found:
            yield {**found, formula: tensor}
        elif reader.same(found[formula], tensor):
            yield found
    elif not isinstance(formula, tuple):
        if reader.is_number(tensor, formula):
            yield found
    else:
        for op in _both(reader, tensor):
            yield from _inside(reader, op, formula, found)


def _inside(
    reader: Reader, op: tf.Operation, formula: Tree, found: _Found
) -> Iterator[_Found]:
    head, *parts = formula
    if op.type not in _types(formula):
        return
    if op.type in RECIPROCALS and parts.pop(0) != 1:
        return
    if len(parts) != len(op.inputs):
        return
    orders = [tuple(op.inputs)]
    if head in _COMMUTATIVE:
        orders.append(orders[0][::-1])
    for inputs in orders:
        yield from _all(reader, inputs, parts, found)


def _all(
    reader: Reader,
    tensors: Sequence[tf.Tensor],
    formulas: Sequence[Formula],
    found: _Found,
) -> Iterator[_Found]:
    if not formulas:
        yield found
        return
    for each in _matches(reader, tensors[0], formulas[0], found):
        yield from _all(reader, tensors[1:], formulas[1:], each)


def _power(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    """Reads `exp(y * log(x))`."""
    for product in (("Mul", "y", ("Log", "x")), ("Xlogy", "y", "x")):
        for found in _inside(reader, op, ("Exp", product), {}):
            if reader.is_nonnegative(found["x"]):
                yield _made(reader, op, ("Pow", "x", "y"), found)


def _amount(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    """Reads `abs(x)` of what is never negative."""
    if reader.is_nonnegative(op.inputs[0]):
        yield op.inputs[0]


def _twice(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    """Reads `x + x`."""
    sources = [reader.source(each) for each in op.inputs]
    if len(sources) == 2 and sources[0] is sources[1]:
        yield _made(reader, op, ("Mul", 2, "x"), {"x": sources[0]})


def _mean(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    """Reads `sum(x) / n`."""
    total = reader.op(op.inputs[0])
    if total.type == "Sum" and _counts(reader, op.inputs[1], *total.inputs):
        x, along = total.inputs
        yield _along(op, "Mean", x, along, keep_dims=total.get_attr("keep_dims"))


def _total(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    found = contraction(reader, op)
    if found is not None:
        with op.graph.as_default(), tf.control_dependencies(None):
            x, *others = found.factors
            for each in others:
                x = x * each
            axes = tf.constant(found.axes)
        yield _along(op, "Sum", x, axes, keep_dims=found.keepdims) if found.axes else x


def _multiplied_by_einsum(_: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    """Reads `einsum("ij,i->ij", x, y)` as `x * y[:, None]`, "ij,i->j" as its sum."""
    labels, made = op.get_attr("equation").decode().replace(" ", "").split("->")
    sides = list(zip(labels.split(","), op.inputs, strict=True))
    if len(sides) != 2 or "." in labels:
        return
    for (whole, x), (part, y) in (sides, sides[::-1]):
        if len({*whole}) == len(whole) != len(part) and all(
            side == "".join(each for each in whole if each in side)
            for side in (part, made)
        ):
            summed = [place for place, each in enumerate(whole) if each not in made]
            # Axes before those of y need not be added.
            own = whole[whole.find(part[:1]) :]
            with op.graph.as_default(), tf.control_dependencies(None):
                for place, each in enumerate(own):
                    y = y if each in part else tf.expand_dims(y, place)
                x, axes = x * y, tf.constant(summed, tf.int32)
            yield _along(op, "Sum", x, axes, keep_dims=False) if summed else x


def _along(
    op: tf.Operation, op_type: str, x: tf.Tensor, axes: tf.Tensor, **flags: bool
) -> tf.Tensor:
    """Writes an operation along axes, such as a reduction."""
    attributes = {
        "T": tf.compat.v1.AttrValue(type=x.dtype.as_datatype_enum),
        "Tidx": tf.compat.v1.AttrValue(type=axes.dtype.as_datatype_enum),
        **{name: tf.compat.v1.AttrValue(b=flag) for name, flag in flags.items()},
    }
    return created(op.graph, op_type, [x, axes], x.dtype, attributes)


def _mean_of_parts(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    """Reads `sum(x / n)`."""
    parts, along = op.inputs
    part = reader.op(parts)
    if part.type in DIVISIONS and _counts(reader, part.inputs[1], parts, along):
        x = part.inputs[0]
        yield _along(op, "Mean", x, along, keep_dims=op.get_attr("keep_dims"))


def _counts(reader: Reader, number: tf.Tensor, x: tf.Tensor, along: tf.Tensor) -> bool:
    """Returns whether a number is that of the elements along some axes."""
    axes = reader.axes(along, x.shape.rank)
    if not axes or x.shape.rank is None:
        return False
    sizes = [x.shape[axis] for axis in axes]
    return None not in sizes and reader.is_number(number, math.prod(sizes))


def _reshaped(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    """Reads `squeeze(sum(x, axis, keepdims=True), axis)`, and the reverse of it."""
    total = reader.op(op.inputs[0])
    if total.type in _REDUCTIONS and reshapes(reader, op):
        x, along = total.inputs
        keeps = total.get_attr("keep_dims")
        made = _along(op, total.type, x, along, keep_dims=not keeps)
        if same_size(made, op.outputs[0]):
            yield made


def _of_stack(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    """Reads `sum(stack([x, y]))`."""
    stack = reader.op(op.inputs[0])
    rank = op.inputs[0].shape.rank
    if stack.type != "Pack" or rank is None or op.get_attr("keep_dims"):
        return
    first, *others = stack.inputs
    if reader.axes(op.inputs[1], rank) == (stack.get_attr("axis") % rank,):
        for each in others:
            first = _made(reader, op, ("Add", "x", "y"), {"x": first, "y": each})
        yield first


def _sums_of_the_rest(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    """Reads `sum(x) - cumsum(x)`."""
    total, sums = map(reader.op, op.inputs)
    if (
        total.type != "Sum"
        or sums.type != "Cumsum"
        or not reader.same(total.inputs[0], sums.inputs[0])
    ):
        return
    x, axis = sums.inputs
    along = reader.axes(axis, x.shape.rank)
    is_whole = total.get_attr("keep_dims") or x.shape.rank == 1
    if is_whole and along and reader.axes(total.inputs[1], x.shape.rank) == along:
        yield _with_other_end(sums, backwards=True)


def _sums_with_ends(reader: Reader, op: tf.Operation) -> Iterator[tf.Tensor]:
    """Reads `cumsum(x, exclusive=True) + x`, and `cumsum(x) - x`."""
    if len(op.inputs) > 2:
        return
    for sums, x in itertools.permutations(op.inputs):
        made = reader.op(sums)
        if made.type == "Cumsum" and reader.same(made.inputs[0], x):
            adds = op.type in ADDITIONS
            if made.get_attr("exclusive") == adds and (adds or sums is op.inputs[0]):
                yield _with_other_end(made, backwards=False)


def _with_other_end(op: tf.Operation, *, backwards: bool) -> tf.Tensor:
    """Writes a running sum that has the element itself, or has not."""
    return _along(
        op,
        "Cumsum",
        *op.inputs,
        exclusive=not op.get_attr("exclusive"),
        reverse=op.get_attr("reverse") != backwards,
    )


_Make = Callable[[Reader, tf.Operation], Iterator[tf.Tensor]]
# By the type of an operation: what finds other spellings, and the types that an input
# needs for that, one of them, if any.
_BY_TYPE: Mapping[str, list[tuple[frozenset[str], _Make]]] = collections.defaultdict(
    list
)


@functools.cache
def _types(formula: Formula) -> frozenset[str]:
    """Returns the types of the operations that a formula may end in."""
    if not isinstance(formula, tuple):
        return frozenset()
    return _TYPES.get(formula[0], frozenset({formula[0]}))


def _enter(
    types: frozenset[str], make: _Make, needed: frozenset[str] = frozenset()
) -> None:
    """Adds what may find another spelling of operations of some types."""
    for each in types:
        _BY_TYPE[each].append((needed, make))


_enter(ADDITIONS | MATRIX_PRODUCTS | {"Einsum"}, _total)
_enter(frozenset({"Einsum"}), _multiplied_by_einsum)
_enter(ADDITIONS, _twice)
_enter(DIVISIONS, _mean, frozenset({"Sum"}))
_enter(frozenset({"Sum"}), _of_stack, frozenset({"Pack"}))
_enter(frozenset({"Sum"}), _mean_of_parts, DIVISIONS)
_enter(frozenset({"Sub"}), _sums_of_the_rest, frozenset({"Sum"}))
_enter(ADDITIONS | {"Sub"}, _sums_with_ends, frozenset({"Cumsum"}))
_enter(frozenset({"Exp"}), _power, frozenset({"Mul", "Xlogy"}))
_enter(frozenset({"Abs"}), _amount)
_enter(
    frozenset({"ExpandDims", "Reshape", "Squeeze", "StridedSlice"}),
    _reshaped,
    _REDUCTIONS,
)
for _row in ROWS:
    _needed = [_types(each) for each in _row[0][1:]]
    _enter(_types(_row[0]), _by_row(*_row), max(_needed, key=bool))
