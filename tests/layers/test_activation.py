import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe.layers import LogSigmoid, LogSoftmax, Masking, Softmax


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
    assert_close(value, [-30000, -20, -1.125e-7], 0.5)
    assert_close(slope, [1, 1, 1.125e-7], 0.5, dtype="float16")
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


def test_integers_are_refused_with_a_suggestion():
    with pytest.raises(TypeError, match=r"`x` must have a floating dtype.*tf.cast"):
        LogSigmoid()(tf.constant([1, 2]))


@pytest.mark.parametrize("layer", [Softmax, LogSoftmax])
def test_a_mask_rules_classes_out(layer, mode, dtype):
    x = tf.constant([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]], dtype)
    mask = tf.constant([[True, True, False], [False, False, False]])
    made = layer(dtype=dtype.name)
    value, (slope,) = modes.value_and_gradients(
        lambda x: made(x, mask=mask)[:, :2], [x], mode, [[0, 1], [0, 1]]
    )
    p = 1 / (1 + np.exp(1))
    truth = [[p, 1 - p], [0, 0]]
    slopes = [[-p * (1 - p), p * (1 - p), 0], [0, 0, 0]]
    if layer is LogSoftmax:
        truth = [[np.log(p), np.log(1 - p)], [-np.inf, -np.inf]]
        slopes = [[-p, p, 0], [0, 0, 0]]
    assert_close(value, truth, 1)
    assert_close(slope, slopes, 1)
    assert value.dtype == dtype


@pytest.mark.parametrize("layer", [Softmax, LogSoftmax])
def test_a_row_of_minus_infinity_has_no_gradient(layer, mode):
    x = tf.constant([[-np.inf, -np.inf], [0.0, -np.inf]])
    value, (slope,) = modes.value_and_gradients(layer(), [x], mode)
    nothing, all_of_it = (0, 1) if layer is Softmax else (-np.inf, 0)
    np.testing.assert_array_equal(value, [[nothing, nothing], [all_of_it, nothing]])
    assert np.isfinite(slope).all()
    assert not np.any(slope[0])


@pytest.mark.parametrize("axis", [-1, 1, (1, 2), [1]])
@pytest.mark.parametrize("layer", [Softmax, LogSoftmax])
def test_any_axis_may_be_normalised(layer, axis):
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    made = layer(axis=axis, dtype="float64")
    exponentials = np.exp(x)
    along = tuple(axis) if isinstance(axis, list) else axis
    probs = exponentials / exponentials.sum(along, keepdims=True)
    expected = probs if layer is Softmax else np.log(probs)
    assert_close(made(tf.constant(x)), expected)
    again = layer.from_config(made.get_config())
    assert again.get_config() == made.get_config()


@pytest.mark.parametrize("steps", [3, 2])
def test_the_mask_of_steps_rules_out_whole_rows(steps):
    # With 2 steps the mask of shape (2, 2) would broadcast over the classes as well.
    x = np.ones((2, steps, 2), "float32")
    x[0, 1] = 9
    expected = np.full((2, steps, 2), 0.5)
    expected[0, 1] = 0
    np.testing.assert_array_equal(Softmax()(Masking(9.0)(tf.constant(x))), expected)


def test_an_explicit_mask_broadcasts_from_the_last_axis():
    x = tf.ones([2, 2, 2])
    mask = tf.constant([[True, True], [True, False]])
    expected = [[[0.5, 0.5], [1, 0]]] * 2
    np.testing.assert_array_equal(Softmax()(x, mask=mask), expected)
    of_steps = Softmax()(tf.ones([2, 3, 4]), mask=np.ones([2, 3], bool))
    np.testing.assert_array_equal(of_steps, np.full((2, 3, 4), 0.25))


def test_a_mask_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="`mask` must have a shape that broadcasts"):
        Softmax()(tf.ones([2, 3]), mask=tf.ones([2, 2], tf.bool))
    with pytest.raises(TypeError, match="`axis` must be an integer"):
        LogSoftmax(axis="last")
