"""Functions with an infinite slope keep their values and get bounded slopes."""

import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import INF, NAN, assert_rounded
from tests.rewriting.emitting import (
    fired,
    in_modes,
    rewritten,
    second_gradients,
    silent_gradients,
)
from tests.rewriting.tables import RULES
from tests.support import modes

# The rule, the function, its arguments (at singular points first) and the slopes.
ROWS = {
    "sqrt": (tf.sqrt, [[0.0, 4.0]], [[0.0, 0.25]]),
    "rsqrt": (tf.math.rsqrt, [[0.0, 4.0]], [[0.0, -0.0625]]),
    "log": (tf.math.log, [[0.0, 2.0, -4.0]], [[0.0, 0.5, -0.25]]),
    "log1p": (tf.math.log1p, [[-1.0, 1.0, -3.0]], [[0.0, 0.5, -0.5]]),
    "exp": (tf.exp, [[1000.0, 0.0]], [[INF, 1.0]]),
    "expm1": (tf.math.expm1, [[1000.0, 0.0]], [[INF, 1.0]]),
    "reciprocal": (tf.math.reciprocal, [[0.0, 2.0]], [[0.0, -0.25]]),
    "division": (
        tf.divide,
        [[1.0, 1.0, 0.0], [0.0, 2.0, 0.0]],
        [[0.0, 0.5, 0.0], [0.0, -0.25, 0.0]],
    ),
    "divide-no-nan": (
        tf.math.divide_no_nan,
        [[1.0, 1.0], [0.0, 2.0]],
        [[0.0, 0.5], [0.0, -0.25]],
    ),
    "asin": (tf.asin, [[1.0, 0.0]], [[0.0, 1.0]]),
    "acos": (tf.acos, [[-1.0, 0.0]], [[0.0, -1.0]]),
    "acosh": (tf.acosh, [[1.0, 2.0]], [[0.0, 3**-0.5]]),
    "atanh": (tf.atanh, [[1.0, 0.5]], [[0.0, 4 / 3]]),
    "atan2": (tf.atan2, [[0.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]),
    "angle": (
        lambda x, y: tf.math.angle(tf.complex(x, y)),
        [[0.0, 1.0], [0.0, 0.0]],
        [[0.0, 0.0], [0.0, 1.0]],
    ),
    "xlogy": (tf.math.xlogy, [[0.0, 2.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 2.0]]),
    "xlog1py": (tf.math.xlog1py, [[0.0, 2.0], [-1.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]]),
    "xdivy": (tf.math.xdivy, [[0.0, 1.0], [0.0, 2.0]], [[0.0, 0.5], [0.0, -0.25]]),
    "pow": (lambda x: x**0.5, [[0.0, 4.0]], [[0.0, 0.25]]),
    "cumprod": (tf.math.cumprod, [[2.0, 0.0, 3.0]], [[1.0, 8.0, 0.0]]),
    "multiply-no-nan": (
        tf.math.multiply_no_nan,
        [[INF, 2.0], [0.0, 3.0]],
        [[0.0, 3.0], [INF, 2.0]],
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*ROWS))
def test_the_value_stays_and_the_slope_is_bounded(name, mode):
    function, args, slopes = ROWS[name]
    args = [tf.constant(arg) for arg in args]
    assert fired(RULES, function, *args) == [name]
    value, gradients = modes.value_and_gradients(rewritten(RULES, function), args, mode)
    # In no compiler's form: what the user's program says.
    assert_rounded(value, function(*args))
    for gradient, slope in zip(gradients, slopes, strict=True):
        assert_rounded(gradient, slope)


@pytest.mark.parametrize("name", ROWS)
def test_a_zero_incoming_gradient_gives_zero_gradients_of_two_orders(name):
    function, args, _ = ROWS[name]
    args = [tf.constant(arg) for arg in args]
    for gradient in silent_gradients(RULES, function, args):
        assert_rounded(gradient, 0.0)


def test_a_tensor_as_exponent_keeps_the_value_of_tensorflow(mode):
    x, y = tf.constant([0.0, 4.0, NAN, 1.0]), tf.constant([0.5, 0.5, 0.0, NAN])
    assert fired(RULES, tf.pow, x, y) == ["pow"]
    value, (in_x, in_y) = modes.value_and_gradients(
        rewritten(RULES, tf.pow), [x, y], mode
    )
    assert_rounded(value, [0.0, 2.0, 1.0, 1.0])
    assert_rounded(in_x[:2], [0.0, 0.25])
    assert_rounded(in_y[:2], [0.0, 2 * np.log(4)])


NEAR_MISSES = {
    "a root that a positive number is added under": lambda x: tf.sqrt(x * x + 1),
    "the batch normalisation of an epsilon": lambda x: tf.math.rsqrt(tf.abs(x) + 1e-3),
    "a logarithm away from 0": lambda x: tf.math.log(tf.nn.relu(x) + 0.5),
    "a logarithm of 1 and more": lambda x: tf.math.log1p(tf.nn.relu(x)),
    "a division by a number": lambda x: x / 3.0,
    "a division by what is positive": lambda x: x / (tf.exp(-tf.abs(x)) + 1.0),
    "a division by what is negative": lambda x: x / (-1.0 - tf.nn.relu(x)),
    "an exponential of what is negative": lambda x: tf.exp(-tf.abs(x)),
    "an angle away from 0 and pi": lambda x: tf.acos(0.5 * tf.sigmoid(x)),
    "a square": lambda x: x**2.0,
    "a cube": lambda x: tf.pow(x, 3.0),
    "a power of 0": lambda x: tf.pow(x, 0.0),
    "a root of integers": lambda x: tf.cast(
        tf.cast(x, tf.int32) // tf.constant(2), tf.float32
    ),
    "a root of complex numbers": lambda x: tf.math.real(
        tf.sqrt(tf.complex(x, tf.zeros_like(x)))
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_has_no_singular_point_is_left_alone(name):
    x = tf.constant([-2.0, 0.5, 3.0])
    found = fired(RULES, NEAR_MISSES[name], x)
    assert not set(found) - {"hypot"}, found


def test_half_precision_stays_half_precision():
    x = tf.constant([0.0, 4.0], tf.float16)
    value, (gradient,) = modes.value_and_gradients(
        rewritten(RULES, lambda x: tf.sqrt(x) + tf.math.log(x + 1)), [x], "graph"
    )
    assert value.dtype == gradient.dtype == tf.float16
    assert_rounded(gradient, [1.0, 0.25 + 0.2])


@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_the_second_derivative_is_that_of_the_function(mode):
    x = tf.constant([0.7, 2.0])

    def function(x):
        return tf.math.log(x) * tf.sqrt(x) / x

    wanted = modes.second_gradient(function, x, "eager")
    (got,) = second_gradients(RULES, function, [x], mode)
    assert_rounded(got, wanted)
