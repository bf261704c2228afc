"""What is computed everywhere and used in some places only sends no NaN back."""

import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import INF, NAN, assert_rounded
from tests.rewriting.emitting import (
    fired,
    in_modes,
    rewritten,
    second_gradients,
    silent_gradients,
)
from tests.rewriting.tables import RULES
from tests.support import modes


def _both(function, args, mode):
    args = [tf.constant(arg) for arg in args]
    return modes.value_and_gradients(rewritten(RULES, function), args, mode)


def _keep(x):
    return tf.cast(x > 0, tf.float32)


def _patched(y):
    return tf.where(tf.math.is_nan(y), tf.zeros_like(y), y)


# The function, its arguments, its value and its slopes.
ROWS = {
    "a logarithm": (
        lambda x: tf.where(x > 0, tf.math.log(x), 0.0),
        [[0.0, 2.0]],
        [0.0, np.log(2)],
        [[0.0, 0.5]],
    ),
    "the square of a quotient": (
        lambda x: tf.where(x > 0, tf.square(1.0 / x), 0.0),
        [[0.0, 2.0]],
        [0.0, 0.25],
        [[0.0, -0.25]],
    ),
    "a product of a quotient": (
        lambda x, y: tf.where(x > 0, y * (1.0 / x), 0.0),
        [[0.0, 2.0], [1.0, 3.0]],
        [0.0, 1.5],
        [[0.0, -0.75], [0.0, 0.5]],
    ),
    "a hyperbolic tangent of a logarithm": (
        lambda x: tf.where(x > 0, tf.tanh(tf.math.log(x)), 0.0),
        [[-1.0, 1.0]],
        [0.0, 0.0],
        [[0.0, 1.0]],
    ),
    "an overflow that is cut off": (
        lambda x: tf.minimum(tf.exp(x), 10.0),
        [[1000.0, 1.0]],
        [10.0, np.e],
        [[0.0, np.e]],
    ),
    "the square of an overflow that is cut off": (
        lambda x: tf.minimum(tf.exp(x) ** 2.0, 10.0),
        [[1000.0, 1.0]],
        [10.0, np.e**2],
        [[0.0, 2 * np.e**2]],
    ),
    "the square of a difference from an overflow": (
        lambda x: tf.minimum(tf.math.squared_difference(tf.exp(x), 1.0), 9.0),
        [[1000.0, 1.0]],
        [9.0, (np.e - 1) ** 2],
        [[0.0, 2 * (np.e - 1) * np.e]],
    ),
    "a mask afterwards": (
        lambda x: _keep(x) * tf.math.log(x),
        [[0.0, 2.0]],
        [0.0, np.log(2)],
        [[0.0, 0.5]],
    ),
    "a mask of one axis less": (
        lambda x: tf.cast(tf.constant([[False], [True]]), tf.float32) / (x * x - 1.0),
        [[[1.0, 2.0], [3.0, 2.0]]],
        [[0.0, 0.0], [0.125, 1 / 3]],
        [[[0.0, 0.0], [-0.09375, -4 / 9]]],
    ),
    "a one-hot pick": (
        lambda p: tf.reduce_sum(tf.one_hot([1, 1], 2) * tf.math.log(p), -1),
        [[[0.0, 1.0], [0.5, 0.5]]],
        [0.0, np.log(0.5)],
        [[[0.0, 1.0], [0.0, 2.0]]],
    ),
    "a pick by slice": (
        lambda x: tf.math.log(x)[1:],
        [[0.0, 2.0]],
        [np.log(2)],
        [[0.0, 0.5]],
    ),
    "a NaN that is patched": (
        lambda x: _patched(tf.sin(x / tf.norm(x))),
        [[0.0, 0.0]],
        [0.0, 0.0],
        [[0.0, 0.0]],
    ),
    "an input that may be NaN": (
        lambda x: tf.where(tf.math.is_finite(x), x * x, 0.0),
        [[NAN, INF, 3.0]],
        [0.0, 0.0, 9.0],
        [[0.0, 0.0, 6.0]],
    ),
    "the overflow of a standard deviation times 0": (
        lambda x, y: 1.0 + tf.exp(0.5 * x) * y,
        [[200.0, 2.0], [0.0, 3.0]],
        [1.0, 1.0 + 3 * np.e],
        [[0.0, 1.5 * np.e], [INF, np.e]],
    ),
}
# Functions that are flat where their argument is infinite.
FLAT = {
    "the survival of a hazard that overflows": (
        lambda x, y: tf.exp(-tf.exp(x) * y),
        [[95.0, 1.0], [1.5, 0.5]],
        [0.0, np.exp(-np.e / 2)],
        [[0.0, -np.e / 2 * np.exp(-np.e / 2)], [0.0, -np.e * np.exp(-np.e / 2)]],
    ),
    "a sigmoid of an overflow": (
        lambda x, y: tf.sigmoid(tf.exp(x) * -y),
        [[95.0, 0.0], [1.5, 0.0]],
        [0.0, 0.5],
        [[0.0, 0.0], [0.0, -0.25]],
    ),
    "a power of an overflow": (
        lambda x, y: (1 + tf.exp(x) * y) ** -2.0,
        [[95.0, 0.0], [1.5, 1.0]],
        [0.0, 0.25],
        [[0.0, -0.25], [0.0, -0.25]],
    ),
    "survival by a hazard that grows": (
        lambda x, y: tf.exp(-(tf.exp(x * y) - 1) / x),
        [[95.0, 1.0], [1.5, 2.0]],
        [0.0, np.exp(1 - np.e**2)],
        [
            [0.0, -(np.e**2 + 1) * np.exp(1 - np.e**2)],
            [0.0, -np.exp(3 - np.e**2)],
        ],
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*ROWS, *FLAT))
def test_what_is_not_used_has_no_gradient(name, mode):
    function, args, wanted, slopes = {**ROWS, **FLAT}[name]
    value, gradients = _both(function, args, mode)
    assert_rounded(value, wanted)
    for gradient, slope in zip(gradients, slopes, strict=True):
        assert_rounded(gradient, slope)


@pytest.mark.parametrize("name", ROWS)
def test_the_second_gradient_is_finite_where_the_first_is(name):
    function, args, _, slopes = ROWS[name]
    args = [tf.constant(arg) for arg in args]
    if np.isfinite(np.concatenate(slopes)).all():
        for gradient in second_gradients(RULES, function, args, "graph"):
            assert np.isfinite(gradient).all()
    for gradient in silent_gradients(RULES, function, args):
        assert_rounded(gradient, 0.0)


def test_boolean_mask_sends_nothing_back_to_what_it_hides():
    def function(x):
        return tf.boolean_mask(tf.square(tf.math.log(x)), x > 0)

    for mode in ("eager", "graph"):
        value, (gradient,) = _both(function, [[0.0, 2.0]], mode)
        assert_rounded(value, [np.log(2) ** 2])
        assert_rounded(gradient, [0.0, np.log(2)])


@pytest.mark.parametrize(
    ("function", "rule"),
    [
        (lambda x: _keep(x) * tf.math.log(x), "mask-after"),
        (lambda x: tf.math.log(x) * (1.0 - _keep(-x)), "mask-after"),
        (lambda x: tf.math.log(x) * tf.cast(x > 0, x.dtype), "mask-after"),
        (lambda x: (1.0 / x) * tf.constant([0.0, 1.0]), "mask-over"),
        (lambda x: tf.exp(x) * x, "exp-times"),
        (lambda x: (tf.exp(x) - 1) * x, "exp-times"),
        (lambda x: 1e-12 * tf.math.expm1(x), "exp-times"),
        (lambda x: tf.where(x > 0, tf.square(1 / x), x), "unused-branch"),
        (lambda x: tf.where(x > 0, (1 / x) ** 3.0, x), "unused-branch"),
    ],
)
def test_the_rule_fires(function, rule):
    assert rule in fired(RULES, function, tf.constant([1.0, 2.0]))


@pytest.mark.parametrize("value", [NAN, -1.0])
def test_a_nan_that_made_the_mask_comes_out(value, mode):
    # The comparison with NaN is False, and not because the caller masks anything.
    got, _ = _both(lambda x: _keep(x) * tf.math.log(x), [[value, 2.0]], mode)
    assert_rounded(got, [value if np.isnan(value) else 0.0, np.log(2)])


def test_a_nan_at_a_place_that_is_masked_for_other_reasons_is_masked(mode):
    got, (gradient, _) = _both(
        lambda x, y: tf.cast(y > 0, tf.float32) * tf.math.log(x),
        [[NAN, 2.0, 0.5, NAN], [-1.0, 1.0, NAN, NAN]],
        mode,
    )
    # In the last two places the mask itself comes of a NaN.
    assert_rounded(got, [0.0, np.log(2), 0.0, NAN])
    assert_rounded(gradient[:3], [0.0, 0.5, 0.0])


NEAR_MISSES = {
    "weights that are not 0 or 1": lambda x, w: w * tf.math.log(x),
    "a mask that moved after the comparison": lambda x, w: (
        tf.reverse(_keep(x), [0]) * tf.math.log(x)
    ),
    "a mask of ones": lambda x, w: tf.constant([1.0, 1.0]) * tf.math.log(x),
    "a mask of what is finite": lambda x, w: _keep(w) * tf.tanh(x),
    "soft weights": lambda x, w: tf.sigmoid(w) * tf.math.log(x),
    "a product of complex numbers": lambda x, w: tf.math.real(
        tf.math.multiply_no_nan(tf.complex(x, x), tf.complex(w, w))
    ),
    "a patched NaN that is an answer": lambda x, w: tf.where(
        tf.math.is_nan(_keep(w) * tf.math.log(x)), 7.0, x
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_is_no_mask_is_not_taken_for_one(name):
    args = [tf.constant([1.0, 2.0]), tf.constant([0.5, 2.0])]
    assert "mask-after" not in fired(RULES, NEAR_MISSES[name], *args)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: tf.exp(-tf.abs(x)) * w,
        lambda x, w: tf.exp(x) * 3.0,
        lambda x, w: tf.math.expm1(x) * 0.5,
        lambda x, w: tf.exp(x) * tf.exp(w),
        lambda x, w: tf.exp(x) * tf.sin(1 / tf.exp(w)),
        lambda x, w: tf.exp(x * x) * tf.math.erfc(x),
        lambda x, w: tf.exp(x) * tf.sigmoid(-x) * w,
        lambda x, w: tf.exp(x) * tf.nn.softmax(-w),
        lambda x, w: tf.exp(x) + w,
        lambda x, w: tf.where(tf.math.is_inf(tf.exp(x) * w), 0.0, w),
    ],
)
def test_an_exponential_times_something_else_is_left_alone(function):
    args = [tf.constant([1.0, 2.0]), tf.constant([0.5, 2.0])]
    assert "exp-times" not in fired(RULES, function, *args)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: tf.where(x > 0, tf.tanh(x) * w, 0.0),
        lambda x, w: tf.tanh(tf.math.log(x)) * w,
        lambda x, w: tf.where(x > 0, (1 / x) ** w, x),
        lambda x, w: tf.tanh(tf.where(x > 0, tf.math.log(x), 0.0))[1:],
        lambda x, w: tf.where(x > 0, 3.0 * tf.math.log(x), 0.0),
        lambda x, w: tf.where(x > 0, tf.tanh(w) + tf.math.log(x), 0.0),
        lambda x, w: tf.exp(-x * w),
        lambda x, w: tf.math.softplus(tf.exp(x) * w),
        lambda x, w: (1 + tf.exp(x) * w) ** 2.0,
        lambda x, w: tf.tanh(x * w) / tf.exp(x),
    ],
)
def test_the_way_that_no_infinity_takes_is_left_alone(function):
    args = [tf.constant([1.0, 2.0]), tf.constant([0.5, 2.0])]
    assert "unused-branch" not in fired(RULES, function, *args)


def test_a_patched_nan_keeps_what_it_is_patched_with(mode):
    def function(x):
        y = x / tf.norm(x)
        return tf.where(tf.math.is_nan(y), 5.0, y)

    value, (gradient,) = _both(function, [[0.0, 0.0]], mode)
    assert_rounded(value, 5.0)
    assert_rounded(gradient, 0.0)


def test_a_mask_in_a_loop_is_safe(mode):
    def function(x):
        def body(i, total):
            return i + 1, total + tf.where(x > 0, tf.math.log(x) ** 2.0, 0.0)

        return tf.while_loop(
            lambda i, _: i < 3, body, (0, tf.zeros_like(x)), maximum_iterations=3
        )[1]

    value, (gradient,) = _both(function, [[0.0, 2.0]], mode)
    assert_rounded(value, [0.0, 3 * np.log(2) ** 2])
    assert_rounded(gradient, [0.0, 3 * np.log(2)])


def test_integers_may_close_a_row_of_logits_and_weights_may_not():
    def of_integers(x, kept):
        return tf.nn.softmax(x + tf.math.log(tf.cast(kept, tf.float32)))

    def of_weights(x, weights):
        return tf.nn.softmax(x + tf.math.log(weights))

    x, kept = tf.constant([[1.0, 2.0], [3.0, 3.0]]), tf.constant([[0, 0], [1, 1]])
    assert "softmax-of-masked" in fired(RULES, of_integers, x, kept)
    assert_rounded(rewritten(RULES, of_integers)(x, kept), [[0.0, 0.0], [0.5, 0.5]])
    assert "softmax-of-masked" not in fired(RULES, of_weights, x, x)
