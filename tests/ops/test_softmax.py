"""Softmax: exact rows, masks, temperatures, and rows where nothing is possible."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.support import modes, oracle
from tfsafe import ops
from tfsafe._limits import LIMITS


def _logits(dtype):
    """Rows of integers and halves, whose differences are exact in every dtype."""
    rng = np.random.default_rng(0)
    rows = rng.integers(-8, 8, (10, 5)) / 2
    special = [[7, -7, -7, -6, -7], [3, 3, 1, 0, -1], [2, 2, 2, 2, 2]]
    return tf.constant(np.concatenate([rows, special]), dtype)


def _upstream(x):
    return tf.cast(np.random.default_rng(1).normal(size=x.shape), x.dtype)


def _exact(row, upstream):
    total = mpmath.fsum(map(mpmath.exp, row))
    probs = [mpmath.exp(x) / total for x in row]
    mean = mpmath.fdot(probs, upstream)
    slopes = [p * (u - mean) for u, p in zip(upstream, probs, strict=True)]
    return [probs, slopes]


def test_values_and_gradients_agree_with_mpmath(mode, dtype):
    x = _logits(dtype)
    upstream = _upstream(x)
    got, (slope,) = modes.value_and_gradients(ops.softmax, [x], mode, upstream)
    assert got.dtype == slope.dtype == dtype
    truth = oracle.exact_rows(_exact, x, upstream)
    budget = oracle.budget("softmax", dtype, mode)
    assert oracle.ulp_error(got, truth[:, 0]) <= budget
    scale = np.abs(truth[:, 1]).max(-1, keepdims=True)
    assert oracle.ulp_error(slope, truth[:, 1], scale) <= budget


@pytest.mark.parametrize("lead", [5.0, 15.0, 20.0, 40.0, 80.0])
def test_the_gradient_of_a_dominating_class_keeps_its_digits(lead, mode):
    x = tf.constant([[lead, 0.0, -1.0], [lead, lead, 0.0]])
    upstream = tf.constant([[1.0, 0.3, -0.7], [1.0, 1.0, -0.5]])
    _, (slope,) = modes.value_and_gradients(ops.softmax, [x], mode, upstream)
    truth = oracle.exact_rows(_exact, x, upstream)[:, 1]
    assert oracle.ulp_error(slope, truth) <= 8


def test_the_second_gradient_agrees_with_differences(mode):
    x = tf.constant(np.random.default_rng(3).normal(size=(1, 3)))
    temperature = tf.constant([[0.7]], tf.float64)

    def slopes(x, temperature):
        with tf.GradientTape() as tape:
            tape.watch([x, temperature])
            value = ops.softmax(x, temperature=temperature) ** 3
        in_x, in_t = tape.gradient(value, [x, temperature])
        return tf.reduce_sum(tf.sin(3 * in_x)) + tf.reduce_sum(tf.sin(5 * in_t))

    theory = oracle.assert_slopes_are_differences(
        modes.compile_for(mode, slopes), [x, temperature], 6e6, 6e6
    )
    assert min(np.abs(theory[0]).max(), np.abs(theory[1]).max()) > 0.01


UPSTREAM = [1.0, 2.0, -1.0]
# Of logits 0 and 1, and the slope of the first.
SHARES = [1 / (1 + np.e), np.e / (1 + np.e)]
SLOPE = 3 * SHARES[0] * SHARES[1]
# Logits, mask, value, gradient.
EDGES = {
    "masked": (
        [NAN, 0.0, 1.0],
        [False, True, True],
        [0.0, *SHARES],
        [0.0, SLOPE, -SLOPE],
    ),
    "one -inf": (
        [-INF, 0.0, 1.0],
        [True] * 3,
        [0.0, *SHARES],
        [0.0, SLOPE, -SLOPE],
    ),
    "all -inf": ([-INF] * 3, [True] * 3, [0.0] * 3, [0.0] * 3),
    "+inf": ([INF, 0.0, 1.0], [True] * 3, [NAN] * 3, [NAN] * 3),
    "NaN": ([0.0, NAN, -INF], [True] * 3, [NAN] * 3, [NAN] * 3),
}
ONLY_MASKED = {"all masked": ([NAN, 0.0, INF], [False] * 3, [0.0] * 3, [0.0] * 3)}


def test_the_edges_are_those_of_the_docstring(mode, dtype):
    names = [*EDGES, "temperature 0", "temperature < 0"]
    assert names == documented(ops.softmax)
    _assert_edges(-1, 1.0, mode, dtype)


@pytest.mark.parametrize(("axis", "temperature"), [((0, 2), 1.0), (-1, 2.0)])
def test_they_are_the_same_for_axes_and_temperatures(axis, temperature, mode):
    _assert_edges(axis, temperature, mode, tf.float32)


def _assert_edges(axis, temperature, mode, dtype):
    x, mask, values, slopes = zip(*(EDGES | ONLY_MASKED).values(), strict=True)
    # With an axis of size 1 in front, for the rows of two axes.
    x = temperature * tf.cast(x, dtype)[tf.newaxis]

    def function(x):
        return ops.softmax(x, axis, mask=mask, temperature=temperature)

    upstream = [[UPSTREAM] * len(mask)]
    got, (gradient,) = modes.value_and_gradients(function, [x], mode, upstream)
    assert_rounded(got[0], values)
    assert_rounded(temperature * gradient[0], slopes)
    for silent in modes.silent_gradients(function, [x], mode):
        assert_rounded(silent, 0.0)


def test_without_a_mask_a_row_of_minus_infinity_is_0_too(mode, dtype):
    x = tf.constant([[-INF] * 3, [-INF, 0.0, 0.0]], dtype)
    got, (slope,) = modes.value_and_gradients(ops.softmax, [x], mode, [UPSTREAM] * 2)
    assert_rounded(got, [[0.0] * 3, [0.0, 0.5, 0.5]])
    assert_rounded(slope, [[0.0] * 3, [0.0, 0.75, -0.75]])


def test_at_temperature_0_the_largest_split_the_probability(mode, dtype):
    x = tf.constant([[1.0, 3.0, 3.0], [-INF, -1e4, -2e4], [-INF] * 3], dtype)
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.softmax(x, temperature=0), [x], mode, [UPSTREAM] * 3
    )
    assert_rounded(got, [[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0] * 3])
    assert_rounded(slope, 0.0)


def test_the_limit_of_temperature_0_is_reached_without_overflow(mode):
    x = tf.constant([[1e30, -1e30, 3e38], [0.0, 1e-30, 1.0]])
    temperatures = tf.constant([[1e-20], [1e-37]])
    got, slopes = modes.value_and_gradients(
        lambda x, t: ops.softmax(x, temperature=t), [x, temperatures], mode
    )
    assert_rounded(got, [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    for slope in slopes:
        assert_rounded(slope, 0.0)


def test_a_negative_temperature_gives_nan(mode):
    function = modes.compile_for(mode, lambda x, t: ops.softmax(x, temperature=t))
    got = function(tf.zeros([2, 2]), tf.constant([[-1.0], [2.0]]))
    assert_rounded(got, [[NAN, NAN], [0.5, 0.5]])


@pytest.mark.parametrize("temperature", [0.5, np.float32(0.5), tf.constant(0.5)])
def test_a_temperature_may_be_a_number_or_a_tensor(temperature):
    x = tf.constant([[0.0, 1.0]])
    got = ops.softmax(x, temperature=temperature)
    assert_rounded(got, tf.nn.softmax(2 * x))


@pytest.mark.parametrize(
    ("temperature", "error", "message"),
    [
        (-1, ValueError, r"`temperature` must be at least 0. Received: .*=-1. At 0 th"),
        ("hot", TypeError, r"`temperature` must be a number. Received: .*='hot'"),
        (1e6, ValueError, r"`temperature` must fit the dtype .* float16"),
        (tf.constant(1.0), TypeError, r"`logits` and `temperature` must have the same"),
    ],
)
@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax])
def test_a_wrong_temperature_is_refused(op, temperature, error, message):
    with pytest.raises(error, match=message):
        op(tf.zeros([2], tf.float16), temperature=temperature)


@pytest.mark.parametrize(
    "op",
    [
        ops.log_softmax,
        ops.logsumexp,
        ops.mean,
        ops.moments,
        ops.softmax,
        ops.std,
        ops.variance,
    ],
)
@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (tf.constant("yes"), TypeError, r"`mask` must be boolean.*=string"),
        (tf.ones([3]), ValueError, r"`mask` must .*broadcasts to .*\(3, 4\)"),
        (tf.RaggedTensor.from_row_lengths([1.0], [1]), TypeError, r"`mask` .*dense"),
    ],
)
def test_a_wrong_mask_is_refused(op, mask, error, message):
    with pytest.raises(error, match=message):
        op(tf.zeros([3, 4]), mask=mask)


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), None])
def test_every_axis_agrees_with_float64(axis, mode):
    x = tf.cast(np.random.default_rng(2).normal(size=(4, 3, 5)), tf.float32)
    upstream = _upstream(x)
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.softmax(x, axis), [x], mode, upstream
    )
    wide, upstream = tf.cast(x, tf.float64), tf.cast(upstream, tf.float64)
    probs = tf.exp(wide - tf.reduce_logsumexp(wide, axis, keepdims=True))
    mean = tf.reduce_sum(probs * upstream, axis, keepdims=True)
    truth = np.asarray(probs * (upstream - mean))
    assert oracle.ulp_error(got, np.asarray(probs)) <= 5
    assert oracle.ulp_error(slope, truth, np.abs(truth).max()) <= 5


def test_an_integer_mask_of_the_keys_broadcasts_over_the_queries(mode):
    scores = tf.constant([[[1.0, 2.0, NAN], [3.0, 3.0, INF]]])
    mask = tf.constant([[[1, 1, 0]]])
    function = modes.compile_for(mode, lambda x: ops.softmax(x, mask=mask))
    assert_rounded(function(scores), [[[*SHARES, 0.0], [0.5, 0.5, 0.0]]])


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_a_check_of_every_operation_finds_nothing_under_a_mask(mode):
    tf.debugging.enable_check_numerics()
    try:
        for mask in (tf.constant([[True, False]]), tf.constant([[False, False]])):
            modes.value_and_gradients(
                lambda x, mask=mask: ops.softmax(x, mask=mask, temperature=0),
                [tf.constant([[1.0, 2.0]])],
                mode,
            )
    finally:
        tf.debugging.disable_check_numerics()


def test_the_lowest_logits_are_equal_without_a_mask(mode):
    lowest = -LIMITS["float32"].max
    function = modes.compile_for(mode, ops.softmax)
    x = tf.constant([[lowest, lowest, -INF], [lowest, 0.0, -INF]])
    assert_rounded(function(x), [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])


rows = st.lists(
    st.floats(-60.0, 60.0, width=32, allow_subnormal=False), min_size=1, max_size=6
)


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(row=rows, data=st.data())
def test_what_is_kept_sums_to_1_and_what_is_not_is_0(row, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(row), max_size=len(row)))
    probs = np.asarray(ops.softmax(tf.constant(row), mask=mask))
    assert np.all(probs >= 0)
    assert not np.any(probs[~np.array(mask)])
    assert abs(probs.sum() - any(mask)) <= 1e-6
