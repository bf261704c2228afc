"""Rules for functions whose slope is infinite or missing somewhere.

The values do not change; the gradient is that of the safe function. An operation whose
argument provably stays away from the singular point is not replaced, unless a value
that is not finite may reach it and its result may be dropped.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas import unchanged_values
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_doubtful, is_dropped, is_regular
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.rules import references

_Function = Callable[..., tf.Tensor]


# A number over another is multiplied by the incoming gradient, and may not vanish.
_SMALL = 1e-3
# The reader knows nothing about their singular points.
_ALWAYS = frozenset({"Angle", "Atan2", "DivNoNan"})


def _is_at_risk(op: tf.Operation, reader: Reader) -> bool:
    if op.type in _ALWAYS or not is_regular(reader, op):
        return True
    return is_dropped(reader, op) and any(is_doubtful(reader, x) for x in op.inputs)


def _match(function: _Function) -> Callable[[tf.Operation, Reader], Build | None]:
    def match(op: tf.Operation, reader: Reader) -> Build | None:
        if not _is_at_risk(op, reader):
            return None
        return lambda value: function(*(value(each) for each in op.inputs))

    return match


def _quotient(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    number = tf.get_static_value(x)
    is_near_one = number is not None and np.all(np.abs(number) > _SMALL)
    return (unchanged_values.over if is_near_one else unchanged_values.divide)(x, y)


def _match_power(op: tf.Operation, reader: Reader) -> Build | None:
    if not _is_at_risk(op, reader):
        return None
    x, y = op.inputs
    exponent = reader.scalar(y)
    if exponent == 0:
        return None
    if exponent == -1 and y.shape.rank == 0:
        return lambda value: unchanged_values.reciprocal(value(x))
    if exponent is not None and y.shape.rank == 0:
        return lambda value: ops.pow(value(x), exponent)

    def build(value: Value) -> tf.Tensor:
        return unchanged_values.pow(value(x), value(y))

    return build


def _match_running_product(op: tf.Operation, reader: Reader) -> Build | None:
    x, axis = op.inputs
    place = reader.constant(axis)
    if place is None or not is_float(x) or reader.constant(x) is not None:
        return None
    if reader.bounds(x).low > 0 or x.shape.rank is None:
        return None
    exclusive, reverse = map(op.get_attr, ("exclusive", "reverse"))
    return lambda value: ops.cumprod(value(x), int(place), exclusive, reverse)


def _row(
    name: str,
    function: _Function,
    after: str,
    fails_when: str,
    *op_types: str,
    before: str = "",
) -> Rule:
    """Returns the rule that replaces single operations by a safe function."""
    return Rule(
        name=name,
        before=before or f"{name}(x)",
        after=after,
        fails_when=fails_when,
        reference=references.ZERO_UPSTREAM,
        op_types=op_types or (name.capitalize(),),
        match=_match(function),
        changes="gradient",
    )


def _at(points: str) -> str:
    return f"{points}: a zero incoming gradient gives 0 times infinity"


RULES = (
    _row("sqrt", ops.sqrt, "ops.sqrt(x)", "x = 0"),
    _row("rsqrt", unchanged_values.rsqrt, "rsqrt(x), slope 0 at 0", _at("x = 0")),
    _row("log", unchanged_values.log, "log(x), slope 0 at 0", _at("x = 0")),
    _row("log1p", unchanged_values.log1p, "log1p(x), slope 0 at -1", _at("x = -1")),
    _row("exp", ops.exp, "ops.exp(x)", _at("the exponential overflows")),
    _row("expm1", ops.expm1, "ops.expm1(x)", _at("the exponential overflows")),
    _row(
        "reciprocal",
        unchanged_values.reciprocal,
        "1 / x, slope 0 at 0",
        _at("x = 0"),
        "Reciprocal",
        "Inv",
        before="1 / x",
    ),
    _row(
        "division",
        _quotient,
        "x / y, slopes 0 at y = 0",
        _at("y = 0") + "; y^2 overflows",
        "RealDiv",
        "Div",
        before="x / y",
    ),
    _row(
        "divide-no-nan",
        unchanged_values.divide_no_nan,
        "divide_no_nan(x, y), slopes in range",
        "y^2 underflows",
        "DivNoNan",
        before="divide_no_nan(x, y)",
    ),
    _row("asin", ops.asin, "ops.asin(x)", "x = 1 or -1"),
    _row("acos", ops.acos, "ops.acos(x)", "x = 1 or -1"),
    _row("acosh", ops.acosh, "ops.acosh(x)", "x = 1"),
    _row("atanh", ops.atanh, "ops.atanh(x)", "x = 1 or -1"),
    _row("atan2", ops.atan2, "ops.atan2(y, x)", "x = y = 0", before="atan2(y, x)"),
    _row("angle", ops.angle, "ops.angle(z)", "z = 0", before="angle(z)"),
    _row(
        "xlogy",
        unchanged_values.xlogy,
        "xlogy(x, y), slope log(y) at x = 0",
        _at("y = 0"),
        before="xlogy(x, y)",
    ),
    _row(
        "xlog1py",
        unchanged_values.xlog1py,
        "xlog1py(x, y), slope log1p(y) at x = 0",
        _at("y = -1"),
        before="xlog1py(x, y)",
    ),
    _row(
        "xdivy",
        unchanged_values.xdivy,
        "xdivy(x, y), slope 1 / y at x = 0",
        _at("y = 0"),
        before="xdivy(x, y)",
    ),
    *(
        _row(
            name,
            unchanged_values.elementwise(getattr(tf.math, name)),
            f"{name}(x), slope 0 for a zero incoming gradient",
            _at(points),
        )
        for name, points in (
            ("lgamma", "x = 0, -1, -2, ..."),
            ("digamma", "x = 0, -1, -2, ..."),
            ("erfinv", "x = 1 or -1"),
            ("ndtri", "x = 0 or 1"),
        )
    ),
    Rule(
        name="pow",
        before="x ** y",
        after="ops.pow(x, y)",
        fails_when="x = 0, for an exponent below 2",
        reference="tfsafe.ops.pow",
        op_types=["Pow"],
        match=_match_power,
        changes="gradient",
    ),
    Rule(
        name="cumprod",
        before="cumprod(x)",
        after="ops.cumprod(x)",
        fails_when="an element is 0: slopes behind it are 0 or NaN",
        reference="tfsafe.ops.cumprod",
        op_types=["Cumprod"],
        match=_match_running_product,
        changes="gradient",
    ),
)
