"""Formulas with logarithms and exponentials, each as it is for mpmath as well."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np
import tensorflow as tf

# Where nothing fails, and where the naive form does.
USUAL = (-3.0, -0.5, 1e-3, 0.7, 2.5)
SURE = (-200.0, -95.5, 19.25, 120.0)
POSITIVE = (1e-6, 0.5, 3.0, 100.0)
NEGATIVE = (-1e-6, -0.5, -3.0, -100.0)
ROWS = ([0.0, -200.0, 3.0], [1.0, 1.0, 1.0], [120.5, 0.0, -95.5])


@dataclasses.dataclass(frozen=True)
class Case:
    """A formula that a rule makes right.

    Attributes:
      rule: The rule.
      text: The formula.
      naive: The formula for TensorFlow.
      exact: The formula, without its guard, for mpmath: of numbers, or of a row.
      points: Arguments; for a formula of rows, rows.
    """

    rule: str
    text: str
    naive: Callable[..., tf.Tensor]
    exact: Callable[..., Any]
    points: Sequence[Any]

    @property
    def is_of_rows(self) -> bool:
        """Whether the formula is one of rows."""
        return isinstance(self.points[0], list)


def sig(x):
    return 1 / (1 + mp.exp(-x))


def soft(row):
    return [mp.exp(v) / mp.fsum(mp.exp(u) for u in row) for v in row]


def of_each(function):
    """Returns the sum of `function(p)` over the softmax p of a row."""
    return lambda row: mp.fsum(function(p) for p in soft(row))


log = tf.math.log
exp = tf.exp


def by_hand(x):
    return exp(x) / tf.reduce_sum(exp(x), -1, keepdims=True)


def shifted(x):
    e = exp(x - tf.reduce_max(x, -1, keepdims=True))
    return e / (tf.reduce_sum(e, -1)[:, None] + 1e-8)


def other_axis(x):
    return tf.transpose(tf.nn.softmax(tf.transpose(x), axis=0))


def total(x):
    return tf.reduce_sum(x, -1)


def mean(x):
    return tf.reduce_mean(x, -1)


def clip(p):
    return tf.clip_by_value(p, 1e-7, 1 - 1e-7)


def picked(p):
    return tf.one_hot([1, 1, 1], 3) * p


BOTH = (*USUAL, *SURE)
HANDS = {
    "softmax(x)": tf.nn.softmax,
    "exp(x) / sum(exp(x))": by_hand,
    "exp(x - max) / (sum + 1e-8)": shifted,
    "softmax along another axis": other_axis,
    "exp(x) * (1 / sum(exp(x)))": lambda x: (
        exp(x) * (1 / tf.reduce_sum(exp(x), -1, keepdims=True))
    ),
    "exp(x) * reciprocal(sum(exp(x)))": lambda x: (
        exp(x) * tf.math.reciprocal(tf.reduce_sum(exp(x), -1, keepdims=True))
    ),
    "p / sum(p) of a softmax": lambda x: (
        tf.nn.softmax(x) / tf.reduce_sum(tf.nn.softmax(x), -1, keepdims=True)
    ),
}
SIGMOIDS = {
    "sigmoid(x)": tf.sigmoid,
    "1 / (1 + exp(-x))": lambda x: 1 / (1 + exp(-x)),
    "reciprocal(exp(-x) + 1)": lambda x: tf.math.reciprocal(exp(-x) + 1),
    "exp(x) / (1 + exp(x))": lambda x: exp(x) / (1 + exp(x)),
    "(tanh(x / 2) + 1) / 2": lambda x: (tf.tanh(x / 2) + 1) / 2,
    "0.5 * tanh(0.5 * x) + 0.5": lambda x: 0.5 * tf.tanh(0.5 * x) + 0.5,
    "0.5 * (1 + tanh(0.5 * x))": lambda x: 0.5 * (1 + tf.tanh(0.5 * x)),
}
GUARDS = {
    "{} + 1e-7": lambda p: p + 1e-7,
    "clip({})": clip,
    "max({}, 1e-7)": lambda p: tf.maximum(p, 1e-7),
    "relu({}) + 1e-7": lambda p: tf.nn.relu(p) + 1e-7,
    "max(min({}, 1), 1e-6)": lambda p: tf.maximum(tf.minimum(p, 1), 1e-6),
}
LOGARITHMS = [
    *(
        Case(
            "log-of-softmax",
            f"log({t})",
            lambda x, f=f: total(log(f(x))),
            of_each(mp.log),
            ROWS,
        )
        for t, f in HANDS.items()
    ),
    *(
        Case(
            "log-of-sigmoid",
            f"log({t})",
            lambda x, f=f: log(f(x)),
            lambda x: mp.log(sig(x)),
            BOTH,
        )
        for t, f in SIGMOIDS.items()
    ),
    *(
        Case(
            "log-of-complement",
            f"log(1 - {t})",
            lambda x, f=f: log(1 - f(x)),
            lambda x: mp.log(1 - sig(x)),
            BOTH,
        )
        for t, f in SIGMOIDS.items()
    ),
    *(
        Case(
            "log-of-guarded-probability",
            f"log({t})",
            lambda x, g=g: log(g(tf.sigmoid(x))),
            lambda x: mp.log(sig(x)),
            BOTH,
        )
        for t, g in GUARDS.items()
    ),
    Case(
        "log-of-guarded-probability",
        "log(1 - clip(p))",
        lambda x: log(1 - clip(tf.sigmoid(x))),
        lambda x: mp.log(1 - sig(x)),
        BOTH,
    ),
    Case(
        "log-of-guarded-probability",
        "log((1 - p) + 1e-7)",
        lambda x: log(1 - tf.sigmoid(x) + 1e-7),
        lambda x: mp.log(1 - sig(x)),
        BOTH,
    ),
    Case(
        "log-of-guarded-probability",
        "log((1 + 1e-6) - p)",
        lambda x: log(1 + 1e-6 - tf.sigmoid(x)),
        lambda x: mp.log(1 - sig(x)),
        BOTH,
    ),
    Case(
        "log-of-guarded-probability",
        "log(1 - tanh(x)**2 + 1e-6)",
        lambda x: log(1 - tf.tanh(x) ** 2 + 1e-6),
        lambda x: -2 * mp.log(mp.cosh(x)),
        (*USUAL, -40.0, 19.25),
    ),
    Case(
        "log-of-guarded-probability",
        "log(sum(one_hot * p) + 1e-8)",
        lambda x: log(total(picked(tf.nn.softmax(x))) + 1e-8),
        lambda row: mp.log(soft(row)[1]),
        ([0.0, -200.0, 3.0],) * 3,
    ),
    Case(
        "log-of-complement",
        "log(1 - softmax(x))",
        lambda x: total(log(1 - tf.nn.softmax(x))),
        of_each(lambda p: mp.log(1 - p)),
        ROWS,
    ),
    Case(
        "log-of-complement",
        "log(1 - exp(x))",
        lambda x: log(1 - exp(x)),
        lambda x: mp.log(1 - mp.exp(x)),
        NEGATIVE,
    ),
    Case(
        "log-of-complement",
        "log1p(-sigmoid(x))",
        lambda x: tf.math.log1p(-tf.sigmoid(x)),
        lambda x: mp.log(1 - sig(x)),
        BOTH,
    ),
    Case(
        "log-of-complement",
        "log(1 - tanh(x))",
        lambda x: log(1 - tf.tanh(x)),
        lambda x: mp.log(2 / (1 + mp.exp(2 * x))),
        (*USUAL, 50.0, -40.0),
    ),
    Case(
        "log-of-sigmoid",
        "log(1 - (1 - p))",
        lambda x: log(1 - (1 - tf.sigmoid(x))),
        lambda x: mp.log(sig(x)),
        BOTH,
    ),
    Case(
        "log-of-complement",
        "log(1 - prod(1 - p))",
        lambda x: log(1 - tf.reduce_prod(1 - tf.sigmoid(x), -1)),
        lambda row: mp.log(1 - mp.fprod(1 - sig(v) for v in row)),
        ([-120.0, -130.0], [1.0, -2.0]),
    ),
    Case("log-of-exp", "log(exp(x))", lambda x: log(exp(x)), lambda x: x, BOTH),
    Case(
        "log-of-exp",
        "log1p(expm1(x))",
        lambda x: tf.math.log1p(tf.math.expm1(x)),
        lambda x: x,
        BOTH,
    ),
    Case(
        "log-of-product",
        "log(3 * sigmoid(x) * exp(x))",
        lambda x: log(3 * tf.sigmoid(x) * exp(x)),
        lambda x: mp.log(3 * sig(x)) + x,
        BOTH,
    ),
    Case(
        "log-of-product",
        "log(prod(sigmoid(x)))",
        lambda x: log(tf.reduce_prod(tf.sigmoid(x), -1)),
        lambda row: mp.fsum(mp.log(sig(v)) for v in row),
        ROWS,
    ),
    Case(
        "log-of-product",
        "log(prod(x))",
        lambda x: log(tf.reduce_prod(x, -1)),
        lambda row: mp.log(mp.fprod(row)),
        ([1e-30, 1e-30, 2.0], [-3.0, 5.0, -1.0], [1e25, 1e25, 0.3]),
    ),
    Case(
        "log-of-ratio",
        "log(sigmoid(x0) / exp(x1))",
        lambda x: log(tf.sigmoid(x[:, 0]) / exp(x[:, 1])),
        lambda row: mp.log(sig(row[0])) - row[1],
        ROWS,
    ),
    Case(
        "log-of-ratio",
        "log(1 / sigmoid(x))",
        lambda x: log(1 / tf.sigmoid(x)),
        lambda x: -mp.log(sig(x)),
        BOTH,
    ),
    Case(
        "log-of-odds",
        "log(p / (1 - p))",
        lambda x: log(tf.sigmoid(x) / (1 - tf.sigmoid(x))),
        lambda x: x,
        BOTH,
    ),
    Case(
        "log-of-power",
        "log(sigmoid(x) ** 3)",
        lambda x: log(tf.sigmoid(x) ** 3),
        lambda x: 3 * mp.log(sig(x)),
        BOTH,
    ),
    Case(
        "log-of-power",
        "log(sqrt(sigmoid(x)))",
        lambda x: log(tf.sqrt(tf.sigmoid(x))),
        lambda x: mp.log(sig(x)) / 2,
        (*USUAL, -220.0),
    ),
    Case(
        "log-of-power",
        "log(square(exp(x)))",
        lambda x: log(tf.square(exp(x))),
        lambda x: 2 * x,
        BOTH,
    ),
    Case(
        "log-of-power",
        "log(2 ** x)",
        lambda x: log(tf.pow(2.0, x)),
        lambda x: x * mp.log(2),
        (*BOTH, 130.0),
    ),
    Case(
        "log-of-sum",
        "log(1 + exp(x))",
        lambda x: log(1 + exp(x)),
        lambda x: mp.log(1 + mp.exp(x)),
        BOTH,
    ),
    Case(
        "log-of-sum",
        "log1p(exp(x))",
        lambda x: tf.math.log1p(exp(x)),
        lambda x: mp.log(1 + mp.exp(x)),
        BOTH,
    ),
    Case(
        "log-of-sum",
        "log(exp(x) + 1e-8)",
        lambda x: log(exp(x) + 1e-8),
        lambda x: mp.log(mp.exp(x) + float(np.float32(1e-8))),
        (*USUAL, 19.25, 120.0),
    ),
    Case(
        "log-of-sum",
        "log(sum(exp(x)))",
        lambda x: log(total(exp(x))),
        lambda row: mp.log(mp.fsum(map(mp.exp, row))),
        ROWS,
    ),
    Case(
        "log-of-sum",
        "log(mean(exp(x)))",
        lambda x: log(mean(exp(x))),
        lambda row: mp.log(mp.fsum(map(mp.exp, row)) / len(row)),
        ROWS,
    ),
    Case(
        "log-of-sum",
        "log(x0 * exp(x1) - x2 * exp(x0))",
        lambda x: log(x[:, 0] * exp(x[:, 1]) - x[:, 2] * exp(x[:, 0])),
        lambda r: mp.log(r[0] * mp.exp(r[1]) - r[2] * mp.exp(r[0])),
        ([1.0, 120.0, 2.0], [3.0, 1.0, -0.5], [95.0, 90.0, -1.0]),
    ),
    Case(
        "log-of-sum",
        "log(exp(x0) + exp(x1))",
        lambda x: log(exp(x[:, 0]) + exp(x[:, 1])),
        lambda row: mp.log(mp.exp(row[0]) + mp.exp(row[1])),
        ROWS,
    ),
    Case(
        "log-of-difference",
        "log(exp(x) - 1)",
        lambda x: log(exp(x) - 1),
        lambda x: mp.log(mp.exp(x) - 1),
        POSITIVE,
    ),
    Case(
        "log-of-difference",
        "log(expm1(x))",
        lambda x: log(tf.math.expm1(x)),
        lambda x: mp.log(mp.exp(x) - 1),
        POSITIVE,
    ),
    Case(
        "log-of-difference",
        "log(exp(x0) - exp(x1))",
        lambda x: log(exp(x[:, 0]) - exp(x[:, 1])),
        lambda row: mp.log(mp.exp(row[0]) - mp.exp(row[1])),
        ([100.5, 100.0], [1.0, -2.0], [-120.0, -121.0]),
    ),
    Case(
        "log-of-cosh",
        "log(cosh(x))",
        lambda x: log(tf.cosh(x)),
        lambda x: mp.log(mp.cosh(x)),
        BOTH,
    ),
    Case(
        "log-of-ratio",
        "log((exp(x) + exp(-x)) / 2)",
        lambda x: log((exp(x) + exp(-x)) / 2),
        lambda x: mp.log(mp.cosh(x)),
        BOTH,
    ),
    Case(
        "log-of-erfc",
        "log(erfc(x))",
        lambda x: log(tf.math.erfc(x)),
        lambda x: mp.log(mp.erfc(x)),
        (-1.0, 0.5, 3.0, 12.0),
    ),
    Case(
        "log-of-erfc",
        "log(1 - erf(x))",
        lambda x: log(1 - tf.math.erf(x)),
        lambda x: mp.log(mp.erfc(x)),
        (-1.0, 0.5, 3.0, 12.0),
    ),
]
