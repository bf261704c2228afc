"""Layer normalisation: exact rows, rows without spread, and what is not finite."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe.ops.kernels.statistics.layer_norm import layer_norm

EPSILON = 1e-5
GENERATOR = np.random.default_rng(0)
ROWS = GENERATOR.normal(size=(6, 16)) * 10.0 ** np.arange(-4, 8, 2)[:, np.newaxis]
UPSTREAM = GENERATOR.normal(size=(6, 16))


def _exact(row, upstream):
    """Returns the standardised row, and the gradient of its product with `upstream`."""
    size = len(row)
    mean = sum(row) / size
    centred = [x - mean for x in row]
    inverse = 1 / mpmath.sqrt(sum(x**2 for x in centred) / size + mpmath.mpf(EPSILON))
    value = [x * inverse for x in centred]
    mean = sum(upstream) / size
    along = sum(u * y for u, y in zip(upstream, value, strict=True)) / size
    slope = [
        inverse * (u - mean - y * along) for u, y in zip(upstream, value, strict=True)
    ]
    return [value, slope]


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return tf.as_dtype(request.param)


def test_values_and_slopes_agree_with_mpmath(mode, dtype):
    x, upstream = tf.cast(ROWS, dtype), tf.cast(UPSTREAM, dtype)
    value, (slope,) = modes.value_and_gradients(_standardize, [x], mode, upstream)
    truth = oracle.exact_rows(_exact, x, upstream)
    for got, true in ((value, truth[:, 0]), (slope, truth[:, 1])):
        # Differences: in units of the largest number of the row.
        scale = np.abs(true).max(-1, keepdims=True)
        assert oracle.ulp_error(got, true, scale) <= 8


def test_a_mean_above_the_deviation_costs_in_proportion(mode):
    x = tf.cast(1000 + ROWS[2:3], tf.float32)
    value = modes.compile_for(mode, _standardize)(x)
    truth = oracle.exact_rows(_exact, x, tf.zeros_like(x))[:, 0]
    scale = np.abs(truth).max() * 1000 / np.std(x)
    assert oracle.ulp_error(value, truth, scale) <= 8


@pytest.mark.parametrize("size", [1, 3, 64, 1000])
@pytest.mark.parametrize("number", [0.0, 0.1, -7e11])
def test_equal_elements_give_the_shift_and_gradient_0(size, number, mode, dtype):
    x = tf.fill([2, size], tf.cast(number, dtype))
    gain, shift = tf.cast(2.0, dtype), tf.cast(0.5, dtype)
    value, (slope, d_gain, d_shift) = modes.value_and_gradients(
        lambda x, gain, shift: layer_norm(x, gain, shift, 1e-12),
        [x, gain, shift],
        mode,
        np.arange(2.0 * size).reshape(2, size),
    )
    assert np.all(value == 0.5)
    assert np.all(slope == 0)
    assert d_gain == 0
    assert d_shift == sum(range(2 * size))


def test_the_formula_amplifies_them_by_the_root_of_epsilon():
    def formula(x):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + EPSILON)

    x, upstream = tf.zeros([1, 4]), [[1.0, 0.0, 0.0, 0.0]]
    for function, largest in ((formula, 0.75 / EPSILON**0.5), (_standardize, 0.0)):
        _, (slope,) = modes.value_and_gradients(function, [x], "eager", upstream)
        assert_close(np.abs(slope).max(), largest)


def _standardize(x):
    one = tf.ones([], x.dtype)
    return layer_norm(x, one, 0 * one, EPSILON)


def test_a_small_spread_that_is_not_rounding_counts(mode, dtype):
    x = tf.constant([[0.0, 1e-9, 2e-9, 3e-9], [1.0, 1.5, 1.0, 1.5]], dtype)
    value, (slope,) = modes.value_and_gradients(
        _standardize, [x], mode, UPSTREAM[:2, :4]
    )
    truth = oracle.exact_rows(_exact, x, tf.cast(UPSTREAM[:2, :4], dtype))
    for got, true in ((value, truth[:, 0]), (slope, truth[:, 1])):
        assert_close(got, true.astype(float))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e25])
def test_what_is_not_finite_comes_out_in_its_row_alone(bad, mode):
    x = tf.constant([[bad, 1.0, 2.0], [0.0, 1.0, 2.0], [4.0, 4.0, 4.0]])
    value, (slope,) = modes.value_and_gradients(_standardize, [x], mode)
    assert np.isnan(value[0]).all()
    assert np.isnan(slope[0]).all()
    assert np.isfinite(value[1:]).all()
    assert np.isfinite(slope[1:]).all()


def test_the_second_gradient_agrees_with_differences_of_the_first(mode):
    x = np.concatenate([ROWS[2:4, :5], np.ones((1, 5))])
    weights = UPSTREAM[:3, :5]

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.reduce_sum(_standardize(x) ** 3 * weights)
        # Weighted: the slopes of a row sum to 0, whatever it holds.
        return tf.reduce_sum(tape.gradient(value, x) * UPSTREAM[3:, :5])

    _, (second,) = modes.value_and_gradients(first, [tf.constant(x)], mode)
    step = 1e-5 * np.std(x, -1, keepdims=True)
    truth = np.zeros((2, 5))
    for index in np.ndindex(2, 5):
        move = np.zeros(x.shape)
        move[index] = step[index[0], 0]
        rise = first(tf.constant(x + move)) - first(tf.constant(x - move))
        truth[index] = rise / (2 * move[index])
    # The last row has no spread: no gradient of any order.
    assert np.all(second[-1] == 0)
    scale = np.abs(truth).max(-1, keepdims=True)
    assert_close(
        second[:-1] / scale,
        truth / scale,
        2.7e6,
        why="the finite difference it is compared with",
        scale=1.0,
    )
