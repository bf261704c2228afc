"""Rules for functions whose slope is infinite or missing somewhere.

Their values stay; the gradient is that of the safe function. An operation that can be
shown to stay off its singular point is left alone, unless something that is not finite
may reach it and its result may be dropped.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.kernels import unchanged_values
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_doubtful, is_dropped, is_regular
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.parts import is_float

_Function = Callable[..., tf.Tensor]


class _Row(NamedTuple):
    """One function; the operation's inputs are its arguments."""

    name: str
    op_types: Sequence[str]
    function: _Function
    before: str
    after: str
    fails: str


_ZERO_TIMES = "where 0 comes in, its gradient is 0 times infinity"
_ROWS = (
    _Row("sqrt", ["Sqrt"], ops.sqrt, "sqrt(x)", "ops.sqrt(x)", "x = 0"),
    _Row(
        "rsqrt",
        ["Rsqrt"],
        unchanged_values.rsqrt,
        "rsqrt(x)",
        "rsqrt(x), slope 0 at 0",
        f"x = 0: {_ZERO_TIMES}",
    ),
    _Row(
        "log",
        ["Log"],
        ops.log,
        "log(x)",
        "ops.log(x)",
        f"x = 0: {_ZERO_TIMES}",
    ),
    _Row(
        "log1p",
        ["Log1p"],
        ops.log1p,
        "log1p(x)",
        "ops.log1p(x)",
        f"x = -1: {_ZERO_TIMES}",
    ),
    _Row(
        "exp",
        ["Exp"],
        ops.exp,
        "exp(x)",
        "ops.exp(x)",
        f"the exponential overflows: {_ZERO_TIMES}",
    ),
    _Row(
        "expm1",
        ["Expm1"],
        ops.expm1,
        "expm1(x)",
        "ops.expm1(x)",
        f"the exponential overflows: {_ZERO_TIMES}",
    ),
    _Row(
        "reciprocal",
        ["Reciprocal", "Inv"],
        unchanged_values.reciprocal,
        "1 / x",
        "1 / x, slope 0 at 0",
        f"x = 0: {_ZERO_TIMES}",
    ),
    _Row(
        "division",
        ["RealDiv", "Div"],
        unchanged_values.divide,
        "x / y",
        "x / y, slopes 0 at y = 0",
        f"y = 0: {_ZERO_TIMES}; y^2 overflows",
    ),
    _Row(
        "divide-no-nan",
        ["DivNoNan"],
        unchanged_values.divide_no_nan,
        "divide_no_nan(x, y)",
        "divide_no_nan(x, y), slopes in range",
        "y^2 underflows",
    ),
    _Row("asin", ["Asin"], ops.asin, "asin(x)", "ops.asin(x)", "x = 1 or -1"),
    _Row("acos", ["Acos"], ops.acos, "acos(x)", "ops.acos(x)", "x = 1 or -1"),
    _Row("acosh", ["Acosh"], ops.acosh, "acosh(x)", "ops.acosh(x)", "x = 1"),
    _Row("atanh", ["Atanh"], ops.atanh, "atanh(x)", "ops.atanh(x)", "x = 1 or -1"),
    _Row("atan2", ["Atan2"], ops.atan2, "atan2(y, x)", "ops.atan2(y, x)", "x = y = 0"),
    _Row("angle", ["Angle"], ops.angle, "angle(z)", "ops.angle(z)", "z = 0"),
    _Row(
        "xlogy",
        ["Xlogy"],
        unchanged_values.xlogy,
        "xlogy(x, y)",
        "xlogy(x, y), slope log(y) at x = 0",
        f"y = 0: {_ZERO_TIMES}",
    ),
    _Row(
        "xlog1py",
        ["Xlog1py"],
        unchanged_values.xlog1py,
        "xlog1py(x, y)",
        "xlog1py(x, y), slope log1p(y) at x = 0",
        f"y = -1: {_ZERO_TIMES}",
    ),
    _Row(
        "xdivy",
        ["Xdivy"],
        unchanged_values.xdivy,
        "xdivy(x, y)",
        "xdivy(x, y), slope 1 / y at x = 0",
        f"y = 0: {_ZERO_TIMES}",
    ),
)
# They have a singular point of which the reader knows nothing.
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


_POWER = Rule(
    name="pow",
    before="x ** y",
    after="ops.pow(x, y)",
    fails="x = 0, for an exponent below 2",
    reference="tfsafe.ops.pow",
    op_types=["Pow"],
    match=_match_power,
)

RULES = (
    *(
        Rule(
            name=row.name,
            before=row.before,
            after=row.after,
            fails=row.fails,
            reference="the zero-upstream rule of tfsafe.ops",
            op_types=row.op_types,
            match=_match(row.function),
        )
        for row in _ROWS
    ),
    _POWER,
)
