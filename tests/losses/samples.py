"""What the tests of the cross entropies share."""

import keras
import numpy as np
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close

INF, NAN = float("inf"), float("nan")
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(4, 3, 5)).astype("float32")
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
INDICES = RNG.integers(5, size=(4, 3))
ROWS = np.eye(5, dtype="float32")[INDICES]
WEIGHTS = RNG.uniform(0.5, 2, size=(4, 3)).astype("float32")

KINDS = ["sparse", "dense", "binary"]
PEERS = [
    ("sparse", INDICES, keras.losses.SparseCategoricalCrossentropy),
    ("dense", ROWS, keras.losses.CategoricalCrossentropy),
    ("binary", ROWS, keras.losses.BinaryCrossentropy),
]


def close(got, expected, ulps=4.0, **options):
    """Compares in ulps with numbers that are broadcast."""
    got = np.asarray(got)
    assert_close(got, np.broadcast_to(expected, got.shape), ulps, **options)


def value_and_slope(loss, y_true, y_pred, mode, **options):
    value, (slope,) = modes.value_and_gradients(
        lambda x: loss(tf.constant(y_true), x, **options), [tf.constant(y_pred)], mode
    )
    return value, slope
