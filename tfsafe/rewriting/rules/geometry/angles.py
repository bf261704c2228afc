"""Rules for angles whose cosine or sine rounds to 1 or beyond it."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, SUMS
from tfsafe.ops.formulas.differences import angles
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.layouts import same_shape
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import (
    beside_number,
    is_sum,
    number,
    root_of,
    square_of,
    terms,
)
from tfsafe.rewriting.match.products import factored
from tfsafe.rewriting.match.reductions import (
    Reduction,
    along,
    dot_product,
    norm,
    reduction,
    reshaped,
)
from tfsafe.rewriting.match.trees import Tree, Trees, argument
from tfsafe.rewriting.rules.geometry import hyperboloids
from tfsafe.rewriting.rules.geometry.hyperboloids import is_added
from tfsafe.rewriting.rules.geometry.norms import unit_vector

_QUOTIENTS = DIVISIONS | {"Mul"}


class _Cosine(NamedTuple):
    """The product of two unit vectors, and the sum that it is."""

    a: Build
    b: Build
    total: Reduction


def _unclipped(reader: Reader, tensor: tf.Tensor) -> tf.Tensor:
    """Returns `x` for `clip(x, -1, 1)` and the like."""
    while True:
        op = reader.op(tensor)
        for x, limit in both_ways(op, "Minimum", "Maximum"):
            bound = number(reader, limit, x)
            lowest = 0 if bound == 0 and reader.is_nonnegative(x) else -1
            if bound == (1 if op.type == "Minimum" else lowest):
                tensor = x
                break
        if reader.op(tensor) is op:
            return tensor


def _of_lines(reader: Reader, cosine: tf.Tensor) -> tuple[tf.Tensor, float]:
    """Reads `|c|`, and `2 * c ** 2 - 1`.

    Returns:
      The cosine c, and how often its angle is taken; 0 for another formula.
    """
    op = reader.op(cosine)
    if op.type == "Abs":
        return _unclipped(reader, op.inputs[0]), 1.0
    for term, less in beside_number(reader, cosine):
        square = square_of(reader, term.tensor)
        if square is not None and (term.factor, less) == (2, -1):
            op = reader.op(square)
            inner = op.inputs[0] if op.type == "Abs" else square
            return _unclipped(reader, inner), 2.0
    return cosine, 0.0


def _of_units(reader: Reader, tensor: tf.Tensor) -> _Cosine | None:
    """Reads the product of two unit vectors."""
    found = dot_product(reader, tensor)
    if found is not None:
        a, b, total = found
        units = [unit_vector(reader, reader.op(each)) for each in (a, b)]
        if all(each is not None and each.axes == total.axes for each in units):
            return _Cosine(lambda value: value(a), lambda value: value(b), total)
    whole = reduction(reader, tensor, "Sum")
    if whole is not None and reader.op(whole.x).type in _QUOTIENTS:
        return _quotients_inside(reader, whole)
    return None


def _quotients_inside(reader: Reader, total: Reduction) -> _Cosine | None:
    """Reads `sum(a / norm(a) * b / norm(b))`, in any order of the factors."""
    product = factored(reader, reader.op(total.x))
    if product.factor != 1 or len(product.above) != 2 or len(product.below) != 2:
        return None
    for a, b in (product.above, product.above[::-1]):
        sides = zip((a, b), product.below, strict=True)
        if all(
            same_shape(x, total.x)
            and _is_length(reader, length, x, total.axes, is_inside=True)
            for x, length in sides
        ):
            return _cosine(a, b, total)
    return None


def _cosine(a: tf.Tensor, b: tf.Tensor, total: Reduction) -> _Cosine:
    return _Cosine(
        lambda value: ops.l2_normalize(value(a), axis=total.axes),
        lambda value: ops.l2_normalize(value(b), axis=total.axes),
        total,
    )


def _is_length(
    reader: Reader,
    tensor: tf.Tensor,
    x: tf.Tensor,
    axes: tuple[int, ...] | None,
    *,
    is_inside: bool,
) -> bool:
    """Returns whether a tensor is the norm of x; if inside, one that divides x."""
    for step in reshaped(reader, tensor):
        found = norm(reader, step)
        if found is not None:
            is_of_x = found.base.minus is None and reader.same(found.base.x, x)
            fits = not is_inside or along(reader, tensor, found, x)
            return is_of_x and found.axes == axes and fits
    return False


def _match_angle(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    cosine, times = _of_lines(reader, _unclipped(reader, op.inputs[0]))
    found = _of_units(reader, cosine) or _quotient_of_sums(reader, cosine)
    between = angles.between_units
    if found is None:
        product = dot_product(reader, cosine)
        if product is None or product[0].shape.rank is None:
            return None
        x, y, total = product
        found = _Cosine(lambda value: value(x), lambda value: value(y), total)
        between = angles.between
    a, b, (_, axes, keepdims) = found
    if not times:
        return lambda value: between(a(value), b(value), axes, keepdims)

    def build(value: Value) -> tf.Tensor:
        first = a(value)
        second = angles.facing(first, b(value), axes)
        return times * between(first, second, axes, keepdims)

    return build


def _match_near_zero(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `acos(1 - x)` and `acos(a / (a + b))`."""
    x = op.inputs[0]
    cosine = _unclipped(reader, x)
    found = argument(reader, cosine, ("Sub", 1, "x"))
    if is_watched(reader, op):
        return None
    if found is not None and found[0] > 0:
        return _clipped(angles.acos_of_one_minus, found[1].make, cosine is not x)
    inner = reader.op(cosine)
    if inner.type not in DIVISIONS or not is_sum(reader.op(inner.inputs[1])):
        return None
    for a, b in both_ways(reader.op(inner.inputs[1])):
        if reader.same(a, inner.inputs[0]):
            return lambda value: angles.acos_of_fraction(value(a), value(b))
    return None


def _clipped(
    function: Callable[[tf.Tensor], tf.Tensor], x: Build, is_clipped: bool
) -> Build:
    """Returns how to build a function of x, which may be clipped to [0, 2]."""
    if not is_clipped:
        return lambda value: function(x(value))
    return lambda value: function(tf.clip_by_value(x(value), 0.0, 2.0))


def _quotient_of_sums(reader: Reader, cosine: tf.Tensor) -> _Cosine | None:
    """Reads `sum(a * b) / (norm(a) * norm(b))`."""
    op = reader.op(cosine)
    found = dot_product(reader, op.inputs[0]) if op.type in DIVISIONS else None
    if found is None or reader.op(op.inputs[1]).type != "Mul":
        return None
    first, second, total = found
    lengths = list(reader.op(op.inputs[1]).inputs)
    if not all(same_shape(each, op.inputs[0]) for each in lengths):
        return None
    for a, b in ((first, second), (second, first)):
        if all(
            _is_length(reader, length, x, total.axes, is_inside=False)
            for x, length in zip((a, b), lengths, strict=True)
        ):
            return _cosine(a, b, total)
    return None


def _match_sine(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches 1 minus the square of a cosine of unit vectors."""
    found = terms(reader, op.outputs[0])
    for one, other in (found, found[::-1]) if len(found) == 2 else ():
        square = square_of(reader, other.tensor)
        is_one = number(reader, one.tensor, other.tensor) == one.factor == 1
        if square is None or other.factor != -1 or not is_one:
            continue
        cosine = _unclipped(reader, square)
        product = _of_units(reader, cosine) or _quotient_of_sums(reader, cosine)
        if product is not None:
            a, b, (_, axes, keepdims) = product
            return lambda value: angles.sine_squared(a(value), b(value), axes, keepdims)
    return None


def _match_domain(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches inverse functions of what was added up, and so rounded."""
    if is_watched(reader, op):
        return None
    bounds = reader.bounds(op.inputs[0])
    if -1 <= bounds.low <= bounds.high <= 1 or not is_added(reader, op.inputs[0]):
        return None
    function = angles.within_domain(ops.acos if op.type == "Acos" else ops.asin)
    return lambda value: function(value(op.inputs[0]))


def _match_root(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches roots of a number less what was added up, and so rounded."""
    inside = root_of(reader, op.outputs[0])
    if inside is None or inside.dtype in precision.HALF or is_watched(reader, op):
        return None
    found = terms(reader, inside)
    numbers = [reader.scalar(each.tensor) for each in found]
    if len(found) != 2 or (numbers[0] is None) == (numbers[1] is None):
        return None
    place = 0 if numbers[0] is not None else 1
    size = (numbers[place] or 0.0) * found[place].factor
    other = found[1 - place]
    square = square_of(reader, other.tensor)
    cosine = other.tensor if square is None else square
    if size <= 0 or other.factor >= 0 or not is_added(reader, cosine):
        return None
    if reader.is_nonnegative(inside):
        return None
    function = angles.above(ops.sqrt, 0.0, 2 * size)
    units = None if square is not None else _of_units(reader, cosine)
    if units is None or other.factor != -size:
        return lambda value: function(value(inside))
    a, b, (_, axes, keepdims) = units
    return lambda value: ops.sqrt(
        size * angles.one_minus_cosine(a(value), b(value), axes, keepdims)
    )


RULES = (
    Rule(
        name="angle-of-unit-vectors",
        before="acos(sum(a * b)), acos(|sum(a * b)|), acos(2 * sum(a * b) ** 2 - 1), "
        "of vectors of length 1",
        after="2 * atan2(norm(a - b), norm(a + b)), of b or -b; of other vectors the "
        "same",
        fails_when="a is near b: the cosine rounds to 1 or beyond",
        reference="Kahan, How Futile are Mindless Assessments of Roundoff, 2006",
        op_types=["Acos"],
        match=_match_angle,
    ),
    Rule(
        name="great-circle",
        before="acos(sin(a) * sin(b) + cos(a) * cos(b) * cos(c))",
        after="2 * atan2(sqrt(h), sqrt(1 - h)), h being the haversine",
        fails_when="the places are near each other: the cosine rounds to 1 or beyond",
        reference="Sinnott, Sky and Telescope 68, 1984",
        match=Trees(
            *(
                Tree(
                    ("Acos", ("Add", ("Mul", ("Sin", "a"), ("Sin", "b")), product)),
                    angles.great_circle,
                )
                for product in (
                    ("Mul", ("Mul", ("Cos", "a"), ("Cos", "b")), ("Cos", "c")),
                    ("Mul", ("Cos", "a"), ("Mul", ("Cos", "b"), ("Cos", "c"))),
                    ("Mul", ("Cos", "b"), ("Mul", ("Cos", "a"), ("Cos", "c"))),
                )
            )
        ),
    ),
    Rule(
        name="acos-of-one-minus",
        before="acos(1 - x), acos(a / (a + b)), also clipped",
        after="2 * asin(sqrt(x / 2)) where x is near 0",
        fails_when="x is near 0: the cosine rounds to 1",
        reference="half-angle formula",
        op_types=["Acos"],
        match=_match_near_zero,
    ),
    Rule(
        name="rounded-domain",
        before="acos(x) or asin(x), where x is a sum",
        after="the same; of 1 where x rounds to slightly more",
        fails_when="x rounds beyond 1: NaN",
        reference="rounding of a sum",
        op_types=["Acos", "Asin"],
        match=_match_domain,
    ),
    Rule(
        name="rounded-root",
        before="sqrt(1 - c * c) or sqrt(2 - 2 * c), where c is a sum",
        after="the same; of 0 where the difference rounds to slightly less",
        fails_when="c rounds beyond 1: NaN",
        reference="rounding of a sum",
        op_types=["Sqrt", "Pow"],
        match=_match_root,
    ),
    Rule(
        name="acosh-of-one-plus",
        before="acosh(1 + x)",
        after="2 * asinh(sqrt(x / 2))",
        fails_when="x is near 0",
        reference="half-angle formula",
        match=Trees(Tree(("Acosh", ("Add", 1, "x")), angles.acosh1p)),
    ),
    *hyperboloids.RULES,
    Rule(
        name="sine-of-unit-vectors",
        before="1 - sum(a * b) ** 2, of vectors that were divided by their lengths, "
        "or the sum by both",
        after="(norm(a - b) * norm(a + b) / 2) ** 2",
        fails_when="a is near b: the square of the cosine rounds to 1 or beyond",
        reference="product of the sine and cosine of the half angle",
        op_types=SUMS,
        match=_match_sine,
    ),
)
