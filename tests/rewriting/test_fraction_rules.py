"""Fractions and means of nothing, and a temperature of 0, have their limits."""

import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import INF, NAN, assert_rounded
from tests.rewriting.emitting import (
    fired,
    in_modes,
    rewritten,
)
from tests.rewriting.tables import RULES
from tests.support import modes, oracle
from tests.support.oracle import assert_close, ulp_error
from tfsafe import stabilize
from tfsafe.rewriting.rules.table import all_rules


def _both(function, args, mode):
    args = [tf.constant(arg) for arg in args]
    return modes.value_and_gradients(rewritten(RULES, function), args, mode)


def _kept(x, w):
    return tf.reduce_sum(x * w, -1, keepdims=True)


def _standardised(x, w, is_masked_first):
    mask = tf.cast(w > 0.5, tf.float32)
    count = tf.reduce_sum(mask, -1, keepdims=True)
    d = x - _kept(x, mask) / count
    if is_masked_first:
        return mask * d / tf.sqrt(_kept(mask * d, mask * d) / count)
    return d / tf.sqrt(_kept(d * d, mask) / count) * mask


SHARES = {
    "a score of what a mask keeps, where that is constant": (
        lambda x, w: _standardised(x, w, False),
        [[2.0, 2.0, 5.0], [1.0, 2.0, 5.0]],
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]],
        [[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]],
    ),
    "a score of what a mask left, where that is nothing": (
        lambda x, w: _standardised(x, w, True),
        [[2.0, 2.0, 5.0], [1.0, 2.0, 5.0]],
        [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]],
        [[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]],
    ),
    "a part of what is divided by no less than 1": (
        lambda x, w: x / (tf.reduce_sum(x, -1, keepdims=True) / (1 + w * w)),
        [[0.0, 0.0], [1.0, 3.0]],
        [[0.0, 1.0], [1.0, 1.0]],
        [[0.0, 0.0], [0.5, 1.5]],
    ),
    "a weighted mean": (
        lambda x, w: tf.reduce_sum(x * w, -1) / tf.reduce_sum(w, -1),
        [[1.0, 2.0], [3.0, 5.0]],
        [[0.0, 0.0], [1.0, 3.0]],
        [0.0, 4.5],
    ),
    "a mean with constant weights": (
        lambda x, w: tf.reduce_sum(x * [0.0, 0.0]) / tf.reduce_sum([0.0, 0.0]) * w,
        [[1.0, 2.0], [3.0, 5.0]],
        [[0.0, 0.0], [0.0, 0.0]],
        0.0,
    ),
    "an overlap": (
        lambda x, w: (
            tf.reduce_sum(x, -1) / (tf.reduce_sum(x, -1) + tf.reduce_sum(w, -1))
        ),
        [[0.0, 0.0], [3.0, 5.0]],
        [[0.0, 0.0], [1.0, 3.0]],
        [0.0, 8 / 12],
    ),
    "an intersection over a union": (
        lambda x, w: (
            tf.reduce_sum(x * w, -1)
            / (tf.reduce_sum(x, -1) + tf.reduce_sum(w, -1) - tf.reduce_sum(x * w, -1))
        ),
        [[0.0, 0.0], [0.5, 1.0]],
        [[0.0, 0.0], [1.0, 1.0]],
        [0.0, 0.75],
    ),
    "all of it": (
        lambda x, w: w[:, 0] * x[:, 0] / (w[:, 0] * x[:, 0]),
        [[0.0], [4.0]],
        [[0.0], [1.0]],
        [1.0, 1.0],
    ),
    "what is left of a hull": (
        lambda x, w: (x[:, 0] - w[:, 0]) / x[:, 0],
        [[0.0], [4.0]],
        [[0.0], [1.0]],
        [0.0, 0.75],
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*SHARES))
def test_a_fraction_of_nothing_is_0(name, mode):
    function, x, w, wanted = SHARES[name]
    assert "fraction-of-zero" in fired(RULES, function, tf.constant(x), tf.constant(w))
    value, gradients = _both(function, [x, w], mode)
    assert_rounded(value, wanted)
    for gradient in (each for each in gradients if each is not None):
        assert_rounded(gradient[0], 0.0)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a / (a + b),
        lambda a, b: a / (a + tf.exp(b)),
        lambda a, b: tf.tanh(a) / (tf.exp(b) + tf.tanh(a)),
        lambda a, b: tf.norm(a) / (tf.norm(a) + b),
    ],
)
def test_a_part_of_an_infinite_sum_is_0_and_has_no_slope(function, mode):
    value, slopes = _both(function, [[0.5, -2.0], [INF, INF]], mode)
    for each in (value, *slopes):
        assert_rounded(each, 0.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: tf.reduce_sum(x * w, -1) / tf.reduce_sum(x + w, 0),
        lambda x, w: tf.reduce_sum(x * x, -1) / tf.reduce_sum(w, -1),
        lambda x, w: x / w,
        lambda x, w: x / tf.zeros_like(x),
        lambda x, w: x / (tf.reduce_sum(x, -1) / tf.reduce_sum(tf.abs(w), -1)),
        lambda x, w: x / tf.reduce_sum(x * x * tf.cast(w > 0, tf.float32), -1),
        lambda x, w: (x + 0.0) / tf.constant(0.0),
        lambda x, w: tf.reduce_sum(x * [1.0, 2.0], -1) / tf.reduce_sum([1.0, 2.0]),
        lambda x, w: tf.where(tf.math.is_nan(x / (x + w)), 5.0, x),
        # They have a limit where both are equal, which is not 0.
        lambda x, w: (w * tf.exp(-3 * x) - x * tf.exp(-3 * w)) / (w - x),
        lambda x, w: (x * tf.sinh(w) - w * tf.sinh(x)) / (5 * (x - w)),
    ],
)
def test_other_values_than_fractions_may_be_nan(function):
    args = [tf.zeros([2, 2]), tf.zeros([2, 2])]
    assert "fraction-of-zero" not in fired(RULES, function, *args)
    assert_rounded(rewritten(RULES, function)(*args), function(*args))


def _cdf(z):
    return 0.5 * (1 + tf.math.erf(z / np.sqrt(2.0)))


def _pdf(z):
    return tf.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def _price(m, s):
    d = m / s + s / 2
    return tf.exp(m) * 0.5 * tf.math.erfc(-d / np.sqrt(2.0)) - _cdf(d - s)


def _guarded_improvement(m, s):
    z = m / s
    return tf.where(s > 0, m * _cdf(z) + s * _pdf(z), tf.nn.relu(m))


_DENSITY = 1 / np.sqrt(2 * np.pi)
# By name: the formula of a mean and a deviation of (0, 0), (1, 0) and (-1, 0), its
# values, and its slopes.
SCORES = {
    "a probability": (lambda m, s: _cdf(m / s), [0.5, 1, 0], [0, 0, 0], [0, 0, 0]),
    "an expected improvement": (
        lambda m, s: m * _cdf(m / s) + s * _pdf(m / s),
        [0, 1, 0],
        [0.5, 1, 0],
        [_DENSITY, 0, 0],
    ),
    "an expected improvement by its score": (
        lambda m, s: s * (m / s * _cdf(m / s) + _pdf(m / s)),
        [0, 1, 0],
        [0.5, 1, 0],
        [_DENSITY, 0, 0],
    ),
    "a guarded improvement": (
        _guarded_improvement,
        [0, 1, 0],
        [0, 1, 0],
        [0, 0, 0],
    ),
    "a kernel": (lambda m, s: tf.exp(-((m / s) ** 2)), [1, 0, 0], [0, 0, 0], [0, 0, 0]),
    "the price of an option": (
        _price,
        [0, np.e - 1, 0],
        [0.5, np.e, 0],
        [_DENSITY, 0, 0],
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*SCORES))
def test_a_score_of_nothing_is_0(name, mode):
    function, *wanted = SCORES[name]
    args = [tf.constant([0.0, 1.0, -1.0]), tf.zeros([3])]
    assert not np.isfinite(function(*args)[0]) or "guarded" in name
    value, slopes = modes.value_and_gradients(
        rewritten(all_rules(), function), args, mode
    )
    # Of a polynomial through values around it, where a hole is continued.
    for found, right in zip([value, *slopes], wanted, strict=True):
        assert_close(found, right, scale=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda m, s: tf.tanh(m / s),
        lambda m, s: tf.exp(-m / s),
        lambda m, s: tf.math.erf(m / s + m),
        lambda m, s: tf.math.erf(1 / s) + m,
    ],
)
def test_other_quotients_may_be_nan(function):
    args = [tf.zeros([3]), tf.zeros([3])]
    assert "normal-score" not in fired(all_rules(), function, *args)
    assert_rounded(rewritten(all_rules(), function)(*args), function(*args))


def test_the_mean_of_a_slice_without_elements_is_0():
    def pooled(x, length):
        return tf.reduce_mean(x[:length])

    x = tf.constant([1.0, 2.0, 4.0])
    assert "mean-of-kept" in fired(RULES, pooled, x, tf.constant(0))
    stable = stabilize(pooled)
    for length, mean, share in ((0, 0.0, 0.0), (2, 1.5, 0.5)):
        value, (slope,) = modes.value_and_gradients(
            lambda x, length=length: stable(x, tf.constant(length)), [x], "eager"
        )
        assert_rounded(value, mean)
        assert_rounded(slope, [share if place < length else 0.0 for place in range(3)])
    assert "mean-of-kept" not in fired(RULES, lambda x: tf.reduce_mean(x[:2]), x)


def test_numbers_in_bins_are_counts_and_weights_in_bins_are_not():
    def mean(x, places):
        sums = tf.math.unsorted_segment_sum(x, places, 3)
        return sums / tf.math.bincount(places, minlength=3, dtype=tf.float32)

    def weighted(x, places):
        sums = tf.math.unsorted_segment_sum(x, places, 3)
        return sums / tf.math.bincount(places, weights=x, minlength=3)

    args = tf.constant([1.0, 2.0, 3.0]), tf.constant([0, 0, 2])
    assert "fraction-of-zero" in fired(RULES, mean, *args)
    assert_rounded(rewritten(RULES, mean)(*args), [1.5, 0.0, 3.0])
    assert "fraction-of-zero" not in fired(RULES, weighted, *args)


def test_a_product_of_vectors_of_length_0_times_inverse_roots_is_0(mode):
    def cosine(x, y):
        sizes = tf.reduce_sum(x * x, -1) * tf.reduce_sum(y * y, -1)
        return tf.reduce_sum(x * y, -1) * tf.math.rsqrt(sizes)

    x, y = tf.constant([[0.0, 0.0], [1.0, 2.0]]), tf.constant([[1.0, 2.0], [3.0, 1.0]])
    value, slopes = modes.value_and_gradients(stabilize(cosine), [x, y], mode)
    assert_rounded(value, [0.0, np.sqrt(0.5)])
    assert all(np.isfinite(slope).all() for slope in slopes)


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, keep: tf.reduce_mean(tf.boolean_mask(x, keep)),
        lambda x, keep: tf.reduce_mean(tf.square(tf.boolean_mask(x, keep) - 1.0)),
        lambda x, keep: tf.reduce_mean(tf.gather(x, tf.where(keep)[:, 0])),
    ],
)
def test_the_mean_of_nothing_that_is_kept_is_0(function, mode):
    x = tf.constant([1.0, 2.0, 4.0])
    for keep in ([False, False, False], [True, False, True]):
        keep = tf.constant(keep)
        assert "mean-of-kept" in fired(RULES, function, x, keep)
        stable = rewritten(RULES, function, x, keep)
        value, (gradient,) = modes.value_and_gradients(
            lambda x, stable=stable, keep=keep: stable(x, keep), [x], mode
        )
        plain = function(x, keep)
        assert_rounded(value, tf.where(tf.math.is_nan(plain), 0.0, plain))
        # The gradient of a gather is made of slices.
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()


def test_a_mean_of_what_cannot_be_empty_is_left_alone():
    x = tf.TensorSpec([None], tf.float32)
    assert not fired(RULES, tf.reduce_mean, x)
    assert not fired(RULES, lambda x: tf.reduce_mean(tf.gather(x, [0, 1])), x)


def test_a_temperature_of_0_is_the_limit(mode):
    def function(z, t):
        return tf.nn.softmax(z / t)

    z = [[1.0, 2.0, 2.0], [-3.0, -1.0, -2.0]]
    assert fired(RULES, function, tf.constant(z), tf.constant(0.0))[-1] == (
        "softmax-temperature"
    )
    value, gradients = _both(function, [z, 0.0], mode)
    assert_rounded(value, [[0.0, 0.5, 0.5], [0.0, 1.0, 0.0]])
    assert_rounded(gradients, 0.0)
    value, gradients = _both(function, [z, 1e-39], mode)
    assert_rounded(value, [[0.0, 0.5, 0.5], [0.0, 1.0, 0.0]])
    value, (in_z, in_t) = _both(lambda z, t: function(z, t)[:, 0], [z, 2.0], mode)
    with tf.GradientTape() as tape:
        z, t = tf.constant(z), tf.constant(2.0)
        tape.watch([z, t])
        wanted = function(z, t)[:, 0]
    slopes = tape.gradient(wanted, [z, t])
    assert_rounded(value, wanted)
    assert_close(in_z, slopes[0])
    assert_rounded(in_t, slopes[1])


@pytest.mark.parametrize(
    "function",
    [
        lambda z, t: tf.nn.softmax(z / 2.0),
        lambda z, t: tf.nn.softmax(z / z),
        lambda z, t: tf.nn.softmax(z * t),
        lambda z, t: tf.nn.softmax(z / tf.reduce_max(z, 0, keepdims=True)),
    ],
)
def test_what_is_no_temperature_is_left_alone(function):
    args = [tf.ones([2, 3]), tf.ones([])]
    assert "softmax-temperature" not in fired(RULES, function, *args)


def test_the_temperature_of_one_number_for_all_is_left_alone():
    def formula(t):
        return tf.nn.softmax(1 / t)

    t = tf.constant([[0.5], [2.0]])
    assert "softmax-temperature" not in fired(RULES, formula, t)
    assert_close(stabilize(formula)(t), [[1.0], [1.0]])


HARMONIC = {
    "a mean": (lambda x: 3 / tf.reduce_sum(1 / x, -1), 3),
    "a mean with its axis": (lambda x: 3 / tf.reduce_sum(1 / x, -1, keepdims=True), 3),
    "one over a sum": (lambda x: 1 / tf.reduce_sum(1 / x, -1), 1),
    "two over a mean": (lambda x: 2 / tf.reduce_mean(1 / x, -1), 6),
    "the inverse of a sum": (
        lambda x: tf.math.reciprocal(tf.reduce_sum(tf.math.reciprocal(x), -1)),
        1,
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*HARMONIC))
def test_a_number_over_a_sum_of_inverses_has_its_slopes_at_0(name, mode):
    function, number = HARMONIC[name]
    x = np.float32([[0.5, 2.0, -3.0], [7.0, 0.1, 0.3], [2.0, 0.0, 5.0]])
    assert "harmonic-sum" in fired(RULES, function, tf.constant(x))
    value, (slope,) = _both(function, [x], mode)
    with np.errstate(divide="ignore"):
        exact = 1 / np.sum(1 / np.float64(x), -1)
    assert oracle.ulp_error(np.reshape(value, 3), number * exact) <= 2
    # The slope is `number` times the square of what each contributes.
    parts = exact[:2, None] / x[:2]
    assert oracle.ulp_error(slope[:2], number * parts**2) <= 4
    np.testing.assert_array_equal(slope[2], [0, number, 0])


SATURATED = {
    "by its inverse": (lambda k, x: 1 / (1 + k / x), 1, 1),
    "by a reciprocal": (
        lambda k, x: 3 * tf.math.reciprocal(2 + k * tf.math.reciprocal(x)),
        3,
        2,
    ),
    "less a share": (lambda k, x: 2 / (1 - k / x), 2, 1),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*SATURATED))
def test_a_rate_that_saturates_has_its_slopes_at_0(name, mode):
    function, top, offset = SATURATED[name]
    k = np.float32([2.0, 0.5, 3.0, 3.0, 2.0, -2.0])
    x = np.float32([0.0, 1e-30, 1e30, 0.25, 5.0, 1.5])
    assert "harmonic-sum" in fired(RULES, function, *map(tf.constant, (k, x)))
    value, slopes = _both(function, [k, x], mode)
    k, x = np.float64(-k if "less" in name else k), np.float64(x)
    total = offset * x + k
    assert_close(value, top * x / total)
    assert_close(slopes[1], top * k / total**2)


@pytest.mark.parametrize(
    "function",
    [
        lambda k, x: 1 / (1 + k / (1 + x * x)),
        lambda k, x: 1 / (1 + k / 2),
        lambda k, x: 1 / (x + k / x),
        lambda k, x: 1 / (k / x),
        lambda k, x: 1 / (1 + k * x),
        lambda k, x: (k / x) / (1 + k / x),
    ],
)
def test_what_does_not_saturate_is_left_alone(function):
    args = tf.constant([1.0, 2.0]), tf.constant([0.5, 3.0])
    assert "harmonic-sum" not in fired(RULES, function, *args)


POWERS = {
    "squares": (lambda a, b: a**2 / b**2, 1, 2),
    "half of the cubes": (lambda a, b: 0.5 * a**3 / b**3, 0.5, 3),
}


@pytest.mark.parametrize("name", POWERS)
def test_a_quotient_of_powers_is_right_where_they_leave_the_range(name, mode):
    function, factor, order = POWERS[name]
    args = np.float32([[2.0, 1e-25, 3e25], [3.0, 2e-25, 2e25]])
    value, slopes = _both(function, args, mode)
    a, b = args.astype(np.float64)
    exact = factor * (a / b) ** order
    assert oracle.ulp_error(value, exact) <= 4
    assert oracle.ulp_error(slopes[0], order * exact / a) <= 8
    assert oracle.ulp_error(slopes[1], -order * exact / b) <= 8


@pytest.mark.parametrize(
    "function",
    [lambda a, b, k: (a / (a + b)) ** k, lambda a, b, k: (1 / (1 + b / a)) ** k],
    ids=["of numbers", "of 1"],
)
def test_a_power_of_a_fraction_near_1_has_the_digits_of_the_rest(function, mode):
    args = np.float32([4e8, 4.0, 1e8])
    value, slopes = _both(function, args, mode)
    a, b, k = args.astype(np.float64)
    exact = np.exp(-k * np.log1p(b / a))
    assert_rounded(value, exact)
    rates = [k * b / a / (a + b), -k / (a + b), -np.log1p(b / a)]
    assert_close(slopes, exact * np.array(rates))


def test_powers_in_half_precision_are_those_of_fractions_of_the_largest_base(mode):
    x = np.array([0.04, 5e-7], np.float16)
    function = rewritten(RULES, lambda x, k: x**k / tf.reduce_sum(x**k, -1)[None])
    value = modes.compile_for(mode, function)(tf.constant(x), tf.constant(0.9, "half"))
    powers = x.astype(float) ** float(np.float16(0.9))
    assert_close(value, powers / powers.sum(), 1)


def test_powers_of_one_row_to_several_exponents_are_left_alone():
    def function(x, k):
        powers = x**k
        return powers / tf.reduce_sum(powers, -1, keepdims=True)

    assert "powers-over-sum" not in fired(RULES, function, tf.ones(3), tf.ones([2, 1]))


def test_infinite_logits_are_as_before():
    def function(z, t):
        return tf.nn.softmax(z / t)

    z = tf.constant([[1.0, -INF], [INF, 1.0], [-INF, -INF], [NAN, 1.0]])
    args = [z, tf.constant(2.0)]
    assert_rounded(rewritten(RULES, function)(*args), function(*args))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x / (1 + y * y),
        lambda x, y: 1 / (1 + x * x) + y,
        lambda x, y: x / (1 + x) + y,
        lambda x, y: tf.sigmoid(x) / (1 + tf.sigmoid(x) * tf.tanh(y)),
        lambda x, y: x / (1 + tf.reduce_sum(x * y)),
        lambda x, y: 1 / (x * y),
        lambda x, y: x * y / (1 + tf.exp(y)),
        lambda x, y: x * y / (1 + tf.abs(x - y)),
        lambda x, y: x * tf.sin(y) / tf.cos(x),
    ],
)
def test_a_divisor_that_stays_in_range_or_shares_nothing_is_left_alone(function):
    args = [tf.ones([2]), tf.ones([2])]
    assert "quotient-of-sums" not in fired(RULES, function, *args)


def test_slopes_of_a_quotient_cancel_in_float64(mode):
    x = np.array([1e10, -3e12, 1e15, 1e18], np.float32)
    _, (slope,) = _both(lambda x: x / (1 + x * x), [x], mode)
    exact = x.astype(np.float64)
    assert_rounded(slope, (1 - exact**2) / (1 + exact**2) ** 2)


def test_a_square_over_what_grows_as_its_base_is_right_far_out(mode):
    x = np.array([1e20, -3e25, 2.0, 0.0], np.float32)
    value, (slope,) = _both(lambda x: x * x / (tf.abs(x) + 1), [x], mode)
    size = np.abs(x.astype(float))
    assert_close(value, size * (size / (size + 1)))
    wanted = np.sign(x) * (1 - 1 / (size + 1) ** 2)
    assert_close(slope, wanted)


# Quotients of sums of powers, of which one side or both leave the range of float32.
QUOTIENTS = {
    "Lehmer mean of order 1.5": lambda x: (
        tf.reduce_sum(x**1.5, -1) / tf.reduce_sum(x**0.5, -1)
    ),
    "Lehmer mean of order 3": lambda x: (
        tf.reduce_sum(x**3, -1) / tf.reduce_sum(x**2, -1)
    ),
    "participation ratio": lambda x: (
        tf.reduce_sum(x**2, -1) ** 2 / tf.reduce_sum(x**4, -1)
    ),
    "participation ratio of products": lambda x: (
        tf.square(tf.reduce_sum(x * x, -1)) / tf.reduce_sum(x * x * x * x, -1)
    ),
    "shares of the largest square": lambda x: (
        x**2 / tf.reduce_max(x**2, -1, keepdims=True)
    ),
    "the smallest share": lambda x: (
        tf.reduce_min(x * x * x, -1) / tf.reduce_sum(x * x * x, -1)
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*QUOTIENTS))
@pytest.mark.parametrize("scale", [1.0, 1e-10, 1e-15, 1e-25, 1e10, 1e15, 1e25])
def test_a_quotient_of_sums_of_powers_is_right_out_of_range(name, scale, mode):
    function = QUOTIENTS[name]
    x = np.float32([[1.0, 2.0, 0.5], [3.0, 0.25, 1.0]]) * np.float32(scale)
    value, (slope,) = _both(function, [x], mode)
    wide = tf.constant(x, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(wide)
        exact = function(wide)
    assert_rounded(value, exact)
    slopes = tape.gradient(exact, wide)
    assert_close(
        slope, slopes, 16, why="the slope is a difference of quotients of sums"
    )


def test_a_share_of_the_largest_power_is_right_where_that_overflows(mode):
    p, b = np.float32([1e-30, 2e-30, 0.5]), np.float32(1.75)
    value, _ = _both(
        lambda p, b: tf.pow(3 * p, -b) / tf.reduce_max(tf.pow(3 * p, -b)), [p, b], mode
    )
    assert_close(value, (p.astype(float) / p[0]) ** -1.75, scale=1e-30)


# Logarithms and roots of sums, of which a product leaves the range of float32.
OUT_OF_RANGE = {
    "log of 1 and a square": lambda x, y: tf.math.log(1 + x * x) + 0 * y,
    "log of a square and 1": lambda x, y: tf.math.log(x**2 + 1) + 0 * y,
    "log1p of a square over a number": lambda x, y: tf.math.log1p(x * x / 4) + 0 * y,
    "log1p of a square over another": lambda x, y: tf.math.log1p(x * x / y),
    "log1p of an even power": lambda x, y: tf.math.log1p((0.5 * x) ** 4) + 0 * y,
    "log of two squares": lambda x, y: 0.5 * tf.math.log(x * x + tf.square(y)),
    "log of a product and a number": lambda x, y: tf.math.log(x * x * y + 3),
    "log of two quotients": lambda x, y: tf.math.log(y / (x * x) + x * x / y),
    "log of 1 and a quotient": lambda x, y: tf.math.log(1 + x * x / (y + 1)),
    "root of a quotient": lambda x, y: tf.sqrt(x * x / (y + 1)),
    "log of 1 and a sum": lambda x, y: tf.math.log(1 + tf.reduce_sum(x * x)) + 0 * y,
    "log1p of a sum": lambda x, y: tf.math.log1p(tf.reduce_sum(x * x)) + 0 * y,
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*OUT_OF_RANGE))
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e10, 1e15, 1e25])
def test_a_logarithm_or_root_of_a_sum_is_right_out_of_range(name, scale, mode):
    function = OUT_OF_RANGE[name]
    x = np.float32([0.5, -3, 2, -0.125]) * np.float32(scale)
    y = np.float32([2, 0.75, 3, 1.25])
    value, slopes = _both(function, [x, y], mode)
    wide = [tf.constant(each, tf.float64) for each in (x, y)]
    with tf.GradientTape() as tape:
        tape.watch(wide)
        exact = function(*wide)
    assert_close(value, exact, 7, why="a logarithm near 0 of a sum of squares")
    for slope, wanted in zip(slopes, tape.gradient(exact, wide), strict=True):
        assert_close(slope, wanted)


def test_what_is_subtracted_may_be_the_rounding_of_the_rest(mode):
    def root(x, y):
        share = x / tf.reduce_sum(x, -1, keepdims=True) - 1
        return tf.sqrt(y * (tf.sort(share, -1)[:, -1:] - share))

    x, y = np.float32([[0.3, 0.7, 1.1], [1.3, 0.2, 0.9]]), np.float32(1.5)
    value, _ = _both(root, [x, y], mode)
    assert "root-of-sums" in fired(RULES, root, tf.constant(x), tf.constant(y))
    exact = root(tf.constant(x, tf.float64), tf.constant(1.5, tf.float64))
    assert_close(value, exact, 4, why="the shares are rounded", scale=0.01)


@pytest.mark.parametrize(
    "function",
    [
        tf.sqrt,
        tf.math.log1p,
        lambda mean: tf.math.log(1 + mean),
        lambda mean: mean ** (1 / 3),
        lambda mean: tf.math.rsqrt(mean + 1e-6),
    ],
)
def test_a_function_of_a_mean_of_nothing_is_that_of_0(function, mode):
    def masked(x, mask):
        total = tf.reduce_sum(mask * (x - 1) ** 2, 1)
        return function(total / tf.reduce_sum(mask, 1))

    x = [[0.5, -3.0], [2.0, 0.25], [4.0, 3.0]]
    mask = [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    value, (slope, _) = _both(masked, [x, mask], mode)
    means = tf.constant([2**-3 + 8.0, 0.0, 4.0], tf.float64)
    assert_close(value, function(means))
    assert np.isfinite(slope).all()
    assert not np.asarray(slope)[1].any()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x**3 + y**2.5) ** (1 / 3),
        lambda x, y: (x**3 + y**3) ** 0.25,
        lambda x, y: (x**2 + y**2) ** 0.5,
        lambda x, y: (x**3 + y) ** (1 / 3),
    ],
)
def test_a_root_of_other_powers_is_left_alone(function):
    args = tf.constant([0.5, 2.0]), tf.constant([1.5, 3.0])
    assert "power-mean" not in fired(RULES, function, *args)
    assert "power-mean" in fired(RULES, lambda x, y: (x**3 + y**3) ** (1 / 3), *args)


# What a measurement of variance r leaves of a variance p.
UPDATES = {
    "p - p * p / (p + r)": lambda p, r: p - p * p / (p + r),
    "p - p ** 2 / (r + p)": lambda p, r: p - p**2 / (r + p),
    "p - p / (p + r) * p": lambda p, r: p - p / (p + r) * p,
    "p - p * q / (q + r)": lambda p, r: p - p * (2 * p) / (2 * p + 2 * r),
}


@pytest.mark.parametrize("name", UPDATES)
def test_a_variance_less_what_is_known_of_it_keeps_its_digits(name, mode):
    p = np.float32([1.0, 1e5, 1e20, 1e30, 1e-15, 1.0, 1e-5, 0.0])
    r = np.float32([1e-5, 1e-5, 1.0, 1e10, 1e-25, 1.0, 1e20, 1.0])
    wide = p.astype(float), r.astype(float)
    right = wide[0] * (wide[1] / (wide[0] + wide[1]))
    value, slopes = _both(UPDATES[name], [p, r], mode)
    assert_close(value, right, 3)
    assert_close(slopes[1], (wide[0] / sum(wide)) ** 2)
    # The slope in p is a difference of numbers of size 1.
    assert_close(slopes[0], (wide[1] / sum(wide)) ** 2, 0.5, scale=1.0)
    typed = UPDATES[name](tf.constant(p), tf.constant(r))
    assert ulp_error(typed, right) > 1e4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_other_differences_of_quotients_are_no_complements(dtype):
    for function in (
        lambda p, r: p - p * r / (p * p + 2 * r),
        lambda p, r: p - r * r / (p + r),
        lambda p, r: p - r / (p + r) * r,
    ):
        args = [tf.constant([3.0, 0.5], dtype), tf.constant([2.0, 4.0], dtype)]
        assert "complement-of-fraction" not in fired(RULES, function, *args)


@pytest.mark.parametrize("mode", modes.MODES)
def test_a_large_negative_opacity_that_is_not_kept_has_the_slope_0(mode):
    def opacity(near, far):
        p, q = tf.sigmoid(near), tf.sigmoid(far)
        return tf.nn.relu((p - q) / p)

    args = [tf.constant([-53.0, 2.0, -100.0]), tf.constant([20.0, 1.0, -101.0])]
    value, slopes = modes.value_and_gradients(stabilize(opacity), args, mode)
    wide = [tf.cast(each, tf.float64) for each in args]
    exact, right = modes.value_and_gradients(opacity, wide, "eager")
    assert_close(value, exact, 6, why="a difference of probabilities")
    assert_close(slopes, right)


def test_a_fraction_of_nothing_times_a_product_is_0(mode):
    def penalty(v, a, b):
        square = (a - b) ** 2
        part = square / (v + square)
        return part * square

    args = [tf.constant(each) for each in ([0.0, 1.0], [2.0, 3.0], [2.0, 2.0])]
    found = fired(all_rules(), penalty, *args)
    assert {"fraction-of-zero", "product-with-inverse"} <= set(found)
    value, slopes = modes.value_and_gradients(stabilize(penalty), args, mode)
    assert_rounded(value, [0.0, 0.5])
    for slope, wanted in zip(slopes, ([0, -0.25], [0, 1.5], [0, -1.5]), strict=True):
        assert_rounded(slope[1:], wanted[1:])
        assert np.isfinite(slope).all()
    assert np.isnan(stabilize(penalty)(*(tf.constant([NAN]) for _ in args)))


def test_a_score_of_what_the_largest_divides_is_0_where_that_is_0(mode):
    def score(x):
        part = x / tf.reduce_max(x, -1, keepdims=True)
        centred = part - tf.reduce_mean(part, -1, keepdims=True)
        return centred / tf.math.reduce_std(part, -1, keepdims=True)

    x = tf.constant([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    value, (slope,) = modes.value_and_gradients(stabilize(score), [x], mode)
    assert_rounded(value[0], 0.0)
    assert_rounded(slope[0], 0.0)
    assert_close(value[1], [-(1.5**0.5), 0, 1.5**0.5], 2)
    assert np.isnan(stabilize(score)(tf.constant([[NAN, 1.0]]))).all()


def _smooth_maximum(x, t):
    return t * tf.reduce_logsumexp(x / t)


def _mean_in_one(x, t):
    return -2 * t * tf.math.log(tf.reduce_mean(tf.exp(-x / t)))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("function", "shifted"),
    [
        (_smooth_maximum, _smooth_maximum),
        # Of which float64 has no value, either, without the largest taken out.
        (_mean_in_one, lambda x, t: -2 * (_smooth_maximum(-x, t) - t * np.log(4.0))),
    ],
)
def test_a_smooth_maximum_at_temperature_0_is_the_largest(
    function, shifted, dtype, mode
):
    x = tf.constant([1.0, 3.0, -2.0, 3.0], dtype)
    assert "logsumexp-at-temperature" in fired(
        all_rules(), function, x, tf.constant(0.5, dtype)
    )
    for t in (0.0, 1e-3, 0.5, 30.0, -0.25):
        temperature = tf.constant(t, dtype)
        value, (in_x, in_t) = modes.value_and_gradients(
            stabilize(function), [x, temperature], mode
        )
        exact = [tf.cast(each, tf.float64) for each in (x, temperature)]
        if t == 0:
            exact[1] = tf.constant(1e-5, tf.float64)
        right, slopes = modes.value_and_gradients(shifted, exact, "eager")
        ulps = 10 if dtype == "float32" else 1
        shift = 1e-5 * slopes[1] if t == 0 else 0
        assert_close(
            value, right - shift, ulps, why="30 times the logarithm of a mean near 1"
        )
        assert_close(in_x, slopes[0], scale=1.0)
        assert_close(in_t, slopes[1], scale=1.0)


def test_a_temperature_of_one_row_is_not_that_of_another(mode):
    def of_rows(x, t):
        return t * tf.math.log(tf.reduce_sum(tf.exp(x / t), -1, keepdims=True))

    x = tf.constant([[1.0, 3.0], [200.0, 100.0]])
    t = tf.constant([[0.0], [2.0]])
    value, (in_x, _) = modes.value_and_gradients(stabilize(of_rows), [x, t], mode)
    assert_close(value, [[3.0], [200.0]])
    assert_close(in_x, [[0.0, 1.0], [1.0, 0.0]], 1, scale=1.0)
    along = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert "logsumexp-at-temperature" not in fired(all_rules(), of_rows, x, along)
    closed = tf.constant([[-INF, -INF], [-INF, 1.0]])
    value = stabilize(of_rows)(closed, tf.constant([[1.0], [0.5]]))
    assert_close(value, [[-INF], [1.0]], 0.5)


ROOTS_OF_PRODUCTS = {
    "of a product": (lambda a, b: tf.math.log(tf.sqrt(a * b)), 0.5, 0.5),
    "of a quotient": (lambda a, b: tf.math.log(3 * tf.sqrt(a / b)), 0.5, -0.5),
    "under 1": (lambda a, b: tf.math.log(1 / tf.sqrt(a * b)), -0.5, -0.5),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*ROOTS_OF_PRODUCTS))
def test_the_logarithm_of_a_root_of_two_negative_numbers_is_real(name, mode):
    function, *powers = ROOTS_OF_PRODUCTS[name]
    a = tf.constant([-2.0, -1e-30, 2.0, -2.0, 1e30, 0.0])
    b = tf.constant([-3.0, -1e-25, 3.0, 3.0, 1e25, 4.0])
    x, y = (each.numpy().astype(np.float64) for each in (a, b))
    value, slopes = modes.value_and_gradients(
        rewritten(all_rules(), function), [a, b], mode
    )
    with np.errstate(all="ignore"):
        size = powers[0] * np.log(np.abs(x)) + powers[1] * np.log(np.abs(y))
        size += np.log(3) if name == "of a quotient" else 0
        exact = np.where(x * y < 0, np.nan, size)
    assert_rounded(value, exact)
    real = [0, 1, 2, 4]
    for slope, power, at in zip(slopes, powers, (x, y), strict=True):
        assert_close(np.array(slope)[real], power / at[real])
