"""Formulas of two tensors, made at random, on ordinary numbers.

They need no repair. What is right for one tensor, as the limit of `tanh(x) / x`, is
wrong where there are two.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tests.rewriting.drawing import Drawn, Function

ROWS, COLUMNS = 4, 3


def _kept(reduce: Function) -> Function:
    return lambda t: reduce(t, -1, keepdims=True)


_mean, _total, _largest = map(_kept, (tf.reduce_mean, tf.reduce_sum, tf.reduce_max))


def _norm(t):
    return tf.norm(t, axis=-1, keepdims=True)


# Of one of the tensors, or of both.
INSIDE: dict[str, Function] = {
    "t": lambda t, x, u: t,
    "-t": lambda t, x, u: -t,
    "2 * t": lambda t, x, u: 2 * t,
    "-3 * t": lambda t, x, u: -3 * t,
    "t / 2": lambda t, x, u: t / 2,
    "-(t / 3)": lambda t, x, u: -(t / 3),
    "0 - t": lambda t, x, u: 0 - t,
    "t * -1": lambda t, x, u: t * -1,
    "t * t": lambda t, x, u: t * t,
    "-t ** 2": lambda t, x, u: -(t**2),
    "1 / t": lambda t, x, u: 1 / t,
    "1 - t": lambda t, x, u: 1 - t,
    "t - 1": lambda t, x, u: t - 1,
    "abs(t)": lambda t, x, u: tf.abs(t),
    "x * u": lambda t, x, u: x * u,
    "-u * x": lambda t, x, u: -u * x,
    "x - u": lambda t, x, u: x - u,
    "u - x": lambda t, x, u: u - x,
    "x / u": lambda t, x, u: x / u,
    "mean(t)": lambda t, x, u: _mean(t),
    "-sum(t)": lambda t, x, u: -_total(t),
    "max(t)": lambda t, x, u: _largest(t),
    "t - mean(t)": lambda t, x, u: t - _mean(t),
    "norm(t)": lambda t, x, u: _norm(t),
    "-norm(t)": lambda t, x, u: -_norm(t),
    "t[:, :1]": lambda t, x, u: t[:, :1],
    "sum(x * u)": lambda t, x, u: _total(x * u),
}
FUNCTIONS: dict[str, Function] = {
    "": lambda t: t,
    "sin": tf.sin,
    "tanh": tf.tanh,
    "expm1": tf.math.expm1,
    "exp - 1": lambda t: tf.exp(t) - 1,
    "1 - exp": lambda t: 1 - tf.exp(t),
    "1 - cos": lambda t: 1 - tf.cos(t),
    "exp": tf.exp,
    "exp of -square": lambda t: tf.exp(-tf.square(t)),
    "sigmoid": tf.sigmoid,
    "1 - sigmoid": lambda t: 1 - tf.sigmoid(t),
    "1 / (1 + exp)": lambda t: 1 / (1 + tf.exp(t)),
    "cosh - 1": lambda t: tf.cosh(t) - 1,
    "sinh": tf.sinh,
    "atan": tf.atan,
    "softplus": tf.nn.softplus,
    "log(1 + exp)": lambda t: tf.math.log(1 + tf.exp(t)),
    "erf": tf.math.erf,
    "sqrt(1 + square)": lambda t: tf.sqrt(1 + t * t),
    "log(1 + square)": lambda t: tf.math.log(1 + t * t),
    "log(1 - exp(-abs))": lambda t: tf.math.log(1 - tf.exp(-tf.abs(t))),
    "softmax": tf.nn.softmax,
    "1 - softmax": lambda t: 1 - tf.nn.softmax(t),
    "sum of exp": lambda t: _total(tf.exp(t)),
    "log-sum of exp": lambda t: tf.math.log(_total(tf.exp(t))),
    "max of exp": lambda t: _largest(tf.exp(t)),
    "mean of squares": lambda t: _mean(tf.square(t)),
    "cumsum of exp": lambda t: tf.cumsum(tf.exp(t), -1),
}
# Of two functions a and b, and of v and w, which are inside of none.
FORMS: dict[str, Function] = {
    "a / v": lambda a, b, v, w: a / v,
    "a * v": lambda a, b, v, w: a * v,
    "-a / v": lambda a, b, v, w: -a / v,
    "a / -v": lambda a, b, v, w: a / -v,
    "v / a": lambda a, b, v, w: v / a,
    "-v / a": lambda a, b, v, w: -v / a,
    "a + b": lambda a, b, v, w: a + b,
    "a - b": lambda a, b, v, w: a - b,
    "a * b": lambda a, b, v, w: a * b,
    "a / b": lambda a, b, v, w: a / b,
    "(a - b) / v": lambda a, b, v, w: (a - b) / v,
    "(a - v) / w": lambda a, b, v, w: (a - v) / w,
    "(a - b) / (v - w)": lambda a, b, v, w: (a - b) / (v - w),
    "a / (a + b)": lambda a, b, v, w: a / (a + b),
    "1 - a / b": lambda a, b, v, w: 1 - a / b,
    "1 / a - 1 / b": lambda a, b, v, w: 1 / a - 1 / b,
    "a * a - b * b": lambda a, b, v, w: a * a - b * b,
    "log(abs(a / b))": lambda a, b, v, w: tf.math.log(tf.abs(a / b)),
    "sqrt(abs(a * b))": lambda a, b, v, w: tf.sqrt(tf.abs(a * b)),
    "sum(a * b) / sum(b)": lambda a, b, v, w: _total(a * b) / _total(b),
    "a cosine": lambda a, b, v, w: (
        _total(a * b) / tf.sqrt(_total(a * a) * _total(b * b))
    ),
    "sum(a / b) / sum(1 / b)": lambda a, b, v, w: _total(a / b) / _total(1 / b),
    "a / max(a)": lambda a, b, v, w: a / _largest(a),
    "a / sum(b)": lambda a, b, v, w: a / _total(b),
}


class Pair(NamedTuple):
    """A formula of two tensors."""

    text: str
    function: Function
    x: np.ndarray
    u: np.ndarray


def make(seed: int) -> Pair:
    """Returns the formula of a number."""
    drawn = Drawn(seed)
    parts = []
    for count in range(4):
        which = drawn.name(("x", "u"))
        inside = drawn.one(INSIDE)
        outside = drawn.one(FUNCTIONS if count < 2 else {"": FUNCTIONS[""]})
        parts.append((which == "x", inside, outside))
    form = drawn.one(FORMS)

    def function(x: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return form(
            *(
                outside(inside(x if is_x else u, x, u))
                for is_x, inside, outside in parts
            )
        )

    x, u = (
        drawn.rng.uniform(0.1, 2.0, (ROWS, COLUMNS))
        * drawn.rng.choice([1, 1, -1], (ROWS, COLUMNS))
        for _ in range(2)
    )
    return Pair(" ".join(drawn.words), function, x.astype("f"), u.astype("f"))
