"""Runs the programs of `broken/` under the checks and compares what is found.

    python -m tests.field.findings        all programs
    python -m tests.field.findings kl     these programs

The line that must be named is the one that ends in `# here`.
"""

import pathlib
import sys
from collections.abc import Sequence

from tests.field import ways

BROKEN = pathlib.Path(__file__).resolve().parent / "broken"

# Operation, cause and fix, as in the explanation with its line breaks removed.
_ZERO = "zero in the denominator"
_DIVIDE = "returns 0, with gradient 0, where the denominator is 0."
EXPECTED = {
    "accuracy": ("RealDiv", _ZERO, _DIVIDE),
    "angle": ("Acos", "acos of 1 number outside [-1, 1].", "tfsafe.ops.angle_between"),
    "constant_column": ("RealDiv", _ZERO, _DIVIDE),
    "cosine": ("RealDiv", _ZERO, _DIVIDE),
    "empty_text": ("RealDiv", _ZERO, _DIVIDE),
    "epsilon_removed": ("RealDiv", _ZERO, _DIVIDE),
    "half_overflow": (
        "Mul",
        "the product overflows float16 above 6.55e+04; the inputs reach 300 and 300.",
        "compute this part in float32",
    ),
    "identical_pair": (
        "SqrtGrad",
        "the slope of sqrt is infinite at 0",
        "tfsafe.ops.sqrt(tf.reduce_sum(((a - b) * w) ** 2))",
    ),
    "kl": ("Log", "log of 1 zero (at (0,)).", "tfsafe.ops.xlogy(p, p / q)"),
    "likelihood": ("RealDiv", _ZERO, "bound what it is made of"),
    "log_sum": ("Log", "log of 1 zero.", "tfsafe.ops.logsumexp"),
    "negative_variance": ("Sqrt", "sqrt of 1", "tfsafe.ops."),
    "padded_row": (
        "Softmax",
        "1 row of only -inf (at (1,)).",
        "tfsafe.ops.softmax(tf.where(mask, scores, -float('inf')))",
    ),
    "power": ("Pow", "0 to the power -0.5 is infinite", "tfsafe.ops.pow(w, 0.5)"),
    "probability": ("Log", "log of 1 zero (at (0,)).", "StableCrossEntropy"),
    "rate": ("Exp", "exp overflows float32 above 88.72", "stay in log space"),
    "silence": ("Log", "log of 35 zeros", "keep the argument above 0"),
    "singular": ("Cholesky", "input 0: from 1 to 2.", "tfsafe.ops.cholesky(k)"),
    "softmax_by_hand": (
        "Exp",
        "exp overflows float32",
        "tfsafe.ops.softmax(x, axis=-1)",
    ),
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
    return found + [each for each in wanted if each not in text]


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
