"""Measures how the cost of the checks and of `stabilize` grows with a model.

Run `python -m benchmarks.growth [--blocks 2 8 32 96] [--kinds watch full ...]`.

The models are small Transformers of so many blocks. A step is forward pass, loss,
gradient and Adam. "first call" traces it and runs it once; for `stabilize`, whose
steps cost what plain ones do, it is traced alone. The seconds are those of the
processor, over all threads, so that other programs on the machine count little. Each
ratio is over the same step without tfsafe, in the same process; what grows faster than
the model has a ratio that rises from row to row.
"""

import argparse
import gc
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

import tfsafe
from benchmarks import _models

KINDS = ("watch", "domain", "full", "stabilize")
WIDTH, HEADS, LENGTH, TOKENS, ROWS = 16, 2, 8, 50, 4


def transformer(blocks):
    """Returns a model that predicts tokens."""
    tokens = keras.Input((LENGTH,), dtype="int32")
    x = keras.layers.Embedding(TOKENS, WIDTH)(tokens)
    for _ in range(blocks):
        y = keras.layers.LayerNormalization()(x)
        attention = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
        x = x + attention(y, y, use_causal_mask=True)
        y = keras.layers.LayerNormalization()(x)
        y = keras.layers.Dense(2 * WIDTH, activation="gelu")(y)
        x = x + keras.layers.Dense(WIDTH)(y)
    return keras.Model(tokens, keras.layers.Dense(TOKENS)(x))


def make_step(blocks, kind):
    """Returns a function that makes the first call."""
    step = _models.train_step(transformer(blocks))

    batch = [tf.zeros([ROWS, LENGTH], tf.int32)] * 2
    if kind == "stabilize":
        step = tfsafe.stabilize(step)
    elif kind in KINDS:
        step = tfsafe.checked(step, checks=kind)
    if kind in {"stabilize", "traced"}:
        return lambda: step.get_concrete_function(*batch)
    return lambda: step(*batch)


def seconds(blocks, kind):
    """Returns the processor's seconds of a first call, and its result."""
    first = make_step(blocks, kind)
    gc.collect()
    start = time.process_time()
    result = first()
    return time.process_time() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, nargs="+", default=[2, 8, 32])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    arguments = parser.parse_args()
    # Do not count the one-time set-up of TensorFlow and of the rules.
    for kind in ("plain", "traced", *arguments.kinds):
        seconds(1, kind)
    kinds = " | ".join(arguments.kinds)
    print(f"| blocks | operations | tracing, s | first call, s | {kinds} |")
    print(f"|{'---|' * (4 + len(arguments.kinds))}", flush=True)
    for blocks in arguments.blocks:
        traced, concrete = seconds(blocks, "traced")
        called, _ = seconds(blocks, "plain")
        operations = len(concrete.graph.get_operations())
        cells = [f"{blocks}", f"{operations}", f"{traced:.2f}", f"{called:.2f}"]
        for kind in arguments.kinds:
            base = traced if kind == "stabilize" else called
            cells.append(f"{seconds(blocks, kind)[0] / base:.2f}")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
