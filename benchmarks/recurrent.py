"""Whole training steps of the recurrent layers, against `keras.layers.LSTM` and `GRU`.

    python -m benchmarks.recurrent [--steps 200] [--batch 32] [--units 64] [--rounds 25]

All variants run in one process and take turns, so that whatever else the machine does
hits each of them; the table has the median of the ratio of each round, with the
quartiles.
"""

import argparse
import math
import os
import statistics
from collections.abc import Callable, Sequence
from functools import partial

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

from benchmarks import _models, _timing
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
        times = _measure(options, compiled)
        for name in times:
            low, middle, high = _timing.quartiles(times, name, "keras.layers.LSTM")
            ms = 1e3 * statistics.median(times[name])
            print(f"{name:<38}{ms:>8.1f}{middle:>8.2f}  {low:.2f}-{high:.2f}")


def _measure(options: argparse.Namespace, compiled: bool) -> dict[str, list[float]]:
    """Returns the seconds of each variant's step, for each round."""
    x = tf.random.stateless_normal((options.batch, options.steps, FEATURES), [1, 2])
    y = tf.range(options.batch) % CLASSES
    runs = {
        name: partial(_trainer(make(options.units), options.steps, compiled), x, y)
        for name, make in VARIANTS.items()
    }
    return _timing.side_by_side(runs, options.rounds, at_most=math.inf)


def _trainer(
    layer: keras.Layer, steps: int, compiled: bool
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Returns one compiled training step of a model around `layer`."""
    model = keras.Sequential([
        keras.Input((steps, FEATURES)),
        layer,
        keras.layers.Dense(CLASSES),
    ])
    return _models.train_step(model, compiled=compiled)


if __name__ == "__main__":
    main()
