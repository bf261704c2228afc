"""Formulas are repaired in each spelling, and left alone where there is no hazard."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import in_modes
from tests.support import modes
from tfsafe import stabilize
from tfsafe.graph import live_operations
from tfsafe.rewriting.facts.spellings import respell
from tfsafe.rewriting.facts.tensors import Reader

# Formulas in a spelling that their rules do not know, with the exact function and where
# the formula alone fails.
FORMULAS = {
    "times 1 / x": (
        lambda x: tf.math.log1p(x) * (1 / x),
        lambda x: mpmath.log1p(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "times a reciprocal": (
        lambda x: tf.math.reciprocal(x) * tf.sin(x),
        lambda x: mpmath.sin(x) / x,
        [1e-39, 3e-4, 2.0],
    ),
    "times a power of -1": (
        lambda x: (tf.exp(x) - 1) * x**-1.0,
        lambda x: mpmath.expm1(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "a difference turned round": (
        lambda x: -(1 - tf.exp(x)) / x,
        lambda x: mpmath.expm1(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "-1 times a difference": (
        lambda x: tf.math.log(-1.0 * (tf.exp(-x) - 1)),
        lambda x: mpmath.log(-mpmath.expm1(-x)),
        [1e-20, 3e-4, 2.0],
    ),
    "a logarithm of 1 plus the negative": (
        lambda x: tf.math.log(1 + -(tf.sigmoid(x))),
        lambda x: -mpmath.log1p(mpmath.exp(x)),
        [90.0, -30.0, 2.0],
    ),
    "an exponential upside down": (
        lambda x: tf.math.log(1 / tf.exp(-x) - 1),
        lambda x: mpmath.log(mpmath.expm1(x)),
        [1e-20, 3e-4, 95.0],
    ),
    "a sigmoid by exponentials": (
        lambda x: tf.math.log(1 - 1 / (1 + tf.exp(-x))),
        lambda x: -mpmath.log1p(mpmath.exp(x)),
        [90.0, -30.0, 2.0],
    ),
    "a logarithm of a softplus by hand": (
        lambda x: tf.math.log(tf.math.log(1 + tf.exp(x))),
        lambda x: mpmath.log(mpmath.log1p(mpmath.exp(x))),
        [-90.0, 95.0, 2.0],
    ),
    "a root upside down": (
        lambda x: (1 / tf.math.rsqrt(1 + x) - 1) / x,
        lambda x: 1 / (mpmath.sqrt(1 + x) + 1),
        [1e-20, 3e-4, 2.0],
    ),
    "a condition turned round": (
        lambda x: tf.where(
            tf.logical_not(tf.abs(x) > 1e-30), tf.ones_like(x), tf.sin(x) / x
        ),
        lambda x: mpmath.sin(x) / x,
        [0.0, 3e-4, 2.0],
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*FORMULAS))
def test_a_formula_is_right_in_another_spelling(name, mode):
    function, exact, points = FORMULAS[name]
    points = np.float32(points)
    value, (slope,) = modes.value_and_gradients(
        stabilize(function), [tf.constant(points)], mode
    )
    with mpmath.workdps(60):
        at = [mpmath.mpf(float(each)) or mpmath.mpf(10) ** -30 for each in points]
        values = [float(exact(each)) for each in at]
        slopes = [float(mpmath.diff(exact, each, h=each / 2**60)) for each in at]
    np.testing.assert_allclose(value, values, rtol=3e-6)
    np.testing.assert_allclose(slope, slopes, rtol=3e-5, atol=1e-30)


def test_a_mean_as_a_sum_over_a_count_is_seen_in_a_variance():
    def variance(x):
        return tf.reduce_sum(x * x) / 3 - (tf.reduce_sum(x) / 3) ** 2

    x = np.float32([1000.0, 1000.1, 1000.2])
    value = tf.function(stabilize(variance))(tf.constant(x))
    np.testing.assert_allclose(value, np.var(x.astype(float)), rtol=1e-5)


USUAL = {
    "RealDiv": lambda x, y: x * (1 / y),
    "Sub": lambda x, y: -(y - x),
    "AddV2": lambda x, y: x - (-1.0) * y,
    "Exp": lambda x, y: 1 / tf.exp(-x),
    "Sigmoid": lambda x, y: 1 / (1 + tf.exp(-x)),
    "Sqrt": lambda x, y: 1 / tf.math.rsqrt(x),
    "Rsqrt": lambda x, y: 1 / tf.sqrt(x),
    "Reciprocal": lambda x, y: y**-1.0,
    "Expm1": lambda x, y: tf.exp(x) - 1,
    "Softplus": lambda x, y: tf.math.log1p(tf.exp(x)),
    "SelectV2": lambda x, y: tf.where(tf.logical_not(x > 0), x, y),
}
WRITTEN = {
    "a quotient": lambda x, y: x / y,
    "2 over y": lambda x, y: x * (2 / y),
    "two reciprocals": lambda x, y: (1 / x) * (1 / y),
    "an exponential over 2": lambda x, y: 2 / tf.exp(-x),
    "a sum over another count": lambda x, y: tf.reduce_sum(x) / 5,
    "2 plus an exponential": lambda x, y: 1 / (2 + tf.exp(-x)),
    "a power of 3": lambda x, y: x**3.0,
    "ones of a larger shape": lambda x, y: x * (tf.ones([4, 3]) / y),
}


def _respelled(function):
    graph = (
        tf
        .function(function)
        .get_concrete_function(*2 * [tf.TensorSpec([3], tf.float32)])
        .graph
    )
    operations = live_operations(graph, {})[0]
    reader = Reader(graph, operations)
    return reader, respell(Reader(graph, operations), reader), graph.outputs[0]


@pytest.mark.parametrize("usual", USUAL)
def test_an_operation_is_seen_in_its_usual_spelling(usual):
    reader, names, result = _respelled(USUAL[usual])
    seen = reader.source(result)
    assert seen.op.type == usual
    written = reader.written(seen).op
    assert written is not seen.op
    assert written.name in names
    # It is read, and never computed.
    assert seen.op not in reader.operations
    assert reader.source(written.outputs[0]) is seen


@pytest.mark.parametrize("written", WRITTEN)
def test_others_are_seen_as_they_are(written):
    reader, _, result = _respelled(WRITTEN[written])
    seen = reader.source(result)
    assert reader.written(seen) is seen


def test_bits_stay_where_only_a_gradient_is_guarded():
    x = tf.random.stateless_uniform([1000], (1, 2), 0.1, 9.0)
    y = tf.random.stateless_uniform([1000], (3, 4), 0.1, 9.0)

    def function(x, y):
        return x * (1 / y) + -(y - x) * 3.0

    plain = tf.function(function)(x, y)
    np.testing.assert_array_equal(tf.function(stabilize(function))(x, y), plain)
