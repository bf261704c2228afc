"""What `tfsafe.checked` costs: a whole training step with it, over one without.

Run `python -m benchmarks.checks [--rounds N]`. In each round the variants run one
after the other, in an order drawn anew, and each is divided by the plain one of the
same round; the table shows the median and the quartiles of these ratios. The second
"plain" is a control: its distance from 1 is the noise.
"""

import argparse
import math
import os
import statistics

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import tfsafe
from benchmarks import _timing

MODELS = ("MLP", "LSTM")
# Seconds of steps between two readings of the clock.
BETWEEN = 0.08


def make_model(name):
    """Returns a model and one batch for it."""
    rng = np.random.default_rng(0)
    if name == "MLP":
        sizes, shape = (
            (keras.layers.Dense(256, "relu"), keras.layers.Dense(128)),
            (784,),
        )
        rows = 128
    else:
        sizes, shape, rows = (keras.layers.LSTM(64),), (100, 16), 32
    model = keras.Sequential([keras.Input(shape), *sizes, keras.layers.Dense(10)])
    x = rng.normal(size=(rows, *shape)).astype("float32")
    return model, x, rng.integers(0, 10, rows)


def custom_loop(name, compiled, wrap):
    """Returns a function that runs one step of a loop written by hand."""
    model, x, y = make_model(name)
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(jit_compile=compiled)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    step, x, y = wrap(step), tf.constant(x), tf.constant(y)
    return lambda: step(x, y)


def fit(name, compiled, wrap):
    """Returns a function that runs one step of `fit`'s training function."""
    model, x, y = make_model(name)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=compiled)
    model = wrap(model)
    model.make_train_function()
    iterator = iter(tf.data.Dataset.from_tensors((x, y)).repeat())
    return lambda: model.train_function(iterator)


VARIANTS = {
    "plain": lambda each: each,
    "control": lambda each: each,
    "checked": tfsafe.checked,
}


def measure(way, name, compiled, rounds):
    """Returns the seconds of a step of each variant, for each round."""
    runs = {variant: way(name, compiled, wrap) for variant, wrap in VARIANTS.items()}
    return _timing.side_by_side(runs, rounds, BETWEEN, math.inf)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    print("| step | ms | control | checked |")
    print("|---|---|---|---|")
    for way in (custom_loop, fit):
        for name in MODELS:
            for compiled in (False, True):
                times = measure(way, name, compiled, rounds)
                milliseconds = 1e3 * statistics.median(times["plain"])
                cells = [
                    _timing.cell(_timing.quartiles(times, variant, "plain"))
                    for variant in ("control", "checked")
                ]
                where = "XLA" if compiled else "graph"
                row = f"| {name}, {way.__name__}, {where} | {milliseconds:.2f} "
                print(row + f"| {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
