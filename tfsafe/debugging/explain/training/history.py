"""Remembers the last steps: did the loss grow, or did they fail out of the blue."""

import collections
import re
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe._report import explain
from tfsafe.errors import Finding, NumericsError

# Number of steps that are remembered, and the fewest that say something.
_STEPS = 50
_FEWEST = 5
# A loss that is this many times the usual one has grown; one below 1 has not, whatever
# it was: that of a policy begins at 0.
_GROWN = 10.0
_SMALL = 0.1
# Results of a step that Keras does not see, as `bits`; -1 where a number is not known:
# half the sum of the squares of all gradients, and the largest change of a weight.
HALF_OF_SQUARES = "tfsafe/half_of_squares"
LARGEST_UPDATE = "tfsafe/largest_update"
OVERFLOWS = "overflows"
# The smallest number of a batch that is named as a reason of an explosion.
_LARGE = 1e6
_SCALED = "`{}` reaches {:.1e}: divide it by a number of that size first. Otherwise {}"
_SCALE = "scale the inputs and the targets down"
# Said of values that are unusually large: training may have made them, or one batch.
EXPLODED = (
    "have exploded: lower the learning rate, clip the gradients (clipnorm=1.0), or "
    f"{_SCALE}."
)
# Said of weights that training has made large, see `growth`.
GREW = "The weights grew"
_UNTRAINED = f"are there before any training: {_SCALE}, or begin with smaller weights."
_UNBOUNDED = (
    "check the sign of the loss and of each of its terms: it runs to minus infinity, "
    "so a lower learning rate only delays this. In a likelihood, bound the scale "
    "below, as tf.nn.softplus(x) + 1e-3 does."
)


class Past(NamedTuple):
    """Numbers of the steps before a failure, oldest first.

    Attributes:
      losses: The losses.
      norms: The global norms of the gradients, where they were computed.
      updates: The largest changes of a weight, where they were computed.
    """

    losses: Sequence[float] = ()
    norms: Sequence[float] = ()
    updates: Sequence[float] = ()


def without_notes(results: Any) -> Any:
    """Returns the results of a step as Keras expects them."""
    if not isinstance(results, dict) or HALF_OF_SQUARES not in results:
        return results
    notes = HALF_OF_SQUARES, LARGEST_UPDATE
    return {name: value for name, value in results.items() if name not in notes}


def bits(number: tf.Tensor) -> tf.Tensor:
    """Returns a number as an integer of the same bits, which no check looks at."""
    return tf.bitcast(tf.cast(number, tf.float32), tf.int32)


def _of_bits(note: Any) -> float:
    number = np.asarray(note)
    return float(number.view(np.float32) if number.dtype == np.int32 else number)


class LastSteps:
    """Numbers of the last steps, as tensors: nothing is read before a failure."""

    def __init__(self) -> None:
        self._kept: collections.deque[tuple[Any, int]] = collections.deque(
            maxlen=_STEPS
        )
        self._notes: collections.deque[tuple[Any, Any]] = collections.deque(
            maxlen=_STEPS
        )

    def add(self, result: Any, averaged: int = 1) -> None:
        """Notes the loss of a step, and what else is known of it.

        Args:
          result: What the step returned: the loss, a sequence that begins with it, or
            a dict with `"loss"`; anything else is ignored.
          averaged: Number of steps that Keras' running mean is over.
        """
        if isinstance(result, dict):
            if HALF_OF_SQUARES in result:
                notes = result[HALF_OF_SQUARES], result.get(LARGEST_UPDATE, -1.0)
                self._notes.append(notes)
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
        """Adds the numbers to an error, and what they show."""
        notes = [[_of_bits(each) for each in both] for both in self._notes]
        halves, updates = zip(*notes, strict=True) if notes else ((), ())
        norms = np.sqrt(np.multiply(2.0, halves)).tolist()
        note(error, Past(self.values(), norms, updates))


def is_of_size(finding: Finding) -> bool:
    """Returns whether an overflow or an underflow is behind a finding.

    So too the logarithm of 1 - p, where p is too near to 1.
    """
    near_one = "|subtracts equal" if finding.op_type == "Log" else ""
    return re.search(f"{OVERFLOWS}|underflows{near_one}", finding.cause) is not None


def note(error: NumericsError, past: Past) -> None:
    """Adds the past to an error, and what it shows; see `LastSteps.note`."""
    _note_past(error, past)
    if error.findings and _SCALE in (words := error.findings[0].suggestion):
        for name, value in error.inputs.items():
            array = _compat.host_array(value)
            is_number = array.dtype.kind == "f" and array.size
            largest = float(np.abs(array).max()) if is_number else 0.0
            if _LARGE <= largest < np.inf:
                words = _SCALED.format(name, largest, words)
        error.change_first(suggestion=words)


def _note_past(error: NumericsError, past: Past) -> None:
    losses = [each for each in past.losses if np.isfinite(each)]
    norms, updates = (
        [each for each in numbers if np.isfinite(each) and each >= 0]
        for numbers in past[1:]
    )
    has_grown = len(losses) > 1 and _grown(list(map(abs, losses)))
    if len(losses) < _FEWEST and not has_grown:
        if error.step == 0 and error.findings:
            words = error.findings[0].suggestion.replace(EXPLODED, _UNTRAINED)
            error.change_first(suggestion=words)
        return
    words = _words(Past(losses, norms, updates), error)
    error.add_past(losses, norms, updates, words)
    if error.findings and OVERFLOWS in error.findings[0].cause:
        if exploded := _of_explosion(losses, norms):
            error.add_cause(exploded)
            if has_grown and _falls(losses):
                error.change_first(suggested_code="", suggestion=_UNBOUNDED)
        elif GREW not in error.findings[0].cause:
            error.add_cause("It came out of the blue: the steps before were steady.")
            first = error.findings[0]
            found = f"came with this batch. {_look_at(first)}, and clip the inputs."
            error.change_first(suggestion=first.suggestion.replace(EXPLODED, found))


def _look_at(finding: Finding) -> str:
    """Says which row of the batch to look at."""
    if finding.row is None or explain.is_everywhere(finding):
        return "Look for one unusual row in `error.inputs`"
    return f"Look for what is unusual in row {finding.row} of `error.inputs`"


def _of_explosion(losses: Sequence[float], norms: Sequence[float]) -> str:
    """Says over how many steps values exploded; nothing if they were steady."""
    for numbers in (list(map(abs, losses)), norms):
        if len(numbers) > 1 and _grown(numbers):
            many = f"{steps} steps" if (steps := _growing(numbers)) > 1 else "one step"
            return f"The values exploded over {many}."
    return ""


_FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


def _words(past: Past, error: NumericsError) -> str:
    """Says whether the loss grew, and what helps."""
    values = past.losses
    sizes = [abs(each) for each in values]
    rate = "" if error.learning_rate is None else f" below {error.learning_rate:.4g}"
    lower = f"Lower the learning rate{rate}, or clip the gradients (clipnorm=1.0)."
    if not np.isfinite(error.learning_rate or 0.0):
        lower = f"The learning rate became {error.learning_rate:.4g}."
    elif (error.learning_rate or 0.0) < 0:
        lower = f"The learning rate {error.learning_rate:.4g} is negative."
    if not _grown(sizes):
        if len(past.norms) > 1 and _grown(past.norms):
            steps = _growing(past.norms)
            return (
                f"the loss was steady, but the gradient norm grew over {steps} "
                f"step{'s' * (steps > 1)}, from {past.norms[-1 - steps]:.4g} to "
                f"{past.norms[-1]:.4g}. {lower}"
            )
        before = f"out of the blue: the loss before was {values[-1]:.4g}."
        if not np.isfinite(error.learning_rate or 0.0):
            return f"{before} The learning rate became {error.learning_rate:.4g}."
        if not error.findings:
            return before
        first = error.findings[0]
        if GREW in first.cause:
            return f"the loss was {values[-1]:.4g}, but the weights grew. {lower}"
        if "loss scale" in first.cause:
            return f"the loss was steady at {values[-1]:.4g}: only the loss scale grew."
        if first.origin.startswith("argument"):
            return f"{before} It is this batch: `error.inputs` has its rows."
        return f"{before} {_look_at(first)}, or a formula at the edge of its domain."
    steps = _growing(sizes)
    many = f"{steps} step{'s' * (steps > 1)}"
    span = f"over {many}, from {values[-1 - steps]:.4g} to {values[-1]:.4g}"
    if _falls(values):
        return f"fell {span}: the loss seems to have no lower bound. Check its sign."
    return f"grew {span}: the training diverges. {lower}"


def _falls(losses: Sequence[float]) -> bool:
    """Returns whether a loss that has grown did so below 0."""
    return max(losses[-_growing(list(map(abs, losses))) :]) < 0


def _growing(sizes: Sequence[float]) -> int:
    """Returns over how many steps a number grew."""
    calm = [i for i, each in enumerate(sizes) if each <= 2 * _usual(sizes)]
    return len(sizes) - 1 - (calm[-1] if calm else 0)


def _usual(sizes: Sequence[float]) -> float:
    """Returns the size of a loss before it grew; of few, the first."""
    if len(sizes) < _FEWEST:
        return sizes[0]
    return statistics.median(sizes[: max(_FEWEST, len(sizes) // 2)])


def _grown(sizes: Sequence[float]) -> bool:
    return sizes[-1] >= _GROWN * max(_usual(sizes), _SMALL)
