"""Distances of points on a hyperboloid, whose cosine is a difference near 1."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired
from tests.support import contrast, modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.rewriting.rules.table import all_rules

RNG = np.random.default_rng(7)
X = np.float32(RNG.normal(size=(10, 3)) * np.float32([[0.01], [1.0]] * 5))
# Neighbours at distances from 3e-5 to 1, in units of the length.
Y = np.float32(X * (1 + 10.0 ** -RNG.uniform(0, 4.5, size=(10, 3))))


def _first(x):
    return tf.sqrt(1 + tf.reduce_sum(x * x, -1))


def _lifted(x):
    return tf.concat([_first(x)[:, None], x], -1)


def _cosine(x, y):
    return _first(x) * _first(y) - tf.reduce_sum(x * y, -1)


def _product(x, y):
    return -_first(x) * _first(y) + tf.reduce_sum(x * y, -1)


def _of_lifted(x, y):
    both = _lifted(x) * _lifted(y)
    return tf.acosh(both[:, 0] - tf.reduce_sum(both[:, 1:], -1))


def _of_matrices(x, y):
    metric = tf.constant([-1.0, 1.0, 1.0, 1.0])
    whole = tf.matmul(_lifted(x) * metric, _lifted(y), transpose_b=True)
    return tf.acosh(tf.maximum(-tf.linalg.diag_part(whole), 1.0))


DISTANCES = {
    "difference": lambda x, y: tf.acosh(_cosine(x, y)),
    "negative product": lambda x, y: tf.acosh(-_product(x, y)),
    "maximum": lambda x, y: tf.acosh(tf.maximum(_cosine(x, y), 1.0)),
    "clipped": lambda x, y: tf.acosh(tf.clip_by_value(_cosine(x, y), 1.0, 1e5)),
    "concatenated": _of_lifted,
    "product of matrices": _of_matrices,
}
SQUARES = {
    "-2 - 2 * product": (lambda x, y: -2 - 2 * _product(x, y), 2),
    "cosine - 1": (lambda x, y: _cosine(x, y) - 1, 1),
    "1 + product": (lambda x, y: 1 + _product(x, y), -1),
}


def _truth(x, y, function):
    """Returns a function of the cosine less 1 of each row, and its slopes in x."""

    def of_row(*row):
        a, b = row[:3], row[3:]
        first, second = (1 + mpmath.fsum(v * v for v in each) for each in (a, b))
        inner = mpmath.fsum(u * v for u, v in zip(a, b, strict=True))
        return function(mpmath.sqrt(first * second) - inner - 1)

    with mpmath.workdps(60):
        rows = [tuple(mpmath.mpf(float(v)) for v in row) for row in np.hstack([x, y])]
        values = [of_row(*row) for row in rows]
        orders = [tuple(int(i == j) for j in range(6)) for i in range(3)]
        slopes = [[mpmath.diff(of_row, row, order) for order in orders] for row in rows]
    return np.array(values, float), np.array(slopes, float)


def _agrees(function, exact, mode):
    args = [tf.constant(X), tf.constant(Y)]
    values, slopes = _truth(X, Y, exact)
    got, (slope, _) = modes.value_and_gradients(function, args, mode)
    sizes = np.abs(slopes).max(-1, keepdims=True)
    return (np.abs(got - values) <= 2e-5 * np.abs(values)).all() and (
        np.abs(slope - slopes) <= 2e-5 * sizes
    ).all()


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_of_near_points_keep_their_digits(name, mode):
    def exact(excess):
        return mpmath.acosh(1 + excess)

    assert _agrees(stabilize(DISTANCES[name]), exact, mode)
    with contrast.without_grappler():
        assert not _agrees(DISTANCES[name], exact, "eager")


@pytest.mark.parametrize("name", SQUARES)
def test_squared_distances_of_near_points_keep_their_digits(name, mode):
    function, factor = SQUARES[name]
    assert "lorentz-product" in fired(all_rules(), function, X, Y)
    assert _agrees(stabilize(function), lambda excess: factor * excess, mode)
    with contrast.without_grappler():
        assert not _agrees(function, lambda excess: factor * excess, "eager")


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_equal_points_that_were_rounded_have_distance_0(size, mode):
    x = np.float32(size) * X
    first = np.sqrt(1 + (x.astype(float) ** 2).sum(-1, keepdims=True))
    lifted = np.concatenate([first, x], -1).astype(np.float32)

    def distance(u, v):
        return tf.acosh(u[:, 0] * v[:, 0] - tf.reduce_sum(u[:, 1:] * v[:, 1:], -1))

    args = [tf.constant(lifted)] * 2
    value, slopes = modes.value_and_gradients(stabilize(distance), args, mode)
    assert np.isfinite(value).all()
    assert all(np.isfinite(each).all() for each in slopes)
    below = np.sum(lifted[:, :1].astype(float) ** 2, -1) - np.sum(
        lifted[:, 1:].astype(float) ** 2, -1
    )
    assert (below < 1).any()
    assert not np.any(value[below <= 1])


def test_what_is_below_1_by_more_than_rounding_stays_nan(mode):
    u = tf.constant([[1.0, 0.5], [1.5, 0.5]])
    function = stabilize(lambda u: tf.acosh(tf.reduce_sum(u * u, -1) - 0.26))
    value = modes.value_and_gradients(function, [u], mode)[0]
    assert_close(value, [np.nan, np.arccosh(2.24)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: _first(x) * _first(y) + tf.reduce_sum(x * y, -1),
        lambda x, y: _first(x) * _first(x) - tf.reduce_sum(x * y, -1),
        lambda x, y: 2 * _first(x) * _first(y) - tf.reduce_sum(x * y, -1),
        lambda x, y: _first(x) * _first(y) - tf.reduce_sum(x + y, -1),
        lambda x, y: _first(x) / _first(y) - tf.reduce_sum(x * y, -1),
    ],
    ids=["sum", "other vectors", "twice", "no product", "quotient"],
)
def test_other_sums_are_no_lorentz_product(function):
    assert "lorentz-product" not in fired(all_rules(), function, X, Y)


def test_layers_before_the_distance_stay_in_float32():
    weights = tf.constant(RNG.normal(size=(3, 3)).astype(np.float32))
    stable = tf.function(
        stabilize(lambda x, y: tf.acosh(_cosine(x @ weights, y @ weights)))
    )
    graph = stable.get_concrete_function(X, Y).graph.as_graph_def()
    functions = [graph.node, *(each.node_def for each in graph.library.function)]
    kinds = {
        node.attr["T"].type
        for nodes in functions
        for node in nodes
        if node.op == "MatMul"
    }
    assert kinds == {tf.float32.as_datatype_enum}


# Of numbers in half precision: sums near 1, one that rounds below it, and a large one.
HALVES = {
    "sum of two": (
        lambda x, y: tf.acosh(x + y),
        [0.505, 0.51, 0.7, 0.5, 100.0],
        [0.5, 0.51, 0.8, 0.5, 300.0],
    ),
    "sum of products": (
        lambda x, y: tf.acosh(tf.reduce_sum(x * y, -1)),
        [[1.0, 0.1], [1.1, 0.3], [2.0, 0.1]],
        [[1.0, 0.1], [1.0, 0.3], [1.1, 0.1]],
    ),
    "quotient and a number": (
        lambda x, y: tf.acosh(tf.maximum(x / y + 0.0078125, 1.0)),
        [1.0, 3.0, 1.0, 2.0],
        [1.0, 2.0, 1.01, 2.0],
    ),
}


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda x: x.name)
@pytest.mark.parametrize("name", HALVES)
def test_of_half_precision_a_sum_is_rounded_once(name, dtype, mode):
    function, *numbers = HALVES[name]
    args = [tf.cast(tf.constant(each), dtype) for each in numbers]
    value, slopes = modes.value_and_gradients(stabilize(function), args, mode)
    wide = [tf.cast(each, tf.float64) for each in args]
    right, exact = modes.value_and_gradients(function, wide, "eager")
    right, *exact = (np.where(np.isfinite(each), each, 0.0) for each in (right, *exact))
    assert_close(value, right, 1)
    for slope, each in zip(slopes, exact, strict=True):
        assert_close(slope, each, 1, scale=1.0)


@pytest.mark.parametrize("name", HALVES)
def test_of_half_precision_typed_out_digits_are_lost(name):
    function, *numbers = HALVES[name]
    args = [tf.cast(tf.constant(each), tf.bfloat16) for each in numbers]
    right = function(*(tf.cast(each, tf.float64) for each in args))
    with contrast.without_grappler():
        value = tf.cast(function(*args), tf.float64)
    assert np.nanmax(np.abs(value - right)) > 0.05 * np.nanmin(np.abs(right[0]))
