"""The callback that shows in `fit` what a `SafeOptimizer` did."""

import os
from typing import Any

import keras

from tfsafe.callbacks import _commit, _finite, _finite_mean, _guard, _summaries
from tfsafe.callbacks._warning import warn
from tfsafe.errors import NumericsError, listed
from tfsafe.optimizers import SafeOptimizer

_EMPTY = "; a step of which nothing is left is left out."
_DONE = {
    "replace": f"SafeOptimizer puts 0 in place of bad elements{_EMPTY}",
    "zero_variable": f"SafeOptimizer puts 0 in place of these gradients{_EMPTY}",
    "skip": "SafeOptimizer left the step out.",
}


class NumericsMonitor(keras.callbacks.Callback):
    """Counts the bad steps of a `SafeOptimizer` where Keras shows its numbers.

    Adds `nonfinite_steps`, the optimizer's total so far, to the logs of every batch
    and epoch, and `outlier_steps` where it has an `outlier_threshold`: the progress
    bar, `History`, `CSVLogger` and TensorBoard show them. Warns once in a training, at
    the first bad step, and names the variables. Ends the training with `NumericsError`
    where the optimizer's `max_consecutive` is reached.

    While it watches, the training loss that Keras shows is the mean over the batches
    whose loss is finite. Without that, one bad batch makes it NaN for the rest of the
    epoch, and callbacks that look at it stop a training that is well. This holds for
    `loss` and for the means named `..._loss` of a model that keeps its own. What Keras
    lists besides for each of several outputs stays a plain mean, and so do all
    validation losses: nothing has dealt with a NaN there.

    A bad step is undone as a whole. The optimizer guards the weights, but the forward
    pass has written by then to the moving statistics of `BatchNormalization`, to the
    metrics, to the seed generators of `Dropout` and to the states of `stateful`
    recurrent layers; one NaN stays in them. With `commit_whole`, this state is put
    back within the compiled step:

    - where the step is left out (policy `"skip"`, an outlier, or a
      `LossScaleOptimizer` that skips it), all of it. Training goes on bit for bit as if
      the batch had not been there;
    - where its gradients are mended (the other policies), the elements that became NaN
      or infinite, and every metric as a whole that has such elements.

    A model that is run eagerly and was not built before its first step keeps what that
    one step did to its layers.

    Args:
      commit_whole: Whether a bad step is undone as a whole.
      log_dir: Directory for TensorBoard, such as that of `keras.callbacks.TensorBoard`:
        once per epoch, `nonfinite_steps`, for the ten variables that were hit most
        often `nonfinite_share/<path>`, and the histogram `nonfinite_shares` of all
        variables: whether bad steps hit a few or all. Needs no TensorBoard to write.
        None writes nothing.

    Raises:
      TypeError: If `commit_whole` is no boolean, or `log_dir` no path.
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
      >>> monitor.nonfinite_shares
      {}
    """

    _optimizer: SafeOptimizer

    def __init__(
        self,
        *,
        commit_whole: bool = True,
        log_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(commit_whole, bool):
            raise TypeError(
                "`commit_whole` must be True, to undo a bad step as a whole, or False. "
                f"Received: commit_whole={commit_whole!r}."
            )
        self.commit_whole = commit_whole
        self.log_dir = None if log_dir is None else _summaries.directory(log_dir)
        self._switches: list[Any] = []
        self._summaries: _summaries.Summaries | None = None
        self._start = self._before = 0
        self._hits_at_start: dict[str, int] | None = None

    @property
    def nonfinite_shares(self) -> dict[str, float]:
        """For each variable that was hit, the share of the bad steps that hit it.

        Most hit first, of this training or the last. They are counted on the device:
        with `steps_per_execution=n`, in each of the `n` steps.
        """
        if self._hits_at_start is None:
            return {}
        bad_steps = self._optimizer.nonfinite_steps - self._start
        hits = {
            path: count - self._hits_at_start.get(path, 0)
            for path, count in self._optimizer.nonfinite_steps_by_variable.items()
        }
        shares = {path: count / bad_steps for path, count in hits.items() if count}
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    def on_train_begin(self, logs: Any = None) -> None:
        """Finds the optimizer, and leaves bad batches out of the shown loss."""
        self._optimizer = _safe_optimizer(self.model.optimizer)
        step = _commit.of_training(self.model)
        step.means = _finite_mean.of_losses(self.model)
        self._switches = [mean.active for mean in step.means]
        if self.commit_whole:
            self._switches.append(step.active)
        if self.log_dir is not None:
            self._summaries = _summaries.Summaries(self.log_dir)
        self._start = self._before = self._optimizer.nonfinite_steps
        self._hits_at_start = self._optimizer.nonfinite_steps_by_variable
        self._switch(True)

    def on_train_end(self, logs: Any = None) -> None:
        """Gives the training back as it was."""
        self._switch(False)
        self._switches = []
        if self._summaries is not None:
            self._summaries.close()
            self._summaries = None

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Reports the count, warns the first time, ends a training that is stuck."""
        # By the total, not by the last step: with `steps_per_execution` above 1 there
        # were others since the last call.
        total = self._report(logs)
        is_first = total > self._before == self._start
        self._before = total
        self._end_if_stuck()
        if is_first:
            warn(_first_warning(self._optimizer))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Reports the count to the history, and to TensorBoard."""
        total = self._report(logs)
        if self._summaries is not None:
            size = len(self.model.trainable_variables)
            self._summaries.write(epoch, total, self.nonfinite_shares, size)

    def _report(self, logs: Any) -> int:
        total = self._optimizer.nonfinite_steps
        if logs is not None:
            logs["nonfinite_steps"] = total
            if self._optimizer.outlier_threshold is not None:
                logs["outlier_steps"] = self._optimizer.outlier_steps
        return total

    def _end_if_stuck(self) -> None:
        try:
            self._optimizer.raise_if_stuck()
        except NumericsError:
            # Keras calls no `on_train_end` after an error.
            self.on_train_end()
            raise

    def _switch(self, active: bool) -> None:
        for switch in self._switches:
            switch.assign(active)


def _first_warning(optimizer: SafeOptimizer) -> str:
    """Says once what happened, what was done, and how to see where it began."""
    paths = listed(optimizer.last_nonfinite_variables)
    return (
        f"Step {optimizer.last_nonfinite_step}: the gradients of {paths} are NaN, "
        f"infinite or above the limit. {_DONE[optimizer.policy]} Further bad steps are "
        f"counted as `nonfinite_steps` in the logs, without a warning. {_finite.CURE}"
    )


def _safe_optimizer(optimizer: Any) -> SafeOptimizer:
    found = _guard.find(optimizer)
    if found is None:
        name = type(optimizer).__name__
        raise ValueError(
            "NumericsMonitor reports the bad steps of a SafeOptimizer. Received a "
            f"model with optimizer {name}. Compile it with "
            f"`tfsafe.optimizers.SafeOptimizer(keras.optimizers.{name}(...))`."
        )
    return found
