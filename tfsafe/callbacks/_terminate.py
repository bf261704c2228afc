"""Ends a training when its numbers are not finite any more."""

from collections.abc import Iterable

from tfsafe import _args, _calls
from tfsafe._report.text import listed
from tfsafe.callbacks import _finite, _training
from tfsafe.callbacks._finite import Logs
from tfsafe.callbacks._training import warn
from tfsafe.errors import NumericsError
from tfsafe.optimizers import SafeOptimizer

WATCHED = ("loss", "gradients", "weights", "val_loss")


class _TrainingError(NumericsError, RuntimeError):
    """The error of `raise_error`; Keras' `TerminateOnNaN` raises a RuntimeError."""


class TerminateOnNonFinite(_training.OwnCallback):
    """Stops a training as soon as something in it is NaN or infinite.

    Keras' `TerminateOnNaN` looks at the training loss alone. A gradient that is NaN
    under a finite loss, in the last batch above all, and a validation loss that is NaN
    escape it. This one looks at

    - `"loss"`: what the logs of a batch call `loss` or `..._loss`;
    - `"gradients"`: whether a `SafeOptimizer`, if there is one, met a non-finite step.
      Its weights are still good then, so this stops a training before it is damaged.
      Omit it if the training is to continue after non-finite steps;
    - `"weights"`: the weights of the model, moving statistics included, and the slots
      of the optimizer, after each batch and in one compiled call;
    - `"val_loss"`: the validation losses, at the end of the epoch.

    With `steps_per_execution=n` it looks after each `n` steps, and nothing that
    happened in between escapes it. One warning names the non-finite values and their
    place, and `model.stop_training` is set.

    Args:
      raise_error: Whether to raise instead, which skips the other callbacks'
        `on_train_end`.
      watch: What to look at; several of the four names above.

    Raises:
      TypeError: If `raise_error` is not a boolean.
      ValueError: If `watch` is empty or names something else.
      NumericsError: During the training, with `raise_error`. It is a `RuntimeError`
        too, as that of Keras.

    Examples:
      >>> import keras
      >>> import numpy as np
      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
      >>> model.compile(keras.optimizers.SGD(0.01), "mse")
      >>> guard = tfsafe.callbacks.TerminateOnNonFinite()
      >>> history = model.fit(
      ...     np.ones((8, 1)), np.ones((8, 1)), epochs=2, verbose=0, callbacks=[guard]
      ... )
      >>> len(history.history["loss"])
      2
    """

    _check: _finite.FiniteCheck
    _optimizer: SafeOptimizer | None

    @_calls.answered()
    def __init__(
        self, raise_error: bool = False, *, watch: str | Iterable[str] = WATCHED
    ) -> None:
        super().__init__()
        if not isinstance(raise_error, bool):
            raise TypeError(
                "`raise_error` must be True or False. Received: "
                f"raise_error={raise_error!r}."
            )
        self.raise_error = raise_error
        self.watch = (watch,) if isinstance(watch, str) else tuple(watch)
        if not self.watch:
            raise ValueError(
                "`watch` must name at least one of "
                f"{', '.join(map(repr, WATCHED))}. Received: watch={watch!r}."
            )
        for name in self.watch:
            _args.one_of(name, WATCHED, "watch")
        self._ended = False
        self._nonfinite_steps = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        """Looks for a `SafeOptimizer`."""
        model = self.model
        watched = "gradients" in self.watch
        self._optimizer = _training.safe_optimizer(model.optimizer) if watched else None
        self._check = _finite.FiniteCheck(lambda: _training.state_of_training(model))
        self._ended = False
        self._nonfinite_steps = self._count()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Checks the state after the batch."""
        self._end_if(f"Batch {batch}", self._problems_in_batch(logs))

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Checks the validation losses."""
        losses = _finite.nonfinite_losses(logs) if "val_loss" in self.watch else []
        validation = [loss for loss in losses if loss.startswith("val_")]
        self._end_if(f"Epoch {epoch + 1}", validation)

    def _problems_in_batch(self, logs: Logs) -> list[str]:
        problems: list[str] = []
        if "loss" in self.watch:
            problems += _finite.nonfinite_losses(logs)
        if self._optimizer is not None and self._count() > self._nonfinite_steps:
            paths = self._optimizer.last_nonfinite_variables
            problems.append(f"the gradients of {listed(paths)} are not finite")
        if "weights" in self.watch and (broken := self._check.broken()):
            problems.append(f"{listed(broken)} hold NaN or infinity")
        return problems

    def _count(self) -> int:
        return 0 if self._optimizer is None else self._optimizer.nonfinite_steps

    def _end_if(self, when: str, problems: list[str]) -> None:
        # Keras still validates and ends the epoch after the batch that was the last.
        if self._ended or not problems:
            return
        self._ended = True
        message = (
            f"{when}: {'; '.join(problems)}. Training ends here. {_finite.SUGGESTION}"
        )
        if self.raise_error:
            # Programs match the words of Keras' own error.
            if "loss is" in message:
                message += f" NaN or Inf loss encountered at {when.lower()}."
            raise _TrainingError(message)
        self.model.stop_training = True
        warn(message)


class TerminateOnNaN(TerminateOnNonFinite):
    """Stops a training as soon as something in it is NaN or infinite.

    Keras' name for `TerminateOnNonFinite`, which has the details. By default, the
    non-finite steps of a `SafeOptimizer` do not end the training here: under this name,
    only a NaN that nothing has handled does.

    Args:
      raise_error: Whether to raise instead, which skips the other callbacks'
        `on_train_end`.
      watch: What to look at: several of `"loss"`, `"gradients"`, `"weights"`,
        `"val_loss"`.

    Raises:
      TypeError: If `raise_error` is not a boolean.
      ValueError: If `watch` is empty or names something else.
      NumericsError: During the training, with `raise_error`. It is a `RuntimeError`
        too, as that of Keras.

    Examples:
      >>> import tfsafe
      >>> tfsafe.callbacks.TerminateOnNaN().watch
      ('loss', 'weights', 'val_loss')
    """

    @_calls.answered()
    def __init__(
        self,
        raise_error: bool = False,
        *,
        watch: str | Iterable[str] = ("loss", "weights", "val_loss"),
    ) -> None:
        super().__init__(raise_error, watch=watch)
