import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tfsafe.layers import LogSigmoid


def test_log_sigmoid_agrees_with_mpmath_in_both_tails(mode, dtype):
    layer = LogSigmoid(dtype=dtype.name)
    x = oracle.grid(dtype, 1e-2, 80.0, 10)
    x = tf.concat([-x, x], 0)
    value, (slope,) = modes.value_and_gradients(layer, [x], mode)
    # XLA:CPU's float64 log1p is up to 127 ulp off.
    budget = 130 if (dtype.name, mode) == ("float64", "xla") else 4
    truth = oracle.exact(lambda v: -mpmath.log1p(mpmath.exp(-v)), x)
    assert oracle.ulp_error(value, truth) <= budget
    truth = oracle.exact(lambda v: 1 / (1 + mpmath.exp(v)), x)
    assert oracle.ulp_error(slope, truth) <= budget


def test_mixed_precision_is_right_where_log_of_sigmoid_is_not(mode):
    layer = LogSigmoid(dtype="mixed_float16")
    x = tf.constant([-30000.0, -20.0, 16.0])
    value, (slope,) = modes.value_and_gradients(layer, [x], mode)
    assert value.dtype == tf.float16
    # 1.1e-7 is a subnormal number of float16, and may be flushed to 0.
    np.testing.assert_allclose(
        tf.cast(value, tf.float32), [-30000, -20, -1.125e-7], rtol=1e-3, atol=2e-7
    )
    np.testing.assert_allclose(slope, [1, 1, 0], atol=2e-7)
    assert np.isinf(tf.math.log(tf.sigmoid(tf.cast(x, tf.float16)))[1])


@pytest.mark.parametrize(
    ("x", "value", "slope"),
    [(np.inf, 0, 0), (-np.inf, -np.inf, 1), (np.nan, np.nan, np.nan)],
)
def test_log_sigmoid_at_the_edges(x, value, slope, mode):
    got, (gradient,) = modes.value_and_gradients(
        LogSigmoid(), [tf.constant([x], tf.float32)], mode
    )
    np.testing.assert_array_equal(got, [value])
    np.testing.assert_array_equal(gradient, [slope])


def test_integers_are_refused_with_the_cure():
    with pytest.raises(TypeError, match=r"`x` must have a floating dtype.*tf.cast"):
        LogSigmoid()(tf.constant([1, 2]))
