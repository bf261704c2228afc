"""Returns a broken training to its last good state."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import _args, _calls
from tfsafe._report.text import listed
from tfsafe.callbacks import _finite, _training
from tfsafe.callbacks._finite import Logs
from tfsafe.callbacks._training import warn
from tfsafe.errors import NumericsError

_HOLD = "hold NaN or infinity"


class RollbackOnNonFinite(_training.OwnCallback):
    """Returns a training that broke to its last good state, and continues it.

    For failures that a `SafeOptimizer` cannot undo, and for trainings without one: a
    weight, a moving statistic or a slot of the optimizer that is NaN or infinite. The
    state that it goes back to is that of the model's weights, of its seed generators
    and of the optimizer, `iterations` included. The data continue: the batches since
    that state are not repeated. The metrics are reset at the next batch, so that the
    rest of the epoch can be read; an epoch whose last batch broke shows NaN.

    After a batch, the training is broken if

    - a weight or a variable of the optimizer is NaN or infinite;
    - the loss is, unless a `SafeOptimizer` has handled it;
    - a `SafeOptimizer` met `max_consecutive` non-finite steps in a row. Place this
      callback before a `NumericsMonitor`, which would raise.

    The logs of each batch and epoch show how often it went back, as `rollbacks`. The
    first time, one warning names the non-finite values. Callbacks after this one see
    the restored weights, those before it see the broken ones.

    Args:
      lower_learning_rate: Factor by which the learning rate is multiplied at each
        rollback, between 0 and 1; None leaves it.
      max_rollbacks: This many times it goes back and on; the next time it goes back
        and raises `NumericsError`. None never does.
      save_freq: When to keep the state: `"epoch"` at the start of each epoch, or an
        integer, after this many good batches as well. The state takes as much memory
        as the variables, once, on their device.

    Raises:
      ValueError: If an argument is out of range; at the start of training, if the
        model is not built yet, or `lower_learning_rate` is given and the learning
        rate is a schedule's.
      NumericsError: If the training is broken from the start, or for more than the
        `max_rollbacks`-th time.

    Examples:
      >>> import keras
      >>> import numpy as np
      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
      >>> model.compile(keras.optimizers.SGD(0.01), "mse")
      >>> rollback = tfsafe.callbacks.RollbackOnNonFinite(lower_learning_rate=0.5)
      >>> history = model.fit(
      ...     np.ones((8, 1)), np.ones((8, 1)), epochs=2, verbose=0,
      ...     callbacks=[rollback],
      ... )
      >>> history.history["rollbacks"]
      [0, 0]
    """

    _check: _finite.FiniteCheck

    @_calls.answered()
    def __init__(
        self,
        lower_learning_rate: float | None = None,
        max_rollbacks: int | None = 10,
        save_freq: str | int = "epoch",
    ) -> None:
        super().__init__()
        self.lower_learning_rate = _factor(lower_learning_rate)
        self.max_rollbacks = (
            None if max_rollbacks is None else _count(max_rollbacks, "max_rollbacks")
        )
        self.save_freq = save_freq
        # None for `"epoch"`.
        self._every = None if save_freq == "epoch" else _count(save_freq, "save_freq")
        self.rollbacks = 0
        self._good: list[tuple[Any, tf.Tensor]] = []
        self._good_batches = 0
        self._restart_metrics = False

    def on_train_begin(self, logs: Logs = None) -> None:
        """Checks that there is a state to keep."""
        model, optimizer = self.model, self.model.optimizer
        if not model.built:
            raise ValueError(
                "RollbackOnNonFinite needs a model that is built before `fit`, so that "
                "there is a state to go back to. Received: model "
                f"{model.name!r}, which is not. Call it on a batch of data first."
            )
        if not optimizer.built:
            optimizer.build(model.trainable_variables)
        if self.lower_learning_rate is not None:
            _check_settable(optimizer)
        self._check = _finite.FiniteCheck(lambda: _training.state_of_training(model))
        self.rollbacks = 0
        self._good_batches = 0
        broken = self._check.broken()
        if broken:
            raise NumericsError(
                f"The training cannot start: {listed(broken)} "
                f"{_HOLD} before the first step. Load weights that are good, or make "
                "a new model."
            )

    def on_train_end(self, logs: Logs = None) -> None:
        """Releases the state."""
        self._good = []

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Keeps the state, unless another callback broke it since the last batch."""
        broken = self._check.broken()
        if broken:
            self._roll_back(f"Epoch {epoch + 1}: {listed(broken)} {_HOLD}.")
        else:
            self._keep()

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Resets the metrics after a rollback."""
        if self._restart_metrics:
            self._restart_metrics = False
            self.model.reset_metrics()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Goes back if the training is broken, or keeps its state if it is time to."""
        why = self._reason(logs)
        if why:
            self._roll_back(f"Batch {batch}: {why}.")
        elif self._every is not None:
            self._good_batches += 1
            if self._good_batches % self._every == 0:
                self._keep()
        if logs is not None:
            logs["rollbacks"] = self.rollbacks

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Reports the count to the history."""
        if logs is not None:
            logs["rollbacks"] = self.rollbacks

    def _reason(self, logs: Logs) -> str:
        if broken := self._check.broken():
            return f"{listed(broken)} {_HOLD}"
        guard = _training.safe_optimizer(self.model.optimizer)
        if guard is None:
            return ", ".join(_finite.nonfinite_losses(logs))
        count = guard.consecutive_nonfinite_steps
        if guard.max_consecutive is None or count < guard.max_consecutive:
            return ""
        return f"the last {count} steps were all non-finite"

    def _keep(self) -> None:
        # A tensor that was read keeps its value when the variable changes.
        kept = _without_counters(self.model)
        self._good = [(v, tf.convert_to_tensor(v)) for v in kept]

    def _roll_back(self, what: str) -> None:
        self._restore()
        if self.rollbacks == self.max_rollbacks:
            raise NumericsError(
                f"{what} The training went back to its last good state "
                f"{self.rollbacks} times and broke again. Lower the learning rate, or "
                f"fix what makes the non-finite value. {_finite.SUGGESTION} "
                f"(max_rollbacks={self.max_rollbacks})"
            )
        self.rollbacks += 1
        self._restart_metrics = True
        if self.rollbacks == 1:
            warn(
                f"{what} The training goes back to its last good state and continues. "
                "Further times are counted as `rollbacks` in the logs, without a "
                f"warning. {_finite.SUGGESTION}"
            )

    def _restore(self) -> None:
        # Read before the state, which holds the old rates, so that they fall each time.
        rates = [
            (each, float(keras.ops.convert_to_numpy(each.learning_rate)))
            for each in _optimizers(self.model.optimizer)
        ]
        for variable, value in self._good:
            variable.assign(value)
        if self.lower_learning_rate is not None:
            for optimizer, rate in rates:
                optimizer.learning_rate = rate * self.lower_learning_rate
        guard = _training.safe_optimizer(self.model.optimizer)
        if guard is not None:
            guard.counters["consecutive_nonfinite_steps"].assign(0)


def _without_counters(model: keras.Model) -> list[Any]:
    """Returns the state to go back to; what a `SafeOptimizer` counted stays counted."""
    state = _training.state_of_training(model)
    guard = _training.safe_optimizer(model.optimizer)
    if guard is None:
        return state
    inner = {id(variable) for variable in guard.inner_optimizer.variables}
    own = [variable for variable in guard.variables if id(variable) not in inner]
    # Its other variables, above all copies of weights, are floating.
    counters = {id(v) for v in own if not tf.as_dtype(v.dtype).is_floating}
    return [variable for variable in state if id(variable) not in counters]


def _optimizers(optimizer: Any) -> list[Any]:
    # Keras' `MultiOptimizer` has a learning rate for each of its parts.
    return list(getattr(optimizer, "optimizers", None) or [optimizer])


def _check_settable(optimizer: Any) -> None:
    for each in _optimizers(optimizer):
        if not hasattr(each.learning_rate, "assign"):
            raise ValueError(
                "`lower_learning_rate` needs a learning rate that can be set. Received "
                f"a model whose optimizer {each.name!r} follows a schedule. Compile it "
                "with a number, or leave `lower_learning_rate` out."
            )


def _factor(value: Any) -> float | None:
    if value is None:
        return None
    if not _args.is_number(value) or not 0 < value < 1:
        raise ValueError(
            "`lower_learning_rate` must be a factor between 0 and 1, such as 0.5, or "
            f"None to leave the learning rate. Received: lower_learning_rate={value!r}."
        )
    return float(value)


def _count(value: Any, name: str) -> int:
    if not _args.is_integer(value) or value < 1:
        other = "'epoch'" if name == "save_freq" else "None for no bound"
        raise ValueError(
            f"`{name}` must be a positive integer, or {other}. Received: "
            f"{name}={value!r}."
        )
    return int(value)
