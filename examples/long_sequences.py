"""LSTMs on sequences of 576 steps: what turns them into NaN, and what prevents it.

The data are scikit-learn's 1,797 handwritten digits in windows of three columns, each
standardised as people do, `(x - mean) / std`, and read pixel by pixel, four steps to a
pixel. Six images hold a window without ink, 0/0: one of them in a batch makes every
weight NaN, whatever the layer, and clipping does not help. The wrapped optimizer
repairs these steps. Layer normalisation and recurrent dropout have another purpose,
small gradients and less overfitting; they do not protect against faulty data.

    python examples/long_sequences.py    # about two minutes
    python examples/long_sequences.py --seeds 0 1 2 --steps 1000
    python examples/long_sequences.py --learning-rate 0.3
"""

import argparse
import dataclasses
import math
import pathlib
import time

import keras
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tfsafe.layers import LayerNormLSTM
from tfsafe.optimizers import SafeOptimizer

BATCH_SIZE = 32
UNITS = 32


def adam(rate, **options):
    return keras.optimizers.Adam(rate, **options)


def safe_adam(rate, **options):
    return SafeOptimizer(keras.optimizers.Adam(rate), **options)


def lstm():
    return keras.layers.LSTM(UNITS)


def normalized(**options):
    return LayerNormLSTM(UNITS, **options)


# For each run its recurrent layer, its optimizer, and the options of the two.
VARIANTS = {
    "LSTM": (lstm, {}, adam, {}),
    "LSTM, clipped": (lstm, {}, adam, {"global_clipnorm": 1.0}),
    "LSTM, safe": (lstm, {}, safe_adam, {}),
    "LSTM, safe, clipped": (lstm, {}, safe_adam, {"global_clipnorm": 1.0}),
    "LayerNormLSTM": (normalized, {}, adam, {}),
    "LayerNormLSTM, safe": (normalized, {}, safe_adam, {}),
    "LayerNormLSTM, safe, dropout": (
        normalized,
        {"recurrent_dropout": 0.1},
        safe_adam,
        {},
    ),
}


@dataclasses.dataclass
class Run:
    """The results of one training run."""

    name: str
    seed: int
    losses: np.ndarray
    nonfinite_steps: int
    accuracy: float
    finite_weights: bool
    seconds: float

    @property
    def end(self):
        """The step at which the loss became NaN, or "survives"."""
        nonfinite = np.flatnonzero(~np.isfinite(self.losses))
        return "survives" if self.finite_weights else f"NaN at {nonfinite[0]}"


class BatchLoss(keras.metrics.Metric):
    """The loss of the last batch alone, where Keras shows a running mean."""

    def __init__(self):
        super().__init__(name="batch_loss")
        self.last = self.add_variable((), "zeros", name="last")

    def update_state(self, y_true, y_pred, sample_weight=None):
        losses = keras.losses.sparse_categorical_crossentropy(
            y_true, y_pred, from_logits=True
        )
        self.last.assign(keras.ops.mean(losses))

    def result(self):
        return self.last


class Losses(keras.callbacks.Callback):
    """Keeps the loss of every batch."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(logs["batch_loss"])


def load():
    """Returns sequences of shape (images, 576, 1) and labels, for training and test."""
    digits = load_digits()
    windows = [digits.images[:, :, t : t + 3].reshape(-1, 24) for t in range(6)]
    windows = np.stack(windows, axis=1).astype("float32")
    mean = windows.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        windows = (windows - mean) / windows.std(axis=-1, keepdims=True)
    sequences = np.repeat(windows.reshape(-1, 144, 1), 4, axis=1)
    return train_test_split(
        sequences,
        digits.target,
        test_size=0.2,
        random_state=0,
        stratify=digits.target,
    )


def batches(sequences, labels, steps, seed):
    """Returns `steps` shuffled batches, the same for the same seed."""
    dataset = tf.data.Dataset.from_tensor_slices((sequences, labels))
    dataset = dataset.shuffle(len(labels), seed=seed).repeat()
    return dataset.batch(BATCH_SIZE, drop_remainder=True).take(steps)


def build(name, steps, learning_rate, seed):
    """Returns the model and the optimizer of a variant, the same for the same seed."""
    layer, layer_options, optimizer, options = VARIANTS[name]
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([
        keras.Input((576, 1)),
        layer(**layer_options),
        keras.layers.Dense(10),
    ])
    rate = keras.optimizers.schedules.CosineDecay(learning_rate, steps)
    return model, optimizer(rate, **options)


def train(name, data, steps, learning_rate, seed):
    """Fits one variant and returns what it was worth."""
    sequences, unseen, labels, truths = data
    model, optimizer = build(name, steps, learning_rate, seed)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy", BatchLoss()], jit_compile=True)
    losses = Losses()
    start = time.perf_counter()
    dataset = batches(sequences, labels, steps, seed)
    model.fit(dataset, shuffle=False, verbose=0, callbacks=[losses])
    seconds = time.perf_counter() - start
    logits = model.predict(unseen, verbose=0)
    return Run(
        name,
        seed,
        np.array(losses.losses),
        # Without the wrapper, nothing counts the steps whose gradient alone is NaN.
        int(getattr(optimizer, "nonfinite_steps", np.sum(~np.isfinite(losses.losses)))),
        float(np.mean(logits.argmax(-1) == truths)),
        all(np.isfinite(weight).all() for weight in model.get_weights()),
        seconds,
    )


HEADER = (
    f"{'run':<29}{'seed':>5}{'accuracy':>10}{'non-finite':>11}{'weights':>13}"
    f"{'time':>10}"
)


def row(run):
    """Returns the line of the table for one run."""
    return (
        f"{run.name:<29}{run.seed:>5}{run.accuracy:>10.2f}{run.nonfinite_steps:>11}"
        f"{run.end:>13}{run.seconds:>8.1f} s"
    )


def draw(runs, path):
    """Draws the loss of each variant for the first seed, and all accuracies."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 5.2), width_ratios=[2, 1], layout="constrained"
    )
    figure.suptitle("LSTMs on 576 steps, with a NaN in six of 1,797 sequences")
    names = list(dict.fromkeys(run.name for run in runs))
    colours = dict(zip(names, plt.get_cmap("tab10").colors, strict=False))
    for run in runs:
        if run.seed == runs[0].seed:
            draw_losses(left, run, colours[run.name])
        place = len(names) - 1 - names.index(run.name)
        marker = "o" if run.finite_weights else "X"
        right.plot(run.accuracy, place, marker, color=colours[run.name], markersize=9)
    left.set_yscale("log")
    for axis in ("major", "minor"):
        getattr(left.yaxis, f"set_{axis}_formatter")("{x:.3g}")
    left.set_xlabel("training step")
    left.set_ylabel(f"loss, mean of up to 25 steps (seed {runs[0].seed})")
    left.legend(loc="best", fontsize=9)
    right.axvline(0.1, color="gray", linestyle=":")
    right.text(0.12, len(names) - 0.45, "chance", color="gray")
    right.set_yticks(range(len(names)), reversed(names))
    right.set_ylim(-0.6, len(names) - 0.1)
    right.set_xlim(0, 1)
    right.set_xlabel("accuracy on unseen digits (X: NaN)")
    figure.savefig(path, dpi=120)
    figure.savefig(pathlib.Path(path).with_suffix(".svg"))
    plt.close(figure)


def draw_losses(axes, run, colour):
    """Draws the running mean of one run, without non-finite steps, up to its end."""
    steps = np.flatnonzero(np.isfinite(run.losses))
    losses = run.losses[steps]
    end = "" if run.finite_weights else f": {run.end}"
    # The first means are of fewer steps, so that runs with equal losses start equal.
    sums = np.cumsum(np.concatenate([[0.0], losses]))
    last = np.arange(1, len(sums))
    first = np.maximum(0, last - 25)
    smooth = (sums[last] - sums[first]) / (last - first)
    axes.plot(steps, smooth, color=colour, label=f"{run.name}{end}")
    if not run.finite_weights:
        axes.plot(steps[-1], smooth[-1], "X", color=colour, markersize=11)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--runs", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    args = parser.parse_args()

    data = load()
    runs = []
    print(HEADER)
    for seed in args.seeds:
        for name in args.runs:
            runs.append(train(name, data, args.steps, args.learning_rate, seed))
            print(row(runs[-1]), flush=True)
            if len(runs) == 1:
                total = len(args.seeds) * len(args.runs)
                # The first has the fewest operations; all take twice that on average.
                minutes = math.ceil(2 * total * runs[0].seconds / 60)
                plural = "s" if minutes > 1 else ""
                print(f"({total} runs, about {minutes} minute{plural})", flush=True)
    draw(runs, "long_sequences.png")
    print("Chance is 0.10. The figure: long_sequences.png")


if __name__ == "__main__":
    matplotlib.use("Agg")
    main()
