"""Measures how long `tfsafe.stabilize` takes to trace a model of 100 layers.

Run `python -m benchmarks.tracing [--builds N] [--blocks N]`, or with `--rules` for the
number of rules and their lines alone, which takes no time.

The model has blocks of three layers: `Dense`, `LayerNormalization` and an activation
in turn. "step" is a training step with gradient and Adam, "forward" the model alone;
each is traced as it is and stabilised, in turn, in one process. The table shows the
median of the seconds over the builds.
"""

import argparse
import os
import pathlib
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

import tfsafe
from benchmarks import _models
from tfsafe.rewriting.rules.table import all_rules

ACTIVATIONS = ("gelu", "silu", "softplus", "tanh")
WIDTH = 16


def counted():
    """Returns a sentence with the number of rules and how many lines they take."""
    package = pathlib.Path(tfsafe.__file__).parent / "rewriting"
    lines = {
        name: sum(
            len(path.read_text(encoding="utf-8").splitlines())
            for path in (package / name).rglob("*.py")
        )
        for name in ("rules", "match", "log_space")
    }
    count = len(all_rules())
    parts = ", ".join(f"{number} in {name}" for name, number in lines.items())
    total = sum(lines.values())
    return (
        f"{count} rules in {total} lines ({parts}): {total / count:.0f} lines a rule, "
        f"{lines['rules'] / count:.0f} of them in rules."
    )


def make_functions(blocks):
    """Returns the forward pass and the training step of a new model, and a batch."""
    stack = [keras.Input((WIDTH,))]
    for index in range(blocks):
        activation = ACTIVATIONS[index % len(ACTIVATIONS)]
        stack.append(keras.layers.Dense(WIDTH))
        stack.append(keras.layers.LayerNormalization())
        stack.append(keras.layers.Activation(activation))
    model = keras.Sequential([*stack, keras.layers.Dense(10)])
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(autograph=False)
    def forward(x, y):
        return loss_of(y, model(x))

    step = _models.train_step(model)
    batch = tf.ones([4, WIDTH]), tf.zeros([4], tf.int32)
    return len(model.layers), {"forward": forward, "step": step}, batch


def traced(blocks):
    """Returns the number of layers, and by function the seconds of both ways."""
    layers, functions, batch = make_functions(blocks)
    seconds = {}
    for name, function in functions.items():
        for each in (function, tfsafe.stabilize(function)):
            start = time.perf_counter()
            each.get_concrete_function(*batch)
            seconds.setdefault(name, []).append(time.perf_counter() - start)
    return layers, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--builds", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=33)
    arguments = parser.parse_args()
    print(counted())
    if arguments.rules:
        return
    # Do not count the one-time set-up of TensorFlow and of the rules.
    traced(1)
    builds = [traced(arguments.blocks) for _ in range(arguments.builds)]
    print(f"\n| {builds[0][0]} layers | plain, s | stabilised, s | ratio |")
    print("|---|---|---|---|")
    for name in builds[0][1]:
        times = zip(*(seconds[name] for _, seconds in builds), strict=True)
        plain, stable = map(statistics.median, times)
        print(f"| {name} | {plain:.2f} | {stable:.2f} | {stable / plain:.2f} |")


if __name__ == "__main__":
    main()
