import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe import _gradients
from tfsafe.ops.kernels import zeros

NAN = float("nan")
INF = float("inf")


def _same(got, wanted):
    return np.array_equal(np.asarray(got, np.float64), wanted, equal_nan=True)


def test_chain_is_the_product_unless_nothing_comes_in(mode, dtype):
    upstream = tf.constant([2.0, 0.0, 0.0, 0.0, 3.0, NAN], dtype)
    slope = tf.constant([4.0, 5.0, NAN, INF, INF, 0.0], dtype)
    chained = modes.compile_for(mode, zeros.times_upstream)(upstream, slope)
    assert chained.dtype == dtype
    assert _same(chained, [8.0, 0.0, 0.0, 0.0, INF, NAN])


def test_product_is_0_where_either_factor_is(mode, dtype):
    x = tf.constant([2.0, 0.0, NAN, INF, 0.0, NAN], dtype)
    y = tf.constant([4.0, NAN, 0.0, 0.0, INF, 1.0], dtype)
    got = modes.compile_for(mode, zeros.times_where_nonzero)(x, y)
    assert got.dtype == dtype
    assert _same(got, [8.0, 0.0, 0.0, 0.0, 0.0, NAN])


@pytest.mark.parametrize("function", [zeros.times_upstream, zeros.times_where_nonzero])
class TestGradientsOfTheProducts:
    def test_they_are_the_other_factor(self, function, mode):
        x, y = tf.constant([2.0, 0.0]), tf.constant([4.0, 5.0])
        _, gradients = modes.value_and_gradients(function, [x, y], mode)
        assert _same(gradients, [[4.0, 5.0], [2.0, 0.0]])

    def test_they_have_the_shapes_of_the_factors(self, function, mode):
        x, y = tf.ones([3, 1]), tf.constant([[2.0, 4.0]])
        _, (in_x, in_y) = modes.value_and_gradients(function, [x, y], mode)
        assert _same(in_x, [[6.0]] * 3)
        assert _same(in_y, [[3.0, 3.0]])

    def test_they_are_0_where_nothing_comes_in_at_every_order(self, function, mode):
        slope = tf.constant([NAN, INF, -INF, 0.0, 1.0])
        upstream = tf.zeros_like(slope)
        with tf.GradientTape() as tape:
            tape.watch(slope)
            value = function(upstream, slope)
        assert _same(tape.gradient(value, slope), [0.0] * 5)
        ones = tf.ones_like(slope)
        _, gradients = modes.value_and_gradients(
            function, [ones, slope], mode, upstream
        )
        assert _same(gradients, np.zeros([2, 5]))


@pytest.mark.parametrize(
    ("slope", "upstream", "axis", "expected"),
    [
        ([[NAN, 1.0], [INF, 2.0]], [[0.0, 0.0], [0.0, 3.0]], [-1], [[0, 1], [INF, 2]]),
        ([[NAN, 1.0]], [[0.0, 0.0]], None, [[0.0, 1.0]]),
        ([[NAN, 1.0]], [[0.0, 1.0]], None, [[NAN, 1.0]]),
    ],
)
def test_silence_clears_the_rows_into_which_nothing_comes(
    slope, upstream, axis, expected, mode
):
    function = modes.compile_for(
        mode, lambda s, u: _gradients.zero_unused_rows(s, u, axis)
    )
    assert _same(function(tf.constant(slope), tf.constant(upstream)), expected)


@pytest.mark.parametrize(
    "shape", [[2, 3], [1, 3], [2, 1], [3], [1], [], [1, 1], [4, 2, 3]]
)
def test_unbroadcast_sums_over_the_axes_that_were_broadcast(shape, mode):
    cotangent = tf.ones([4, 2, 3])
    primal = tf.zeros(shape)
    function = modes.compile_for(mode, _gradients.unbroadcast)
    summed = function(cotangent, primal)
    assert _same(summed, np.full(shape, 24 / max(1, np.prod(shape))))


@pytest.mark.parametrize("shape", [None, [None, None], [None, 3]])
def test_unbroadcast_takes_shapes_that_are_not_known(shape):
    @tf.function(
        input_signature=[tf.TensorSpec(None), tf.TensorSpec(shape)], autograph=False
    )
    def unknown(cotangent, primal):
        return _gradients.unbroadcast(cotangent, primal)

    assert _same(unknown(tf.ones([2, 3]), tf.zeros([1, 3])), [[2.0, 2.0, 2.0]])
    assert _same(unknown(tf.ones([2, 3]), tf.zeros([2, 3])), np.ones([2, 3]))
