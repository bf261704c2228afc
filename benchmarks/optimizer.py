"""Measures the cost of `SafeOptimizer`: a training step, over one with Adam alone.

Run `python -m benchmarks.optimizer [--rounds N] [--models MLP LSTM embedding]`. In each
round the variants run one after the other, in an order drawn again, and each is divided
by Adam alone in the same round; the table shows the median and the quartiles of these
ratios. The "control" is Adam alone once more: its distance from 1 is the noise.
"""

import argparse
import math
import os
import statistics

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

from benchmarks import _models, _timing
from tfsafe import optimizers

MODELS = ("MLP", "LSTM", "embedding")
# Seconds of steps between two readings of the clock.
BETWEEN = 0.05


def make_model(name):
    """Returns a model and one batch for it."""
    rng = np.random.default_rng(0)
    if name == "MLP":
        hidden = keras.layers.Dense(256, "relu"), keras.layers.Dense(128, "relu")
        x = rng.normal(size=(128, 784)).astype("float32")
    elif name == "LSTM":
        hidden = (keras.layers.LSTM(64),)
        x = rng.normal(size=(32, 100, 16)).astype("float32")
    else:
        hidden = (
            keras.layers.Embedding(20000, 64),
            keras.layers.GlobalAveragePooling1D(),
        )
        x = rng.integers(0, 20000, (32, 100))
    layers = [keras.Input(x.shape[1:], dtype=x.dtype), *hidden, keras.layers.Dense(10)]
    return keras.Sequential(layers), x, rng.integers(0, 10, len(x))


def adam(**arguments):
    return keras.optimizers.Adam(**arguments)


VARIANTS = {
    "Adam": adam,
    "control": adam,
    "replace": lambda: optimizers.SafeOptimizer(adam()),
    "zero_variable": lambda: optimizers.SafeOptimizer(adam(), "zero_variable"),
    "skip": lambda: optimizers.SafeOptimizer(adam(), "skip"),
    "outliers": lambda: optimizers.SafeOptimizer(adam(), outlier_threshold=6.0),
    "count_elements": lambda: optimizers.SafeOptimizer(adam(), count_elements=True),
    "Adam, global_clipnorm": lambda: adam(global_clipnorm=1.0),
    "replace, global_clipnorm": lambda: optimizers.SafeOptimizer(
        adam(), global_clipnorm=1.0
    ),
    "Keras' LossScaleOptimizer": lambda: keras.optimizers.LossScaleOptimizer(adam()),
    "LossScaleOptimizer": lambda: optimizers.LossScaleOptimizer(adam()),
}


def train_step(name, compiled, make_optimizer):
    """Returns a function that runs one training step, from batch to weights."""
    model, x, y = make_model(name)
    step = _models.train_step(model, optimizer=make_optimizer(), compiled=compiled)

    x, y = tf.constant(x), tf.constant(y)
    return lambda: step(x, y)


def measure(name, compiled, rounds):
    """Returns the milliseconds of Adam alone, and the others' quartiles over it."""
    runs = {
        variant: train_step(name, compiled, make) for variant, make in VARIANTS.items()
    }
    times = _timing.side_by_side(runs, rounds, BETWEEN, math.inf)
    ratios = {each: _timing.quartiles(times, each, "Adam") for each in times}
    del ratios["Adam"]
    return 1e3 * statistics.median(times["Adam"]), ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    arguments = parser.parse_args()
    print("| step | ms | variant | over Adam alone [quartiles] |")
    print("|---|---|---|---|")
    for name in arguments.models:
        for compiled in (False, True):
            milliseconds, ratios = measure(name, compiled, arguments.rounds)
            where = f"{name}, {'XLA' if compiled else 'graph'}"
            for variant, found in ratios.items():
                row = f"| {where} | {milliseconds:.2f} | {variant} "
                print(f"{row}| {_timing.cell(found)} |", flush=True)


if __name__ == "__main__":
    main()
