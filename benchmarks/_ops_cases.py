"""The functions of `tfsafe.ops`, as others write them: for `benchmarks.ops`."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

TINY = 1e-6

Function = Callable[..., Any]


class Case(NamedTuple):
    """A function, as others write it.

    Attributes:
      plain: The plain form in TensorFlow.
      guarded: The form with a double `tf.where`, an epsilon or a clipping, if any.
      domains: One for each argument, of those in `benchmarks.ops`.
      options: Arguments of our function.
    """

    plain: Function
    guarded: Function | None = None
    domains: tuple[str, ...] = ("real",)
    options: dict[str, Any] = {}  # noqa: RUF012


class Twice(NamedTuple):
    """The double `tf.where` of a function whose last argument is dangerous."""

    function: Function
    holds: Function
    stand_in: float = 1.0

    def __call__(self, *args: tf.Tensor) -> tf.Tensor:
        *others, x = args
        is_safe = self.holds(x)
        shown = tf.where(is_safe, x, tf.cast(self.stand_in, x.dtype))
        value = self.function(*others, shown)
        return tf.where(is_safe, value, tf.zeros_like(value))


def clipped(function: Function, low: float, high: float) -> Function:
    return lambda x: function(tf.clip_by_value(x, low, high))


def is_positive(x: tf.Tensor) -> tf.Tensor:
    return x > 0


def is_not_zero(x: tf.Tensor) -> tf.Tensor:
    return tf.not_equal(x, 0)


def cosh_guarded(x: tf.Tensor) -> tf.Tensor:
    return x + tf.nn.softplus(-2 * x) - math.log(2)


def sinc_plain(x: tf.Tensor) -> tf.Tensor:
    return tf.sin(math.pi * x) / (math.pi * x)


def elu_guarded(x: tf.Tensor) -> tf.Tensor:
    return tf.where(x > 0, x, tf.math.expm1(tf.where(x > 0, tf.zeros_like(x), x)))


def sigmoid_guarded(x: tf.Tensor) -> tf.Tensor:
    return 1 / (1 + tf.exp(-tf.clip_by_value(x, -15.0, 15.0)))


def add_exp_guarded(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return tf.maximum(x, y) + tf.math.log1p(tf.exp(-tf.abs(x - y)))


def sub_exp_guarded(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return x + tf.math.log1p(-tf.exp(tf.minimum(y - x, -TINY)))


def length(x: tf.Tensor, epsilon: float = 0.0) -> tf.Tensor:
    return tf.sqrt(tf.reduce_sum(tf.square(x), -1) + epsilon)


def cosine_plain(a: tf.Tensor, b: tf.Tensor, epsilon: float = 0.0) -> tf.Tensor:
    return tf.reduce_sum(a * b, -1) / (length(a, epsilon) * length(b, epsilon))


def angle_plain(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return tf.acos(cosine_plain(a, b))


def angle_guarded(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    cosine = cosine_plain(a, b, TINY)
    return tf.acos(tf.clip_by_value(cosine, -1 + 1e-3, 1 - 1e-3))


def softmax_plain(x: tf.Tensor) -> tf.Tensor:
    powers = tf.exp(x)
    return powers / (tf.reduce_sum(powers, -1, keepdims=True) + TINY)


def kl_plain(p: tf.Tensor, q: tf.Tensor, epsilon: float = 0.0) -> tf.Tensor:
    return tf.reduce_sum(p * tf.math.log((p + epsilon) / (q + epsilon)), -1)


def entropy_plain(p: tf.Tensor, epsilon: float = 0.0) -> tf.Tensor:
    return -tf.reduce_sum(p * tf.math.log(p + epsilon), -1)


def std_guarded(x: tf.Tensor) -> tf.Tensor:
    return tf.sqrt(tf.math.reduce_variance(x, -1) + TINY)


def with_epsilon(function: Function) -> Function:
    return functools.partial(function, epsilon=TINY)


def rows(function: Function) -> Function:
    return functools.partial(function, axis=-1)


_POSITIVE = ("positive",)
_UNIT = ("unit",)
_ROWS = {"axis": -1}
CASES = {
    "control": Case(tf.tanh),
    "acos": Case(tf.acos, clipped(tf.acos, -0.999, 0.999), _UNIT),
    "acosh": Case(tf.acosh, Twice(tf.acosh, lambda x: x > 1, 2.0), ("above 1",)),
    "asin": Case(tf.asin, clipped(tf.asin, -0.999, 0.999), _UNIT),
    "atan2": Case(
        tf.math.atan2, Twice(tf.math.atan2, is_not_zero), ("positive", "positive")
    ),
    "atanh": Case(tf.atanh, clipped(tf.atanh, -0.999, 0.999), _UNIT),
    "divide": Case(tf.divide, Twice(tf.divide, is_not_zero), ("real", "positive")),
    "elu": Case(tf.nn.elu, elu_guarded),
    "erfinv": Case(tf.math.erfinv, clipped(tf.math.erfinv, -0.999, 0.999), _UNIT),
    "exp": Case(tf.exp, clipped(tf.exp, -10.0, 10.0)),
    "expm1": Case(tf.math.expm1, clipped(tf.math.expm1, -10.0, 10.0)),
    "hypot": Case(
        lambda x, y: tf.sqrt(x * x + y * y),
        lambda x, y: tf.sqrt(x * x + y * y + TINY),
        ("real", "real"),
    ),
    "log": Case(tf.math.log, Twice(tf.math.log, is_positive), _POSITIVE),
    "log1mexp": Case(
        lambda x: tf.math.log(1 - tf.exp(x)),
        Twice(lambda x: tf.math.log(1 - tf.exp(x)), lambda x: x < 0, -1.0),
        ("negative",),
    ),
    "log1p": Case(tf.math.log1p, Twice(tf.math.log1p, lambda x: x > -1), _UNIT),
    "log_add_exp": Case(
        lambda x, y: tf.math.log(tf.exp(x) + tf.exp(y)),
        add_exp_guarded,
        ("real", "real"),
    ),
    "log_cosh": Case(lambda x: tf.math.log(tf.cosh(x)), cosh_guarded),
    "log_erfc": Case(
        lambda x: tf.math.log(tf.math.erfc(x)),
        lambda x: tf.math.log(tf.math.erfc(x) + TINY),
        _UNIT,
    ),
    "log_expm1": Case(
        lambda x: tf.math.log(tf.exp(x) - 1),
        Twice(lambda x: tf.math.log(tf.exp(x) - 1), is_positive),
        _POSITIVE,
    ),
    "log_sigmoid": Case(
        tf.math.log_sigmoid, lambda x: tf.math.log(tf.sigmoid(x) + TINY)
    ),
    "log_sub_exp": Case(
        lambda x, y: tf.math.log(tf.exp(x) - tf.exp(y)),
        sub_exp_guarded,
        ("above 1", "unit"),
    ),
    "logit": Case(
        lambda x: tf.math.log(x / (1 - x)),
        clipped(lambda x: tf.math.log(x / (1 - x)), 1e-3, 0.999),
        ("probability",),
    ),
    "maximum": Case(tf.maximum, None, ("real", "real")),
    "minimum": Case(tf.minimum, None, ("real", "real")),
    "mish": Case(
        lambda x: x * tf.tanh(tf.math.log(1 + tf.exp(x))),
        lambda x: x * tf.tanh(tf.nn.softplus(x)),
    ),
    "multiply_no_nan": Case(
        tf.multiply, Twice(tf.multiply, is_not_zero), ("real", "positive")
    ),
    "pow": Case(
        tf.pow,
        lambda x, y: tf.pow(tf.maximum(x, tf.cast(1e-3, x.dtype)), y),
        ("positive", "real"),
    ),
    "pow, 0.5": Case(
        lambda x: tf.pow(x, 0.5),
        Twice(lambda x: tf.pow(x, 0.5), is_positive),
        _POSITIVE,
        {"y": 0.5},
    ),
    "pow, 3": Case(lambda x: tf.pow(x, 3.0), None, _POSITIVE, {"y": 3.0}),
    "reciprocal": Case(
        tf.math.reciprocal, Twice(tf.math.reciprocal, is_not_zero), _POSITIVE
    ),
    "rsqrt": Case(tf.math.rsqrt, Twice(tf.math.rsqrt, is_positive), _POSITIVE),
    "selu": Case(tf.nn.selu, lambda x: 1.0507 * elu_guarded(1.6733 * x)),
    "sigmoid": Case(tf.sigmoid, sigmoid_guarded),
    "sinc": Case(sinc_plain, Twice(sinc_plain, is_not_zero)),
    "sqrt": Case(tf.sqrt, Twice(tf.sqrt, is_positive), _POSITIVE),
    "squareplus": Case(
        lambda x: 0.5 * (x + tf.sqrt(x * x + 4)),
        lambda x: 0.5 * (x + tf.sqrt(tf.maximum(x * x, TINY) + 4)),
    ),
    "tanh": Case(tf.tanh, clipped(tf.tanh, -4.0, 4.0)),
    "xdivy": Case(
        tf.math.xdivy, Twice(tf.divide, is_not_zero), ("positive", "positive")
    ),
    "xlog1py": Case(
        tf.math.xlog1py,
        Twice(lambda x, y: x * tf.math.log1p(y), lambda y: y > -1),
        ("positive", "positive"),
    ),
    "xlogy": Case(
        tf.math.xlogy,
        Twice(lambda x, y: x * tf.math.log(y), is_positive),
        ("positive", "positive"),
    ),
    "clip": Case(
        lambda x: tf.clip_by_value(x, -1.0, 1.0),
        lambda x: tf.maximum(tf.minimum(x, 1.0), -1.0),
        ("real",),
        {"low": -1.0, "high": 1.0},
    ),
    "angle_between": Case(angle_plain, angle_guarded, ("real", "real"), _ROWS),
    "cosine_similarity": Case(
        cosine_plain, with_epsilon(cosine_plain), ("real", "real"), _ROWS
    ),
    "cumprod": Case(rows(tf.math.cumprod), None, _POSITIVE, _ROWS),
    "cumsum": Case(rows(tf.math.cumsum), None, ("real",), _ROWS),
    "cumulative_logsumexp": Case(
        rows(tf.math.cumulative_logsumexp), None, ("real",), _ROWS
    ),
    "distance": Case(
        lambda a, b: length(a - b),
        lambda a, b: length(a - b, TINY),
        ("real", "real"),
        _ROWS,
    ),
    "entropy": Case(
        entropy_plain, with_epsilon(entropy_plain), ("probability",), _ROWS
    ),
    "kl_divergence": Case(
        kl_plain, with_epsilon(kl_plain), ("probability", "probability"), _ROWS
    ),
    "l2_normalize": Case(
        lambda x: x / length(x)[:, tf.newaxis],
        rows(tf.math.l2_normalize),
        ("real",),
        _ROWS,
    ),
    "log_softmax": Case(
        tf.nn.log_softmax, lambda x: tf.math.log(tf.nn.softmax(x) + TINY)
    ),
    "logsumexp": Case(
        lambda x: tf.math.log(tf.reduce_sum(tf.exp(x), -1)),
        rows(tf.reduce_logsumexp),
        ("real",),
        _ROWS,
    ),
    "mean": Case(rows(tf.reduce_mean), None, ("real",), _ROWS),
    "moments": Case(lambda x: tf.nn.moments(x, [-1]), None, ("real",), {"axes": [-1]}),
    "norm": Case(rows(tf.norm), with_epsilon(length), ("real",), _ROWS),
    "normalize": Case(
        lambda x: (x / length(x)[:, tf.newaxis], length(x)),
        lambda x: tf.linalg.normalize(x + TINY, axis=-1),
        ("real",),
        _ROWS,
    ),
    "reduce_max": Case(rows(tf.reduce_max), None, ("real",), _ROWS),
    "reduce_min": Case(rows(tf.reduce_min), None, ("real",), _ROWS),
    "softmax": Case(tf.nn.softmax, softmax_plain),
    "std": Case(rows(tf.math.reduce_std), std_guarded, ("real",), _ROWS),
    "variance": Case(rows(tf.math.reduce_variance), None, ("real",), _ROWS),
}
