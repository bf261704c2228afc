"""What is near 1 keeps the digits of its difference from 1, and of its logarithm."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired, in_modes
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.rewriting.rules.table import all_rules

LOG, SQRT, COS, EXP, XLOGY = range(5)
TENSORFLOW = tf.math.log, tf.sqrt, tf.cos, tf.exp, tf.math.xlogy
MPMATH = (
    *(mpmath.log, mpmath.sqrt, mpmath.cos, mpmath.exp),
    lambda x, y: x * mpmath.log(y),
)


def _binary_divergence(f, p, q):
    return p * f[LOG](p / q) + (1 - p) * (f[LOG](1 - p) - f[LOG](1 - q))


def _expanded_divergence(f, p, q):
    return p * f[LOG](p) - p * f[LOG](q) + (1 - p) * f[LOG]((1 - p) / (1 - q))


def _kimura(f, p, q):
    return f[LOG]((1 - 2 * p - q) * f[SQRT](1 - 2 * q))


def _repeated_divergence(x, y):
    # What is added is not repeated as the logarithms are.
    x, y = tf.stack([x, x], -1), y[:, None]
    logs = tf.reduce_sum(x * tf.math.log(x / y), -1)
    return logs - tf.reduce_sum(x, -1) + tf.reduce_sum(y, -1)


def _law_of_cosines(f, a, b):
    c = a * 0 + 2
    return f[SQRT](a * a + c * c - 2 * a * c * f[COS](b))


# By name: the formula; a point where digits are lost, and an ordinary one.
FORMULAS = {
    "doppler": (lambda f, a, b: f[SQRT]((a + b) / (a - b)) - 1, (1, 1e-6), (1, 0.5)),
    "forward rate": (
        lambda _, a, b: (1 + b) ** 2 / (1 + a) - 1,
        (1e-6, 3e-6),
        (0.25, 0.5),
    ),
    "return": (lambda _, a, b: b / a - 1, (3, 3.000001), (3, 2)),
    "log of a return": (lambda f, a, b: f[LOG](b / a), (3, 3.000001), (3, 2)),
    "kimura": (_kimura, (1e-7, 2e-7), (0.125, 0.0625)),
    "discounted quotient": (
        lambda f, a, b: f[LOG]((1 - a * f[EXP](-b)) / (1 - a)),
        (0.5, 1e-6),
        (0.5, 2),
    ),
    "potential energy": (lambda f, a, b: a - a * f[COS](b), (9.75, 1e-5), (9.75, 1)),
    "growth": (lambda f, a, b: a * f[EXP](b) / 3 - a / 3, (9.75, 1e-6), (9.75, 1)),
    "discount": (lambda _, a, b: 1 - 1 / (1 + a * b) ** 2, (1e-3, 1e-3), (0.25, 0.5)),
    "gate of a recurrence": (
        lambda f, a, b: a * f[SQRT](1 - f[EXP](-b) ** 2),
        (0.25, 1e-6),
        (0.25, 0.5),
    ),
    "guess and slip": (
        lambda _, a, b: 1 - (b + (1 - b) * a),
        (0.999999, 0.25),
        (0.25, 0.5),
    ),
    "power of an exponential": (
        lambda f, a, b: a * (1 - f[EXP](-b) ** 3),
        (0.25, 1e-6),
        (0.25, 0.5),
    ),
    "law of cosines": (_law_of_cosines, (2.0001, 1e-4), (3, 1)),
    "binary divergence": (_binary_divergence, (0.3, 0.30001), (0.25, 0.5)),
    "expanded divergence": (_expanded_divergence, (0.3, 0.30001), (0.25, 0.5)),
    "poisson deviance": (
        lambda f, a, b: a * f[LOG](a / b) - a + b,
        (1000, 1000.125),
        (2, 3),
    ),
    "poisson deviance by xlogy": (
        lambda f, a, b: f[XLOGY](a, a / b) - a + b,
        (1000, 1000.125),
        (2, 3),
    ),
    "penalised linex loss": (
        lambda f, a, b: 2 * f[EXP](b) - 2 - 2 * b + a * b * b,
        (0.5, 1e-4),
        (0.5, 1),
    ),
    "normal divergence": (
        lambda f, a, b: f[LOG](b / a) + a * a / (2 * b * b) - 0.5,
        (1, 1.0001),
        (2, 3),
    ),
    "normal divergence of a quotient": (
        lambda f, a, b: 0.5 * (a / b) ** 2 - f[LOG](a / b) - 0.5,
        (1, 1.0001),
        (2, 3),
    ),
    "divergence from the unit normal": (
        lambda f, a, b: 0.5 * (a * a - 1) - f[LOG](a) + 0 * b,
        (1.0001, 2),
        (0.25, 0.5),
    ),
    "divergence of a variance that is a square": (
        lambda f, a, b: a * a - 1 - f[LOG](a * a) + 0 * b,
        (1.0001, 2),
        (0.25, 0.5),
    ),
    "divergence from a prior": (
        lambda f, a, b: f[LOG](2 / a) + (a * a + b * b) / 8 - 0.5,
        (2.0001, 2**-20),
        (3, 1),
    ),
    "inverse gamma divergence from a prior": (
        lambda f, a, b: f[LOG](a / 3) + 3 / a - 1 + 0 * b,
        (3.0001, 1),
        (2, 1),
    ),
    "drag": (lambda f, a, b: a - b * f[LOG](1 + a / b), (1e-4, 1), (1, 2)),
    "penalty written out": (
        lambda f, a, b: b * f[EXP](a / b) - b - a,
        (1e-3, 3),
        (1, 2),
    ),
    "divergence generator": (
        lambda f, a, b: a * f[LOG](a) - a + 1 + 0 * b,
        (1.0001, 1),
        (3, 1),
    ),
    "Bennett's function": (
        lambda f, a, b: b * ((1 + a) * f[LOG](1 + a) - a),
        (1e-4, 2),
        (0.25, 0.5),
    ),
    "weighted difference of logarithms": (
        lambda f, a, b: b * (f[LOG](a + 1) - f[LOG](a)),
        (2**20, 0.25),
        (3, 0.25),
    ),
    "weighted inverse cosine": (
        lambda f, a, b: b * f[LOG](a + f[SQRT](a * a - 1)),
        (1.0001, 0.25),
        (3, 0.25),
    ),
    "weighted inverse sine": (
        lambda f, a, b: b * f[LOG](a + f[SQRT](a * a + 1)),
        (1e-5, 0.25),
        (3, 0.25),
    ),
    "weighted log1p less its fraction": (
        lambda f, a, b: b * (f[LOG](1 + a) - a / (1 + a)),
        (1e-4, 0.25),
        (3, 0.25),
    ),
    "weighted divergence": (
        lambda f, a, b: b * (0.5 * (a * a - 1) - f[LOG](a)),
        (1.0001, 2),
        (0.25, 0.5),
    ),
    "weighted divergence of variances": (
        lambda f, a, b: (b - 1) * (f[LOG](b / a) + a / b - 1),
        (3, 3.0001),
        (0.25, 0.5),
    ),
    "divergence of no weight": (
        lambda f, a, b: (b - 1) * (a - 1 - f[LOG](a)),
        (1e-30, 1),
        (3, 1),
    ),
    "exponential of a step": (
        lambda f, a, b: b * (f[EXP](a - 1) - a),
        (1.0001, 2),
        (0.25, 0.5),
    ),
    "gamma deviance": (
        lambda f, a, b: (a - b) / b - f[LOG](a / b),
        (1000, 1000.1),
        (2, 3),
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*FORMULAS))
def test_it_agrees_with_mpmath(name, mode):
    formula, *points = FORMULAS[name]

    def both(a, b):
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            value = formula(TENSORFLOW, a, b)
        return value, *tape.gradient(value, [a, b])

    run = modes.compile_for(mode, stabilize(both))
    for point in points:
        args = [np.float32(each) for each in point]
        exact = [mpmath.mpf(float(each)) for each in args]
        with mpmath.workdps(60):
            wanted = [
                formula(MPMATH, *exact),
                *(
                    mpmath.diff(lambda *x: formula(MPMATH, *x), tuple(exact), order)
                    for order in ((1, 0), (0, 1))
                ),
            ]
        for got, expected in zip(run(*map(tf.constant, args)), wanted, strict=True):
            assert_close(
                got,
                float(expected),
                24,
                why="some of the slopes are differences of numbers near 1",
            )


def test_a_limit_in_a_product_has_its_value_and_its_slope(mode):
    def both(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            value = 1 - tf.sin(y) / y * tf.exp(-x)
        return value, *tape.gradient(value, [x, y])

    run = modes.compile_for(mode, stabilize(both))
    x = np.float32([0.5, 1e-4])
    value, by_x, by_y = run(tf.constant(x), tf.zeros(2))
    assert_close(value, -np.expm1(-np.float64(x)))
    assert_close(by_x, np.exp(-np.float64(x)))
    assert by_y.numpy().tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, y: x - y * tf.cos(x),
        lambda x, y: x - y * tf.math.log(1 + x),
        lambda x, y: 2 * x - y * tf.math.log(1 + x / y),
        lambda x, y: y * tf.exp(x / y) - x - 1,
        lambda x, y: 1 - (y + (2 - y) * x),
        lambda x, y: 1 - (y + (1 - x) * x),
        lambda x, y: 2 - tf.exp(x) ** 2 + y,
        lambda x, y: tf.math.log(x / 3) + 3 / x - 0.5 + y,
        lambda x, y: tf.math.log(2 / x) + y * y / 8 - 0.5,
        lambda x, y: x + x * tf.cos(y),
        lambda x, y: x * x + y * y - 3 * x * y * tf.cos(x),
        _repeated_divergence,
        lambda x, y: y * tf.math.log(y / x) + (2 - y) * tf.math.log((1 - y) / (1 - x)),
    ],
)
def test_other_sums_stay(formula):
    names = fired(all_rules(), formula, tf.constant([0.5]), tf.constant([0.25]))
    others = {"divergence", "function-less-tangent", "difference-from-one"}
    assert not (others | {"complement-of-product"}) & set(names)


# Of rows, summed before they cancel.
SUMS = {
    "poisson deviance": lambda x, y: (
        tf.reduce_sum(x * tf.math.log(x / y), -1)
        - tf.reduce_sum(x, -1)
        + tf.reduce_sum(y, -1)
    ),
    "hellinger distance": lambda x, y: (
        tf.reduce_sum(x, -1)
        + tf.reduce_sum(y, -1)
        - 2 * tf.reduce_sum(tf.sqrt(x * y), -1)
    ),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("shapes", [([None, 3], [None, 3]), ([None, 3], [3])])
def test_rows_of_a_batch_of_any_size_keep_their_digits(name, shapes):
    x = tf.constant([[1000.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = x * 1.0001 if len(shapes[1]) == 2 else x[1] * 1.0001
    specs = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    run = stabilize(tf.function(SUMS[name], input_signature=specs))
    value, slopes = modes.value_and_gradients(run, [x, y], "graph")
    wide = [tf.cast(each, tf.float64) for each in (x, y)]
    exact, exact_slopes = modes.value_and_gradients(SUMS[name], wide, "eager")
    assert_close(value, exact)
    for slope, truth in zip(slopes, exact_slopes, strict=True):
        assert_close(slope, truth)


def test_rows_that_may_be_repeated_stay():
    spec = tf.TensorSpec([None, None], tf.float32)
    names = fired(all_rules(), SUMS["poisson deviance"], spec, spec)
    assert "function-less-tangent" not in names


def test_far_from_one_a_quotient_keeps_its_infinities():
    @stabilize
    def change(a, b):
        return a / b - 1, tf.math.log(a / b)

    a, b = [1.0, 0.0, 1.0, float("inf")], [0.0, 1.0, float("inf"), 1.0]
    less, log = change(tf.constant(a), tf.constant(b))
    np.testing.assert_array_equal(less, [np.inf, -1, -1, np.inf])
    np.testing.assert_array_equal(log, [np.inf, -np.inf, -np.inf, np.inf])


# Of sums that leave the range, alone or squared.
QUOTIENTS = {
    "x / y": lambda x, y: x[0] / y[0],
    "sum(x) * x / sum(y * y)": lambda x, y: (
        tf.reduce_sum(x) * x[0] / tf.reduce_sum(y * y)
    ),
    "sum(x * x) / (sum(y) * y)": lambda x, y: (
        tf.reduce_sum(x * x) / (tf.reduce_sum(y) * y[0])
    ),
}


@pytest.mark.parametrize("name", QUOTIENTS)
@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15])
def test_the_logarithm_of_a_quotient_has_its_slopes_far_from_1(name, scale, mode):
    quotient = QUOTIENTS[name]
    x, y = tf.constant([2.0, 3.0]) * scale, tf.constant([5.0, 0.25]) * scale
    function = stabilize(lambda x, y: tf.math.log(quotient(x, y)))
    value, slopes = modes.value_and_gradients(function, [x, y], mode)
    exact, exact_slopes = modes.value_and_gradients(
        lambda x, y: tf.math.log(quotient(x, y)),
        [tf.cast(x, tf.float64), tf.cast(y, tf.float64)],
        "eager",
    )
    assert_close(value, exact)
    for slope, truth in zip(slopes, exact_slopes, strict=True):
        assert_close(slope, truth)
