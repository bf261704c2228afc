"""Adds to an error when it happened: step, epoch, batch and learning rate."""

from collections.abc import Callable
from typing import Any

import keras

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
        optimizer = getattr(self._model, "optimizer", None)
        rate = None
        if optimizer is not None:
            error.step = int(keras.ops.convert_to_numpy(optimizer.iterations))
            rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
        if self._epoch is not None:
            error.epoch, error.batch = self._epoch, self._batch - 1
        error.add_time(learning_rate=rate)
