"""Keeps intermediate results in range: float32 inside, scaling by powers of 2."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe._limits import LIMITS

HALF = frozenset({tf.float16, tf.bfloat16})


# An integer type of the same size, and how many of its bits are not the exponent's.
_EXPONENTS = {tf.float32: (tf.int32, 23), tf.float64: (tf.int64, 52)}


def in_float32(function: Callable[..., tf.Tensor], *args: tf.Tensor) -> tf.Tensor:
    """Returns `function(*args)`, computed in float32 where `args` have half precision.

    The casts are outside of the function's own gradient, so that the gradient runs in
    float32 as well and is rounded once.
    """
    dtype = args[0].dtype
    if dtype not in HALF:
        return function(*args)
    return tf.cast(function(*(tf.cast(arg, tf.float32) for arg in args)), dtype)


def runs_in_float32(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """Returns the function of tensors for which `in_float32` calls `function`."""

    @functools.wraps(function)
    def call(*args: tf.Tensor) -> tf.Tensor:
        return in_float32(function, *args)

    return call


def wide(x: Any) -> tf.Tensor:
    """Converts to float32, but float64 stays."""
    x = tf.convert_to_tensor(x)
    return x if x.dtype == tf.float64 else tf.cast(x, tf.float32)


def scaled(
    x: tf.Tensor, axis: Sequence[int] | None, least: float = 0.0
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Divides `x` by a power of 2, so that the largest magnitude is near 1.

    Nothing is rounded. Neither the power nor its inverse is subnormal, which leaves
    the largest magnitude along `axis` between 1 and 4. Where that magnitude is 0,
    infinite or NaN, and without elements the power is 1.

    Args:
      x: Tensor of float32 or float64.
      axis: Axes that have one power; by default all of them.
      least: The largest magnitude counts as at least this.

    Returns:
      `x / power`, `power` and `1 / power`; the powers have size 1 along `axis`.
    """
    # Not of `abs(x)`, which would take memory.
    highest = reduce_in_runs(tf.reduce_max, x, axis)
    largest = tf.maximum(highest, -reduce_in_runs(tf.reduce_min, x, axis))
    usable = tf.logical_and(largest > 0, tf.math.is_finite(largest))
    limit = tf.constant(1 / LIMITS[x.dtype.name].tiny, x.dtype)
    largest = tf.where(usable, tf.minimum(largest, limit), tf.ones_like(largest))
    if least:
        largest = tf.maximum(largest, tf.constant(least, x.dtype))
    # A float with all other bits 0 is the power of 2 below it. By a shift, because
    # TensorFlow Lite has no bitwise "and".
    integer, other = _EXPONENTS[x.dtype]
    bits = tf.bitcast(largest, integer)
    exponent = tf.bitwise.right_shift(bits, tf.constant(other, integer))
    power = tf.bitcast(exponent * (1 << other), x.dtype)
    inverse = 1 / power
    # Not a quotient, which XLA would merge with a division that follows.
    return x * inverse, power, inverse


def contracted(
    function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    a: tf.Tensor,
    b: tf.Tensor,
    factor: float,
) -> tf.Tensor:
    """Returns `factor * function(a, b)` of a contraction that may overflow.

    The larger of the two is multiplied by the power of 2 in the factor beforehand.
    """
    power = 2.0 ** (math.frexp(factor)[1] - 1)
    one, down = (tf.constant(each, a.dtype) for each in (1, power))
    sizes = [tf.reduce_max(tf.abs(tf.stop_gradient(each))) for each in (a, b)]
    is_first = sizes[0] > sizes[1]
    made = function(
        a * tf.where(is_first, down, one), b * tf.where(is_first, one, down)
    )
    return made if factor == power else made * tf.constant(factor / power, a.dtype)


def reduce_in_runs(
    reduce: Callable[..., tf.Tensor], x: tf.Tensor, axis: Sequence[int] | None
) -> tf.Tensor:
    """Reduces over one run of neighbouring axes after another.

    For a maximum, or for a mean of means of equally many. A reduction over axes that
    others lie between takes seven times as long.

    Returns:
      The reduction, with size 1 along the axes.
    """
    runs: list[Any] = []
    for each in axis or ():
        if runs and runs[-1][-1] == each - 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    for run in runs or [axis]:
        x = reduce(x, run, keepdims=True)
    return x


def drop(value: tf.Tensor, axis: Sequence[int] | None) -> tf.Tensor:
    """Removes the axes that a reduction over `axis` left with size 1."""
    # `tf.squeeze` takes an empty list for "every axis of size 1".
    return value if axis == [] else tf.squeeze(value, axis)
