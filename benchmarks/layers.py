"""Measures the cost of a layer: a training step, over one with Keras' own layer.

    python -m benchmarks.layers [--rounds 15] [--layers LSTM Softmax]

The model is one layer, or two, around the layer in question, with Adam. In each round
the two models take a few steps each, in an order drawn again, and the time of one is
divided by that of the other; the table has the median and the quartiles of these
ratios. The row "control" is Keras' layer against itself: its distance from 1 is the
noise.
"""

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

from benchmarks import _models, _timing
from tfsafe import layers

BATCH, STEPS, FEATURES, CLASSES, WORDS = 32, 64, 64, 10, 5000


class Case(NamedTuple):
    """A layer within a model.

    Attributes:
      make: Takes a package of layers, Keras' or ours, and returns the layer.
      call: Takes the layer and what comes before it, and returns its output.
      is_text: Whether an embedding with a mask comes before it, or a dense layer.
    """

    make: Callable[[Any], keras.Layer]
    call: Callable[[keras.Layer, Any], Any] = lambda layer, x: layer(x)
    is_text: bool = False


def _twice(layer: keras.Layer, x: Any) -> Any:
    return layer(x, x)


def _listed(layer: keras.Layer, x: Any) -> Any:
    return layer([x, x])


CASES = {
    "control": Case(lambda _: keras.layers.GlobalAveragePooling1D(), is_text=True),
    "GlobalAveragePooling1D": Case(lambda p: p.GlobalAveragePooling1D()),
    "GlobalAveragePooling1D, mask": Case(
        lambda p: p.GlobalAveragePooling1D(), is_text=True
    ),
    "GlobalMaxPooling1D": Case(lambda p: p.GlobalMaxPooling1D()),
    "AveragePooling1D": Case(lambda p: p.AveragePooling1D(2)),
    "Softmax": Case(lambda p: p.Softmax()),
    "Embedding": Case(lambda p: p.Embedding(WORDS, FEATURES), is_text=True),
    "Attention": Case(lambda p: p.Attention(), _listed),
    "Attention, mask": Case(lambda p: p.Attention(), _listed, is_text=True),
    "MultiHeadAttention": Case(lambda p: p.MultiHeadAttention(4, 16), _twice),
    "MultiHeadAttention, mask": Case(
        lambda p: p.MultiHeadAttention(4, 16), _twice, is_text=True
    ),
    "LSTM": Case(lambda p: p.LSTM(32)),
    "LSTM, mask": Case(lambda p: p.LSTM(32), is_text=True),
    "GRU, mask": Case(lambda p: p.GRU(32), is_text=True),
    "BatchNormalization": Case(lambda p: p.BatchNormalization()),
    "BatchNormalization, mask": Case(lambda p: p.BatchNormalization(), is_text=True),
    "LayerNormalization": Case(lambda p: p.LayerNormalization()),
    "GroupNormalization": Case(lambda p: p.GroupNormalization(8)),
    "RMSNormalization": Case(lambda p: p.RMSNormalization()),
    "UnitNormalization": Case(lambda p: p.UnitNormalization()),
    "SpectralNormalization": Case(
        lambda p: p.SpectralNormalization(keras.layers.Dense(64))
    ),
    "Dot, normalize": Case(lambda p: p.Dot(axes=2, normalize=True), _listed),
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--layers", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument(
        "--policies", nargs="+", default=["float32"], help="such as mixed_float16"
    )
    options = parser.parse_args(argv)
    print("| layer | policy | mode | ms, Keras | over Keras [quartiles] |")
    print("|---|---|---|---|---|")
    for policy in options.policies:
        for name in options.layers:
            for compiled in (False, True):
                base, ratios = _measure(CASES[name], policy, compiled, options.rounds)
                mode = "XLA" if compiled else "graph"
                row = f"| {name} | {policy} | {mode} | {1e3 * base:.2f} "
                print(f"{row}| {_timing.cell(ratios)} |", flush=True)


def _measure(
    case: Case, policy: str, compiled: bool, rounds: int
) -> tuple[float, list[float]]:
    """Returns the seconds of a step with Keras' layer, and our quartiles over it."""
    runs = {
        name: _train_step(case, package, policy, compiled)
        for name, package in (("keras", keras.layers), ("ours", layers))
    }
    times = _timing.side_by_side(runs, rounds)
    base = statistics.median(times["keras"])
    return base, _timing.quartiles(times, "ours", "keras")


def _train_step(
    case: Case, package: Any, policy: str, compiled: bool
) -> Callable[[], tf.Tensor]:
    """Returns a function that runs one training step, from batch to weights."""
    keras.config.set_dtype_policy(policy)
    model, x = _model(case, case.make(package))
    keras.config.set_dtype_policy("float32")
    y = tf.range(len(x)) % CLASSES
    step = _models.train_step(model, compiled=compiled)

    for _ in range(2):
        step(x, y)
    return lambda: step(x, y)


def _model(case: Case, layer: keras.Layer) -> tuple[keras.Model, tf.Tensor]:
    rng = np.random.default_rng(0)
    if case.is_text:
        ids = rng.integers(1, WORDS, (BATCH, STEPS))
        # Texts of different lengths.
        ids[np.arange(STEPS) >= rng.integers(1, STEPS + 1, (BATCH, 1))] = 0
        x = tf.constant(ids, tf.int32)
        inputs = keras.Input((STEPS,), dtype="int32")
        before = inputs
        if not isinstance(layer, keras.layers.Embedding):
            before = keras.layers.Embedding(WORDS, FEATURES, mask_zero=True)(inputs)
    else:
        x = tf.constant(rng.normal(size=(BATCH, STEPS, FEATURES)), tf.float32)
        inputs = keras.Input((STEPS, FEATURES))
        before = keras.layers.Dense(FEATURES)(inputs)
    after = case.call(layer, before)
    if len(after.shape) > 2:
        after = keras.ops.mean(after, axis=1)
    outputs = keras.layers.Dense(CLASSES, dtype="float32")(after)
    return keras.Model(inputs, outputs), x


if __name__ == "__main__":
    main()
