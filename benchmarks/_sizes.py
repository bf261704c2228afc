"""Sizes of the models that are timed in Keras, torch and JAX, and their batches."""

import numpy as np

CLASSES = 10
# Units of the hidden layers of the MLP, and of the LSTM.
HIDDEN, UNITS = (256, 128), 64
# Of a batch: rows and features; rows, steps and features.
SHAPES = {"MLP": (128, 784), "LSTM": (32, 100, 16)}


def batch(shape):
    """Returns a batch of noise, and its labels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).astype("float32")
    return x, rng.integers(0, CLASSES, shape[0])
