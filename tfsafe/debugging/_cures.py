"""What to write instead: one row a cure, and the user's own names put into it."""

import ast
from typing import NamedTuple


class Cure(NamedTuple):
    """One row: for which failure, the line to paste, and what it does.

    Attributes:
      op: Type of the operation, the forward one for a gradient.
      source: Type of the operation that made its first input; empty for any.
      when: `"forward"`, `"gradient"`, or empty for both.
      paste: The line, with `{0}`, `{1}` for the arguments; empty where there is none.
      words: What it does, or what to change.
    """

    op: str
    source: str
    when: str
    paste: str
    words: str


_SLOPE = "has the same values, and slope 0 where the true slope is infinite."

CURES = [
    Cure(
        "StatefulPartitionedCall",
        "",
        "",
        "",
        "put @tfsafe.checked on that tf.function; it then names the operation inside.",
    ),
    Cure(
        "RealDiv",
        "",
        "",
        "tfsafe.ops.divide({0}, {1})",
        "is 0 where the denominator is 0, and so is its gradient.",
    ),
    Cure(
        "Xdivy",
        "",
        "",
        "tfsafe.ops.divide({0}, {1})",
        "is 0 where the denominator is 0, and so is its gradient.",
    ),
    Cure(
        "Log",
        "Softmax",
        "",
        "tfsafe.ops.log_softmax({inner})",
        "takes the logits and never sees a probability of 0; "
        "tfsafe.losses.StableCrossEntropy is the loss built on it.",
    ),
    Cure(
        "Log",
        "Sigmoid",
        "",
        "tfsafe.ops.log_sigmoid({inner})",
        "takes the logits and never sees a probability of 0; "
        "tfsafe.losses.StableCrossEntropy is the loss built on it.",
    ),
    Cure("Log", "", "gradient", "tfsafe.ops.log({0})", _SLOPE),
    Cure(
        "Log",
        "",
        "forward",
        "tfsafe.ops.xlogy(weight, {0})",
        "is weight * log, and 0 where the weight is 0. For a cross-entropy take "
        "tfsafe.losses.StableCrossEntropy; log of a negative number has no cure but "
        "the right input.",
    ),
    Cure(
        "Log1p",
        "Exp",
        "",
        "tf.nn.softplus({inner})",
        "is log(1 + exp(x)) without the overflow.",
    ),
    Cure("Log1p", "", "", "", "keep the argument above -1."),
    Cure(
        "Xlogy",
        "",
        "",
        "tfsafe.ops.xlogy({0}, {1})",
        "is 0 where the first argument is 0, and so is its gradient in the second.",
    ),
    Cure(
        "Sqrt",
        "Sum",
        "",
        "tfsafe.ops.norm(x, axis=-1)",
        "is the root of the sum of squares, with slope 0 at 0 and no overflow.",
    ),
    Cure("Sqrt", "", "gradient", "tfsafe.ops.sqrt({0})", _SLOPE),
    Cure(
        "Sqrt",
        "",
        "forward",
        "tfsafe.ops.sqrt(tf.nn.relu({0}))",
        "if the negative numbers are rounding errors around 0; a variance is best "
        "taken as tf.math.reduce_variance.",
    ),
    Cure(
        "Rsqrt",
        "",
        "",
        "tfsafe.ops.divide(1.0, tfsafe.ops.sqrt({0}))",
        "is 0 where the argument is 0, and so is its gradient.",
    ),
    Cure(
        "Reciprocal",
        "",
        "",
        "tfsafe.ops.divide(1.0, {0})",
        "is 0 where the argument is 0, and so is its gradient.",
    ),
    Cure(
        "EuclideanNorm",
        "",
        "",
        "tfsafe.ops.norm({0}, axis=-1)",
        "has slope 0 at 0 and no overflow.",
    ),
    Cure(
        "Exp",
        "",
        "",
        "",
        "stay in log space: tfsafe.ops.logsumexp, tfsafe.ops.log_softmax and "
        "tf.nn.softplus need no exp; under a tf.where, bound the argument first: "
        "tf.exp(tf.minimum(x, bound)).",
    ),
    Cure(
        "Pow",
        "",
        "",
        "",
        "for a power of 1/2 write tfsafe.ops.sqrt(x); otherwise keep the base "
        "positive, for instance with tf.maximum(x, smallest).",
    ),
    Cure("Asin", "", "", "", "bound the argument: tf.clip_by_value(x, -1.0, 1.0)."),
    Cure("Acos", "", "", "", "bound the argument: tf.clip_by_value(x, -1.0, 1.0)."),
    Cure("Acosh", "", "", "", "bound the argument: tf.maximum(x, 1.0)."),
    Cure("Atanh", "", "", "", "keep the argument inside (-1, 1)."),
    Cure(
        "Mean",
        "",
        "",
        "tfsafe.ops.masked_mean(x, mask)",
        "is 0 where the mask leaves nothing, and sums half precision in float32; "
        "tfsafe.layers.SafeMeanPooling is the layer built on it.",
    ),
    Cure(
        "Softmax",
        "",
        "",
        "tf.nn.softmax(tf.where(mask, logits, -1e9))",
        "is an even distribution where a row is masked as a whole.",
    ),
    Cure(
        "LogSoftmax",
        "",
        "",
        "tfsafe.ops.log_softmax({0})",
        "keeps the gradient finite beside a logit of -inf.",
    ),
    Cure(
        "Mul",
        "",
        "",
        "tf.math.multiply_no_nan(x, mask)",
        "is 0 where the mask is 0, whatever x is there.",
    ),
    Cure(
        "Cast",
        "",
        "",
        "",
        "compute this part in float32, for instance with dtype='float32' on its layer.",
    ),
]

# What is left when an update or an overflow has no row of its own.
_OVERFLOW = (
    "scale the inputs down, lower the learning rate or clip the gradients; "
    "tfsafe.optimizers.SafeOptimizer(optimizer) keeps one such step from reaching the "
    "weights."
)


def cure_of(
    op_type: str, *, is_gradient: bool, producers: list[str], source: str
) -> tuple[str, str]:
    """Returns the line to paste and what it does.

    Args:
      op_type: Type of the operation, the forward one for a gradient.
      is_gradient: Whether the backward pass failed.
      producers: Types of the operations that made the inputs.
      source: The user's line, whose names are put into the row.

    Returns:
      The line, empty where there is none, and the words.
    """
    when = "gradient" if is_gradient else "forward"
    for cure in CURES:
        if (
            cure.op == op_type
            and cure.when in {"", when}
            and (not cure.source or cure.source in producers)
        ):
            return _filled(cure, source), cure.words
    return "", _OVERFLOW


# How the operations are written in Python: as an operator or as a function.
_OPERATORS = {"RealDiv": ast.Div, "Mul": ast.Mult, "Pow": ast.Pow}
_FUNCTIONS = {
    "EuclideanNorm": {"norm", "reduce_euclidean_norm"},
    "Exp": {"exp"},
    "Log": {"log"},
    "Log1p": {"log1p"},
    "LogSoftmax": {"log_softmax"},
    "RealDiv": {"divide", "truediv", "true_divide"},
    "Reciprocal": {"reciprocal"},
    "Rsqrt": {"rsqrt"},
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
    except SyntaxError:
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
