"""float16 products that a number brings back into the range of the dtype."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

V = np.array([[1.0, -2.0], [0.5, 3.0]])
QUERIES = [[[100.0, 200.0], [300.0, -50.0]], [[300.0, 250.0], [299.0, 250.5]]]
SMALL = [[[1.0, 2.0], [0.3, -0.5]], [[0.3, 0.25], [0.2, 0.9]]]


def _attention(scores, q):
    return tf.nn.softmax(scores) @ tf.cast(V, q.dtype)


def _exact_attention(q, k):
    scores = m.exp(q @ k.T / 8)
    return ((scores / scores.sum(-1, keepdims=True)) @ V).sum()


FORMULAS = [
    *(
        Formula(name, function, exact, bad, ordinary, dtype="float16")
        for name, function, exact, bad, ordinary in (
            (
                "attention whose scores are scaled after the product",
                lambda q, k: _attention(
                    tf.matmul(q, k, transpose_b=True) * tf.cast(0.125, q.dtype), q
                ),
                _exact_attention,
                QUERIES,
                SMALL,
            ),
            (
                "attention by einsum, divided by a root",
                lambda q, k: _attention(tf.einsum("id,jd->ij", q, k) / 8, q),
                _exact_attention,
                QUERIES,
                SMALL,
            ),
            (
                "half of a sum of squared errors",
                lambda x, y: 0.5 * tf.reduce_sum(tf.square(x - y)),
                lambda x, y: ((x - y) ** 2).sum() / 2,
                [[300.0, 1.0], [1.0, 2.0]],
                [[3.0, 1.0], [1.0, 2.0]],
            ),
            (
                "an eighth of a fourth power",
                lambda x: tf.cast(0.125, x.dtype) * x**4,
                lambda x: (x**4).sum() / 8,
                [[25.0, 2.0]],
                [[0.5, 2.0]],
            ),
        )
    ),
]
