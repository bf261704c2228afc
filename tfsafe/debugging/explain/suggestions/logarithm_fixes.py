"""Holds the fixes of logarithms: of probabilities, of amounts, with a weight."""

from tfsafe.debugging.explain.suggestions.fix import Fix
from tfsafe.debugging.tracing.lost_digits import CANCELLATION, RECTIFIED, UNDERFLOW
from tfsafe.debugging.tracing.provenance import PRODUCT_WITH_BOTH, PRODUCT_WITH_ZERO

SLOPE = "has the same values, and gradient 0 where the true one is infinite."
RELU = (
    "a ReLU is exactly 0 for each negative input. Use tf.nn.softplus in its place, "
    "which is above 0, or predict the logarithm itself."
)
_HARD = (
    "a ReLU6 is exactly 0 below its range, and so is a hard sigmoid, which is 1 above "
    "it. A cross-entropy takes the logits, without an activation: "
    "tfsafe.losses.StableCrossEntropy(from_logits=True)."
)
ODDS = (
    "log(p / (1 - p)) is infinite at 0 and at 1: keep p away from both before, as "
    "tf.clip_by_value(p, {floor}, 1 - {gap}) does. Of p = sigmoid(x) it is x."
)
QUOTIENT_OF_ODDS = r"\b(\w+) ?/ ?\(1(\.0?)? ?- ?\1\)"
_DIFFERENCE_OF_ODDS = r"\blog\((\w+)\) ?- ?[\w.]*\blog\(1(\.0?)? ?- ?\1\)"
_CROSS_ENTROPY = (
    r"\blog\(([^()]+)\).*[+-].*[*].*\blog\(1(\.0?)? ?- ?\1\)"
    r"|\blog\(1(\.0?)? ?- ?([^()]+)\).*[+-].*[*].*\blog\(\4\)"
)
_ABOVE_ONE = (
    "{0} is above 1 elsewhere, unlike a probability, which log(p) and log(1 - p) need. "
    "A cross-entropy of logits is tfsafe.losses.StableCrossEntropy(from_logits=True); "
    "a layer predicts a probability with activation='sigmoid'."
)
_LOGITS = (
    "takes the logits and never sees a probability of 0; "
    "tfsafe.losses.StableCrossEntropy is the loss built on it."
)
_OF_MODEL = (
    "takes the logits and never sees a probability of 0: end the model without the "
    "activation. tfsafe.losses.StableCrossEntropy is the loss built on it."
)
_WEIGHTED = (
    "returns weight * log, and 0 where the weight is 0. For a cross-entropy use "
    "tfsafe.losses.StableCrossEntropy."
)
_BY_HAND = (
    "computes the logarithm of this softmax from its logits and never sees a "
    "probability of 0; tfsafe.losses.StableCrossEntropy is the loss built on it."
)
_TRULY_INFINITE = (
    "a probability of 0 has a weight that is not 0, so the true value is infinite. "
    "Compute a cross-entropy from the logits: "
    "tfsafe.losses.StableCrossEntropy(from_logits=True)({weight}, logits). If it is "
    "something else, keep the argument above 0, as tf.maximum({0}, {floor}) does."
)
_ENTROPY = "is p * log(p) with its limit, 0 at p = 0, as in an entropy."
_EXPANDED = (
    "is the product with 0 where the weight is 0, as in a divergence of distributions."
)
_INFINITE = (
    "log(0) is infinite: keep the argument above 0, as tf.maximum({0}, {floor}) does "
    "for the energies of a spectrum. If it is a probability, compute from the logits "
    "instead: tfsafe.losses.StableCrossEntropy, tfsafe.ops.log_softmax. "
    "tfsafe.ops.xlogy(weight, {0}) is 0 where the weight is 0."
)
_AMOUNT = (
    "log(0) is infinite: leave such elements out, or keep the argument above 0, as "
    "tf.maximum({0}, {floor}) does. tfsafe.ops.xlogy(weight, {0}) is 0 where the "
    "weight is 0."
)
_UNDERFLOW = (
    "the argument is not 0, but too small for the dtype. The logarithm of a sum of "
    "exponentials is tfsafe.ops.logsumexp(x), of w * exp(x) "
    "tfsafe.ops.logsumexp(tf.math.log(w) + x), of a mean that less log(n), of a "
    "product tf.reduce_sum(tf.math.log(x)), and of a cumulative one "
    "tf.cumsum(tf.math.log(x)); let a loop carry the logarithm."
)
_EQUAL = (
    "the numbers that are subtracted differ by less than the dtype can hold. Subtract "
    "in log space, tfsafe.ops.log_sub_exp(log_a, log_b), such as the logarithms of two "
    "CDFs. log(1 - sigmoid(x)) is tfsafe.ops.log_sigmoid(-x), and log(1 - exp(x)) is "
    "tfsafe.ops.log1mexp(x). Where they are truly equal, the logarithm is infinite; "
    "a bound keeps it finite: tf.maximum({0}, {floor})."
)
_COMPLEMENT = "is the logarithm of this difference from 1, which it does not compute."
_NORMAL_TAIL = (
    "1 + erf(x) is 0 in the tail, where the logarithm is finite: "
    "tf.math.log(0.5 * tf.math.erfc(-x)) keeps its digits down to x = -9."
)
_DETERMINANT = (
    "is the logarithm of a determinant that may be too small or too large for the "
    "dtype. That of a singular matrix is -inf: add {shift} to its diagonal."
)
LOG_CUMSUM = (
    "log(cumsum(exp(x))) is tfsafe.ops.cumulative_logsumexp(x), with the arguments of "
    "the cumsum: no argument is too large or too small for it."
)
_PROBABILITY = (
    "the probability is not 0, but too small for the dtype. Take its logarithm from "
    "the logits, before it is picked from, multiplied or summed: "
    "tfsafe.ops.log_softmax(logits), tfsafe.ops.log_sigmoid(logits)."
)
_WEIGHS = (
    "the weight is not 0 there, so the true value is infinite: keep the second "
    "argument above 0. For a cross-entropy, compute from the logits: "
    "tfsafe.losses.StableCrossEntropy."
)
_NEGATIVE = (
    "a logarithm needs positive numbers: find out why the argument is negative. What "
    "a layer predicts is positive with activation='softplus'; logits belong in a loss "
    "of logits, with from_logits=True. If it is a rounding error around 0, bound it "
    "below: tf.maximum({0}, {floor})."
)
_OF_VARIABLE = (
    "this variable is negative: train its logarithm instead, as tf.exp(log_x) is "
    "positive, and log_x its logarithm; or bound it below: tf.maximum({0}, {floor})."
)
_ABOVE_MINUS_ONE = (
    "keep the argument above -1. What a layer predicts is above 0 with "
    "activation='softplus'; what cannot be negative, as a count or a price, may be "
    "bounded below: tf.maximum({0}, 0.0)."
)
_MASK = (
    "the logarithm of a mask is -inf where it is 0, and a row that is masked as a "
    "whole has no softmax: select instead, tf.where(mask, scores, scores.dtype.min), "
    "or take tfsafe.ops.softmax, which is 0 in such a row."
)
_FREQUENCY = (
    "log(0) is infinite. If this is the frequency of something that was never seen, "
    "add 1 to each count before the division; otherwise keep it above 0, as "
    "tf.maximum({0}, {floor}) does. tfsafe.ops.xlogy(weight, {0}) is 0 where the "
    "weight is 0."
)
_OF_SOFTMAX = Fix(
    "Log",
    "tfsafe.ops.log_softmax({of_softmax}{axis})",
    _BY_HAND,
    when="forward",
    is_rewritten=True,
    replaces="first",
    is_read=True,
)
OF_LOGARITHMS = [
    Fix("Log", "", _OF_VARIABLE, "", "ReadVariableOp", "negative"),
    Fix("Log", "", _NEGATIVE, fault="negative"),
    Fix("Log", "", ODDS, "forward", written=_DIFFERENCE_OF_ODDS),
    Fix("Log", "", _ABOVE_ONE, written=_CROSS_ENTROPY, above_one=True),
    *(
        Fix("Log", code, _LOGITS, source=source, is_read=True, is_rewritten=True)
        for source, code in (
            ("Softmax", "tfsafe.ops.log_softmax({inner}{axis})"),
            ("Sigmoid", "tfsafe.ops.log_sigmoid({inner})"),
        )
    ),
    Fix(
        "Log",
        "tfsafe.ops.slogdet({inner})[1]",
        _DETERMINANT,
        source="MatrixDeterminant",
        is_read=True,
    ),
    Fix(
        "Log",
        "tfsafe.ops.xlogy({own_weight}, {0})",
        _ENTROPY,
        when="forward",
        is_read=True,
    ),
    *(
        Fix(
            "Log",
            "",
            f"tfsafe.ops.log_{name}(logits) {_OF_MODEL}",
            source=source,
            is_rewritten=True,
        )
        for source, name in (("Softmax", "softmax"), ("Sigmoid", "sigmoid"))
    ),
    *(
        Fix(
            "Log", code, _COMPLEMENT, zero=CANCELLATION, is_read=True, is_rewritten=True
        )
        for code in (
            "tfsafe.ops.log_sigmoid({complement_of_sigmoid})",
            "tfsafe.ops.log1mexp({complement_of_exp})",
            "2.0 * (math.log(2.0) - {complement_of_tanh} - "
            "tf.nn.softplus(-2.0 * {complement_of_tanh}))",
        )
    ),
    Fix("Log", "tfsafe.ops.log({0})", SLOPE, when="gradient", is_rewritten=True),
    _OF_SOFTMAX._replace(met_next=(PRODUCT_WITH_BOTH,)),
    Fix("Log", "", _HARD, zero="Relu6"),
    Fix("Log", "", RELU, met_next=(PRODUCT_WITH_BOTH,), zero=RECTIFIED),
    Fix("Log", "", _TRULY_INFINITE, met_next=(PRODUCT_WITH_BOTH,)),
    Fix(
        "Log",
        "tfsafe.ops.xlogy({weight}, {0})",
        _WEIGHTED,
        met_next=(PRODUCT_WITH_ZERO,),
        is_rewritten=True,
    ),
    Fix(
        "Log",
        "{expanded}",
        _EXPANDED,
        met_next=("Sub", PRODUCT_WITH_ZERO),
        is_read=True,
    ),
    _OF_SOFTMAX,
    Fix("Log", "", RELU, zero=RECTIFIED),
    *(
        Fix("Log", "", _PROBABILITY, zero=each, is_rewritten=True)
        for each in ("Softmax", "Sigmoid")
    ),
    Fix("Log", "", LOG_CUMSUM, source="Cumsum", zero="Exp"),
    Fix("Log", "", _UNDERFLOW, zero=UNDERFLOW),
    Fix(
        "Log",
        "",
        _NORMAL_TAIL,
        zero=CANCELLATION,
        written=r"\berf\(",
        is_rewritten=True,
    ),
    Fix("Log", "", _EQUAL, zero=CANCELLATION),
    Fix("Log", "", ODDS, source="RealDiv", written=QUOTIENT_OF_ODDS),
    Fix("Log", "", _FREQUENCY, source="RealDiv"),
    Fix("Log", "", _MASK, source="Cast", written=r"mask|pad"),
    Fix("Log", "", _AMOUNT, above_one=True),
    Fix("Log", "", _INFINITE),
    Fix("Log1p", "tfsafe.ops.log1p({0})", SLOPE, when="gradient"),
    Fix("Log1p", "", _ABOVE_MINUS_ONE),
    Fix("Xlogy", "", _NEGATIVE.replace("{0}", "{1}"), fault="negative"),
    Fix("Xlogy", "tfsafe.ops.xlogy({0}, {1})", SLOPE, when="gradient"),
    Fix("Xlogy", "", _WEIGHS),
    Fix("Xlog1py", "", _ABOVE_MINUS_ONE.replace("{0}", "{1}")),
]
