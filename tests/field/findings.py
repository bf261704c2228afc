"""Runs the programs of `broken/` under the checks, as they are and mended as suggested.

    python -m tests.field.findings        all programs
    python -m tests.field.findings kl     these programs

The line that must be named is the one that ends in `# here`.
"""

import pathlib
import sys
import tempfile
from collections.abc import Sequence

from tests.field import ways

BROKEN = pathlib.Path(__file__).resolve().parent / "broken"

# Operation, cause and fix, as in the explanation with its line breaks removed.
_ZERO = "zero in the denominator"
_DIVIDE = "returns 0, with gradient 0, where the denominator is 0."
EXPECTED = {
    "accuracy": ("RealDiv", _ZERO, _DIVIDE),
    "angle": ("Acos", "acos of 1 number outside [-1, 1].", "tfsafe.ops.angle_between"),
    "by_hand": (
        "Pow",
        "The learning rate of the update in line 20 is 0.03.",
        "lower the learning rate",
    ),
    "capped": ("RealDiv", _ZERO, "5.0 / tf.maximum(snr, 5.0)"),
    "constant_column": ("RealDiv", _ZERO, _DIVIDE),
    "cosine": ("RealDiv", _ZERO, _DIVIDE),
    "debias": (
        "RealDiv",
        _ZERO,
        "count the steps from 1, as t + 1 does, before 1 - beta**t corrects the bias",
    ),
    "decoding": (
        "RealDiv",
        "`ArgMax` at decoding.py:12 makes an integer of it, which hides it.",
        "tfsafe.ops.divide(counts[token], tf.reduce_sum(counts[token]))",
    ),
    "density": (
        "Cholesky",
        "the matrix is singular.",
        "tf.linalg.cholesky(covariance + 1e-3 * tf.eye(tf.shape(covariance)[-1]))",
    ),
    "eager_measure": ("Log", "log of 1 zero (at (1,)).", "tf.maximum(1.0 - scores,"),
    "cube_root": (
        "Pow",
        "the negative number -2 to the power 0.3333",
        "tf.sign(volume) * tfsafe.ops.pow(tf.abs(volume), 1 / 3)",
    ),
    "empty_text": ("RealDiv", _ZERO, _DIVIDE),
    "epsilon_removed": ("RealDiv", _ZERO, _DIVIDE),
    "expired": ("RealDiv", _ZERO, _DIVIDE),
    "gamma": (
        "Pow",
        "to the power 0.4545, which is not a whole number",
        "data: element 0 of the data of `Dataset.map`",
    ),
    "gumbel": (
        "Log",
        "The 0 comes from `RandomUniform` at gumbel.py:11, which may draw it.",
        "tf.random.uniform(shape, minval=1e-4)",
    ),
    "half_overflow": (
        "Mul",
        "the product overflows float16 above 6.55e+04; the inputs reach 300.",
        "compute this part in float32",
    ),
    "identical_pair": (
        "SqrtGrad",
        "the slope of sqrt is infinite at 0",
        "tfsafe.ops.sqrt(tf.reduce_sum(((a - b) * w) ** 2))",
    ),
    "incomes": (
        "Square",
        "the square overflows float32",
        "e+13: divide it by a number of that size first.",
    ),
    "kl": ("Log", "log of 1 zero (at (0,)).", "tfsafe.ops.xlogy(p, p / q)"),
    "label_odds": (
        "Log",
        "log of 1 zero (at (1, 0)).",
        "tf.clip_by_value(p, 1e-6, 1 - 1e-6)",
    ),
    "label_outside": (
        "SparseSoftmaxCrossEntropyWithLogits",
        "a label value of 4 is outside the valid range of [0, 4) (the first at (3,)).",
        "as `labels - 1` does",
    ),
    "likelihood": ("RealDiv", _ZERO, "bound what it is made of"),
    "log_epsilon": (
        "Exp",
        "exp overflows float32 above 88.72",
        "tfsafe.ops.log_add_exp(rate, math.log(1e-06))",
    ),
    "log_sum": ("Log", "log of 1 zero.", "tfsafe.ops.logsumexp"),
    "logits": ("Log", "negative numbers (the first at", "with from_logits=True"),
    "lost_loss": ("Log", "log of 1 negative number.", "train its logarithm instead"),
    "missing_number": (
        "DecodeCSV",
        "the text '41,NaN,1' holds it.",
        'tfsafe.data.check_finite(data, policy="drop")',
    ),
    "negative_decay": (
        "RealDiv",
        _ZERO,
        "this learning rate was 0.05 at step 0 and is inf now: its schedule divides",
    ),
    "negative_variance": ("Sqrt", "sqrt of 1", "tfsafe.ops."),
    "odds": (
        "RealDiv",
        _ZERO,
        "keep p away from both before, as tf.clip_by_value(p, 1e-6, 1 - 1e-6) does",
    ),
    "outlier": (
        "Log",
        "The 0 comes from `Exp` at outlier.py:10, which underflows.",
        "tfsafe.ops.logsumexp(log_p, axis=1)",
    ),
    "padded_row": (
        "Softmax",
        "1 row of only -inf (at (1,)).",
        "tfsafe.ops.softmax(tf.where(mask, scores, -float('inf')))",
    ),
    "policy_ratio": (
        "Exp",
        "the largest input is 399.8",
        "tf.exp(tf.clip_by_value(log_new - log_old, -20.0, 20.0))",
    ),
    "position_table": ("RealDiv", _ZERO, "tfsafe.ops.divide(position, rate)"),
    "power": ("Pow", "0 to the power -0.5 is infinite", "tfsafe.ops.pow(w, 0.5)"),
    "probability": ("Log", "log of 1 zero (at (0,)).", "log_sigmoid(-logits)"),
    "radial": (
        "RealDiv",
        "The 0 comes from `Exp` at radial.py:13, which underflows.",
        "tfsafe.ops.softmax(-distance, axis=1)",
    ),
    "rate": ("Exp", "The weights grew", "lower the learning rate 100 first"),
    "recurrence": (
        "MatMul",
        "a sum of products overflows float32 above 3.403e+38",
        "after 39 iterations of the loop: bound what it carries, by tanh",
    ),
    "risks": (
        "Exp",
        "exp overflows float32 above 88.72",
        "is tfsafe.ops.cumulative_logsumexp(x), with the arguments of the cumsum",
    ),
    "rotation": (
        "Acos",
        "acos of 1 number outside [-1, 1] (at (1,)).",
        "tfsafe.ops.acos(tf.clip_by_value(cosine, -1.0, 1.0))",
    ),
    "sampling": (
        "Exp",
        "the largest input is 100",
        "tfsafe.ops.softmax(scaled, axis=-1)",
    ),
    "schedule_end": (
        "Pow",
        "the negative number -0.1667 to the power 0.9",
        "its schedule goes on after its last step. Hold it there, as "
        "tf.minimum(step, last_step) does",
    ),
    "signed_error": (
        "Log",
        "log of 1 negative number (at (1,)).",
        "tf.maximum(1.0 - 2.0 * error, 1e-6)",
    ),
    "silence": ("Log", "log of 35 zeros", "keep the argument above 0"),
    "singular": ("Cholesky", "the matrix is singular.", "tfsafe.ops.cholesky(k)"),
    "soft_targets": (
        "Log",
        "log of 4 zeros (the first at (0, 1)).",
        "tfsafe.ops.xlogy(p, p) - p * log_q",
    ),
    "softmax_by_hand": (
        "Exp",
        "exp overflows float32",
        "tfsafe.ops.softmax(x, axis=-1)",
    ),
    "squashed": (
        "Log",
        "which subtracts equal numbers.",
        "2.0 * (math.log(2.0) - u - tf.nn.softplus(-2.0 * u))",
    ),
    "temperature": ("RealDiv", _ZERO, "as tf.maximum(temperature, 1e-3) does"),
    "unlabelled": (
        "SparseSoftmaxCrossEntropyWithLogits",
        "a label value of -1 is outside the valid range of [0, 2)",
        "np.unique(labels, return_inverse=True)[1]",
    ),
    "unseen": (
        "Log",
        "log of 2 zeros (the first at (0, 2)).",
        "add 1 to each count before the division",
    ),
    "volume": ("Log", "log of 1 zero.", "tfsafe.ops.slogdet(covariance)[1]"),
    "whitening": (
        "Pow",
        "to the power -0.5, which is not a whole number",
        "bound it below: tf.maximum(values, 1e-6)",
    ),
    "warmup": (
        "RealDiv",
        _ZERO,
        "divided by at 1 or more, as max(warmup_steps, 1) does",
    ),
}
# What the finding suggests, and what it takes the place of.
MENDED = {
    "accuracy": (
        "tf.reduce_sum(right) / tf.cast(tf.size(right), tf.float32)",
        "tfsafe.ops.divide(tf.reduce_sum(right), tf.cast(tf.size(right), tf.float32))",
    ),
    "angle": (
        "tf.acos(tf.reduce_sum(a * b) * 1.000001)",
        "tfsafe.ops.angle_between(a, b)",
    ),
    "by_hand": ("rate = 0.03", "rate = 1e-4"),
    "capped": ("tf.minimum(snr, 5.0) / snr", "5.0 / tf.maximum(snr, 5.0)"),
    "constant_column": (
        "(x - mean) / tf.sqrt(variance)",
        "tfsafe.ops.divide(x - mean, tfsafe.ops.sqrt(variance))",
    ),
    "cosine": (
        "tf.reduce_sum(a * b) / (tf.norm(a) * tf.norm(b))",
        "tfsafe.ops.divide(tf.reduce_sum(a * b), "
        "tfsafe.ops.norm(a) * tfsafe.ops.norm(b))",
    ),
    "debias": (
        "slow = corrected()",
        "count.assign_add(1.0)\n    slow = corrected()",
    ),
    "decoding": (
        "counts[token] / tf.reduce_sum(counts[token])",
        "tfsafe.ops.divide(counts[token], tf.reduce_sum(counts[token]))",
    ),
    "density": (
        "tf.linalg.cholesky(covariance)",
        "tf.linalg.cholesky(covariance + 1e-3 * tf.eye(tf.shape(covariance)[-1]))",
    ),
    "eager_measure": ("1.0 - scores", "tf.maximum(1.0 - scores, 1e-6)"),
    "cube_root": (
        "volume ** (1 / 3)",
        "tf.sign(volume) * tfsafe.ops.pow(tf.abs(volume), 1 / 3)",
    ),
    "empty_text": (
        "total / tf.reduce_sum(mask, axis=1)",
        "tfsafe.ops.divide(total, tf.reduce_sum(mask, axis=1))",
    ),
    "epsilon_removed": (
        "x / tf.norm(x, axis=1, keepdims=True)",
        "tfsafe.ops.divide(x, tfsafe.ops.norm(x, axis=1, keepdims=True))",
    ),
    "expired": (
        "(log_ratio + (drift + 0.5 * volatility**2) * time) / (\n"
        "        volatility * tf.sqrt(time)  # here\n    )",
        "tfsafe.ops.divide(log_ratio + (drift + 0.5 * volatility**2) * time, "
        "volatility * tfsafe.ops.sqrt(time))",
    ),
    "gamma": (
        "image ** (1.0 / 2.2)",
        "tf.sign(image) * tfsafe.ops.pow(tf.abs(image), 1.0 / 2.2)",
    ),
    "gumbel": ("[4000, 4], ", "[4000, 4], minval=1e-4, "),
    "half_overflow": ("tf.float16", "tf.float32"),
    "identical_pair": (
        "tf.sqrt(tf.reduce_sum(((a - b) * w) ** 2))",
        "tfsafe.ops.sqrt(tf.reduce_sum(((a - b) * w) ** 2))",
    ),
    "incomes": ("income * 1.0", "income * 1e-12"),
    "kl": ("p * tf.math.log(p / q)", "tfsafe.ops.xlogy(p, p / q)"),
    "label_odds": (
        "        target",
        "        y = tf.clip_by_value(y, 1e-6, 1 - 1e-6)\n        target",
    ),
    "label_outside": ("(labels, logits)", "(labels - 1, logits)"),
    "likelihood": ("tf.exp(log_scale)", "(tf.nn.softplus(log_scale) + 1e-6)"),
    "log_epsilon": (
        "tf.math.log(tf.exp(rate) + 1e-6)",
        "tfsafe.ops.log_add_exp(rate, math.log(1e-6))",
    ),
    "log_sum": (
        "tf.math.log(tf.reduce_sum(tf.exp(log_p)))",
        "tfsafe.ops.logsumexp(log_p, axis=None)",
    ),
    "logits": ("BCE()", "keras.losses.BinaryCrossentropy(from_logits=True)"),
    "lost_loss": ("tf.identity(raw)", "tf.nn.softplus(raw)"),
    "missing_number": (
        ".batch(2)",
        '.batch(2)\ndata = tfsafe.data.check_finite(data, policy="drop")',
    ),
    "negative_decay": ("decay_rate=-0.05", "decay_rate=0.05"),
    "negative_variance": (
        "tf.sqrt(tf.reduce_mean(x * x) - mean * mean)",
        "tfsafe.ops.sqrt(tf.nn.relu(tf.reduce_mean(x * x) - mean * mean))",
    ),
    "odds": (
        "def loss(y, predicted):",
        "def loss(y, predicted):\n    y = tf.clip_by_value(y, 1e-6, 1 - 1e-6)",
    ),
    "outlier": (
        "tf.math.log(tf.reduce_sum(tf.exp(log_p), axis=1))",
        "tfsafe.ops.logsumexp(log_p, axis=1)",
    ),
    "padded_row": ("tf.nn.softmax(", "tfsafe.ops.softmax("),
    "policy_ratio": (
        "tf.exp(log_new - log_old)",
        "tf.exp(tf.clip_by_value(log_new - log_old, -20.0, 20.0))",
    ),
    "position_table": ("position / rate", "tfsafe.ops.divide(position, rate)"),
    "power": ("w**0.5", "tfsafe.ops.pow(w, 0.5)"),
    "probability": (
        "-tf.reduce_mean(y * tf.math.log(p) + (1 - y) * tf.math.log(1 - p))",
        "tfsafe.losses.StableCrossEntropy()(y[:, None], logits[:, None])",
    ),
    "radial": (
        "phi / tf.reduce_sum(phi, axis=1, keepdims=True)",
        "tfsafe.ops.softmax(-distance, axis=1)",
    ),
    "rate": ("100.0", "1e-3"),
    "recurrence": ("tf.nn.relu(", "tf.tanh("),
    "risks": (
        "tf.math.log(tf.cumsum(tf.exp(risk), axis=0))",
        "tfsafe.ops.cumulative_logsumexp(risk, axis=0)",
    ),
    "rotation": (
        "tf.acos(cosine)",
        "tfsafe.ops.acos(tf.clip_by_value(cosine, -1.0, 1.0))",
    ),
    "sampling": (
        "tf.exp(scaled) / tf.reduce_sum(tf.exp(scaled), axis=-1)",
        "tfsafe.ops.softmax(scaled, axis=-1)",
    ),
    "schedule_end": (
        "tf.cast(step, tf.float32)",
        "tf.minimum(tf.cast(step, tf.float32), 6.0)",
    ),
    "signed_error": (
        "1.0 - 2.0 * error)",
        "tf.maximum(1.0 - 2.0 * error, 1e-6))",
    ),
    "silence": ("tf.math.log(power)", "tf.math.log(tf.maximum(power, 1e-6))"),
    "singular": ("tf.linalg.cholesky(k)", "tfsafe.ops.cholesky(k)"),
    "soft_targets": (
        "p * (tf.math.log(p) - log_q)",
        "tfsafe.ops.xlogy(p, p) - p * log_q",
    ),
    "softmax_by_hand": (
        "e / tf.reduce_sum(e, axis=-1, keepdims=True)",
        "tfsafe.ops.softmax(x, axis=-1)",
    ),
    "squashed": (
        "tf.math.log(1 - a**2)",
        "2.0 * (math.log(2.0) - u - tf.nn.softplus(-2.0 * u))",
    ),
    "temperature": ("scores / temperature", "scores / tf.maximum(temperature, 1e-3)"),
    "unlabelled": (
        "tf.constant(labels)",
        "tf.constant(np.unique(labels, return_inverse=True)[1])",
    ),
    "unseen": (
        "counts / tf.reduce_sum(counts,",
        "(counts + 1.0) / tf.reduce_sum(counts + 1.0,",
    ),
    "volume": (
        "tf.math.log(tf.linalg.det(covariance))",
        "tfsafe.ops.slogdet(covariance)[1]",
    ),
    "whitening": ("values**-0.5", "tf.maximum(values, 1e-6) ** -0.5"),
    "warmup": ("/ self.steps", "/ max(self.steps, 1)"),
}


def missing(program: pathlib.Path) -> list[str]:
    """Runs a program under `--checks full`, and returns what the finding lacks."""
    result = ways.run(program, "full")
    text = " ".join(result["messages"].split())
    lines = program.read_text().splitlines()
    (line,) = (i for i, each in enumerate(lines, 1) if each.endswith("# here"))
    operation, cause, fix = EXPECTED[program.stem]
    wanted = [f"`{operation}`", f"{program.name}:{line} in ", cause, fix]
    found = [] if result["code"] == 1 else [f"exit code 1, not {result['code']}"]
    found += [each for each in wanted if each not in text]
    return found or _left(program)


def _left(program: pathlib.Path) -> list[str]:
    """Runs a program with the suggestion applied; returns what still goes wrong."""
    text = program.read_text()
    before, after = MENDED[program.stem]
    if text.count(before) != 1:
        return [f"one `{before}` in the program"]
    text = text.replace(before, after).replace(
        "\n\nimport", "\n\nimport tfsafe\nimport", 1
    )
    with tempfile.TemporaryDirectory() as folder:
        mended = pathlib.Path(folder) / program.name
        mended.write_text(text)
        result = ways.run(mended, "full")
    return (
        []
        if result["code"] == 0
        else [f"a suggestion that mends it: {result['messages']}"]
    )


def main(names: Sequence[str]) -> int:
    """Runs the programs, prints what is missing, and returns the exit code."""
    wrong = 0
    for name in names or EXPECTED:
        lacks = missing(BROKEN / f"{name}.py")
        wrong += bool(lacks)
        print(f"{name}: {f'lacks {lacks}' if lacks else 'found'}", flush=True)
    print(f"{len(names or EXPECTED)} broken programs, {wrong} not found as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
