"""Epsilons that TensorFlow's graph optimiser merges with a number next to them.

Eager mode and XLA add them as they are written; in a plain `tf.function`,
`(a - b) + 1e-7` becomes `a - (b - 1e-7)`, and the epsilon rounds away.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tests.catalogue.rows import Row
from tests.support import modes
from tests.support.oracle import ulp_error
from tfsafe import stabilize


def _scaled(x):
    low = tf.reduce_min(x, -1, keepdims=True)
    high = tf.reduce_max(x, -1, keepdims=True)
    return (x - low) / (high - low + 1e-7)


def _log_of_difference(a, b):
    return tf.math.log(a - b + 1e-7)


def _inverse_of_difference(a, b):
    return 1 / (a - b + 1e-6)


def _deviation(x):
    variance = tf.reduce_mean(x * x, -1) - tf.reduce_mean(x, -1) ** 2
    return tf.sqrt(variance + 1e-6)


def _row(id, trap, function, args, value, fails_in=("graph",)):
    """Returns the row of a value alone: with a gradient, nothing is merged."""

    def is_right(form: Callable[..., Any], mode: str) -> bool:
        tensors = [tf.constant(each, tf.float32) for each in args]
        found = modes.compile_for(mode, form)(*tensors)
        return ulp_error(found, value) <= 4

    return Row(
        id,
        f"{trap} in a tf.function",
        "rewriting.stabilize",
        lambda mode: is_right(function, mode),
        lambda mode: is_right(stabilize(function), mode),
        fails_in=fails_in,
        wrapped=lambda decorate, mode: is_right(decorate(function), mode),
        is_by_hand=True,
    )


ROWS = [
    _row(
        "O200",
        "(x - min) / (max - min + 1e-7) of a constant row",
        _scaled,
        [[[3, 3, 3], [1, 2, 4]]],
        [[0, 0, 0], [0, 1 / 3, 1]],
    ),
    _row(
        "O201",
        "tf.math.log(a - b + 1e-7) for a = b = 64",
        _log_of_difference,
        [64, 64],
        np.log(1e-7),
    ),
    _row(
        "O202",
        "1 / (a - b + 1e-6) for a = b = 64",
        _inverse_of_difference,
        [64, 64],
        1e6,
    ),
    _row(
        "O203",
        "tf.sqrt(E[x * x] - E[x] ** 2 + 1e-6) of a constant row",
        _deviation,
        [[[3, 3, 3]]],
        [1e-3],
        fails_in=("graph", "xla"),
    ),
]
