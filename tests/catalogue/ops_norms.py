"""Norms, distances, vectors of length 1, and clipping by the norm."""

import keras
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import FINITE, formula
from tfsafe import ops

HALF = 0.5**0.5
UNIT = [HALF, HALF]


def _norms(id, trap, x, value, gradient, **options):
    """Returns a row for each of the three ways to write a norm."""
    ways = [tf.norm, keras.ops.norm, tf.math.reduce_euclidean_norm]
    names = ["tf.norm", "keras.ops.norm", "tf.math.reduce_euclidean_norm"]
    return [
        formula(
            id + letter, f"{name} {trap}", "ops.norm", way, ops.norm, [x], value,
            [gradient], **options,
        )
        for letter, name, way in zip("abc", names, ways, strict=True)
    ]  # fmt: skip


def _saturated(x):
    # The gradient of a critic whose units are saturated, as in a gradient penalty.
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(x))
    return tape.gradient(y, x)


def _gram_distances(x):
    squares = tf.reduce_sum(x * x, 1)
    products = tf.matmul(x, x, transpose_b=True)
    return tf.linalg.diag_part(
        tf.sqrt(squares[:, tf.newaxis] + squares[tf.newaxis] - 2 * products)
    )


ROWS = [
    *_norms("O70", "of a zero vector", [0, 0, 0], 0, [0, 0, 0], is_by_hand=True),
    formula(
        "O70d",
        "tf.sqrt(tf.reduce_sum(x * x)) of a zero vector",
        "ops.norm",
        lambda x: tf.sqrt(tf.reduce_sum(x * x)),
        ops.norm,
        [[0, 0, 0]],
        0,
        [[0, 0, 0]],
        is_by_hand=True,
    ),
    formula(
        "O70e",
        "tf.norm(x, ord=3) of a zero vector",
        "ops.norm",
        lambda x: tf.norm(x, ord=3),
        lambda x: ops.norm(x, ord=3),
        [[0, 0, 0]],
        0,
        [[0, 0, 0]],
        is_by_hand=True,
    ),
    formula(
        "O70f",
        "keras.ops.norm(x, ord=3) of a zero vector",
        "ops.norm",
        lambda x: keras.ops.norm(x, ord=3),
        lambda x: ops.norm(x, ord=3),
        [[0, 0, 0]],
        0,
        [[0, 0, 0]],
        is_by_hand=True,
    ),
    *_norms(
        "O71",
        "of 1e20, whose square overflows",
        [1e20] * 2,
        2**0.5 * 1e20,
        UNIT,
        is_by_hand=True,
    ),
    *_norms(
        "O72",
        "of 1e-25, whose square underflows",
        [1e-25] * 2,
        2**0.5 * 1e-25,
        UNIT,
        is_by_hand=True,
    ),
    *_norms(
        "O73",
        "of 300 in float16",
        [300, 300],
        424.26,
        UNIT,
        dtype="float16",
        is_by_hand=True,
    ),
    formula(
        "O74",
        "tf.sqrt(tf.reduce_sum((a - b)**2)) of equal points",
        "ops.distance",
        lambda a, b: tf.sqrt(tf.reduce_sum((a - b) ** 2)),
        ops.distance,
        [[1, 2], [1, 2]],
        0,
        [[0, 0], [0, 0]],
        is_by_hand=True,
    ),
    formula(
        "O75",
        "keras.ops.cdist of a batch against itself",
        "ops.cdist",
        lambda x: keras.ops.cdist(x, x),
        lambda x: ops.cdist(x, x),
        [[[1, 2], [3, 4]]],
        [[0, 8**0.5], [8**0.5, 0]],
        [[[-2 * HALF] * 2, [2 * HALF] * 2]],
        is_by_hand=True,
    ),
    formula(
        "O76",
        "tf.sqrt(|a|**2 + |b|**2 - 2 a b) of a vector and itself",
        "ops.cdist",
        _gram_distances,
        lambda x: tf.linalg.diag_part(ops.cdist(x, x)),
        [np.random.RandomState(0).randn(8, 16)],
        0,
        [0],
        is_by_hand=True,
    ),
    formula(
        "O79",
        "(tf.norm(gradient) - 1)**2 of a saturated critic",
        "ops.norm",
        lambda x: (tf.norm(_saturated(x)) - 1) ** 2,
        lambda x: (ops.norm(_saturated(x)) - 1) ** 2,
        [[20, 20]],
        1,
        [[0, 0]],
        is_by_hand=True,
    ),
    formula(
        "O100",
        "tf.math.l2_normalize of a zero vector",
        "ops.l2_normalize",
        tf.math.l2_normalize,
        ops.l2_normalize,
        [[0, 0]],
        [0, 0],
        [[0, 0]],
    ),
    formula(
        "O101",
        "keras.ops.normalize of a zero vector",
        "ops.l2_normalize",
        keras.ops.normalize,
        ops.l2_normalize,
        [[0, 0]],
        [0, 0],
        [[0, 0]],
    ),
    formula(
        "O102",
        "tf.math.l2_normalize of a zero vector in float16",
        "ops.l2_normalize",
        tf.math.l2_normalize,
        ops.l2_normalize,
        [[0, 0]],
        [0, 0],
        [[0, 0]],
        dtype="float16",
    ),
    formula(
        "O103",
        "keras.ops.normalize of a zero vector in float16",
        "ops.l2_normalize",
        keras.ops.normalize,
        ops.l2_normalize,
        [[0, 0]],
        [0, 0],
        [[0, 0]],
        dtype="float16",
    ),
    # In the next rows the gradient is a rounding error over a norm: 0 in exact
    # arithmetic.
    formula(
        "O104",
        "tf.math.l2_normalize of 1e-20",
        "ops.l2_normalize",
        tf.math.l2_normalize,
        ops.l2_normalize,
        [[1e-20, 1e-20]],
        UNIT,
        [FINITE],
    ),
    formula(
        "O105",
        "tf.math.l2_normalize of 1e20",
        "ops.l2_normalize",
        tf.math.l2_normalize,
        ops.l2_normalize,
        [[1e20, 1e20]],
        UNIT,
        [FINITE],
    ),
    formula(
        "O106",
        "tf.math.l2_normalize of 300 in float16",
        "ops.l2_normalize",
        tf.math.l2_normalize,
        ops.l2_normalize,
        [[300, 300]],
        UNIT,
        [FINITE],
        dtype="float16",
    ),
    formula(
        "O107",
        "tf.linalg.normalize of a zero vector",
        "ops.normalize",
        lambda x: tf.linalg.normalize(x)[0],
        lambda x: ops.normalize(x)[0],
        [[0, 0]],
        [0, 0],
        [[0, 0]],
    ),
    formula(
        "O109",
        "tf.clip_by_norm of 1e20",
        "ops.clip_by_norm",
        lambda x: tf.clip_by_norm(x, 1.0),
        lambda x: ops.clip_by_norm(x, 1.0),
        [[1e20, 1e20]],
        UNIT,
        [FINITE],
    ),
    formula(
        "O110",
        "tf.clip_by_global_norm of 1e20",
        "ops.clip_by_global_norm",
        lambda x: tf.clip_by_global_norm([x], 1.0)[0][0],
        lambda x: ops.clip_by_global_norm([x], 1.0)[0][0],
        [[1e20, 1e20]],
        UNIT,
        [FINITE],
    ),
]
