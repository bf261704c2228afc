"""Formulas in half precision are computed in float32 where a part leaves its range."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import assert_rounded
from tests.rewriting.emitting import fired, in_modes, rewritten
from tests.rewriting.tables import RULES
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize

SUM = tf.reduce_sum
# Each function in float16, and numbers for which its parts overflow or vanish and its
# result does not. Its value and its slopes are those of float64.
OUT_OF_RANGE = {
    "a mean": (tf.reduce_mean, [np.linspace(10, 90, 3000)]),
    "a mean along an axis": (
        lambda x: tf.reduce_mean(x, 0, keepdims=True),
        [np.full((2000, 2), 60.0)],
    ),
    "a mean of squares": (
        lambda x, y: tf.reduce_mean((x - y) ** 2, -1),
        [[300.0, 10.0, 2.0, 3.0], [3.0, 20.0, 5.0, 300.0]],
    ),
    "a mean of other powers": (lambda x: tf.reduce_mean(x**3), [[50.0, 3.0, 1.0]]),
    "a mean of squares that Keras takes": (
        lambda x: keras.ops.mean(keras.ops.square(x), -1),
        [[300.0, 10.0, 2.0, 3.0]],
    ),
    "a penalty": (
        lambda x, y: 1e-2 * tf.add_n([tf.nn.l2_loss(x), tf.nn.l2_loss(y)]),
        [[300.0, 200.0], [100.0, 30.0]],
    ),
    "a norm of several": (
        lambda x, y: tf.linalg.global_norm([x, y]),
        [[300.0, 200.0], [100.0, 30.0, 7.0]],
    ),
    "logits of distances": (
        lambda x, y: tf.nn.log_softmax(-SUM((x[:, None] - y) ** 2, -1) / 4),
        [[[300.0, 10.0], [3.0, 4.0]], [[3.0, 4.0], [-10.0, 0.0], [2.0, -3.0]]],
    ),
    "a margin between squared distances": (
        lambda a, b, c: tf.nn.relu(
            SUM(tf.square(a - b), -1) - SUM(tf.square(a - c), -1) + 0.25
        ),
        [[300.0, 10.0], [3.0, 20.0], [5.0, 20.0]],
    ),
    "1 less a quotient of sums": (
        lambda x, y: 1 - 2 * SUM(x * y) / (SUM(x * x) + SUM(y * y) + 1e-6),
        [[200.0, 110.0, 200.0], [200.0, 110.0, 20.0]],
    ),
    "a direction in a ball, by the length of its geodesic": (
        lambda x: 2 * tf.atanh(tf.norm(x, axis=-1, keepdims=True)) * _unit(x),
        [[[0.1, 0.2], [0.5, 0.7]]],
    ),
    "a difference of velocities": (
        lambda x, y, k: _velocity(tf.tanh(x * k), tf.tanh(y * k)),
        [[0.3, 0.7], [-0.8, 0.1], [3.7]],
    ),
    "1 less an overlap that is not negative": (
        lambda a, b: 1 - _overlap(a, b, tf.nn.relu),
        [[[0.2, 0.1, 1.0, 2.0]], [[0.25, 0.11, 1.01, 2.01]]],
    ),
    "a logarithm of a square with an epsilon": (
        lambda x: tf.math.log(tf.square(x) + 1e-8),
        [[0.0, 1e-3, 300.0]],
    ),
    "a weighted logarithm with an epsilon": (
        lambda p, q: SUM(p * (tf.math.log(p + 1e-8) - tf.math.log(q + 1e-8))),
        [[0.25, 0.0, 0.75], [0.0, 0.5, 0.5]],
    ),
    "a running mean": (
        lambda x: tf.cumsum(x) / tf.cast(tf.range(1, 65), x.dtype),
        [np.full(64, 2000.0)],
    ),
    "a gradient that is clipped by its norm": (
        lambda x: tf.clip_by_norm(x, 8.0),
        [[300.0, 400.0, -100.0]],
    ),
    "a trust ratio of what is not 0": (
        lambda w, g: g * tf.where(SUM(w * w) > 0, tf.norm(w) / tf.norm(g), 1.0),
        [[300.0, 400.0], [3.0, -100.0]],
    ),
    "the nearest of the distances by products": (
        lambda x, y: tf.sqrt(
            tf.reduce_min(
                SUM(x * x, 1)[:, None]
                + SUM(y * y, 1)
                - 2 * tf.matmul(x, y, transpose_b=True),
                1,
            )
        ),
        [[[300.0, 10.0], [3.0, 400.0]], [[3.0, 4.0], [-10.0, 0.0], [2.0, -300.0]]],
    ),
    "1 less a power of a quotient of sums": (
        lambda x, y: 1 - (SUM(x * y) / (SUM(x * x) + SUM(y * y))) ** 3,
        [[200.0, 110.0, 200.0], [200.0, 110.0, 20.0]],
    ),
    "the logarithm of 1 plus a square": (
        lambda x: tf.math.log1p(SUM(x * x)),
        [[200.0, 110.0, 200.0]],
    ),
    "a root of 1 plus squares, less 1": (
        lambda x: tf.sqrt(1 + SUM(x * x)) - 1,
        [[300.0, 400.0]],
    ),
    "a ratio of powers in decibels": (
        lambda x, y: 4.0 * tf.math.log(SUM(x * x) / SUM((x - y) ** 2)),
        [[300.0, 400.0], [310.0, -20.0]],
    ),
    "a squashed capsule": (
        lambda x: SUM(x * x) / (1 + SUM(x * x)) * x / tf.sqrt(SUM(x * x)),
        [[300.0, 400.0]],
    ),
    "a normalised gate": (
        lambda x, y: (
            x
            * tf.sigmoid(x)
            * y
            / tf.sqrt(tf.reduce_mean((x * tf.sigmoid(x) * y) ** 2) + 1e-6)
        ),
        [[30.0, 40.0, -1.0], [20.0, 30.0, 50.0]],
    ),
    "a long formula": (
        lambda a, b: _weighted(_overlap(a, b), _apart(a, b)),
        [[[10.0, 20.0, 500.0, 640.0]], [[50.0, 70.0, 640.0, 600.0]]],
    ),
}


def _unit(x):
    return x / tf.norm(x, axis=-1, keepdims=True)


def _velocity(a, b):
    return (a - b) / (1 - a * b)


def _weighted(overlap, apart):
    return overlap**0.5 * (1 - overlap + apart)


def _sides(a, b, pick):
    low, high = pick(a[:, :2], b[:, :2]), -pick(-a[:, 2:], -b[:, 2:])
    return high - low


def _area(sides):
    return sides[:, 0] * sides[:, 1]


def _overlap(a, b, kept=tf.identity):
    inside = _area(kept(_sides(a, b, tf.maximum)))
    return inside / (_area(a[:, 2:] - a[:, :2]) + _area(b[:, 2:] - b[:, :2]) - inside)


def _apart(a, b):
    around, middle = (
        _sides(a, b, tf.minimum),
        (a[:, :2] + a[:, 2:] - b[:, :2] - b[:, 2:]),
    )
    return SUM(middle**2, -1) / SUM(around**2, -1) / 4


@pytest.mark.parametrize(("name", "mode"), in_modes(*OUT_OF_RANGE))
def test_a_formula_has_the_range_of_its_result(name, mode):
    function, numbers = OUT_OF_RANGE[name]
    args = [tf.constant(each, tf.float16) for each in numbers]
    value, slopes = modes.value_and_gradients(rewritten(RULES, function), args, mode)
    wide = [tf.cast(each, tf.float64) for each in args]
    exact, exact_slopes = modes.value_and_gradients(function, wide, "eager")
    # Rounded once, and so is each slope; the numbers nearest to 0 are 2**-24 apart.
    assert value.dtype == tf.float16
    assert_close(value, exact, 0.5)
    for slope, right in zip(slopes, exact_slopes, strict=True):
        is_in_range = np.abs(right) < tf.float16.max
        assert_close(slope[is_in_range], right[is_in_range], 1)


@pytest.mark.parametrize(
    "probs",
    [
        tf.nn.softmax,
        lambda x: tf.exp(x) / SUM(tf.exp(x), -1, keepdims=True),
        lambda x: tf.nn.softmax(x)[:, :2],
    ],
)
def test_a_logarithm_of_a_probability_with_a_lost_epsilon_is_exact(probs, mode):
    x = tf.constant([[-30.0, 6.0, 3.0]], tf.float16)
    function = stabilize(lambda x: tf.math.log(probs(x) + 1e-8))
    value, (slope,) = modes.value_and_gradients(function, [x], mode)

    def log(x):
        return tf.nn.log_softmax(x)[:, : value.shape[1]]

    wide = tf.cast(x, tf.float64)
    exact, (right,) = modes.value_and_gradients(log, [wide], "eager")
    assert_close(value, exact, 0.5)
    assert_close(slope, right, 1)


@pytest.mark.parametrize("others", [[], [3.0], [0.0, 3.0]])
def test_a_sum_of_several_keeps_all_of_them(others, mode):
    def function(x):
        added = [tf.constant(each, x.dtype) for each in (0.0, *others)]
        total = tf.raw_ops.AddN(inputs=[x * x, *(added if others else [])])
        return tf.math.log(total)

    x = tf.constant(2.0, tf.float16)
    value, (slope,) = modes.value_and_gradients(stabilize(function), [x], mode)
    total = 4 + sum(others)
    assert_close(value, np.log(total), 0.5)
    assert_close(slope, 4 / total, 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x - tf.square(x),
        lambda x: tf.tanh(x) - tf.sin(x),
        lambda x: SUM(x, 0) - SUM(x * x, 0)[0],
        lambda x: tf.math.log(x + 0.5),
        lambda x: tf.nn.softmax(x * x),
        lambda x: tf.cast(tf.reduce_mean(tf.cast(x, tf.float32)), tf.float16),
        lambda x: SUM(x),
    ],
)
def test_what_stays_in_range_is_left_in_half_precision(function):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]], tf.float16)
    assert "half-precision" not in fired(RULES, function, x)
    single = tf.cast(x, tf.float32)
    assert "half-precision" not in fired(RULES, lambda x: tf.reduce_mean(x * x), single)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_clipped_number_over_itself_is_1_at_0(dtype):
    x = [tf.constant([0.0, 2.0, 8.0], dtype)]
    weight = rewritten(RULES, lambda x: tf.minimum(x, 4.0) / x)
    value, (slope,) = modes.value_and_gradients(weight, x, "graph")
    np.testing.assert_array_equal(np.float32(value), [1, 1, 0.5])
    np.testing.assert_array_equal(np.float32(slope), [0, 0, -0.0625])


def test_both_sides_of_a_quotient_have_the_same_logit():
    def opacity(place, log_rate):
        near, far = (tf.sigmoid(x * tf.exp(log_rate)) for x in (place, place - 0.125))
        return (near - far) / near

    # In bfloat16, -0.5 * exp(5) is off by 0.2.
    args = tf.constant([-0.5, -0.25], tf.bfloat16), tf.constant(5.0, tf.bfloat16)
    exact = opacity(*(tf.cast(each, tf.float64) for each in args))
    value = stabilize(opacity)(*args)
    assert_close(value, exact, 0.5)


def test_half_precision_has_the_range_of_its_results():
    x = tf.constant([300.0, -300.0], tf.float16)
    assert_rounded(rewritten(RULES, tf.math.reduce_std)(x), 300.0)
    assert_rounded(rewritten(RULES, tf.norm)(x), 424.25)
    assert rewritten(RULES, tf.norm)(x).dtype == tf.float16


@pytest.mark.parametrize(
    ("dtype", "factor", "name"),
    [("half", 0.125, True), ("half", 2.0, False), ("bfloat16", 0.125, False)],
)
def test_a_contraction_is_scaled_first_where_the_scale_is_below_1(dtype, factor, name):
    def scores(q, k):
        return tf.matmul(q, k) * tf.cast(factor, q.dtype)

    q = tf.constant([[300.0, 1.0], [2.0, 300.0]], dtype)
    k = tf.constant([[300.0, 2**-10], [0.5, 300.0]], dtype)
    assert ("half-precision" in fired(RULES, scores, q, k)) == name
    if name:
        # As exact as before: no element of the smaller operand is rounded.
        got = rewritten(RULES, scores)(q, k)
        exact = (q.numpy().astype(float) @ k.numpy().astype(float)) * factor
        assert_close(got, exact, 1)


def test_an_epsilon_that_is_0_in_half_precision_keeps_its_size():
    mean, square = (
        tf.constant([6e-8, 1e-3, 0], "half"),
        tf.constant([0, 1e-4, 0], "half"),
    )
    got = rewritten(RULES, lambda m, s: m / (tf.sqrt(s) + 1e-8))(mean, square)
    m, s = mean.numpy().astype("float64"), square.numpy().astype("float64")
    assert_close(got, m / (np.sqrt(s) + 1e-8), 1)


def test_an_additive_mask_before_a_softmax_by_hand_is_one(mode):
    def weights(x, added):
        scores = tf.matmul(x, x, transpose_b=True) / 4 + added
        e = tf.exp(scores - tf.reduce_max(scores, -1, keepdims=True))
        return e / SUM(e, -1, keepdims=True)

    x = tf.constant([[200.0, 10.0], [199.75, 9.0]], tf.float16)
    mask = tf.constant([[0.0, 1.0], [0.0, 0.0]], tf.float16)
    # So is -1e9 in float16.
    function = stabilize(lambda x: weights(x, mask * -np.inf))
    value, (slope,) = modes.value_and_gradients(function, [x], mode)
    closed = tf.constant([[0.0, -1e9], [0.0, 0.0]], tf.float64)
    exact, (right,) = modes.value_and_gradients(
        lambda x: weights(x, closed), [tf.cast(x, tf.float64)], "eager"
    )
    assert_close(value, exact, 1)
    assert_close(slope, right, 1)


def test_an_excluded_rule_is_in_no_formula_in_half_precision():
    def formula(x):
        return 1 - (SUM(x * x, -1) / 8192) ** 3

    x = tf.constant([[64.0, 63.0], [300.0, 1.0]], tf.float16)
    assert fired(RULES, formula, x) == ["complement-of-power"]
    whole = stabilize(formula)(x)
    exact = formula(tf.cast(x, tf.float64))
    assert_close(whole[0], exact[0], 1)
    split = stabilize(formula, exclude="half-precision")(x)
    assert np.isfinite(whole).tolist() == [True, True]
    assert np.isfinite(split).tolist() == [True, False]


OWN = np.eye(3)


def _logits(z):
    return tf.matmul(z, z, transpose_b=True) / 0.07


def _contrastive(z):
    logits = _logits(z)
    positive = tf.stack([logits[0, 1], logits[1, 0], logits[2, 1]])
    return tf.reduce_mean(tf.reduce_logsumexp(logits, 1) - positive)


def _log_probability(z):
    logits = _logits(z)
    log_probs = logits - tf.math.log(tf.reduce_sum(tf.exp(logits), 1, keepdims=True))
    return -tf.reduce_mean(log_probs * tf.cast(OWN, z.dtype))


@pytest.mark.parametrize(("name", "mode"), in_modes("_contrastive", "_log_probability"))
def test_logits_are_as_exact_in_a_logarithm_of_their_sum_as_beside_it(name, mode):
    function = globals()[name]
    z = tf.constant([[0.6, 0.8, 0.1], [0.61, 0.79, 0.1], [0.6, 0.7, 0.3]], tf.float16)
    exact, (right,) = modes.value_and_gradients(
        function, [tf.cast(z, tf.float64)], "eager"
    )
    value, (slope,) = modes.value_and_gradients(stabilize(function), [z], mode)
    # In float16 a logit of 14 is off by as much as 2 ** -8.
    assert_close(value, exact, 1)
    assert_close(slope, right)
