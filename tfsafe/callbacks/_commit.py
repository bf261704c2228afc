"""Restores what the forward pass of a skipped training step wrote."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe._patching import Patch, patches_on
from tfsafe.callbacks import _finite, _training
from tfsafe.callbacks._finite import Logs
from tfsafe.optimizers import SafeOptimizer

# The operations that use a variable without writing to it.
_READS = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"}


class WholeStep:
    """Wraps the `train_step` of a model whose optimizer is a `SafeOptimizer`.

    While it is active, a non-finite step does not keep what its forward pass wrote:
    moving statistics, metrics, seed generators, states of recurrent layers. The switch
    is a variable, so that it reaches a training step that is traced already.

    A skipped step (policy "skip", an outlier, or a `LossScaleOptimizer` outside) leaves
    all of that state as before. A step whose gradients were replaced (the other
    policies) leaves the elements as before that became NaN or infinite, and whole
    metrics with such elements: a sum and its count belong together.

    All of this happens within the step: no value goes to the host. A compiled step
    touches only the variables that it writes to anyway; a frozen backbone costs
    nothing.

    Attributes:
      active: The switch.
      means: Running losses that ignore a non-finite batch of this step.
    """

    def __init__(self, model: keras.Model, train_step: Callable[[Any], Any]):
        self._model = model
        self._train_step = train_step
        self.active = tf.Variable(False, trainable=False)
        self.means: list[_finite.FiniteMean] = []

    def __call__(self, data: Any) -> Any:
        """Takes one step, with the argument and the result of `train_step`."""
        guard = _training.safe_optimizer(self._model.optimizer)
        if guard is None:
            return self._train_step(data)
        before = {id(v): tf.convert_to_tensor(v) for v in _written_in(self._model)}
        steps, bad_steps, outliers = _counts(guard)
        with _finite.within_step(self.means):
            logs = self._train_step(data)
        new_steps, new_bad_steps, new_outliers = _counts(guard)
        is_bad = new_bad_steps > bad_steps
        skipped = new_outliers > outliers
        if self._model.optimizer is not guard:
            # A `LossScaleOptimizer` that skips a step does not call what it wraps.
            skipped = tf.logical_or(skipped, tf.equal(new_steps, steps))
        if guard.policy == "skip":
            skipped = tf.logical_or(skipped, is_bad)
        self._restore(
            before,
            skipped=tf.logical_and(self.active, skipped),
            replaced=tf.logical_and(self.active, is_bad),
        )
        return self._restored_logs(logs)

    def _restore(
        self, before: dict[int, tf.Tensor], skipped: tf.Tensor, replaced: tf.Tensor
    ) -> None:
        def restore() -> None:
            for metric in self._model.metrics:
                changes = _changes(metric.variables, before, starts_from_zero=True)
                broken = [tf.reduce_any(change.broke) for change in changes]
                is_broken = tf.reduce_any(tf.stack([False, *broken]))
                for change in changes:
                    change.undo_where(skipped | (replaced & is_broken))
            state = _training.state_of_forward_pass(self._model)
            for change in _changes(state, before):
                change.undo_where(skipped | (replaced & change.broke))

        if tf.distribute.has_strategy():
            # A write within a replica must not be in a branch.
            restore()
        else:
            tf.cond(skipped | replaced, restore, lambda: None)

    def _restored_logs(self, logs: Logs) -> Any:
        results = self._model.get_metrics_result()
        is_usual = isinstance(logs, dict) and logs.keys() == results.keys()
        return results if is_usual else logs


def of_training(model: keras.Model) -> WholeStep:
    """Wraps the `train_step` of a compiled model in a `WholeStep`, once.

    The wrapper stays, so that the next training need not trace the step again.

    Args:
      model: A compiled model. A training step that was traced before the first call is
        built again.

    Returns:
      The wrapper, old or new, inactive unless it was active before.
    """
    for patch in patches_on(model, "train_step"):
        if isinstance(patch.wrapper, WholeStep):
            return patch.wrapper
    new: list[WholeStep] = []

    def wrapper(train_step: Callable[[Any], Any]) -> WholeStep:
        new.append(WholeStep(model, train_step))
        return new[0]

    Patch(model, "train_step", wrapper).install()
    model.make_train_function(force=True)
    return new[0]


def _written_in(model: keras.Model) -> list[Any]:
    return [*_training.state_of_forward_pass(model), *model.metrics_variables]


def _counts(guard: SafeOptimizer) -> list[tf.Tensor]:
    names = ("steps", "nonfinite_steps", "outlier_steps")
    counters = guard.counters
    return [tf.convert_to_tensor(counters.get(name, tf.zeros([]))) for name in names]


class _Change:
    """The change of one variable in a step.

    Args:
      variable: Keras variable, after the step.
      before: The values before it, by the variable's identity, without the variables
        that were built within the step.
      starts_from_zero: Whether a variable that is missing was 0.

    Attributes:
      broke: Boolean `Tensor`, where the value became NaN or infinite.
    """

    def __init__(
        self,
        variable: Any,
        before: dict[int, tf.Tensor],
        *,
        starts_from_zero: bool = False,
    ):
        self._variable = variable
        self._new = tf.convert_to_tensor(variable)
        missing = tf.zeros_like(self._new) if starts_from_zero else self._new
        self._old = before.get(id(variable), missing)
        self.broke = (
            tf.math.is_finite(self._old) & ~tf.math.is_finite(self._new)
            if self._new.dtype.is_floating
            else tf.zeros_like(self._new, tf.bool)
        )

    def undo_where(self, condition: tf.Tensor) -> None:
        """Restores the old value if the condition holds."""
        self._variable.assign(tf.where(condition, self._old, self._new))


def _changes(
    variables: Sequence[Any], before: dict[int, tf.Tensor], **arguments: bool
) -> list[_Change]:
    """Returns the changes of those variables that the step writes to."""
    return [
        _Change(variable, before, **arguments)
        for variable in variables
        if _is_written(before.get(id(variable)))
    ]


def _is_written(old: tf.Tensor | None) -> bool:
    """Returns whether the step writes to the variable that `old` was read from."""
    if old is None or tf.executing_eagerly() or old.op.type != "ReadVariableOp":
        return True
    consumers = old.op.inputs[0].consumers()
    return any(operation.type not in _READS for operation in consumers)
