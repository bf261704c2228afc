"""Lists formulas of single fields that have a limit, or leave the range on the way."""

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas.limits import field_limits, quotients as limits, removable
from tfsafe.rewriting.match.index import Pattern
from tfsafe.rewriting.match.trees import Tree

_Function = Callable[..., tf.Tensor]
_INVERSE: tuple[Pattern, ...] = (("Div", 1, "k"), ("Reciprocal", "k"))
_MINUS_INVERSE: tuple[Pattern, ...] = (
    ("Div", -1, "k"),
    *(("Neg", each) for each in _INVERSE),
)
# `k * z` as people write it, and z.
_MULTIPLES: tuple[tuple[Pattern, _Function], ...] = (
    (("Mul", "k", "z"), lambda z: z),
    (("Div", ("Mul", "k", "z"), "s"), lambda z, s: z / s),
)


def _log_one_plus(x: Pattern) -> tuple[Pattern, ...]:
    return ("Log", ("Add", 1, x)), ("Log1p", x)


def _negated(function: _Function) -> _Function:
    return lambda *args: -function(*args)


def _of_multiple(function: _Function, read: _Function) -> _Function:
    return lambda k, *rest: function(k, read(*rest))


def _pareto() -> Iterator[Tree]:
    """Yields `log(1 + k * z) / k` and `(1 + 1 / k) * log(1 + k * z)`."""
    over_k = limits.over_factor(removable.log1p_over_x)
    both = field_limits.one_plus_inverse_times_log
    for multiple, read in _MULTIPLES:
        one, two = _of_multiple(over_k, read), _of_multiple(both, read)
        for log in _log_one_plus(multiple):
            yield Tree(("Div", log, "k"), one)
            for inverse in _INVERSE:
                yield Tree(("Mul", inverse, log), one)
                sum_ = ("Add", 1, inverse)
                yield Tree(("Mul", sum_, log), two)
                yield Tree(("Mul", ("Neg", sum_), log), _negated(two))
                yield Tree(("Mul", ("Sub", ("Neg", inverse), 1), log), _negated(two))
            above = ("Add", 1, "k")
            yield Tree(("Mul", ("Div", above, "k"), log), two)
            yield Tree(("Div", ("Mul", above, log), "k"), two)


def _extreme() -> Iterator[Tree]:
    """Yields what is made of `(1 + k * z) ** (-1 / k)`, and `... ** (-1 / k - 1)`."""
    log = field_limits.log_of_extreme_value
    log_of_density = _negated(field_limits.one_plus_inverse_times_log)
    for multiple, read in _MULTIPLES:
        powers = [("Pow", ("Add", 1, multiple), each) for each in _MINUS_INVERSE]
        for power in powers:
            for tree, function in (
                (power, limits.extreme_value),
                (("Log", power), log),
                (("Sub", 1, power), field_limits.one_minus_extreme_value),
                (("Log", ("Sub", 1, power)), lambda k, z: ops.log1mexp(log(k, z))),
                (("Log1p", ("Neg", power)), lambda k, z: ops.log1mexp(log(k, z))),
            ):
                yield Tree(tree, _of_multiple(function, read))
        for exponent in (
            *(("Sub", each, 1) for each in _MINUS_INVERSE),
            *(("Neg", ("Add", 1, each)) for each in _INVERSE),
            *(("Sub", -1, each) for each in _INVERSE),
        ):
            power = ("Pow", ("Add", 1, multiple), exponent)
            yield Tree(power, _of_multiple(field_limits.extreme_density, read))
            yield Tree(("Log", power), _of_multiple(log_of_density, read))


_GROWTH = ("Mul", "p", ("Exp", "t"))
_GROWN: tuple[Pattern, ...] = (
    ("Mul", "p", ("Sub", ("Exp", "t"), 1)),
    ("Mul", "p", ("Expm1", "t")),
)


def _logistic() -> Iterator[Tree]:
    for grown in _GROWN:
        yield Tree(
            ("Div", _GROWTH, ("Add", 1, grown)),
            field_limits.logistic_growth,
        )
        for above in (
            ("Mul", ("Mul", "c", "p"), ("Exp", "t")),
            ("Mul", "c", _GROWTH),
        ):
            yield Tree(
                ("Div", above, ("Add", "c", grown)),
                lambda c, p, t: c * field_limits.logistic_growth(p / c, t),
            )
    for below in (
        ("Add", ("Sub", 1, "p"), _GROWTH),
        ("Add", _GROWTH, ("Sub", 1, "p")),
    ):
        yield Tree(("Div", _GROWTH, below), field_limits.logistic_growth)


_EXP_OF_DOUBLE: tuple[Any, ...] = (
    ("Sub", ("Exp", "x"), 1),
    ("Add", ("Exp", "x"), 1),
    ("Expm1", "x"),
)


def _scaled_tanh() -> Iterator[Tree]:
    """Yields `c * (exp(x) - 1) / (exp(x) + 1)`, which is read as `(c * a) / b`."""
    less, more, expm1 = _EXP_OF_DOUBLE
    for top in (less, expm1):
        yield Tree(("Div", ("Mul", "c", top), more), lambda c, x: c * ops.tanh(0.5 * x))
        yield Tree(
            ("Div", ("Mul", "#c", top), more), lambda c, x: c * ops.tanh(0.5 * x)
        )


def _squares() -> Iterator[Tree]:
    # Trowbridge-Reitz, or GGX: `(n . h) ** 2 * (a ** 2 - 1) + 1`.
    yield Tree(
        ("Add", 1, ("Mul", ("Square", "h"), ("Sub", "a", 1))),
        field_limits.one_plus_square_times,
    )
    yield Tree(
        ("Add", 1, ("Mul", "h", ("Mul", "h", ("Sub", "a", 1)))),
        field_limits.one_plus_square_times,
    )
    yield Tree(
        ("Add", ("Mul", ("Sub", ("Mul", "h", "a"), "h"), "h"), 1),
        field_limits.one_plus_square_times,
    )


def _robust() -> Iterator[Tree]:
    size = ("Abs", ("Sub", "a", 2))
    inside = ("Add", ("Div", "square", size), 1)
    for half in (("Div", "a", 2), ("Mul", 0.5, "a")):
        power = ("Sub", ("Pow", inside, half), 1)
        yield Tree(("Mul", ("Div", size, "a"), power), field_limits.general_robust_loss)
        yield Tree(("Div", ("Mul", size, power), "a"), field_limits.general_robust_loss)


_QUOTIENT = ("Div", "a", "b")
_LOG_OF_COMPLEMENT: tuple[Pattern, ...] = (
    ("Log", ("Sub", 1, ("Exp", ("Neg", "x")))),
    ("Log", ("Neg", ("Expm1", ("Neg", "x")))),
    ("Log1p", ("Neg", ("Exp", ("Neg", "x")))),
)
# The curvature of Nelson and Siegel's yield curve.
_DECAY = ("Exp", ("Neg", "x"))
_LOADINGS = ("Sub", 1, _DECAY), ("Neg", ("Expm1", ("Neg", "x")))
TREES = (
    *(
        Tree(
            ("Sub", ("Div", each, "x"), _DECAY),
            lambda x: x * removable.gamma_tail_over_square(x),
        )
        for each in _LOADINGS
    ),
    *_pareto(),
    *_extreme(),
    *_logistic(),
    *_scaled_tanh(),
    *_squares(),
    *_robust(),
    *(
        Tree(
            ("Sub", ("Log", "x"), log),
            lambda x: -limits.log_expm1_over_x(-x),
        )
        for log in _LOG_OF_COMPLEMENT
    ),
    Tree(
        (
            "Div",
            ("Add", _QUOTIENT, ("Abs", _QUOTIENT)),
            ("Add", 1, ("Abs", _QUOTIENT)),
        ),
        field_limits.van_leer,
    ),
)
