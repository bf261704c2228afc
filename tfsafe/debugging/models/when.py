"""Counts the batches of a model, and adds to an error when it happened."""

from collections.abc import Callable
from typing import Any

import keras

from tfsafe.debugging.explain import training
from tfsafe.errors import NumericsError


class Clock:
    """Counts the batches of a model, for messages.

    Args:
      model: The model.
    """

    def __init__(self, model: keras.Model):
        self._model = model
        self._epoch: int | None = None
        self._batch = 0

    def begin_epoch(self, epoch: int) -> None:
        """Notes the number of an epoch, from 0."""
        self._epoch, self._batch = epoch, 0

    def timed(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Returns a training step whose errors know when they happened."""

        def run(data: Any) -> Any:
            self._batch += 1
            try:
                return step(data)
            except NumericsError as error:
                self._note(error)
                raise

        return run

    def _note(self, error: NumericsError) -> None:
        if self._epoch is not None:
            error.epoch, error.batch = self._epoch, self._batch - 1
        training.note(error, getattr(self._model, "optimizer", None))
