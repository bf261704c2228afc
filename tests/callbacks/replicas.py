"""Run as a script by `test_replicas.py`: TensorFlow splits the CPU at start-up only.

Prints a JSON object with what two replicas have after a training with a bad batch.
"""

import json
import sys
import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tfsafe
from tfsafe import NumericsError, callbacks
from tfsafe.optimizers import SafeOptimizer

DEVICES = ["CPU:0", "CPU:1"]


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    warnings.simplefilter("ignore")
    found = {"monitor": monitor(), "rollback": rollback(), "finding": finding()}
    found["unbuilt"] = [unbuilt(is_checked) for is_checked in (True, False)]
    json.dump(found, sys.stdout)


def monitor() -> dict:
    """Skips the second of three steps, which is bad on replica 1 only."""
    watch = callbacks.NumericsMonitor()
    model = train(guarded, watch)
    clean = train(guarded, watch, batches=[0, 2])
    mean = model.layers[0].moving_mean.numpy()
    expected = clean.layers[0].moving_mean.numpy()
    return {
        "nonfinite_steps": model.optimizer.nonfinite_steps,
        "is_finite": is_finite(model),
        "mae": mae(model),
        "clean_mae": mae(clean),
        "error": float(np.abs(mean / expected - 1).max()),
    }


def rollback() -> dict:
    """Goes back behind the same step, with a plain optimizer."""
    callback = callbacks.RollbackOnNonFinite(save_freq=1)
    model = train(keras.optimizers.SGD, callback)
    return {"rollbacks": callback.rollbacks, "is_finite": is_finite(model)}


def finding() -> dict:
    """Stops at the same step, whose bad row is row 5 of 8 and row 1 of replica 1."""
    found: dict[str, Any] = {}
    try:
        train(keras.optimizers.SGD, callbacks.NumericsMonitor(policy="raise"))
    except NumericsError as error:
        first = error.findings[0]
        bad = np.flatnonzero(np.isnan(error.inputs["x"]).any(1))
        found = {"row": first.row, "index": first.index, "bad": bad.tolist()}
        found |= {"reached": error.reached, "origin": first.origin}
        try:
            error.save("never.zip")
        except ValueError as refusal:
            found["refusal"] = str(refusal)
    return found


def unbuilt(is_checked: bool) -> list[float]:
    """Predicts, and trains another model, where the first step makes all variables."""
    found = []
    for is_trained in (False, True):
        model = compiled(keras.optimizers.Adam)
        if is_checked:
            tfsafe.checked(model)
        x = np.linspace(0, 1, 16, dtype="float32").reshape(8, 2)
        if is_trained:
            model.fit(x, x[:, :1], verbose=0)
        found.append(float(np.sum(model.predict(x, verbose=0))))
    return found


def guarded() -> SafeOptimizer:
    return SafeOptimizer("sgd", "skip")


def train(optimizer: Any, callback: Any, batches: Any = (0, 1, 2)) -> keras.Model:
    """Trains with `model.fit` on batches of 8, of which 4 go to each replica."""
    model = compiled(optimizer, keras.Input((2,)))
    x = np.random.default_rng(0).normal(1, 1, size=(3, 8, 2)).astype("float32")
    x[1, 5] = np.nan
    x = x[list(batches)].reshape(-1, 2)
    y = np.ones((len(x), 1), "float32")
    model.fit(x, y, batch_size=8, shuffle=False, verbose=0, callbacks=[callback])
    return model


def compiled(optimizer: Any, *inputs: Any) -> keras.Model:
    # TensorFlow 2.16 fails in `fit` if anything is reduced before Adam, unless so.
    reduction = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=reduction)
    keras.utils.set_random_seed(0)
    with strategy.scope():
        layers = [*inputs, keras.layers.BatchNormalization()]
        model = keras.Sequential([*layers, keras.layers.Dense(1)])
        model.compile(optimizer(), "mse", metrics=["mae"])
    return model


def mae(model: keras.Model) -> float:
    return float(model.get_metrics_result()["mae"])


def is_finite(model: keras.Model) -> bool:
    return all(bool(np.isfinite(w).all()) for w in model.get_weights())


if __name__ == "__main__":
    main()
