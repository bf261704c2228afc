"""Adds the checks of `NumericsMonitor` to the steps of a model."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import keras

from tfsafe._patching import Patch
from tfsafe.callbacks._finite import Logs
from tfsafe.callbacks._training import warn
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.tally import TALLY, Measured
from tfsafe.debugging.models.model import KINDS, Steps
from tfsafe.debugging.models.step import why_unchecked
from tfsafe.errors import NumericsError

POLICIES = ("raise", "skip", "stop")
_CONSEQUENCE = {
    "skip": (
        "The step is skipped, and training goes on. Further such steps are counted as "
        "`nonfinite_steps` in the logs, with one warning for each place."
    ),
    "stop": "The step is skipped, and training ends here.",
}


class _Made(NamedTuple):
    """The functions that Keras calls for each batch.

    Attributes:
      stock: Its own function.
      checked: Ours.
    """

    stock: Any
    checked: Any


class StepChecks:
    """Checks the steps of a model from one event of Keras to another.

    Keras calls no `on_train_end` after an error. But it asks for the function of a
    kind of step before it uses it again; the checks are removed by then.

    Attributes:
      nonfinite_steps: Number of training steps that were skipped.
    """

    _steps: Steps | None = None

    def __init__(self, options: Options, policy: str, capsule: str | None = None):
        self.nonfinite_steps = 0
        self._capsule = capsule
        self._is_saved = False
        self._options = options._replace(note=self._note)
        self._policy = policy
        self._model: keras.Model = None
        self._made: dict[str, _Made] = {}
        self._patches: dict[str, Patch] = {}
        self._reported: set[Any] = set()
        self._logs: Logs = None

    def begin(self, model: keras.Model, kind: str) -> None:
        """Adds the checks to the steps of one kind.

        Under a strategy of several workers, warns instead: the program runs on.

        Raises:
          ValueError: If the steps of this model cannot be checked.
        """
        self.end(kind)
        reason = why_unchecked(model)
        if reason is not None:
            if self._model is not model:
                warn(f"{reason} This training is not checked.")
            self._model = model
            return
        if self._steps is None or self._model is not model:
            self._model, self._made = model, {}
            self._steps = Steps(model, self._options, self._guard)
        stock = getattr(model, f"{kind}_function")
        made = self._made.get(kind)
        if made is None or made.stock is not stock:
            # Otherwise reuse the trace of an earlier training.
            made = self._made[kind] = _Made(stock, self._steps.function(kind))
        make = functools.partial(functools.partial, self._remake, kind)
        self._patches[kind] = Patch(model, f"make_{kind}_function", make)
        self._patches[kind].install()
        setattr(model, f"{kind}_function", made.checked)

    def end(self, kind: str) -> None:
        """Removes the checks."""
        if kind not in self._patches:
            return
        model = self._model
        self._patches.pop(kind).remove()
        made = self._made[kind]
        # If the function is a different one, the model was compiled again since.
        if getattr(model, f"{kind}_function") is made.checked:
            setattr(model, f"{kind}_function", made.stock)

    def begin_training(self) -> None:
        """Clears the earlier findings."""
        self._is_saved = False
        self.nonfinite_steps = 0
        self._reported = set()

    def begin_epoch(self, epoch: int) -> None:
        """Clears the logs of the previous epoch."""
        self._logs = None
        if self._steps is not None:
            self._steps.clock.begin_epoch(epoch)

    def correct(self, logs: dict[str, Any]) -> None:
        """Shows NaN for the numbers of an epoch whose steps were all skipped."""
        if self._logs is None and self.nonfinite_steps:
            names = self._model.get_metrics_result()
            logs.update({name: math.nan for name in names if name in logs})

    def _remake(self, kind: str, make: Callable[..., Any], force: bool = False) -> Any:
        self.end(kind)
        function = make(force=force)
        if force:
            # During a training, the caller wants a new trace of the step.
            self.begin(self._model, kind)
        return function

    def _guard(
        self,
        kind: str,
        checked: Callable[[Any], Any],
        plain: Callable[[Any], Any],
    ) -> Callable[[Any], Any]:
        def step(batch: Any) -> Any:
            try:
                results = checked(batch)
            except NumericsError as error:
                self._save(error)
                if self._policy == "raise":
                    for each in KINDS:
                        self.end(each)
                    raise
                self._respond(kind, error)
                # A validation has no step to skip: it shows its numbers unchanged.
                return self._logs_so_far() if kind == "train" else plain(batch)
            if kind == "train":
                self._logs = results
            return results

        return step

    def _save(self, error: NumericsError) -> None:
        """Saves the first step that failed; a failure to do so is a warning."""
        if self._capsule is None or self._is_saved:
            return
        self._is_saved = True
        try:
            error.save(self._capsule)
        except (OSError, ValueError) as reason:
            warn(f"The capsule was not written. {reason}")

    def _respond(self, kind: str, error: NumericsError) -> None:
        """Reports the finding, and counts the step or ends the training."""
        if kind == "train":
            self.nonfinite_steps += 1
        if self._policy == "stop":
            self._model.stop_training = True
        first = error.findings[0]
        place = first.site, first.op_type, first.origin
        if place in self._reported:
            return
        self._reported.add(place)
        done = (
            _CONSEQUENCE[self._policy]
            if kind == "train"
            else "Its numbers are shown unchanged."
        )
        warn(f"{error}\n  {done}")

    def _note(self, measured: Measured) -> None:
        """Reports measures that are not finite in a step that is."""
        TALLY.note(measured)
        if measured not in self._reported:
            self._reported.add(measured)
            warn(f"{measured}: loss and weights are finite, and training goes on.")

    def _logs_so_far(self) -> Any:
        results = self._model.get_metrics_result()
        if self._logs is None:
            return dict.fromkeys(results, math.nan)
        is_usual = isinstance(self._logs, dict) and self._logs.keys() == results.keys()
        return results if is_usual else self._logs
