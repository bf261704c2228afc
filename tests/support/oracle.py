"""The right answers: mpmath at 60 digits on the rounded input, distances in ulps."""

from collections.abc import Callable
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


def ulp_error(got: Any, truth: Any) -> float:
    """Returns the largest distance of `got` from `truth`, in units in the last place.

    The unit is that of the truth in the dtype of `got`, at least that of the
    smallest normal number: TensorFlow flushes subnormal numbers to 0. A truth beyond
    the largest finite number must be answered with infinity. Where one is NaN or
    infinite and the other is not the same, the distance is infinite.

    Args:
      got: Tensor of any shape.
      truth: Array of mpmath numbers or floats, of the same shape.
    """
    limits = LIMITS[tf.as_dtype(got.dtype).name]
    values = np.asarray(tf.cast(got, tf.float64))
    truths = np.asarray(truth, object)
    assert values.shape == truths.shape, f"{values.shape} against {truths.shape}"
    worst = 0.0
    with mpmath.workdps(DIGITS):
        for value, true in zip(values.flat, truths.flat, strict=True):
            true = mpmath.mpf(true)
            worst = max(worst, _distance(float(value), true, limits))
    return worst


def _distance(value: float, true: mpmath.mpf, limits: Any) -> float:
    if mpmath.isnan(true) or np.isnan(value):
        return 0.0 if mpmath.isnan(true) and np.isnan(value) else np.inf
    # Half an ulp above the largest number is where rounding gives infinity.
    if abs(true) >= limits.max * (1 + limits.eps / 4):
        return 0.0 if value == mpmath.sign(true) * mpmath.inf else np.inf
    if np.isinf(value):
        return np.inf
    magnitude = max(abs(true), mpmath.mpf(limits.tiny))
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
