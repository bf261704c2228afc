"""Counts the batches of a model, and adds to an error when and where it happened."""

from collections.abc import Callable
from typing import Any

import keras

from tfsafe import _compat
from tfsafe.debugging.explain.training import history, optimizer as training
from tfsafe.debugging.models import data_source
from tfsafe.errors import NumericsError


class Clock:
    """Counts the batches of a model, for messages."""

    def __init__(self, model: keras.Model):
        self._model = model
        self._epoch: int | None = None
        self._batch = 0
        # Of these, those before the call of several steps that is under way.
        self._before = 0
        # Number of steps that the running means of Keras are over.
        self._averaged = 0
        self._past = history.LastSteps()
        # The optimizer, and its learning rate in its first step.
        self._began: tuple[Any, float] = None, 0.0

    def begin_epoch(self, epoch: int) -> None:
        """Notes the number of an epoch, from 0."""
        self._epoch, self._batch, self._averaged = epoch, 0, 0

    def begin_call(self) -> None:
        """Notes that Keras asks for its next steps."""
        self._before = self._batch
        fit = _compat.running_fit(self._model)
        if fit is None or fit.batch == 0:
            # Of an epoch, or of `train_on_batch`: Keras starts its means again.
            self._averaged = 0
        optimizer = getattr(self._model, "optimizer", None)
        if optimizer is not self._began[0]:
            self._began = optimizer, training.rate_of(optimizer)

    def timed(
        self, step: Callable[[Any], Any], count: Callable[[Any], int] = lambda _: 1
    ) -> Callable[[Any], Any]:
        """Returns a training step whose errors know when they happened.

        Args:
          step: The step.
          count: Returns the number of batches in the argument of the step.
        """

        def run(data: Any) -> Any:
            self._batch += count(data)
            try:
                logs = step(data)
            except NumericsError as error:
                self._note(error)
                raise
            self._averaged += count(data)
            self._past.add(logs, self._averaged)
            return history.without_notes(logs)

        return run

    def placed(self, step: Callable[[Any], Any], method: str) -> Callable[[Any], Any]:
        """Returns a step of `evaluate` or `predict` whose errors know their batch.

        Args:
          step: The step.
          method: Name of the method of the model.
        """

        def run(data: Any) -> Any:
            try:
                return step(data)
            except NumericsError as error:
                self._note_batch(error, method)
                raise

        return run

    def _note_batch(self, error: NumericsError, method: str) -> None:
        running = _compat.running_fit(self._model, method)
        if running is None or self._model.steps_per_execution != 1:
            return
        error.batch = running.batch
        fit = _compat.running_fit(self._model)
        if fit is not None:
            error.epoch = fit.epoch
        error.add_time("batch" if fit is None else "validation batch")

    def _note(self, error: NumericsError) -> None:
        if self._epoch is not None:
            error.epoch, error.batch = self._epoch, self._batch - 1
        fit = _compat.running_fit(self._model)
        if fit is not None:
            data_source.note(error, fit.data)
            if self._epoch is None:
                error.epoch = fit.epoch
                within = self._batch - 1 - self._before
                error.batch = None if fit.batch is None else fit.batch + within
        # A compiled step knows the one that it uses: not always that of `compile`.
        is_eager = self._model.run_eagerly
        training.note(error, self._model.optimizer if is_eager else None)
        self._past.note(error)
        setters = [] if fit is None else fit.callbacks
        training.note_raised(error, self._began[1], setters)
