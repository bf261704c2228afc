"""Mean and variance of data that come in batches, in float64."""

from collections.abc import Sequence
from typing import Any

import numpy as np

# So many numbers are converted to float64 at a time.
_CHUNK = 1 << 20


class Moments:
    """Mean and variance of the finite values of each feature.

    Args:
      axes: Those that tell features apart, not negative, in order. The others are
        summed over.

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

    def check(self) -> None:
        """Refuses features of which nothing is known.

        Raises:
          ValueError: If a feature has no finite value.
        """
        empty = np.argwhere(np.equal(self.count, 0))
        if len(empty):
            features = ", ".join(str(tuple(map(int, index))) for index in empty[:3])
            raise ValueError(
                "Every feature of `data` must have a finite value. Received none in "
                f"{len(empty)} of {self.count.size} features, at index {features}. "
                "Leave such features out."
            )

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
        share = count / np.maximum(total, 1)
        step = mean - self._mean
        self._mean = self._mean + step * share
        self._squares = self._squares + squares + step**2 * share * self.count
        self.count = total

    def _is_constant(self) -> Any:
        return self._lowest == self._highest
