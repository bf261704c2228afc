"""Checks the steps of `fit`, or shows what a `SafeOptimizer` did in them."""

import os
from collections.abc import Sequence
from typing import Any, Literal

from tfsafe import _args, _calls
from tfsafe._faults import contained
from tfsafe._report.text import listed
from tfsafe.callbacks import (
    _commit,
    _finite,
    _step_checks,
    _summaries,
    _training,
)
from tfsafe.callbacks._finite import Logs
from tfsafe.callbacks._training import warn
from tfsafe.debugging.checks.options import Level, options_of
from tfsafe.errors import NumericsError
from tfsafe.optimizers import SafeOptimizer

_EMPTY = "; a step without a finite gradient is skipped."
_DONE = {
    "replace": f"SafeOptimizer replaces non-finite elements by 0{_EMPTY}",
    "zero_variable": f"SafeOptimizer replaces these gradients by 0{_EMPTY}",
    "skip": "SafeOptimizer skipped the step.",
}


class NumericsMonitor(_training.OwnCallback):
    """Checks the steps of `fit` for NaN and Inf, or counts those that were handled.

    A step that gives NaN or Inf is undone and replayed operation by operation, to
    report which one made the first non-finite value, on which line, why, and what to
    write instead. With a `SafeOptimizer`, which handles non-finite gradients itself, it
    counts such steps in the logs (`nonfinite_steps`, `outlier_steps`) and restores what
    their forward pass wrote. The guide "Watch a training" in the documentation says
    what is undone, counted and shown.

    Examples:
      >>> import keras
      >>> import numpy as np
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
      >>> model.compile("sgd", loss=lambda y, p: tf.math.log(y) * p)
      >>> monitor = tfsafe.callbacks.NumericsMonitor()
      >>> x, y = np.ones((4, 2)), np.array([[1.0], [2.0], [0.0], [1.0]])
      >>> try:
      ...     model.fit(x, y, shuffle=False, verbose=0, callbacks=[monitor])
      ... except tfsafe.NumericsError as error:
      ...     print(error.findings[0].op_type, error.findings[0].cause)
      Log log of 1 zero (at (2, 0)).

      With a `SafeOptimizer`:

      >>> optimizer = tfsafe.optimizers.SafeOptimizer(keras.optimizers.SGD(0.01))
      >>> model.compile(optimizer, "mse")
      >>> history = model.fit(x, y, verbose=0, callbacks=[monitor])
      >>> history.history["nonfinite_steps"]
      [0]
      >>> monitor.nonfinite_fractions
      {}

    Args:
      restore_state: Whether all writes of a non-finite step of a `SafeOptimizer` are
        undone. Steps that the checks skip are always undone.
      log_dir: Directory for TensorBoard: once per epoch `nonfinite_steps`, and with a
        `SafeOptimizer` which variables were hit. Needs no TensorBoard to write.
      checks: How closely to look. `"watch"` at what each step returns and writes;
        `"domain"` also at the operations that can make a non-finite value of finite
        ones other than by overflow; `"full"` at every floating output. None counts
        alone, which takes a `SafeOptimizer`.
      policy: What a non-finite step leads to: `"raise"` (an error; the model is as
        before the step), `"skip"` (the step is undone, and a warning reports each place
        once) or `"stop"` (a warning, and the training ends). None is `"raise"` with a
        plain optimizer, and to count with a `SafeOptimizer`.
      exclude: Operations to exclude from the checks, as in `tfsafe.checked`.
      capsule: File to save the first step that fails to, for `tfsafe replay`.

    Raises:
      TypeError: If `restore_state` is not a boolean, or `log_dir` or `capsule` not a
        path.
      ValueError: If `checks` or `policy` is none of the above. At the start of
        training, if `checks` is None and the model's optimizer is not a
        `SafeOptimizer`, or the steps of the model cannot be checked; see `checked`.
      NumericsError: During the training, at the first finding.
    """

    _optimizer: SafeOptimizer | None = None
    _checks: _step_checks.StepChecks | None = None

    @_calls.answered()
    def __init__(
        self,
        *,
        restore_state: bool = True,
        log_dir: str | os.PathLike[str] | None = None,
        checks: Level | None = "watch",
        policy: Literal["raise", "skip", "stop"] | None = None,
        exclude: Sequence[str] = (),
        capsule: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(restore_state, bool):
            raise TypeError(
                "`restore_state` must be True, to undo all that a skipped step wrote, "
                f"or False. Received: restore_state={restore_state!r}."
            )
        self.restore_state = restore_state
        self.log_dir = _path(
            log_dir, "log_dir", "that of `keras.callbacks.TensorBoard`"
        )
        if policy is not None:
            _args.one_of(policy, _step_checks.POLICIES, "policy")
        if checks is not None:
            options = options_of(checks, False, exclude)
            path = _path(capsule, "capsule", '"nan.zip"')
            self._checks = _step_checks.StepChecks(options, policy or "raise", path)
        self.checks = checks
        self.policy = policy
        self.exclude = tuple(exclude)
        self._switches: list[Any] = []
        self._summaries: _summaries.Summaries | None = None
        self._start = self._before = 0
        self._hits_at_start: dict[str, int] = {}

    @property
    def nonfinite_steps(self) -> int:
        """The number of non-finite steps so far, as in the logs."""
        return self._skipped() + self._handled()

    def _skipped(self) -> int:
        """Returns the count of the checks; the optimizer does not count these."""
        return 0 if self._checks is None else self._checks.nonfinite_steps

    def _handled(self) -> int:
        """Returns the count of the optimizer, which waits for the device."""
        return 0 if self._optimizer is None else self._optimizer.nonfinite_steps

    @property
    def nonfinite_fractions(self) -> dict[str, float]:
        """The fraction of the non-finite steps that hit each variable.

        For a `SafeOptimizer`; most hit first, in this training or the last. They are
        counted on the device: with `steps_per_execution=n`, in each of the `n` steps.
        """
        if self._optimizer is None:
            return {}
        bad_steps = self._optimizer.nonfinite_steps - self._start
        hits = {
            path: count - self._hits_at_start.get(path, 0)
            for path, count in self._optimizer.nonfinite_steps_by_variable.items()
        }
        fractions = {path: count / bad_steps for path, count in hits.items() if count}
        return dict(sorted(fractions.items(), key=lambda item: -item[1]))

    def on_train_begin(self, logs: Logs = None) -> None:
        """Finds the optimizer; keeps NaN out of the shown loss, or adds the checks."""
        self._optimizer = _training.safe_optimizer(self.model.optimizer)
        if self._optimizer is not None:
            self._begin_counting(self._optimizer)
        if self._checks is not None:
            self._checks.begin_training()
        if self._only_counts():
            self._restore_steps()
        elif self._checks is None:
            raise ValueError(_without_optimizer(self.model.optimizer))
        else:
            self._checks.begin(self.model, "train")
        if self.log_dir is not None:
            self._summaries = _summaries.Summaries(self.log_dir)

    def _only_counts(self) -> bool:
        """Returns whether the steps are left to a `SafeOptimizer`."""
        optimizer = _training.safe_optimizer(getattr(self.model, "optimizer", None))
        is_ended = self._checks is not None and self.policy in ("raise", "stop")
        return optimizer is not None and not is_ended

    def _begin_counting(self, optimizer: SafeOptimizer) -> None:
        self._start = self._before = optimizer.nonfinite_steps
        self._hits_at_start = optimizer.nonfinite_steps_by_variable

    def _restore_steps(self) -> None:
        """Takes NaN out of the shown loss, and out of the state of skipped steps."""
        step = _commit.of_training(self.model)
        step.means = _finite.of_losses(self.model)
        self._switches = [mean.active for mean in step.means]
        if self.restore_state:
            self._switches.append(step.active)
        self._switch(True)

    @contained("a callback of `NumericsMonitor`")
    def on_train_end(self, logs: Logs = None) -> None:
        """Removes the changes made to the training."""
        self._switch(False)
        self._switches = []
        self._end("train")
        if self._summaries is not None:
            self._summaries.close()
            self._summaries = None

    def on_test_begin(self, logs: Logs = None) -> None:
        """Checks a validation."""
        self._begin("test")

    @contained("a callback of `NumericsMonitor`")
    def on_test_end(self, logs: Logs = None) -> None:
        """Removes the changes made to the validation."""
        self._end("test")

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Checks a prediction."""
        self._begin("predict")

    @contained("a callback of `NumericsMonitor`")
    def on_predict_end(self, logs: Logs = None) -> None:
        """Removes the changes made to the prediction."""
        self._end("predict")

    @contained("a callback of `NumericsMonitor`")
    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Resets the numbers of an epoch."""
        if self._checks is not None and not self._only_counts():
            self._checks.begin_epoch(epoch)

    @contained("a callback of `NumericsMonitor`")
    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Reports the count, warns the first time, ends a training that is stuck."""
        # Compare totals, not the last step: with `steps_per_execution` above 1, there
        # were other steps since the last call.
        handled = self._handled()
        self._report(logs, self._skipped() + handled)
        if self._optimizer is None:
            return
        is_first = handled > self._before == self._start
        self._before = handled
        if is_first and not self._only_counts():
            self._end_at_gradient(self._optimizer)
            return
        self._end_if_stuck(self._optimizer)
        if is_first:
            warn(_first_warning(self._optimizer))

    def _end_at_gradient(self, optimizer: SafeOptimizer) -> None:
        """Ends at a gradient that the optimizer replaced: the step itself is finite."""
        message = _first_warning(optimizer)
        if self.policy == "raise":
            self.on_train_end()
            raise NumericsError(message)
        warn(f"{message} Training ends here.")
        self.model.stop_training = True

    @contained("a callback of `NumericsMonitor`")
    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Reports the count to the history, and to TensorBoard."""
        total = self.nonfinite_steps
        self._report(logs, total, is_epoch=True)
        if self._checks is not None and logs is not None and not self._only_counts():
            self._checks.correct(logs)
        if self._summaries is not None:
            size = len(self.model.trainable_variables)
            self._summaries.write(epoch, total, self.nonfinite_fractions, size)

    def _report(self, logs: Logs, total: int, is_epoch: bool = False) -> None:
        # An epoch always has the number, for the columns of `History` and `CSVLogger`.
        if logs is not None and (total or is_epoch):
            logs["nonfinite_steps"] = _training.Count(total)
            optimizer = self._optimizer
            if optimizer is not None and optimizer.outlier_threshold is not None:
                logs["outlier_steps"] = optimizer.outlier_steps

    def _end_if_stuck(self, optimizer: SafeOptimizer) -> None:
        try:
            optimizer.raise_if_stuck()
        except NumericsError:
            # Keras calls no `on_train_end` after an error.
            self.on_train_end()
            raise

    def _switch(self, active: bool) -> None:
        for switch in self._switches:
            switch.assign(active)

    def _begin(self, kind: str) -> None:
        if self._checks is not None and not self._only_counts():
            self._checks.begin(self.model, kind)

    def _end(self, kind: str) -> None:
        if self._checks is not None:
            self._checks.end(kind)


def _first_warning(optimizer: SafeOptimizer) -> str:
    """Says once what happened, what was done, and how to see where it began."""
    paths = listed(optimizer.last_nonfinite_variables)
    return (
        f"Step {optimizer.last_nonfinite_step}: the gradients of {paths} are NaN, "
        f"infinite or above the limit. {_DONE[optimizer.policy]} Further "
        "non-finite steps are counted as `nonfinite_steps` in the logs, without a "
        f"warning. {_finite.SUGGESTION}"
    )


def _without_optimizer(optimizer: Any) -> str:
    name = type(optimizer).__name__
    return (
        "With `checks=None`, NumericsMonitor counts the non-finite steps of a "
        f"SafeOptimizer. Received a model with optimizer {name}. Compile it with "
        f"`tfsafe.optimizers.SafeOptimizer(keras.optimizers.{name}(...))`, or leave "
        "`checks` out to check the steps."
    )


def _path(value: Any, name: str, example: str) -> str | None:
    return None if value is None else _summaries.path_of(value, name, example)
