"""Norms, deviations and means written by hand are those of `tfsafe.ops`."""

import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import NAN, assert_rounded
from tests.rewriting.emitting import (
    fired,
    in_modes,
    rewritten,
    second_gradients,
    silent_gradients,
)
from tests.rewriting.tables import RULES
from tests.support import modes
from tests.support.oracle import assert_close


def _both(function, args, mode):
    args = [tf.constant(arg) for arg in args]
    return modes.value_and_gradients(rewritten(RULES, function), args, mode)


def _moments_root(x):
    return tf.sqrt(tf.nn.moments(x, [-1])[1])


def _variance(x):
    return tf.reduce_mean(tf.square(x - tf.reduce_mean(x, -1, keepdims=True)), -1)


ZERO, EQUAL = [[0.0, 0.0], [3.0, 4.0]], [[5.0, 5.0], [3.0, 5.0]]
NORM = ([0.0, 5.0], [[0.0, 0.0], [0.6, 0.8]])
STD = ([0.0, 1.0], [[0.0, 0.0], [-0.5, 0.5]])
UNIT = ([[0.0, 0.0], [0.6, 0.8]], [[0.0, 0.0], [0.032, -0.024]])
# The rule, the function, its argument, the value and the slopes.
ROWS = {
    "a sum of products": (
        "norm",
        lambda x: tf.sqrt(tf.reduce_sum(x * x, -1)),
        ZERO,
        *NORM,
    ),
    "a sum of powers": (
        "norm",
        lambda x: tf.reduce_sum(x**2, -1) ** 0.5,
        ZERO,
        *NORM,
    ),
    "tf.norm": ("norm", lambda x: tf.norm(x, axis=1), ZERO, *NORM),
    "tf.linalg.norm": ("norm", lambda x: tf.linalg.norm(x, 2, -1), ZERO, *NORM),
    "a euclidean norm": (
        "norm",
        lambda x: tf.math.reduce_euclidean_norm(x, 1),
        ZERO,
        *NORM,
    ),
    "a norm with a floor": (
        "norm",
        lambda x: tf.sqrt(tf.maximum(tf.reduce_sum(tf.square(x), -1), 0.0)),
        ZERO,
        *NORM,
    ),
    "a distance": (
        "norm",
        lambda x: tf.sqrt(tf.reduce_sum((x - 1.0) ** 2, -1)),
        [[1.0, 1.0], [4.0, 5.0]],
        *NORM,
    ),
    "a squared difference": (
        "norm",
        lambda x: tf.sqrt(tf.reduce_sum(tf.math.squared_difference(x, 1.0), -1)),
        [[1.0, 1.0], [4.0, 5.0]],
        *NORM,
    ),
    "a norm of order 3": (
        "p-norm",
        lambda x: tf.norm(x, 3, -1),
        [[0.0, 0.0], [2.0, 0.0]],
        [0.0, 2.0],
        [[0.0, 0.0], [1.0, 0.0]],
    ),
    "tf.math.reduce_std": ("std", lambda x: tf.math.reduce_std(x, -1), EQUAL, *STD),
    "a mean less the elements": (
        "std",
        lambda x: tf.sqrt(
            tf.reduce_mean((tf.reduce_mean(x, -1, keepdims=True) - x) ** 2, -1)
        ),
        EQUAL,
        *STD,
    ),
    "a root of moments": ("std", _moments_root, EQUAL, *STD),
    "a root of a variance": ("std", lambda x: tf.sqrt(_variance(x)), EQUAL, *STD),
    "a root of a difference of means": (
        "std",
        lambda x: tf.sqrt(
            tf.maximum(
                tf.reduce_mean(x * x, -1) - tf.square(tf.reduce_mean(x, -1)), 0.0
            )
        ),
        EQUAL,
        *STD,
    ),
    "a hypotenuse": (
        "hypot",
        lambda x: tf.sqrt(x[:, 0] ** 2 + tf.square(x[:, 1])),
        ZERO,
        *NORM,
    ),
    "a norm of two parts": (
        "hypot",
        lambda x: tf.sqrt(
            tf.reduce_sum(x[:, :1] ** 2, -1) + tf.reduce_sum(tf.square(x[:, 1:]), -1)
        ),
        ZERO,
        *NORM,
    ),
    "a smooth magnitude": (
        "hypot",
        lambda x: tf.sqrt(tf.reduce_max(x, -1) ** 2 + 9.0),
        [[0.0, -1.0], [-1.0, 4.0]],
        [3.0, 5.0],
        [[0.0, 0.0], [0.0, 0.8]],
    ),
}
UNITS = {
    "a quotient": lambda x: x / tf.norm(x, axis=-1, keepdims=True),
    "a quotient with an axis added": lambda x: x / tf.norm(x, axis=-1)[:, None],
    "a quotient with an axis expanded": lambda x: (
        x / tf.expand_dims(tf.sqrt(tf.reduce_sum(x * x, 1)), -1)
    ),
    "a quotient with a floor": lambda x: (
        x / tf.maximum(tf.norm(x, axis=-1, keepdims=True), 1e-7)
    ),
    "tf.math.l2_normalize": lambda x: tf.math.l2_normalize(x, -1),
    "a product": lambda x: x * tf.math.rsqrt(tf.reduce_sum(x * x, -1, keepdims=True)),
    "a product with the floor in front": lambda x: (
        x * tf.math.rsqrt(tf.maximum(1e-12, tf.reduce_sum(x * x, -1, keepdims=True)))
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*ROWS))
def test_it_is_right_where_the_plain_form_has_no_gradient(name, mode):
    rule, function, x, wanted, slopes = ROWS[name]
    assert fired(RULES, function, tf.constant(x))[-1] == rule
    value, (gradient,) = _both(function, [x], mode)
    assert_rounded(value, wanted)
    assert_rounded(gradient, slopes)


@pytest.mark.parametrize(("name", "mode"), in_modes(*UNITS))
def test_a_vector_over_its_norm_is_a_unit_vector(name, mode):
    function = UNITS[name]
    assert fired(RULES, function, tf.constant(ZERO))[-1].startswith("unit-vector")
    x = tf.constant(ZERO)
    unit = rewritten(RULES, function)
    value, (gradient,) = modes.value_and_gradients(
        lambda x: unit(x)[:, 0] * [1.0, 0.25], [x], mode
    )
    assert_rounded(value, [0.0, 0.15])
    assert_rounded(gradient, [[0.0, 0.0], [0.032, -0.024]])


@pytest.mark.parametrize("name", [*ROWS, *UNITS])
def test_no_gradient_comes_of_no_gradient(name):
    function, x = (UNITS[name], ZERO) if name in UNITS else ROWS[name][1:3]
    x = tf.constant(x)
    for gradient in silent_gradients(RULES, function, [x]):
        assert_rounded(gradient, 0.0)
    (second,) = second_gradients(RULES, function, [x], "graph")
    assert np.isfinite(second).all()


@pytest.mark.parametrize("name", [*ROWS, *UNITS])
def test_the_value_is_the_plain_one_where_that_is_accurate(name):
    function = UNITS[name] if name in UNITS else ROWS[name][1]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 3)).astype(np.float32)
    value = rewritten(RULES, function)(tf.constant(x))
    assert_close(
        value, function(tf.constant(x)), 8, why="the plain form rounds as well"
    )
    specs = [tf.TensorSpec([None, 3], tf.float32)]
    assert_rounded(rewritten(RULES, function, *specs)(tf.constant(x)), value)


@pytest.mark.parametrize("name", [*ROWS, *UNITS])
def test_a_nan_from_outside_comes_out(name):
    function = UNITS[name] if name in UNITS else ROWS[name][1]
    x = tf.constant([[NAN, 1.0], [1.0, NAN]])
    before = function(x)
    assert_rounded(rewritten(RULES, function)(x), before)


def test_squares_that_overflow_are_scaled(mode):
    x = [[3e25, 4e25], [3e-25, 4e-25]]
    value, (gradient,) = _both(lambda x: tf.norm(x, axis=1), [x], mode)
    assert_rounded(value, [5e25, 5e-25])
    assert_rounded(gradient, [[0.6, 0.8], [0.6, 0.8]])


def test_an_unknown_rank_is_no_obstacle():
    spec, x = tf.TensorSpec(None, tf.float32), tf.constant([[3.0, 4.0], [0.0, 0.0]])
    for function, wanted in (
        (tf.norm, 5.0),
        (lambda x: x / tf.norm(x), x / 5.0),
        (lambda x: x / tf.norm(x, axis=-1, keepdims=True), x / [[5.0], [1.0]]),
        (lambda x: tf.sqrt(tf.reduce_sum(x * x, -1)), [5.0, 0.0]),
    ):
        assert fired(RULES, function, spec)[-1] in {"norm", "unit-vector"}
        assert_rounded(rewritten(RULES, function, spec)(x), wanted)
    assert "norm" not in fired(RULES, lambda x: tf.sqrt(tf.reduce_sum(x * x, 1)), spec)


def _scaled_hypot(x, y, one=1.0, shrunk=None):
    # How Keras writes it.
    x, y = tf.abs(x), tf.abs(y)
    largest, least = tf.maximum(x, y), tf.minimum(x, y if shrunk is None else shrunk)
    ratio = tf.math.divide_no_nan(least, largest)
    return largest * tf.sqrt(one + tf.square(ratio))


def test_a_scaled_hypotenuse_splits_its_gradient_at_a_tie(mode):
    x, y = [3.0, 0.0, -3.0], [3.0, 0.0, 4.0]
    assert "scaled-hypot" in fired(RULES, _scaled_hypot, tf.constant(x), tf.constant(y))
    value, (in_x, in_y) = _both(_scaled_hypot, [x, y], mode)
    assert_rounded(value, [18**0.5, 0.0, 5.0])
    assert_rounded(in_x, [0.5**0.5, 0.0, -0.6])
    assert_rounded(in_y, [0.5**0.5, 0.0, 0.8])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: _scaled_hypot(x, y, one=2.0),
        lambda x, y: _scaled_hypot(x, y, shrunk=tf.abs(tf.sin(y))),
        lambda x, y: tf.maximum(x, y) * tf.sqrt(1 + tf.square(x / y)),
        lambda x, y: x * tf.sqrt(1 + tf.square(x)),
        lambda x, y: (
            tf.maximum(x, y)
            * tf.sqrt(1 + tf.square(tf.minimum(x, y) / tf.maximum(x, y)))
        ),
        lambda x, y: x * tf.sqrt(1 + tf.math.squared_difference(x, y)),
    ],
)
def test_what_is_no_scaled_hypotenuse_is_left_alone(function):
    args = [tf.ones([2]), tf.ones([2])]
    assert "scaled-hypot" not in fired(RULES, function, *args)


NEAR_MISSES = {
    "a product of two": lambda x: tf.sqrt(tf.abs(tf.reduce_sum(x * tf.sin(x), -1))),
    "a sum of cubes": lambda x: tf.sqrt(tf.abs(tf.reduce_sum(x**3, -1))),
    "a mean of squares": lambda x: tf.sqrt(tf.reduce_mean(x * x, -1)),
    "a deviation from something else": lambda x: tf.sqrt(
        tf.reduce_mean((x - tf.reduce_max(x, -1, keepdims=True)) ** 2, -1)
    ),
    "a deviation from the mean of another axis": lambda x: tf.sqrt(
        tf.reduce_mean((x - tf.reduce_mean(x, 0, keepdims=True)) ** 2, -1)
    ),
    "a deviation beside the wrong row": lambda x: tf.sqrt(
        tf.reduce_mean((x - tf.reduce_mean(x, 1)) ** 2, 1)
    ),
    "a root of a difference": lambda x: tf.sqrt(tf.nn.relu(x**2 - tf.sin(x) ** 2)),
    "another root": lambda x: (tf.reduce_sum(x * x, -1)) ** 0.3,
    "twice a square": lambda x: tf.sqrt(2.0 * x**2 + tf.sin(x) ** 2),
    "a norm of something else": lambda x: (
        tf.sin(x) / tf.norm(x, axis=-1, keepdims=True)
    ),
    "a norm along another axis": lambda x: x / tf.norm(x, axis=0)[:, None],
    "a norm beside the wrong row": lambda x: x / tf.norm(x, axis=-1),
    "a norm without gradient": lambda x: (
        x / tf.stop_gradient(tf.norm(x, axis=-1, keepdims=True))
    ),
    "a norm and a number": lambda x: x / (tf.norm(x, axis=-1, keepdims=True) + 1e-3),
    "a power that spreads": lambda x: tf.sqrt(
        tf.reduce_sum(x[0] ** tf.fill([3, 3], 2.0), -1)
    ),
    "a root that spreads": lambda x: tf.reduce_sum(x * x, -1) ** tf.fill([2, 1], 0.5),
    "a norm of all entries of order 3": lambda x: tf.norm(x, 3),
    "a quasi-norm": lambda x: tf.norm(x, 0.5, -1),
    "a large floor": lambda x: tf.math.l2_normalize(x, -1, epsilon=0.5),
    "a norm of another order": lambda x: (
        tf.reduce_sum(tf.abs(x) ** 3.0, -1) ** (1 / 2.5)
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_near_miss_is_left_alone(name):
    found = set(fired(RULES, NEAR_MISSES[name], tf.ones([3, 3])))
    forms = {"hypot", "p-norm", "std", "unit-vector", "unit-vector-by-rsqrt"}
    assert not found & forms, found
    if "norm" not in name:
        assert "norm" not in found


GLOBAL_NORMS = {
    "sum()": lambda *x: tf.sqrt(sum(tf.reduce_sum(g * g) for g in x)),
    "add_n": lambda *x: tf.sqrt(tf.add_n([tf.reduce_sum(g**2) for g in x])),
    "l2_loss": lambda *x: tf.sqrt(2 * sum(tf.nn.l2_loss(g) for g in x)),
    "a power": lambda *x: sum(tf.reduce_sum(tf.square(g)) for g in x) ** 0.5,
}


@pytest.mark.parametrize("name", GLOBAL_NORMS)
@pytest.mark.parametrize("count", [2, 7])
@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e25, 0.0])
def test_a_norm_of_several_tensors_is_right_out_of_range(name, count, scale, mode):
    x = [tf.constant([1.0, -2.0, i + 0.5]) * scale for i in range(count)]
    function = rewritten(RULES, GLOBAL_NORMS[name])
    value, slopes = modes.value_and_gradients(function, x, mode)
    exact = np.linalg.norm(np.concatenate(x).astype(float))
    assert_close(value, exact)
    for slope, each in zip(slopes, x, strict=True):
        unit = each.numpy().astype(float) / (exact or 1.0)
        assert_close(slope, unit)
