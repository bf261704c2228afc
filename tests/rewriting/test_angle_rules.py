"""Angles whose cosine rounds to 1 or beyond it."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired, rewritten
from tests.rewriting.tables import RULES
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.rewriting.rules.table import all_rules

RNG = np.random.default_rng(5)
U = RNG.normal(size=(40, 7)).astype(np.float32)
# Neighbours at distances from 1e-7 to 1.
V = (U * (1 + 10.0 ** -RNG.uniform(0, 7, size=(40, 7)))).astype(np.float32)


def _total(x, keepdims=False):
    return tf.reduce_sum(x, -1, keepdims=keepdims)


def _by_norm(x):
    return x / tf.norm(x, axis=-1, keepdims=True)


def _by_rsqrt(x):
    return tf.nn.l2_normalize(x, -1)


ANGLES = {
    "norms": lambda u, v: tf.acos(_total(_by_norm(u) * _by_norm(v))),
    "l2_normalize": lambda u, v: tf.acos(_total(_by_rsqrt(u) * _by_rsqrt(v))),
    "clipped": lambda u, v: tf.acos(
        tf.clip_by_value(_total(_by_norm(u) * _by_rsqrt(v)), -1.0, 1.0)
    ),
    "quotient": lambda u, v: tf.acos(
        _total(u * v) / (tf.norm(u, axis=-1) * tf.norm(v, axis=-1))
    ),
    "quotients in one product": lambda u, v: tf.acos(
        _total(
            u
            / tf.norm(u, axis=-1, keepdims=True)
            * v
            / tf.norm(v, axis=-1, keepdims=True)
        )
    ),
}

# Of the lines along two vectors, such as quaternions, and how often it is taken.
LINES = {
    "absolute": (lambda u, v: tf.acos(abs(_total(_by_norm(u) * _by_norm(v)))), 1),
    "absolute and clipped": (
        lambda u, v: (
            2
            * tf.acos(
                tf.clip_by_value(abs(_total(_by_norm(u) * _by_rsqrt(v))), 0.0, 1.0)
            )
        ),
        2,
    ),
    "absolute and at most 1": (
        lambda u, v: tf.acos(
            tf.minimum(tf.abs(tf.einsum("ij,ij->i", _by_norm(u), _by_norm(v))), 1.0)
        ),
        1,
    ),
    "absolute quotient": (
        lambda u, v: tf.acos(
            abs(_total(u * v) / (tf.norm(u, axis=-1) * tf.norm(v, axis=-1)))
        ),
        1,
    ),
    "twice the angle": (
        lambda u, v: tf.acos(2 * _total(_by_norm(u) * _by_norm(v)) ** 2 - 1),
        2,
    ),
}


def _cosine(u, v):
    u, v = ([mpmath.mpf(float(x)) for x in row] for row in (u, v))
    product = mpmath.fsum(a * b for a, b in zip(u, v, strict=True))
    return product / mpmath.norm(u) / mpmath.norm(v)


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
@pytest.mark.parametrize("name", ANGLES)
def test_small_angles_keep_their_digits(name, mode):
    with mpmath.workdps(60):
        exact = [float(mpmath.acos(_cosine(u, v))) for u, v in zip(U, V, strict=True)]
    value, slopes = modes.value_and_gradients(
        rewritten(RULES, ANGLES[name]), [tf.constant(U), tf.constant(V)], mode
    )
    assert_close(value, exact, 2, scale=1.0)
    assert all(np.isfinite(slope).all() for slope in slopes)


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
@pytest.mark.parametrize("name", LINES)
def test_small_angles_of_lines_keep_their_digits(name, mode):
    function, times = LINES[name]
    signs = np.where(np.arange(len(V)) % 2, -1, 1)[:, None].astype(np.float32)
    # Another half of the lines is not near each other.
    others = [np.concatenate(each) for each in ((U, U), (signs * V, V[::-1]))]
    with mpmath.workdps(60):
        exact = [
            float(times * mpmath.acos(abs(_cosine(u, v))))
            for u, v in zip(*others, strict=True)
        ]
    args = [tf.constant(each) for each in others]
    value, slopes = modes.value_and_gradients(stabilize(function), args, mode)
    assert_close(value, exact, 3, scale=1.0)
    wide = [tf.constant(each.astype(np.float64)) for each in others]
    _, right = modes.value_and_gradients(function, wide, "eager")
    why = "the direction between the two, which a small angle rounds: 8.7e-6"
    for got, want in zip(slopes, right, strict=True):
        assert_close(got, want, 80, why=why, scale=1.0)


@pytest.mark.parametrize("name", LINES)
def test_the_angle_of_a_line_and_itself_is_0(name):
    x = tf.constant(U)
    assert np.abs(stabilize(LINES[name][0])(x, -x)).max() < 1e-6


def test_the_square_of_a_cosine_alone_is_no_angle_of_lines():
    def other(u, v):
        return tf.acos(2 * _total(_by_norm(u) * _by_norm(v)) ** 2 - 0.5)

    x, y = tf.constant(U), tf.constant(V)
    assert "angle-of-unit-vectors" not in fired(all_rules(), other, x, y)


@pytest.mark.parametrize("name", ANGLES)
def test_the_angle_of_a_vector_and_itself_is_0(name):
    x = tf.constant(U)
    assert np.abs(rewritten(RULES, ANGLES[name])(x, tf.identity(x))).max() < 3e-7


def test_the_plain_angle_is_wrong():
    plain = ANGLES["norms"](tf.constant(U), tf.constant(U)).numpy()
    assert np.isnan(plain).any() or np.max(plain) > 1e-4


@pytest.mark.parametrize("name", ANGLES)
@pytest.mark.parametrize("shape", [None, [None, None]])
def test_shapes_that_are_not_known_are_no_error(name, shape):
    specs = [tf.TensorSpec(shape, tf.float32)] * 2
    value = rewritten(RULES, ANGLES[name], *specs)(tf.constant(U), tf.constant(V))
    plain = ANGLES[name](tf.constant(U), tf.constant(V))
    assert_close(
        value,
        plain,
        2000,
        why="half of the digits of the plain angle are lost",
        scale=1.0,
    )


def test_zero_vectors_keep_the_right_angle():
    zero = tf.zeros([1, 3])
    stable = rewritten(RULES, ANGLES["l2_normalize"])
    assert_close(stable(zero, zero), [np.pi / 2])
    assert_close(stable(zero, zero + 1), [np.pi / 2])


def test_the_sine_is_never_the_root_of_a_negative_number():
    def sine(u, v):
        return tf.sqrt(1 - _total(_by_norm(u) * _by_norm(v)) ** 2)

    x, y = tf.constant(U), tf.constant(V)
    assert np.abs(rewritten(RULES, sine)(x, tf.identity(x))).max() < 3e-7
    with mpmath.workdps(60):
        exact = [
            float(mpmath.sqrt(1 - _cosine(u, v) ** 2))
            for u, v in zip(U, V, strict=True)
        ]
    assert_close(rewritten(RULES, sine)(x, y), exact, 2, scale=1.0)


def test_a_sum_that_rounds_beyond_1_is_1():
    function = rewritten(RULES, lambda x: tf.acos(_total(x)))
    above = tf.constant([[0.5, 0.5 + 2e-7], [0.5, 0.6], [np.nan, 0.0], [0.25, 0.25]])
    assert_close(function(above), [0.0, np.nan, np.nan, np.pi / 3])
    alone = rewritten(RULES, tf.acos)(tf.constant([1.0000002]))
    assert np.isnan(alone).all()


def test_a_sum_that_stays_between_minus_1_and_1_is_left_alone():
    def function(x):
        return tf.asin(0.5 * (tf.sin(x) + tf.cos(x)))

    assert "rounded-domain" not in fired(RULES, function, tf.constant([0.5]))


def test_the_great_circle_between_neighbours():
    def distance(a, b, c, d):
        return tf.acos(tf.sin(a) * tf.sin(b) + tf.cos(a) * tf.cos(b) * tf.cos(c - d))

    arrays = [[0.7, 0.7, 0.5, -0.5], [0.7, 0.7001, 0.5, 0.5]]
    arrays += [[0.2, 0.2, 1.0, 3.1], [0.2, 0.2001, 2.0, -0.04]]
    arrays = [np.float32(each) for each in arrays]
    with mpmath.workdps(60):
        exact = [
            float(
                mpmath.acos(
                    mpmath.sin(a) * mpmath.sin(b)
                    + mpmath.cos(a) * mpmath.cos(b) * mpmath.cos(c - d)
                )
            )
            for a, b, c, d in (
                map(mpmath.mpf, map(float, row)) for row in zip(*arrays, strict=True)
            )
        ]
    value = rewritten(RULES, distance)(*map(tf.constant, arrays))
    assert_close(value, exact)


def test_hyperbolic_distances_of_near_points():
    x = np.float32([0.0, 1e-30, 1e-8, 1e-3, 5.0, 1e30])
    value, (slope,) = modes.value_and_gradients(
        rewritten(RULES, lambda x: tf.acosh(1 + x)), [tf.constant(x)], "graph"
    )
    with mpmath.workdps(60):
        exact = [float(mpmath.acosh(1 + mpmath.mpf(float(each)))) for each in x]
    assert_close(value, exact)
    wide = x.astype(float)[1:]
    assert_close(
        slope[1:],
        1 / np.sqrt(wide * (wide + 2)),
        10,
        why="the slope of asinh is 1 / cosh of up to 35",
    )
    assert slope[0] == 0


@pytest.mark.parametrize("length", [0.5, 1.0])
def test_a_product_of_any_vectors_has_the_slope_of_the_inverse_cosine(length):
    first = np.float32([[0.6 * length, 0.8 * length]])
    second = np.float32([[0.6, 0.8]]) + np.float32([[-8e-4, 6e-4]])

    def angle(u, v):
        return tf.acos(_total(u * v))

    args = [tf.constant(first), tf.constant(second)]
    assert "angle-of-unit-vectors" in fired(all_rules(), angle, *args)
    value, slopes = modes.value_and_gradients(stabilize(angle), args, "graph")
    cosine = (first.astype(float) * second).sum(-1)
    exact = np.arccos(min(cosine[0], 1.0))
    if length == 1:
        exact = 1e-3
    why = "the angle of the vectors before they are rounded"
    assert_close(value, [exact], 14, why=why)
    assert_close(slopes[0], -second / np.sin(exact), 21, why=why)
    assert_close(slopes[1], -first / np.sin(exact), 21, why=why)


@pytest.mark.parametrize(
    "lengths",
    [
        lambda u, v: (tf.norm(u, axis=-1, keepdims=True), tf.norm(u)),
        lambda u, v: (tf.norm(u, axis=0, keepdims=True), tf.norm(v, axis=0)),
        lambda u, v: (tf.norm(u, axis=-1, keepdims=True), 2.0),
        lambda u, v: (_total(u, True), _total(v, True)),
    ],
    ids=["of all rows", "of the columns", "of one vector", "sums"],
)
def test_a_quotient_by_another_length_is_no_cosine(lengths):
    def divided(u, v):
        first, second = lengths(u, v)
        return tf.acos(_total(u / first * v / second))

    found = fired(all_rules(), divided, tf.constant(U), tf.constant(V))
    assert "angle-of-unit-vectors" not in found


def test_an_angle_and_its_sine_are_those_of_one_cosine():
    def kernel(x, y):
        lengths = tf.norm(x, axis=-1) * tf.norm(y, axis=-1)
        cosine = tf.reduce_sum(x * y, -1) / lengths
        return tf.sqrt(1 - cosine**2) - tf.acos(cosine)

    x = tf.constant(U)
    assert "sine-of-unit-vectors" in fired(all_rules(), kernel, x, x)
    assert not np.all(kernel(x, x) == 0)
    value, slopes = modes.value_and_gradients(stabilize(kernel), [x, x], "graph")
    assert not np.any(value)
    assert not np.any(slopes)
