"""Rules for sums whose terms nearly cancel: a function less its tangent, and others."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, SUMS
from tfsafe.ops.formulas.differences import tangents
from tfsafe.rewriting.analysis import holes, near_one
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match import linear
from tfsafe.rewriting.match.arithmetic import root_of, square_of
from tfsafe.rewriting.match.linear import Group, Part, merged, minus, parts, total
from tfsafe.rewriting.match.products import Product, joined
from tfsafe.rewriting.match.trees import Tree, Trees
from tfsafe.rewriting.rules import references
from tfsafe.rewriting.rules.differences import complements, divergences, hazards

_MOST = 12  # Longer sums are not taken apart.


def _groups(reader: Reader, found: Sequence[Part]) -> Iterator[Group]:
    for part in found:
        if part.tensor is None:
            continue
        op = reader.op(part.tensor)
        if op.type in _TANGENTS:
            yield from _tangent(reader, part, op)
        elif op.type == "Sqrt":
            yield from _roots(reader, part, op.inputs[0])
        elif op.type == "Mul":
            yield from _scaled_tangent(reader, found, part, op)
            yield from _factored(reader, found, part, op)
            yield from _product(reader, part, op)
            yield from divergences.of_product(reader, part, op)
        elif op.type == "Xlogy":
            yield from divergences.of_xlogy(reader, part, op)
        elif op.type in DIVISIONS:
            yield from hazards.of_quotient(reader, part, op)


def _tangent(reader: Reader, part: Part, op: tf.Operation) -> Iterator[Group]:
    """Yields `exp(x) - 1 - x` and the like."""
    function, constant, sign, scale = _TANGENTS[op.type]
    x = op.inputs[0]
    size = _terms_of_sum(part, x)
    if size is None:
        return
    made = part._replace(factor=scale * part.factor)
    inside = divergences.summed(reader, x, part)
    wanted = [each._replace(factor=sign * made.factor * each.factor) for each in inside]
    if constant:
        number = Part(constant * made.factor * size, None)
        wanted = merged(reader, [*wanted, number])
    if op.type != "Log":
        yield Group([part, *wanted], made, lambda value: function(value(x)))
        return
    log = op.outputs[0]
    less_one = near_one.less_one(reader, x) or _square_less_one(reader, x)

    def step(value: Value) -> tf.Tensor:
        return value(x) - 1 if less_one is None else less_one(value)

    def build(value: Value) -> tf.Tensor:
        # Other rules may know the logarithm where its argument underflows.
        if less_one is None:
            return function(value(x), value(log))
        return tangents.step_minus_log(less_one(value), value(log))

    if reader.op(x).type in DIVISIONS:
        quotient = made._replace(tensor=_Step(*reader.op(x).inputs))
        yield Group([part, quotient], made, build)
    yield Group([part, *wanted], made, build)
    # `s^2 - 1 - 2 log(s)`
    made = part._replace(factor=-0.5 * part.factor)
    wanted = [Part(-made.factor * size, None)]
    square = part._replace(factor=made.factor, tensor=_Square(x))
    yield Group(
        [part, square, *wanted],
        made,
        lambda value: tf.square(step(value)) + 2 * build(value),
    )


def _square_less_one(reader: Reader, x: tf.Tensor) -> Build | None:
    base = square_of(reader, x)
    if base is None:
        return None
    return lambda value: (value(base) - 1) * (value(base) + 1)


class _Step(NamedTuple):
    """Any tensor that is `(a - b) / b`."""

    a: tf.Tensor
    b: tf.Tensor


class _Square(NamedTuple):
    """Any tensor that is the square of another."""

    of: tf.Tensor


def _terms_of_sum(part: Part, x: tf.Tensor) -> int | None:
    """Returns how many elements are summed; None if that is not known."""
    if part.axes is None:
        return 1
    if not x.shape.rank:
        return None
    return tf.TensorShape([x.shape[axis] for axis in part.axes]).num_elements()


def _roots(reader: Reader, part: Part, inside: tf.Tensor) -> Iterator[Group]:
    """Yields `a + b - 2 sqrt(a * b)`."""
    op = reader.op(inside)
    if op.type == "Mul":
        yield from _of_two(part, *op.inputs)


def _of_two(part: Part, a: tf.Tensor, b: tf.Tensor) -> Iterator[Group]:
    made = part._replace(factor=-0.5 * part.factor)
    if divergences.line_up(part, a, b):
        wanted = [made._replace(tensor=each) for each in (a, b)]
        yield Group(
            [part, *wanted],
            made,
            lambda value: tangents.squared_difference_of_roots(value(a), value(b)),
        )


def _factored(
    reader: Reader, found: Sequence[Part], part: Part, op: tf.Operation
) -> Iterator[Group]:
    """Yields `a * cos(x) - a` and `a^2 + b^2 - 2 a b cos(x)`."""
    for function, rest in near_one.products(reader, op) if part.axes is None else ():
        less_one = near_one.times(rest, function)
        for other in found:
            if other is not part and near_one.is_opposite(reader, other, part, rest):
                yield Group([part, other], part, less_one)
        if len(rest.above) != 2 or rest.below:
            continue
        a, b = rest.above
        made = part._replace(factor=-0.5 * part.factor * rest.factor)
        wanted = [made._replace(tensor=_Square(each)) for each in (a, b)]
        yield Group([part, *wanted], made, _cosine_rule(a, b, rest.factor, less_one))


def _scaled_tangent(
    reader: Reader, found: Sequence[Part], part: Part, op: tf.Operation
) -> Iterator[Group]:
    """Yields `a * x - a * f(x)`, such as `x - s * log(1 + x / s)`."""
    product = near_one.numbered(reader, op)
    for place, each in enumerate(product.above if part.axes is None else ()):
        inner = reader.op(each)
        if inner.type not in _TANGENTS:
            continue
        above = [*product.above[:place], *product.above[place + 1 :]]
        rest = product._replace(above=above)
        for group in _tangent(reader, Part(1.0, each), inner):
            others = [part]
            for wanted in group.parts[1:]:
                others += _multiple(reader, found, wanted, rest, part.factor)
            if len(others) == len(group.parts):
                near = near_one.times(rest, group.make)
                yield Group(others, part, linear.where_they_cancel(others, near))


def _multiple(
    reader: Reader, found: Sequence[Part], part: Part, rest: Product, factor: float
) -> list[Part]:
    """Returns the part of a sum that is another part times a product, if any."""
    whole = rest
    if isinstance(part.tensor, tf.Tensor):
        whole = joined(reader, rest, near_one.product_of(reader, part.tensor))
    elif part.tensor is not None:
        return []
    for other in found:
        if other.tensor is not None and other.axes is None:
            product = near_one.product_of(reader, other.tensor)
            size = factor * part.factor * whole.factor
            is_size = math.isclose(other.factor * product.factor, size, rel_tol=1e-6)
            if is_size and near_one.are_alike(reader, product, whole):
                return [other]
    return []


def _cosine_rule(a: tf.Tensor, b: tf.Tensor, factor: float, less_one: Build) -> Build:
    return lambda value: tf.square(value(a) - value(b)) - 2 / factor * less_one(value)


def _product(reader: Reader, part: Part, op: tf.Operation) -> Iterator[Group]:
    """Yields `a^2 + b^2 - 2 a b`, and `a + b - 2 sqrt(a) sqrt(b)`."""
    a, b = op.inputs
    roots = root_of(reader, a), root_of(reader, b)
    if roots[0] is not None and roots[1] is not None:
        yield from _of_two(part, roots[0], roots[1])
    made = part._replace(factor=-0.5 * part.factor)
    if divergences.line_up(part, a, b):
        wanted = [made._replace(tensor=_Square(each)) for each in (a, b)]
        yield Group([part, *wanted], made, lambda value: tf.square(value(a) - value(b)))


def _without(reader: Reader, found: Sequence[Part], group: Group) -> list[Part] | None:
    """Takes the terms of a group out of a sum; None where one is missing."""
    left = list(found)
    for wanted in group.parts:
        if wanted.tensor is None:
            place = next((i for i, p in enumerate(left) if p.tensor is None), None)
            rest = wanted.factor if place is None else left[place].factor
            # A number of the other sign, or a smaller one, cancels nothing.
            if place is None or rest * wanted.factor <= 0:
                return None
            if abs(rest) < abs(wanted.factor) * (1 - 1e-6):
                return None
            number = rest - wanted.factor
            del left[place]
            if abs(number) > 1e-6 * abs(rest):
                left.append(Part(number, None))
            continue
        place = next((i for i, p in enumerate(left) if _is(reader, p, wanted)), None)
        if place is None:
            return None
        del left[place]
    return left


def _is(reader: Reader, part: Part, wanted: Part) -> bool:
    if part.tensor is None or abs(part.factor - wanted.factor) > 1e-6 * abs(
        wanted.factor
    ):
        return False
    if part.axes != wanted.axes or part.keepdims != wanted.keepdims:
        return False
    if isinstance(wanted.tensor, _Square):
        base = square_of(reader, part.tensor)
        return base is not None and reader.same(base, wanted.tensor.of)
    if isinstance(wanted.tensor, _Step):
        return _is_step(reader, reader.op(part.tensor), *wanted.tensor)
    return reader.same(part.tensor, wanted.tensor)


def _is_step(reader: Reader, op: tf.Operation, a: tf.Tensor, b: tf.Tensor) -> bool:
    if op.type not in DIVISIONS or not reader.same(op.inputs[1], b):
        return False
    left = [*parts(reader, op.inputs[0]), *minus(parts(reader, a)), *parts(reader, b)]
    return not merged(reader, left)


def _match_cumulative(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `x - log(cumsum(exp(x)))`."""
    x, log = op.inputs
    total = (
        reader.op(reader.op(log).inputs[0]) if reader.op(log).type == "Log" else None
    )
    if total is None or total.type != "Cumsum":
        return None
    exp, axis = reader.op(total.inputs[0]), reader.scalar(total.inputs[1])
    if exp.type != "Exp" or axis is None or total.get_attr("exclusive"):
        return None
    if not reader.same(exp.inputs[0], x):
        return None
    reverse = total.get_attr("reverse")

    def build(value: Value) -> tf.Tensor:
        logits = value(x)
        others = ops.cumulative_logsumexp(logits, int(axis), True, reverse)
        return ops.log_sigmoid(logits - others)

    return build


def _match_sum(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    left = parts(reader, op.outputs[0])
    if not 2 <= len(left) <= _MOST:
        return None
    groups: list[Group] = []
    for group in (*_groups(reader, left), *divergences.of_all(reader, left)):
        rest = _without(reader, left, group)
        if rest is not None:
            left = rest
            groups.append(group)
    # Next to another number, what the terms lose is below its digits.
    is_partial = any(each.tensor is None for each in left)
    if not groups or is_partial or (left and holes.vanishes(reader, op.outputs[0], 3)):
        return None

    def build(value: Value) -> tf.Tensor:
        whole = groups[0].make(value)
        for group in groups[1:]:
            whole += group.make(value)
        return whole + total(left, value, whole) if left else whole

    return build


# By operation: the function of its input; the number and the multiple of the input
# in the sum, for a factor of the operation that is the last number.
_TANGENTS: dict[str, tuple[Callable[..., tf.Tensor], float, int, int]] = {
    "Exp": (tangents.exp_minus_tangent, -1.0, -1, 1),
    "Expm1": (tangents.exp_minus_tangent, 0.0, -1, 1),
    "Log": (tangents.x_minus_one_minus_log, -1.0, 1, -1),
    "Log1p": (tangents.x_minus_log1p, 0.0, 1, -1),
    "Sin": (tangents.x_minus_sin, 0.0, 1, -1),
    "Tan": (tangents.x_minus_tan, 0.0, 1, -1),
    "Tanh": (tangents.x_minus_tanh, 0.0, 1, -1),
}
_MULTIPLES = {
    "Sin": tangents.x_minus_multiple(tf.sin, tangents.x_minus_sin),
    "Sinh": tangents.x_minus_multiple(tf.sinh, lambda x: -tangents.sinh_minus_x(x)),
    "Tan": tangents.x_minus_multiple(tf.tan, tangents.x_minus_tan),
    "Tanh": tangents.x_minus_multiple(tf.tanh, tangents.x_minus_tanh),
}
_FRACTION = ("Div", "x", ("Add", 1, "x"))


def _functions_less_others() -> Iterator[Tree]:
    """Yields `log(1 + x) - x / (1 + x)` and `x - k * f(x)`."""
    for log in (("Log1p", "x"), ("Log", ("Add", 1, "x"))):
        yield Tree(("Sub", log, _FRACTION), tangents.log1p_minus_fraction)
    for op_type, function in _MULTIPLES.items():
        product = ("Mul", "k", (op_type, "x"))
        yield Tree(("Sub", "x", product), function)


# Before the rules for logarithms and for fractions, which take other parts of these.
FIRST = (
    Rule(
        name="fraction-of-powers",
        before="x ** n / (k ** n + x ** n), x ** n / (1 + x ** n)",
        after="the same of x / k, where a power overflows or underflows",
        fails_when="a power overflows or both underflow",
        reference="identity",
        match=Trees(
            Tree(
                (
                    "Div",
                    ("Pow", "x", "n"),
                    ("Add", ("Pow", "k", "n"), ("Pow", "x", "n")),
                ),
                tangents.fraction_of_powers,
            ),
            Tree(
                ("Div", ("Pow", "x", "n"), ("Add", 1, ("Pow", "x", "n"))),
                tangents.fraction_of_power,
            ),
        ),
    ),
    Rule(
        name="cumulative-log-softmax",
        before="x - log(cumsum(exp(x)))",
        after="ops.log_sigmoid(x - logsumexp of those before)",
        fails_when="an exponential overflows, or one element dominates",
        reference=references.LOGSUMEXP,
        op_types=("Sub",),
        match=_match_cumulative,
    ),
)
RULES = (
    Rule(
        name="function-less-tangent",
        before="exp(x) - 1 - x, x - 1 - log(x), x - log1p(x), x - sin(x), "
        "x * log(x / y) - x + y, a + b - 2 sqrt(a * b), a * a + b * b - 2 * a * b, "
        "a * cos(x) - a, a * a + b * b - 2 * a * b * cos(x), "
        "p * log(p / q) + (1 - p) * log((1 - p) / (1 - q)), pdf(x) / cdf(x) + x",
        after="where the terms cancel a power series, a continued fraction or a square",
        fails_when="x is near 0, or near 1 for the logarithm; a is near b; x is far in "
        "the tail of the normal distribution",
        reference="Taylor series; binomial formula; Abramowitz and Stegun, Handbook of "
        "Mathematical Functions, 26.2.14",
        op_types=SUMS,
        match=_match_sum,
    ),
    Rule(
        name="function-less-other",
        before="x - k * sin(x), k * sinh(x) - x, log(1 + x) - x / (1 + x)",
        after="(1 - k) * x + k * (x - sin(x)) where x is near 0 and k near 1, a series",
        fails_when="x is near 0, and k near 1",
        reference="Taylor series",
        match=Trees(*_functions_less_others()),
    ),
    *complements.RULES,
    Rule(
        name="elu-plus-one",
        before="elu(x) + 1",
        after="exp(x) where x is negative",
        fails_when="x is below -17: the sum is 0",
        reference="identity",
        match=Trees(Tree(("Add", ("Elu", "x"), 1), tangents.elu_plus_one)),
    ),
)
