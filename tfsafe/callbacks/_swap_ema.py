"""Extends Keras' `SwapEMAWeights` to variables in half precision."""

import contextlib

import keras

from tfsafe.callbacks import _training
from tfsafe.callbacks._finite import Logs


class SwapEMAWeights(keras.callbacks.SwapEMAWeights):
    """Keras' `SwapEMAWeights`, which swaps variables in half precision as well.

    A `SafeOptimizer` trains float32 copies of variables in float16 and bfloat16. Keras
    swaps the averages with these copies, and validates with the weights as they were;
    here the model has the averages too. In all other cases it does what Keras' does.
    (Keras 3.3 swaps with the variables themselves, and refuses averages of another
    dtype.)

    Args:
      swap_on_epoch: As in Keras.

    Examples:
      >>> import keras
      >>> import numpy as np
      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
      >>> adam = keras.optimizers.Adam(use_ema=True)
      >>> model.compile(tfsafe.optimizers.SafeOptimizer(adam), "mse")
      >>> data = np.ones((8, 1)), np.ones((8, 1))
      >>> swap = tfsafe.callbacks.SwapEMAWeights()
      >>> history = model.fit(
      ...     *data, validation_data=data, verbose=0, callbacks=[swap]
      ... )
    """

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Swaps as Keras does."""
        with self._for_the_copies():
            super().on_epoch_begin(epoch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Swaps as Keras does."""
        with self._for_the_copies():
            super().on_epoch_end(epoch, logs)

    def on_test_begin(self, logs: Logs = None) -> None:
        """Swaps as Keras does."""
        with self._for_the_copies():
            super().on_test_begin(logs)

    def on_test_end(self, logs: Logs = None) -> None:
        """Swaps as Keras does."""
        with self._for_the_copies():
            super().on_test_end(logs)

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Swaps as Keras does."""
        with self._for_the_copies():
            super().on_predict_begin(logs)

    def on_predict_end(self, logs: Logs = None) -> None:
        """Swaps as Keras does."""
        with self._for_the_copies():
            super().on_predict_end(logs)

    def _for_the_copies(self) -> contextlib.AbstractContextManager[None]:
        guard = _training.safe_optimizer(self.model.optimizer)
        return contextlib.nullcontext() if guard is None else guard.for_the_copies()
