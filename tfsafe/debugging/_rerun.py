"""Running a failed call again, operation by operation, from the same state."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe.debugging import _results, _state, _values
from tfsafe.debugging._follow import follow
from tfsafe.debugging._results import Bad
from tfsafe.debugging._state import Held, Slot
from tfsafe.debugging._trail import Trail
from tfsafe.graph import family, is_compiled, written_inputs


def written_slots(concrete: Any, names: _state.Names) -> list[Slot]:
    """Returns the variables that a concrete function captures and may write."""
    captured = concrete.captured_inputs
    offset = len(concrete.graph.inputs) - len(captured)
    known = {id(each.handle): each for each in concrete.variables}
    slots = []
    for index, dtype in written_inputs(concrete.graph).items():
        if index < offset:
            continue
        handle = captured[index - offset]
        variable = known.get(id(handle))
        slots.append(
            Slot(handle, dtype, names.get(id(handle), ""))
            if variable is None
            else _state.slot_of(variable, names)
        )
    return slots


class Rerun:
    """One call of a `tf.function`, ready to be run again from the inside.

    Args:
      function: The function.
      args: Its positional arguments.
      kwargs: Its named arguments.
      names: Better names for variables, by `id` of the handle.
      labels: Names the arguments.

    Attributes:
      slots: The variables that the call may write.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        names: _state.Names,
        labels: _results.Labels,
    ):
        leaves = tf.nest.flatten((args, kwargs))
        moving = [i for i, leaf in enumerate(leaves) if _is_fed(leaf)]

        def call(values: Sequence[Any]) -> Any:
            filled = list(leaves)
            for index, value in zip(moving, values, strict=True):
                filled[index] = value
            args_, kwargs_ = tf.nest.pack_sequence_as((args, kwargs), filled)
            return function(*args_, **kwargs_)

        # The function's own trace is found again: its Python code does not run.
        fed = [leaves[index] for index in moving]
        self._concrete = tf.function(call, autograph=False).get_concrete_function(fed)
        given = tf.nest.flatten(fed, expand_composites=True)
        tensors = [tf.convert_to_tensor(each) for each in given]
        self._inputs = [*tensors, *self._concrete.captured_inputs]
        self.slots = written_slots(self._concrete, names)
        paths = {id(value): path for path, value in labels(function, args, kwargs)}
        self._names = {id(slot.handle): slot.label for slot in self.slots}
        for variable in self._concrete.variables:
            slot = _state.slot_of(variable, names)
            self._names[id(slot.handle)] = slot.label
        for each, tensor in zip(given, tensors, strict=True):
            path = paths.get(id(each))
            self._names[id(tensor)] = f"argument `{path}`" if path else "an argument"

    def follow(
        self, held: Sequence[Held], *, xla: bool
    ) -> tuple[Trail, list[Any], set[str]]:
        """Runs the call from the inside; its variables change as in the call.

        Args:
          held: The variables with their values before the call.
          xla: Whether to use XLA's kernels for what XLA compiles.

        Returns:
          The trail, the outputs, and the random operations that cannot be rewound.
        """
        trail = Trail(lambda value: self._names.get(id(value), ""))
        for slot, value in held:
            if not _values.is_clean(value):
                trail.outside(value, slot.label, slot.handle)
        graph = self._concrete.graph
        outputs, random = follow(graph, self._inputs, trail, xla=xla)
        return trail, outputs, random

    def explain(
        self, result: Any, bad: Sequence[Bad], held: Sequence[Held]
    ) -> tuple[Sequence[Bad], str]:
        """Finds the origins of bad results.

        The plain kernels are tried first: they are at hand, and XLA's differ from
        them in few operations, the gradient of sqrt at 0 for one.

        Args:
          result: What the call returned.
          bad: Which of its results are not finite.
          held: The variables with their values before the call.

        Returns:
          `bad` with its origins, and the reason why some may be missing.
        """
        best: Sequence[Bad] = bad
        random: set[str] = set()
        for xla in (False, True) if self._uses_xla() else (False,):
            _state.put_back(held)
            trail, outputs, random = self.follow(held, xla=xla)
            # The same output, in the call that failed and in this run.
            twins = dict(zip(map(id, _tensors(result)), outputs, strict=True))
            told = [
                each._replace(origins=trail.origins(twins.get(id(each.key), each.key)))
                for each in bad
            ]
            best = max(best, told, key=_explained)
            if _explained(best) == len(bad):
                break
        return best, _reason(random)

    def _uses_xla(self) -> bool:
        return any(
            is_compiled(op)
            for graph in family(self._concrete.graph)
            for op in graph.get_operations()
        )


def _is_fed(leaf: Any) -> bool:
    if isinstance(leaf, np.ndarray | np.generic):
        return True
    return tf.is_tensor(leaf) and not isinstance(leaf, tf.Variable)


def _tensors(result: Any) -> list[Any]:
    flat = tf.nest.flatten(result, expand_composites=True)
    return [each for each in flat if each is not None]


def _explained(bad: Sequence[Bad]) -> int:
    return sum(bool(each.origins) for each in bad)


def _reason(random: set[str]) -> str:
    if random:
        return (
            f"the call draws from {', '.join(sorted(random))}, whose random numbers "
            "cannot be drawn a second time. Use tf.random.stateless_* or "
            "keras.random.SeedGenerator, which can be."
        )
    return (
        "run one by one, its operations give finite values. What is left is a rewrite "
        "by TensorFlow's graph optimizer or by XLA, or a kernel that does not repeat "
        "itself."
    )
