import mpmath
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import ops


def _logits(dtype):
    """Rows of integers and halves, whose differences are exact in every dtype."""
    rng = np.random.default_rng(0)
    rows = rng.integers(-8, 8, (12, 5)) / 2
    special = [[7, -7, -7, -6, -7], [3, 3, 1, 0, -1], [2, 2, 2, 2, 2]]
    return tf.constant(np.concatenate([rows, special]), dtype)


def _softmax(row):
    total = mpmath.fsum(map(mpmath.exp, row))
    return [mpmath.exp(x) / total for x in row]


def _log_softmax(row):
    return [mpmath.log(p) for p in _softmax(row)]


def _logsumexp(row):
    return mpmath.log(mpmath.fsum(map(mpmath.exp, row)))


def _log_softmax_gradient(row, upstream):
    total = mpmath.fsum(upstream)
    return [u - p * total for u, p in zip(upstream, _softmax(row), strict=True)]


def _softmax_gradient(row, upstream):
    probs = _softmax(row)
    mean = mpmath.fdot(probs, upstream)
    return [p * (u - mean) for u, p in zip(upstream, probs, strict=True)]


def _gradient(function):
    def slope(x, upstream):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = function(x)
        return tape.gradient(value, x, upstream)

    return slope


def test_log_softmax_agrees_with_mpmath(mode, dtype):
    x = _logits(dtype)
    upstream = tf.one_hot(tf.argmax(tf.cast(x, tf.float32), -1), 5, dtype=dtype)
    budget = oracle.budget("log_softmax", dtype, mode)
    got, (slope,) = modes.value_and_gradients(ops.log_softmax, [x], mode, upstream)
    assert got.dtype == slope.dtype == dtype
    assert oracle.ulp_error(got, oracle.exact_rows(_log_softmax, x)) <= budget
    truth = oracle.exact_rows(_log_softmax_gradient, x, upstream)
    assert oracle.ulp_error(slope, truth) <= budget


def test_the_gradient_of_log_softmax_agrees_for_any_incoming_gradient(mode, dtype):
    x = _logits(dtype)
    upstream = tf.cast(np.random.default_rng(1).normal(size=x.shape), dtype)
    _, (slope,) = modes.value_and_gradients(ops.log_softmax, [x], mode, upstream)
    truth = oracle.exact_rows(_log_softmax_gradient, x, upstream)
    budget = oracle.budget("log_softmax", dtype, mode)
    # The terms of the sum have the size of the incoming gradient.
    scale = np.abs(np.asarray(upstream, float)).max(-1, keepdims=True)
    assert oracle.ulp_error(slope, truth, scale) <= budget


def test_logsumexp_agrees_with_mpmath(mode, dtype):
    x = _logits(dtype)
    budget = oracle.budget("logsumexp", dtype, mode)
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.logsumexp(x, axis=-1), [x], mode
    )
    assert got.dtype == slope.dtype == dtype
    scale = np.abs(np.asarray(x, float)).max(-1)
    assert oracle.ulp_error(got, oracle.exact_rows(_logsumexp, x), scale) <= budget
    assert oracle.ulp_error(slope, oracle.exact_rows(_softmax, x)) <= budget


def test_the_second_gradients_agree_with_mpmath(mode, dtype):
    x = _logits(dtype)
    onehot = tf.one_hot(tf.argmax(tf.cast(x, tf.float32), -1), 5, dtype=dtype)
    truth = oracle.exact_rows(_softmax_gradient, x, onehot)
    budget = oracle.budget("log_softmax", dtype, mode)

    def of_logsumexp(x):
        slope = _gradient(lambda x: ops.logsumexp(x, axis=-1))
        return slope(x, tf.ones_like(x[:, 0]))

    _, (second,) = modes.value_and_gradients(of_logsumexp, [x], mode, onehot)
    assert oracle.ulp_error(second, truth) <= budget

    def of_log_softmax(x):
        return -_gradient(ops.log_softmax)(x, onehot)

    _, (second,) = modes.value_and_gradients(of_log_softmax, [x], mode, onehot)
    assert oracle.ulp_error(second, truth) <= budget


UPSTREAM = [1.0, 2.0, -1.0]
# Of logits 0 and 1: their shares and the logarithm of their exponentials' sum.
SMALL, LARGE, TOTAL = 1 / (1 + np.e), np.e / (1 + np.e), np.log1p(np.e)
LOG_SOFTMAX_EDGES = {
    # The incoming gradients sum to 2.
    "one -inf": (
        [-INF, 0.0, 1.0],
        [-INF, -TOTAL, -np.log1p(1 / np.e)],
        [1.0, 2 * LARGE, -1 - 2 * LARGE],
    ),
    "all -inf": ([-INF] * 3, [-INF] * 3, [0.0] * 3),
    "+inf": ([INF, 0.0, -INF], [NAN] * 3, [NAN] * 3),
    "NaN": ([NAN, 0.0, -INF], [NAN] * 3, [NAN] * 3),
}
LOGSUMEXP_EDGES = {
    "one -inf": ([-INF, 0.0, 1.0], TOTAL, [0.0, SMALL, LARGE]),
    "all -inf": ([-INF] * 3, -INF, [0.0] * 3),
    "+inf": ([INF, 0.0, INF], INF, [0.5, 0.0, 0.5]),
    "NaN": ([NAN, INF, -INF], NAN, [NAN] * 3),
}


def test_the_edges_of_log_softmax_are_those_of_its_docstring(mode, dtype):
    others = ["masked", "T = 0", "T < 0"]
    assert [*LOG_SOFTMAX_EDGES, *others] == documented(ops.log_softmax)
    x, values, slopes = zip(*LOG_SOFTMAX_EDGES.values(), strict=True)
    x = tf.constant(x, dtype)
    upstream = [UPSTREAM] * len(LOG_SOFTMAX_EDGES)
    got, (gradient,) = modes.value_and_gradients(ops.log_softmax, [x], mode, upstream)
    assert_rounded(got, values)
    assert_rounded(gradient, slopes)
    for silent in modes.silent_gradients(ops.log_softmax, [x], mode):
        assert_rounded(silent, 0.0)


def test_the_edges_of_logsumexp_are_those_of_its_docstring(mode, dtype):
    others = ["masked", "no entry"]
    assert [*LOGSUMEXP_EDGES, *others] == documented(ops.logsumexp)

    def function(x):
        return ops.logsumexp(x, axis=-1)

    x, values, slopes = zip(*LOGSUMEXP_EDGES.values(), strict=True)
    x = tf.constant(x, dtype)
    got, (gradient,) = modes.value_and_gradients(function, [x], mode)
    assert_rounded(got, values)
    assert_rounded(gradient, slopes)
    for silent in modes.silent_gradients(function, [x], mode):
        assert_rounded(silent, 0.0)


def test_logsumexp_of_no_entry_is_minus_infinity(mode, dtype):
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.logsumexp(x, axis=1), [tf.zeros([2, 0], dtype)], mode
    )
    assert_rounded(got, [-INF, -INF])
    assert slope.shape == [2, 0]


MASK = [[True, False, True], [False] * 3, [True] * 3, [True, True, False]]
MASKED = [[1.0, NAN, 0.0], [NAN, INF, 1.0], [-INF] * 3, [-INF, -INF, 3.0]]


def test_what_is_masked_does_not_count_in_log_softmax(mode, dtype):
    x, mask = tf.constant(MASKED, dtype), tf.constant(MASK)

    def function(x):
        return ops.log_softmax(x, mask=mask)

    got, (slope,) = modes.value_and_gradients(function, [x], mode, [UPSTREAM] * 4)
    assert_rounded(got[0], [-np.log1p(1 / np.e), -INF, -TOTAL])
    assert_rounded(got[1:], -INF)
    assert_rounded(slope, [[1 - 2 * LARGE, 0.0, -1 - 2 * SMALL], *[[0.0] * 3] * 3])
    for silent in modes.silent_gradients(function, [x], mode):
        assert_rounded(silent, 0.0)


def test_what_is_masked_does_not_count_in_logsumexp(mode, dtype):
    x, mask = tf.constant(MASKED, dtype), tf.constant(MASK, tf.int32)

    def function(x):
        return ops.logsumexp(x, -1, mask=mask)

    got, (slope,) = modes.value_and_gradients(function, [x], mode)
    assert_rounded(got, [TOTAL, -INF, -INF, -INF])
    assert_rounded(slope, [[LARGE, 0.0, SMALL], *[[0.0] * 3] * 3])
    for silent in modes.silent_gradients(function, [x], mode):
        assert_rounded(silent, 0.0)


def test_log_softmax_at_temperature_0_is_that_of_the_largest(mode, dtype):
    x = tf.constant([[1.0, 3.0, 3.0], [-1e4, -2e4, -INF]], dtype)
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.log_softmax(x, temperature=0), [x], mode, [UPSTREAM] * 2
    )
    assert_rounded(got, [[-INF, -np.log(2), -np.log(2)], [0.0, -INF, -INF]])
    assert_rounded(slope, 0.0)


def test_log_softmax_at_a_negative_temperature_is_nan(mode):
    x, temperature = tf.constant([[1.0, 2.0]]), tf.constant([[-1.0]])
    function = modes.compile_for(mode, lambda x, t: ops.log_softmax(x, temperature=t))
    assert_rounded(function(x, temperature), NAN)


def test_log_softmax_at_a_temperature_agrees_with_mpmath(mode, dtype):
    x, temperature = _logits(dtype), tf.constant(0.5, dtype)
    upstream = tf.cast(np.random.default_rng(1).normal(size=x.shape), dtype)
    got, (in_x, in_t) = modes.value_and_gradients(
        lambda x, t: ops.log_softmax(x, temperature=t), [x, temperature], mode, upstream
    )
    budget = oracle.budget("log_softmax", dtype, mode)
    doubled = 2 * tf.cast(x, tf.float64)
    assert oracle.ulp_error(got, oracle.exact_rows(_log_softmax, doubled)) <= budget
    slopes = oracle.exact_rows(_log_softmax_gradient, doubled, upstream)
    scale = 2 * np.abs(np.asarray(upstream, float)).max(-1, keepdims=True)
    assert oracle.ulp_error(in_x, 2 * slopes, scale) <= budget
    truth = -2 * np.sum(slopes * np.asarray(doubled))
    assert_rounded(in_t, float(truth))


def test_a_nan_comes_out_wherever_it_is(mode):
    # Some kernels of `reduce_max` pass over a NaN.
    rows = np.repeat([[-INF] * 3, [INF] * 3, [0.0] * 3], 3, axis=0)
    rows[np.arange(9), np.tile(np.arange(3), 3)] = NAN
    x, upstream = tf.constant(rows), tf.constant([UPSTREAM] * 9)
    got, (slope,) = modes.value_and_gradients(ops.log_softmax, [x], mode, upstream)
    assert_rounded([got, slope], NAN)
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.logsumexp(x, axis=-1), [x], mode
    )
    assert_rounded(got, NAN)
    assert_rounded(slope, NAN)


def test_a_dominating_class_keeps_its_value_and_its_gradient(mode):
    x = tf.constant([[0.0, -20.0]])
    got, (slope,) = modes.value_and_gradients(
        ops.log_softmax, [x], mode, tf.constant([[1.0, 0.0]])
    )
    assert_rounded(got, [[-2.0611537e-09, -20.0]])
    assert_rounded(slope, [[2.0611537e-09, -2.0611537e-09]])
    assert tf.nn.log_softmax(x)[0, 0] == 0


def test_logits_that_xla_computes_twice_agree_with_float64():
    """The largest element may then differ by a rounding from the maximum."""
    rng = np.random.default_rng(0)
    a, b = (tf.constant(rng.normal(size=(n, 16)), tf.float32) for n in (64, 300))

    def logits(a, b):
        return tf.matmul(a, b, transpose_b=True) / 0.07

    def sums(a, b):
        x = logits(a, b)
        return ops.logsumexp(x, axis=1), tf.reduce_max(ops.log_softmax(x, axis=1), 1)

    exact = logits(tf.cast(a, tf.float64), tf.cast(b, tf.float64))
    expected = tf.reduce_logsumexp(exact, 1), tf.reduce_max(tf.nn.log_softmax(exact), 1)
    got = tf.function(sums, jit_compile=True)(a, b)
    for value, reference in zip(got, expected, strict=True):
        assert_close(value, reference, scale=np.abs(exact).max())


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), None])
@pytest.mark.parametrize("op", [ops.log_softmax, ops.logsumexp])
def test_every_axis_agrees_with_float64(op, axis, mode):
    x = tf.cast(np.random.default_rng(2).normal(size=(4, 3, 5)), tf.float32)
    got, (slope,) = modes.value_and_gradients(lambda x: op(x, axis=axis), [x], mode)
    wide = tf.cast(x, tf.float64)
    total = tf.reduce_logsumexp(wide, axis, keepdims=True)
    probs = tf.exp(wide - total)
    if op is ops.logsumexp:
        value, gradient, count = tf.reduce_logsumexp(wide, axis), probs, 1.0
    else:
        count = float(tf.size(x) / tf.size(total))
        value, gradient = wide - total, 1 - probs * count
    # The terms are about as large as the largest entry, 2.6, and as the count.
    assert oracle.ulp_error(got, np.asarray(value, object), scale=2.6) <= 4
    assert oracle.ulp_error(slope, np.asarray(gradient, object), scale=count) <= 4


def test_keepdims_keeps_the_summed_axes(mode):
    x = tf.zeros([2, 3, 4])
    function = modes.compile_for(mode, lambda x: ops.logsumexp(x, axis=(0, -1)))
    assert function(x).shape == [3]
    kept = modes.compile_for(mode, lambda x: ops.logsumexp(x, axis=1, keepdims=True))
    assert kept(x).shape == [2, 1, 4]


rows = st.lists(
    st.floats(-60.0, 60.0, width=32, allow_subnormal=False), min_size=1, max_size=6
)


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(row=rows)
def test_the_probabilities_sum_to_1(row):
    log_probs = ops.log_softmax(tf.constant(row))
    assert tf.reduce_all(log_probs <= 0)
    assert abs(tf.reduce_sum(tf.exp(log_probs)) - 1) <= 1e-6


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(row=rows)
def test_logsumexp_lies_between_the_largest_entry_and_that_of_equal_entries(row):
    total = ops.logsumexp(tf.constant(row))
    assert total >= max(row)
    assert total <= max(row) + np.log(len(row)) * (1 + 1e-6) + abs(max(row)) * 1e-6
