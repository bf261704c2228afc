"""Provides Keras' callbacks that save a model or wait for an improvement.

They save only while the model is finite, and do not count NaN as an improvement.
"""

import contextlib
from typing import Any

import keras
import tensorflow as tf

from tfsafe._report.text import listed
from tfsafe.callbacks import _finite, _training
from tfsafe.callbacks._finite import Logs
from tfsafe.callbacks._training import warn
from tfsafe.errors import NumericsError


class ModelCheckpoint(keras.callbacks.ModelCheckpoint):
    """Keras' `ModelCheckpoint`, which neither saves a broken model nor calls one best.

    Keras overwrites the last good file with any model, and with `save_best_only` a
    monitored value that is NaN in the first epoch stays the best one for ever. Here

    - a model with a weight that is NaN or infinite is not saved, whatever `save_freq`
      and `save_best_only` are: the last good file stays. One warning in a training
      says so and names the weights;
    - with `save_best_only`, a monitored value that is NaN or infinite is never best.

    Everything else, the arguments included, is as in Keras. A model that holds an
    infinity on purpose, such as a mask kept as a weight, needs Keras' own class, or a
    large finite number in its place.

    Examples:
      >>> import tempfile
      >>> import keras
      >>> import numpy as np
      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
      >>> model.compile(keras.optimizers.SGD(0.01), "mse")
      >>> path = tempfile.mkdtemp() + "/best.weights.h5"
      >>> checkpoint = tfsafe.callbacks.ModelCheckpoint(
      ...     path, monitor="loss", save_best_only=True, save_weights_only=True
      ... )
      >>> history = model.fit(
      ...     np.ones((8, 1)), np.ones((8, 1)), verbose=0, callbacks=[checkpoint]
      ... )
      >>> checkpoint.best == history.history["loss"][0]
      True
    """

    _gate: "_Gate"

    def set_model(self, model: keras.Model) -> None:
        """Starts with a new model."""
        super().set_model(model)
        self._gate = _Gate(self, lambda: model.weights)

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Saves if it is time to, and the model is finite."""
        # The next batch makes up for a save that was skipped: Keras counts the batches
        # between two calls.
        if self.save_freq != "epoch" and self._may_save(logs):
            super().on_train_batch_end(batch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Saves if it is time to, and the model is finite."""
        if self.save_freq != "epoch" or self._may_save(logs):
            super().on_epoch_end(epoch, logs)

    def _may_save(self, logs: Logs) -> bool:
        if self.save_best_only and not _finite.is_monitored(self.monitor, logs):
            return False
        return self._gate.is_open()


class BackupAndRestore(keras.callbacks.BackupAndRestore):
    """Keras' `BackupAndRestore`, which never restores a broken training.

    No state is backed up in which a weight or a variable of the optimizer is NaN or
    infinite: an interrupted training resumes from the last good one. One warning in a
    training says so and names the variables. The training does not start from an
    existing backup that is broken, because Keras' own class wrote it.

    Everything else, the arguments included, is as in Keras.

    Raises:
      NumericsError: At the start of training, if the backup is broken.

    Examples:
      >>> import tempfile
      >>> import keras
      >>> import numpy as np
      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
      >>> model.compile(keras.optimizers.SGD(0.01), "mse")
      >>> backup = tfsafe.callbacks.BackupAndRestore(tempfile.mkdtemp())
      >>> history = model.fit(
      ...     np.ones((8, 1)), np.ones((8, 1)), verbose=0, callbacks=[backup]
      ... )
      >>> len(history.history["loss"])
      1
    """

    _gate: "_Gate"

    def set_model(self, model: keras.Model) -> None:
        """Starts with a new model."""
        super().set_model(model)
        self._gate = _Gate(self, lambda: _training.state_of_training(model))

    def on_train_begin(self, logs: Logs = None) -> None:
        """Resumes from a backup, if there is one and it is finite."""
        super().on_train_begin(logs)
        # A separate check: Keras may not have built yet what it builds in a step.
        model = self.model
        broken = _finite.FiniteCheck(
            lambda: _training.state_of_training(model)
        ).broken()
        if broken:
            raise NumericsError(
                f"The training cannot start: {listed(broken)} hold NaN or "
                f"infinity. If there is a backup in {self.backup_dir!r}, they come "
                "from it: delete it to start from new weights. Otherwise load "
                "finite weights."
            )

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Backs up if it is time to, and the training is finite."""
        if self.save_freq != "epoch" and self._gate.is_open():
            super().on_train_batch_end(batch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Backs up if it is time to, and the training is finite."""
        if self.save_freq != "epoch" or self._gate.is_open():
            super().on_epoch_end(epoch, logs)


class _Gate:
    """Allows a save while the state is finite, and warns when it first is not."""

    def __init__(self, callback: keras.callbacks.Callback, variables: Any):
        self._name = type(callback).__name__
        self._check = _finite.FiniteCheck(variables)
        self._warned = False

    def is_open(self) -> bool:
        broken = self._check.broken()
        if broken and not self._warned:
            self._warned = True
            warn(
                f"{self._name} does not save a broken model: {listed(broken)} hold NaN "
                "or infinity. Earlier files stay. Further broken models are "
                f"skipped without a warning. {_finite.SUGGESTION}"
            )
        return not broken


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
