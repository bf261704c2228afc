"""A small training with one bad batch, as the tests of the callbacks need it."""

from typing import Any

import keras
import numpy as np
import pytest

BATCH = 4
# Batch 2 of 5 holds a NaN.
BAD_BATCH = 2
MODES = {
    "eager": {"run_eagerly": True},
    "graph": {"run_eagerly": False, "jit_compile": False},
    "xla": {"run_eagerly": False, "jit_compile": True},
}


def clean_data() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(5 * BATCH, 3)).astype("float32")
    return x, x.sum(-1, keepdims=True)


def data_with_a_bad_batch() -> tuple[np.ndarray, np.ndarray]:
    x, y = clean_data()
    x[BAD_BATCH * BATCH + 1, 0] = np.nan
    return x, y


def data_without_the_bad_batch() -> tuple[np.ndarray, np.ndarray]:
    x, y = clean_data()
    kept = np.arange(len(x)) // BATCH != BAD_BATCH
    return x[kept], y[kept]


def compiled(optimizer: Any = "sgd", *layers: keras.layers.Layer, **options: Any):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([
        keras.Input((3,)),
        *layers,
        keras.layers.Dense(1, name="head"),
    ])
    model.compile(optimizer, **{"loss": "mse", **options})
    return model


def eager(*arguments: Any, **options: Any) -> keras.Model:
    """Makes a model as `compiled` does, for tests where the mode plays no part."""
    return compiled(*arguments, **{"run_eagerly": True, **options})


def fit(model: keras.Model, data: Any, *callbacks: Any, **options: Any) -> dict:
    options = {"batch_size": BATCH, "shuffle": False, "verbose": 0, **options}
    return model.fit(*data, callbacks=list(callbacks), **options).history


def warns(match: str, category: type[Warning] = RuntimeWarning) -> Any:
    """Expects a warning, as `pytest.warns` does."""
    return pytest.warns(category, match=match)


def is_finite(model: keras.Model) -> bool:
    return all(bool(np.isfinite(w).all()) for w in model.get_weights())


class Script(keras.callbacks.Callback):
    """Replaces a monitored value by a scripted one, and logs the batches."""

    def __init__(self, values: Any = (), name: str = "val_loss"):
        super().__init__()
        self.values, self.name = list(values), name
        self.batches: list[dict] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches.append(dict(logs))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if self.values:
            logs[self.name] = self.values[epoch]


class BreakWeights(keras.callbacks.Callback):
    """Writes NaN into the weights after one epoch, and mends them after the next."""

    def __init__(self, epoch: int):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == self.epoch + 1:
            self.model.set_weights(self.good)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch == self.epoch:
            self.good = self.model.get_weights()
            self.model.set_weights([w * np.nan for w in self.good])
