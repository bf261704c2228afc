"""One run of a function of one or two numbers, with everything that is asked of it."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle

INF = float("inf")
NAN = float("nan")
# A step so small that every digit of it counts; on both sides of 0.25, 0.5 and 1.
NEAR_0 = [2.0**-40, -(2.0**-30), 0.2, -0.2, 0.3, -0.3, 0.6, -0.6, 0.9, 1.1, 3.0]
NEAR_1 = [1 + 2.0**-40, 0.8, 1.2, 0.7, 1.3, 0.4, 3.0]
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


def check_derivatives(
    function: Callable[..., tf.Tensor],
    exact: Callable[..., Any],
    columns: Sequence[Sequence[float]],
) -> None:
    """Compares value, slopes and second derivatives with those of mpmath, in float64.

    Args:
      function: Of tensors.
      exact: The same for numbers of mpmath.
      columns: Numbers of each argument.
    """
    got = derivatives(function, [tf.constant(x, tf.float64) for x in columns], "eager")
    points = list(zip(*columns, strict=True))
    unit = np.eye(len(columns), dtype=int)
    orders = [0 * unit[0], *unit, *(a + b for a, b in itertools.product(unit, unit))]
    truths = [np.array([_exact(exact, x, order) for x in points]) for order in orders]
    assert oracle.ulp_error(got[0], truths[0]) <= 64
    # Just beyond a switch the terms of a curvature are up to some 500 times as large.
    size = sum(abs(each) for each in truths)
    for derivative, truth in zip(got[1:], truths[1:], strict=True):
        assert oracle.ulp_error(derivative, truth, size) <= 2048


def _exact(
    exact: Callable[..., Any], point: Sequence[float], order: Sequence[int]
) -> Any:
    # As many digits more as the numbers are far from 1: the step is below them all.
    beyond = max(abs(math.log10(abs(x) or 1)) for x in point)
    with mpmath.workdps(oracle.DIGITS + 3 * int(beyond)):
        return mpmath.re(mpmath.diff(exact, point, tuple(map(int, order))))


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
