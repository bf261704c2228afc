"""Mean, variance and standard deviation: exact rows, masks, and rows without spread."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.support import modes, oracle
from tfsafe import ops
from tfsafe._limits import LIMITS

STATISTICS = {"mean": ops.mean, "variance": ops.variance, "std": ops.std}
every_statistic = pytest.mark.parametrize("name", list(STATISTICS))


def _rows(dtype):
    """Rows of several sizes, with means that exceed the deviation."""
    rows = np.random.default_rng(0).normal(size=(6, 7))
    means = np.array([0, 1, -3, 10, 100, 1000])
    rows += np.minimum(means, 0.05 / LIMITS[dtype.name].eps)[:, np.newaxis]
    largest = LIMITS[dtype.name].max
    sizes = np.array([1, largest / 16, 2.0**-10, 1, largest**0.5, 1])[:, np.newaxis]
    return tf.cast(rows * np.minimum(sizes, largest / 4096), dtype)


def _exact(name):
    def statistic(row):
        size = len(row)
        mean = mpmath.fsum(row) / size
        deviations = [x - mean for x in row]
        variance = mpmath.fdot(deviations, deviations) / size
        std = mpmath.sqrt(variance)
        return {
            "mean": [mean, *[mpmath.mpf(1) / size for _ in row]],
            "variance": [variance, *[2 * d / size for d in deviations]],
            "std": [std, *[d / (size * std) for d in deviations]],
        }[name]

    return statistic


@every_statistic
def test_values_and_gradients_agree_with_mpmath(name, mode, dtype):
    x = _rows(dtype)
    got, (slope,) = modes.value_and_gradients(
        lambda x: STATISTICS[name](x, -1), [x], mode
    )
    assert got.dtype == slope.dtype == dtype
    truth = oracle.exact_rows(_exact(name), x)
    budget = oracle.budget("moments", dtype, mode)
    largest = np.abs(np.asarray(x, float)).max(-1) if name == "mean" else 0
    assert oracle.ulp_error(got, truth[:, 0], largest) <= budget
    slopes = truth[:, 1:]
    scale = np.abs(slopes).max(-1, keepdims=True)
    assert oracle.ulp_error(slope, slopes, scale) <= 2 * budget


@every_statistic
def test_the_second_gradient_agrees_with_differences(name, mode):
    x = tf.constant(np.random.default_rng(1).normal(size=(1, 4)))
    mask = tf.constant([[True, True, False, True]])

    def slopes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = STATISTICS[name](x, -1, mask=mask) ** 3
        return tf.reduce_sum(tf.sin(3 * tape.gradient(value, x)))

    theory = oracle.assert_slopes_are_differences(
        modes.compile_for(mode, slopes), [x], 8.3e6
    )
    assert np.abs(theory[0]).max() > 0.01


# Values, mask; then value and gradient of mean, variance and std.
ALL = [True] * 3
EDGES = {
    "all equal": ([0.1] * 3, ALL, (0.1, 0.0, 0.0), ([1 / 3] * 3, [0.0] * 3, [0.0] * 3)),
    "no entry": ([NAN, INF, 1.0], [False] * 3, (0.0,) * 3, ([0.0] * 3,) * 3),
    "masked": (
        [1.0, NAN, 3.0],
        [True, False, True],
        (2.0, 1.0, 1.0),
        ([0.5, 0.0, 0.5], [-1.0, 0.0, 1.0], [-0.5, 0.0, 0.5]),
    ),
    "inf": (
        [1.0, INF, 3.0],
        ALL,
        (INF, NAN, NAN),
        ([1 / 3] * 3, [-INF, NAN, -INF], [NAN] * 3),
    ),
    "NaN": (
        [1.0, 2.0, NAN],
        ALL,
        (NAN, NAN, NAN),
        ([1 / 3] * 3, [NAN] * 3, [NAN] * 3),
    ),
}


@every_statistic
def test_the_edges_are_those_of_the_docstring(name, mode, dtype):
    # `test_reduction` has the rows of the mean, which takes weights as well.
    assert name == "mean" or list(EDGES) == documented(STATISTICS[name])
    which = list(STATISTICS).index(name)
    x = tf.constant([row[0] for row in EDGES.values()], dtype)
    mask = tf.constant([row[1] for row in EDGES.values()])

    def function(x):
        return STATISTICS[name](x, axis=-1, mask=mask)

    got, (slope,) = modes.value_and_gradients(function, [x], mode)
    assert_rounded(got, [row[2][which] for row in EDGES.values()])
    assert_rounded(slope, [row[3][which] for row in EDGES.values()])
    for silent in modes.silent_gradients(function, [x], mode):
        assert_rounded(silent, 0.0)


def test_moments_are_mean_and_variance(mode):
    assert documented(ops.moments) == list(EDGES)
    x = tf.constant(np.random.default_rng(2).normal(size=(3, 4)), tf.float32)
    mask = x > -1
    got = modes.compile_for(mode, lambda x: ops.moments(x, [0, 1], mask=mask))(x)
    assert_rounded(got[0], ops.mean(x, mask=mask))
    assert_rounded(got[1], ops.variance(x, mask=mask))
    kept = modes.compile_for(mode, lambda x: ops.moments(x, 0, True))(x)
    assert [value.shape for value in kept] == [[1, 4]] * 2


@pytest.mark.parametrize("number", [0.1, -7e11, 3e38, 1e-37])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_equal_elements_have_no_spread(number, size, mode):
    x = tf.fill([size], tf.constant(number))
    for function in (ops.std, ops.variance):
        got, (slope,) = modes.value_and_gradients(function, [x], mode)
        assert got == 0
        assert not np.any(slope)


def test_neither_the_largest_nor_the_smallest_numbers_leave_the_range(mode):
    x = tf.constant([[3e38, -3e38, 3e38, -3e38], [1e-36, 2e-36, 1e-36, 2e-36]])
    got, (slope,) = modes.value_and_gradients(lambda x: ops.std(x, -1), [x], mode)
    assert_rounded(got, [3e38, 5e-37])
    assert_rounded(slope, [[0.25, -0.25] * 2, [-0.25, 0.25] * 2])
    mean = modes.compile_for(mode, lambda x: ops.mean(x, -1))
    assert_rounded(mean(tf.abs(x)), [3e38, 1.5e-36])


@every_statistic
@pytest.mark.parametrize("shape", [[0], [2, 0]])
def test_of_nothing_it_is_0(name, shape, mode, dtype):
    got, (slope,) = modes.value_and_gradients(
        lambda x: STATISTICS[name](x, -1), [tf.zeros(shape, dtype)], mode
    )
    assert_rounded(got, 0.0)
    assert slope.shape == shape


@every_statistic
@pytest.mark.parametrize("axis", [0, (0, -1), (), None])
def test_every_axis_agrees_with_float64(name, axis, mode):
    x = tf.cast(np.random.default_rng(3).normal(size=(4, 3, 5)), tf.float32)
    function = {"mean": np.mean, "variance": np.var, "std": np.std}[name]
    truth = function(np.asarray(x, float), axis)
    got = modes.compile_for(mode, lambda x: STATISTICS[name](x, axis))(x)
    assert oracle.ulp_error(got, truth, scale=1.0) <= 4


@every_statistic
def test_an_unknown_rank_with_a_negative_axis_is_reduced(name):
    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)], autograph=False)
    def unknown(x):
        return STATISTICS[name](x, axis=-1)

    for x in (tf.constant([1.0, 2.0]), tf.constant([[1.0, 3.0], [2.0, 8.0]])):
        assert_rounded(unknown(x), STATISTICS[name](x, -1))


def test_a_wrong_axis_of_moments_is_named_axes():
    with pytest.raises(ValueError, match=r"`axes` is out of range. Received: axes=2"):
        ops.moments(tf.zeros([3, 4]), 2)
