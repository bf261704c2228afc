"""One run of a function of one or two numbers, with everything that is asked of it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import tensorflow as tf

from tests.support import modes, oracle

INF = float("inf")
NAN = float("nan")
# Every mode and every dtype, but not each with each: half precision takes the way of
# float32, and XLA takes its time.
PLACES = [
    *(("eager", name) for name in ("float16", "bfloat16", "float32", "float64")),
    ("graph", "bfloat16"),
    *(("xla", name) for name in ("float16", "float32")),
]


def _each_of(places: Sequence[tuple[str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("mode", "dtype"),
        [
            pytest.param(mode, tf.as_dtype(name), id=f"{mode}-{name}")
            for mode, name in places
        ],
    )


each_place = _each_of(PLACES)
# For one test of each op: under XLA float64 has kernels of its own.
each_place_and_xla_float64 = _each_of([*PLACES, ("xla", "float64")])


def derivatives(
    function: Callable[..., tf.Tensor], args: Sequence[tf.Tensor], mode: str
) -> list[tf.Tensor]:
    """Returns the value, the slopes, and the second derivatives in one flat list.

    In one compilation, because XLA takes its time for each.
    """

    def run(*args: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(args)
            with tf.GradientTape() as inner:
                inner.watch(args)
                value = function(*args)
            slopes = inner.gradient(value, list(args))
        seconds = [
            outer.gradient(slope, list(args), unconnected_gradients="zero")
            for slope in slopes
        ]
        return [value, *slopes, *(each for row in seconds for each in row)]

    return modes.compile_for(mode, run)(*args)


def errors(
    function: Callable[..., tf.Tensor],
    args: Sequence[tf.Tensor],
    truths: Sequence[Callable[..., Any] | None],
    mode: str,
) -> list[float]:
    """Returns the errors of `derivatives` in ulps; those without a truth are left out.

    A truth may be a pair: the second function gives the size of its terms.
    """
    result = []
    for got, truth in zip(derivatives(function, args, mode), truths, strict=True):
        if truth is None:
            continue
        truth, scale = truth if isinstance(truth, tuple) else (truth, None)
        assert got.dtype == args[0].dtype
        size = 0.0 if scale is None else abs(oracle.exact(scale, *args))
        result.append(oracle.ulp_error(got, oracle.exact(truth, *args), size))
    return result


def edges(
    function: Callable[..., tf.Tensor],
    rows: Sequence[Sequence[float]],
    dtype: tf.DType,
    mode: str,
    arguments: int = 1,
) -> tuple[list[tf.Tensor], list[tf.Tensor], list[tf.Tensor]]:
    """Returns what came out, what the rows say, and what must be 0.

    What must be 0 is that of `modes.silent_gradients`, here in the same compilation.

    Args:
      function: Of the arguments.
      rows: Numbers: the arguments, the value and the slopes.
      dtype: Of the arguments.
      mode: One of `modes.MODES`.
      arguments: Their number.
    """
    columns = [tf.constant(column, dtype) for column in zip(*rows, strict=True)]
    args, wanted = columns[:arguments], columns[arguments:]

    def run(*args: tf.Tensor) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(args)
            with tf.GradientTape(persistent=True) as inner:
                inner.watch(args)
                value = function(*args)
            firsts = inner.gradient(value, list(args), tf.zeros_like(value))
            slopes = inner.gradient(value, list(args))
        zeros = [tf.zeros_like(slope) for slope in slopes]
        seconds = [
            *outer.gradient(firsts, list(args), unconnected_gradients="zero"),
            *outer.gradient(slopes, list(args), zeros, unconnected_gradients="zero"),
        ]
        return [value, *slopes], [*firsts, *seconds]

    got, silent = modes.compile_for(mode, run)(*args)
    return got, wanted, silent
