"""What to write instead: one row a cure, and the user's own names put into it."""

import ast
from typing import NamedTuple


class Failure(NamedTuple):
    """What a cure is chosen by.

    Attributes:
      op: Type of the operation, the forward one for a gradient.
      fault: Kind of the fault, see `_rules.Rule`.
      is_gradient: Whether the backward pass failed.
      dtype: Name of the dtype of the bad output.
      producers: Types of the operations that made the inputs.
      source: The user's line, whose names are put into the cure.
    """

    op: str
    fault: str
    is_gradient: bool
    dtype: str
    producers: list[str]
    source: str


class Cure(NamedTuple):
    """One row: for which failure, the line to paste, and what it does.

    Attributes:
      op: Type of the operation, the forward one for a gradient.
      paste: The line, with `{0}`, `{1}` for the arguments; empty where there is none.
      words: What it does, or what to change.
      when: `"forward"`, `"gradient"`, or empty for both.
      source: Type of the operation that made an input; empty for any.
      fault: Kind of the fault; empty for any.
    """

    op: str
    paste: str
    words: str
    when: str = ""
    source: str = ""
    fault: str = "domain"


_SLOPE = "has the same values, and slope 0 where the true slope is infinite."
_QUOTIENT = "is 0 where the denominator is 0, and so is its gradient."
_INVERSE = "is 0 where the argument is 0, and so is its gradient."
_LOGITS = (
    "takes the logits and never sees a probability of 0; "
    "tfsafe.losses.StableCrossEntropy is the loss built on it."
)
_WEIGHTED = (
    "is weight * log, and 0 where the weight is 0. For a cross-entropy take "
    "tfsafe.losses.StableCrossEntropy; log of a negative number has no cure but the "
    "right input."
)
_LOG_SPACE = (
    "stay in log space: tfsafe.ops.logsumexp, tfsafe.ops.log_softmax and "
    "tf.nn.softplus need no exp; under a tf.where, bound the argument first: "
    "tf.exp(tf.minimum(x, bound))."
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
CURES = [
    Cure("RealDiv", "tfsafe.ops.divide({0}, {1})", _QUOTIENT),
    Cure("Div", "tfsafe.ops.divide({0}, {1})", _QUOTIENT),
    Cure("Xdivy", "tfsafe.ops.divide({0}, {1})", _QUOTIENT),
    Cure("Reciprocal", "tfsafe.ops.reciprocal({0})", _INVERSE),
    Cure("Inv", "tfsafe.ops.reciprocal({0})", _INVERSE),
    Cure("Rsqrt", "tfsafe.ops.rsqrt({0})", _INVERSE),
    Cure("Log", "tfsafe.ops.log_softmax({inner})", _LOGITS, source="Softmax"),
    Cure("Log", "tfsafe.ops.log_sigmoid({inner})", _LOGITS, source="Sigmoid"),
    Cure("Log", "tfsafe.ops.log({0})", _SLOPE, when="gradient"),
    Cure("Log", "tfsafe.ops.xlogy(weight, {0})", _WEIGHTED),
    Cure("Log1p", "", "keep the argument above -1."),
    Cure("Xlogy", "tfsafe.ops.xlogy({0}, {1})", "is 0 where the first argument is 0."),
    Cure("Xlog1py", "", "keep the second argument above -1."),
    Cure("Sqrt", "tfsafe.ops.sqrt({0})", _SLOPE, when="gradient"),
    Cure("Sqrt", "tfsafe.ops.sqrt(tf.nn.relu({0}))", _VARIANCE),
    Cure("EuclideanNorm", "tfsafe.ops.norm({0}, axis=-1)", _SLOPE, fault=""),
    Cure("Exp", "", _LOG_SPACE, fault=""),
    Cure("Expm1", "", _LOG_SPACE, fault=""),
    Cure("Pow", "tfsafe.ops.pow({0}, {1})", _SLOPE, when="gradient"),
    Cure("Pow", "", _POWER),
    Cure("Asin", "tfsafe.ops.asin({0})", _SLOPE, when="gradient"),
    Cure("Asin", "", _UNIT),
    Cure("Acos", "tfsafe.ops.acos({0})", _SLOPE, when="gradient"),
    Cure("Acos", "", _UNIT),
    Cure("Acosh", "tfsafe.ops.acosh({0})", _SLOPE, when="gradient"),
    Cure("Acosh", "", "bound the argument: tf.maximum(x, 1.0)."),
    Cure("Atan2", "tfsafe.ops.atan2({0}, {1})", _ORIGIN, fault=""),
    Cure("Atanh", "tfsafe.ops.atanh({0})", _SLOPE, when="gradient"),
    Cure("Atanh", "", "keep the argument inside (-1, 1)."),
    Cure("Cholesky", "tfsafe.ops.cholesky({0})", _SEMIDEFINITE, fault=""),
    Cure("Mean", "tfsafe.ops.masked_mean(x, mask)", _MEAN),
    Cure("Max", "", "give the empty set a value of its own before the reduction."),
    Cure("Min", "", "give the empty set a value of its own before the reduction."),
    Cure(
        "Softmax",
        "tfsafe.ops.softmax({0})",
        "is 0, not NaN, in a row that is masked as a whole, with gradient 0.",
    ),
    Cure(
        "LogSoftmax",
        "tfsafe.ops.log_softmax({0})",
        "is -inf, not NaN, in a row that is masked as a whole, with gradient 0.",
    ),
    Cure(
        "Mul",
        "tf.math.multiply_no_nan(x, mask)",
        "is 0 where the mask is 0, whatever x is there.",
    ),
    Cure("StatefulPartitionedCall", "", _OUTSIDE, fault=""),
]


def cure_of(failure: Failure) -> tuple[str, str]:
    """Returns the line to paste, empty where there is none, and what it does."""
    when = "gradient" if failure.is_gradient else "forward"
    for cure in CURES:
        if (
            cure.op == failure.op
            and cure.when in {"", when}
            and cure.fault in {"", failure.fault}
            and (not cure.source or cure.source in failure.producers)
        ):
            return _filled(cure, failure.source), cure.words
    if failure.fault == "constant":
        return "", ""
    if failure.fault != "overflow":
        return "", _SKIP
    return "", _FLOAT32 if failure.dtype in {"float16", "bfloat16"} else _SCALE


# How the operations are written in Python: as an operator or as a function.
_OPERATORS = {"Div": ast.Div, "Pow": ast.Pow, "RealDiv": ast.Div}
_FUNCTIONS = {
    "Acos": {"acos", "arccos"},
    "Acosh": {"acosh", "arccosh"},
    "Asin": {"asin", "arcsin"},
    "Atan2": {"atan2", "arctan2"},
    "Atanh": {"atanh", "arctanh"},
    "Cholesky": {"cholesky"},
    "EuclideanNorm": {"norm", "reduce_euclidean_norm"},
    "Log": {"log"},
    "LogSoftmax": {"log_softmax"},
    "Div": {"divide", "truediv", "true_divide"},
    "Inv": {"reciprocal"},
    "Pow": {"pow", "power"},
    "RealDiv": {"divide", "truediv", "true_divide"},
    "Reciprocal": {"reciprocal"},
    "Rsqrt": {"rsqrt"},
    "Softmax": {"softmax"},
    "Sqrt": {"sqrt"},
    "Xdivy": {"xdivy"},
    "Xlogy": {"xlogy"},
}


def _filled(cure: Cure, source: str) -> str:
    """Puts the user's own expressions into the line, where they can be read off."""
    if "{" not in cure.paste:
        return cure.paste
    found = _arguments(cure.op, source)
    # Two places in one line: which of them it was is not known.
    arguments = found[0] if len(found) == 1 else [ast.Name(name) for name in "xy"]
    texts = [ast.unparse(each) for each in arguments]
    texts += ["x", "y"][len(texts) :]
    first = arguments[0]
    inner = first.args[0] if isinstance(first, ast.Call) and first.args else None
    return cure.paste.format(*texts, inner=ast.unparse(inner) if inner else "logits")


def _arguments(op_type: str, source: str) -> list[list[ast.expr]]:
    try:
        # The head of a block, `if a / b > c:`, needs something under it.
        tree = ast.parse(f"{source} pass" if source.endswith(":") else source)
    # A line may be a part of a statement. And Python 3.11 before 3.11.5 fails when
    # two threads parse at once (CPython issue 106905).
    except (SyntaxError, SystemError):
        return []
    found: list[list[ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, _OPERATORS.get(op_type, ast.MatMult)):
                found.append([node.left, node.right])
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _FUNCTIONS.get(op_type, ()):
                found.append(list(node.args))
    return found
