"""Determinants, inverses, factors and functions of singular matrices."""

import numpy as np
import tensorflow as tf

from tests.catalogue.rows import FINITE, formula
from tfsafe import ops

SINGULAR = [[1, 2], [2, 4]]
# Of a kernel matrix with two equal points.
ONES = [[1, 1], [1, 1]]
UNIT = np.eye(2)
NAN, INF = float("nan"), float("inf")


def _upstream(function, weights):
    """Returns the function with a gradient that comes in with these weights."""

    @tf.custom_gradient
    def weighted(value):
        return tf.identity(value), lambda upstream: upstream * weights

    return lambda x: weighted(function(x))


def _rebuilt(x):
    s, u, v = tf.linalg.svd(x)
    return tf.matmul(u * s, v, transpose_b=True)


def _whitening(x):
    w, v = tf.linalg.eigh((x + tf.transpose(x)) / 2)
    return tf.matmul(v / tf.sqrt(w), v, transpose_b=True)


ROWS = [
    formula(
        "O150",
        "tf.linalg.det of a singular matrix",
        "ops.det",
        tf.linalg.det,
        ops.det,
        [SINGULAR],
        0,
        [[[4, -2], [-2, 1]]],
    ),
    formula(
        "O151",
        "tf.linalg.inv of a singular matrix",
        "ops.inv",
        tf.linalg.inv,
        ops.inv,
        [SINGULAR],
        NAN,
        [NAN],
    ),
    formula(
        "O152",
        "tf.linalg.cholesky of a semidefinite matrix",
        "ops.cholesky",
        tf.linalg.cholesky,
        ops.cholesky,
        [ONES],
        [[1, 0], [1, 0]],
        [[[0, 0.5], [0.5, 0]]],
    ),
    formula(
        "O153",
        "tf.linalg.logdet of a semidefinite matrix",
        "ops.slogdet",
        tf.linalg.logdet,
        lambda x: ops.slogdet(x)[1],
        [ONES],
        -INF,
        [FINITE],
    ),
    formula(
        "O154",
        "tf.linalg.slogdet of a singular matrix",
        "ops.slogdet",
        lambda x: tf.linalg.slogdet(x)[1],
        lambda x: ops.slogdet(x)[1],
        [SINGULAR],
        -INF,
        [FINITE],
    ),
    formula(
        "O155",
        "U S V^T by tf.linalg.svd with equal singular values",
        "ops.singular_value_function",
        _upstream(_rebuilt, [[1.0, 2.0], [3.0, 4.0]]),
        _upstream(
            lambda x: ops.singular_value_function(x, tf.identity),
            [[1.0, 2.0], [3.0, 4.0]],
        ),
        [UNIT],
        UNIT,
        [[[1, 2], [3, 4]]],
    ),
    formula(
        "O158",
        "V diag(w^-1/2) V^T by tf.linalg.eigh with equal eigenvalues",
        "ops.spectral_function",
        _upstream(_whitening, [[0.0, 1.0], [1.0, 0.0]]),
        _upstream(
            lambda x: ops.spectral_function(x, ops.rsqrt), [[0.0, 1.0], [1.0, 0.0]]
        ),
        [UNIT],
        UNIT,
        [[[0, -0.5], [-0.5, 0]]],
    ),
    formula(
        "O164",
        "tf.linalg.lstsq of a matrix that does not have full rank",
        "ops.lstsq",
        tf.linalg.lstsq,
        ops.lstsq,
        [SINGULAR, [[1], [2]]],
        [[0.2], [0.4]],
        [FINITE, FINITE],
    ),
]
