"""The right answers: mpmath at 60 digits on the rounded input, distances in ulps."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import tensorflow as tf

from tfsafe._limits import LIMITS, Limits

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
    same, the distance is infinite.

    Args:
      got: Tensor of any shape.
      truth: Array of mpmath numbers or floats, of the same shape.
      scale: Where given, an array of numbers that broadcasts with `truth`: the unit is
        at least that of the number there. For sums whose terms are larger than the
        result.
    """
    limits = LIMITS[tf.as_dtype(got.dtype).name]
    values = np.asarray(tf.cast(got, tf.float64))
    truths = np.asarray(truth, object)
    assert values.shape == truths.shape, f"{values.shape} against {truths.shape}"
    scales = np.broadcast_to(np.asarray(scale, object), truths.shape)
    worst = 0.0
    with mpmath.workdps(DIGITS):
        for value, true, least in zip(
            values.flat, truths.flat, scales.flat, strict=True
        ):
            least = max(mpmath.mpf(least), mpmath.mpf(limits.tiny))
            worst = max(worst, _distance(float(value), mpmath.mpf(true), least, limits))
    return worst


def _distance(
    value: float, true: mpmath.mpf, least: mpmath.mpf, limits: Limits
) -> float:
    if mpmath.isnan(true) or np.isnan(value):
        return 0.0 if mpmath.isnan(true) and np.isnan(value) else np.inf
    # Half an ulp above the largest number is where rounding gives infinity.
    if abs(true) >= limits.max * (1 + limits.eps / 4):
        return 0.0 if value == mpmath.sign(true) * mpmath.inf else np.inf
    if np.isinf(value):
        return np.inf
    if value == 0 and abs(true) < limits.tiny:
        return 0.0
    magnitude = max(abs(true), least)
    ulp = mpmath.mpf(2) ** mpmath.floor(mpmath.log(magnitude, 2)) * limits.eps
    return float(abs(mpmath.mpf(value) - true) / ulp)


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
