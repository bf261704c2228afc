"""Rules for functions whose slope is infinite or missing somewhere.

The values do not change; the gradient is that of the safe function. An operation whose
argument provably stays away from the singular point is not replaced, unless a value
that is not finite may reach it and its result may be dropped.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.kernels import unchanged_values
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_doubtful, is_dropped, is_regular
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.rules import references

_Function = Callable[..., tf.Tensor]


# The reader knows nothing about their singular points.
_ALWAYS = frozenset({"Angle", "Atan2", "DivNoNan"})


def _is_at_risk(op: tf.Operation, reader: Reader) -> bool:
    if not is_float(op.outputs[0]):
        return False
    if op.type in _ALWAYS or not is_regular(reader, op):
        return True
    return is_dropped(reader, op) and any(is_doubtful(reader, x) for x in op.inputs)


def _match(function: _Function) -> Callable[[tf.Operation, Reader], Build | None]:
    def match(op: tf.Operation, reader: Reader) -> Build | None:
        if not _is_at_risk(op, reader):
            return None
        return lambda value: function(*(value(each) for each in op.inputs))

    return match


def _match_power(op: tf.Operation, reader: Reader) -> Build | None:
    if not _is_at_risk(op, reader):
        return None
    x, y = op.inputs
    exponent = reader.scalar(y)
    if exponent == 0:
        return None
    if exponent is not None and y.shape.rank == 0:
        return lambda value: ops.pow(value(x), exponent)

    def build(value: Value) -> tf.Tensor:
        return unchanged_values.pow(value(x), value(y))

    return build


def _row(name: str, op_types: Sequence[str], function: _Function, **texts: Any) -> Rule:
    """Returns the rule that replaces single operations by a safe function."""
    return Rule(
        name=name,
        op_types=op_types,
        match=_match(function),
        changes="gradient",
        reference=references.ZERO_UPSTREAM,
        **texts,
    )


_ZERO_TIMES = "a zero incoming gradient gives 0 times infinity"
RULES = (
    _row(
        "sqrt",
        ["Sqrt"],
        ops.sqrt,
        before="sqrt(x)",
        after="ops.sqrt(x)",
        fails_when="x = 0",
    ),
    _row(
        "rsqrt",
        ["Rsqrt"],
        unchanged_values.rsqrt,
        before="rsqrt(x)",
        after="rsqrt(x), slope 0 at 0",
        fails_when=f"x = 0: {_ZERO_TIMES}",
    ),
    _row(
        "log",
        ["Log"],
        unchanged_values.log,
        before="log(x)",
        after="log(x), slope 0 at 0",
        fails_when=f"x = 0: {_ZERO_TIMES}",
    ),
    _row(
        "log1p",
        ["Log1p"],
        unchanged_values.log1p,
        before="log1p(x)",
        after="log1p(x), slope 0 at -1",
        fails_when=f"x = -1: {_ZERO_TIMES}",
    ),
    _row(
        "exp",
        ["Exp"],
        ops.exp,
        before="exp(x)",
        after="ops.exp(x)",
        fails_when=f"the exponential overflows: {_ZERO_TIMES}",
    ),
    _row(
        "expm1",
        ["Expm1"],
        ops.expm1,
        before="expm1(x)",
        after="ops.expm1(x)",
        fails_when=f"the exponential overflows: {_ZERO_TIMES}",
    ),
    _row(
        "reciprocal",
        ["Reciprocal", "Inv"],
        unchanged_values.reciprocal,
        before="1 / x",
        after="1 / x, slope 0 at 0",
        fails_when=f"x = 0: {_ZERO_TIMES}",
    ),
    _row(
        "division",
        ["RealDiv", "Div"],
        unchanged_values.divide,
        before="x / y",
        after="x / y, slopes 0 at y = 0",
        fails_when=f"y = 0: {_ZERO_TIMES}; y^2 overflows",
    ),
    _row(
        "divide-no-nan",
        ["DivNoNan"],
        unchanged_values.divide_no_nan,
        before="divide_no_nan(x, y)",
        after="divide_no_nan(x, y), slopes in range",
        fails_when="y^2 underflows",
    ),
    _row(
        "asin",
        ["Asin"],
        ops.asin,
        before="asin(x)",
        after="ops.asin(x)",
        fails_when="x = 1 or -1",
    ),
    _row(
        "acos",
        ["Acos"],
        ops.acos,
        before="acos(x)",
        after="ops.acos(x)",
        fails_when="x = 1 or -1",
    ),
    _row(
        "acosh",
        ["Acosh"],
        ops.acosh,
        before="acosh(x)",
        after="ops.acosh(x)",
        fails_when="x = 1",
    ),
    _row(
        "atanh",
        ["Atanh"],
        ops.atanh,
        before="atanh(x)",
        after="ops.atanh(x)",
        fails_when="x = 1 or -1",
    ),
    _row(
        "atan2",
        ["Atan2"],
        ops.atan2,
        before="atan2(y, x)",
        after="ops.atan2(y, x)",
        fails_when="x = y = 0",
    ),
    _row(
        "angle",
        ["Angle"],
        ops.angle,
        before="angle(z)",
        after="ops.angle(z)",
        fails_when="z = 0",
    ),
    _row(
        "xlogy",
        ["Xlogy"],
        unchanged_values.xlogy,
        before="xlogy(x, y)",
        after="xlogy(x, y), slope log(y) at x = 0",
        fails_when=f"y = 0: {_ZERO_TIMES}",
    ),
    _row(
        "xlog1py",
        ["Xlog1py"],
        unchanged_values.xlog1py,
        before="xlog1py(x, y)",
        after="xlog1py(x, y), slope log1p(y) at x = 0",
        fails_when=f"y = -1: {_ZERO_TIMES}",
    ),
    _row(
        "xdivy",
        ["Xdivy"],
        unchanged_values.xdivy,
        before="xdivy(x, y)",
        after="xdivy(x, y), slope 1 / y at x = 0",
        fails_when=f"y = 0: {_ZERO_TIMES}",
    ),
    _row(
        "lgamma",
        ["Lgamma"],
        unchanged_values.elementwise(tf.math.lgamma),
        before="lgamma(x)",
        after="lgamma(x), slope 0 for a zero incoming gradient",
        fails_when=f"x = 0, -1, -2, ...: {_ZERO_TIMES}",
    ),
    _row(
        "digamma",
        ["Digamma"],
        unchanged_values.elementwise(tf.math.digamma),
        before="digamma(x)",
        after="digamma(x), slope 0 for a zero incoming gradient",
        fails_when=f"x = 0, -1, -2, ...: {_ZERO_TIMES}",
    ),
    _row(
        "erfinv",
        ["Erfinv"],
        unchanged_values.elementwise(tf.math.erfinv),
        before="erfinv(x)",
        after="erfinv(x), slope 0 for a zero incoming gradient",
        fails_when=f"x = 1 or -1: {_ZERO_TIMES}",
    ),
    _row(
        "ndtri",
        ["Ndtri"],
        unchanged_values.elementwise(tf.math.ndtri),
        before="ndtri(x)",
        after="ndtri(x), slope 0 for a zero incoming gradient",
        fails_when=f"x = 0 or 1: {_ZERO_TIMES}",
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
)
