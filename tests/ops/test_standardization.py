"""Standardised rows and channels, against 60 digits."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.statistics.standardization import (
    scale,
    standardize,
    standardize_batch,
)

GENERATOR = np.random.default_rng(0)
NORMAL = GENERATOR.normal(size=(6, 16))
ROWS = NORMAL * 10.0 ** np.array([[-3], [0], [3], [12], [25], [37]])
ROWS[1] += 1e5
UPSTREAM = GENERATOR.normal(size=(6, 16))
EPSILON = 1e-5


def _exact(centre):
    def function(row, upstream):
        size = len(row)
        mean = sum(row) / size if centre else 0
        rest = [x - mean for x in row]
        unit = 1 / mpmath.sqrt(sum(x**2 for x in rest) / size + mpmath.mpf(EPSILON))
        value = [x * unit for x in rest]
        mean = sum(upstream) / size if centre else 0
        along = sum(u * y for u, y in zip(upstream, value, strict=True)) / size
        pairs = zip(upstream, value, strict=True)
        return [value, [unit * (u - mean - y * along) for u, y in pairs]]

    return function


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return tf.as_dtype(request.param)


@pytest.mark.parametrize("centre", [True, False])
def test_rows_agree_with_mpmath_however_large_their_mean(centre, mode, dtype):
    x, upstream = tf.cast(ROWS, dtype), tf.cast(UPSTREAM, dtype)
    value, (slope,) = modes.value_and_gradients(
        lambda x: standardize(x, [1], EPSILON, centre=centre), [x], mode, upstream
    )
    truth = oracle.exact_rows(_exact(centre), x, upstream)
    for got, true in ((value, truth[:, 0]), (slope, truth[:, 1])):
        # Differences: in units of the largest number of the row.
        largest = np.abs(true).max(-1, keepdims=True)
        assert oracle.ulp_error(got, true, largest) <= 8


def test_channels_agree_with_mpmath_however_large_their_mean(mode, dtype):
    # The variance of the last two rows overflows in float32.
    x, upstream = tf.cast(ROWS[:4].T, dtype), tf.cast(UPSTREAM[:4].T, dtype)
    one, zero = tf.ones([1, 4], dtype), tf.zeros([1, 4], dtype)
    value, (slope,) = modes.value_and_gradients(
        lambda x: _channels(x, one, zero)[0], [x], mode, upstream
    )
    truth = oracle.exact_rows(_exact(True), tf.transpose(x), tf.transpose(upstream))
    for got, true in ((value, truth[:, 0]), (slope, truth[:, 1])):
        largest = np.abs(true).max(-1, keepdims=True)
        assert oracle.ulp_error(tf.transpose(got), true, largest) <= 8


def _channels(x, gain, shift, **options):
    return standardize_batch(
        x,
        gain,
        shift,
        axis=[0],
        epsilon=EPSILON,
        otherwise=(tf.zeros_like(shift), tf.ones_like(shift)),
        **options,
    )


def test_the_moments_of_the_channels_are_those_of_numpy(mode, dtype):
    x = tf.cast(ROWS[:4].T, dtype)
    one, zero = tf.ones([1, 4], dtype), tf.zeros([1, 4], dtype)
    run = modes.compile_for(mode, lambda x: _channels(x, one, zero)[1:])
    mean, variance, count = run(x)
    numbers = np.asarray(x, np.float64)
    assert_close(mean[0], numbers.mean(0), 8, why="a sum of the numbers of a row")
    assert_close(variance[0], numbers.var(0), 6, why="a sum of the squares of a row")
    assert count == 16


@pytest.mark.parametrize(("size", "number"), [(1, 0.0), (3, 0.1), (1000, -7e11)])
@pytest.mark.parametrize("epsilon", [0.0, 1e-5])
def test_a_row_without_spread_is_0(size, number, epsilon, mode, dtype):
    x = tf.fill([2, size], tf.cast(number, dtype))
    value, (slope,) = modes.value_and_gradients(
        lambda x: standardize(x, [1], epsilon), [x], mode
    )
    # What the rounding of the mean leaves of 7e11, over the root of epsilon.
    left = abs(number) * size**0.5 * 1e-10 if epsilon else 1
    assert np.all(np.abs(value) <= left)
    assert np.isfinite(slope).all()


def test_without_epsilon_and_spread_the_gradient_is_0(mode, dtype):
    x = tf.constant([[2.0, 2.0], [0.0, 0.0]], dtype)
    for centre in (True, False):
        value, (slope,) = modes.value_and_gradients(
            lambda x, centre=centre: standardize(x, [1], 0.0, centre=centre), [x], mode
        )
        np.testing.assert_array_equal(value[1], [0, 0])
        np.testing.assert_array_equal(slope, np.zeros([2, 2]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_row(bad, mode, dtype):
    x = tf.constant([[1.0, bad, 2.0], [1.0, 2.0, 3.0]], dtype)
    silent = tf.constant([[0.0, 0, 0], [1, 0, 0]], dtype)
    value, (slope,) = modes.value_and_gradients(
        lambda x: standardize(x, [1], EPSILON), [x], mode, silent
    )
    assert np.isnan(value[0]).all()
    assert np.isfinite(value[1]).all()
    np.testing.assert_array_equal(slope[0], [0, 0, 0])
    assert np.isfinite(slope[1]).all()
    _, (slope,) = modes.value_and_gradients(
        lambda x: standardize(x, [1], EPSILON), [x], mode
    )
    assert np.isnan(slope[0]).all()


def test_an_infinity_leaves_nothing_of_its_row_without_a_centre(mode, dtype):
    x = tf.constant([[1.0, np.inf, 2.0]], dtype)
    run = modes.compile_for(mode, lambda x: standardize(x, [1], EPSILON, centre=False))
    np.testing.assert_array_equal(run(x), [[0, np.nan, 0]])


@pytest.mark.parametrize("centre", [True, False])
def test_the_second_derivative_agrees_with_differences(centre):
    x = tf.constant(NORMAL[:2, :5])

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.sin(2 * standardize(x, [1], 0.1, centre=centre)))
        return tape.gradient(loss, x)

    oracle.assert_slopes_are_differences(slope, [x], 2.2e7)


def test_a_map_over_rows_gives_the_same():
    x = tf.constant(NORMAL, tf.float32)
    mapped = tf.vectorized_map(lambda row: standardize(row[None], [1], EPSILON)[0], x)
    assert_close(mapped, standardize(x, [1], EPSILON))


@pytest.mark.parametrize("axis", [[1, 3], [0, 2, 3], [2]])
def test_axes_that_others_lie_between_are_reduced_one_after_another(axis, mode):
    x = tf.constant(GENERATOR.normal(size=(2, 3, 4, 5)), tf.float32)
    run = modes.compile_for(mode, lambda x: standardize(x, axis, EPSILON))
    numbers = np.asarray(x, np.float64)
    rest = numbers - numbers.mean(tuple(axis), keepdims=True)
    true = rest / np.sqrt(np.square(rest).mean(tuple(axis), keepdims=True) + EPSILON)
    assert_close(run(x), true, scale=1.0)


def test_runs_of_axes_know_all_and_none():
    x = tf.reshape(tf.range(24.0), [2, 3, 4])
    for axis in (None, [], [0], [0, 2], [1, 2]):
        got = precision.reduce_in_runs(tf.reduce_max, x, axis)
        np.testing.assert_array_equal(got, tf.reduce_max(x, axis, keepdims=True))


def test_a_gain_takes_no_gradient_from_what_nothing_asks_for(mode):
    value = tf.constant([[np.nan, 1.0], [3.0, np.inf]])
    gain = tf.constant([2.0, 3.0])
    upstream = tf.constant([[0.0, 1.0], [1.0, 0.0]])
    _, (in_value, in_gain) = modes.value_and_gradients(
        scale, [value, gain], mode, upstream
    )
    np.testing.assert_array_equal(in_value, upstream * gain)
    np.testing.assert_array_equal(in_gain, [3, 1])
