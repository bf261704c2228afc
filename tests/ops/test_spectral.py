"""Functions of eigenvalues and of singular values, equal and neighbouring ones."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import assert_rounded
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import ops
from tfsafe.ops.linalg import divided_differences

_TURN = np.linalg.qr(np.random.RandomState(0).randn(4, 4))[0]
_OTHER = np.linalg.qr(np.random.RandomState(1).randn(4, 4))[0]
VALUES = {
    "distinct": [0.5, 1.0, 2.0, 3.0],
    "two equal": [0.5, 2.0, 2.0, 3.0],
    "all equal": [2.0, 2.0, 2.0, 2.0],
    "neighbours": [2.0, 2.0 + 1e-9, 2.0 + 1e-4, 2.05],
    "zeros": [0.0, 0.0, 1.0, 1.0],
}
DECOMPOSED = "sums over eigenvectors, which have the digits of the largest values"
equal_or_not = pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)


def _weights(x):
    weights = tf.cos(tf.cast(tf.range(tf.size(x)), x.dtype))
    return tf.reshape(weights, tf.shape(x)) + 0.1


def _slope(function):
    def slope(x):
        weights = _weights(function(x))
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = function(x)
        return tape.gradient(value, x, weights)

    return slope


def _polynomial(x):
    # The same as a function of a matrix and of its eigenvalues.
    return x @ x @ x - 2 * x @ x


@equal_or_not
def test_a_polynomial_of_the_matrix_has_the_same_derivatives(values):
    x = tf.constant(_TURN @ np.diag(values) @ _TURN.T)

    def naive(x):
        return _polynomial((x + tf.transpose(x)) / 2)

    def ours(x):
        return ops.spectral_function(x, lambda w: w**3 - 2 * w**2)

    assert_close(ours(x), naive(x), 26, why=DECOMPOSED, scale=1.0)
    assert_close(_slope(ours)(x), _slope(naive)(x), 66, why=DECOMPOSED, scale=1.0)
    second, truth = _slope(_slope(ours))(x), _slope(_slope(naive))(x)
    assert_close(second, truth, 50, why=DECOMPOSED, scale=1.0)


@equal_or_not
@pytest.mark.parametrize("columns", [4, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_an_odd_polynomial_has_the_same_derivatives(values, columns, transposed):
    x = (_TURN[:, :columns] * values[:columns]) @ _OTHER[:columns, :columns]
    if columns == 4:
        x = _TURN @ np.diag(values) @ _OTHER
    x = tf.constant(x.T if transposed else x)

    def naive(x):
        return tf.matmul(x, x, transpose_b=True) @ x - 2 * x

    def ours(x):
        return ops.singular_value_function(x, lambda s: s**3 - 2 * s)

    assert_close(ours(x), naive(x), 74, why=DECOMPOSED, scale=1.0)
    assert_close(_slope(ours)(x), _slope(naive)(x), 68, why=DECOMPOSED, scale=1.0)
    second, truth = _slope(_slope(ours))(x), _slope(_slope(naive))(x)
    assert_close(second, truth, 125, why=DECOMPOSED, scale=1.0)


STEEP = "series for 50 times a distance, just below where the difference is taken"


@pytest.mark.parametrize("gap", [0, 1e-12, 1e-6, 1e-3, 0.05, 0.2, 3.0])
@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (tf.math.log, mpmath.log),
        (tf.sqrt, mpmath.sqrt),
        (tf.math.reciprocal, lambda x: 1 / x),
        (lambda x: tf.exp(50 * x), lambda x: mpmath.exp(50 * x)),
        (lambda x: tf.sin(30 * x), lambda x: mpmath.sin(30 * x)),
    ],
)
def test_divided_differences_agree_with_mpmath(function, exact, gap):
    points = [1.0, 1.0 + gap, 1.0 + 2 * gap]
    w = tf.constant([points], tf.float64)
    table = divided_differences.first(function, w)
    curved = divided_differences.second(function, w, table)
    with mpmath.workdps(60):
        a, b, c = (mpmath.mpf(float(point)) for point in w[0])
        if gap:
            first = (exact(b) - exact(a)) / (b - a)
            second = ((exact(c) - exact(b)) / (c - b) - first) / (c - a)
        else:
            first, second = mpmath.diff(exact, a), mpmath.diff(exact, a, 2) / 2
    assert_close(table[0, 0, 1], float(first), 700, why=STEEP)
    assert_close(curved[0, 2, 0, 1], float(second), 16e3, why=STEEP)


def test_a_slope_that_is_infinite_counts_as_0(mode):
    x = tf.constant([[0.0, 0.0], [0.0, 1.0]])

    def root(x):
        return ops.spectral_function(x, tf.sqrt)

    value, (slope,) = modes.value_and_gradients(root, [x], mode)
    assert_rounded(value, [[0, 0], [0, 1]])
    assert_rounded(slope, [[0, 1], [1, 0.5]])


@pytest.mark.parametrize(
    "op",
    [ops.spectral_function, ops.singular_value_function],
    ids=lambda op: op.__name__,
)
class TestBoth:
    def test_what_the_function_uses_has_a_gradient(self, op, mode):
        power = tf.Variable(2.0)
        x = tf.linalg.diag([1.0, 2.0, 2.0])

        def run(x):
            with tf.GradientTape() as outer:
                with tf.GradientTape(persistent=True) as inner:
                    inner.watch(x)
                    value = op(x, lambda w: w**power)
                slope = inner.gradient(value, x)
                penalty = tf.linalg.trace(slope)
            return inner.gradient(value, power), outer.gradient(penalty, power)

        first, second = modes.compile_for(mode, run)(x)
        # Of 2**p twice, and of p * (1 + 2 * 2**(p - 1)).
        assert_rounded(first, 8 * np.log(2))
        assert_rounded(second, 1 + 4 + 8 * np.log(2))

    def test_the_third_derivative_is_refused(self, op):
        def slope(x):
            return _slope(lambda x: op(x, tf.exp))(x)

        message = rf"`tfsafe.ops.{op.__name__}` has no third derivative"
        with pytest.raises(LookupError, match=message):
            _slope(_slope(slope))(tf.eye(2))

    def test_what_is_no_function_is_refused(self, op):
        with pytest.raises(TypeError, match=r"`function` must be .*Received: funct.*2"):
            op(tf.eye(2), 2)

    def test_a_function_that_changes_the_shape_is_refused(self, op):
        with pytest.raises(
            ValueError, match=r"`function` must act on each .*shape=\(\)"
        ):
            op(tf.eye(2), tf.reduce_sum)

    def test_a_constant_has_no_gradient(self, op):
        x = tf.linalg.diag([1.0, 2.0])
        _, (slope,) = modes.value_and_gradients(
            lambda x: op(x, tf.zeros_like), [x], "graph"
        )
        assert_rounded(slope, 0.0)
