"""Where nothing fails, a stabilised formula gives what the plain one gives."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import contrast
from tfsafe import stabilize

ROWS, COLUMNS = 3, 4


def _weights(x):
    return tf.constant([[0.5, 1.0, 1.5, 2.0]], x.dtype)


def _keep(x):
    return tf.constant([[1, 0, 1, 1]], x.dtype)


def _shift(x):
    return x - tf.reduce_mean(x, -1, keepdims=True)


# Of any tensor of moderate numbers; what they give is moderate again.
SMOOTH = {
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "softmax": tf.nn.softmax,
    "exp(-x^2)": lambda x: tf.exp(-x * x),
    "exp(tanh)": lambda x: tf.exp(tf.tanh(x)),
    "1 - sigmoid": lambda x: 1 - tf.sigmoid(x),
    "exp - 1": lambda x: tf.exp(tf.tanh(x)) - 1,
    "softplus": tf.nn.softplus,
    "log(1 + exp)": lambda x: tf.math.log(1 + tf.exp(x)),
    "log_softmax": tf.nn.log_softmax,
    "log(sigmoid)": lambda x: tf.math.log(tf.sigmoid(x)),
    "log(softmax)": lambda x: tf.math.log(tf.nn.softmax(x)),
    "sqrt(1 + x^2)": lambda x: tf.sqrt(1 + x * x),
    "log(2 + x^2)": lambda x: tf.math.log(2 + x * x),
    "1 / (1 + x^2)": lambda x: 1 / (1 + x * x),
    "pow": lambda x: (1.5 + tf.tanh(x)) ** 1.7,
    "where": lambda x: tf.where(x > 0, tf.sqrt(tf.abs(x) + 1), tf.sin(x)),
    "relu": tf.nn.relu,
    "gelu": tf.nn.gelu,
    "x": lambda x: x,
    "x - mean": _shift,
    "mask": lambda x: x * _keep(x),
    "weights": lambda x: x * _weights(x),
    "unit": lambda x: x / (1 + tf.norm(x, axis=-1, keepdims=True)),
    "std": lambda x: _shift(x) / tf.sqrt(1 + tf.math.reduce_variance(x, -1)[:, None]),
    "cumsum": lambda x: tf.cumsum(x, -1) / COLUMNS,
    "clip": lambda x: tf.clip_by_value(x, -1.5, 1.5),
    "keras.gelu": keras.activations.gelu,
}
JOINS = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "-": lambda a, b: a - b,
    "/": lambda a, b: a / (1.25 + b * b),
    "maximum": tf.maximum,
    "log(a^2 + b^2 + 1)": lambda a, b: tf.math.log(a * a + b * b + 1),
    "squared_difference": tf.math.squared_difference,
}
ENDS = {
    "mean": tf.reduce_mean,
    "sum": tf.reduce_sum,
    "mean(sum)": lambda x: tf.reduce_mean(tf.reduce_sum(x, -1)),
    "logsumexp": tf.reduce_logsumexp,
    "norm": lambda x: tf.norm(x + 3),
    "mean of squares": lambda x: tf.reduce_mean(x * x),
}


def _one(rng, table):
    name = str(rng.choice(list(table)))
    return name, table[name]


def _formula(seed):
    """Returns a formula of two chains of functions, joined and reduced."""
    rng = np.random.default_rng([seed, 11])
    left = [_one(rng, SMOOTH) for _ in range(rng.integers(1, 4))]
    right = [_one(rng, SMOOTH) for _ in range(rng.integers(1, 3))]
    (join, joined), (end, ended) = _one(rng, JOINS), _one(rng, ENDS)

    def formula(x):
        a = b = x
        for _, function in left:
            a = function(a)
        for _, function in right:
            b = function(b)
        return ended(joined(a, b))

    chains = (" of ".join(name for name, _ in chain[::-1]) for chain in (left, right))
    return f"#{seed} {end} of {join} of ({'; '.join(chains)})", formula


def _value_and_slope(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    slope = tape.gradient(value, x, unconnected_gradients="zero")
    return [np.asarray(value), np.asarray(slope)]


def _changed(seed):
    """Returns how a formula changed by more than a few ulps of its largest part.

    Or its name, if the NaN of an argument came out as a number.
    """
    name, formula = _formula(seed)
    rng = np.random.default_rng([seed, 13])
    x = tf.constant(rng.normal(0, 1, (ROWS, COLUMNS)), tf.float32)
    with_nan = np.ones((ROWS, COLUMNS), np.float32)
    with_nan[1, 2] = np.nan
    function = tf.function(stabilize(formula), autograph=False)
    exact = _value_and_slope(formula, tf.cast(x, tf.float64))
    with contrast.without_grappler():
        textbook = tf.function(formula, autograph=False)
        plain = _value_and_slope(textbook, x)
        is_nan = np.isnan(textbook(tf.constant(with_nan)))
    if is_nan and not np.isnan(function(tf.constant(with_nan))):
        return f"{name} loses a NaN"
    for got, before, right in zip(
        _value_and_slope(function, x), plain, exact, strict=True
    ):
        # Where the plain form is off by more, being nearer to the truth is no change.
        scale = np.abs(right).max() + 0.1
        allowed = 2 * np.abs(before - right).max() + 8 * 1.2e-7 * scale
        if not np.abs(got - right).max() <= allowed:
            return f"{name}: {got}, plain {before}, exact {right}"
    return ""


def _all_changed(start, count):
    return [found for seed in range(start, start + count) if (found := _changed(seed))]


# Small blocks, of which tier one runs one.
@pytest.mark.parametrize("block", range(8))
def test_ordinary_values_and_slopes_stay_and_a_nan_comes_out(block):
    assert not _all_changed(5 * block, 5)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2))
def test_hundreds_of_values_and_slopes_stay_and_a_nan_comes_out(block):
    assert not _all_changed(100 + 50 * block, 50)
