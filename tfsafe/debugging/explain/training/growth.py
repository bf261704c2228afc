"""Measures how far training has moved the weights, where a bounded loss fails."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfsafe.debugging.explain.training.history import EXPLODED, GREW, is_of_size
from tfsafe.debugging.state.variables import Slot
from tfsafe.errors import NumericsError
from tfsafe.ops.nn import clipping

# Weights that training has made this many times as large have grown, if each step has
# added this part of their first norm.
_GROWN = 2.0
_OF_EACH_STEP = 0.05


class Growth:
    """The growth of weights since now.

    Nothing is read before a failure.

    Args:
      slots: The variables of a function; those that are trained count.
    """

    def __init__(self, slots: Sequence[Slot]):
        self._slots = [
            each for each in slots if each.is_trainable and each.dtype.is_floating
        ]
        self._halves = self._halves_of_squares()

    def note(self, error: NumericsError, steps: int) -> None:
        """Adds that the weights have grown, and what helps; see `is_of_size`.

        Args:
          error: The error of a step; the variables are as before it.
          steps: Number of steps since the beginning.
        """
        first = error.findings[0] if error.findings else None
        if not steps or first is None or not is_of_size(first):
            return
        if EXPLODED in first.suggestion:
            # A batch may be that large itself: the losses before tell the two apart.
            return
        before, now = (
            float(np.sqrt(np.sum([each.numpy() for each in halves])))
            for halves in (self._halves, self._halves_of_squares())
        )
        times = now / before if before else 0.0
        is_fast = times - 1 >= _OF_EACH_STEP * steps
        if not np.isfinite(times) or times < _GROWN or not is_fast:
            return
        over = f"over {steps} steps" if steps > 1 else "in one step"
        shown = f"{times:.1f}" if times < 1e4 else f"{times:.1e}"
        error.add_cause(f"{GREW} {shown}-fold {over}.")
        if "earning rate" not in first.suggestion:
            rate = "" if error.learning_rate is None else f" {error.learning_rate:.4g}"
            error.add_suggestion(
                f"lower the learning rate{rate} first: the steps are too long for "
                "these weights."
            )

    def _halves_of_squares(self) -> list[tf.Tensor]:
        return [clipping.half_of_squares(each.read()) for each in self._slots]
