import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import assert_rounded, documented
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import ops

INF = float("inf")
NAN = float("nan")
UPSTREAM = [1.0, -2.0, 0.0, 3.0, 0.5]


def _sums(row):
    return [mpmath.log(sum(map(mpmath.exp, row[: k + 1]))) for k in range(len(row))]


def _gradients(row):
    sums = _sums(row)
    return [
        sum(UPSTREAM[j] * mpmath.exp(row[i] - sums[j]) for j in range(i, len(row)))
        for i in range(len(row))
    ]


def _sizes(row):
    sums = _sums(row)
    return [
        sum(abs(UPSTREAM[j]) * mpmath.exp(row[i] - sums[j]) for j in range(i, len(row)))
        for i in range(len(row))
    ]


def test_values_and_gradients_agree_with_mpmath(mode, dtype):
    rng = np.random.default_rng(6)
    x = tf.cast(rng.normal(scale=3, size=[3, 5]), dtype)

    def function(x):
        return ops.cumulative_logsumexp(x, axis=1)

    upstream = [UPSTREAM] * 3
    value, (slope,) = modes.value_and_gradients(function, [x], mode, upstream)
    assert value.dtype == slope.dtype == dtype
    budget = 0.51 if dtype.size == 2 else 6
    truth = oracle.exact_rows(_sums, x)
    size = oracle.exact_rows(lambda row: [max(map(abs, row))] * 5, x)
    assert oracle.ulp_error(value, truth, size) <= budget
    truth = oracle.exact_rows(_gradients, x)
    size = oracle.exact_rows(_sizes, x)
    # By way of logarithms: their size, up to 12 here, is how many ulps are lost.
    budget = 0.51 if dtype.size == 2 else 30
    assert oracle.ulp_error(slope, truth, size) <= budget


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_every_direction_has_the_gradients_of_cumulative_sums(exclusive, reverse):
    x = tf.constant([[0.5, -1.0, 2.0, 0.0]], tf.float64)
    options = {"axis": 1, "exclusive": exclusive, "reverse": reverse}
    # An empty sum has the logarithm -inf, and no derivatives.
    used = tf.constant([
        [0.0 if exclusive and i == 3 * reverse else 1.0 for i in range(4)]
    ])
    used = tf.cast(used, tf.float64)

    def ours(x):
        return tf.sin(ops.cumulative_logsumexp(x, **options))

    def naive(x):
        sums = tf.cumsum(tf.exp(x), **options)
        return tf.sin(tf.math.log(tf.where(used > 0, sums, 1.0)))

    def kept(function):
        def of_used(x):
            value = function(x)
            return tf.reduce_sum(tf.where(used > 0, value, tf.zeros_like(value)))

        return of_used

    for differentiate in (
        lambda f: modes.value_and_gradients(kept(f), [x], "eager")[1][0],
        lambda f: modes.second_gradient(kept(f), x, "eager"),
    ):
        assert_close(
            differentiate(ours),
            differentiate(naive),
            6,
            why="sums of products of exponentials",
        )


def test_the_gradient_of_its_gradient_agrees_in_every_mode(mode):
    x = tf.constant([-INF, 0.5, -1.0, 2.0])

    def ours(x):
        return tf.sin(ops.cumulative_logsumexp(x)[1:])

    def naive(x):
        return tf.sin(tf.math.log(tf.cumsum(tf.exp(x))))[1:]

    got = modes.second_gradient(ours, x, mode)
    right = modes.second_gradient(naive, tf.cast(x, tf.float64), "eager")
    assert got[0] == 0
    assert_close(got[1:], right[1:])


EDGES = {
    "x = -inf": ([-INF, 0.0, 0.0], [-INF, 0.0, np.log(2)], [0.0, 1.5, 0.5]),
    "x = inf": ([INF, 0.0, 0.0], [INF, INF, INF], [NAN, NAN, NAN]),
    "x = NaN": ([NAN, 0.0, 0.0], [NAN, NAN, NAN], [NAN, NAN, NAN]),
}


def test_its_edges_are_those_of_its_docstring(mode, dtype):
    assert list(EDGES) == documented(ops.cumulative_logsumexp)
    x, values, slopes = (
        tf.constant(column, dtype) for column in zip(*EDGES.values(), strict=True)
    )

    def function(x):
        return ops.cumulative_logsumexp(x, axis=1)

    value, (slope,) = modes.value_and_gradients(function, [x], mode)
    assert_rounded(value, values)
    assert_rounded(slope, slopes)


def test_rows_without_incoming_gradients_have_none(mode):
    x = tf.constant([[NAN, 0.0], [INF, 0.0], [-INF, -INF], [1.0, 2.0]])

    def function(x):
        return ops.cumulative_logsumexp(x, axis=1)

    for silent in modes.silent_gradients(function, [x], mode):
        assert_rounded(silent, 0.0)


def test_large_entries_cost_no_digits():
    x = tf.constant([1e4, 1e4 + 1])
    _, (slope,) = modes.value_and_gradients(ops.cumulative_logsumexp, [x], "graph")
    assert_rounded(slope, [1 + 1 / (1 + np.e), np.e / (1 + np.e)])


@pytest.mark.parametrize(
    ("axis", "error", "message"),
    [
        (1, ValueError, r"`axis` is out of range. Received: axis=\[1\]"),
        (0.5, TypeError, r"`axis` must be an integer.* Received: axis=\[0.5\]"),
        (None, TypeError, r"`axis` must be an integer.* Received: axis=\[None\]"),
    ],
)
def test_a_wrong_axis_is_refused(axis, error, message):
    with pytest.raises(error, match=message):
        ops.cumulative_logsumexp(tf.zeros([3]), axis)


def test_the_third_derivative_agrees_with_that_of_the_naive_form():
    x = tf.constant([0.5, -1.0, 2.0], tf.float64)

    def third(function):
        def slope(x):
            return modes.value_and_gradients(function, [x], "eager")[1][0] ** 2

        return modes.second_gradient(slope, x, "eager")

    naive = third(lambda x: tf.sin(tf.math.log(tf.cumsum(tf.exp(x)))))
    ours = third(lambda x: tf.sin(ops.cumulative_logsumexp(x)))
    assert_close(ours, naive, 7, why="sums of products of exponentials")
