"""Holds the fixes of formulas by hand: softmax, logsumexp, limits, a loss scale."""

from tfsafe.debugging.explain.suggestions.fix import Fix
from tfsafe.debugging.explain.suggestions.logarithm_fixes import LOG_CUMSUM
from tfsafe.debugging.tracing.provenance import QUOTIENT_OF_BOTH, QUOTIENT_OF_OTHERS
from tfsafe.graph import SEGMENT_SUMS, OpFact, op_types

_SOFTMAX = "computes this quotient without the overflow, if it is a softmax."
_TRANSPOSED_SOFTMAX = (
    "if this is a softmax of a transposed tensor, transpose first: "
    "tfsafe.ops.softmax(tf.transpose(x)), with the axis of the sum, computes the "
    "quotient without the overflow."
)
_LOG_SOFTMAX = "computes the logarithm of this softmax, which no logit overflows."
_LOG_SUM = "computes the logarithm of this sum, which no argument overflows."
_MASKED_SOFTMAX = (
    "returns 0, with gradient 0, in a row that is masked as a whole. It replaces the "
    "exponential and the division by its sum as well."
)
_MASKED_LOG_SOFTMAX = (
    "is x - log(sum(exp(x))) with the largest subtracted: -inf, with gradient 0, in a "
    "row that is masked as a whole. It replaces all of that."
)
_MASKED_LOG_SUM = (
    "returns -inf, with gradient 0, in a row that is masked as a whole. It replaces "
    "the exponential, the sum and the logarithm as well."
)
_OF_TINY = (
    "is this quotient; it subtracts the largest exponent first, so that the sum cannot "
    "underflow."
)
_LOG_OF_TINY = (
    "computes the logarithm of this sum; it subtracts the largest exponent first, so "
    "that the sum cannot underflow."
)
_INVERSE_SOFTPLUS = "is log(exp(x) - 1), the inverse of softplus, of any positive x."
_PICKED = (
    "computes the logarithm of this softmax, which no logit overflows: pick from it "
    "instead of taking the logarithm of what was picked."
)
_SEGMENT_SOFTMAX = (
    "this is a softmax over segments by hand. Subtract the largest of each segment "
    "first: x - tf.gather(tfsafe.ops.unsorted_segment_max(x, ids, n), ids)."
)
_SEGMENT_LOG_SUM = (
    "this is a logsumexp over segments by hand. With the largest of each segment, m = "
    "tfsafe.ops.unsorted_segment_max(x, ids, n), it is m + log(sum(exp(x - gather(m, "
    "ids))))."
)
_SOFTPLUS = "computes log(1 + exp(x)), which no argument overflows."
_LOG_ADD = "computes the logarithm of this sum, which no argument overflows."
_LOG_OF_TWO = (
    "log(1 + exp(x)) is tf.nn.softplus(x), log(exp(a) + exp(b)) is "
    "tfsafe.ops.log_add_exp(a, b), and log(a + exp(x)) is "
    "tfsafe.ops.log_add_exp(tf.math.log(a), x): no argument overflows them."
)
_SIGMOID = "is this quotient, which no argument overflows."
_OF_SUM = (
    "exp(x) / (1 + exp(x)) is tf.sigmoid(x), exp(a) / (exp(a) + exp(b)) is "
    "tf.sigmoid(a - b), and (exp(x) - exp(-x)) / (exp(x) + exp(-x)) is tf.tanh(x): no "
    "argument overflows them."
)
_OF_OTHERS = (
    "exp(a) / sum(exp(b)) is tf.exp(a - tfsafe.ops.logsumexp(b)), with the axis of the "
    "sum, which no argument overflows."
)
_LOG_OF_QUOTIENT = (
    "log(exp(a) / sum(exp(b))) is a - tfsafe.ops.logsumexp(b), with the axis of the "
    "sum, and log(exp(a) / (exp(a) + exp(b))) is tfsafe.ops.log_sigmoid(a - b): no "
    "argument overflows them."
)
# `exp(x) / (1 + exp(x))` as a whole, with x of up to two levels of brackets.
_ARGUMENT = r"exp\((?P<x>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
_SAME = r"[\w.]*exp\((?P=x)\)"
_BY_HAND = rf"{_ARGUMENT} ?/ ?\((?:1(?:\.0*)? ?\+ ?{_SAME}|{_SAME} ?\+ ?1(?:\.0*)?)\)"
_NO_SUM = r"^(?!.*\b(reduce_)?sum\()."
_OVER_SUM = rf"{_NO_SUM}*/ ?\(.*\+"
_LIMIT = (
    "numerator and denominator are 0 there, and the quotient has a limit; "
    "tfsafe.ops.divide would return 0. For sin(x) / x use tfsafe.ops.sinc(x / "
    "math.pi); (x**k - 1) / k is log(x) at k = 0."
)
_HALF_CONSTANT = (
    "float16 ends at 65504: take a smaller constant, or convert what it meets to "
    "float32, tf.cast(x, tf.float32). keras.optimizers.LossScaleOptimizer(optimizer) "
    "scales a loss, and finds the scale by itself."
)
_BOUNDED = "is this quotient, which is 1 up to the bound, at 0 too."
_LOG_COSH = "computes log(cosh(x)), which no argument overflows."
_SEGMENT_SUMS = (
    *sorted(SEGMENT_SUMS),
    *("ScatterNd", "TensorScatterAdd"),
)
# Functions that are 0 at 0 with a slope, so that quotients of them have limits there.
_VANISH = sorted(op_types(OpFact.VANISHES))
_OF_SEGMENTS = [
    Fix("Exp", "", words, "", "", "overflow", (add, *then), is_rewritten=True)
    for add in _SEGMENT_SUMS
    for then, words in (
        (("GatherV2", QUOTIENT_OF_BOTH), _SEGMENT_SOFTMAX),
        (("GatherNd", QUOTIENT_OF_BOTH), _SEGMENT_SOFTMAX),
        (("Log",), _SEGMENT_LOG_SUM),
    )
]
_OF_LIMITS = [
    Fix(
        "RealDiv",
        "{bound} / tf.maximum({1}, {bound})",
        _BOUNDED,
        "forward",
        "Minimum",
        kind="NaN",
        is_read=True,
    ),
    *(
        Fix("RealDiv", "", _LIMIT, "forward", each, kind="NaN", is_rewritten=True)
        for each in _VANISH
    ),
    Fix(
        "RealDiv",
        "",
        _LIMIT,
        "forward",
        "Sub",
        kind="NaN",
        is_rewritten=True,
        written=r"\b(cos|cosh|exp|pow)\(|\*\* ?[A-Za-z_]",
    ),
    # Such as `tanh(r) * v / r`.
    Fix(
        "RealDiv",
        "",
        _LIMIT,
        "forward",
        "Mul",
        kind="NaN",
        is_rewritten=True,
        written=rf"\b({'|'.join(each.lower() for each in _VANISH)})\(",
    ),
]
_SAFE_EXP = (
    "tf.exp({0} - tf.gather(tfsafe.ops.unsorted_segment_max({0}, {segments}, {count}), "
    "{segments}))"
)
OF_FORMULAS = [
    *(
        Fix("Const", "", _HALF_CONSTANT, fault="constant", dtype="float16", kind=kind)
        for kind in ("+Inf", "-Inf")
    ),
    Fix(
        "Exp",
        _SAFE_EXP,
        "subtracts the largest of each segment first: this is a softmax over segments.",
        fault="overflow",
        met_next=("UnsortedSegmentSum", "GatherV2", QUOTIENT_OF_BOTH),
        is_read=True,
        is_rewritten=True,
        replaces="first",
    ),
    *_OF_SEGMENTS,
    *_OF_LIMITS,
    *(
        Fix(op, code, words, "forward", zero="Exp", is_read=True, is_rewritten=True)
        for op, code, words in (
            ("RealDiv", "tfsafe.ops.softmax({exponent}{axis})", _OF_TINY),
            ("Log", "tfsafe.ops.logsumexp({exponent}{axis}{keepdims})", _LOG_OF_TINY),
        )
    ),
    *(
        Fix("Exp", "", _LOG_OF_QUOTIENT, fault="overflow", met_next=(*path, "Log"))
        for path in (
            ("AddV2", QUOTIENT_OF_BOTH),
            ("AddV2", QUOTIENT_OF_OTHERS),
            (QUOTIENT_OF_OTHERS,),
        )
    ),
    Fix(
        "Exp",
        "tfsafe.ops.log_softmax({0}{axis})",
        _LOG_SOFTMAX,
        fault="overflow",
        met_next=(QUOTIENT_OF_BOTH, "Log"),
        is_rewritten=True,
    ),
    Fix(
        "Exp",
        "tfsafe.ops.log_softmax({0}{axis})",
        _PICKED,
        fault="overflow",
        met_next=(QUOTIENT_OF_BOTH, "GatherV2", "Log"),
        replaces="",
    ),
    # Less the largest one, which a row that is masked as a whole has not.
    *(
        Fix(
            "Sub",
            f"tfsafe.ops.{name}({{0}}{{axis}}{more})",
            words,
            source="Max",
            met_next=("Exp", *then),
        )
        for name, more, then, words in (
            ("softmax", "", (QUOTIENT_OF_BOTH,), _MASKED_SOFTMAX),
            ("log_softmax", "", ("Sum", "Log", "Sub"), _MASKED_LOG_SOFTMAX),
            ("logsumexp", "{keepdims}", ("Sum", "Log"), _MASKED_LOG_SUM),
        )
    ),
    Fix(
        "Exp",
        "tf.sigmoid({0})",
        _SIGMOID,
        fault="overflow",
        written=_BY_HAND,
        replaces="RealDiv",
    ),
    *(
        Fix("Exp", "", _OF_SUM, fault="overflow", met_next=path, written=written)
        for path, written in (
            ((QUOTIENT_OF_BOTH,), _OVER_SUM),
            (("AddV2", QUOTIENT_OF_BOTH), _NO_SUM),
            (("Sub", QUOTIENT_OF_BOTH), _NO_SUM),
            (("AddV2", QUOTIENT_OF_OTHERS), _NO_SUM),
            (("Sub", QUOTIENT_OF_OTHERS), _NO_SUM),
        )
    ),
    Fix("Exp", "", _OF_OTHERS, fault="overflow", met_next=(QUOTIENT_OF_OTHERS,)),
    Fix("Exp", "", LOG_CUMSUM, fault="overflow", met_next=("Cumsum", "Log")),
    Fix(
        "Exp",
        "tfsafe.ops.softmax({0}{axis})",
        _SOFTMAX,
        fault="overflow",
        met_next=(QUOTIENT_OF_BOTH,),
        is_rewritten=True,
    ),
    Fix(
        "Exp",
        "",
        _TRANSPOSED_SOFTMAX,
        fault="overflow",
        met_next=("Transpose", QUOTIENT_OF_BOTH),
        is_rewritten=True,
    ),
    Fix(
        "Exp",
        "tfsafe.ops.logsumexp({0}{axis}{keepdims})",
        _LOG_SUM,
        fault="overflow",
        met_next=("Sum", "Log"),
        is_rewritten=True,
    ),
    *(
        Fix(
            "Exp",
            code,
            words,
            fault="overflow",
            met_next=path,
            is_read=bool(code) and path != ("Log1p",),
            is_rewritten=True,
            # Not the activation of a layer, and the logarithm of a loss.
            written=r"\bexp\(",
        )
        for path, code, words in (
            (("Log1p",), "tf.nn.softplus({0})", _SOFTPLUS),
            (("AddV2", "Log"), "tf.nn.softplus({beside_one})", _SOFTPLUS),
            (("AddV2", "Log"), "tfsafe.ops.log_add_exp({0}, {log_added})", _LOG_ADD),
            (("AddV2", "Log"), "", _LOG_OF_TWO),
        )
    ),
    *(
        Fix(
            op,
            "{0} + tfsafe.ops.log1mexp(-({0}))",
            _INVERSE_SOFTPLUS,
            fault="overflow",
            met_next=path,
            written=written,
        )
        for op, path, written in (
            ("Exp", ("Sub", "Log"), r"\blog\(.*\bexp\(.*\) ?- ?1(\.0?)?\)"),
            ("Expm1", ("Log",), ""),
        )
    ),
    Fix(
        "Cosh",
        "tfsafe.ops.log_cosh({0})",
        _LOG_COSH,
        fault="overflow",
        met_next=("Log",),
        is_rewritten=True,
    ),
]
