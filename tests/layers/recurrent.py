"""Cases of the recurrent layers, and NumPy references written from their equations.

The references take complex numbers as well, so that slopes come from complex steps,
which do not cancel: `f(x + 1e-30j).imag / 1e-30` is exact to the last digits.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import layers

_STEP = 1e-30
# Why more than 4 ulps.
STEPS = "sums over features and steps"

BOTH = [layers.LayerNormLSTM, layers.LayerNormGRU]
KINDS = [*BOTH, partial(layers.LayerNormLSTM, normalize_state="stored")]
KINDS += [partial(kind, fused=True) for kind in BOTH]

both = pytest.mark.parametrize("kind", BOTH)
every_kind = pytest.mark.parametrize(
    "kind", KINDS, ids=["lstm", "gru", "lstm-stored", "lstm-fused", "gru-fused"]
)

INPUTS = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float32")
# A whole row, leading steps, trailing steps, and one in the middle.
MASK = np.array([[0, 0, 0, 0, 0], [0, 1, 1, 0, 1], [1, 1, 1, 0, 0]], bool)


def layer_norm(x, gain, shift, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return gain * centred / np.sqrt(variance + epsilon) + shift


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(cell, x, weights, dropped=None):
    """Returns the outputs of an LSTM, of shape (batch, steps, units)."""
    units, eps = cell.units, cell.epsilon
    h = c = np.zeros((len(x), units))
    outputs = []
    for t in range(x.shape[1]):
        from_x, from_h = x[:, t] @ weights["kernel"], h @ weights["recurrent_kernel"]
        if cell.fused:
            from_x = layer_norm(
                from_x, weights["input_gain"], weights["input_shift"], eps
            )
            from_h = layer_norm(
                from_h, weights["recurrent_gain"], weights["recurrent_shift"], eps
            )
        total = from_x + from_h
        if "bias" in weights:
            total = total + weights["bias"]
        i, f, g, o = np.split(total, 4, -1)
        if cell.layer_norm and not cell.fused:
            i, f, g, o = (
                layer_norm(z, gain, shift, eps)
                for z, gain, shift in zip(
                    (i, f, g, o),
                    weights["gate_gain"],
                    weights["gate_shift"],
                    strict=True,
                )
            )
        g = np.tanh(g)
        if dropped is not None:
            g = g * (dropped[t] if dropped.ndim == 3 else dropped)
        c = sigmoid(f + cell.forget_bias) * c + sigmoid(i) * g
        inner = c
        if cell.layer_norm:
            inner = layer_norm(c, weights["state_gain"], weights["state_shift"], eps)
        h = sigmoid(o) * np.tanh(inner)
        if cell.normalize_state == "stored":
            c = inner
        outputs.append(h)
    return np.stack(outputs, 1)


def gru(cell, x, weights, dropped=None):
    """Returns the outputs of a GRU, of shape (batch, steps, units)."""
    eps = cell.epsilon
    h = np.zeros((len(x), cell.units))
    outputs = []
    for t in range(x.shape[1]):
        from_x, from_h = x[:, t] @ weights["kernel"], h @ weights["recurrent_kernel"]
        if cell.fused:
            from_x = layer_norm(
                from_x, weights["input_gain"], weights["input_shift"], eps
            )
            from_h = layer_norm(
                from_h, weights["recurrent_gain"], weights["recurrent_shift"], eps
            )
        if "bias" in weights:
            from_x, from_h = from_x + weights["bias"][0], from_h + weights["bias"][1]
        xz, xr, xg = np.split(from_x, 3, -1)
        hz, hr, hg = np.split(from_h, 3, -1)
        z, r = xz + hz, xr + hr
        if cell.layer_norm and not cell.fused:
            gain, shift = weights["gate_gain"], weights["gate_shift"]
            z = layer_norm(z, gain[0], shift[0], eps)
            r = layer_norm(r, gain[1], shift[1], eps)
        g = xg + sigmoid(r) * hg
        if cell.layer_norm and not cell.fused:
            g = layer_norm(
                g, weights["candidate_gain"], weights["candidate_shift"], eps
            )
        g = np.tanh(g)
        if dropped is not None:
            g = g * (dropped[t] if dropped.ndim == 3 else dropped)
        h = sigmoid(z) * h + (1 - sigmoid(z)) * g
        outputs.append(h)
    return np.stack(outputs, 1)


REFERENCES: dict[type, Callable[..., np.ndarray]] = {
    layers.LayerNormLSTM: lstm,
    layers.LayerNormGRU: gru,
}


def reference(layer, x, weights, dropped=None):
    return REFERENCES[type(layer)](layer.cell, x, weights, dropped)


def randomise(layer: Any, seed: int = 0) -> dict[str, np.ndarray]:
    """Gives every weight of a built layer random values, and returns them by name."""
    generator = np.random.default_rng(seed)
    values = {}
    for weight in layer.trainable_weights:
        value = generator.normal(size=weight.shape) * 0.7
        if weight.name.endswith("gain"):
            value += 1
        weight.assign(value)
        values[weight.name] = np.asarray(tf.cast(weight, tf.float64))
    return values


def slopes(function: Callable[..., np.ndarray], args: list[np.ndarray]) -> list[Any]:
    """Returns the gradient of a real function in each of its arguments."""
    result = []
    for k, arg in enumerate(args):
        slope = np.empty(arg.shape)
        for index in np.ndindex(*arg.shape):
            moved = arg.astype(complex)
            moved[index] += 1j * _STEP
            value = function(*args[:k], moved, *args[k + 1 :])
            slope[index] = value.imag / _STEP
        result.append(slope)
    return result


def run(
    layer: Any, x: Any, mode: str, upstream: Any = None, **kwargs: Any
) -> tuple[Any, list[Any]]:
    """Calls `layer` and differentiates its summed outputs, in `mode`.

    Returns:
      The outputs, and the gradients in `x` and in the trainable weights.
    """
    if not layer.built:
        layer.build(x.shape)

    def step(x: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = layer(x, **kwargs)
            seed = tf.ones_like(value) if upstream is None else upstream
            value_of_seed = tf.reduce_sum(tf.math.multiply_no_nan(value, seed))
        weights = [weight.value for weight in layer.trainable_weights]
        return value, tape.gradient(value_of_seed, [x, *weights])

    return modes.compile_for(mode, step)(tf.convert_to_tensor(x))


def agrees_with_the_equations(layer: Any, x: np.ndarray, mode: str) -> None:
    """Compares values and gradients in float64 with those of the reference."""
    layer.build(x.shape)
    weights = randomise(layer)
    value, gradients = run(layer, x, mode)
    assert_close(value, reference(layer, x, weights), 16, why=STEPS, scale=1.0)
    names = list(weights)

    def total(x, *values):
        named = dict(zip(names, values, strict=True))
        return reference(layer, x, named).sum()

    truths = slopes(total, [x, *weights.values()])
    for got, truth in zip(gradients, truths, strict=True):
        # Slopes are differences of larger ones.
        assert_close(got, truth, 64, why=STEPS, scale=1.0)
        assert np.any(truth != 0)


def close(got, truth, ulps=64.0, why=STEPS):
    """Compares in ulps of the largest magnitude of each tensor."""
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(truth), strict=True):
        size = np.abs(b).max()
        assert size > 0
        assert_close(a, b, ulps, why=why, scale=size)


def built(kind, shape=INPUTS.shape, **options):
    layer = kind(6, **options)
    layer.build(shape)
    randomise(layer)
    return layer


def plain(layer, **options):
    """Returns Keras' own loop around the cell of `layer`."""
    names = ("return_sequences", "return_state", "go_backwards", "zero_output_for_mask")
    given = {name: getattr(layer, name) for name in names}
    given["dtype"] = layer.dtype_policy
    around = keras.layers.RNN(layer.cell, **{**given, **options})
    around.build(INPUTS.shape)
    return around
