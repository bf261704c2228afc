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
from tfsafe.debugging.explain.evidence import (
    Evidence,
    Test,
    counted,
    indefinite,
    label_outside,
    negative,
    of_text,
    singular,
    unknown_label,
    where,
)


class Rule(NamedTuple):
    """One row: for which operation, and what to look for.

    Attributes:
      op: Type of the operation, in the gradient of another `"Log/Reciprocal"`; `"*"`
        for any.
      test: Returns the cause in words, or an empty string.
      fault: Kind of the fault: `"domain"`, with `"negative"` for the part of it that no
        other function repairs, `"zero"` for a power of 0, `"zero first"` for a product
        of 0 and an infinity in this order, `"weight"` for an infinite one, `"label"`,
        with `"negative label"` for one below 0, `"text"`, `"overflow"`, `"tiny"` for
        that of a quotient by a tiny number, or `"unknown"`.
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
            counted(mask, one, many)
            for mask, (_, one, many) in zip(masks, parts, strict=True)
            if mask.any()
        ]
        if not phrases:
            return ""
        anywhere = np.logical_or.reduce(masks)
        return text.format(" and ".join(phrases)) + where(anywhere)

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
    count = counted(zeros, "zero", "zeros")
    return f"log of {count} with a weight other than 0{where(zeros)}"


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
_NO_FRACTION = (lambda x: (x <= 0) | (x >= 1), "number", "numbers")
_BELOW_ONE = (lambda x: x < 1, "number", "numbers")
_TO_MINUS_ONE = (lambda x: x <= -1, "number", "numbers")
# Operations that read numbers.
OF_TEXT = "DecodeCSV", "StringToNumber"
OF_RECORDS = "DecodeRaw", "ParseExampleV2", "ParseSingleExample"
# Operations that look up stored values.
OF_TABLES = "LookupTableExportV2", "LookupTableFindV2"
OF_FILES = ("RestoreV2",)
_STORES = {
    **dict.fromkeys(OF_FILES, "checkpoint"),
    **dict.fromkeys(OF_RECORDS, "record"),
    **dict.fromkeys(OF_TABLES, "table"),
}
_UNSEEN = "the tf.function called here changes variables, so it cannot be replayed"


def _held_by(store: str) -> Test:
    return lambda _: f"the {store} that it reads holds it"


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
            f"is {x.max():.4g}{where(largest)}"
        )

    return test


def _overflow(what: str, *, of_sums: bool = False) -> Test:
    """Builds a test: finite inputs give infinities; those of sums may make NaN."""

    def test(evidence: Evidence) -> str:
        floats = [x for x in evidence.inputs if x.dtype.kind == "f" and x.size]
        is_lost = of_sums and all(np.isfinite(x).all() for x in floats)
        if not floats or not (is_lost or _is_overflow(evidence)):
            return ""
        reach = " and ".join(dict.fromkeys(f"{abs(x).max():.4g}" for x in floats))
        return f"{what} overflows {_limit(evidence)}; the inputs reach {reach}"

    return test


def _tiny_divisor(evidence: Evidence) -> str:
    """Recognises an overflow that is due to the denominator alone."""
    pair = _at_first(evidence)
    if pair is None or not _is_overflow(evidence):
        return ""
    above, below = pair
    if abs(above * below) >= 1:
        return ""
    first = where(evidence.nonfinite)
    return f"{above:.4g} / {below:.4g} overflows {_limit(evidence)}{first}"


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
        f"0 * {'-inf' if -np.inf in pair else 'inf'} is NaN{where(evidence.nonfinite)}"
    )


def _infinite_weight(evidence: Evidence) -> str:
    """Recognises weights, at least 0 and some of them infinite, where others are 0."""
    infinite = [x for x in evidence.inputs if np.isinf(x).any()]
    if not _zero_times_inf(evidence) or len(infinite) != 1:
        return ""
    (weights,) = infinite
    finite = weights[np.isfinite(weights)]
    # A mask has no other numbers than 0 and infinity.
    if not (weights >= 0).all() or not (finite > 0).any():
        return ""
    reach = f"{finite.min():.4g} to {finite.max():.4g}"
    return f"{_zero_times_inf(evidence)}: a weight is infinite, others are {reach}"


def _zero_first(evidence: Evidence) -> str:
    pair = _at_first(evidence)
    return _zero_times_inf(evidence) if pair is not None and pair[0] == 0 else ""


def _inf_minus_inf(evidence: Evidence) -> str:
    pair = _at_first(evidence)
    if pair is None or not np.isinf(pair).all():
        return ""
    return f"inf - inf is NaN{where(evidence.nonfinite)}"


def _power_of_zero(evidence: Evidence) -> str:
    pair = _at_first(evidence)
    if pair is None or pair[0] != 0 or pair[1] >= 0:
        return ""
    return f"0 to the power {pair[1]:.4g} is infinite{where(evidence.nonfinite)}"


def _power(evidence: Evidence) -> str:
    pair = _at_first(evidence)
    if pair is None:
        return ""
    base, exponent = pair
    if base < 0 and exponent != int(exponent):
        return (
            f"the negative number {base:.4g} to the power {exponent:.4g}, which is not "
            f"a whole number{where(evidence.nonfinite)}"
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
        return counted(masked, one, "rows of only -inf") + where(masked)
    infinite = np.isposinf(x)
    if infinite.any():
        return counted(infinite, "logit is", "logits are") + " +inf" + where(infinite)
    return ""


def _root_slope(evidence: Evidence) -> str:
    root, upstream = (
        np.broadcast_to(x, evidence.output.shape) for x in evidence.inputs
    )
    zeros = root == 0
    if not zeros.any():
        return ""
    incoming = upstream[values.first(zeros & evidence.nonfinite)]
    count = counted(zeros, "zero", "zeros")
    return (
        f"the slope of sqrt is infinite at 0: {count} under the root{where(zeros)}, "
        f"where the incoming gradient is {incoming:.4g}"
    )


def _slope(function: str, what: str) -> Test:
    text = f"the slope of {function} is {what}: {{}} there"
    return _named(-1, text, (_ZERO[0], "argument is", "arguments are"))


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
    Rule("RealDiv", _tiny_divisor, "tiny"),
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
    Rule("Erfinv", _named(0, "erfinv of {} outside (-1, 1)", _FROM_ONE)),
    Rule("Ndtri", _named(0, "ndtri of {} outside (0, 1)", _NO_FRACTION)),
    Rule("Lgamma", _named(0, "lgamma of {}", _POLE)),
    Rule("Digamma", _named(0, "digamma of {}", _POLE)),
    Rule("Mul", _infinite_weight, "weight"),
    Rule("Mul", _zero_first, "zero first"),
    Rule("Mul", _zero_times_inf),
    Rule("Mul", _overflow("the product"), "overflow"),
    Rule("Square", _overflow("the square"), "overflow"),
    Rule("SquaredDifference", _overflow("the square"), "overflow"),
    *(
        Rule(op, _overflow("a sum of products", of_sums=True), "overflow")
        for op in ("MatMul", "BatchMatMulV2", "Conv2D")
    ),
    Rule("AddV2", _inf_minus_inf),
    Rule("Add", _inf_minus_inf),
    Rule("Sub", _inf_minus_inf),
    Rule("AddV2", _overflow("the sum"), "overflow"),
    Rule("Sub", _overflow("the difference"), "overflow"),
    Rule("Sum", _overflow("the sum", of_sums=True), "overflow"),
    Rule("Mean", _empty("the mean")),
    Rule("Mean", _overflow("the sum inside the mean"), "overflow"),
    Rule("Max", _empty("the maximum")),
    Rule("Min", _empty("the minimum")),
    Rule("Prod", _overflow("the product"), "overflow"),
    Rule("EuclideanNorm", _overflow("the sum of squares"), "overflow"),
    Rule("Cast", _overflow("the value"), "overflow"),
    Rule("Cholesky", indefinite, "negative"),
    Rule("Cholesky", singular),
    *(
        Rule(op, test, fault)
        for op, outside in (
            ("FloorMod", unknown_label),
            ("SparseSoftmaxCrossEntropyWithLogits", label_outside),
        )
        for test, fault in ((negative(outside), "negative label"), (outside, "label"))
    ),
    *(Rule(op, of_text, "text") for op in OF_TEXT),
    *(Rule(op, _held_by(store), "text") for op, store in _STORES.items()),
    Rule("Softmax", _all_masked),
    Rule("LogSoftmax", _all_masked),
    Rule("*", _overflow("the result"), "overflow"),
    Rule("*", _statistics, "unknown"),
]
