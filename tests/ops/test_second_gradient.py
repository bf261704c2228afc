"""Gradients of gradients with a `tf.function` between the tapes."""

import numpy as np
import pytest
import tensorflow as tf

from tests.ops.test_all import ROWS
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import ops

# Those that the tables of rows leave out: they take labels, images or matrices.
_WEIGHTS = tf.constant([[1, 2, 0, 1], [2, 1, 1, 0], [0, 1, 3, 1]], tf.float32)


def _square(x):
    return x @ tf.transpose(x) + 2 * tf.eye(3)


OTHERS = {
    "angle": lambda x: ops.angle(tf.complex(x, x[:, ::-1] + 1)),
    "binary_crossentropy": lambda x: ops.binary_crossentropy(_WEIGHTS / 3, x / 10),
    "categorical_crossentropy": lambda x: ops.categorical_crossentropy(_WEIGHTS, x),
    "cdist": lambda x: ops.cdist(x, x[:2] + 1),
    "cholesky": lambda x: ops.cholesky(_square(x)),
    "clip_by_global_norm": lambda x: ops.clip_by_global_norm([x], 3.0)[0][0],
    "det": lambda x: ops.det(x[:, :3]),
    "inv": lambda x: ops.inv(_square(x)),
    "slogdet": lambda x: ops.slogdet(_square(x))[1],
    "sparse_categorical_crossentropy": lambda x: ops.sparse_categorical_crossentropy(
        tf.constant([0, 3, 1]), x
    ),
    "where_apply": lambda x: ops.where_apply(x > 2, ops.log, 1.0, x),
}


# No 0 in it, the singular point of most ops.
POINT = [[0.5, 1, 2, 3], [4, 0.25, 5, 6], [7, 8, 9, 0.125]]


def _between(function, x, xla=False):
    """The second gradient of a `tf.function` that stands between the tapes."""
    compiled = tf.function(function, autograph=False, jit_compile=xla)
    return modes.second_gradient(compiled, x, "eager")


@pytest.mark.parametrize("name", [*ROWS, *OTHERS])
def test_it_does_not_matter_where_the_function_is_called(name):
    signature = [tf.TensorSpec([3, 4])]
    function = tf.function((ROWS | OTHERS)[name], signature, autograph=False)
    around = tf.function(
        lambda x: modes.second_gradient(function.python_function, x, "eager"),
        signature,
        autograph=False,
    )
    x = tf.constant(POINT, tf.float32)
    between = modes.second_gradient(function, x, "eager")
    assert_close(between, around(x), scale=1.0)


@pytest.mark.parametrize("name", ["log", "norm", "sqrt"])
def test_it_may_be_compiled(name):
    x = tf.constant(POINT, tf.float32)
    wanted = modes.second_gradient(ROWS[name], x, "graph")
    assert np.any(wanted)
    got = _between(ROWS[name], x, xla=True)
    assert_close(got, wanted, 80, why="differences of larger numbers")


def test_a_mask_may_come_from_the_function():
    x = tf.constant(POINT, tf.float32)
    for op in (ops.std, ops.softmax, ops.logsumexp):

        def masked(x, op=op):
            return tf.square(op(x * [1.0, 2.0, 4.0, 8.0], axis=-1, mask=x > 1))

        wanted = modes.second_gradient(masked, x, "graph")
        assert np.any(wanted)
        assert_close(_between(masked, x), wanted)
