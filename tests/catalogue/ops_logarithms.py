"""Logarithms of what underflows, overflows or rounds, and their weights."""

import mpmath
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import FINITE, formula
from tfsafe import ops

INF = float("inf")


def _density_through_atanh(x):
    action = tf.tanh(x)
    return -0.5 * tf.atanh(action) ** 2 - tf.math.log(1 - action**2)


def _mixed(function):
    """Returns the slope in y as a function, to be differentiated in x."""

    def in_y(x, y):
        with tf.GradientTape() as tape:
            tape.watch(y)
            value = function(x, y)
        return tape.gradient(value, y)

    return in_y


def _softplus(x):
    return float(np.log1p(np.exp(-abs(x))) + max(x, 0))


ROWS = [
    formula(
        "O01",
        "tf.math.log(tf.nn.softmax(z)) for a logit 200 below the largest",
        "ops.log_softmax",
        lambda z: tf.math.log(tf.nn.softmax(z))[1],
        lambda z: ops.log_softmax(z)[1],
        [[0, -200]],
        -200,
        [[-1, 1]],
        is_by_hand=True,
    ),
    formula(
        "O02",
        "tf.math.log(tf.sigmoid(z)) for z = -200",
        "ops.log_sigmoid",
        lambda z: tf.math.log(tf.sigmoid(z)),
        ops.log_sigmoid,
        [-200],
        -200,
        [1],
        is_by_hand=True,
    ),
    formula(
        "O03",
        "tf.math.log(1 - tf.sigmoid(z)) for z = 20",
        "ops.log_sigmoid",
        lambda z: tf.math.log(1 - tf.sigmoid(z)),
        lambda z: ops.log_sigmoid(-z),
        [20],
        -_softplus(20),
        [-1],
        is_by_hand=True,
    ),
    formula(
        "O04",
        "tf.math.log(p / (1 - p)) with p = tf.sigmoid(z) for z = 20",
        "ops.log_sigmoid",
        lambda z: tf.math.log(tf.sigmoid(z) / (1 - tf.sigmoid(z))),
        lambda z: ops.log_sigmoid(z) - ops.log_sigmoid(-z),
        [20],
        20,
        [1],
        is_by_hand=True,
    ),
    formula(
        "O05",
        "tf.math.log(1 + x) for x = 1e-8",
        "ops.log1p",
        lambda x: tf.math.log(1 + x),
        ops.log1p,
        [1e-8],
        1e-8,
        [1],
        is_by_hand=True,
    ),
    formula(
        "O07",
        "tf.math.log(1 - tf.exp(x)) for x = -1e-10",
        "ops.log1mexp",
        lambda x: tf.math.log(1 - tf.exp(x)),
        ops.log1mexp,
        [-1e-10],
        np.log(1e-10),
        [-1e10],
        is_by_hand=True,
    ),
    formula(
        "O17",
        "tf.math.log(tf.math.erfc(x)), the tail of the normal distribution, for x = "
        "10.5",
        "ops.log_erfc",
        lambda x: tf.math.log(tf.math.erfc(x)),
        ops.log_erfc,
        [10.5],
        float(mpmath.log(mpmath.erfc(10.5))),
        [
            float(-2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(10.5**2)))
            / float(mpmath.erfc(10.5))
        ],
        is_by_hand=True,
    ),
    formula(
        "O18",
        "tf.math.lgamma(x + y) - tf.math.lgamma(x) for x = 1e8 and y = 3",
        "ops.log_pochhammer",
        lambda x, y: tf.math.lgamma(x + y) - tf.math.lgamma(x),
        ops.log_pochhammer,
        [1e8, 3],
        np.log(1e8) + np.log(1e8 + 1) + np.log(1e8 + 2),
        [3e-8, np.log(1e8)],
        is_by_hand=True,
    ),
    formula(
        "O20",
        "y * tf.math.log(p) for y = 0 and p = 0",
        "ops.xlogy",
        lambda y, p: y * tf.math.log(p),
        ops.xlogy,
        [0, 0],
        0,
        [0, 0],
        is_by_hand=True,
    ),
    formula(
        "O21",
        "-tf.reduce_sum(p * tf.math.log(p)) for a probability that underflowed",
        "ops.entropy",
        lambda z: -tf.reduce_sum(tf.nn.softmax(z) * tf.math.log(tf.nn.softmax(z))),
        lambda z: ops.entropy(tf.nn.softmax(z)),
        [[0, -200]],
        0,
        [[0, 0]],
        is_by_hand=True,
    ),
    formula(
        "O22",
        "-tf.reduce_sum(tf.nn.softmax(z) * tf.nn.log_softmax(z)) with a logit of -inf",
        "ops.entropy",
        lambda z: -tf.reduce_sum(tf.nn.softmax(z) * tf.nn.log_softmax(z)),
        lambda z: ops.entropy(z, from_logits=True),
        [[0, 1, -INF]],
        _softplus(1) - 1 / (1 + np.exp(-1)),
        [[0.25 / np.cosh(0.5) ** 2, -0.25 / np.cosh(0.5) ** 2, 0]],
        is_by_hand=True,
    ),
    formula(
        "O23",
        "the slope of tf.math.xlogy(x, y) in x at x = 0",
        "ops.xlogy",
        tf.math.xlogy,
        ops.xlogy,
        [0, 0.5],
        0,
        [np.log(0.5), 0],
    ),
    formula(
        "O24",
        "the slope of tf.math.xlog1py(x, y) in x at x = 0",
        "ops.xlog1py",
        tf.math.xlog1py,
        ops.xlog1py,
        [0, 0.5],
        0,
        [np.log(1.5), 0],
    ),
    formula(
        "O25",
        "the slope of tf.math.xdivy(x, y) in x at x = 0",
        "ops.xdivy",
        tf.math.xdivy,
        ops.xdivy,
        [0, 2],
        0,
        [0.5, 0],
    ),
    formula(
        "O27",
        "the mixed second derivative of tf.math.xlogy(x, y) at x = 0",
        "ops.xlogy",
        _mixed(tf.math.xlogy),
        _mixed(ops.xlogy),
        [0, 0.5],
        0,
        [2, FINITE],
    ),
    formula(
        "O30",
        "tf.math.multiply_no_nan(tf.math.log(p), mask) for p = 0 under a mask of 0",
        "ops.xlogy",
        lambda p, mask: tf.math.multiply_no_nan(tf.math.log(p), mask),
        lambda p, mask: ops.xlogy(mask, p),
        [0, 0],
        0,
        [0, 0],
    ),
    formula(
        "O44",
        "mask * tf.math.log(x) for x = 0 under a mask of 0",
        "ops.xlogy",
        lambda x: tf.constant([0.0, 1.0]) * tf.math.log(x),
        lambda x: ops.xlogy(tf.constant([0.0, 1.0]), x),
        [[0, 1]],
        [0, 0],
        [[0, 1]],
        is_by_hand=True,
    ),
    formula(
        "O45",
        "tf.boolean_mask(tf.math.log(x), x > 0)",
        "ops.log",
        lambda x: tf.reduce_sum(tf.boolean_mask(tf.math.log(x), x > 0)),
        lambda x: tf.reduce_sum(tf.boolean_mask(ops.log(x), x > 0)),
        [[0, 1]],
        0,
        [[0, 1]],
        is_by_hand=True,
    ),
    formula(
        "O128",
        "tf.atanh(tf.tanh(x)) in the density of a squashed normal, for x = 10",
        "ops.log_cosh",
        _density_through_atanh,
        lambda x: -0.5 * x**2 + 2 * ops.log_cosh(x),
        [10],
        -50 + 2 * float(mpmath.log(mpmath.cosh(10))),
        [-10 + 2 * np.tanh(10.0)],
    ),
    formula(
        "O129",
        "tf.math.log(1 - tf.tanh(x)**2) for x = 10",
        "ops.log_cosh",
        lambda x: tf.math.log(1 - tf.tanh(x) ** 2),
        lambda x: -2 * ops.log_cosh(x),
        [10],
        -2 * float(mpmath.log(mpmath.cosh(10))),
        [-2 * np.tanh(10.0)],
    ),
    formula(
        "O140",
        "-tf.math.log(tf.clip_by_value(tf.sigmoid(z), 1e-7, 1 - 1e-7)) for z = -20",
        "ops.log_sigmoid",
        lambda z: -tf.math.log(tf.clip_by_value(tf.sigmoid(z), 1e-7, 1 - 1e-7)),
        lambda z: -ops.log_sigmoid(z),
        [-20],
        _softplus(20),
        [-1],
        is_by_hand=True,
    ),
    formula(
        "O141",
        "-tf.math.log(tf.sigmoid(z) + 1e-7) for z = -25",
        "ops.log_sigmoid",
        lambda z: -tf.math.log(tf.sigmoid(z) + 1e-7),
        lambda z: -ops.log_sigmoid(z),
        [-25],
        _softplus(25),
        [-1],
        is_by_hand=True,
    ),
]
