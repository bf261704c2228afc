"""`NumericsMonitor` in `fit`: what each level costs, and what each response does.

The first table times an epoch of a small convnet without a check and with each level.
Then one image in 2048 is black. The model divides by its norm, and one batch ends the
training, or costs it one step, as `policy` says.

    python examples/check_fit.py
    python examples/check_fit.py --epochs 10 --jit
"""

import argparse
import time
import warnings

import keras
import numpy as np
import tensorflow as tf

import tfsafe
from tfsafe.callbacks import NumericsMonitor

LEVELS = [None, "watch", "domain", "full"]
RESPONSES = ["raise", "skip", "stop"]


def contrast(images):
    """Divides each image by its norm."""
    norm = tf.sqrt(tf.reduce_sum(tf.square(images), axis=[1, 2, 3], keepdims=True))
    return images / norm


def build(jit, seed=0):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([
        keras.Input((16, 16, 1)),
        keras.layers.Lambda(contrast, output_shape=(16, 16, 1)),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(2),
    ])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, jit_compile=jit)
    return model


def images(black=None):
    """Returns images of stripes, along or across; one of them black if asked for."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 2048)
    x = random.normal(size=(2048, 16, 16, 1)) + np.arange(16)[:, np.newaxis] % 2
    x[labels == 1] = x[labels == 1].swapaxes(1, 2)
    if black is not None:
        x[black] = 0.0
    return x.astype("float32"), labels


class Stopwatch(keras.callbacks.Callback):
    """Notes the seconds of each epoch."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.perf_counter() - self.start)


def costs(epochs, jit):
    """Prints the seconds of the fastest epoch at each level.

    The levels take turns, epoch by epoch, so that a busy machine slows down all.
    """
    x, y = images()
    runs = {}
    for level in LEVELS:
        monitors = [NumericsMonitor(checks=level)] if level else []
        runs[level] = build(jit), [*monitors, Stopwatch()]
    for _ in range(epochs):
        for model, callbacks in runs.values():
            model.fit(x, y, verbose=0, callbacks=callbacks)
    print(f"{'checks':<10}{'first epoch':>13}{'best after':>13}{'ratio':>8}")
    seconds = {level: callbacks[-1].seconds for level, (_, callbacks) in runs.items()}
    for level, (first, *others) in seconds.items():
        best, plain = min(others), min(seconds[None][1:])
        print(f"{level or 'none':<10}{first:>12.2f}s{best:>12.3f}s{best / plain:>8.2f}")


def responses(jit):
    """Prints what happens to a training with one black image."""
    x, y = images(black=1000)
    for response in RESPONSES:
        print(f'\n--- NumericsMonitor(policy="{response}") ---\n')
        model = build(jit)
        monitor = NumericsMonitor(policy=response)
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            try:
                model.fit(x, y, epochs=2, verbose=0, shuffle=False, callbacks=[monitor])
            except tfsafe.NumericsError as error:
                print(f"NumericsError: {error.explain()}\n")
        for warning in raised:
            if issubclass(warning.category, RuntimeWarning):
                print(f"{warning.category.__name__}: {warning.message}\n")
        loss = model.evaluate(*images(), verbose=0)
        print(
            f"steps skipped: {monitor.nonfinite_steps}; steps done: "
            f"{int(model.optimizer.iterations.numpy())} of 128; "
            f"loss without the black image: {loss:.3f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--jit", action="store_true", help="compile by XLA")
    options = parser.parse_args()
    costs(max(2, options.epochs), options.jit)
    responses(options.jit)


if __name__ == "__main__":
    main()
