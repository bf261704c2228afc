"""Formulas of three tensors, made at random: operations one after the other.

Each operation has results of those before it, or the tensors, and some have the same
one twice. On ordinary numbers such a formula needs no repair, and what is right for
one tensor, as the limit of `tanh(x) / x`, is wrong where there are two.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tests.rewriting.drawing import Drawn, Function

ROWS, COLUMNS = 4, 3
# A result is one of the last so often, and not one of the tensors.
_FROM_BEFORE = 0.7
# How often an operation is of one, two and three of them.
_COUNTS = [0.45, 0.37, 0.18]


def _kept(reduce: Function) -> Function:
    return lambda t: reduce(tf.broadcast_to(t, [ROWS, COLUMNS]), -1, keepdims=True)


_mean, _total, _largest = map(_kept, (tf.reduce_mean, tf.reduce_sum, tf.reduce_max))
_deviation = _kept(tf.math.reduce_std)
_norm = _kept(lambda t, axis, keepdims: tf.norm(t, axis=axis, keepdims=keepdims))


def _cosine(a, b):
    return _total(a * b) / tf.sqrt(_total(a * a) * _total(b * b))


ONE: dict[str, Function] = {
    "-t": lambda t: -t,
    "2 * t": lambda t: 2 * t,
    "-3 * t": lambda t: -3 * t,
    "t / 2": lambda t: t / 2,
    "-(t / 3)": lambda t: -(t / 3),
    "0 - t": lambda t: 0 - t,
    "t * -1": lambda t: t * -1,
    "t * t": lambda t: t * t,
    "-t ** 2": lambda t: -(t**2),
    "t ** 3": lambda t: t**3,
    "abs(t) ** 1.5": lambda t: tf.abs(t) ** 1.5,
    "sqrt(abs(t))": lambda t: tf.sqrt(tf.abs(t)),
    "rsqrt(1 + t * t)": lambda t: tf.math.rsqrt(1 + t * t),
    "1 / t": lambda t: 1 / t,
    "reciprocal": tf.math.reciprocal,
    "1 - t": lambda t: 1 - t,
    "t - 1": lambda t: t - 1,
    "1 + t": lambda t: 1 + t,
    "t + 1e-7": lambda t: t + 1e-7,
    "abs": tf.abs,
    "log(abs(t))": lambda t: tf.math.log(tf.abs(t)),
    "log1p(abs(t))": lambda t: tf.math.log1p(tf.abs(t)),
    "sin": tf.sin,
    "cos": tf.cos,
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
    "cosh": tf.cosh,
    "cosh - 1": lambda t: tf.cosh(t) - 1,
    "sinh": tf.sinh,
    "asinh": tf.asinh,
    "atan": tf.atan,
    "softplus": tf.nn.softplus,
    "log(1 + exp)": lambda t: tf.math.log(1 + tf.exp(t)),
    "log_sigmoid": tf.math.log_sigmoid,
    "erf": tf.math.erf,
    "erfc": tf.math.erfc,
    "lgamma(1 + abs)": lambda t: tf.math.lgamma(1 + tf.abs(t)),
    "sqrt(1 + square)": lambda t: tf.sqrt(1 + t * t),
    "log(1 + square)": lambda t: tf.math.log(1 + t * t),
    "log(1 - exp(-abs))": lambda t: tf.math.log(1 - tf.exp(-tf.abs(t))),
    "softmax": tf.nn.softmax,
    "log_softmax": tf.nn.log_softmax,
    "1 - softmax": lambda t: 1 - tf.nn.softmax(t),
    "relu": tf.nn.relu,
    "elu": tf.nn.elu,
    "clip": lambda t: tf.clip_by_value(t, -1.0, 1.0),
    "t > 0": lambda t: tf.cast(t > 0, t.dtype),
    "stop_gradient": tf.stop_gradient,
    "mean": _mean,
    "sum": _total,
    "-sum": lambda t: -_total(t),
    "max": _largest,
    "deviation": _deviation,
    "norm": _norm,
    "t - mean": lambda t: t - _mean(t),
    "t - max": lambda t: t - _largest(t),
    "t / sum": lambda t: t / _total(t),
    "t / max": lambda t: t / _largest(t),
    "t / norm": lambda t: t / _norm(t),
    "sum of exp": lambda t: _total(tf.exp(t)),
    "log-sum of exp": lambda t: tf.math.log(_total(tf.exp(t))),
    "max of exp": lambda t: _largest(tf.exp(t)),
    "mean of squares": lambda t: _mean(tf.square(t)),
    "cumsum": lambda t: tf.cumsum(t, -1),
    "cumsum of exp": lambda t: tf.cumsum(tf.exp(t), -1),
    "reverse": lambda t: tf.reverse(t, [-1]),
    "t[:, :1]": lambda t: t[:, :1],
    "mean over rows": lambda t: tf.reduce_mean(t, 0, keepdims=True),
}
TWO: dict[str, Function] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a / b": lambda a, b: a / b,
    "-a / b": lambda a, b: -a / b,
    "a / -b": lambda a, b: a / -b,
    "(a - b) ** 2": lambda a, b: (a - b) ** 2,
    "squared_difference": tf.math.squared_difference,
    "a * a - b * b": lambda a, b: a * a - b * b,
    "abs(a) ** b": lambda a, b: tf.abs(a) ** b,
    "maximum": tf.maximum,
    "exp(a - b)": lambda a, b: tf.exp(a - b),
    "log(abs(a / b))": lambda a, b: tf.math.log(tf.abs(a / b)),
    "log(exp(a) + exp(b))": lambda a, b: tf.math.log(tf.exp(a) + tf.exp(b)),
    "log(abs(exp(a) - exp(b)))": lambda a, b: tf.math.log(
        tf.abs(tf.exp(a) - tf.exp(b))
    ),
    "exp(a) / (exp(a) + exp(b))": lambda a, b: tf.exp(a) / (tf.exp(a) + tf.exp(b)),
    "sqrt(a * a + b * b)": lambda a, b: tf.sqrt(a * a + b * b),
    "sqrt(abs(a * b))": lambda a, b: tf.sqrt(tf.abs(a * b)),
    "a / (a + b)": lambda a, b: a / (a + b),
    "(a - b) / (a + b)": lambda a, b: (a - b) / (a + b),
    "1 - a / b": lambda a, b: 1 - a / b,
    "1 / a - 1 / b": lambda a, b: 1 / a - 1 / b,
    "sigmoid(a) - sigmoid(b)": lambda a, b: tf.sigmoid(a) - tf.sigmoid(b),
    "tanh(a) - tanh(b)": lambda a, b: tf.tanh(a) - tf.tanh(b),
    "xlogy(abs(a), abs(b))": lambda a, b: tf.math.xlogy(tf.abs(a), tf.abs(b)),
    "divide_no_nan": tf.math.divide_no_nan,
    "a where a > 0, or b": lambda a, b: tf.where(a > 0, a, b),
    "b where a > 0, or 0": lambda a, b: tf.where(a > 0, b, 0 * b),
    "sum(a * softmax(b))": lambda a, b: _total(a * tf.nn.softmax(b)),
    "sum(a * b) / sum(b)": lambda a, b: _total(a * b) / _total(b),
    "sum(a / b) / sum(1 / b)": lambda a, b: _total(a / b) / _total(1 / b),
    "a covariance": lambda a, b: _mean(a * b) - _mean(a) * _mean(b),
    "a cosine": _cosine,
    "a / sum(b)": lambda a, b: a / _total(b),
}
THREE: dict[str, Function] = {
    "(a - b) / c": lambda a, b, c: (a - b) / c,
    "(a - b) / (a - c)": lambda a, b, c: (a - b) / (a - c),
    "(a + b) / (a + c)": lambda a, b, c: (a + b) / (a + c),
    "a * b + c": lambda a, b, c: a * b + c,
    "a - b * c": lambda a, b, c: a - b * c,
    "a * b / c": lambda a, b, c: a * b / c,
    "(a - b) ** 2 / c": lambda a, b, c: (a - b) ** 2 / c,
    "exp of -(a - b) ** 2 / c": lambda a, b, c: tf.exp(-((a - b) ** 2) / c),
    "log(a * b + c)": lambda a, b, c: tf.math.log(tf.abs(a * b + c)),
    "b where a > 0, or c": lambda a, b, c: tf.where(a > 0, b, c),
    "sum(a * b) / sum(a * c)": lambda a, b, c: _total(a * b) / _total(a * c),
}
_TABLES = ONE, TWO, THREE


class Sequence(NamedTuple):
    """A formula of three tensors."""

    text: str
    function: Function
    args: list[np.ndarray]


def make(seed: int) -> Sequence:
    """Returns the formula of a number."""
    drawn = Drawn(seed)
    steps = []
    for before in range(drawn.rng.integers(2, 7)):
        count = 1 + int(drawn.rng.choice(3, p=_COUNTS))
        function = drawn.one(_TABLES[count - 1])
        places = [_place(drawn, before) for _ in range(count)]
        drawn.words.append(f"of {places};")
        steps.append((function, places))

    def whole(x: tf.Tensor, u: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
        made = [x, u, z]
        for function, places in steps:
            made.append(function(*(made[place] for place in places)))
        return made[-1]

    args = [
        drawn.rng.uniform(0.1, 2.0, (ROWS, COLUMNS))
        * drawn.rng.choice([1, 1, -1], (ROWS, COLUMNS))
        for _ in range(3)
    ]
    return Sequence(" ".join(drawn.words), whole, [x.astype("f") for x in args])


def _place(drawn: Drawn, before: int) -> int:
    """Returns which of the tensors, or of the last three results, is taken."""
    if before and drawn.rng.random() < _FROM_BEFORE:
        return 3 + int(drawn.rng.integers(max(0, before - 3), before))
    return int(drawn.rng.integers(3))
