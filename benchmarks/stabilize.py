"""Measures the cost of `tfsafe.stabilize`: a stabilised step over one written stably.

Run `python -m benchmarks.stabilize [--heads softmax ...] [--bodies MLP LSTM] [--modes
graph XLA] [--rounds N] [--builds N]`.

A step is forward pass, loss, gradient and Adam. "loss" has its naive loss wrapped,
`tfsafe.stabilize(loss)`; "step" is wrapped as a whole, `GradientTape` included;
"naive" is not wrapped. The base is the same step with the loss that a numerical analyst
would write. All run in one process. In each round they run one after the other, in an
order redrawn, and each is divided by the base of the same round; the table shows the
median and the quartiles of these ratios. "control" is the base once more: its distance
from 1 is the noise.

Tracing is timed for each build of all variants; it is divided by that of the naive
step, and shown as the median over the builds.
"""

import argparse
import math
import os
import random
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import tfsafe
from benchmarks import _models, _timing
from benchmarks._heads import HEADS

VARIANTS = ("stable", "control", "naive", "loss", "step")
# Seconds of steps between two readings of the clock.
BETWEEN = 0.08


def make_step(head, body, compiled, variant):
    """Returns a training step, not traced yet, and its batch."""
    naive, stable, outputs = HEADS[head]
    model, x, y = _models.make(body, outputs)
    loss = stable if variant in {"stable", "control"} else naive
    if variant == "loss":
        loss = tfsafe.stabilize(loss)
    step = _models.train_step(
        model, loss=lambda y, logits: loss(logits, y), compiled=compiled
    )

    if variant == "step":
        step = tfsafe.stabilize(step)
    return step, (tf.constant(x), tf.constant(y, tf.int32))


def build(head, body, compiled, variant):
    """Returns a function that runs one step, and the seconds that it took to trace."""
    step, batch = make_step(head, body, compiled, variant)
    start = time.perf_counter()
    step.get_concrete_function(*batch)
    return lambda: step(*batch), time.perf_counter() - start


def row(head, body, compiled, arguments):
    """Returns the row of the table for one step."""
    tracing = {variant: [] for variant in VARIANTS}
    for _ in range(arguments.builds):
        runs = {}
        for variant in random.sample(VARIANTS, len(VARIANTS)):
            runs[variant], seconds = build(head, body, compiled, variant)
            tracing[variant].append(seconds)
    times = _timing.side_by_side(runs, arguments.rounds, BETWEEN, math.inf)
    milliseconds = 1e3 * statistics.median(times["stable"])
    cells = [f"{body}, {head}, {'XLA' if compiled else 'graph'}", f"{milliseconds:.2f}"]
    for variant in VARIANTS[1:]:
        cells.append(_timing.cell(_timing.quartiles(times, variant, "stable")))
    base = statistics.median(tracing["naive"])
    cells.append(f"{base:.2f}")
    for variant in ("loss", "step"):
        cells.append(f"{statistics.median(tracing[variant]) / base:.2f}")
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--builds", type=int, default=5)
    for name, choices in {
        "heads": HEADS,
        "bodies": ("MLP", "LSTM"),
        "modes": ("graph", "XLA"),
    }.items():
        parser.add_argument(
            f"--{name}", nargs="+", choices=list(choices), default=list(choices)
        )
    arguments = parser.parse_args()
    # Do not count the one-time set-up of TensorFlow in the tracing.
    build("softmax", "MLP", False, "step")
    print(
        "| step | stable, ms | control | naive | loss | step "
        "| tracing naive, s | loss | step |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for body in arguments.bodies:
        for head in arguments.heads:
            for mode in arguments.modes:
                print(row(head, body, mode == "XLA", arguments), flush=True)


if __name__ == "__main__":
    main()
