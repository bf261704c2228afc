"""The callback that shows in `fit` what a `SafeOptimizer` did."""

import warnings
from typing import Any

import keras

from tfsafe.callbacks import _finite_mean
from tfsafe.optimizers import SafeOptimizer

_DONE = {
    "replace": "SafeOptimizer put 0 in place of the bad elements.",
    "skip": "SafeOptimizer left the step out.",
}


class NumericsMonitor(keras.callbacks.Callback):
    """Counts the bad steps of a `SafeOptimizer` where Keras shows its numbers.

    Adds `nonfinite_steps`, the optimizer's total so far, to the logs of every batch
    and epoch: the progress bar, `History`, `CSVLogger` and TensorBoard show it. Warns
    once in a training, at the first bad step, and names the variables. Ends the
    training with `NumericsError` where the optimizer's `max_consecutive` is reached.

    While it watches, the training loss that Keras shows is the mean over the batches
    whose loss is finite. Without that, one bad batch makes it NaN for the rest of the
    epoch, and callbacks that look at it stop a training that is well. This holds for
    `loss` and for the means named `..._loss` of a model that keeps its own. What Keras
    lists besides for each of several outputs stays a plain mean, and so do all
    validation losses: nothing has dealt with a NaN there.

    Raises:
      ValueError: At the start of training, if the model's optimizer is not a
        `SafeOptimizer`.

    Examples:
      >>> import keras
      >>> import numpy as np
      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
      >>> optimizer = tfsafe.optimizers.SafeOptimizer(keras.optimizers.SGD(0.01))
      >>> model.compile(optimizer, "mse")
      >>> monitor = tfsafe.callbacks.NumericsMonitor()
      >>> x, y = np.ones((8, 2)), np.ones((8, 1))
      >>> history = model.fit(x, y, verbose=0, callbacks=[monitor])
      >>> history.history["nonfinite_steps"]
      [0]
    """

    _guard: SafeOptimizer

    def __init__(self) -> None:
        super().__init__()
        self._means: list[_finite_mean.FiniteMean] = []
        self._before = 0
        self._warned = False

    def on_train_begin(self, logs: Any = None) -> None:
        """Finds the optimizer, and leaves bad batches out of the shown loss."""
        self._guard = _safe_optimizer(self.model.optimizer)
        self._means = _finite_mean.of_losses(self.model)
        self._before = self._guard.nonfinite_steps
        self._warned = False
        self._leave_bad_batches_out(True)

    def on_train_end(self, logs: Any = None) -> None:
        """Gives the loss back as it was."""
        self._leave_bad_batches_out(False)
        self._means = []

    def on_test_begin(self, logs: Any = None) -> None:
        """Counts every batch of a validation."""
        self._leave_bad_batches_out(False)

    def on_test_end(self, logs: Any = None) -> None:
        """Returns to the training."""
        self._leave_bad_batches_out(True)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Reports the count, warns the first time, ends a training that is stuck."""
        total = self._guard.nonfinite_steps
        if logs is not None:
            logs["nonfinite_steps"] = total
        self._guard.raise_if_stuck()
        # By the total, not by the last step: with `steps_per_execution` above 1 there
        # were others since the last call.
        if total > self._before and not self._warned:
            self._warned = True
            warnings.warn(_first_warning(self._guard), RuntimeWarning, stacklevel=2)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Reports the count to the history."""
        if logs is not None:
            logs["nonfinite_steps"] = self._guard.nonfinite_steps

    def _leave_bad_batches_out(self, active: bool) -> None:
        for mean in self._means:
            mean.active.assign(active)


def _first_warning(guard: SafeOptimizer) -> str:
    """Says once what happened, what was done, and how to see where it began."""
    paths = guard.last_nonfinite_variables
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return (
        f"Step {guard.last_nonfinite_step}: the gradients of {', '.join(paths[:3])}{more} "
        f"are NaN, infinite or above the limit. {_DONE[guard.policy]} Further bad steps "
        "are counted as `nonfinite_steps` in the logs, without a warning. To see which "
        "line makes the first bad value, train once with `tfsafe.checked(model)`."
    )


def _safe_optimizer(optimizer: Any) -> SafeOptimizer:
    """Finds the `SafeOptimizer`, under the wrappers that Keras puts around it."""
    found = optimizer
    while not isinstance(found, SafeOptimizer):
        found = getattr(found, "inner_optimizer", None)
        if found is None:
            name = type(optimizer).__name__
            raise ValueError(
                "NumericsMonitor reports the bad steps of a SafeOptimizer. Received a "
                f"model with optimizer {name}. Compile it with "
                f"`tfsafe.optimizers.SafeOptimizer(keras.optimizers.{name}(...))`."
            )
    return found
