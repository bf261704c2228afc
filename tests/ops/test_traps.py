"""Known traps of TensorFlow: the usual form fails at a point where ours holds.

The identifiers are those of the catalogue of measured traps.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import contrast, modes
from tfsafe import ops

ALL = modes.MODES
INF = float("inf")
NAN = float("nan")
HALF = np.float16


def _trap(name, usual, ours, args, value, gradients, fails_in=ALL, dtype=np.float32):
    args = [np.asarray(arg, dtype) for arg in args]
    return pytest.param(usual, ours, args, value, gradients, fails_in, id=name)


def _saturated(x):
    # The gradient of a network whose units are saturated, as in a gradient penalty.
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(x))
    return tape.gradient(y, x)


TRAPS = [
    _trap(
        "O01-log-of-softmax",
        lambda z: tf.math.log(tf.nn.softmax(z))[1],
        lambda z: ops.log_softmax(z)[1],
        [[0, -200]],
        -200,
        [[-1, 1]],
    ),
    _trap(
        "O02-log-of-sigmoid",
        lambda z: tf.math.log(tf.sigmoid(z)),
        ops.log_sigmoid,
        [-200],
        -200,
        [1],
    ),
    _trap(
        "O20-y-times-log-p",
        lambda y, p: y * tf.math.log(p),
        ops.xlogy,
        [0, 0],
        0,
        [0, 0],
    ),
    _trap(
        "O23-slope-of-xlogy-at-0",
        tf.math.xlogy,
        ops.xlogy,
        [0, 0.5],
        0,
        [np.log(0.5), 0],
    ),
    _trap(
        "O40-where-around-log",
        lambda x: tf.where(x > 0, tf.math.log(x), 0),
        lambda x: tf.where(x > 0, ops.log(x), 0),
        [[0, 1]],
        [0, 0],
        [[0, 1]],
    ),
    _trap(
        "O41-where-around-sqrt",
        lambda x: tf.where(x > 0, tf.sqrt(x), 0),
        lambda x: tf.where(x > 0, ops.sqrt(x), 0),
        [[0, 4]],
        [0, 2],
        [[0, 0.25]],
        fails_in=["xla"],
    ),
    _trap(
        "O42-where-around-a-division",
        lambda x, y: tf.where(y != 0, x / y, 0),
        lambda x, y: tf.where(y != 0, ops.divide(x, y), 0),
        [1, [0, 2]],
        [0, 0.5],
        [0.5, [0, -0.25]],
    ),
    _trap(
        "O43-mask-times-sqrt",
        lambda x: tf.constant([0.0, 1.0]) * tf.sqrt(x),
        lambda x: tf.constant([0.0, 1.0]) * ops.sqrt(x),
        [[0, 4]],
        [0, 2],
        [[0, 0.25]],
        fails_in=["xla"],
    ),
    _trap(
        "O44-mask-times-log",
        lambda x: tf.constant([0.0, 1.0]) * tf.math.log(x),
        lambda x: ops.xlogy(tf.constant([0.0, 1.0]), x),
        [[0, 1]],
        [0, 0],
        [[0, 1]],
    ),
    _trap(
        "O45-boolean-mask-of-log",
        lambda x: tf.reduce_sum(tf.boolean_mask(tf.math.log(x), x > 0)),
        lambda x: tf.reduce_sum(tf.boolean_mask(ops.log(x), x > 0)),
        [[0, 1]],
        0,
        [[0, 1]],
    ),
    _trap(
        "O46-patching-a-nan-afterwards",
        lambda x: tf.where(tf.math.is_nan(x / tf.norm(x)), 0.0, x / tf.norm(x)),
        lambda x: ops.divide(x, ops.norm(x)),
        [[0, 0]],
        [0, 0],
        [[0, 0]],
    ),
    _trap(
        "O47-where-around-a-power",
        lambda x: tf.where(x > 0, tf.pow(x, 0.5), 0),
        lambda x: tf.where(x > 0, ops.sqrt(x), 0),
        [[0, 4]],
        [0, 2],
        [[0, 0.25]],
    ),
    _trap(
        "O50-mean-of-an-empty-boolean-mask",
        lambda x: tf.reduce_mean(tf.boolean_mask(x, x > 9)),
        lambda x: ops.masked_mean(x, x > 9),
        [[1, 2]],
        0,
        [[0, 0]],
    ),
    _trap(
        "O51-sum-over-sum-of-an-empty-mask",
        lambda x: tf.reduce_sum(x * [0.0, 0.0]) / tf.reduce_sum([0.0, 0.0]),
        lambda x: ops.masked_mean(x, [0.0, 0.0]),
        [[1, 2]],
        0,
        [[0, 0]],
    ),
    _trap(
        "O52-mask-times-nan",
        lambda x: tf.reduce_sum(x * [0.0, 1.0]) / tf.reduce_sum([0.0, 1.0]),
        lambda x: ops.masked_mean(x, [0.0, 1.0]),
        [[NAN, 1]],
        1,
        [[0, 1]],
    ),
    _trap("O70a-norm-at-0", tf.norm, ops.norm, [[0, 0, 0]], 0, [[0, 0, 0]]),
    _trap(
        "O71a-norm-of-large-numbers",
        tf.norm,
        ops.norm,
        [[1e20, 1e20]],
        1.4142136e20,
        [[0.70710678] * 2],
    ),
    _trap(
        "O72a-norm-of-small-numbers",
        tf.norm,
        ops.norm,
        [[1e-25, 1e-25]],
        1.4142136e-25,
        [[0.70710678] * 2],
    ),
    _trap(
        "O73a-norm-in-float16",
        tf.norm,
        ops.norm,
        [[300, 300]],
        424.26,
        [[0.70710678] * 2],
        dtype=HALF,
    ),
    _trap(
        "O74-distance-of-equal-points",
        lambda a, b: tf.sqrt(tf.reduce_sum((a - b) ** 2)),
        lambda a, b: ops.norm(a - b),
        [[1, 2], [1, 2]],
        0,
        [[0, 0], [0, 0]],
    ),
    _trap(
        "O79-gradient-penalty-of-a-saturated-critic",
        lambda x: (tf.norm(_saturated(x)) - 1) ** 2,
        lambda x: (ops.norm(_saturated(x)) - 1) ** 2,
        [[20, 20]],
        1,
        [[0, 0]],
    ),
    _trap(
        "O80a-standard-deviation-of-a-constant",
        tf.math.reduce_std,
        lambda x: ops.sqrt(tf.math.reduce_variance(x)),
        [[5, 5, 5]],
        0,
        [[0, 0, 0]],
    ),
    _trap(
        "O82-logsumexp-of-impossible-events",
        tf.reduce_logsumexp,
        ops.logsumexp,
        [[-INF, -INF]],
        -INF,
        [[0, 0]],
    ),
    _trap(
        "O84-log-softmax-of-a-masked-row",
        tf.nn.log_softmax,
        ops.log_softmax,
        [[-INF, -INF]],
        [-INF, -INF],
        [[0, 0]],
    ),
    _trap(
        "O89-mean-in-float16",
        tf.reduce_mean,
        ops.masked_mean,
        [[100] * 1000],
        100,
        [[0.001] * 1000],
        # XLA accumulates in float32 of its own accord.
        fails_in=["eager", "graph"],
        dtype=HALF,
    ),
    _trap("O93-mean-of-nothing", tf.reduce_mean, ops.masked_mean, [[]], 0, [[]]),
]


@pytest.mark.parametrize(
    ("usual", "ours", "args", "value", "gradients", "fails_in"), TRAPS
)
def test_the_usual_form_fails_where_ours_holds(
    usual, ours, args, value, gradients, fails_in, mode
):
    args = [tf.constant(arg) for arg in args]
    assert contrast.is_right(ours, args, value, gradients, mode)
    if mode in fails_in:
        assert not contrast.is_right(usual, args, value, gradients, mode)
