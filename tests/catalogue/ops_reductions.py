"""Softmax and its kin, means and deviations, running products and sums."""

import keras
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import formula
from tfsafe import ops

INF = float("inf")
# XLA accumulates half precision in float32 of its own accord.
NOT_XLA = ["eager", "graph"]
SPREAD = [1e4, 1e4 + 0.01, 1e4 + 0.02]


def _textbook_std(x):
    return tf.sqrt(tf.reduce_mean(x * x) - tf.reduce_mean(x) ** 2)


def _constant(id, trap, usual):
    return formula(
        id, f"{trap} of a constant", "ops.std", usual, ops.std, [[5, 5, 5]], 0,
        [[0, 0, 0]], is_by_hand=True,
    )  # fmt: skip


ROWS = [
    formula(
        "O16",
        "tf.exp(z) / tf.reduce_sum(tf.exp(z)) for a logit of 100",
        "ops.softmax",
        lambda z: (tf.exp(z) / tf.reduce_sum(tf.exp(z)))[0],
        lambda z: ops.softmax(z)[0],
        [[100, 0]],
        1,
        # The true gradients, 3.7e-44, are subnormal.
        [[0, 0]],
        is_by_hand=True,
    ),
    formula(
        "O19",
        "tf.sqrt(tf.reduce_mean(x**2) - tf.reduce_mean(x)**2) for a large mean",
        "ops.std",
        _textbook_std,
        ops.std,
        [SPREAD],
        np.std(np.float32(SPREAD).astype(float)),
        [[-(6**-0.5), 0, 6**-0.5]],
        is_by_hand=True,
    ),
    formula(
        "O50",
        "tf.reduce_mean(tf.boolean_mask(x, mask)) where nothing is kept",
        "ops.mean",
        lambda x: tf.reduce_mean(tf.boolean_mask(x, x > 9)),
        lambda x: ops.mean(x, mask=x > 9),
        [[1, 2]],
        0,
        [[0, 0]],
        is_by_hand=True,
    ),
    formula(
        "O51",
        "tf.reduce_sum(x * mask) / tf.reduce_sum(mask) where nothing is kept",
        "ops.mean",
        lambda x: tf.reduce_sum(x * [0.0, 0.0]) / tf.reduce_sum([0.0, 0.0]),
        lambda x: ops.mean(x, mask=[0.0, 0.0]),
        [[1, 2]],
        0,
        [[0, 0]],
        is_by_hand=True,
    ),
    _constant("O80a", "tf.math.reduce_std", tf.math.reduce_std),
    _constant("O80b", "keras.ops.std", keras.ops.std),
    _constant(
        "O80c",
        "tf.sqrt(tf.nn.moments(x)[1])",
        lambda x: tf.sqrt(tf.nn.moments(x, [0])[1]),
    ),
    formula(
        "O81",
        "tf.math.reduce_std of 300 and -300 in float16",
        "ops.std",
        tf.math.reduce_std,
        ops.std,
        [[300, -300]],
        300,
        [[0.5, -0.5]],
        dtype="float16",
        is_by_hand=True,
    ),
    formula(
        "O82",
        "tf.reduce_logsumexp of nothing but -inf",
        "ops.logsumexp",
        tf.reduce_logsumexp,
        ops.logsumexp,
        [[-INF, -INF]],
        -INF,
        [[0, 0]],
        is_by_hand=True,
    ),
    formula(
        "O83",
        "tf.nn.softmax of nothing but -inf",
        "ops.softmax",
        tf.nn.softmax,
        ops.softmax,
        [[-INF, -INF]],
        [0, 0],
        [[0, 0]],
    ),
    formula(
        "O84",
        "tf.nn.log_softmax of nothing but -inf",
        "ops.log_softmax",
        tf.nn.log_softmax,
        ops.log_softmax,
        [[-INF, -INF]],
        [-INF, -INF],
        [[0, 0]],
    ),
    formula(
        "O87",
        "tf.math.cumprod with a factor of 0",
        "ops.cumprod",
        tf.math.cumprod,
        ops.cumprod,
        [[2, 0, 3]],
        [2, 0, 0],
        [[1, 8, 0]],
    ),
    formula(
        "O89",
        "tf.reduce_mean of 1000 times 100 in float16",
        "ops.mean",
        tf.reduce_mean,
        ops.mean,
        [[100] * 1000],
        100,
        [[0.001] * 1000],
        dtype="float16",
        fails_in=NOT_XLA,
    ),
    formula(
        "O91",
        "tf.cumsum of 1000 ones in bfloat16",
        "ops.cumsum",
        lambda x: tf.cumsum(x)[-1],
        lambda x: ops.cumsum(x)[-1],
        [[1] * 1000],
        1000,
        [[1] * 1000],
        dtype="bfloat16",
        fails_in=NOT_XLA,
    ),
    formula(
        "O93",
        "tf.reduce_mean of an empty tensor",
        "ops.mean",
        tf.reduce_mean,
        ops.mean,
        [[]],
        0,
        [[]],
    ),
    formula(
        "O94",
        "tf.math.unsorted_segment_max with an empty segment",
        "ops.unsorted_segment_max",
        lambda x: tf.math.unsorted_segment_max(x, [0, 0], 2),
        lambda x: ops.unsorted_segment_max(x, [0, 0], 2),
        [[1, 2]],
        [2, 0],
        [[0, 1]],
    ),
    formula(
        "O180",
        "tf.nn.softmax_cross_entropy_with_logits with a logit of -inf",
        "ops.categorical_crossentropy",
        lambda z: tf.nn.softmax_cross_entropy_with_logits([0.0, 1.0, 0.0], z),
        lambda z: ops.categorical_crossentropy([0.0, 1.0, 0.0], z, from_logits=True),
        [[-INF, 0, 1]],
        np.log1p(np.e),
        [[0, -0.7310585786, 0.7310585786]],
        fails_in=NOT_XLA,
    ),
    formula(
        "O181",
        "tf.nn.sigmoid_cross_entropy_with_logits with a logit of -inf",
        "ops.binary_crossentropy",
        lambda z: tf.nn.sigmoid_cross_entropy_with_logits(tf.zeros_like(z), z),
        lambda z: ops.binary_crossentropy(tf.zeros_like(z), z, from_logits=True),
        [-INF],
        0,
        [0],
    ),
]
