"""Mean and variance of data that come in batches, and normalization by them.

Both are kept in float64: a time stamp of 1.7e9 has no digit after the point in float32.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

# Number of values that are converted to float64 at a time.
_CHUNK = 1 << 20


class Moments:
    """Mean and variance of the finite values of each feature.

    Args:
      axes: Axes of the features, not negative, in order. The others are summed over.

    Attributes:
      count: Finite values so far, for each feature.
      skipped: NaN and infinite values so far, for each feature.
    """

    def __init__(self, axes: Sequence[int]):
        self._axes = tuple(axes)
        self.count: Any = np.int64(0)
        self.skipped: Any = np.int64(0)
        self._mean: Any = np.float64(0)
        self._squares: Any = np.float64(0)
        self._lowest: Any = np.float64(np.inf)
        self._highest: Any = np.float64(-np.inf)

    @property
    def mean(self) -> np.ndarray:
        """The mean of the finite values; exact where they are all equal."""
        return np.where(self._is_constant(), self._lowest, self._mean)

    @property
    def variance(self) -> np.ndarray:
        """The mean square of the deviations; exactly 0 where all values are equal."""
        return np.where(self._is_constant(), 0.0, self._squares / self.count)

    def update(self, values: np.ndarray) -> None:
        """Adds one batch."""
        rows = 1
        if values.ndim and 0 not in self._axes:
            rows = -(-values.size // _CHUNK)
        for chunk in np.array_split(values, rows) if rows > 1 else [values]:
            self._add(np.asarray(chunk, np.float64))

    def _add(self, values: np.ndarray) -> None:
        over = tuple(axis for axis in range(values.ndim) if axis not in self._axes)
        finite = np.isfinite(values)
        count = finite.sum(over)
        self._lowest = np.minimum(
            self._lowest, values.min(over, initial=np.inf, where=finite)
        )
        self._highest = np.maximum(
            self._highest, values.max(over, initial=-np.inf, where=finite)
        )
        self.skipped = self.skipped + (~finite).sum(over)
        # Chan's formula; the sums of a batch are those of its centred values.
        divisor = np.maximum(count, 1)
        mean = values.sum(over, where=finite) / divisor
        centred = np.where(finite, values, 0.0) - np.expand_dims(mean, over)
        squares = np.square(centred).sum(over, where=finite)
        total = self.count + count
        fraction = count / np.maximum(total, 1)
        step = mean - self._mean
        self._mean = self._mean + step * fraction
        self._squares = self._squares + squares + step**2 * fraction * self.count
        self.count = total

    def _is_constant(self) -> Any:
        return self._lowest == self._highest


def normalize(x: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    """Computes `(x - mean) / sqrt(variance)`, and `x - mean` where the variance is 0.

    Args:
      x: Tensor of float32 or float64, whose dtype is that of the result.
      mean: Tensor of float64, of a shape that broadcasts to that of `x`.
      variance: The same.

    Returns:
      `Tensor` with the dtype of `x`.
    """
    head, tail = _split(mean, x.dtype)
    return ((x - head) - tail) / _deviation(variance, x.dtype)


def denormalize(x: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    """Computes the inverse of `normalize`."""
    head, tail = _split(mean, x.dtype)
    return head + (tail + x * _deviation(variance, x.dtype))


def _split(mean: tf.Tensor, dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the part of a float64 mean that float32 holds, and the rest.

    The rest is up to 64 for a time stamp. Dekker's splitting: two casts would do, but
    XLA removes them.
    """
    large = mean * (2.0**29 + 1)
    head = large - (large - mean)
    return tf.cast(head, dtype), tf.cast(mean - head, dtype)


def _deviation(variance: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    is_constant = tf.equal(variance, 0)
    return tf.cast(
        tf.where(is_constant, tf.ones_like(variance), tf.sqrt(variance)), dtype
    )
