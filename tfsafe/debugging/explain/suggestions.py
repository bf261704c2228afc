"""What to write instead: one row a row."""

from collections.abc import Sequence
from typing import NamedTuple

from tfsafe.debugging.explain import source_names


class Failure(NamedTuple):
    """What a row is chosen by.

    Attributes:
      op: Type of the operation, the forward one for a gradient.
      fault: Kind of the fault, see `_rules.Rule`.
      is_gradient: Whether it is the gradient of `op` that failed.
      dtype: Name of the dtype of the bad output.
      producers: Types of the operations that made the inputs.
      source: The user's line, whose names are put into the row.
      scope: Name scope in which the operation stands, if any.
      after: What the bad values met next, see `_trail.Trail.after`.
    """

    op: str
    fault: str
    is_gradient: bool
    dtype: str
    producers: list[str]
    source: str
    scope: str = ""
    after: Sequence[str] = ()


class Fix(NamedTuple):
    """One row: for which failure, the line to code, and what it does.

    Attributes:
      op: Type of the operation, the forward one for a gradient.
      code: The line, with `{0}`, `{1}` for the arguments, `{inner}` for those of the
        call that is the first, `{weight}` for what the result is multiplied by; empty
        where there is none.
      words: What it does, or what to change.
      when: `"forward"`, `"gradient"`, or empty for both.
      source: Type of the operation that made an input; empty for any.
      fault: Kind of the fault; empty for any.
      after: What the bad values met next; empty for anything.
      is_rewritten: Whether a rule of `tfsafe.stabilize` mends it too.
    """

    op: str
    code: str
    words: str
    when: str = ""
    source: str = ""
    fault: str = "domain"
    after: str = ""
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


REWRITES = "Or let tfsafe.stabilize(f) rewrite it, f being the function or the model."
_SLOPE = "has the same values, and slope 0 where the true slope is infinite."
_QUOTIENT = "is 0 where the denominator is 0, and so is its gradient."
_INVERSE = "is 0 where the argument is 0, and so is its gradient."
_LOGITS = (
    "takes the logits and never sees a probability of 0; "
    "tfsafe.losses.StableCrossEntropy is the loss built on it."
)
_WEIGHTED = (
    "is weight * log, and 0 where the weight is 0. For a cross-entropy take "
    "tfsafe.losses.StableCrossEntropy."
)
_INFINITE = (
    "log(0) is infinite, and so is what is made of it: keep the argument above 0, or, "
    "if it is a probability, go by the logits: tfsafe.losses.StableCrossEntropy, "
    "tfsafe.ops.log_softmax. Where its weight is 0, tfsafe.ops.xlogy(weight, x) is 0."
)
_WEIGHS = (
    "the weight is not 0 there, so that the infinity is right: keep the second "
    "argument above 0, or, for a cross-entropy, go by the logits: "
    "tfsafe.losses.StableCrossEntropy."
)
_NEGATIVE = (
    "a logarithm needs positive numbers: find out why the argument is negative. If it "
    "is a mere rounding error around 0, bound it below: tf.maximum(x, 1e-7)."
)
_SOFTMAX = "is this quotient without the overflow, if it is a softmax."
_LOG_SOFTMAX = "is the logarithm of this softmax in one step, which no logit overflows."
_LOG_SUM = "is this sum with the logarithm taken of it, which no argument overflows."
_LOG_SPACE = (
    "if a softmax is made of it, take tfsafe.ops.softmax. Else stay in log space: "
    "tfsafe.ops.logsumexp, tfsafe.ops.log_softmax and tf.nn.softplus need no exp; "
    "under a tf.where, bound the argument first: tf.exp(tf.minimum(x, bound))."
)
_POWER = "keep the base positive: a fractional power of a negative number is not real."
_VARIANCE = (
    "if the negative numbers are rounding errors around 0; tfsafe.ops.variance and "
    "tfsafe.ops.std have none."
)
_MEAN = (
    "is 0 where the mask leaves nothing, and sums half precision in float32; "
    "tfsafe.layers.SafeMeanPooling is the layer built on it."
)
_FLOAT32 = (
    "compute this part in float32, for instance with dtype='float32' on its layer, or "
    "scale its inputs down."
)
_SCALE = (
    "scale the inputs down, lower the learning rate or clip the gradients; "
    "tfsafe.optimizers.SafeOptimizer(optimizer) keeps one such step from reaching the "
    "weights."
)
_SKIP = (
    "tfsafe.optimizers.SafeOptimizer(optimizer) keeps one such step from reaching the "
    "weights, until the cause is found."
)
_UNIT = (
    "bound the argument: tf.clip_by_value(x, -1.0, 1.0). The angle between two vectors "
    "is best taken as tfsafe.ops.angle_between(a, b)."
)
_ORIGIN = "has slope 0 at the origin, where there is no angle."
_SEMIDEFINITE = "has a column of zeros where a pivot is 0."
_OUTSIDE = (
    "put @tfsafe.checked on that tf.function; it then names the operation inside."
)

# The first row that fits is told.
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
    Fix(
        "Log",
        "tfsafe.ops.xlogy({weight}, {0})",
        _WEIGHTED,
        after="Mul by 0",
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
        after="RealDiv by such Log",
        is_rewritten=True,
    ),
    Fix(
        "Exp",
        "tfsafe.ops.softmax({0}, axis=-1)",
        _SOFTMAX,
        fault="overflow",
        after="RealDiv by such",
        is_rewritten=True,
    ),
    Fix(
        "Exp",
        "tfsafe.ops.logsumexp({0}, axis=-1)",
        _LOG_SUM,
        fault="overflow",
        after="Sum Log",
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
    Fix("Mean", "tfsafe.ops.masked_mean(x, mask)", _MEAN),
    Fix("Max", "", "give the empty set a value of its own before the reduction."),
    Fix("Min", "", "give the empty set a value of its own before the reduction."),
    Fix(
        "Softmax",
        "tfsafe.ops.softmax({0})",
        "is 0, not NaN, in a row that is masked as a whole, with gradient 0.",
    ),
    Fix(
        "LogSoftmax",
        "tfsafe.ops.log_softmax({0})",
        "is -inf, not NaN, in a row that is masked as a whole, with gradient 0.",
    ),
    Fix(
        "Mul",
        "tfsafe.ops.multiply_no_nan(x, mask)",
        "is 0 where the mask is 0, whatever x is there.",
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
        "is 0 where the norm is 0, and so is its gradient.",
    ),
    Formula(
        "linalg.normalize",
        _ROOTS | {"RealDiv"},
        "tfsafe.ops.normalize",
        "is 0 where the norm is 0, and so is its gradient.",
    ),
]


def fix_of(failure: Failure) -> tuple[str, str]:
    """Returns the line to code, empty where there is none, and what it does."""
    for formula in FORMULAS:
        if failure.op in formula.ops and _is_of(failure, formula.name):
            call = source_names.call(formula.name, failure.source)
            return f"{formula.code}({call})", f"{formula.words} {REWRITES}"
    for row in FIXES:
        if _fits(row, failure):
            words = f"{row.words} {REWRITES}" if row.is_rewritten else row.words
            return source_names.filled(row.op, row.code, failure.source), words
    if failure.fault == "constant":
        return "", ""
    if failure.fault != "overflow":
        return "", _SKIP
    return "", _FLOAT32 if failure.dtype in {"float16", "bfloat16"} else _SCALE


def _is_of(failure: Failure, name: str) -> bool:
    """Returns whether the operation that failed is part of a formula."""
    if not source_names.calls(name, failure.source):
        return False
    # Both stand on the line: the innermost scope tells them apart.
    is_inside = failure.scope.rpartition("/")[2].startswith(name.rpartition(".")[2])
    return is_inside or not source_names.is_written(failure.op, failure.source)


def _fits(row: Fix, failure: Failure) -> bool:
    when = "gradient" if failure.is_gradient else "forward"
    return (
        row.op == failure.op
        and row.when in {"", when}
        and row.fault in {"", failure.fault}
        and (not row.source or row.source in failure.producers)
        and (not row.after or any(p.startswith(row.after) for p in failure.after))
    )
