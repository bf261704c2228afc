"""Waits for an improvement as Keras' callbacks do, but does not count NaN as one."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe.callbacks import _finite
from tfsafe.callbacks._finite import Logs


class EarlyStopping(keras.callbacks.EarlyStopping):
    """Keras' `EarlyStopping`, for which a broken epoch is never the best one.

    In Keras, a monitored value that is NaN in the first epoch is the best one for
    ever: the training ends after `patience` epochs however well it goes, and with
    `restore_best_weights` the weights of the NaN are restored. Here an epoch is only
    an epoch without improvement if its monitored value is NaN or infinite, or if a
    weight of the model is: it counts for `patience` and is never restored. If all
    epochs are such, no weights are restored.

    Everything else, the arguments included, is as in Keras.

    Examples:
      >>> import keras
      >>> import numpy as np
      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
      >>> model.compile(keras.optimizers.SGD(0.0), "mse")
      >>> stopping = tfsafe.callbacks.EarlyStopping("loss", patience=2)
      >>> history = model.fit(
      ...     np.ones((8, 1)), np.ones((8, 1)), epochs=9, verbose=0,
      ...     callbacks=[stopping],
      ... )
      >>> len(history.history["loss"])
      3
    """

    _check: _finite.FiniteCheck

    def set_model(self, model: keras.Model) -> None:
        """Begins with another model."""
        super().set_model(model)
        self._check = _finite.FiniteCheck(lambda: tf.nest.flatten(model.weights))

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Compares the epoch with the best one, if it is finite."""
        if _finite.is_monitored(self.monitor, logs) and not self._check.broken():
            super().on_epoch_end(epoch, logs)
        elif epoch >= self.start_from_epoch:
            self.wait += 1
            # Never restore after the first epoch, as in Keras.
            if self.wait >= self.patience and epoch > 0:
                self.stopped_epoch = epoch
                self.model.stop_training = True


class ReduceLROnPlateau(keras.callbacks.ReduceLROnPlateau):
    """Keras' `ReduceLROnPlateau`, for which NaN is never the best value.

    In Keras, a monitored value that is NaN in the first epoch is the best one for
    ever, and the learning rate falls again and again without a plateau. Here a value
    that is NaN or infinite is never best: after a finite one it counts as an epoch
    without improvement, before the first it does not count.

    Everything else, the arguments included, is as in Keras.

    Examples:
      >>> import keras
      >>> import numpy as np
      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
      >>> model.compile(keras.optimizers.SGD(0.01), "mse")
      >>> plateau = tfsafe.callbacks.ReduceLROnPlateau("loss")
      >>> history = model.fit(
      ...     np.ones((8, 1)), np.ones((8, 1)), verbose=0, callbacks=[plateau]
      ... )
      >>> plateau.best == history.history["loss"][0]
      True
    """

    best: Any

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Compares the epoch with the best one."""
        best = self.best
        super().on_epoch_end(epoch, logs)
        if not _finite.is_monitored(self.monitor, logs):
            self.best = best
