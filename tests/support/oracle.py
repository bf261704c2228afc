"""The right answers: mpmath at 60 digits on the rounded input, distances in ulps."""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import tensorflow as tf

from tfsafe._limits import LIMITS

DIGITS = 60


def exact(function: Callable[..., Any], *args: Any) -> np.ndarray:
    """Evaluates `function` elementwise at 60 digits.

    Args:
      function: Of mpmath numbers, returns one.
      *args: Tensors of one shape, already rounded to the dtype under test.

    Returns:
      Object array of mpmath numbers.
    """
    arrays = [np.asarray(tf.cast(a, tf.float64)) for a in args]
    result = np.empty(arrays[0].shape, object)
    with mpmath.workdps(DIGITS):
        for index in np.ndindex(*arrays[0].shape):
            point = [mpmath.mpf(float(a[index])) for a in arrays]
            result[index] = mpmath.mpf(function(*point))
    return result


def exact_rows(function: Callable[..., Any], *args: Any) -> np.ndarray:
    """Evaluates `function` on each row (the last axis) at 60 digits.

    Args:
      function: Of lists of mpmath numbers, one for each argument; returns a number or
        a list.
      *args: Tensors of one shape, already rounded to the dtype under test.

    Returns:
      Object array of mpmath numbers, with one number or one list for each row.
    """
    arrays = [np.asarray(tf.cast(a, tf.float64)) for a in args]
    lead = arrays[0].shape[:-1]
    rows = []
    with mpmath.workdps(DIGITS):
        for index in np.ndindex(*lead):
            lists = [[mpmath.mpf(float(v)) for v in a[index]] for a in arrays]
            rows.append(function(*lists))
    result = np.array(rows, object)
    return result.reshape(*lead, *result.shape[1:])


def ulp_error(got: Any, truth: Any, scale: Any = 0.0) -> float:
    """Returns the largest distance of `got` from `truth`, in units in the last place.

    The unit is that of the truth in the dtype of `got`, at least that of the
    smallest normal number. A truth below that number may be answered with 0, because
    TensorFlow flushes subnormal numbers. A truth beyond the largest finite number must
    be answered with infinity. Where one is NaN or infinite and the other is not the
    same, the distance is infinite, and so it is of whole numbers that differ.

    Args:
      got: Tensor of any shape.
      truth: Array of mpmath numbers or floats, of the same shape.
      scale: Where given, an array of numbers that broadcasts with `truth`: the unit is
        at least that of the number there. For sums whose terms are larger than the
        result.
    """
    return float(_distances(got, truth, scale, got.dtype).max(initial=0))


def assert_close(
    got: Any,
    truth: Any,
    ulps: float = 4.0,
    *,
    why: str = "",
    scale: Any = 0.0,
    dtype: Any = None,
) -> None:
    """Asserts that `got` is within `ulps` of `truth`, by the units of `ulp_error`.

    Args:
      got: Tensor, array or number, or a list or dictionary of them.
      truth: Numbers of the same shapes, which are not broadcast, or one for all.
      ulps: The largest distance to accept.
      why: The reason for a distance of more than 4, which must have one.
      scale: As in `ulp_error`, the largest term of a sum that is smaller than it.
      dtype: Whose unit it is, where that is not the dtype of `got`.
    """
    assert ulps <= 4 or why, f"{ulps} ulps are more than 4: give the reason in `why`"
    is_one = isinstance(truth, int | float)
    if isinstance(got, list | tuple | dict):
        keys = got if isinstance(got, dict) else range(len(got))
        count = len(got) if is_one else len(truth)
        assert count == len(got), f"{len(got)} results against {count}"
        for key in keys:
            part = truth if is_one else truth[key]
            assert_close(got[key], part, ulps, why=why, scale=scale, dtype=dtype)
        return
    if is_one:
        truth = np.full(np.shape(got), truth)
    dtype = tf.as_dtype(dtype or getattr(got, "dtype", "float64"))
    distances = _distances(got, truth, scale, dtype)
    if distances.max(initial=0) > ulps:
        worst = np.unravel_index(distances.argmax(), distances.shape)
        raise AssertionError(
            f"{distances[worst]:.4g} ulps of {dtype.name} apart, where {ulps:g} are "
            f"accepted: {_wide(got)[worst]!s} and not {_wide(truth)[worst]!s}, "
            f"at {tuple(map(int, worst))} of {distances.shape}"
        )


def assert_slopes_are_differences(
    function: Callable[..., tf.Tensor], args: Sequence[tf.Tensor], *ulps: float
) -> list[np.ndarray]:
    """Asserts that the gradients of a function agree with finite differences.

    Args:
      function: Of tensors of float64; returns one.
      args: The point.
      *ulps: The largest distance to accept for each argument, in ulps of 1 or more.

    Returns:
      The gradients.
    """
    slopes, differences = tf.test.compute_gradient(function, args, delta=1e-5)
    why = "the finite difference it is compared with"
    for slope, difference, most in zip(slopes, differences, ulps, strict=True):
        assert_close(slope, difference, most, why=why, scale=1.0)
    return slopes


def _distances(got: Any, truth: Any, scale: Any, dtype: Any) -> np.ndarray:
    value, true = _wide(got), _wide(truth)
    assert value.shape == true.shape, f"{value.shape} against {true.shape}"
    if not tf.as_dtype(dtype).is_floating:
        return np.where(value == true, 0, np.inf)
    limits = LIMITS[tf.as_dtype(dtype).name]
    # Half an ulp above the largest number is where rounding gives infinity.
    beyond = abs(true) >= np.longdouble(limits.max) * (1 + limits.eps / 4)
    true = np.where(beyond, np.copysign(np.inf, true), true)
    same = (value == true) | (np.isnan(value) & np.isnan(true))
    same |= (value == 0) & (abs(true) < limits.tiny)
    finite = np.isfinite(value) & np.isfinite(true)
    magnitude = np.maximum(np.maximum(abs(true), _wide(scale)), limits.tiny)
    magnitude = np.minimum(magnitude, np.finfo(np.float64).max)
    # The power of 2 below the magnitude, exactly.
    ulp = np.ldexp(np.longdouble(limits.eps), np.frexp(magnitude)[1] - 1)
    with np.errstate(invalid="ignore"):
        distance = abs(value - true) / ulp
    return np.where(same, 0, np.where(finite, distance, np.inf))


def _wide(numbers: Any) -> np.ndarray:
    """Returns numbers, of mpmath too, with the 64 bits of a long double."""
    # NumPy makes no array of a bfloat16 tensor without axes.
    is_tensor = tf.is_tensor(numbers)
    array = np.asarray(tf.cast(numbers, tf.float64) if is_tensor else numbers)
    if array.dtype != object:
        return array.astype(np.longdouble)
    with mpmath.workdps(DIGITS), np.errstate(invalid="ignore", over="ignore"):
        high = array.astype(np.float64)
        rest = np.where(np.isfinite(high), array - high, 0).astype(np.float64)
    return high + rest.astype(np.longdouble)


def grid(dtype: tf.DType, low: float, high: float, count: int = 60) -> tf.Tensor:
    """Returns points from `low` to `high` in equal ratios, rounded to `dtype`.

    Args:
      dtype: Floating dtype.
      low: First point, positive.
      high: Last point, above `low`.
      count: Number of points.
    """
    return tf.cast(tf.constant(np.geomspace(low, high, count)), dtype)


# The largest error in ulps that a test accepts, for (function, dtype, mode).
# Measured on TensorFlow 2.16 and 2.21 on a CPU, with room for a third of it.
BUDGETS = {
    # Computed in float32 and rounded once.
    ("*", "float16", "*"): 0.51,
    ("*", "bfloat16", "*"): 0.51,
    ("*", "float32", "*"): 3.0,
    ("*", "float64", "*"): 3.0,
    # The second derivative goes through two quotients and two roots.
    ("sqrt", "float64", "*"): 4.0,
    # A projection: the difference of two terms as large as the row's largest.
    ("norm, second order", "float32", "*"): 8.0,
    ("norm, second order", "float64", "*"): 8.0,
    # Rounding of a sum of exponentials, of its logarithm, and of their products.
    # A sum of squares of differences.
    ("moments", "float32", "*"): 4.0,
    ("moments", "float64", "*"): 4.0,
    ("softmax", "float32", "*"): 5.0,
    ("softmax", "float64", "*"): 5.0,
    ("log_softmax", "float32", "*"): 5.0,
    ("log_softmax", "float64", "*"): 5.0,
}


def budget(function: str, dtype: tf.DType, mode: str) -> float:
    """Returns the budget of `function`, or else that of its dtype, in ulps."""
    for name, place in ((function, mode), (function, "*"), ("*", mode), ("*", "*")):
        if (name, dtype.name, place) in BUDGETS:
            return BUDGETS[name, dtype.name, place]
    raise KeyError(dtype.name)
