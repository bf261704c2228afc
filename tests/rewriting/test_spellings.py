"""Formulas are repaired in each spelling, and left alone where there is no hazard."""

import functools

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import in_modes
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.graph import live_operations
from tfsafe.rewriting.facts.spellings import respell
from tfsafe.rewriting.facts.tensors import Reader


def _transposed(x):
    return tf.transpose(tf.reshape(x, [3, 1]))


# Formulas in a spelling that their rules do not know, with the exact function and where
# the formula alone fails.
FORMULAS = {
    "times 1 / x": (
        lambda x: tf.math.log1p(x) * (1 / x),
        lambda x: mpmath.log1p(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "times a reciprocal": (
        lambda x: tf.math.reciprocal(x) * tf.sin(x),
        lambda x: mpmath.sin(x) / x,
        [1e-39, 3e-4, 2.0],
    ),
    "times a power of -1": (
        lambda x: (tf.exp(x) - 1) * x**-1.0,
        lambda x: mpmath.expm1(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "a difference turned round": (
        lambda x: -(1 - tf.exp(x)) / x,
        lambda x: mpmath.expm1(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "-1 times a difference": (
        lambda x: tf.math.log(-1.0 * (tf.exp(-x) - 1)),
        lambda x: mpmath.log(-mpmath.expm1(-x)),
        [1e-20, 3e-4, 2.0],
    ),
    "a logarithm of 1 plus the negative": (
        lambda x: tf.math.log(1 + -(tf.sigmoid(x))),
        lambda x: -mpmath.log1p(mpmath.exp(x)),
        [90.0, -30.0, 2.0],
    ),
    "an exponential upside down": (
        lambda x: tf.math.log(1 / tf.exp(-x) - 1),
        lambda x: mpmath.log(mpmath.expm1(x)),
        [1e-20, 3e-4, 95.0],
    ),
    "a sigmoid by exponentials": (
        lambda x: tf.math.log(1 - 1 / (1 + tf.exp(-x))),
        lambda x: -mpmath.log1p(mpmath.exp(x)),
        [90.0, -30.0, 2.0],
    ),
    "a logarithm of a softplus by hand": (
        lambda x: tf.math.log(tf.math.log(1 + tf.exp(x))),
        lambda x: mpmath.log(mpmath.log1p(mpmath.exp(x))),
        [-90.0, 95.0, 2.0],
    ),
    "a root upside down": (
        lambda x: (1 / tf.math.rsqrt(1 + x) - 1) / x,
        lambda x: 1 / (mpmath.sqrt(1 + x) + 1),
        [1e-20, 3e-4, 2.0],
    ),
    "within another axis": (
        lambda x: tf.squeeze(tf.sin(x)[:, None] / x[:, None], 1),
        lambda x: mpmath.sin(x) / x,
        [1e-39, 3e-4, 2.0],
    ),
    "in another order": (
        lambda x: tf.reshape(_transposed(tf.exp(x) - 1) / _transposed(x), [3]),
        lambda x: mpmath.expm1(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "picked from a formula and from its argument": (
        lambda x: tf.reverse(tf.math.log1p(x), [0]) / tf.reverse(x, [0]),
        lambda x: mpmath.log1p(x) / x,
        [1e-20, 3e-4, 1e-20],
    ),
    "unstacked": (
        lambda x: tf.divide(*tf.unstack(tf.stack([tf.sin(x), x], -1), axis=-1)),
        lambda x: mpmath.sin(x) / x,
        [1e-39, 3e-4, 2.0],
    ),
    "taken from a stack": (
        lambda x: tf.stack([x, tf.exp(x) - 1], 1)[..., -1] / x,
        lambda x: mpmath.expm1(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "split again": (
        lambda x: tf.divide(*tf.split(tf.concat([tf.sin(x), x], 0), 2)),
        lambda x: mpmath.sin(x) / x,
        [1e-39, 3e-4, 2.0],
    ),
    "a part of a formula that is split": (
        lambda x: -tf.math.log(tf.concat(tf.split(tf.sigmoid(x), [1, -1]), 0)),
        lambda x: mpmath.log1p(mpmath.exp(-x)),
        [-120.0, 30.0, 2.0],
    ),
    "a formula that is unstacked": (
        lambda x: -tf.stack([tf.math.log(p) for p in tf.unstack(tf.sigmoid(x))]),
        lambda x: mpmath.log1p(mpmath.exp(-x)),
        [-120.0, 30.0, 2.0],
    ),
    "cast there and back": (
        lambda x: tf.cast(tf.cast(tf.exp(x) - 1, tf.float64), tf.float32) / x,
        lambda x: mpmath.expm1(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "a power of e": (
        lambda x: (np.float32(np.e) ** x - 1) / x,
        lambda x: mpmath.expm1(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "a root as a power": (
        lambda x: ((1 + x) ** 0.5 - 1) / x,
        lambda x: 1 / (mpmath.sqrt(1 + x) + 1),
        [1e-20, 3e-4, 2.0],
    ),
    "a condition turned round": (
        lambda x: tf.where(
            tf.logical_not(tf.abs(x) > 1e-30), tf.ones_like(x), tf.sin(x) / x
        ),
        lambda x: mpmath.sin(x) / x,
        [0.0, 3e-4, 2.0],
    ),
}

# Other spellings of one function, within a formula that fails alone.
AMOUNTS = {
    "by its sign": lambda x: x * tf.sign(x),
    "as a maximum": lambda x: tf.maximum(-x, x),
    "below 0 its negative": lambda x: tf.where(x < 0, -x, x),
    "from 0 on itself": lambda x: tf.where(x >= 0, x, -x),
    "as a root": lambda x: tf.sqrt(x * x),
}
SIGMOIDS = {
    "of a logarithm": lambda x: tf.exp(tf.math.log_sigmoid(x)),
    "of a softplus": lambda x: tf.exp(-tf.math.softplus(-x)),
    "from the other side": lambda x: 1 - tf.sigmoid(-x),
    "as a power": lambda x: (1 + tf.exp(-x)) ** -1.0,
    "as a quotient": lambda x: tf.exp(x) / (tf.exp(x) + 1),
    "by the opposite": lambda x: 1 - 1 / (1 + tf.exp(x)),
}
SOFTPLUSES = {
    "by a rectifier": lambda x: tf.nn.relu(x) + tf.math.log1p(tf.exp(-tf.abs(x))),
    "by a maximum": lambda x: tf.maximum(x, 0.0) + tf.math.log1p(tf.exp(-tf.abs(x))),
    "from the other side": lambda x: tf.math.softplus(-x) + x,
}
TANGENTS = {
    "by a sigmoid": lambda x: 2 * tf.sigmoid(2 * x) - 1,
    "as a distance from 1": lambda x: 1 - 2 / (tf.exp(2 * x) + 1),
    "by exponentials": lambda x: (tf.exp(2 * x) - 1) / (tf.exp(2 * x) + 1),
    "as a quotient": lambda x: tf.sinh(x) / tf.cosh(x),
}
LOGARITHMS = {
    "upside down": lambda x: -tf.math.log(1 / x),
    "of a root": lambda x: 2 * tf.math.log(tf.sqrt(x)),
    "by the distance from 1": lambda x: tf.math.log1p(x - 1),
}
FORMULAS |= {
    **{
        f"an amount {name}": (
            lambda x, amount=amount: (tf.exp(amount(x)) - 1) / tf.abs(x),
            lambda x: mpmath.expm1(x) / x,
            [1e-15, 3e-4, 2.0],
        )
        for name, amount in AMOUNTS.items()
    },
    **{
        f"a sigmoid {name}": (
            lambda x, sigmoid=sigmoid: tf.math.log(1 - sigmoid(x)),
            lambda x: -mpmath.log1p(mpmath.exp(x)),
            [30.0, -30.0, 2.0],
        )
        for name, sigmoid in SIGMOIDS.items()
    },
    **{
        f"a softplus {name}": (
            lambda x, softplus=softplus: tf.math.log(softplus(x)),
            lambda x: mpmath.log(mpmath.log1p(mpmath.exp(x))),
            [-90.0, 95.0, 2.0],
        )
        for name, softplus in SOFTPLUSES.items()
    },
    **{
        f"a hyperbolic tangent {name}": (
            lambda x, tanh=tanh: tf.math.log(1 - tanh(x) ** 2),
            lambda x: -2 * mpmath.log(mpmath.cosh(x)),
            [20.0, 3.0, 2.0],
        )
        for name, tanh in TANGENTS.items()
    },
    **{
        f"a logarithm {name}": (
            lambda x, log=log: log(x) / (x - 1),
            lambda x: mpmath.log(x) / (x - 1),
            [1.00001, 0.9999, 3.0],
        )
        for name, log in LOGARITHMS.items()
    },
    "a hyperbolic sine by exponentials": (
        lambda x: tf.tanh(x) / (0.5 * (tf.exp(x) - 1 / tf.exp(x))),
        lambda x: 1 / mpmath.cosh(x),
        [1e-20, 3e-4, 2.0],
    ),
    "two negatives": (
        lambda x: -((tf.exp(x) - 1) * (1 / -x)),
        lambda x: mpmath.expm1(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "an inverse quotient": (
        lambda x: 1 / (x / (tf.exp(x) - 1)),
        lambda x: mpmath.expm1(x) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "an inverse power": (
        lambda x: (1 - 1 / (1 + x) ** 3.0) / x,
        lambda x: -mpmath.expm1(-3 * mpmath.log1p(x)) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "a power as an exponential": (
        lambda x: (tf.exp(1.5 * tf.math.log(1 + x * x)) - 1) / (x * x),
        lambda x: mpmath.expm1(1.5 * mpmath.log1p(x * x)) / (x * x),
        [1e-15, 3e-4, 2.0],
    ),
    "a power of 2": (
        lambda x: (2.0**x - 1) / x,
        lambda x: mpmath.expm1(x * mpmath.log(2)) / x,
        [1e-20, 3e-4, 2.0],
    ),
    "a sum with itself": (
        lambda x: (tf.exp(x + x) - 1) / (2 * x),
        lambda x: mpmath.expm1(2 * x) / (2 * x),
        [1e-20, 3e-4, 2.0],
    ),
    "a sum of a stack": (
        lambda x: (tf.exp(tf.reduce_sum(tf.stack([x, x * x]), 0)) - 1) / (x + x * x),
        lambda x: mpmath.expm1(x + x * x) / (x + x * x),
        [1e-15, 3e-4, 2.0],
    ),
    "a product as an einsum": (
        lambda x: (tf.exp(tf.einsum("i,i->i", x, x)) - 1) / (x * x),
        lambda x: mpmath.expm1(x * x) / (x * x),
        [1e-15, 3e-4, 2.0],
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*FORMULAS))
def test_a_formula_is_right_in_another_spelling(name, mode):
    function, exact, points = FORMULAS[name]
    points = np.float32(points)
    value, (slope,) = modes.value_and_gradients(
        stabilize(function), [tf.constant(points)], mode
    )
    with mpmath.workdps(60):
        at = [mpmath.mpf(float(each)) or mpmath.mpf(10) ** -30 for each in points]
        values = [float(exact(each)) for each in at]
        slopes = [float(mpmath.diff(exact, each, h=each / 2**60)) for each in at]
    assert_close(value, values)
    assert_close(slope, slopes, scale=1e-24)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.math.log(tf.reduce_sum(tf.exp(x))),
        lambda x: tf.math.log(1 + tf.reduce_mean(tf.exp(x))),
        lambda x: tf.math.log(1 + tf.reduce_max(tf.exp(tf.reduce_prod(x)))),
    ],
)
def test_a_sum_over_no_axis_is_seen_through(function, mode):
    x = tf.constant(200.0)
    value, (slope,) = modes.value_and_gradients(stabilize(function), [x], mode)
    assert_close(value, 200.0)
    assert_close(slope, 1.0)


def test_the_gates_of_a_recurrence_are_no_slices():
    @tf.function
    def step(x, state):
        one, other = tf.split(x @ tf.ones([2, 4]) + state, 2, axis=1)
        return tf.sigmoid(one) * tf.tanh(other)

    shapes = tf.TensorSpec([3, 2]), tf.TensorSpec([3, 4])
    graph = step.get_concrete_function(*shapes).graph
    assert not respell(Reader(graph), Reader(graph))


@pytest.mark.parametrize(
    "mean",
    [lambda x: tf.reduce_sum(x) / 3, lambda x: tf.reduce_sum(x / 3)],
    ids=["over a count", "of parts"],
)
def test_a_mean_as_a_sum_is_seen_in_a_variance(mean):
    def variance(x):
        return mean(x * x) - mean(x) ** 2

    x = np.float32([1000.0, 1000.1, 1000.2])
    value = tf.function(stabilize(variance))(tf.constant(x))
    assert_close(value, np.var(x.astype(float)))


@pytest.mark.parametrize("mode", modes.MODES)
@pytest.mark.parametrize(
    ("dtype", "scale", "ulp"),
    [(tf.float16, 2.0**12, 2.0**-10), (tf.bfloat16, 2.0**64, 2.0**-7)],
)
def test_a_formula_is_wide_from_its_first_operation(dtype, scale, ulp, mode):
    def function(x):
        length = tf.sqrt(tf.cast(tf.reduce_sum(x * x, -1), tf.float32))
        sinc = tf.cast(tf.sin(x), tf.float32) / tf.cast(x, tf.float32)
        return length, sinc

    rows = np.float32([[3.0, 4.0], [0.0, 0.0], [2.0**-14, 2.0**-14]])
    x = tf.constant(rows, dtype) * tf.constant([[scale], [1.0], [1 / 8]], dtype)
    exact = x.numpy().astype(np.float64)
    length, (slope,) = modes.value_and_gradients(
        stabilize(lambda x: function(x)[0]), [x], mode
    )
    norms = np.linalg.norm(exact, axis=-1)
    assert_close(length, norms, 2)
    units = exact / np.where(norms, norms, 1)[:, None]
    assert_close(slope, units, 1)
    ratio, (slope,) = modes.value_and_gradients(
        stabilize(lambda x: function(x)[1]), [x / scale], mode
    )
    assert_close(ratio, np.sinc(exact / scale / np.pi), 2)
    assert np.isfinite(np.float32(slope)).all()


@pytest.mark.parametrize(
    "column",
    [
        lambda x: x[:, None],
        lambda x: tf.expand_dims(x, 1),
        lambda x: tf.reshape(x, [-1, 1]),
    ],
    ids=["sliced", "expanded", "reshaped"],
)
@pytest.mark.parametrize("sizes", [[None], [3]])
def test_a_formula_within_another_axis_is_right_for_any_size(sizes, column):
    def function(t):
        return (1 - tf.cos(t))[:, None] / column(t * t)

    stable = tf.function(
        stabilize(function), input_signature=[tf.TensorSpec(sizes, tf.float32)]
    )
    t = np.float32([0.0, 1e-4, 2.0])
    right = [[0.5], [0.5], [(1 - np.cos(2.0)) / 4]]
    assert_close(stable(tf.constant(t)), right, 2)


def test_an_axis_of_size_1_that_is_stretched_keeps_its_values():
    @tf.function(input_signature=2 * [tf.TensorSpec([None], tf.float32)])
    @stabilize
    def function(x, y):
        whole, part = tf.math.expm1(x) * y, x * y
        return tf.reshape(whole, [2, -1]) / tf.reshape(part, [2, -1])

    result = function(tf.constant([2.0, 3.0, 4.0, 5.0]), tf.constant([0.5]))
    exact = np.expm1([[2.0, 3.0], [4.0, 5.0]]) / [[2.0, 3.0], [4.0, 5.0]]
    assert_close(result, exact, 2)


SUMS = {
    "places": lambda x: x[:, 0] + x[:, 1] + x[:, 2],
    "places from the end": lambda x: x[..., -1] + (x[:, 1] + x[:, 0]),
    "places by Python": lambda x: sum(tf.unstack(x, axis=-1)),
    "places at once": lambda x: tf.add_n(tf.unstack(x, axis=1)),
    "a product with ones": lambda x: tf.matmul(x, tf.ones([3, 1]))[:, 0],
    "a product with a row of ones": lambda x: tf.tensordot(x, tf.ones([3]), 1),
    "an einsum": lambda x: tf.einsum("...i->...", x),
    "an axis that is kept and squeezed": lambda x: tf.squeeze(
        tf.reduce_sum(x, 1, keepdims=True), 1
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*SUMS))
def test_a_sum_is_known_in_each_spelling(name, mode):
    def function(x):
        return tf.exp(x[:, 0]) / SUMS[name](tf.exp(x))

    x = np.float32([[90.0, -3.0, 100.0], [0.0, 1.0, 2.0], [-200.0, -201.0, -202.0]])
    value, (slope,) = modes.value_and_gradients(
        stabilize(function), [tf.constant(x)], mode
    )
    logs = x.astype(np.float64)
    logs = logs - logs.max(1, keepdims=True)
    right = np.exp(logs) / np.exp(logs).sum(1, keepdims=True)
    assert_close(value, right[:, 0])
    slopes = right[:, :1] * (np.float64([[1, 0, 0]]) - right)
    assert_close(slope, slopes)


# Sums of `x` and of all that follow, along the last axis.
SUMS_OF_THE_REST = {
    "all without those before": lambda x: (
        tf.reduce_sum(x, 1, keepdims=True) - tf.cumsum(x, 1, exclusive=True)
    ),
    "all without those up to it, and itself": lambda x: (
        tf.reduce_sum(x, -1, keepdims=True) - tf.cumsum(x, 1) + x
    ),
    "all without those up to it but itself": lambda x: (
        tf.reduce_sum(x, 1, keepdims=True) - (tf.cumsum(x, -1) - x)
    ),
    "itself and those behind it": lambda x: (
        x + tf.cumsum(x, 1, exclusive=True, reverse=True)
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*SUMS_OF_THE_REST))
def test_sums_of_the_rest_are_known_in_each_spelling(name, mode):
    def function(x):
        return x - tf.math.log(SUMS_OF_THE_REST[name](tf.exp(x)))

    x = np.float32([[90.0, -3.0, 100.0], [2.0, 1.0, 0.0], [0.0, -200.0, -210.0]])
    value, (slope,) = modes.value_and_gradients(
        stabilize(function), [tf.constant(x)], mode
    )
    wide = x.astype(np.float64)
    sums = np.flip(np.cumsum(np.flip(np.exp(wide), 1), 1), 1)
    assert_close(value, wide - np.log(sums))
    slopes = 1 - np.exp(wide) * np.cumsum(1 / sums, 1)
    assert_close(slope, slopes, scale=1.0)


USUAL = [
    ("Sum", lambda x, y: tf.einsum("i,i->", x, y)),
    ("RealDiv", lambda x, y: x * (1 / y)),
    ("Sub", lambda x, y: -(y - x)),
    ("AddV2", lambda x, y: x - (-1.0) * y),
    ("Cumsum", lambda x, y: tf.reduce_sum(x) - tf.cumsum(x)),
    ("Cumsum", lambda x, y: tf.cumsum(x, reverse=True) - x),
    ("Exp", lambda x, y: 1 / tf.exp(-x)),
    ("Sigmoid", lambda x, y: 1 / (1 + tf.exp(-x))),
    ("Sqrt", lambda x, y: 1 / tf.math.rsqrt(x)),
    ("Rsqrt", lambda x, y: 1 / tf.sqrt(x)),
    ("Reciprocal", lambda x, y: y**-1.0),
    ("Expm1", lambda x, y: tf.exp(x) - 1),
    ("Softplus", lambda x, y: tf.math.log1p(tf.exp(x))),
    ("SelectV2", lambda x, y: tf.where(tf.logical_not(x > 0), x, y)),
]
USUAL += [
    ("Abs", lambda x, y: tf.maximum(x, -x)),
    ("AddV2", lambda x, y: -(-x - y)),
    ("Log", lambda x, y: -tf.math.log(1 / x)),
    ("Mean", lambda x, y: tf.reduce_sum(x / 3)),
    ("Minimum", lambda x, y: -tf.maximum(-x, -y)),
    ("Mul", lambda x, y: x + x),
    ("Mul", lambda x, y: tf.einsum("i,i->i", x, y)),
    ("Mul", lambda x, y: tf.einsum("i,ij->ij", x, y[:, None])),
    ("Mul", lambda x, y: tf.einsum("aij,j->aij", x[None, None], y)),
    ("Mul", lambda x, y: -(x * -y)),
    ("Pow", lambda x, y: 1 / tf.pow(x, y)),
    ("Pow", lambda x, y: tf.exp(y * tf.math.log(1 + x * x))),
    ("RealDiv", lambda x, y: 1 / (y / x)),
    ("Rsqrt", lambda x, y: tf.sqrt(1 / x)),
    ("Square", lambda x, y: tf.abs(x) ** 2),
    ("Sum", lambda x, y: tf.reduce_sum(x[None], 1, keepdims=True)[:, 0]),
    ("Sum", lambda x, y: tf.einsum("ij,i->j", x[:, None], y)),
    ("Sum", lambda x, y: tf.einsum("j,aij->ai", y, x[None, None])),
    ("Tan", lambda x, y: tf.sin(x) / tf.cos(x)),
]
WRITTEN = {
    "a running sum of another": lambda x, y: tf.reduce_sum(x) - tf.cumsum(y),
    "what is left of an element": lambda x, y: x - tf.cumsum(x),
    "an element twice": lambda x, y: x + tf.cumsum(x),
    "an element that was left out": lambda x, y: tf.cumsum(x, exclusive=True) - x,
    "sums along two axes": lambda x, y: (
        tf.reduce_sum(x[None] * y[:, None], [0, 1], keepdims=True)
        - tf.cumsum(x[None] * y[:, None])
    ),
    "a quotient": lambda x, y: x / y,
    "a negative factor": lambda x, y: x * -y,
    "other halves": lambda x, y: tf.where(x < 0, -y, x),
    "the sign of another": lambda x, y: x * tf.sign(y),
    "a power of what may be negative": lambda x, y: tf.exp(y * tf.math.log(x)),
    "a sum over another axis": lambda x, y: tf.reduce_sum(tf.stack([x, y], 1), 0),
    "a product of two matrices": lambda x, y: tf.einsum(
        "ij,ki->jk", x[:, None], y[None]
    ),
    "a product that is transposed": lambda x, y: tf.einsum("ij,i->ji", x[:, None], y),
    "parts over another count": lambda x, y: tf.reduce_sum(x / 4),
    "a power of 3 to the": lambda x, y: 3.0**y,
    "2 over y": lambda x, y: x * (2 / y),
    "two reciprocals": lambda x, y: (1 / x) * (1 / y),
    "an exponential over 2": lambda x, y: 2 / tf.exp(-x),
    "a sum over another count": lambda x, y: tf.reduce_sum(x) / 5,
    "2 plus an exponential": lambda x, y: 1 / (2 + tf.exp(-x)),
    "a power of 3": lambda x, y: x**3.0,
    "some of the places": lambda x, y: x[0] + x[1],
    "a place twice": lambda x, y: x[0] + x[1] + x[1] + x[2],
    "places of two tensors": lambda x, y: x[0] + y[1] + x[2],
    "a long sum that is nested": lambda x, y: functools.reduce(
        lambda total, each: each + total, [x] * 50, y
    ),
    "a product with twos": lambda x, y: tf.matmul(x[None], 2 * tf.ones([3, 1])),
    "a matrix of ones": lambda x, y: tf.matmul(x[None], tf.ones([3, 2])),
    "a formula that alone has another axis": lambda x, y: tf.sin(x)[:, None] / y,
    "a sum in a wider dtype": lambda x, y: tf.cast(x + y, tf.float64),
    "a cast to another dtype and back": lambda x, y: tf.cast(
        tf.cast(x, tf.float16), tf.float32
    ),
    "another order": lambda x, y: tf.reverse(tf.stack([x, y])[0], [0]),
    "other parts": lambda x, y: tf.split(tf.concat([x, y], 0), [2, 4])[0],
    "ones of a larger shape": lambda x, y: x * (tf.ones([4, 3]) / y),
}


def _respelled(function):
    graph = (
        tf
        .function(function)
        .get_concrete_function(*2 * [tf.TensorSpec([3], tf.float32)])
        .graph
    )
    operations = live_operations(graph, {})[0]
    reader = Reader(graph, operations)
    return reader, respell(Reader(graph, operations), reader), graph.outputs[0]


@pytest.mark.parametrize(("usual", "function"), USUAL)
def test_an_operation_is_seen_in_its_usual_spelling(usual, function):
    reader, names, result = _respelled(function)
    seen = reader.source(result)
    assert seen.op.type == usual
    assert result.op.name in names
    # It is read, and never computed.
    assert seen.op not in reader.operations
    assert reader.source(reader.written(seen)) is seen


ALONE = {
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), SIGMOIDS),
    "tanh": (mpmath.tanh, TANGENTS),
}


@pytest.mark.parametrize(
    ("function", "name"),
    [(function, name) for function, (_, forms) in ALONE.items() for name in forms],
)
def test_a_function_by_hand_is_right_alone(function, name):
    exact, forms = ALONE[function]
    points = np.float32([-80.0, -1e-3, 1e-5, 0.5, 95.0])
    value, (slope,) = modes.value_and_gradients(
        stabilize(forms[name]), [tf.constant(points)], "graph"
    )
    with mpmath.workdps(60):
        at = [mpmath.mpf(float(each)) for each in points]
        assert_close(value, [float(exact(x)) for x in at])
        slopes = [float(mpmath.diff(exact, x, h=x / 2**60)) for x in at]
    assert_close(slope, slopes)


def test_one_of_several_outputs_is_no_operation_of_its_own():
    reader, _, result = _respelled(lambda x, y: tf.negative(-tf.unstack(x)[1]))
    assert reader.source(result).op.type == "Unpack"
    for op in reader.operations:
        assert len(reader.usual(op).outputs) == 1 or op.type == "Unpack"


@pytest.mark.parametrize("written", WRITTEN)
def test_others_are_seen_as_they_are(written):
    reader, _, result = _respelled(WRITTEN[written])
    seen = reader.source(result)
    assert reader.written(seen) is seen


def test_bits_stay_where_only_a_gradient_is_guarded():
    x = tf.random.stateless_uniform([1000], (1, 2), 0.1, 9.0)
    y = tf.random.stateless_uniform([1000], (3, 4), 0.1, 9.0)

    def function(x, y):
        return x * (1 / y) + -(y - x) * 3.0

    plain = tf.function(function)(x, y)
    np.testing.assert_array_equal(tf.function(stabilize(function))(x, y), plain)
