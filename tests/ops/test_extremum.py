import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import assert_rounded, documented
from tests.ops.elementwise import INF, NAN, each_place_and_xla_float64, edges
from tests.support import modes
from tfsafe import ops

EDGES = {
    "x = 1, y = 1": (1.0, 1.0, 1.0, 0.5, 0.5),
    "x = NaN, y = 1": (NAN, 1.0, NAN, 1.0, 0.0),
    "x = 1, y = NaN": (1.0, NAN, NAN, 0.0, 1.0),
}


@pytest.mark.parametrize("op", [ops.maximum, ops.minimum])
@each_place_and_xla_float64
def test_the_edges_of_the_two_are_those_of_their_docstrings(op, mode, dtype):
    assert list(EDGES) == documented(op)
    got, wanted, silent = edges(op, list(EDGES.values()), dtype, mode, 2)
    assert_rounded(got, wanted)
    for each in silent:
        assert_rounded(each, 0.0)


@pytest.mark.parametrize(
    ("op", "value", "in_x", "in_y"),
    [
        (ops.maximum, [[3.0, 2.0], [5.0, 5.0]], [[0.5], [2.0]], [1.0, 0.5]),
        (ops.minimum, [[2.0, 2.0], [3.0, 2.0]], [[1.5], [0.0]], [1.0, 1.5]),
    ],
)
def test_the_larger_or_smaller_number_has_the_gradient(op, value, in_x, in_y, mode):
    args = [tf.constant([[2.0], [5.0]]), tf.constant([3.0, 2.0])]
    got, slopes = modes.value_and_gradients(op, args, mode)
    assert_rounded(got, value)
    assert_rounded(slopes[0], in_x)
    assert_rounded(slopes[1], in_y)


REDUCED = {
    "ties": ([1.0, 3.0, 3.0, 2.0], 3.0, [0.0, 0.5, 0.5, 0.0]),
    "inf": ([1.0, INF, INF, -INF], INF, [0.0, 0.5, 0.5, 0.0]),
    "NaN": ([1.0, NAN, INF, NAN], NAN, [0.0, 0.5, 0.0, 0.5]),
    "no entry": ([], -INF, []),
}


@pytest.mark.parametrize("row", REDUCED)
@each_place_and_xla_float64
def test_the_edges_of_the_reductions_are_those_of_their_docstrings(row, mode, dtype):
    assert list(REDUCED) == documented(ops.reduce_max)
    assert [name.lstrip("-") for name in documented(ops.reduce_min)] == list(REDUCED)
    x, value, slope = REDUCED[row]
    x = tf.constant(x, dtype)
    got, (gradient,) = modes.value_and_gradients(ops.reduce_max, [x], mode)
    assert got.dtype == gradient.dtype == dtype
    assert_rounded(got, value)
    assert_rounded(gradient, slope)
    got, (gradient,) = modes.value_and_gradients(ops.reduce_min, [-x], mode)
    assert_rounded(got, -value)
    assert_rounded(gradient, slope)


def test_a_zero_incoming_gradient_gives_zero_gradients(mode):
    x = tf.constant([[1.0, NAN], [INF, INF], [2.0, 2.0]])
    for silent in modes.silent_gradients(
        lambda x: ops.reduce_max(x, axis=1), [x], mode
    ):
        assert_rounded(silent, 0.0)


@pytest.mark.parametrize("op", ["reduce_max", "reduce_min"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_the_reductions_have_tensorflows_axes_and_shapes(op, axis, keepdims):
    x = tf.constant(np.arange(24.0).reshape(2, 3, 4) % 7)
    got = getattr(ops, op)(x, axis, keepdims)
    wanted = getattr(tf, op)(x, axis, keepdims)
    assert got.shape == wanted.shape
    assert_rounded(got, wanted)


def test_ties_are_counted_beyond_the_precision_of_bfloat16(mode):
    x = tf.ones([1000], tf.bfloat16)
    _, (slope,) = modes.value_and_gradients(ops.reduce_max, [x], mode)
    assert_rounded(slope, 0.001)
