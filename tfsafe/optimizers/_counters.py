"""Counts non-finite steps in saved variables, and writes variables in a branch."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe._patching import Patch
from tfsafe._report.text import listed
from tfsafe.errors import NumericsError

AddVariable = Callable[..., keras.Variable]

# The names and their order are those in saved optimizers.
_TOTALS = (
    "steps",
    "nonfinite_steps",
    "consecutive_nonfinite_steps",
    "last_nonfinite_step",
)
_BY_VARIABLE = ("last_nonfinite_variables", "nonfinite_steps_by_variable")
# `tf.train.Checkpoint` names a variable by the optimizer's attribute that holds it.
CHECKPOINT_NAMES = {
    "steps": "_steps",
    "nonfinite_steps": "_nonfinite",
    "consecutive_nonfinite_steps": "_consecutive",
    "last_nonfinite_step": "_last",
    "outlier_steps": "_outliers",
    "last_nonfinite_variables": "_flags",
    "nonfinite_steps_by_variable": "_hits",
}


class StepCounters:
    """Counts steps on the device, within the compiled step.

    The properties read the counts on the host, between two compiled steps.

    Args:
      add_variable: `add_variable` of the Keras optimizer that owns the counters.

    Attributes:
      totals: The scalar counters by name.
      by_variable: Counters with one element for each variable; empty before `build`.
      paths: Paths of the variables, in this order.
    """

    def __init__(self, add_variable: AddVariable):
        self.paths: tuple[str, ...] = ()
        self.totals = {name: new_counter(add_variable, name) for name in _TOTALS}
        self.by_variable: dict[str, keras.Variable] = {}

    def build(self, variables: Sequence[Any], add_variable: AddVariable) -> None:
        """Creates the counters of each variable."""
        self.paths = tuple(getattr(v, "path", v.name) for v in variables)
        shape = (len(variables),)
        self.by_variable = {
            name: new_counter(add_variable, name, shape) for name in _BY_VARIABLE
        }

    def count(
        self, is_nonfinite: tf.Tensor, flags: tf.Tensor, elements: tf.Tensor
    ) -> None:
        """Counts a step; a finite one costs two writes."""
        steps, nonfinite, consecutive, last = self.totals.values()
        last_elements, hits = self.by_variable.values()

        def finite_step(_: list[Any]) -> None:
            consecutive.assign(0)

        def nonfinite_step(arguments: list[Any]) -> None:
            flags, elements = arguments
            nonfinite.assign_add(1)
            consecutive.assign_add(1)
            last.assign(steps)
            last_elements.assign(tf.cast(elements, tf.int64))
            hits.assign_add(tf.cast(flags, tf.int64))

        steps.assign_add(1)
        either(is_nonfinite, nonfinite_step, finite_step, [flags, elements])

    def total(self, name: str) -> int:
        """Returns one of `totals` as a Python number."""
        return read(self.totals[name])

    def positive(self, name: str) -> dict[str, int]:
        """Returns those elements of one of `by_variable` that are above 0, by path."""
        if name not in self.by_variable:
            return {}
        counts = map(int, self.by_variable[name].numpy())
        return {p: count for p, count in zip(self.paths, counts, strict=True) if count}

    def raise_if_stuck(self, max_consecutive: int | None) -> None:
        """Raises `NumericsError` if the last `max_consecutive` steps all failed."""
        if max_consecutive is None:
            return
        count = self.total("consecutive_nonfinite_steps")
        if count >= max_consecutive:
            raise NumericsError(self._describe(count, max_consecutive))

    def _describe(self, count: int, max_consecutive: int) -> str:
        paths = tuple(self.positive("last_nonfinite_variables"))
        where = f"{len(paths)} of {len(self.paths)} variables"
        steps = "step" if count == 1 else f"{count} steps in a row"
        return (
            f"The last {steps} had gradients that are NaN, infinite or above the "
            f"limit: step {self.total('last_nonfinite_step')}, in {where} "
            f"({listed(paths)}). Put `@tfsafe.checked` on the training "
            "step to see which operation makes the first non-finite value, and fix it "
            "or the data; where gradients grow from step to step, lower the learning "
            f"rate or clip them. (max_consecutive={max_consecutive})"
        )


def new_counter(
    add_variable: AddVariable, name: str, shape: tuple[int, ...] = ()
) -> keras.Variable:
    """Returns a new counter, or one counter for each element of a shape."""
    # Use int64, like Keras' `iterations`: TensorFlow keeps int32 off the GPU.
    return add_variable(
        shape, "zeros", "int64", aggregation="only_first_replica", name=name
    )


def read(counter: keras.Variable) -> int:
    """Returns a counter as a Python number.

    Raises:
      RuntimeError: Within a `tf.function`.
    """
    if not tf.executing_eagerly():
        raise RuntimeError(
            "The counts are Python numbers and cannot be read within a tf.function. "
            "Use the variables in `counters` there, or read the counts after the call."
        )
    value = counter.value
    if isinstance(value, tf.distribute.DistributedValues):
        return int(value.numpy())
    # One operation, a third of the time of `numpy`: callbacks read in each step.
    tensor = tf.raw_ops.ReadVariableOp(resource=value.handle, dtype=value.dtype)
    return int(tensor.numpy())


# Variables of fewer bytes are updated side by side.
_LARGE = 2**26


def either(
    condition: tf.Tensor,
    if_true: Callable[[list[Any]], None],
    if_false: Callable[[list[Any]], None],
    args: list[Any],
) -> None:
    """Calls one of two functions with `args`, each in a branch."""

    def on_all(strategy: Any, condition: Any, args: list[Any]) -> None:
        run = strategy.extended.call_for_each_replica
        tf.cond(
            # The same on all replicas.
            strategy.experimental_local_results(condition)[0],
            lambda: run(if_true, args=(args,)),
            lambda: run(if_false, args=(args,)),
        )

    if _compat.strategy_needs_merge_call():
        # A branch within a replica must not leave it, but a write has to: therefore
        # the branch is outside, and the replicas are within.
        replica = tf.distribute.get_replica_context()
        replica.merge_call(on_all, args=(condition, args))
    else:
        tf.cond(condition, lambda: if_true(args), lambda: if_false(args))


def nothing(args: list[Any]) -> None:
    """Leaves the variables unchanged."""


@contextlib.contextmanager
def in_turn(optimizer: Any, variables: Sequence[Any]) -> Iterator[None]:
    """Has an optimizer update large variables one after the other.

    In a branch all gradients are there from the beginning. TensorFlow would compute the
    updates of all variables at once, and need memory for all of them.
    """
    size = sum(math.prod(v.shape) * tf.as_dtype(v.dtype).size for v in variables)
    if tf.executing_eagerly() or tf.distribute.has_strategy() or size < _LARGE:
        yield
        return
    patch = Patch(optimizer, "update_step", _waiting)
    patch.install()
    try:
        yield
    finally:
        patch.remove()


def _waiting(update: Callable[..., None]) -> Callable[..., None]:
    last: list[tf.Operation] = []

    def wait(gradient: Any, variable: Any, learning_rate: Any) -> None:
        graph = tf.compat.v1.get_default_graph()
        with tf.control_dependencies([op for op in last if op.graph is graph]):
            update(gradient, variable, learning_rate)
        last[:] = graph.get_operations()[-1:]

    return wait
