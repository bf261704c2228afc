"""What a formula of the collection is, and how its exact value is computed."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import tensorflow as tf

# The step of the exact derivative: small beside every input, far above 10 ** -DIGITS.
DIGITS = 300
STEP = mpmath.mpf(10) ** -40
# How far a right answer may be from the exact one, relative to the largest element.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-4, "float64": 1e-9}


@dataclasses.dataclass(frozen=True, eq=False)
class Formula:
    """One formula as people write it.

    Attributes:
      name: Unique, in words.
      function: The TensorFlow function, of as many tensors as `bad` has arrays.
      exact: The same of NumPy arrays of mpmath numbers, summed to one number.
      bad: Arrays on which the plain function has a wrong value or gradient in eager
        mode, in a graph or under XLA.
      ordinary: Arrays on which it is right.
      dtype: Of the floating arguments.
      slopes: `"exact"`; or `"finite"` where the formula has no derivative at `bad`, so
        that any finite number will do.
      reason: Why `stabilize` cannot repair it; empty where it does.
      finding: Type of the operation that the checks name at `bad`, for such a formula.
      by_hand: The formula with the op that repairs it by hand.
    """

    name: str
    function: Callable[..., tf.Tensor]
    exact: Callable[..., Any]
    bad: Sequence[Any]
    ordinary: Sequence[Any]
    dtype: str = "float32"
    slopes: str = "exact"
    reason: str = ""
    finding: str = ""
    by_hand: Callable[..., tf.Tensor] | None = None

    def tensors(self, arrays: Sequence[Any]) -> list[tf.Tensor]:
        """Returns the arguments; masks and whole numbers keep their dtype."""
        return [
            tf.cast(tf.constant(a), self.dtype)
            if a.dtype.kind == "f"
            else tf.constant(a)
            for a in map(np.asarray, arrays)
        ]

    def truth(self, arrays: Sequence[Any]) -> tuple[float, list[np.ndarray]]:
        """Returns the exact value and the exact slopes in the floating arguments."""
        args = [t.numpy() for t in self.tensors(arrays)]
        floats = [
            i
            for i, a in enumerate(args)
            if not issubclass(a.dtype.type, np.integer) and a.dtype != bool
        ]
        with mpmath.workdps(DIGITS):
            exact = [as_mp(a) if i in floats else a for i, a in enumerate(args)]
            value = self._sum(exact)
            slopes = []
            for i in floats:
                slope = np.zeros(exact[i].shape, object)
                for place in np.ndindex(exact[i].shape):
                    sides = []
                    for step in (STEP, -STEP):
                        moved = list(exact)
                        moved[i] = exact[i].copy()
                        moved[i][place] += step
                        sides.append(self._sum(moved))
                    slope[place] = (sides[0] - sides[1]) / (2 * STEP)
                slopes.append(slope.astype(float))
            return float(value), slopes

    def _sum(self, args: Sequence[Any]) -> Any:
        return np.sum(np.asarray(self.exact(*args), object))


def as_mp(array: np.ndarray) -> np.ndarray:
    """Returns an array of mpmath numbers."""
    out = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        out[place] = mpmath.mpf(float(array[place]))
    return out


class _Functions:
    """mpmath's functions, element by element."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return np.frompyfunc(getattr(mpmath, name), _ARITY.get(name, 1), 1)


_ARITY = {"atan2": 2, "besseli": 2, "polygamma": 2, "beta": 2, "power": 2}
m = _Functions()


def off_zero(x: Any) -> Any:
    """Moves exact zeros by far less than a digit, for removable singularities."""
    return np.where(np.equal(x, 0), STEP * STEP, x)
