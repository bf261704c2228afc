"""Measures the cost of each function of `tfsafe.ops`, forward and gradient.

    python -m benchmarks.ops [--ops log softmax] [--size 1000000] [--dtype float32]

Each function is measured against the plain form in TensorFlow, and against the form
that guards itself: with a double `tf.where`, an epsilon or a clipping. Each returns
value and gradients, for an incoming gradient that is no constant. In each round the
forms run one after the other, in an order drawn again, and the time of ours is divided
by that of the others; the table has the median and the quartiles of these ratios, and
"where" beside those over a double `tf.where`. Other guards may cost less than ours,
because they change the value, or stop the gradient, where it is still right. The row
"control" is a plain form against itself: its distance from 1 is the noise.

The tensors are matrices with rows of 100 numbers, away from every singular point.
"""

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from benchmarks import _timing
from benchmarks._ops_cases import CASES, Function, Twice
from tfsafe import ops

COLUMNS = 100
MODES = ("graph", "XLA")
# The most that a function should cost in a graph, over a plain form of one operation
# and of several. XLA fuses each form: there, and over the double `tf.where`, the cost
# should be 1, with room for noise.
ONE_OPERATION, SEVERAL, EQUAL = 1.3, 3.0, 1.05


def ours(name: str) -> Function:
    if name == "control":
        return CASES[name].plain
    function = getattr(ops, name.partition(",")[0])
    return lambda *args: function(*args, **CASES[name].options)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ops", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--size", nargs="+", type=int, default=[1_000_000])
    parser.add_argument(
        "--dtype", nargs="+", default=["float32"],
        choices=["float16", "bfloat16", "float32", "float64"],
    )  # fmt: skip
    parser.add_argument("--mode", nargs="+", default=list(MODES), choices=list(MODES))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(argv)
    print("| function | tensor | mode | ms, plain | over plain | over guarded | aim |")
    print("|---|---|---|---|---|---|---|")
    for name in options.ops:
        for size in options.size:
            for dtype in options.dtype:
                for mode in options.mode:
                    tensor = f"{size:,} {dtype}"
                    case, args = CASES[name], _arguments(name, size, dtype)
                    aim = EQUAL if mode == "XLA" else _aim(case.plain, args)
                    times = _times(name, args, mode, options.rounds)
                    row = _row(times, aim, isinstance(case.guarded, Twice))
                    print(f"| {name} | {tensor} | {mode} | {row} |", flush=True)


def _aim(plain: Function, args: list[tf.Tensor]) -> float:
    graph = tf.function(plain, autograph=False).get_concrete_function(*args).graph
    made = {op.type for op in graph.get_operations()} - {"Const", "Identity"}
    return ONE_OPERATION if len(made - {"Placeholder"}) == 1 else SEVERAL


def _row(times: dict[str, list[float]], aim: float, is_double: bool) -> str:
    """Returns the last cells of a row."""
    milliseconds = 1e3 * statistics.median(times["plain"])
    over_plain = _timing.quartiles(times, "ours", "plain")
    cells = [f"{milliseconds:.2f}", _timing.cell(over_plain), ""]
    is_missed = over_plain[1] > aim
    if "guarded" in times:
        over_guarded = _timing.quartiles(times, "ours", "guarded")
        cells[-1] = _timing.cell(over_guarded) + (" where" if is_double else "")
        is_missed |= is_double and over_guarded[1] > EQUAL
    return " | ".join([*cells, "missed" if is_missed else ""])


def _arguments(name: str, size: int, dtype: str) -> list[tf.Tensor]:
    rng = np.random.default_rng(0)
    shape = (max(1, size // COLUMNS), COLUMNS)
    return [tf.cast(_sample(rng, d, shape), dtype) for d in CASES[name].domains]


def _times(
    name: str, args: list[tf.Tensor], mode: str, rounds: int
) -> dict[str, list[float]]:
    """Returns the seconds of each form in each round."""
    case = CASES[name]
    forms = {"plain": case.plain, "ours": ours(name), "guarded": case.guarded}
    runs = {
        form: _forward_and_gradient(function, args, compiled=mode == "XLA")
        for form, function in forms.items()
        if function is not None
    }
    return _timing.side_by_side(runs, rounds, between=0.01)


def _sample(
    rng: np.random.Generator, domain: str, shape: tuple[int, int]
) -> np.ndarray:
    if domain == "real":
        return rng.normal(scale=3, size=shape)
    low, high = {
        "positive": (0.1, 3.0),
        "negative": (-3.0, -0.1),
        "above 1": (1.1, 4.0),
        "unit": (-0.9, 0.9),
        "probability": (0.05, 0.95),
    }[domain]
    return rng.uniform(low, high, shape)


def _forward_and_gradient(
    function: Function, args: list[tf.Tensor], *, compiled: bool
) -> Callable[[], Any]:
    """Returns a function that computes the value and the gradients of all arguments."""

    @tf.function(jit_compile=compiled, autograph=False)
    def run(args: list[tf.Tensor], upstream: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(args)
            value = function(*args)
        return value, tape.gradient(value, args, upstream)

    # Do not use ones, which a compiler may exploit.
    upstream = tf.nest.map_structure(lambda y: 0.5 + tf.sin(y), function(*args))
    return lambda: run(args, upstream)


if __name__ == "__main__":
    main()
