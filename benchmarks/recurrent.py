"""Whole training steps of the recurrent layers, against `keras.layers.LSTM` and `GRU`.

    python -m benchmarks.recurrent [--steps 200] [--batch 32] [--units 64] [--rounds 25]

All variants run in one process and take turns, so that whatever else the machine does
hits each of them; the table has the median of the ratio of each round, with the
quartiles.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

from tfsafe import layers

FEATURES, CLASSES = 16, 10
VARIANTS: dict[str, Callable[[int], keras.Layer]] = {
    "keras.layers.LSTM": keras.layers.LSTM,
    "keras.layers.LSTM, recurrent_dropout": partial(
        keras.layers.LSTM, recurrent_dropout=0.25
    ),
    "RNN(LayerNormLSTMCell)": lambda units: keras.layers.RNN(
        layers.LayerNormLSTMCell(units)
    ),
    "LayerNormLSTM": layers.LayerNormLSTM,
    "LayerNormLSTM, fused": partial(layers.LayerNormLSTM, fused=True),
    "LayerNormLSTM, layer_norm=False": partial(layers.LayerNormLSTM, layer_norm=False),
    "LayerNormLSTM, dropout per step": partial(
        layers.LayerNormLSTM, recurrent_dropout=0.25
    ),
    "LayerNormLSTM, dropout per sequence": partial(
        layers.LayerNormLSTM, recurrent_dropout=0.25, recurrent_dropout_mask="sequence"
    ),
    "keras.layers.GRU": keras.layers.GRU,
    "LayerNormGRU": layers.LayerNormGRU,
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args(argv)
    print(f"{options.steps} steps, batch {options.batch}, {options.units} units")
    for compiled in (False, True):
        print(f"\n{'XLA' if compiled else 'graph':<38}{'ms':>8}{'ratio':>8}  quartiles")
        for name, times, ratios in _measure(options, compiled):
            low, middle, high = statistics.quantiles(ratios, n=4)
            ms = 1e3 * statistics.median(times)
            print(f"{name:<38}{ms:>8.1f}{middle:>8.2f}  {low:.2f}-{high:.2f}")


def _measure(
    options: argparse.Namespace, compiled: bool
) -> list[tuple[str, list[float], list[float]]]:
    x = tf.random.stateless_normal((options.batch, options.steps, FEATURES), [1, 2])
    y = tf.range(options.batch) % CLASSES
    trainers = {
        name: _trainer(make(options.units), options.steps, compiled)
        for name, make in VARIANTS.items()
    }
    for train in trainers.values():
        for _ in range(2):
            train(x, y)
    times: dict[str, list[float]] = {name: [] for name in trainers}
    for _ in range(options.rounds):
        for name, train in trainers.items():
            start = time.perf_counter()
            train(x, y).numpy()
            times[name].append(time.perf_counter() - start)
    base = times["keras.layers.LSTM"]
    return [
        (name, taken, [a / b for a, b in zip(taken, base, strict=True)])
        for name, taken in times.items()
    ]


def _trainer(
    layer: keras.Layer, steps: int, compiled: bool
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Returns one compiled training step of a model around `layer`."""
    model = keras.Sequential([
        keras.Input((steps, FEATURES)),
        layer,
        keras.layers.Dense(CLASSES),
    ])
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(jit_compile=compiled, autograph=False)
    def train(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return value

    return train


if __name__ == "__main__":
    main()
