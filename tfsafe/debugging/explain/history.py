"""Remembers the losses of the last steps: did they grow, or fail out of the blue."""

import collections
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe.errors import NumericsError

# Number of steps that are remembered, and the fewest that say something.
_STEPS = 50
_FEWEST = 5
# A loss that is this many times the usual one has grown.
_GROWN = 10.0


class Losses:
    """The losses of the last steps, as tensors: nothing is read before a failure."""

    def __init__(self) -> None:
        self._kept: collections.deque[tuple[Any, int]] = collections.deque(
            maxlen=_STEPS
        )

    def add(self, result: Any, averaged: int = 1) -> None:
        """Notes the loss of a step.

        Args:
          result: What the step returned: the loss, a sequence that begins with it, or
            a dict with `"loss"`; anything else is ignored.
          averaged: Number of steps that Keras' running mean is over.
        """
        if isinstance(result, dict):
            result = result.get("loss")
        elif isinstance(result, list | tuple) and result:
            result = result[0]
        if isinstance(result, tf.Tensor | np.floating | float):
            shape = getattr(result, "shape", ())
            if not tuple(shape) and getattr(result, "dtype", tf.float32) in _FLOATS:
                self._kept.append((result, averaged))

    def values(self) -> list[float]:
        """Returns the losses, oldest first; of running means, those of each step.

        Where several steps were one call, it is the mean of their losses.
        """
        found: list[float] = []
        before, steps = 0.0, 0
        for mean, count in self._read():
            # The mean before the oldest one, or before an epoch, is not known.
            if found and count > steps:
                found.append((mean * count - before * steps) / (count - steps))
            else:
                found.append(mean)
            before, steps = mean, count
        return found

    def _read(self) -> list[tuple[float, int]]:
        return [(float(np.asarray(each)), count) for each, count in self._kept]

    def note(self, error: NumericsError) -> None:
        """Adds the losses to an error, and what they show."""
        note(error, self.values())


def note(error: NumericsError, losses: Sequence[float]) -> None:
    """Adds losses to an error, and what they show; see `Losses.note`."""
    values = [each for each in losses if np.isfinite(each)]
    has_grown = len(values) > 1 and _grown(list(map(abs, values)))
    if len(values) >= _FEWEST or has_grown:
        error.add_losses(values, _words(values, error))


_FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


def _words(values: Sequence[float], error: NumericsError) -> str:
    """Says whether the loss grew, and what helps."""
    sizes = [abs(each) for each in values]
    if not _grown(sizes):
        before = f"out of the blue: the loss before was {values[-1]:.4g}."
        if error.findings and error.findings[0].origin.startswith("argument"):
            return f"{before} It is this batch: `error.inputs` has its rows."
        return (
            f"{before} Look for one unusual row in `error.inputs`, or a formula at the "
            "edge of its domain."
        )
    calm = [i for i, each in enumerate(sizes) if each <= 2 * _usual(sizes)]
    steps = len(sizes) - 1 - (calm[-1] if calm else 0)
    many = f"{steps} step{'s' * (steps > 1)}"
    rate = "" if error.learning_rate is None else f" below {error.learning_rate:.4g}"
    return (
        f"grew over {many}, from {values[-1 - steps]:.4g} to {values[-1]:.4g}: the "
        f"training diverges. Lower the learning rate{rate}, or clip the gradients "
        "(clipnorm=1.0)."
    )


def _usual(sizes: Sequence[float]) -> float:
    """Returns the size of a loss before it grew; of few, the first."""
    if len(sizes) < _FEWEST:
        return sizes[0]
    return statistics.median(sizes[: max(_FEWEST, len(sizes) // 2)])


def _grown(sizes: Sequence[float]) -> bool:
    return sizes[-1] >= _GROWN * max(_usual(sizes), 1e-30)
