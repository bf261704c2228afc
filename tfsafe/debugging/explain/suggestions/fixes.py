"""Holds the fixes: for which failure, the code to write, and what it does."""

from tfsafe._report.text import capital
from tfsafe.debugging.explain.causes import OF_FILES, OF_RECORDS, OF_TABLES, OF_TEXT
from tfsafe.debugging.explain.suggestions.fix import Fix
from tfsafe.debugging.explain.suggestions.formula_fixes import OF_FORMULAS
from tfsafe.debugging.explain.suggestions.logarithm_fixes import (
    ODDS,
    OF_LOGARITHMS,
    QUOTIENT_OF_ODDS,
    RELU,
    SLOPE,
)
from tfsafe.debugging.explain.suggestions.refusal_fixes import OF_REFUSALS
from tfsafe.debugging.tracing.lost_digits import (
    CANCELLATION,
    DRAWN,
    INTEGER_DRAWS,
    RECTIFIED,
    UNDERFLOW,
)

_DIVIDE = "tfsafe.ops.divide({0}, {1})"
_QUOTIENT = "returns 0, with gradient 0, where the denominator is 0."
_QUOTIENT_BY_RELU = (
    f"{_QUOTIENT} If that is a scale or a rate that a layer predicts, "
    "activation='softplus' is above 0 where a ReLU is not."
)
_QUOTIENT_BY_VARIABLE = (
    f"{_QUOTIENT} The denominator is a variable that is 0: if it starts there, as with "
    "initializer='zeros', begin with 'ones', or it stays there."
)
_EMPTY_ROW = (
    "an empty row has no mean. tfsafe.ops.divide(tf.reduce_sum(rows, axis=1), "
    "tf.cast(rows.row_lengths(), rows.dtype)) is 0 there."
)
_INVERSE = "returns 0, with gradient 0, where the argument is 0."
_PROBABILITIES = (
    "the probability below is not 0, but too small for the dtype. Divide in log space: "
    "p / q is tf.exp(log_p - log_q), and its logarithm log_p - log_q, with "
    "tfsafe.ops.log_softmax(logits) or tfsafe.ops.log_sigmoid(logits)."
)
_NEARLY_EQUAL = (
    "the denominator is a difference that the dtype cannot tell from 0. Compute it "
    "another way: 1 - tf.sigmoid(x) is tf.sigmoid(-x), 1 - tf.exp(x) is "
    "-tf.math.expm1(x). Where it is truly 0, tfsafe.ops.divide returns 0."
)
_TINY = (
    "the denominator is too small for this numerator: keep it away from 0, as "
    "tf.maximum({1}, {floor}) does where it is not negative."
)
_ANGLE = "is the angle of the two sides, pi / 2 where the second is 0."
_TOO_SMALL = (
    "the denominator is not 0, but too small for the dtype: bound what it is made of, "
    "such as the argument of an exp, or tf.nn.softplus(x) + {floor}. For a quotient of "
    "exponentials subtract the largest exponent first, as tfsafe.ops.softmax does."
)
LOWEST = (
    "float16 ends at 65504, so that a constant such as -1e9 is infinite. For a mask, "
    "select instead: tf.where(mask, x, x.dtype.min)."
)
_ADDITIVE = (
    "a constant is infinite where the dtype cannot hold it, or where NumPy divided by "
    "0: a class that does not occur has no weight 1 / count, use np.maximum(count, 1). "
    "For a mask, select instead of adding: tf.where(mask, x, x.dtype.min)."
)
_SELECT = (
    "0 times an infinity is NaN. Select instead, with the mask as a bool: tf.where("
    "tf.cast(mask, bool), x, x.dtype.min)."
)
INFINITE_WEIGHT = (
    "a weight is infinite as 1 / 0, that of a class without samples: "
    "1 / np.maximum(count, 1) is finite."
)
_NO_NAN = "tfsafe.ops.multiply_no_nan"
_MASKED = "returns 0 where its second argument is 0, whatever the first is there."
_BESSEL = (
    "tf.math.bessel_i0e and bessel_i1e are scaled by exp(-x): log(bessel_i0(x)) is "
    "log(bessel_i0e(x)) + x, for x above 0."
)
_POLES = "keep the argument above 0, as tf.nn.softplus({0}) + {floor} does."
_RATIO = (
    "tfsafe.ops.divide({0}, {1}) would be 0, whose logarithm is infinite, too. Leave "
    "such elements out, or keep the denominator above 0: tf.math.log({0} / "
    "tf.maximum({1}, {floor})). If it counts something, add 1 to both sides, as an "
    "inverse document frequency does."
)
_TEMPERATURE = (
    "at a temperature of 0 all the probability is the largest one's, while a quotient "
    "of 0 makes all of them equal: keep the denominator above 0, as "
    "tf.maximum({1}, 1e-3) does."
)
_BIAS = (
    "a power is 1 where the exponent is 0: count the steps from 1, as t + 1 does, "
    "before 1 - beta**t corrects the bias of a moving average."
)
_POWER = (
    "keep the base positive: a fractional power of a negative number is not real. What "
    "a layer predicts is positive with activation='softplus'. If it is an error of "
    "rounding around 0, as of an eigenvalue, bound it below: tf.maximum({0}, {floor}). "
    "A root with the sign of its argument, such as a cube root, is tf.sign({0}) * "
    "tfsafe.ops.pow(tf.abs({0}), {1})."
)
_VARIANCE = (
    "replaces negative numbers that are rounding errors around 0. tfsafe.ops.variance "
    "and tfsafe.ops.std never return any."
)
_BY_ROOT = "tfsafe.ops.divide(x, root) is 0 where the root is."
_MEAN = (
    "returns 0, with gradient 0, for an empty set, and sums half precision in float32. "
    "With mask=mask it selects as well; tfsafe.layers.SafeMeanPooling is the layer "
    "built on it."
)
_WEIGHTED_MEAN = (
    "tfsafe.ops.mean(x, mask=weights) returns 0 where the weights sum to 0."
)
_UNIT = (
    "bounds the argument, and has gradient 0 at the bounds, where the true one is "
    "infinite. For the angle between two vectors use tfsafe.ops.angle_between(a, b)."
)
_IN_UNIT = "tf.clip_by_value({0}, -1.0, 1.0)"
_WITHIN_ONE = "tf.clip_by_value({0}, -1.0 + {gap}, 1.0 - {gap})"
_FRACTION = "tf.clip_by_value({0}, {floor}, 1.0 - {gap})"
_INSIDE = "keeps the argument inside of the ends, where the true result is infinite."
_RANKS = "The ranks (k + 0.5) / n never reach them."
_FROM_ONE = (
    "bounds the argument, and has gradient 0 at 1, where the true one is infinite."
)
_ORIGIN = "has gradient 0 at the origin, where the angle is undefined."
_SHIFTED = "tf.linalg.cholesky({0} + {shift} * tf.eye(tf.shape({0})[-1]))"
_DIAGONAL = "add to its diagonal: {0} + {shift} * tf.eye(tf.shape({0})[-1])."
_SEMIDEFINITE = (
    "returns a column of zeros where a pivot is 0. For a determinant, or to solve with "
    f"the matrix, {_DIAGONAL}"
)
_SOLVED = (
    "can be solved with and has a determinant: with a pivot of 0 neither is finite."
)
_INDEFINITE = (
    "find out why the matrix is not positive definite, as a covariance is. If what it "
    f"is made of is rounded, {_DIAGONAL}"
)
_ARC = r"\batan\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*/"
_STEPS = r"[\w.]+(\((?:[^()]|\([^()]*\))*\))?"
_CORRECTION = rf"/ ?\(1(\.0?)? ?- ?([\w.]+ ?\*\* ?{_STEPS}|(tf\.)?pow\([^()]*\))\)"
# Not `x / (1 - a**x)`, which has a limit at 0.
_OF_EXPONENT = (
    r"\b(\w+)\b[^/:=]*/ ?\(1(\.0?)? ?- ?([\w.]+ ?\*\* ?([\w.]+\()*|.*pow\(.*, ?)\1\b"
)
_AVERAGE = rf"^(?!.*{_OF_EXPONENT}).*{_CORRECTION}"
_LARGE = r"\de\+?\d|\d{6}"
CONSTANT = r"cast\(\s*-?\d"
_OUTSIDE = "put @tfsafe.checked on that tf.function to learn the operation inside."

_READ = (
    "a number that is missing there is read as NaN: tfsafe.data.check_finite(data, "
    'policy="drop") removes such rows of a data set, and tf.where(tf.math.is_nan(x), '
    "0.0, x) fills them in."
)
_EARLIER = (
    "read an earlier checkpoint: this one was written after the training had failed."
)
_STORED = (
    "put a finite number there, or select: tf.where(tf.math.is_finite(x), x, 0.0)."
)
_ANY_CLASSES = (
    "number the classes from 0, as np.unique(labels, return_inverse=True)[1] does "
    "whatever they are. If a negative label says that the true one is not known, "
    "ignore it: keras.losses.SparseCategoricalCrossentropy(ignore_class=-1)."
)
_CLASSES = (
    "number the classes from 0, as `y_true - 1` does if they begin at 1, or end the "
    "model in more classes. A `sample_weight` of 0 or `ignore_class` ignores a label."
)
_HALF_EPSILON = (
    "an epsilon below 3e-8 is 0 in float16. If one is added here, compute this part in "
    "float32, or add 1e-4."
)
_DRAWN = (
    "a uniform draw may be 0: draw from above it, as tf.random.uniform(shape, "
    "minval={least}) does."
)
_DRAWN_INTEGER = (
    "integers are drawn from 0 on: draw from 1 on, with minval=1, or add 1 to them."
)
_ZERO_POWER = "returns 0, with gradient 0, where the base is 0."
_BOUNDED = (
    "bound it, if it is a scale, a variance or a rate that the model predicts, or "
    "under a tf.where: tf.exp(tf.minimum({0}, {highest})); and scale the inputs of the "
    "model. If its logarithm is taken later, stay in log space: tfsafe.ops.logsumexp "
    "and tf.nn.softplus need no exp."
)
_WIDER = (
    "compute this part in float32, where exp ends at 88.7 and its sums have room: "
    "tf.exp(tf.cast({0}, tf.float32))."
)
_RATIO_OF_LOGS = (
    "bound this ratio: tf.exp(tf.clip_by_value({0}, -{highest}, {highest})). One so "
    "far from 1 says that the two logarithms are not of the same thing: look at how "
    "each is made."
)
_LOG_LATER = (
    "its logarithm is taken later, so stay in log space and take no exp: that of a sum "
    "is tfsafe.ops.logsumexp(x, axis), and of a quotient the difference of two."
)
_LOG_SPACE = (
    "stay in log space: tfsafe.ops.softmax, tfsafe.ops.logsumexp, "
    "tfsafe.ops.log_softmax and tf.nn.softplus need no exp."
)
_ACTIVATION = (
    "an exponential activation needs small arguments: scale the inputs of the model, "
    "as keras.layers.Normalization does, or let the layer predict the logarithm. "
    "activation='softplus' is positive too, and does not overflow."
)
_OF_HALF = [
    *(
        Fix(op, "", _HALF_EPSILON, "forward", "AddV2", dtype="float16")
        for op in ("RealDiv", "Reciprocal", "Rsqrt", "Log")
    ),
    # Under a root in the denominator.
    Fix(
        "RealDiv",
        "",
        _HALF_EPSILON,
        "forward",
        dtype="float16",
        written=r"\+ ?1e-0*([89]|[1-9]\d)\b",
    ),
]
_TOO_LARGE = Fix("Cast", "", LOWEST, fault="overflow", dtype="float16")
# The first row that fits counts.
FIXES = [
    *(
        Fix(op, "", words, fault=fault, zero=zero)
        for zero, words in (
            *((each, _DRAWN_INTEGER) for each in sorted(INTEGER_DRAWS)),
            (DRAWN, _DRAWN),
        )
        for op, fault in (
            *(
                (op, "domain")
                for op in ("Div", "Log", "RealDiv", "Reciprocal", "Rsqrt")
            ),
            ("Pow", "zero"),
        )
    ),
    Fix(
        "RealDiv", "", _BIAS, "forward", kind="NaN", zero=CANCELLATION, written=_AVERAGE
    ),
    *OF_FORMULAS,
    *_OF_HALF,
    *(
        Fix("RealDiv", "", _PROBABILITIES, zero=each, is_rewritten=True)
        for each in ("Softmax", "Sigmoid")
    ),
    *(
        Fix(op, "", _TOO_SMALL, "forward", zero=UNDERFLOW)
        for op in ("RealDiv", "Div", "Reciprocal")
    ),
    Fix("RealDiv", "", _TINY, fault="tiny"),
    Fix("RealDiv", "", _BIAS, "forward", zero=CANCELLATION, written=_CORRECTION),
    Fix(
        "RealDiv",
        "",
        ODDS,
        "forward",
        met_next=("Log",),
        written=QUOTIENT_OF_ODDS,
    ),
    Fix(
        "RealDiv",
        "",
        _NEARLY_EQUAL,
        "forward",
        kind="+Inf",
        zero=CANCELLATION,
        written=r"/ ?\(1(\.0?)? ?-",
    ),
    Fix("RealDiv", "tf.atan2({0}, {1})", _ANGLE, written=_ARC),
    Fix("RealDiv", "", _RATIO, "forward", met_next=("Log",)),
    Fix("RealDiv", "", _TEMPERATURE, "forward", met_next=("Softmax",)),
    Fix(
        "RealDiv",
        "",
        _EMPTY_ROW,
        "forward",
        "UnsortedSegmentSum",
        written=r"\breduce_mean\(",
    ),
    Fix("RealDiv", "", _WEIGHTED_MEAN, "forward", written=r"^[^/]*\baverage\([^/]*$"),
    Fix("RealDiv", _DIVIDE, _QUOTIENT_BY_RELU, zero=RECTIFIED),
    Fix("RealDiv", _DIVIDE, _QUOTIENT_BY_VARIABLE, last="ReadVariableOp"),
    *(Fix(op, _DIVIDE, _QUOTIENT) for op in ("RealDiv", "Div", "Xdivy")),
    *(Fix(op, "tfsafe.ops.reciprocal({0})", _INVERSE) for op in ("Reciprocal", "Inv")),
    Fix("Rsqrt", "tfsafe.ops.rsqrt(tf.nn.relu({0}))", _VARIANCE, fault="negative"),
    Fix("Rsqrt", "tfsafe.ops.rsqrt({0})", _INVERSE),
    *OF_LOGARITHMS,
    Fix("Sqrt", "tfsafe.ops.sqrt({0})", SLOPE, when="gradient", is_rewritten=True),
    Fix("Sqrt", "tfsafe.ops.sqrt(tf.nn.relu({0}))", f"{_VARIANCE} {_BY_ROOT}"),
    Fix("EuclideanNorm", "tfsafe.ops.norm({0}, axis=-1)", SLOPE, fault=""),
    # Of a line that calls a model or a layer.
    Fix("Exp", "", _ACTIVATION, "forward", fault="overflow", written="^(?!.*exp)."),
    Fix("Exp", "", _LOG_LATER, fault="overflow", written=r"\bexp\(", met_later="Log"),
    *(
        Fix(
            "Exp",
            "",
            words,
            "forward",
            source,
            "overflow",
            dtype=dtype,
            written=written,
        )
        for dtype, bounded in (
            ("float16", f"{_WIDER} {capital(_BOUNDED)}"),
            ("", _BOUNDED),
        )
        for source, words, written in (
            ("Sub", _RATIO_OF_LOGS, r"\bexp\(.*log"),
            ("", bounded, r"\bexp\("),
        )
    ),
    Fix("Exp", "", _LOG_SPACE, fault="", is_rewritten=True),
    Fix("Expm1", "", _LOG_SPACE, fault=""),
    Fix("Pow", "tfsafe.ops.pow({0}, {1})", SLOPE, when="gradient"),
    Fix("Pow", "tfsafe.ops.pow({0}, {1})", SLOPE, when="gradient", fault="zero"),
    Fix(
        "Pow",
        "tfsafe.ops.pow(tfsafe.ops.reciprocal({0}), -({1}))",
        _ZERO_POWER,
        fault="zero",
    ),
    Fix("Pow", "", _POWER),
    *(
        Fix(op, "", _BESSEL, fault="overflow", is_rewritten=True)
        for op in ("BesselI0", "BesselI1")
    ),
    *(
        Fix(op, "", words, zero=zero)
        for zero, words in ((RECTIFIED, RELU), ("", _POLES))
        for op in ("Digamma", "Lgamma")
    ),
    _TOO_LARGE._replace(source="Const"),
    _TOO_LARGE._replace(written=CONSTANT),
    _TOO_LARGE._replace(kind="-Inf", met_later="Softmax"),
    Fix("Asin", "tfsafe.ops.asin({0})", SLOPE, when="gradient"),
    Fix("Asin", f"tfsafe.ops.asin({_IN_UNIT})", _UNIT),
    Fix("Acos", "tfsafe.ops.acos({0})", SLOPE, when="gradient"),
    Fix("Acos", f"tfsafe.ops.acos({_IN_UNIT})", _UNIT),
    Fix("Acosh", "tfsafe.ops.acosh({0})", SLOPE, when="gradient"),
    Fix("Acosh", "tfsafe.ops.acosh(tf.maximum({0}, 1.0))", _FROM_ONE),
    Fix("Atan2", "tfsafe.ops.atan2({0}, {1})", _ORIGIN, fault=""),
    Fix("Atanh", "tfsafe.ops.atanh({0})", SLOPE, when="gradient"),
    Fix("Atanh", f"tf.atanh({_WITHIN_ONE})", _INSIDE),
    Fix("Erfinv", f"tf.math.erfinv({_WITHIN_ONE})", f"{_INSIDE} {_RANKS}"),
    Fix("Ndtri", f"tf.math.ndtri({_FRACTION})", f"{_INSIDE} {_RANKS}"),
    Fix("Cholesky", "", _INDEFINITE, fault="negative"),
    *(
        Fix("Cholesky", _SHIFTED, _SOLVED, met_next=(each,), replaces="first")
        for each in ("MatrixTriangularSolve", "MatrixDiagPartV3")
    ),
    Fix("Cholesky", "tfsafe.ops.cholesky({0})", _SEMIDEFINITE, fault=""),
    *(
        Fix(op, "", _ANY_CLASSES, fault="negative label")
        for op in ("FloorMod", "SparseSoftmaxCrossEntropyWithLogits")
    ),
    *(Fix(op, "", _READ, fault="text") for op in (*OF_TEXT, *OF_RECORDS)),
    *(Fix(op, "", _STORED, fault="text") for op in OF_TABLES),
    *(Fix(op, "", _EARLIER, fault="text") for op in OF_FILES),
    Fix("FloorMod", "", _CLASSES, fault="label"),
    *OF_REFUSALS,
    Fix("Mean", "tfsafe.ops.mean({0}{rest})", _MEAN),
    Fix("Max", "", "give the empty set a value of its own before the reduction."),
    Fix("Min", "", "give the empty set a value of its own before the reduction."),
    Fix(
        "Softmax",
        "tfsafe.ops.softmax({0}{axis})",
        "returns 0, not NaN, in a fully masked row, with gradient 0.",
    ),
    Fix(
        "LogSoftmax",
        "tfsafe.ops.log_softmax({0}{axis})",
        "returns -inf, not NaN, in a fully masked row, with gradient 0.",
    ),
    *(
        row
        for pair, fault in (("{0}, {1}", "domain"), ("{1}, {0}", "zero first"))
        for row in (
            Fix("Mul", "", _SELECT, fault=fault, written=r"\binf(inity)?\b"),
            Fix("Mul", "", INFINITE_WEIGHT, fault="weight"),
            Fix("Mul", "", LOWEST, "", "Const", fault, dtype="float16", written=_LARGE),
            Fix("Mul", "", _ADDITIVE, source="Const", fault=fault),
            Fix("Mul", f"{_NO_NAN}({pair})", _MASKED, "forward", fault=fault),
            # The order of a slope's factors is not that of the line.
            Fix("Mul", "", f"{_NO_NAN}(x, mask) {_MASKED}", "gradient", fault=fault),
        )
    ),
    Fix("StatefulPartitionedCall", "", _OUTSIDE, fault=""),
]
