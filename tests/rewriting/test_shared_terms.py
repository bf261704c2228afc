"""Formulas whose terms are shared: twice as many paths to the inputs with each step."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close
from tfsafe.rewriting import stabilize

# There are 2 ** 30 paths: what followed each of them would never end.
COUNT = 30
STEPS = {
    "sums": lambda p, q: (p - (q + p), q + p),
    "products": lambda p, q: (q * p, q * p * p),
    "products and sums": lambda p, q: (0.5 * (q * p + q), 0.5 * (q - p)),
    "quotients": lambda p, q: (2 * p / (p + q), 2 * q / (p + q)),
    "masked products": lambda p, q: (
        tf.cast(p > 0, p.dtype) * p * q,
        0.5 * (tf.cast(q > 0, p.dtype) * q + p),
    ),
    "masks": lambda p, q: (tf.cast(p > 0, p.dtype) * q, p * p),
}
ENDS = {
    "softmax": lambda z, p, q: tf.nn.softmax(z) * (p + q),
    "log of a quotient": lambda z, p, q: tf.math.log(tf.nn.softmax(z) * p / q),
    "quotient": lambda z, p, q: z * p / (q * q + p * p + 1e-3),
    "log of a sum": lambda z, p, q: z * tf.math.log(tf.reduce_sum(tf.exp(p + q), -1)),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("step", STEPS)
def test_a_formula_with_shared_terms_is_rewritten_term_by_term(step, end):
    def formula(z, p, q):
        for _ in range(COUNT):
            p, q = STEPS[step](p, q)
        return tf.reduce_sum(ENDS[end](z, p, q))

    def slopes(z, p, q):
        with tf.GradientTape() as tape:
            tape.watch(z)
            value = formula(z, p, q)
        return value, tape.gradient(value, z)

    data = np.array([[0.5, -1.0, 2.0]]), np.ones([1, 3]), np.ones([1, 3])
    found = stabilize(slopes)(*(tf.constant(x, tf.float32) for x in data))
    for a, b in zip(found, slopes(*map(tf.constant, data)), strict=True):
        assert_close(a, b, scale=1.0)
