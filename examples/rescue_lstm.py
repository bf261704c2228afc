"""An LSTM whose weights real data turns into NaN, and three ways to save it.

The data are scikit-learn's 1,797 handwritten digits, read from left to right in six
windows of three columns. Each window is standardised as people do, `(x - mean) / std`.
Six images hold a window without ink: its standard deviation is 0, the quotient 0/0,
and one such image in a batch makes every weight NaN. No NaN is planted.

    python examples/rescue_lstm.py                 # or: python -m tfsafe demo
    python examples/rescue_lstm.py --seeds 0 1 2   # the figures of the README
"""

import argparse
import dataclasses
import os
import pathlib
import time

import keras
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import tfsafe
from tfsafe.callbacks import NumericsMonitor
from tfsafe.optimizers import SafeOptimizer

BATCH_SIZE = 32


class Standardize(keras.layers.Layer):
    """Standardises each window, as people write it."""

    def call(self, x):
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        std = tf.math.reduce_std(x, axis=-1, keepdims=True)
        return (x - mean) / std


class SafeStandardize(keras.layers.Layer):
    """The same with the safe division: a window without ink stays all zero."""

    def call(self, x):
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        std = tf.math.reduce_std(x, axis=-1, keepdims=True)
        return tfsafe.ops.divide(x - mean, std)


@dataclasses.dataclass(frozen=True)
class Digits:
    """Windows of shape (images, 6, 24) and labels, in a fixed order for every run."""

    images: np.ndarray
    train: np.ndarray
    test: np.ndarray
    labels: np.ndarray

    def windows(self, index):
        columns = [self.images[index, :, t : t + 3].reshape(-1, 24) for t in range(6)]
        return np.stack(columns, axis=1)


@dataclasses.dataclass
class Run:
    """The results of one training run."""

    name: str
    seed: int
    losses: np.ndarray
    nonfinite_steps: np.ndarray
    accuracy: float
    finite_weights: bool
    seconds: float


class LossPerStep(keras.callbacks.Callback):
    """Notes each batch's own loss, which Keras shows only as a running mean."""

    def __init__(self, batch_sizes):
        super().__init__()
        self.batch_sizes = batch_sizes
        self.losses = []

        self.nonfinite = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.total = self.seen = 0

    def on_train_batch_end(self, batch, logs=None):
        # The mean of a plain run is NaN from its first non-finite batch on. That of a
        # monitored run skips non-finite batches, and the monitor counts them.
        nonfinite = logs.get("nonfinite_steps", 0)
        if nonfinite > self.nonfinite or not np.isfinite(logs["loss"]):
            self.losses.append(np.nan)
        else:
            self.seen += self.batch_sizes[batch]
            total = logs["loss"] * self.seen
            self.losses.append(total - self.total)
            self.losses[-1] /= self.batch_sizes[batch]
            self.total = total
        self.nonfinite = nonfinite


def load(seed):
    """Returns the digits, four fifths of them for training, in an order by the seed."""
    digits = load_digits()
    train, test = train_test_split(
        np.arange(len(digits.target)),
        test_size=0.2,
        random_state=0,
        stratify=digits.target,
    )
    train = np.random.default_rng(seed).permutation(train)
    return Digits(digits.images.astype("float32"), train, test, digits.target)


def build(standardize, optimizer, seed):
    """Returns the compiled model, the same weights for the same seed."""
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([
        keras.Input((6, 24)),
        standardize,
        keras.layers.LSTM(32),
        keras.layers.Dense(10),
    ])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


def train(name, model, data, epochs, seed, callbacks=()):
    """Fits the model and returns what it was worth."""
    count = len(data.train)
    sizes = [min(BATCH_SIZE, count - i) for i in range(0, count, BATCH_SIZE)]
    losses = LossPerStep(sizes)
    start = time.perf_counter()
    model.fit(
        data.windows(data.train),
        data.labels[data.train],
        batch_size=BATCH_SIZE,
        epochs=epochs,
        # The images are shuffled already. One order for the four runs tells them
        # apart by what they do with a non-finite batch, and by nothing else.
        shuffle=False,
        callbacks=[*callbacks, losses],
    )
    seconds = time.perf_counter() - start
    logits = model.predict(data.windows(data.test), verbose=0)
    steps = np.array(losses.losses)
    return Run(
        name,
        seed,
        steps,
        np.flatnonzero(np.isnan(steps)),
        float(np.mean(logits.argmax(-1) == data.labels[data.test])),
        all(np.isfinite(weight).all() for weight in model.get_weights()),
        seconds,
    )


def find(data, seed):
    """Trains under the checks until they stop; returns the image and the error."""
    model = tfsafe.checked(build(Standardize(), keras.optimizers.Adam(5e-3), seed))
    try:
        model.fit(
            data.windows(data.train),
            data.labels[data.train],
            batch_size=BATCH_SIZE,
            shuffle=False,
        )
    except tfsafe.NumericsError as error:
        print(f"\n\nNumericsError: {error}\n")
        step, row = int(model.optimizer.iterations.numpy()), error.findings[0].row
        culprit = data.train[step * BATCH_SIZE + row]
        print(
            f"Row {row} of batch {step} is image {culprit} of the data set, a digit "
            f"{data.labels[culprit]}. The model is as it was before that batch."
        )
        return culprit, error
    raise AssertionError("The checks found nothing.")


def rescue(epochs, seed):
    """Trains the four variants, with the same seed, data and steps."""
    data = load(seed)

    def adam():
        return keras.optimizers.Adam(5e-3)

    headline(f"Act 1. Plain Keras (seed {seed})")
    plain = build(Standardize(), adam(), seed)
    runs = [train("plain Keras", plain, data, epochs, seed)]

    headline(f"Act 2. Found: the same script under the checks (seed {seed})")
    culprit, error = find(data, seed)

    headline(f"Act 3a. Saved by the wrapped optimizer alone (seed {seed})")
    wrapped = build(Standardize(), SafeOptimizer(adam()), seed)
    monitor = [NumericsMonitor()]
    runs += [train("SafeOptimizer", wrapped, data, epochs, seed, monitor)]

    headline(f"Act 3b. Saved by the safe division alone (seed {seed})")
    divided = build(SafeStandardize(), adam(), seed)
    runs += [train("ops.divide", divided, data, epochs, seed)]

    headline(f"Act 3c. Both (seed {seed})")
    both = build(SafeStandardize(), SafeOptimizer(adam()), seed)
    monitor = [NumericsMonitor()]
    runs += [train("both", both, data, epochs, seed, monitor)]
    return runs, data, culprit, error


def headline(text):
    print(f"\n=== {text} ===")


def table(runs):
    """Returns the comparison as text."""
    lines = [
        f"{'run':<15}{'seed':>5}{'accuracy':>10}{'non-finite':>16}"
        f"{'weights':>9}{'seconds':>9}"
    ]
    for run in runs:
        count = f"{len(run.nonfinite_steps)} of {len(run.losses)}"
        weights = "finite" if run.finite_weights else "NaN"
        lines.append(
            f"{run.name:<15}{run.seed:>5}{run.accuracy:>10.2f}{count:>16}"
            f"{weights:>9}{run.seconds:>9.1f}"
        )
    return "\n".join(lines)


# Colour and width of each run's line.
STYLES = {
    "plain Keras": ("#c0392b", 3),
    "SafeOptimizer": ("#2471a3", 2),
    "ops.divide": ("#f0b429", 5),
    "both": ("#1e8449", 2),
}


def draw(runs, data, culprit, path):
    """Draws the loss of each run per step, and the digit that did it."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 5.2), width_ratios=[3.4, 1], layout="constrained"
    )
    figure.suptitle("One image with an empty window ends an LSTM, or costs it one step")
    for rank, run in enumerate(runs):
        draw_losses(left, run, rank)
    left.set_yscale("log")
    left.yaxis.set_major_formatter("{x:g}")
    # Room below the curves for the ticks.
    left.set_ylim(bottom=left.get_ylim()[0] / 3)
    left.set_xlabel("training step")
    left.set_ylabel("loss of the batch")
    left.legend(loc="upper right", title="accuracy on unseen digits")
    draw_digit(right, data, culprit)
    figure.savefig(path, dpi=120)
    figure.savefig(pathlib.Path(path).with_suffix(".svg"))
    plt.close(figure)


def draw_losses(axes, run, rank):
    """Draws one run: each batch thinly, a running mean, ticks at non-finite steps."""
    colour, thickness = STYLES[run.name]
    good = np.flatnonzero(np.isfinite(run.losses))
    losses = run.losses[good]
    # Wide lines lie under narrow ones, and all under that which ends, so that none is
    # hidden.
    order = 2 + 1 / thickness if run.finite_weights else 4
    axes.plot(good, losses, color=colour, alpha=0.15, linewidth=0.7)
    # Of the steps so far, so that runs with equal losses start equal.
    smooth = [losses[max(0, i - 24) : i + 1].mean() for i in range(len(losses))]
    label = f"{run.name}: {run.accuracy:.2f}"
    axes.plot(
        good, smooth, color=colour, linewidth=thickness, label=label, zorder=order
    )
    # One row of marks a run, along the lower edge: each is a non-finite step.
    height = 0.02 + 0.035 * rank
    below = axes.get_xaxis_transform()
    heights = np.full(len(run.nonfinite_steps), height)
    axes.plot(run.nonfinite_steps, heights, "|", color=colour, transform=below)
    axes.annotate(
        f"{len(run.nonfinite_steps)} non-finite steps",
        (1.0, height),
        xycoords="axes fraction",
        xytext=(4, -3),
        textcoords="offset points",
        color=colour,
        fontsize=8,
        annotation_clip=False,
    )
    if not run.finite_weights:
        axes.plot(good[-1], smooth[-1], "X", color=colour, markersize=10, zorder=order)
        axes.annotate(
            f"step {run.nonfinite_steps[0]}: NaN, and every weight with it, for good",
            (good[-1], smooth[-1]),
            xytext=(0.08, 0.95),
            textcoords="axes fraction",
            color=colour,
            arrowprops={"arrowstyle": "->", "color": colour},
        )


def draw_digit(axes, data, culprit):
    """Draws the image and frames its windows without ink."""
    axes.imshow(data.images[culprit], cmap="gray_r")
    for window in np.flatnonzero(np.ptp(data.windows([culprit])[0], axis=-1) == 0):
        axes.add_patch(
            matplotlib.patches.Rectangle(
                (window - 0.5, -0.5), 3, 8, fill=False, edgecolor="#c0392b", linewidth=3
            )
        )
    axes.set_title(f"image {culprit}, a digit {data.labels[culprit]}", fontsize=11)
    axes.set_xlabel("framed: a window without ink,\nstandard deviation 0, so 0 / 0")
    axes.set_xticks([])
    axes.set_yticks([])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--figure", default="rescue_lstm.png", help="where to draw")
    parser.add_argument(
        "--page", default="rescue_lstm.html", help="page of the finding"
    )
    options = parser.parse_args(argv)
    matplotlib.use("Agg")
    acts = [rescue(options.epochs, seed) for seed in options.seeds]
    print("\n" + table([run for runs, *_ in acts for run in runs]))
    runs, data, culprit, error = acts[0]
    draw(runs, data, culprit, options.figure)
    error.to_html(options.page)
    print(f"\nThe picture is in {options.figure}.")
    print(f"The page of the finding is {os.path.abspath(options.page)}")


if __name__ == "__main__":
    main()
