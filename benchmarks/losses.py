"""Measures the cost of the cross-entropies, over Keras' own and the epsilon form.

Run `python -m benchmarks.losses [--rounds N] [--cases sparse dense ...] [--sizes small
large]`. Each case is measured twice: the loss and the gradient of its predictions
alone, and a whole training step, in which a `Dense` layer makes the predictions and
Adam updates its weights. In each round the forms run one after the other, in an order
drawn again, and each is divided by Keras' in the same round; the table shows the median
and the quartiles of these ratios. The "control" is Keras' form once more: its distance
from 1 is the noise.

With `--memory` it prints the peak memory of forward and gradient on 8192 x 32000
float32 logits instead, each form in a process of its own.
"""

import argparse
import math
import os
import resource
import statistics
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

from benchmarks import _models, _timing
from tfsafe import losses

SIZES = {"small": (64, 10), "large": (512, 10_000)}
SECONDS = {"small": 0.01, "large": 0.0}
WIDTH = 64


def clipped_rows(y_true, logits):
    p = tf.clip_by_value(tf.nn.softmax(logits), 1e-7, 1.0)
    return -tf.reduce_sum(y_true * tf.math.log(p), -1)


def clipped_indices(y_true, logits):
    p = tf.clip_by_value(tf.nn.softmax(logits), 1e-7, 1.0)
    return -tf.math.log(tf.gather(p, y_true, batch_dims=1))


def clipped_binary(y_true, logits):
    p = tf.clip_by_value(tf.sigmoid(logits), 1e-7, 1 - 1e-7)
    terms = y_true * tf.math.log(p) + (1 - y_true) * tf.math.log(1 - p)
    return -tf.reduce_mean(terms, -1)


# Keras' class, ours, the epsilon form, and the kind of the labels.
CASES = {
    "sparse": ("SparseCategoricalCrossentropy", clipped_indices, "indices"),
    "dense": ("CategoricalCrossentropy", clipped_rows, "rows"),
    "binary": ("BinaryCrossentropy", clipped_binary, "rows"),
    "binary focal": ("BinaryFocalCrossentropy", None, "rows"),
    "categorical focal": ("CategoricalFocalCrossentropy", None, "rows"),
}


def forms(case):
    """Returns the forms of a loss by name; each is a mean over the batch."""
    name, clipped, _ = CASES[case]
    kinds = {"sparse": "sparse", "dense": "dense", "binary": "binary"}
    theirs = getattr(keras.losses, name)(from_logits=True)
    found = {
        "Keras": theirs,
        "control": theirs,
        "tfsafe": getattr(losses, name)(from_logits=True),
    }
    if case in kinds:
        found["StableCrossEntropy"] = losses.StableCrossEntropy(
            from_logits=True, labels=kinds[case]
        )
    if clipped is not None:
        found["epsilon"] = lambda y, x: tf.reduce_mean(clipped(y, x))
    return found


def labels_of(case, rows, classes):
    indices = np.random.default_rng(0).integers(0, classes, rows)
    if CASES[case][2] == "indices":
        return tf.constant(indices)
    return tf.one_hot(indices, classes)


def loss_alone(loss, y_true, rows, classes, dtype, compiled):
    """Returns a function that runs the loss and the gradient of its predictions."""
    # One row of random numbers, moved: making more needs more memory than the loss.
    row = tf.random.stateless_normal([1, classes], [0, 1], dtype=dtype)
    logits = row + tf.cast(tf.range(rows)[:, tf.newaxis] % 7, dtype)

    @tf.function(jit_compile=compiled, autograph=False)
    def run(logits, y_true):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(y_true, logits)
        return value, tape.gradient(value, logits)

    return lambda: run(logits, y_true)[0]


def train_step(loss, y_true, rows, classes, dtype, compiled):
    """Returns a function that runs one training step, from batch to weights."""
    policy = "mixed_float16" if dtype == "float16" else dtype
    dense = keras.layers.Dense(classes, dtype=policy)
    model = keras.Sequential([keras.Input((WIDTH,)), dense])
    x = tf.random.stateless_normal([rows, WIDTH], [0, 1])
    step = _models.train_step(model, loss=loss, compiled=compiled)

    return lambda: step(x, y_true)


WHAT = {"loss and gradient": loss_alone, "training step": train_step}


def measure(make, case, size, dtype, compiled, rounds):
    """Returns the milliseconds of Keras' form, and the others' quartiles over it."""
    shape = SIZES[size]
    y_true = labels_of(case, *shape)
    if dtype == "float16" and make is loss_alone and y_true.dtype.is_floating:
        y_true = tf.cast(y_true, dtype)
    runs = {}
    for name, loss in forms(case).items():
        if name == "epsilon" and dtype == "float16":
            continue  # 1e-7 rounds to 0 there.
        runs[name] = make(loss, y_true, *shape, dtype, compiled)
    times = _timing.side_by_side(runs, rounds, SECONDS[size], math.inf)
    ratios = {each: _timing.quartiles(times, each, "Keras") for each in times}
    del ratios["Keras"]
    return 1e3 * statistics.median(times["Keras"]), ratios


def table(arguments):
    print("| what | case | Keras, ms | form | over Keras [quartiles] |")
    print("|---|---|---|---|---|")
    for what, make in WHAT.items():
        for case in arguments.cases:
            for size in arguments.sizes:
                for dtype in arguments.dtypes:
                    for compiled in (False, True):
                        milliseconds, ratios = measure(
                            make, case, size, dtype, compiled, arguments.rounds
                        )
                        where = f"{case}, {'x'.join(map(str, SIZES[size]))} {dtype}"
                        where += ", XLA" if compiled else ", graph"
                        for name, found in ratios.items():
                            row = f"| {what} | {where} | {milliseconds:.2f} | {name} "
                            print(f"{row}| {_timing.cell(found)} |", flush=True)


def peak(case, form, mode):
    """Prints the megabytes that forward and gradient add to the arguments'."""
    rows, classes = 8192, 32_000
    y_true = labels_of(case, rows, classes)
    run = loss_alone(forms(case)[form], y_true, rows, classes, "float32", mode == "XLA")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run().numpy()
    run().numpy()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    print(f"{before * unit / 2**20:.0f} {after * unit / 2**20:.0f}")


def memory(arguments):
    print("| case | form | before, MB | peak, MB | over Keras |")
    print("|---|---|---|---|---|")
    for case in arguments.cases:
        for mode in ("graph", "XLA"):
            base = None
            for form in ("Keras", "tfsafe", "StableCrossEntropy"):
                if form not in forms(case):
                    continue
                command = [
                    *(sys.executable, "-m", "benchmarks.losses"),
                    *("--peak", case, form, mode),
                ]
                result = subprocess.run(
                    command, capture_output=True, text=True, check=True
                )
                before, after = map(int, result.stdout.split())
                base = base or after
                row = f"| {case}, {mode} | {form} | {before} | {after} "
                print(f"{row}| {after / base:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--cases", nargs="+", default=["sparse", "dense", "binary"], choices=list(CASES)
    )
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument(
        "--dtypes", nargs="+", default=["float32", "float16"],
        choices=["float32", "float16"],
    )  # fmt: skip
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        peak(*arguments.peak)
    elif arguments.memory:
        memory(arguments)
    else:
        table(arguments)


if __name__ == "__main__":
    main()
