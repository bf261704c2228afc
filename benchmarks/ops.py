"""What each function of `tfsafe.ops` costs, forward and gradient.

    python -m benchmarks.ops [--ops log softmax] [--size 1000000] [--dtype float32]

Each function is measured against the plain form in TensorFlow, and against the form
that guards itself: with a double `tf.where`, an epsilon or a clipping. Each returns
value and gradients, for an incoming gradient that is no constant. In each round the
forms run one after the other, in an order drawn anew, and the time of ours is divided
by that of the others; the table has the median and the quartiles of these ratios. The
row "control" is a plain form against itself: its distance from 1 is the noise.

The tensors are matrices with rows of 100 numbers, away from every singular point.
"""

import argparse
import functools
import math
import os
import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from benchmarks import _timing
from tfsafe import ops

COLUMNS = 100
# The most that an elementwise function may cost, over the plain form.
AIMS = {"graph": 1.3, "XLA": 1.05}
TINY = 1e-6

Function = Callable[..., Any]


class Case(NamedTuple):
    """A function, as others write it.

    Attributes:
      plain: The plain form in TensorFlow.
      guarded: The form with a double `tf.where`, an epsilon or a clipping, if any.
      domains: One for each argument, of those in `_sample`.
      options: Arguments of our function.
    """

    plain: Function
    guarded: Function | None = None
    domains: tuple[str, ...] = ("real",)
    options: dict[str, Any] = {}  # noqa: RUF012


def twice(function: Function, holds: Function, stand_in: float = 1.0) -> Function:
    """Returns the double `tf.where` of a function whose last argument is dangerous."""

    def guarded(*args: tf.Tensor) -> tf.Tensor:
        *others, x = args
        is_safe = holds(x)
        value = function(*others, tf.where(is_safe, x, tf.cast(stand_in, x.dtype)))
        return tf.where(is_safe, value, tf.zeros_like(value))

    return guarded


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
    "acosh": Case(tf.acosh, twice(tf.acosh, lambda x: x > 1, 2.0), ("above 1",)),
    "asin": Case(tf.asin, clipped(tf.asin, -0.999, 0.999), _UNIT),
    "atan2": Case(
        tf.math.atan2, twice(tf.math.atan2, is_not_zero), ("positive", "positive")
    ),
    "atanh": Case(tf.atanh, clipped(tf.atanh, -0.999, 0.999), _UNIT),
    "divide": Case(tf.divide, twice(tf.divide, is_not_zero), ("real", "positive")),
    "elu": Case(tf.nn.elu, elu_guarded),
    "erfinv": Case(tf.math.erfinv, clipped(tf.math.erfinv, -0.999, 0.999), _UNIT),
    "exp": Case(tf.exp, clipped(tf.exp, -10.0, 10.0)),
    "expm1": Case(tf.math.expm1, clipped(tf.math.expm1, -10.0, 10.0)),
    "hypot": Case(
        lambda x, y: tf.sqrt(x * x + y * y),
        lambda x, y: tf.sqrt(x * x + y * y + TINY),
        ("real", "real"),
    ),
    "log": Case(tf.math.log, twice(tf.math.log, is_positive), _POSITIVE),
    "log1mexp": Case(
        lambda x: tf.math.log(1 - tf.exp(x)),
        twice(lambda x: tf.math.log(1 - tf.exp(x)), lambda x: x < 0, -1.0),
        ("negative",),
    ),
    "log1p": Case(tf.math.log1p, twice(tf.math.log1p, lambda x: x > -1), _UNIT),
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
        twice(lambda x: tf.math.log(tf.exp(x) - 1), is_positive),
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
        tf.multiply, twice(tf.multiply, is_not_zero), ("real", "positive")
    ),
    "pow": Case(
        tf.pow,
        lambda x, y: tf.pow(tf.maximum(x, tf.cast(1e-3, x.dtype)), y),
        ("positive", "real"),
    ),
    "pow, 0.5": Case(
        lambda x: tf.pow(x, 0.5),
        twice(lambda x: tf.pow(x, 0.5), is_positive),
        _POSITIVE,
        {"y": 0.5},
    ),
    "pow, 3": Case(lambda x: tf.pow(x, 3.0), None, _POSITIVE, {"y": 3.0}),
    "reciprocal": Case(
        tf.math.reciprocal, twice(tf.math.reciprocal, is_not_zero), _POSITIVE
    ),
    "rsqrt": Case(tf.math.rsqrt, twice(tf.math.rsqrt, is_positive), _POSITIVE),
    "selu": Case(tf.nn.selu, lambda x: 1.0507 * elu_guarded(1.6733 * x)),
    "sigmoid": Case(tf.sigmoid, sigmoid_guarded),
    "sinc": Case(sinc_plain, twice(sinc_plain, is_not_zero)),
    "sqrt": Case(tf.sqrt, twice(tf.sqrt, is_positive), _POSITIVE),
    "squareplus": Case(
        lambda x: 0.5 * (x + tf.sqrt(x * x + 4)),
        lambda x: 0.5 * (x + tf.sqrt(tf.maximum(x * x, TINY) + 4)),
    ),
    "tanh": Case(tf.tanh, clipped(tf.tanh, -4.0, 4.0)),
    "xdivy": Case(
        tf.math.xdivy, twice(tf.divide, is_not_zero), ("positive", "positive")
    ),
    "xlog1py": Case(
        tf.math.xlog1py,
        twice(lambda x, y: x * tf.math.log1p(y), lambda y: y > -1),
        ("positive", "positive"),
    ),
    "xlogy": Case(
        tf.math.xlogy,
        twice(lambda x, y: x * tf.math.log(y), is_positive),
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
    "masked_mean": Case(
        lambda x, m: tf.reduce_sum(x * m, -1) / tf.reduce_sum(m, -1),
        lambda x, m: tf.reduce_sum(x * m, -1) / (tf.reduce_sum(m, -1) + TINY),
        ("real", "positive"),
        _ROWS,
    ),
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


def ours(name: str) -> Function:
    if name == "control":
        return CASES[name].plain
    function = getattr(ops, name.partition(",")[0])
    return lambda *args: function(*args, **CASES[name].options)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ops", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--size", nargs="+", type=int, default=[1_000_000])
    parser.add_argument(
        "--dtype", nargs="+", default=["float32"],
        choices=["float16", "bfloat16", "float32", "float64"],
    )  # fmt: skip
    parser.add_argument("--mode", nargs="+", default=list(AIMS), choices=list(AIMS))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(argv)
    print("| function | tensor | mode | ms, plain | over plain | over guarded | aim |")
    print("|---|---|---|---|---|---|---|")
    for name in options.ops:
        for size in options.size:
            for dtype in options.dtype:
                for mode in options.mode:
                    tensor = f"{size:,} {dtype}"
                    row = _row(mode, _times(name, size, dtype, mode, options))
                    print(f"| {name} | {tensor} | {mode} | {row} |", flush=True)


def _row(mode: str, times: dict[str, list[float]]) -> str:
    """Returns the last cells of a row."""
    milliseconds = 1e3 * statistics.median(times["plain"])
    over_plain = _timing.quartiles(times, "ours", "plain")
    cells = [f"{milliseconds:.2f}", _timing.cell(over_plain), ""]
    is_missed = over_plain[1] > AIMS[mode]
    if "guarded" in times:
        over_guarded = _timing.quartiles(times, "ours", "guarded")
        cells[-1] = _timing.cell(over_guarded)
        is_missed |= over_guarded[1] > 1
    return " | ".join([*cells, "missed" if is_missed else ""])


def _times(
    name: str, size: int, dtype: str, mode: str, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Returns the seconds of each form in each round."""
    case = CASES[name]
    rng = np.random.default_rng(0)
    shape = (max(1, size // COLUMNS), COLUMNS)
    args = [tf.cast(_sample(rng, d, shape), dtype) for d in case.domains]
    forms = {"plain": case.plain, "ours": ours(name), "guarded": case.guarded}
    runs = {
        form: _forward_and_gradient(function, args, compiled=mode == "XLA")
        for form, function in forms.items()
        if function is not None
    }
    return _timing.side_by_side(runs, options.rounds, between=0.01)


def _sample(
    rng: np.random.Generator, domain: str, shape: tuple[int, int]
) -> np.ndarray:
    if domain == "real":
        return rng.normal(scale=3, size=shape)
    low, high = {
        "positive": (0.1, 3.0),
        "negative": (-3.0, -0.1),
        "above 1": (1.1, 4.0),
        "unit": (-0.9, 0.9),
        "probability": (0.05, 0.95),
    }[domain]
    return rng.uniform(low, high, shape)


def _forward_and_gradient(
    function: Function, args: list[tf.Tensor], *, compiled: bool
) -> Callable[[], Any]:
    """Returns a function that computes the value and the gradients of all arguments."""

    @tf.function(jit_compile=compiled, autograph=False)
    def run(args: list[tf.Tensor], upstream: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(args)
            value = function(*args)
        return value, tape.gradient(value, args, upstream)

    # Not ones, of which a compiler may make use.
    upstream = tf.nest.map_structure(lambda y: 0.5 + tf.sin(y), function(*args))
    return lambda: run(args, upstream)


if __name__ == "__main__":
    main()
