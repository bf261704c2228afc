"""The rule for quotients with a limit at another point than 0, or of two arguments."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tfsafe.graph import DIVISIONS
from tfsafe.ops.formulas.limits import quotients as limits, removable
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.analysis import holes
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, terms
from tfsafe.rewriting.match.index import Pattern
from tfsafe.rewriting.match.products import factored, made, scaled
from tfsafe.rewriting.match.reductions import squared_length
from tfsafe.rewriting.match.trees import Tree, Trees, argument
from tfsafe.rewriting.rules.limits import divided_differences, power_means, steps
from tfsafe.rewriting.rules.limits.fields import field_limits, hyperbolic, sabr
from tfsafe.rewriting.rules.probability import entropies

_Function = Callable[..., tf.Tensor]
# Longer sums over a sine are left alone.
_MOST_TERMS = 4


def _minus(function: _Function) -> _Function:
    return lambda *args: -function(*args)


def _either_sign(
    top: Pattern, bottom: tuple[Any, ...], function: _Function
) -> Iterator[Tree]:
    """Yields `top / (a - b)` and `top / (b - a)`."""
    _, a, b = bottom
    yield Tree(("Div", top, ("Sub", a, b)), function)
    yield Tree(("Div", top, ("Sub", b, a)), _minus(function))


_POWER = ("Pow", ("Add", 1, "r"), "n")
_DISCOUNT = ("Sub", 1, _POWER)
_INVERSE_POWERS = (("Div", 1, _POWER), ("Reciprocal", _POWER))
_LOGS = (
    ("Sub", ("Log", "a"), ("Log", "b")),
    ("Log", ("Div", "a", "b")),
)
_EXPS = (
    (("Exp", "a"), ("Exp", "b"), ("Sub", "a", "b"), ("Sub", "b", "a")),
    (
        ("Exp", ("Neg", "a")),
        ("Exp", ("Neg", "b")),
        ("Sub", "b", "a"),
        ("Sub", "a", "b"),
    ),
)


def _opposite(function: _Function) -> _Function:
    return lambda a, b: function(-a, -b)


def _exp_trees() -> Iterator[Tree]:
    for place, (first, second, step, back) in enumerate(_EXPS):
        function = _opposite(limits.exp_difference) if place else limits.exp_difference
        difference = ("Sub", first, second)
        yield Tree(("Div", difference, step), function)
        yield Tree(("Div", difference, back), _minus(function))


def _inverse_power(function: _Function) -> _Function:
    return lambda r, n: function(r, -n)


def _inverses(f: Pattern) -> tuple[Pattern, ...]:
    return ("Div", 1, f), ("Reciprocal", f)


_COTH = (
    ("Div", ("Cosh", "x"), ("Sinh", "x")),
    ("Div", 1, ("Tanh", "x")),
    ("Reciprocal", ("Tanh", "x")),
    (
        "Div",
        ("Add", ("Exp", "x"), ("Exp", ("Neg", "x"))),
        ("Sub", ("Exp", "x"), ("Exp", ("Neg", "x"))),
    ),
)
_TREES = (
    *_either_sign(("Log", "x"), ("Sub", "x", 1), limits.log_over_x_minus_one),
    Tree(("Div", ("Sub", "x", 1), ("Log", "x")), limits.x_minus_one_over_log),
    Tree(("Div", ("Sub", 1, "x"), ("Log", "x")), _minus(limits.x_minus_one_over_log)),
    *(
        Tree(("Div", ("Sub", "a", "b"), logs), limits.logarithmic_mean)
        for logs in _LOGS
    ),
    Tree(
        ("Div", ("Sub", ("Pow", "x", "k"), 1), "k"),
        limits.power_minus_one_over,
    ),
    Tree(
        ("Div", ("Sub", 1, ("Pow", "x", "k")), "k"),
        _minus(limits.power_minus_one_over),
    ),
    Tree(("Div", _DISCOUNT, "r"), limits.annuity),
    Tree(("Div", ("Sub", _POWER, 1), "r"), limits.growth),
    Tree(("Div", "r", _DISCOUNT), limits.payment),
    Tree(("Div", "r", ("Sub", _POWER, 1)), lambda r, n: 1 / limits.growth(r, n)),
    *(
        Tree(("Div", ("Sub", 1, power), "r"), _inverse_power(limits.annuity))
        for power in _INVERSE_POWERS
    ),
    *(
        Tree(("Div", "r", ("Sub", 1, power)), _inverse_power(limits.payment))
        for power in _INVERSE_POWERS
    ),
    Tree(("Div", ("Sub", 1, ("Pow", "q", "n")), ("Sub", 1, "q")), limits.geometric_sum),
    Tree(("Div", ("Sub", ("Pow", "q", "n"), 1), ("Sub", "q", 1)), limits.geometric_sum),
    Tree(("Pow", ("Add", 1, ("Div", "r", "n")), "n"), limits.compound),
    *(
        Tree((head, *pair), function)
        for f, series in removable.INVERSES
        for inverse in _inverses(f)
        for one in _inverses("x")
        for head, pair, function in (
            ("Sub", (inverse, one), series),
            ("Sub", (one, inverse), _minus(series)),
        )
    ),
    *(
        Tree((head, *pair), function)
        for above, series in (
            (("Sub", ("Exp", "x"), 1), removable.exp_minus_tangent_over_square),
            (("Expm1", "x"), removable.exp_minus_tangent_over_square),
            (("Sub", 1, ("Exp", ("Neg", "x"))), _minus(removable.exp_tangent_of_minus)),
        )
        for over in (("Div", above, ("Square", "x")), ("Div", ("Div", above, "x"), "x"))
        for one in _inverses("x")
        for head, pair, function in (
            ("Sub", (over, one), series),
            ("Sub", (one, over), _minus(series)),
        )
    ),
    *(
        Tree(("Pow", ("Add", 1, ("Mul", "k", "z")), power), limits.power_of_one_plus)
        for power in (("Div", 1, "k"), ("Reciprocal", "k"))
    ),
    *(
        Tree(("Div", f, "k"), limits.over_factor(function))
        for f, function in (
            (("Log", ("Add", 1, ("Mul", "k", "z"))), removable.log1p_over_x),
            (("Log1p", ("Mul", "k", "z")), removable.log1p_over_x),
            (("Expm1", ("Mul", "k", "z")), removable.expm1_over_x),
            (("Sub", ("Exp", ("Mul", "k", "z")), 1), removable.expm1_over_x),
            (("Sin", ("Mul", "k", "z")), removable.sin_over_x),
            (("Tanh", ("Mul", "k", "z")), removable.tanh_over_x),
        )
    ),
    *(
        Tree(pattern, limits.einstein)
        for less in (("Sub", ("Exp", "x"), 1), ("Expm1", "x"))
        for pattern in (
            ("Div", ("Mul", ("Square", "x"), ("Exp", "x")), ("Square", less)),
            ("Mul", ("Square", ("Div", "x", less)), ("Exp", "x")),
            ("Mul", ("Square", "x"), ("Div", ("Exp", "x"), ("Square", less))),
        )
    ),
    *(
        Tree(
            ("Div", ("Mul", ("Pow", "x", "#n"), ("Exp", "x")), ("Square", less)),
            limits.einstein_of_order,
            where=lambda n: n >= 2,
        )
        for less in (("Sub", ("Exp", "x"), 1), ("Expm1", "x"))
    ),
    *(
        Tree(
            ("Sub", inverse, ("Div", ("Add", 1, ("Cos", "x")), twice)),
            removable.half_angle_over_tan,
        )
        for inverse in (("Div", 1, ("Square", "x")), ("Reciprocal", ("Square", "x")))
        for twice in (
            ("Mul", ("Mul", 2, "x"), ("Sin", "x")),
            ("Mul", 2, ("Mul", "x", ("Sin", "x"))),
        )
    ),
    *_exp_trees(),
    Tree(("Div", ("Sub", ("Sqrt", ("Add", 1, "x")), 1), "x"), limits.sqrt1pm1_over_x),
    Tree(
        ("Sub", ("Div", ("Sin", "x"), ("Square", "x")), ("Div", ("Cos", "x"), "x")),
        limits.spherical_bessel,
    ),
    Tree(
        ("Div", ("Sub", ("Sin", "x"), ("Mul", "x", ("Cos", "x"))), ("Square", "x")),
        limits.spherical_bessel,
    ),
    *(
        Tree(
            ("Div", ("Sub", *above), ("Square", "x")),
            removable.exp_minus_tangent_over_square,
        )
        for above in ((("Exp", "x"), 1, "x"), (("Expm1", "x"), "x"))
    ),
    *(Tree(("Mul", "x", coth), removable.x_over_tanh) for coth in _COTH),
    Tree(("Div", ("Mul", "x", ("Cosh", "x")), ("Sinh", "x")), removable.x_over_tanh),
    Tree(("Div", ("Mul", "x", ("Cos", "x")), ("Sin", "x")), removable.x_over_tan),
    *(
        Tree(pattern, removable.coth_minus_inverse)
        for coth in _COTH
        for pattern in (
            ("Sub", coth, ("Div", 1, "x")),
            ("Sub", coth, ("Reciprocal", "x")),
            ("Add", coth, ("Div", -1, "x")),
        )
    ),
    *(
        Tree(("Div", clipped, "x"), function, where=lambda k: k > 0)
        for clipped, function in (
            (("Minimum", "x", "#k"), limits.clipped_over_x),
            (("Minimum", ("Maximum", "x", 0), "#k"), limits.clipped_from_0_over_x),
            (("Maximum", ("Minimum", "x", "#k"), 0), limits.clipped_from_0_over_x),
        )
    ),
    *(
        Tree(("Div", shrunk, "x"), limits.shrunk_over_x)
        for shrunk in (
            ("Relu", ("Sub", "x", "y")),
            ("Maximum", ("Sub", "x", "y"), 0),
        )
    ),
)
_FIXED = Trees(*_TREES, *field_limits.TREES)


_RATIOS: tuple[tuple[Pattern, _Function], ...] = (
    (("Sin", "x"), limits.sine_ratio),
    (("Sinh", "x"), limits.sinh_ratio),
    (("Expm1", "x"), limits.expm1_ratio),
    (("Sub", ("Exp", "x"), 1), limits.expm1_ratio),
)


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    found = None
    if op.type in DIVISIONS:
        found = _ratio(op, reader) or _ratios(op, reader) or sabr.match(op, reader)
        found = found or entropies.match_of_order(op, reader)
    found = found or _FIXED(op, reader)
    if found is not None:
        return None if holes.is_of_root(reader, op) else found
    return (
        hyperbolic.match(op, reader)
        or divided_differences.match_common_divisor(op, reader)
        or _power(op, reader)
    )


def _power(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `(1 - a * x) ** (b / a)`, which the rules for any power do not know."""
    base = op.inputs[0]
    found = argument(reader, base, ("Sub", 1, "x")) if op.type == "Pow" else None
    # `(x ** p + y ** p - 1) ** (1 / p)` is a power mean.
    if found is None or power_means.match(op, reader) is not None:
        return None
    return steps.match(op, reader)


def _ratios(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `(sin(a * x) * u + sin(b * x) * v) / sin(x)`."""
    for pattern, function in _RATIOS:
        below = argument(reader, op.inputs[1], pattern)
        summands = terms(reader, op.inputs[0]) if below is not None else []
        if below is None or not 2 <= len(summands) <= _MOST_TERMS:
            continue
        sign, bottom = below
        found = [_share(reader, each, bottom, pattern, function) for each in summands]
        builds = [each for each in found if each is not None]
        if len(builds) == len(summands):
            return lambda value: (
                sign * functools.reduce(tf.add, [build(value) for build in builds])
            )
    return None


def _share(
    reader: Reader, term: Term, bottom: Term, pattern: Pattern, function: _Function
) -> Build | None:
    """Returns what builds one term, a function times a factor, over the function."""
    product = factored(reader, reader.op(term.tensor))
    if product.below:
        return None
    for place, each in enumerate(product.above or [term.tensor]):
        above = argument(reader, each, pattern)
        if above is None:
            continue
        sign, top = above
        ratio = _of_multiples(reader, top, bottom, function, sign)
        if ratio is None:
            return None
        left = [*product.above[:place], *product.above[place + 1 :]]
        rest = product._replace(above=left, factor=term.factor * product.factor)
        if not left:
            return lambda value: rest.factor * ratio(value)
        return lambda value: ratio(value) * made(rest, value)
    return None


def _ratio(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `sin(a * x) / sin(x)`, also of other functions."""
    for pattern, function in _RATIOS:
        above, below = (argument(reader, each, pattern) for each in op.inputs)
        if above is not None and below is not None:
            (s, top), (t, bottom) = above, below
            return _of_multiples(reader, top, bottom, function, s * t)
    return None


def _of_multiples(
    reader: Reader, top: Term, bottom: Term, function: _Function, sign: int
) -> Build | None:
    first = scaled(reader, top.tensor, top.factor)
    second = scaled(reader, bottom.tensor, bottom.factor)
    if reader.same(first.tensor, second.tensor):
        number = first.factor / second.factor
        constant = lambda _: tf.constant(number, top.tensor.dtype)  # noqa: E731
        return _of_ratio(reader, constant, bottom, function, sign)
    product = factored(reader, reader.op(first.tensor))
    for place, each in enumerate(product.above):
        if reader.same(each, second.tensor):
            above = [*product.above[:place], *product.above[place + 1 :]]
            factor = product.factor * first.factor / second.factor
            rest = product._replace(above=above, factor=factor)
            build = functools.partial(made, rest)
            return _of_ratio(reader, build, bottom, function, sign)
    return None


def _of_ratio(
    reader: Reader, ratio: Build, bottom: Term, function: _Function, sign: int
) -> Build:
    # Lengths and inverse cosines have no slope where they are 0.
    is_sine = function is limits.sine_ratio
    square = squared_length(reader, bottom) if is_sine else None
    if square is None:
        return lambda value: sign * function(ratio(value), bottom.make(value))

    def build(value: Value) -> tf.Tensor:
        made = limits.sine_ratio_of_square(precision.wide(ratio(value)), square(value))
        return sign * tf.cast(made, bottom.tensor.dtype)

    return build


RULES = (
    Rule(
        name="limit-of-quotient",
        before="log(x) / (x - 1), (a - b) / log(a / b), (x ** k - 1) / k, "
        "(1 - (1 + r) ** -n) / r, log1p(k * z) / k, sin(t * x) / sin(x), "
        "(sin(s * x) * u + sin(t * x) * v) / sin(x), (exp(a) - exp(b)) / (a - b), "
        "a / tanh(a * x) - b / tanh(b * x), (exp(x) - 1) / x ** 2 - 1 / x, "
        "minimum(x, k) / x, maximum(x - k, 0) / x, (1 - a * x) ** (b / a), "
        "1 - (1 + k * z) ** (-1 / k)",
        after="the same; near the point where both sides are 0 a power series",
        fails_when="both sides are 0, or cancel near it",
        reference="Taylor series of the quotient",
        op_types=_FIXED.op_types,
        match=_match,
    ),
)
