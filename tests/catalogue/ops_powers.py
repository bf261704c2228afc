"""Powers, angles and activations at singular points and in the tails."""

import functools

import keras
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import FINITE, Row, formula
from tests.support import contrast, modes
from tfsafe import ops

ON_CPU = ["eager", "graph"]


def _derivative(function):
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = function(x)
        return tape.gradient(value, x, unconnected_gradients="zero")

    return slope


def _rounded_above_1():
    # A vector whose normalised form has a square that rounds to more than 1.
    numbers = np.random.RandomState(1)
    for _ in range(500):
        u = numbers.randn(3).astype("float32")
        unit = u / tf.norm(u)
        if tf.reduce_sum(unit * unit) > 1:
            return u
    raise AssertionError("none of 500 vectors rounds to more than 1")


def _angle_to_itself(u):
    unit = u / tf.norm(u)
    return tf.acos(tf.reduce_sum(unit * unit))


def _hyperbolic(acosh):
    def distance(x):
        square = tf.reduce_sum((x - tf.stop_gradient(x)) ** 2)
        return acosh(1 + 2 * square / (1 - tf.reduce_sum(x * x)) ** 2)

    return distance


def _hypot(x, y):
    # The formula of `keras.ops.hypot`, which the oldest Keras lacks.
    largest, least = tf.maximum(tf.abs(x), tf.abs(y)), tf.minimum(tf.abs(x), tf.abs(y))
    return largest * tf.sqrt(1 + (least / largest) ** 2)


def _squareplus(x):
    # The formula of `keras.ops.squareplus`, which the oldest Keras lacks.
    return (x + tf.sqrt(x * x + 4)) / 2


def _similarity(ssim_multiscale, x):
    negative = tf.stop_gradient(1 - x)
    return ssim_multiscale(x, negative, 1.0, power_factors=(0.5, 0.5), filter_size=5)


def _standardized(image):
    mean, variance = tf.nn.moments(image, axes=[-3, -2, -1], keepdims=True)
    least = tf.math.rsqrt(tf.cast(tf.size(image), image.dtype))
    return (image - mean) / tf.maximum(ops.sqrt(variance), least)


def _below_half_precision(function):
    """Tells whether -4.12e-8 is rounded to the nearest float16, -2**-24."""

    def is_right(mode):
        x = tf.constant([-20.0], tf.float16)
        with contrast.without_grappler():
            value, (slope,) = modes.value_and_gradients(function, [x], mode)
        nearest = np.float64(-(2.0**-24))
        return float(value[0]) == nearest and float(slope[0]) == nearest

    return is_right


ROWS = [
    formula(
        "O60",
        "tf.pow(x, 0.0) at x = 0",
        "ops.pow",
        lambda x: tf.pow(x, 0.0),
        lambda x: ops.pow(x, 0.0),
        [[0]],
        [1],
        [[0]],
    ),
    formula(
        "O61",
        "second derivative of tf.pow(x, 1.0) at x = 0",
        "ops.pow",
        _derivative(lambda x: tf.pow(x, 1.0)),
        _derivative(lambda x: ops.pow(x, 1.0)),
        [[0]],
        [1],
        [[0]],
    ),
    formula(
        "O62",
        "third derivative of tf.pow(x, 2.0) at x = 0",
        "ops.pow",
        _derivative(_derivative(lambda x: tf.pow(x, 2.0))),
        _derivative(_derivative(lambda x: ops.pow(x, 2.0))),
        [[0]],
        [2],
        [[0]],
    ),
    formula(
        "O78",
        "keras.ops.hypot(3, 3)",
        "ops.hypot",
        _hypot,
        ops.hypot,
        [3, 3],
        3 * 2**0.5,
        [2**-0.5, 2**-0.5],
        is_by_hand=True,
    ),
    formula(
        "O120",
        "tf.acos of the cosine of a vector with itself, rounded above 1",
        "ops.angle_between",
        _angle_to_itself,
        lambda u: ops.angle_between(u, u),
        [_rounded_above_1()],
        0,
        [[0, 0, 0]],
    ),
    formula(
        "O121",
        "tf.acos of the cosine of a vector with itself, exactly 1",
        "ops.angle_between",
        _angle_to_itself,
        lambda u: ops.angle_between(u, u),
        [[1, 0, 0]],
        0,
        [[0, 0, 0]],
    ),
    formula(
        "O122",
        "tf.math.atan2(0, 0)",
        "ops.atan2",
        tf.math.atan2,
        ops.atan2,
        [0, 0],
        0,
        [0, 0],
    ),
    formula(
        "O123",
        "tf.where(r > 0, tf.math.atan2(y, x), 0) at the origin",
        "ops.atan2",
        lambda y, x: tf.where(x * x + y * y > 0, tf.math.atan2(y, x), 0),
        lambda y, x: tf.where(x * x + y * y > 0, ops.atan2(y, x), 0),
        [[0, 1], [0, 1]],
        [0, np.pi / 4],
        [[0, 0.5], [0, -0.5]],
    ),
    formula(
        "O124",
        "tf.acosh(1 + ...), the hyperbolic distance of equal points",
        "ops.acosh",
        _hyperbolic(tf.acosh),
        _hyperbolic(ops.acosh),
        [[0.1, 0.2]],
        0,
        [[0, 0]],
    ),
    formula(
        "O126",
        "tf.math.angle(0j)",
        "ops.angle",
        lambda a, b: tf.math.angle(tf.complex(a, b)),
        lambda a, b: ops.angle(tf.complex(a, b)),
        [0, 0],
        0,
        [0, 0],
    ),
    formula(
        "O127",
        "tf.sin(x) / x at x = 0",
        "ops.sinc",
        lambda x: tf.sin(x) / x,
        lambda x: ops.sinc(x / np.pi),
        [[0]],
        [1],
        [[0]],
    ),
    formula(
        "O131",
        "gradient of tf.tanh at x = 10",
        "ops.tanh",
        tf.tanh,
        ops.tanh,
        [10],
        1,
        [np.cosh(10.0) ** -2],
    ),
    formula(
        "O132",
        "gradient of tf.sigmoid at x = 18",
        "ops.sigmoid",
        tf.sigmoid,
        ops.sigmoid,
        [18],
        1,
        [np.exp(-18.0) / (1 + np.exp(-18.0)) ** 2],
    ),
    formula(
        "O133",
        "tf.nn.elu(-1e-8)",
        "ops.elu",
        tf.nn.elu,
        ops.elu,
        [-1e-8],
        -1e-8,
        [1],
        fails_in=ON_CPU,
    ),
    formula(
        "O172",
        "keras.ops.squareplus(300) in float16",
        "ops.squareplus",
        _squareplus,
        ops.squareplus,
        [300],
        300,
        [1],
        dtype="float16",
    ),
    formula(
        "O173",
        "keras.ops.squareplus(-1e4)",
        "ops.squareplus",
        _squareplus,
        ops.squareplus,
        [-1e4],
        1e-4,
        [1e-8],
    ),
    Row(
        "O174",
        "keras.activations.mish(-20) in float16",
        "ops.mish",
        _below_half_precision(keras.activations.mish),
        _below_half_precision(ops.mish),
    ),
    formula(
        "O190",
        "tf.image.ssim_multiscale of an image and its negative",
        "ops.ssim_multiscale",
        lambda x: _similarity(tf.image.ssim_multiscale, x),
        lambda x: _similarity(ops.ssim_multiscale, x),
        [np.random.RandomState(0).rand(1, 32, 32, 1)],
        [0],
        [FINITE],
        fails_in=ON_CPU,
    ),
    formula(
        "O192",
        "tf.image.per_image_standardization of a constant image",
        "ops.sqrt",
        tf.image.per_image_standardization,
        _standardized,
        [np.full([2, 2, 1], 7)],
        0,
        [FINITE],
        fails_in=["xla"],
    ),
]


def _points(dtype):
    # From the smallest normal numbers to where the exponentials underflow.
    low = {"float16": 1e-4, "bfloat16": 1e-30, "float32": 1e-30}[dtype]
    x = np.geomspace(low, 30.0, 61)
    return tf.cast(tf.constant(np.concatenate([-x, x])), dtype)


def _elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _elu_slope(x):
    return np.where(x > 0, 1.0, np.exp(np.minimum(x, 0)))


def _root(x):
    return np.hypot(x, 2.0)


def _softplus_like(x):
    return np.where(x > 0, (x + _root(x)) / 2, 2 / (_root(x) - np.minimum(x, 0)))


SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772
# For each: the usual form, ours, the value and the slope, in float64.
SWEPT = [
    (tf.tanh, ops.tanh, np.tanh, lambda x: np.cosh(x) ** -2),
    (
        tf.sigmoid,
        ops.sigmoid,
        lambda x: 1 / (1 + np.exp(-x)),
        lambda x: 0.25 * np.cosh(x / 2) ** -2,
    ),
    (tf.nn.elu, ops.elu, _elu, _elu_slope),
    (
        tf.nn.selu,
        ops.selu,
        lambda x: SCALE * np.where(x > 0, x, ALPHA * _elu(x)),
        lambda x: SCALE * np.where(x > 0, 1.0, ALPHA * _elu_slope(x)),
    ),
    (
        _squareplus,
        ops.squareplus,
        _softplus_like,
        lambda x: _softplus_like(x) / _root(x),
    ),
]


def _sweep(dtype, tolerance, form, mode):
    """Tells whether all functions are right wherever the result is a normal number."""
    tiny = {"float16": 6.2e-5, "bfloat16": 1.2e-38, "float32": 1.2e-38}[dtype]
    points = _points(dtype)
    exact = np.asarray(tf.cast(points, tf.float64))
    for usual, ours, value, slope in SWEPT:
        function = ours if form == "ours" else usual
        with contrast.without_grappler():
            got, (gradient,) = modes.value_and_gradients(function, [points], mode)
        for result, truth in ((got, value(exact)), (gradient, slope(exact))):
            numbers = np.asarray(tf.cast(result, tf.float64))
            error = np.abs(numbers - truth) / np.abs(truth)
            if not np.all(error[np.abs(truth) > tiny] <= tolerance):
                return False
    return True


def _swept(dtype, tolerance):
    return Row(
        {"float32": "S-f32", "float16": "S-f16", "bfloat16": "S-bf16"}[dtype],
        f"tanh, sigmoid, elu, selu and squareplus over their range in {dtype}",
        "ops.tanh",
        functools.partial(_sweep, dtype, tolerance, "usual"),
        functools.partial(_sweep, dtype, tolerance, "ours"),
        modes=["eager", "xla"],
    )


# A few ulps; the usual forms are wrong by all of the number.
ROWS += [
    _swept("float32", 1e-6),
    _swept("float16", 1e-3),
    _swept("bfloat16", 8e-3),
]
