"""Computes pictures: a tensor as a matrix of depths, and as a few letters."""

import dataclasses

import numpy as np

from tfsafe._report.records import Picture, TensorStats, drawn_shape
from tfsafe.debugging.inspection import summary

# Magnitudes below the largest one by more than this factor are drawn as the faintest.
_DECADES = 12
# Longest side of the picture in a finding, which is to stay small.
_CELLS = 64
# The letters of a picture, by depth from -9 to 9.
_LETTERS = np.array(list("ihgfedcba0123456789"))
_NONFINITE_LETTERS = {"NaN": "N", "+Inf": "P", "-Inf": "M"}


def stats_of(name: str, array: np.ndarray) -> TensorStats:
    """Returns the statistics of an array of any numeric dtype, with its picture."""
    found = summary.stats_of(name, array)
    if not array.size:
        return found
    drawn = picture(summary.real_numbers(array))
    return dataclasses.replace(found, picture=drawn)


def picture(numbers: np.ndarray) -> Picture:
    """Draws an array of at least one element, as floats, in letters."""
    matrix = matrix_of(numbers.reshape(drawn_shape(numbers.shape)))
    levels, low, high = depths(strongest(matrix, _CELLS))
    # A rounding error may have made a whole step larger.
    heights = np.ceil((np.abs(levels) - 0.2) / 0.8 * 9 - 1e-6).clip(1, 9)
    steps = np.sign(levels) * heights
    letters = _LETTERS[steps.astype(int) + 9]
    # NaN is put last: it counts before the infinities.
    for kind, mask in reversed(masks(matrix).items()):
        letters[blocks(mask, _CELLS)] = _NONFINITE_LETTERS[kind]
    return Picture(tuple("".join(row) for row in letters), low, high)


def matrix_of(numbers: np.ndarray) -> np.ndarray:
    """Returns a matrix: all axes but the last run along its rows."""
    return numbers.reshape(-1, numbers.shape[-1] if numbers.ndim else 1)


def masks(numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Returns where an array holds which kind of non-finite value."""
    return {
        "NaN": np.isnan(numbers),
        "+Inf": np.isposinf(numbers),
        "-Inf": np.isneginf(numbers),
    }


def depths(numbers: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Maps magnitudes to depths from 0.2 to 1, with the sign; zeros and NaN to 0.

    Returns:
      The depths, and the decimal exponents that 0.2 and 1 represent.
    """
    finite = np.isfinite(numbers) & (numbers != 0)
    if not finite.any():
        return np.zeros_like(numbers), 0.0, 0.0
    logs = np.log10(np.abs(numbers[finite]))
    high = np.ceil(logs.max())
    low = max(np.floor(logs.min()), high - _DECADES)
    depth = 0.2 + 0.8 * np.clip((logs - low) / max(high - low, 1.0), 0, 1)
    found = np.zeros_like(numbers)
    found[finite] = np.sign(numbers[finite]) * depth
    # Adding 0 removes the sign of a zero.
    return found, float(low) + 0.0, float(high) + 0.0


def strongest(matrix: np.ndarray, most: int) -> np.ndarray:
    """Returns the finite element of the largest magnitude of each block."""
    finite = np.where(np.isfinite(matrix), matrix, 0.0)
    highest, lowest = blocks(finite, most), -blocks(-finite, most)
    return np.where(highest >= -lowest, highest, lowest)


def blocks(matrix: np.ndarray, most: int) -> np.ndarray:
    """Returns the largest element of each block, at most `most` blocks an axis."""
    for axis in (0, 1):
        size = matrix.shape[axis]
        if size > most:
            starts = np.linspace(0, size, most, endpoint=False).astype(int)
            matrix = np.maximum.reduceat(matrix, starts, axis=axis)
    return matrix
