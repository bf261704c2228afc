"""Suggests what to write instead: one row a fix."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tfsafe import _caller
from tfsafe.debugging.explain import source_names
from tfsafe.debugging.explain.layers import swap_of
from tfsafe.debugging.tracing.provenance import PRODUCT_WITH_ZERO, QUOTIENT_OF_BOTH


class Failure(NamedTuple):
    """The facts by which a fix is chosen.

    Attributes:
      op: Type of the operation, the forward one for a gradient.
      fault: Kind of the fault, see `causes.Rule`.
      is_gradient: Whether it is the gradient of `op` that failed.
      dtype: Name of the dtype of the non-finite output.
      producers: Types of the operations that made the inputs.
      source: The user's line, whose names go into the suggested code.
      scope: Name scope of the operation; may be empty.
      met_next: Operations that the values met, see `Propagation.met_next`.
      layer: Class of the Keras layer around the operation, if it is in one.
    """

    op: str
    fault: str
    is_gradient: bool
    dtype: str
    producers: list[str]
    source: str
    scope: str = ""
    met_next: Sequence[tuple[str, ...]] = ()
    layer: type | None = None


class Fix(NamedTuple):
    """One row: for which failure, the code to write, and what it does.

    Attributes:
      op: Type of the operation, the forward one for a gradient.
      code: The code, with `{0}`, `{1}` for the arguments, `{inner}` for those of the
        call that is the first, `{weight}` for what the result is multiplied by; empty
        where there is none.
      words: What it does, or what to change.
      when: `"forward"`, `"gradient"`, or empty for both.
      source: Type of the operation that made an input; empty for any.
      fault: Kind of the fault; empty for any.
      met_next: Operations that the values met next; empty for any.
      is_rewritten: Whether a rule of `tfsafe.stabilize` repairs it too.
    """

    op: str
    code: str
    words: str
    when: str = ""
    source: str = ""
    fault: str = "domain"
    met_next: tuple[str, ...] = ()
    is_rewritten: bool = False


class Formula(NamedTuple):
    """A function of a library that is made of the operations that fail.

    Attributes:
      name: What it is called.
      ops: The operations in it that may fail.
      code: The function to call instead, with the same arguments.
      words: What that does.
    """

    name: str
    ops: frozenset[str]
    code: str
    words: str


_FIELD = re.compile(r"\{\w+\}")
REWRITES = "Or tfsafe.stabilize(f) rewrites it in a function or model f."
_SLOPE = "has the same values, and gradient 0 where the true one is infinite."
_QUOTIENT = "returns 0, with gradient 0, where the denominator is 0."
_INVERSE = "returns 0, with gradient 0, where the argument is 0."
_LOGITS = (
    "takes the logits and never sees a probability of 0; "
    "tfsafe.losses.StableCrossEntropy is the loss built on it."
)
_WEIGHTED = (
    "returns weight * log, and 0 where the weight is 0. For a cross-entropy use "
    "tfsafe.losses.StableCrossEntropy."
)
_INFINITE = (
    "log(0) is infinite: keep the argument above 0. If it is a probability, compute "
    "from the logits instead: tfsafe.losses.StableCrossEntropy, "
    "tfsafe.ops.log_softmax. tfsafe.ops.xlogy(weight, x) is 0 where the weight is 0."
)
_RELU = (
    "a ReLU is exactly 0 for each negative input. Use tf.nn.softplus in its place, "
    "which is above 0, or predict the logarithm itself."
)
_WEIGHS = (
    "the weight is not 0 there, so the true value is infinite: keep the second "
    "argument above 0. For a cross-entropy, compute from the logits: "
    "tfsafe.losses.StableCrossEntropy."
)
_NEGATIVE = (
    "a logarithm needs positive numbers: find out why the argument is negative. If "
    "it is a rounding error around 0, bound it below: tf.maximum(x, 1e-7)."
)
_SOFTMAX = "computes this quotient without the overflow, if it is a softmax."
_LOG_SOFTMAX = "computes the logarithm of this softmax, which no logit overflows."
_LOG_SUM = "computes the logarithm of this sum, which no argument overflows."
_LOG_SPACE = (
    "for a softmax, use tfsafe.ops.softmax. Otherwise stay in log space: "
    "tfsafe.ops.logsumexp, tfsafe.ops.log_softmax and tf.nn.softplus need no exp. "
    "Under a tf.where, bound the argument first: tf.exp(tf.minimum(x, bound))."
)
_POWER = "keep the base positive: a fractional power of a negative number is not real."
_VARIANCE = (
    "replaces negative numbers that are rounding errors around 0. tfsafe.ops.variance "
    "and tfsafe.ops.std never return any."
)
_MEAN = (
    "tfsafe.ops.mean(x, mask=mask) returns 0 where the mask selects nothing, and sums "
    "half precision in float32; "
    "tfsafe.layers.SafeMeanPooling is the layer built on it."
)
_FLOAT32 = (
    "compute this part in float32, for instance with dtype='float32' on its layer, or "
    "scale its inputs down."
)
SCALE = (
    "scale the inputs down, lower the learning rate or clip the gradients; "
    "tfsafe.optimizers.SafeOptimizer(optimizer) keeps one such step from reaching the "
    "weights."
)
_SKIP = (
    "tfsafe.optimizers.SafeOptimizer(optimizer) keeps one such step from reaching the "
    "weights, until the cause is found."
)
_UNIT = (
    "bound the argument: tf.clip_by_value(x, -1.0, 1.0). For the angle between two "
    "vectors use tfsafe.ops.angle_between(a, b)."
)
_ORIGIN = "has gradient 0 at the origin, where the angle is undefined."
_SEMIDEFINITE = "returns a column of zeros where a pivot is 0."
_OUTSIDE = "put @tfsafe.checked on that tf.function to learn the operation inside."

# The first row that fits counts.
_CLASSES = (
    "number the classes from 0, as `y_true - 1` does if they begin at 1, or end the "
    "model in more classes. A `sample_weight` of 0 or `ignore_class` ignores a label."
)
FIXES = [
    Fix("RealDiv", "tfsafe.ops.divide({0}, {1})", _QUOTIENT),
    Fix("Div", "tfsafe.ops.divide({0}, {1})", _QUOTIENT),
    Fix("Xdivy", "tfsafe.ops.divide({0}, {1})", _QUOTIENT),
    Fix("Reciprocal", "tfsafe.ops.reciprocal({0})", _INVERSE),
    Fix("Inv", "tfsafe.ops.reciprocal({0})", _INVERSE),
    Fix("Rsqrt", "tfsafe.ops.rsqrt(tf.nn.relu({0}))", _VARIANCE, fault="negative"),
    Fix("Rsqrt", "tfsafe.ops.rsqrt({0})", _INVERSE),
    Fix("Log", "", _NEGATIVE, fault="negative"),
    Fix(
        "Log",
        "tfsafe.ops.log_softmax({inner})",
        _LOGITS,
        source="Softmax",
        is_rewritten=True,
    ),
    Fix(
        "Log",
        "tfsafe.ops.log_sigmoid({inner})",
        _LOGITS,
        source="Sigmoid",
        is_rewritten=True,
    ),
    Fix("Log", "tfsafe.ops.log({0})", _SLOPE, when="gradient", is_rewritten=True),
    Fix("Log", "", _RELU, source="Relu"),
    Fix(
        "Log",
        "tfsafe.ops.xlogy({weight}, {0})",
        _WEIGHTED,
        met_next=(PRODUCT_WITH_ZERO,),
        is_rewritten=True,
    ),
    Fix("Log", "", _INFINITE),
    Fix("Log1p", "", "keep the argument above -1."),
    Fix("Xlogy", "", _NEGATIVE, fault="negative"),
    Fix("Xlogy", "tfsafe.ops.xlogy({0}, {1})", _SLOPE, when="gradient"),
    Fix("Xlogy", "", _WEIGHS),
    Fix("Xlog1py", "", "keep the second argument above -1."),
    Fix("Sqrt", "tfsafe.ops.sqrt({0})", _SLOPE, when="gradient", is_rewritten=True),
    Fix("Sqrt", "tfsafe.ops.sqrt(tf.nn.relu({0}))", _VARIANCE),
    Fix("EuclideanNorm", "tfsafe.ops.norm({0}, axis=-1)", _SLOPE, fault=""),
    Fix(
        "Exp",
        "tfsafe.ops.log_softmax({0}, axis=-1)",
        _LOG_SOFTMAX,
        fault="overflow",
        met_next=(QUOTIENT_OF_BOTH, "Log"),
        is_rewritten=True,
    ),
    Fix(
        "Exp",
        "tfsafe.ops.softmax({0}, axis=-1)",
        _SOFTMAX,
        fault="overflow",
        met_next=(QUOTIENT_OF_BOTH,),
        is_rewritten=True,
    ),
    Fix(
        "Exp",
        "tfsafe.ops.logsumexp({0}, axis=-1)",
        _LOG_SUM,
        fault="overflow",
        met_next=("Sum", "Log"),
        is_rewritten=True,
    ),
    Fix("Exp", "", _LOG_SPACE, fault="", is_rewritten=True),
    Fix("Expm1", "", _LOG_SPACE, fault=""),
    Fix("Pow", "tfsafe.ops.pow({0}, {1})", _SLOPE, when="gradient"),
    Fix("Pow", "", _POWER),
    Fix("Asin", "tfsafe.ops.asin({0})", _SLOPE, when="gradient"),
    Fix("Asin", "", _UNIT),
    Fix("Acos", "tfsafe.ops.acos({0})", _SLOPE, when="gradient"),
    Fix("Acos", "", _UNIT),
    Fix("Acosh", "tfsafe.ops.acosh({0})", _SLOPE, when="gradient"),
    Fix("Acosh", "", "bound the argument: tf.maximum(x, 1.0)."),
    Fix("Atan2", "tfsafe.ops.atan2({0}, {1})", _ORIGIN, fault=""),
    Fix("Atanh", "tfsafe.ops.atanh({0})", _SLOPE, when="gradient"),
    Fix("Atanh", "", "keep the argument inside (-1, 1)."),
    Fix("Cholesky", "tfsafe.ops.cholesky({0})", _SEMIDEFINITE, fault=""),
    Fix("FloorMod", "", _CLASSES, fault="label"),
    Fix("Mean", "", _MEAN),
    Fix("Max", "", "give the empty set a value of its own before the reduction."),
    Fix("Min", "", "give the empty set a value of its own before the reduction."),
    Fix(
        "Softmax",
        "tfsafe.ops.softmax({0})",
        "returns 0, not NaN, in a fully masked row, with gradient 0.",
    ),
    Fix(
        "LogSoftmax",
        "tfsafe.ops.log_softmax({0})",
        "returns -inf, not NaN, in a fully masked row, with gradient 0.",
    ),
    Fix(
        "Mul",
        "",
        "tfsafe.ops.multiply_no_nan(x, mask) returns 0 where the mask is 0, whatever x "
        "is there.",
    ),
    Fix("StatefulPartitionedCall", "", _OUTSIDE, fault=""),
]


_ROOTS = frozenset({"Mean", "Mul", "Rsqrt", "Sqrt", "Square", "Sum"})
# Where one of them is called on the user's line, it is what the user wants to replace.
FORMULAS = [
    Formula(
        "reduce_std",
        _ROOTS,
        "tfsafe.ops.std",
        "has the same values, and gradient 0 where all elements are equal.",
    ),
    Formula(
        "std",
        _ROOTS,
        "tfsafe.ops.std",
        "has the same values, and gradient 0 where all elements are equal.",
    ),
    Formula(
        "norm",
        _ROOTS,
        "tfsafe.ops.norm",
        "has the same values, gradient 0 at 0, and squares that do not overflow.",
    ),
    Formula(
        "l2_normalize",
        _ROOTS,
        "tfsafe.ops.l2_normalize",
        "returns 0, with gradient 0, where the norm is 0.",
    ),
    Formula(
        "linalg.normalize",
        _ROOTS | {"RealDiv"},
        "tfsafe.ops.normalize",
        "returns 0, with gradient 0, where the norm is 0.",
    ),
]


_KERAS = re.compile(r"(.+\.)?(fit|evaluate|predict|(train|test|predict)_on_batch)")


def survey(holder: str, call: _caller.Call | None) -> str:
    """Returns the check of the data that the user passed; empty if it is not known.

    Args:
      holder: The argument with non-finite values, ``"argument `x`"``.
      call: The user's call of the checked function or of `fit`.
    """
    if call is None or not holder.startswith("argument "):
        return ""
    if _KERAS.fullmatch(call.function):
        given = dict(zip(("x", "y"), call.arguments, strict=False)) | call.keywords
        names = ["x", "y", *(["sample_weight"] if "sample_weight" in holder else [])]
        passed = [given[name] for name in names if name in given]
    elif call.loop:
        passed = [call.loop]
    elif len(call.arguments) + len(call.keywords) == 1:
        passed = [*call.arguments, *call.keywords.values()]
    else:
        name = re.split(r"\W", holder.partition("`")[2])[0]
        passed = [call.keywords[name]] if name in call.keywords else []
    data = f"({', '.join(passed)})" if len(passed) > 1 else "".join(passed)
    data = _caller.shown(data)
    return f'tfsafe.data.check_finite({data}, policy="report")' if data else ""


def fix_of(failure: Failure) -> tuple[str, str]:
    """Returns the code to write, empty where there is none, and what it does."""
    for formula in FORMULAS:
        if failure.op in formula.ops and _is_of(failure, formula.name):
            call = source_names.call(formula.name, failure.source)
            words = f"{formula.words} {REWRITES}"
            if not call:
                return "", f"{formula.code} {words}"
            return f"{formula.code}({call})", words
    # An overflow is one in the safe class too.
    is_domain = failure.fault in {"domain", "negative"}
    if is_domain and not source_names.is_written(failure.op, failure.source):
        code, words = swap_of(failure.layer, failure.scope)
        if code:
            return code, words
    for row in FIXES:
        if _fits(row, failure):
            words = f"{row.words} {REWRITES}" if row.is_rewritten else row.words
            code = source_names.filled(row.op, row.code, failure.source)
            if row.code and not code:
                # The user's line does not show the arguments.
                return "", f"{_FIELD.sub('...', row.code)} {words}"
            return code, words
    if failure.fault == "constant":
        return "", ""
    if failure.fault != "overflow":
        return "", _SKIP
    return "", _FLOAT32 if failure.dtype in {"float16", "bfloat16"} else SCALE


def _is_of(failure: Failure, name: str) -> bool:
    """Returns whether the operation that failed is part of a formula."""
    if not source_names.calls(name, failure.source):
        return False
    # The line has both: the innermost scope distinguishes them.
    is_inside = failure.scope.rpartition("/")[2].startswith(name.rpartition(".")[2])
    return is_inside or not source_names.is_written(failure.op, failure.source)


def _fits(row: Fix, failure: Failure) -> bool:
    when = "gradient" if failure.is_gradient else "forward"
    return (
        row.op == failure.op
        and row.when in {"", when}
        and row.fault in {"", failure.fault}
        and (not row.source or row.source in failure.producers)
        and _begins(row.met_next, failure.met_next)
    )


def _begins(wanted: tuple[str, ...], paths: Sequence[tuple[str, ...]]) -> bool:
    return not wanted or any(path[: len(wanted)] == wanted for path in paths)
