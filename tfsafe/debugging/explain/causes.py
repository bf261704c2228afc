"""Explains why an operation made a NaN or an Inf, by a table of rules.

A rule looks at the inputs of one operation and describes what is wrong with them, or
returns an empty string. The first rule of an operation that returns a description
gives the cause. `suggestions` has what to write instead, by operation and kind of
fault.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tfsafe._limits import LIMITS
from tfsafe.debugging import values


class Evidence(NamedTuple):
    """What is known of the operation that failed.

    Attributes:
      inputs: Its inputs as arrays, floats as float64.
      output: Its non-finite output as an array.
      nonfinite: Which elements of the output became non-finite here.
      dtype: Name of the output's dtype.
      scope: Name scope of the operation, if known.
      slope_of: Type of the operation whose gradient it belongs to, if to one.
    """

    inputs: list[np.ndarray]
    output: np.ndarray
    nonfinite: np.ndarray
    dtype: str
    scope: str = ""
    slope_of: str = ""


Test = Callable[[Evidence], str]


class Rule(NamedTuple):
    """One row: for which operation, and what to look for.

    Attributes:
      op: Type of the operation, in the gradient of another `"Log/Reciprocal"`; `"*"`
        for any.
      test: Returns the cause in words, or an empty string.
      fault: Kind of the fault: `"domain"`, with `"negative"` for the part of it that no
        other function repairs, `"zero"` for a power of 0, `"label"`, `"overflow"` or
        `"unknown"`.
    """

    op: str
    test: Test
    fault: str = "domain"


def cause_of(op_type: str, evidence: Evidence) -> tuple[str, str]:
    """Returns what is wrong with the operation's inputs, in words, and its kind."""
    ops = {f"{evidence.slope_of}/{op_type}", op_type, "*"}
    for rule in RULES:
        if rule.op in ops:
            cause = rule.test(evidence)
            if cause:
                return f"{cause}.", rule.fault
    return "", "unknown"


def _where(mask: np.ndarray) -> str:
    if mask.ndim == 0:
        return ""
    return f" ({'the first ' if mask.sum() > 1 else ''}at {values.first(mask)})"


def _count(mask: np.ndarray, one: str, many: str) -> str:
    count = int(mask.sum())
    return f"{count} {one if count == 1 else many}" if count else ""


def _named(
    index: int, text: str, *parts: tuple[Callable[[Any], Any], str, str]
) -> Test:
    """Builds a test: how many elements of an input have one of some properties."""

    def test(evidence: Evidence) -> str:
        if index >= len(evidence.inputs):
            return ""
        x = evidence.inputs[index]
        masks = [np.asarray(holds(x)) for holds, _, _ in parts]
        phrases = [
            _count(mask, one, many)
            for mask, (_, one, many) in zip(masks, parts, strict=True)
            if mask.any()
        ]
        if not phrases:
            return ""
        anywhere = np.logical_or.reduce(masks)
        return text.format(" and ".join(phrases)) + _where(anywhere)

    return test


def _only_if(holds: Callable[[Any], Any], test: Test) -> Test:
    """Restricts a test to inputs with an element for which `holds` is true."""

    def guarded(evidence: Evidence) -> str:
        return test(evidence) if any(np.any(holds(x)) for x in evidence.inputs) else ""

    return guarded


def _weighted_log(evidence: Evidence) -> str:
    argument = np.broadcast_to(evidence.inputs[1], evidence.output.shape)
    zeros = (argument == 0) & evidence.nonfinite
    if not zeros.any():
        return ""
    count = _count(zeros, "zero", "zeros")
    return f"log of {count} with a weight other than 0{_where(zeros)}"


def _unknown_label(evidence: Evidence) -> str:
    """Recognises where the losses of class indices divide an unknown label by 0."""
    if not evidence.scope.endswith("label_outside_the_classes"):
        return ""
    labels, divisors = evidence.inputs
    return _outside(labels, divisors.max(), np.isnan(evidence.output))


def _label_outside(evidence: Evidence) -> str:
    """Recognises a label for which TensorFlow's kernel, compiled by XLA, gives NaN."""
    logits, labels = evidence.inputs
    classes = logits.shape[-1]
    unknown = (labels < 0) | (labels >= classes)
    return _outside(labels, classes, unknown) if unknown.any() else ""


def _outside(labels: np.ndarray, classes: float, unknown: np.ndarray) -> str:
    value = labels[unknown].flat[0]
    valid = f" of [0, {classes:.0f})" if classes else ""
    where = _where(unknown)
    return f"a label value of {value:g} is outside the valid range{valid}{where}"


_ZERO = (lambda x: x == 0, "zero", "zeros")
_NEGATIVE = (lambda x: x < 0, "negative number", "negative numbers")
_is_negative = _NEGATIVE[0]
_LOG = _named(0, "log of {}", _ZERO, _NEGATIVE)
_ROOT = _named(0, "1/sqrt of {}", _ZERO, _NEGATIVE)
_POLE = (
    lambda x: (x <= 0) & (x == np.floor(x)),
    "number, 0 or negative and whole, where it has a pole",
    "numbers, 0 or negative and whole, where it has poles",
)
_OUTSIDE_ONE = (lambda x: abs(x) > 1, "number", "numbers")
_FROM_ONE = (lambda x: abs(x) >= 1, "number", "numbers")
_BELOW_ONE = (lambda x: x < 1, "number", "numbers")
_TO_MINUS_ONE = (lambda x: x <= -1, "number", "numbers")
_UNSEEN = "the tf.function called here changes variables, so it cannot be replayed"


def _limit(evidence: Evidence) -> str:
    largest = LIMITS[evidence.dtype].max if evidence.dtype in LIMITS else np.inf
    return f"{evidence.dtype} above {largest:.4g}"


def _is_overflow(evidence: Evidence) -> bool:
    return bool(np.isinf(evidence.output[evidence.nonfinite]).all()) and all(
        np.isfinite(x).all() for x in evidence.inputs if x.dtype.kind == "f"
    )


def _exponential(name: str) -> Test:
    def test(evidence: Evidence) -> str:
        if not _is_overflow(evidence) or evidence.dtype not in LIMITS:
            return ""
        limit = np.log(LIMITS[evidence.dtype].max)
        x = evidence.inputs[0]
        largest = np.asarray(x == x.max())
        return (
            f"{name} overflows {evidence.dtype} above {limit:.2f}; the largest input "
            f"is {x.max():.4g}{_where(largest)}"
        )

    return test


def _overflow(what: str) -> Test:
    def test(evidence: Evidence) -> str:
        floats = [x for x in evidence.inputs if x.dtype.kind == "f" and x.size]
        if not floats or not _is_overflow(evidence):
            return ""
        reach = " and ".join(dict.fromkeys(f"{abs(x).max():.4g}" for x in floats))
        return f"{what} overflows {_limit(evidence)}; the inputs reach {reach}"

    return test


def _at_first(evidence: Evidence) -> list[float] | None:
    """Returns two inputs at the first non-finite element, if they broadcast to it."""
    if len(evidence.inputs) < 2:
        return None
    index = values.first(evidence.nonfinite)
    try:
        return [
            float(np.broadcast_to(x, evidence.output.shape)[index])
            for x in evidence.inputs[:2]
        ]
    except (TypeError, ValueError):
        return None


def _zero_times_inf(evidence: Evidence) -> str:
    pair = _at_first(evidence)
    if pair is None or not (0 in pair and np.isinf(pair).any()):
        return ""
    return (
        f"0 * {'-inf' if -np.inf in pair else 'inf'} is NaN{_where(evidence.nonfinite)}"
    )


def _inf_minus_inf(evidence: Evidence) -> str:
    pair = _at_first(evidence)
    if pair is None or not np.isinf(pair).all():
        return ""
    return f"inf - inf is NaN{_where(evidence.nonfinite)}"


def _power_of_zero(evidence: Evidence) -> str:
    pair = _at_first(evidence)
    if pair is None or pair[0] != 0 or pair[1] >= 0:
        return ""
    return f"0 to the power {pair[1]:.4g} is infinite{_where(evidence.nonfinite)}"


def _power(evidence: Evidence) -> str:
    pair = _at_first(evidence)
    if pair is None:
        return ""
    base, exponent = pair
    if base < 0 and exponent != int(exponent):
        return (
            f"the negative number {base:.4g} to the power {exponent:.4g}, which is not "
            f"a whole number{_where(evidence.nonfinite)}"
        )
    return ""


def _empty(what: str) -> Test:
    def test(evidence: Evidence) -> str:
        return f"{what} of an empty set" if evidence.inputs[0].size == 0 else ""

    return test


def _all_masked(evidence: Evidence) -> str:
    x = evidence.inputs[0]
    masked = np.asarray(np.isneginf(x).all(axis=-1))
    if masked.any():
        one = "row of only -inf"
        return _count(masked, one, "rows of only -inf") + _where(masked)
    infinite = np.isposinf(x)
    if infinite.any():
        return _count(infinite, "logit is", "logits are") + " +inf" + _where(infinite)
    return ""


def _root_slope(evidence: Evidence) -> str:
    root, upstream = (
        np.broadcast_to(x, evidence.output.shape) for x in evidence.inputs
    )
    zeros = root == 0
    if not zeros.any():
        return ""
    incoming = upstream[values.first(zeros & evidence.nonfinite)]
    count = _count(zeros, "zero", "zeros")
    return (
        f"the slope of sqrt is infinite at 0: {count} under the root{_where(zeros)}, "
        f"where the incoming gradient is {incoming:.4g}"
    )


def _slope(function: str, what: str) -> Test:
    text = f"the slope of {function} is {what}: {{}} there"
    return _named(-1, text, (_ZERO[0], "argument is", "arguments are"))


def _lowest_eigenvalue(evidence: Evidence) -> tuple[float, float]:
    """Returns that of the first matrix that failed, and what rounding makes of 0."""
    (x,) = evidence.inputs
    size = x.shape[-1]
    failed = evidence.nonfinite.reshape(-1, size * size).any(-1)
    matrix = x.reshape(-1, size, size)[failed.argmax()]
    if evidence.dtype not in LIMITS or not np.isfinite(matrix).all():
        return np.nan, 0.0
    found = np.linalg.eigvalsh(matrix)
    return found[0], size * LIMITS[evidence.dtype].eps * abs(found).max()


def _indefinite(evidence: Evidence) -> str:
    lowest, rounding = _lowest_eigenvalue(evidence)
    below = f"the matrix has the eigenvalue {lowest:.4g}, and so no Cholesky factor"
    return below if lowest < -rounding else ""


def _singular(evidence: Evidence) -> str:
    lowest, rounding = _lowest_eigenvalue(evidence)
    return "the matrix is singular" if abs(lowest) <= rounding else ""


def _statistics(evidence: Evidence) -> str:
    phrases = []
    for index, x in enumerate(evidence.inputs):
        if x.dtype.kind != "f" or not x.size:
            continue
        finite = x[np.isfinite(x)]
        kinds = values.kind(x)
        reach = f"from {finite.min():.4g} to {finite.max():.4g}" if finite.size else ""
        phrases.append(
            f"input {index}: " + " and ".join(part for part in (reach, kinds) if part)
        )
    return "; ".join(phrases)


RULES = [
    Rule("StatefulPartitionedCall", lambda _: _UNSEEN),
    Rule("Acos/Reciprocal", _slope("acos", "infinite at -1 and 1")),
    Rule("Asin/Reciprocal", _slope("asin", "infinite at -1 and 1")),
    Rule("Atanh/Reciprocal", _slope("atanh", "infinite at -1 and 1")),
    Rule("Acosh/RealDiv", _slope("acosh", "infinite at 1")),
    Rule("Log/Reciprocal", _slope("log", "infinite at 0")),
    Rule("Log1p/Reciprocal", _slope("log1p", "infinite at -1")),
    Rule("Atan2/RealDiv", _slope("atan2", "not defined at the origin")),
    Rule("EuclideanNorm/RealDiv", _slope("a norm", "not defined at 0")),
    Rule("RealDiv", _named(1, "{} in the denominator", _ZERO)),
    Rule("Div", _named(1, "{} in the denominator", _ZERO)),
    Rule("Xdivy", _named(1, "{} in the denominator", _ZERO)),
    Rule("RealDiv", _overflow("the quotient"), "overflow"),
    Rule("Reciprocal", _named(0, "the reciprocal of {}", _ZERO)),
    Rule("Inv", _named(0, "the reciprocal of {}", _ZERO)),
    Rule("Log", _only_if(_is_negative, _LOG), "negative"),
    Rule("Log", _LOG),
    Rule(
        "Log1p",
        _named(
            0,
            "log1p of {}",
            (lambda x: x == -1, "number equal to -1", "numbers equal to -1"),
            (lambda x: x < -1, "number below -1", "numbers below -1"),
        ),
    ),
    Rule("Xlogy", _named(1, "log of {}", _NEGATIVE), "negative"),
    Rule("Xlogy", _weighted_log),
    Rule("Xlog1py", _named(1, "log1p of {} of at most -1", _TO_MINUS_ONE)),
    Rule("Sqrt", _named(0, "sqrt of {}", _NEGATIVE)),
    Rule("Rsqrt", _only_if(_is_negative, _ROOT), "negative"),
    Rule("Rsqrt", _ROOT),
    Rule("SqrtGrad", _root_slope),
    Rule("Exp", _exponential("exp"), "overflow"),
    Rule("Expm1", _exponential("expm1"), "overflow"),
    Rule("Sinh", _exponential("sinh"), "overflow"),
    Rule("Cosh", _exponential("cosh"), "overflow"),
    Rule("Pow", _power_of_zero, "zero"),
    Rule("Pow", _power),
    Rule("Pow", _overflow("the power"), "overflow"),
    Rule("Asin", _named(0, "asin of {} outside [-1, 1]", _OUTSIDE_ONE)),
    Rule("Acos", _named(0, "acos of {} outside [-1, 1]", _OUTSIDE_ONE)),
    Rule("Acosh", _named(0, "acosh of {} below 1", _BELOW_ONE)),
    Rule("Atanh", _named(0, "atanh of {} outside (-1, 1)", _FROM_ONE)),
    Rule("Lgamma", _named(0, "lgamma of {}", _POLE)),
    Rule("Digamma", _named(0, "digamma of {}", _POLE)),
    Rule("Mul", _zero_times_inf),
    Rule("Mul", _overflow("the product"), "overflow"),
    Rule("Square", _overflow("the square"), "overflow"),
    Rule("SquaredDifference", _overflow("the square"), "overflow"),
    Rule("MatMul", _overflow("a sum of products"), "overflow"),
    Rule("BatchMatMulV2", _overflow("a sum of products"), "overflow"),
    Rule("Conv2D", _overflow("a sum of products"), "overflow"),
    Rule("AddV2", _inf_minus_inf),
    Rule("Add", _inf_minus_inf),
    Rule("Sub", _inf_minus_inf),
    Rule("AddV2", _overflow("the sum"), "overflow"),
    Rule("Sub", _overflow("the difference"), "overflow"),
    Rule("Sum", _overflow("the sum"), "overflow"),
    Rule("Mean", _empty("the mean")),
    Rule("Mean", _overflow("the sum inside the mean"), "overflow"),
    Rule("Max", _empty("the maximum")),
    Rule("Min", _empty("the minimum")),
    Rule("Prod", _overflow("the product"), "overflow"),
    Rule("EuclideanNorm", _overflow("the sum of squares"), "overflow"),
    Rule("Cast", _overflow("the value"), "overflow"),
    Rule("Cholesky", _indefinite, "negative"),
    Rule("Cholesky", _singular),
    Rule("FloorMod", _unknown_label, "label"),
    Rule("SparseSoftmaxCrossEntropyWithLogits", _label_outside, "label"),
    Rule("Softmax", _all_masked),
    Rule("LogSoftmax", _all_masked),
    Rule("*", _overflow("the result"), "overflow"),
    Rule("*", _statistics, "unknown"),
]
