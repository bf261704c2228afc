"""Exponentials that overflow or cancel, sums of them, and the inverse of `erf`."""

import functools

import keras
import mpmath
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import Row, formula
from tests.support import contrast, modes
from tfsafe import ops
from tfsafe._limits import LIMITS

INF = float("inf")
# XLA has a formula of its own.
NOT_XLA = ["eager", "graph"]


def _inverse_of_erf(dtype, function, mode):
    """Tells whether value and slope have all digits over the whole interval."""
    points = tf.cast([1e-30, 1e-6, 0.01, 0.3, 0.9, 0.996, 1 - 2.0**-24], dtype)
    # Normal numbers only: what is smaller is flushed to 0.
    least = 2 * LIMITS[dtype].tiny
    points = tf.boolean_mask(points, (points > least) & (points < 1))
    exact = [mpmath.erfinv(float(x)) for x in tf.cast(points, tf.float64)]
    slopes = [mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(y**2) for y in exact]
    got, (gradient,) = modes.value_and_gradients(function, [points], mode)
    return contrast.agrees(got, [float(y) for y in exact]) and contrast.agrees(
        gradient, [float(slope) for slope in slopes]
    )


def _swept(dtype, name):
    return Row(
        f"S-{name}-erfinv",
        f"tf.math.erfinv from 1e-30 to 1 in {dtype}",
        "ops.erfinv",
        functools.partial(_inverse_of_erf, dtype, tf.math.erfinv),
        functools.partial(_inverse_of_erf, dtype, ops.erfinv),
        modes=["eager", "xla"],
        fails_in=["eager"],
    )


ROWS = [
    formula(
        "O06",
        "tf.exp(x) - 1 for x = 1e-8",
        "ops.expm1",
        lambda x: tf.exp(x) - 1,
        ops.expm1,
        [1e-8],
        1e-8,
        [1],
        is_by_hand=True,
    ),
    formula(
        "O08",
        "tf.math.log(tf.exp(x) - 1), the inverse of softplus, for x = 100",
        "ops.log_expm1",
        lambda x: tf.math.log(tf.exp(x) - 1),
        ops.log_expm1,
        [100],
        100,
        [1],
        is_by_hand=True,
    ),
    formula(
        "O09",
        "tf.math.log(1 + tf.exp(x)) for x = 100",
        "ops.log_sigmoid",
        lambda x: tf.math.log(1 + tf.exp(x)),
        lambda x: -ops.log_sigmoid(-x),
        [100],
        100,
        [1],
        is_by_hand=True,
    ),
    formula(
        "O10",
        "tf.math.log(tf.exp(a) + tf.exp(b)) for a = b = 100",
        "ops.log_add_exp",
        lambda a, b: tf.math.log(tf.exp(a) + tf.exp(b)),
        ops.log_add_exp,
        [100, 100],
        100 + np.log(2),
        [0.5, 0.5],
        is_by_hand=True,
    ),
    formula(
        "O11",
        "the slopes of keras.ops.logaddexp(a, b) at a = b",
        "ops.log_add_exp",
        keras.ops.logaddexp,
        ops.log_add_exp,
        [1, 1],
        1 + np.log(2),
        [0.5, 0.5],
        is_by_hand=True,
    ),
    formula(
        "O13",
        "keras.ops.logaddexp(a, b) for a = b = -inf",
        "ops.log_add_exp",
        keras.ops.logaddexp,
        ops.log_add_exp,
        [-INF, -INF],
        -INF,
        [0, 0],
        is_by_hand=True,
    ),
    formula(
        "O14",
        "tf.math.log(tf.cosh(x)) for x = 100",
        "ops.log_cosh",
        lambda x: tf.math.log(tf.cosh(x)),
        ops.log_cosh,
        [100],
        100 - np.log(2),
        [1],
        is_by_hand=True,
    ),
    formula(
        "O15",
        "tf.math.log(tf.exp(a) - tf.exp(b)) for a = 100.5 and b = 100",
        "ops.log_sub_exp",
        lambda a, b: tf.math.log(tf.exp(a) - tf.exp(b)),
        ops.log_sub_exp,
        [100.5, 100],
        100.5 + np.log(-np.expm1(-0.5)),
        [-1 / np.expm1(-0.5), -1 / np.expm1(0.5)],
        is_by_hand=True,
    ),
    formula(
        "O86",
        "tf.math.cumulative_logsumexp(z) with a first entry of -inf",
        "ops.cumulative_logsumexp",
        lambda z: tf.math.cumulative_logsumexp(z)[2],
        lambda z: ops.cumulative_logsumexp(z)[2],
        [[-INF, 0, 1]],
        1 + np.log1p(np.exp(-1)),
        [[0, 1 / (1 + np.e), np.e / (1 + np.e)]],
    ),
    formula(
        "O130",
        "tf.math.erfinv(x) for x = 1e-6",
        "ops.erfinv",
        tf.math.erfinv,
        ops.erfinv,
        [1e-6],
        1e-6 * np.sqrt(np.pi) / 2,
        [np.sqrt(np.pi) / 2],
        fails_in=NOT_XLA,
    ),
    _swept("float32", "f32"),
    _swept("float16", "f16"),
    _swept("bfloat16", "bf16"),
]
