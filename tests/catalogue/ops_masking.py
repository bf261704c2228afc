"""Masks, selections and clipping after the fact."""

import numpy as np
import tensorflow as tf

from tests.catalogue.rows import formula
from tfsafe import ops

NAN = float("nan")
# On a CPU, TensorFlow's own gradients of the roots know a zero incoming gradient.
COMPILED = ["xla"]


def _surrogate(exp, product):
    # The clipped objective of a policy with the advantage `a`.
    def objective(difference, a):
        ratio = exp(difference)
        clipped = tf.clip_by_value(ratio, 0.8, 1.2)
        return tf.minimum(product(ratio, a), product(clipped, a))

    return objective


def _with_advantage(a, exp, product):
    objective = _surrogate(exp, product)
    return lambda difference: objective(difference, tf.constant(a))


ROWS = [
    formula(
        "O40",
        "tf.where(x > 0, tf.math.log(x), 0) at x = 0",
        "ops.where_apply",
        lambda x: tf.where(x > 0, tf.math.log(x), 0),
        lambda x: ops.where_apply(x > 0, tf.math.log, x, 0),
        [[0, 1]],
        [0, 0],
        [[0, 1]],
        is_by_hand=True,
    ),
    formula(
        "O41",
        "tf.where(x > 0, tf.sqrt(x), 0) at x = 0",
        "ops.sqrt",
        lambda x: tf.where(x > 0, tf.sqrt(x), 0),
        lambda x: tf.where(x > 0, ops.sqrt(x), 0),
        [[0, 4]],
        [0, 2],
        [[0, 0.25]],
        fails_in=COMPILED,
        is_by_hand=True,
    ),
    formula(
        "O42",
        "tf.where(y != 0, x / y, 0) at y = 0",
        "ops.divide",
        lambda x, y: tf.where(y != 0, x / y, 0),
        lambda x, y: tf.where(y != 0, ops.divide(x, y), 0),
        [1, [0, 2]],
        [0, 0.5],
        [0.5, [0, -0.25]],
        is_by_hand=True,
    ),
    formula(
        "O43",
        "mask * tf.sqrt(x) at x = 0 under the mask",
        "ops.sqrt",
        lambda x: tf.constant([0.0, 1.0]) * tf.sqrt(x),
        lambda x: tf.constant([0.0, 1.0]) * ops.sqrt(x),
        [[0, 4]],
        [0, 2],
        [[0, 0.25]],
        fails_in=COMPILED,
        is_by_hand=True,
    ),
    formula(
        "O46",
        "x / tf.norm(x) at x = 0, its NaN replaced by 0 afterwards",
        "ops.divide",
        lambda x: tf.where(tf.math.is_nan(x / tf.norm(x)), 0.0, x / tf.norm(x)),
        lambda x: ops.divide(x, ops.norm(x)),
        [[0, 0]],
        [0, 0],
        [[0, 0]],
        is_by_hand=True,
    ),
    formula(
        "O47",
        "tf.where(x > 0, tf.pow(x, 0.5), 0) at x = 0",
        "ops.pow",
        lambda x: tf.where(x > 0, tf.pow(x, 0.5), 0),
        lambda x: tf.where(x > 0, ops.pow(x, 0.5), 0),
        [[0, 4]],
        [0, 2],
        [[0, 0.25]],
        is_by_hand=True,
    ),
    formula(
        "O48",
        "tf.where(x > 0, tf.math.rsqrt(x), 0) at x = 0",
        "ops.rsqrt",
        lambda x: tf.where(x > 0, tf.math.rsqrt(x), 0),
        lambda x: tf.where(x > 0, ops.rsqrt(x), 0),
        [[0, 4]],
        [0, 0.5],
        [[0, -1 / 16]],
        fails_in=COMPILED,
        is_by_hand=True,
    ),
    formula(
        "O49",
        "tf.where(x < 10, tf.exp(x), x) at x = 100",
        "ops.where_apply",
        lambda x: tf.where(x < 10, tf.exp(x), x),
        lambda x: ops.where_apply(x < 10, tf.exp, x, x),
        [[1, 100]],
        [np.e, 100],
        [[np.e, 1]],
        is_by_hand=True,
    ),
    formula(
        "O52",
        "mask * x with a NaN under the mask",
        "ops.multiply_no_nan",
        lambda x: tf.constant([0.0, 1.0]) * x,
        lambda x: ops.multiply_no_nan(x, tf.constant([0.0, 1.0])),
        [[NAN, 1]],
        [0, 1],
        [[0, 1]],
    ),
    formula(
        "O142",
        "tf.minimum(r * a, tf.clip_by_value(r, 0.8, 1.2) * a), r = tf.exp(100)",
        "ops.exp",
        _with_advantage(1.0, tf.exp, tf.multiply),
        _with_advantage(1.0, ops.exp, ops.multiply_no_nan),
        [100],
        1.2,
        [0],
    ),
    formula(
        "O143",
        "the same with the advantage a = 0",
        "ops.multiply_no_nan",
        _with_advantage(0.0, tf.exp, tf.multiply),
        _with_advantage(0.0, ops.exp, ops.multiply_no_nan),
        [100],
        0,
        [0],
    ),
    formula(
        "O146",
        "tf.reduce_max of NaN and 1",
        "ops.reduce_max",
        tf.reduce_max,
        ops.reduce_max,
        [[NAN, 1]],
        NAN,
        [[1, 0]],
        fails_in=COMPILED,
    ),
]
