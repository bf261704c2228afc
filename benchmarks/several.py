"""Measures a whole `fit` of short steps, over one with Adam alone.

Run `python -m benchmarks.several [--rounds N] [--steps 1 32]`. The steps are those of
one call, `steps_per_execution`. In each round the variants run one after the other, in
an order drawn again; the table shows the median and the quartiles of the ratios.
"""

import argparse
import math
import os
import statistics

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import tfsafe
from benchmarks import _models, _timing

STEPS = 256
# Optimizers and callbacks, by name.
VARIANTS = {
    "plain": (False, False),
    "control": (False, False),
    "monitor": (False, True),
    "SafeOptimizer": (True, False),
    "both": (True, True),
}


def fit(compiled, steps, variant):
    """Returns a function that runs one epoch."""
    is_safe, is_watched = VARIANTS[variant]
    adam = keras.optimizers.Adam()
    model = keras.Sequential([
        keras.Input((64,)),
        keras.layers.Dense(128, "relu"),
        keras.layers.Dense(10),
    ])
    model.compile(
        tfsafe.SafeOptimizer(adam) if is_safe else adam,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=compiled,
        steps_per_execution=steps,
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 64)).astype("float32")
    batches = _models.repeated(x, rng.integers(0, 10, 64))
    callbacks = [tfsafe.NumericsMonitor()] if is_watched else []
    given = {"steps_per_epoch": STEPS, "verbose": 0, "shuffle": False}
    return lambda: model.fit(batches, callbacks=callbacks, **given).history["loss"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 32])
    arguments = parser.parse_args()
    print("| fit | ms | variant | over Adam alone [quartiles] |")
    print("|---|---|---|---|")
    for compiled in (False, True):
        for steps in arguments.steps:
            runs = {name: fit(compiled, steps, name) for name in VARIANTS}
            times = _timing.side_by_side(runs, arguments.rounds, at_most=math.inf)
            milliseconds = 1e3 * statistics.median(times["plain"]) / STEPS
            where = f"{steps} steps a call, {'XLA' if compiled else 'graph'}"
            for name in list(VARIANTS)[1:]:
                ratio = _timing.cell(_timing.quartiles(times, name, "plain"))
                row = f"| {where} | {milliseconds:.2f} | {name} | {ratio} |"
                print(row, flush=True)


if __name__ == "__main__":
    main()
