import mpmath
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.ops.edges import assert_rounded, documented
from tests.ops.elementwise import INF, NAN, derivatives, edges
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import ops


def _rows(dtype, seed=3):
    """Probabilities of every size, that sum to 1 up to their rounding."""
    logits = np.random.default_rng(seed).normal(scale=3, size=[4, 5])
    return tf.cast(tf.nn.softmax(logits), dtype)


def _budget(dtype, unit=6):
    return 0.51 if dtype.size == 2 else unit


def _log_softmax(row):
    total = mpmath.log(sum(mpmath.exp(z) for z in row))
    return [z - total for z in row]


def _entropy(logits):
    return -sum(mpmath.exp(v) * v for v in _log_softmax(logits))


def test_the_entropy_agrees_with_mpmath_up_to_second_order(mode, dtype):
    p = _rows(dtype)
    value, slope, second = derivatives(ops.entropy, [p], mode)
    assert value.dtype == dtype
    truth = oracle.exact_rows(lambda row: -sum(x * mpmath.log(x) for x in row), p)
    assert oracle.ulp_error(value, truth) <= _budget(dtype)
    truth = oracle.exact(lambda x: -mpmath.log(x) - 1, p)
    assert oracle.ulp_error(slope, truth, 1.0) <= _budget(dtype)
    truth = oracle.exact(lambda x: -1 / x, p)
    assert oracle.ulp_error(second, truth) <= _budget(dtype)


def test_the_entropy_of_logits_agrees_with_mpmath(mode, dtype):
    rng = np.random.default_rng(4)
    logits = tf.cast(rng.normal(scale=4, size=[4, 5]), dtype)

    def function(z):
        return ops.entropy(z, from_logits=True)

    value, (slope,) = modes.value_and_gradients(function, [logits], mode)
    truth = oracle.exact_rows(_entropy, logits)
    # The distances to the largest logit are rounded.
    assert oracle.ulp_error(value, truth) <= _budget(dtype, 20)
    truth = oracle.exact_rows(
        lambda z: [-mpmath.exp(v) * (v + _entropy(z)) for v in _log_softmax(z)], logits
    )
    size = oracle.exact_rows(
        lambda z: [mpmath.exp(v) * (1 + abs(v)) for v in _log_softmax(z)], logits
    )
    assert oracle.ulp_error(slope, truth, size) <= _budget(dtype, 20)


def test_the_entropy_of_a_sure_event_keeps_its_digits_from_logits(mode):
    logits = tf.constant([0.0, -20.0])
    value = modes.compile_for(mode, lambda z: ops.entropy(z, from_logits=True))(logits)
    # As probabilities, the first one is 1 and adds nothing: 4 % are missing.
    assert_rounded(value, 21 * np.exp(-20.0))


def test_the_second_derivatives_of_the_entropy_of_logits_agree_with_float64(mode):
    def function(z):
        return ops.entropy(z, from_logits=True) ** 2

    z = tf.constant([[0.5, -1.0, -INF, 2.0]])
    got = modes.second_gradient(function, z, mode)
    kept = tf.constant([[0.5, -1.0, 2.0]], tf.float64)
    right = modes.second_gradient(function, kept, "eager")
    assert_close(tf.gather(got, [0, 1, 3], axis=1), right)
    assert got[0, 2] == 0


ENTROPY_EDGES = {
    "p = 0": (0.0, 0.0, 0.0),
    "p < 0": (-0.5, NAN, NAN),
    "p = NaN": (NAN, NAN, NAN),
}


def test_the_edges_of_the_entropy_are_those_of_its_docstring(mode, dtype):
    rows = documented(ops.entropy)
    assert rows == [*ENTROPY_EDGES, "logits = -inf", "all -inf"]

    def each(p):
        return ops.entropy(p[:, tf.newaxis])

    got, wanted, silent = edges(each, list(ENTROPY_EDGES.values()), dtype, mode)
    assert_rounded(got, wanted)
    assert_rounded(silent, 0.0)


def test_impossible_logits_do_not_count_in_the_entropy(mode, dtype):
    logits = tf.constant([[0.0, 0.0, -INF], [-INF, -INF, -INF]], dtype)

    def function(z):
        return ops.entropy(z, from_logits=True)

    value, (slope,) = modes.value_and_gradients(function, [logits], mode)
    assert_rounded(value, [np.log(2), 0.0])
    assert_rounded(slope, 0.0)


def test_a_row_without_incoming_gradient_has_none_for_its_logits(mode):
    logits = tf.constant([[NAN, 1.0], [-INF, -INF], [0.0, -INF]])

    def function(z):
        return ops.entropy(z, from_logits=True)

    for silent in modes.silent_gradients(function, [logits], mode):
        assert_rounded(silent, 0.0)


def test_the_divergence_agrees_with_mpmath_up_to_second_order(mode, dtype):
    p, q = _rows(dtype), _rows(dtype, seed=8)
    value, in_p, in_q, in_pp, in_pq, in_qp, in_qq = derivatives(
        ops.kl_divergence, [p, q], mode
    )

    def terms(p, q):
        return [x * mpmath.log(x / y) for x, y in zip(p, q, strict=True)]

    truth = oracle.exact_rows(lambda p, q: sum(terms(p, q)), p, q)
    size = oracle.exact_rows(lambda p, q: max(map(abs, terms(p, q))), p, q)
    assert oracle.ulp_error(value, truth, size) <= _budget(dtype)
    for got, truth in [
        (in_p, lambda p, q: mpmath.log(p / q) + 1),
        (in_q, lambda p, q: -p / q),
        (in_pp, lambda p, q: 1 / p),
        (in_pq, lambda p, q: -1 / q),
        (in_qp, lambda p, q: -1 / q),
        (in_qq, lambda p, q: p / q**2),
    ]:
        size = 1.0 if got is in_p else 0.0
        assert oracle.ulp_error(got, oracle.exact(truth, p, q), size) <= _budget(dtype)


def test_the_divergence_of_close_probabilities_keeps_its_digits(mode):
    p = tf.constant([[0.5], [0.25], [1e-30]])
    q = p * (1 + 1e-5)
    got = modes.compile_for(mode, ops.kl_divergence)(p, q)
    truth = oracle.exact(lambda p, q: p * mpmath.log(p / q), p[:, 0], q[:, 0])
    assert oracle.ulp_error(got, truth) <= 4


DIVERGENCE_EDGES = {
    "p = 0, q > 0": (0.0, 0.5, 0.0, 0.0, 0.0),
    "p = 0, q = 0": (0.0, 0.0, 0.0, 0.0, 0.0),
    "p > 0, q = 0": (0.5, 0.0, INF, 0.0, 0.0),
    "p < 0, q > 0": (-0.5, 0.5, NAN, NAN, 1.0),
    "p > 0, q < 0": (0.5, -0.5, NAN, NAN, NAN),
    "p < 0, q < 0": (-0.5, -0.5, NAN, NAN, NAN),
    "p = NaN, q > 0": (NAN, 0.5, NAN, NAN, NAN),
    "p = 0, q = NaN": (0.0, NAN, NAN, NAN, 0.0),
}


def test_the_edges_of_the_divergence_are_those_of_its_docstring(mode, dtype):
    assert list(DIVERGENCE_EDGES) == documented(ops.kl_divergence)

    def each(p, q):
        return ops.kl_divergence(p[:, tf.newaxis], q[:, tf.newaxis])

    rows = list(DIVERGENCE_EDGES.values())
    got, wanted, silent = edges(each, rows, dtype, mode, 2)
    for result, truth in zip(got, wanted, strict=True):
        assert_rounded(result, truth)
    assert_rounded(silent, 0.0)


def test_the_divergence_from_logits_is_exact_where_probabilities_underflow(mode, dtype):
    p = tf.constant([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0]], dtype)
    logits = tf.constant([[0.0, 200.0, -INF], [1.0, 1.0, -INF]], dtype)

    def function(p, z):
        return ops.kl_divergence(p, z, from_logits=True)

    value, (in_p, in_logits) = modes.value_and_gradients(function, [p, logits], mode)
    assert_rounded(value, [200, 0.25 * np.log(0.5) + 0.75 * np.log(1.5)])
    assert_rounded(in_logits, [[-1, 1, 0], [0.25, -0.25, 0]])
    assert_rounded(in_p, [[201, 0, 0], [1 + np.log(0.5), 1 + np.log(1.5), 0]])


def test_the_divergence_from_logits_has_a_zero_gradient_for_a_zero_upstream(
    mode,
):
    p = tf.constant([[1.0, 0.0], [0.5, 0.5], [0.5, NAN]])
    logits = tf.constant([[-INF, -INF], [0.0, -INF], [0.0, NAN]])

    def function(p, z):
        return ops.kl_divergence(p, z, from_logits=True)

    for silent in modes.silent_gradients(function, [p, logits], mode):
        assert_rounded(silent, 0.0)


def test_a_class_that_must_be_but_cannot_costs_infinity(mode):
    p, logits = tf.constant([[0.5, 0.5]]), tf.constant([[0.0, -INF]])

    def function(p, z):
        return ops.kl_divergence(p, z, from_logits=True)

    value, (in_p, _) = modes.value_and_gradients(function, [p, logits], mode)
    assert_rounded(value, INF)
    assert_rounded(in_p, [[1 + np.log(0.5), 0.0]])


@pytest.mark.parametrize("axis", [0, 1, (0, 1), None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_they_sum_along_the_axes(axis, keepdims):
    p, q = _rows(tf.float32), _rows(tf.float32, seed=8)
    options = {"axis": axis, "keepdims": keepdims}
    wanted = -tf.reduce_sum(p * tf.math.log(p), **options)
    assert_rounded(ops.entropy(p, **options), wanted)
    wanted = tf.reduce_sum(p * tf.math.log(p / q), **options)
    assert_rounded(ops.kl_divergence(p, q, **options), wanted)


def test_the_divergence_sums_the_gradients_of_what_was_broadcast():
    p, q = _rows(tf.float32)[:, tf.newaxis], _rows(tf.float32, seed=8)
    full = [tf.repeat(p, 4, 1), tf.repeat(q[tf.newaxis], 4, 0)]
    value, (in_p, in_q) = modes.value_and_gradients(ops.kl_divergence, [p, q], "graph")
    wanted, each = modes.value_and_gradients(ops.kl_divergence, full, "graph")
    assert_rounded(value, wanted)
    assert_rounded(in_p, tf.reduce_sum(each[0], 1, keepdims=True))
    assert_rounded(in_q, tf.reduce_sum(each[1], 0))


logits = st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=5)


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=40)
@given(row=logits)
def test_the_entropy_lies_between_0_and_that_of_equal_chances(row):
    value = ops.entropy(tf.constant(row), from_logits=True)
    assert 0 <= value <= np.log(len(row)) * (1 + 1e-6)


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=40)
@given(row=logits)
def test_the_divergence_from_equal_chances_is_what_the_entropy_lacks(row):
    p = tf.nn.softmax(tf.constant(row))
    value = ops.kl_divergence(p, tf.ones_like(p) / len(row))
    assert abs(value - (np.log(len(row)) - ops.entropy(p))) <= 2e-6
