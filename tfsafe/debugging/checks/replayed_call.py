"""Replays a failed call, operation by operation, from the same state."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe.debugging import values
from tfsafe.debugging.checks import tally
from tfsafe.debugging.checks.failures import Failed
from tfsafe.debugging.explain.refusals import Raised
from tfsafe.debugging.state import variables
from tfsafe.debugging.state.variables import Slot
from tfsafe.debugging.tracing import results
from tfsafe.debugging.tracing.earlier import AfterEager
from tfsafe.debugging.tracing.origins import Origin, PathStep
from tfsafe.debugging.tracing.provenance import Propagation
from tfsafe.debugging.tracing.replay import follow
from tfsafe.debugging.tracing.results import NonFinite
from tfsafe.graph import (
    TracedCall,
    UnreadableError,
    family,
    is_compiled,
    written_inputs,
)


def written_slots(concrete: Any, names: variables.Names) -> list[Slot]:
    """Returns the variables that a concrete function captures and may write."""
    captured = concrete.captured_inputs
    offset = len(concrete.graph.inputs) - len(captured)
    known = {id(each.handle): each for each in _compat.living_variables(concrete)}
    slots = []
    for index, dtype in written_inputs(concrete.graph).items():
        if index < offset:
            continue
        handle = captured[index - offset]
        variable = known.get(id(handle))
        slots.append(
            Slot(handle, dtype, names.get(id(handle), ""))
            if variable is None
            else variables.slot_of(variable, names)
        )
    return slots


class ReplayedCall:
    """One call of a `tf.function`, ready to be replayed."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        names: variables.Names,
        labels: results.Labels,
    ):
        call = TracedCall(function, args, kwargs)
        self._concrete, self._inputs = call.concrete, call.inputs
        slots = written_slots(self._concrete, names)
        arguments = list(labels(function, args, kwargs))
        paths = {id(value): path for path, value in arguments}
        self._arguments = arguments
        self._slots = slots
        self._names = {id(slot.handle): slot.label for slot in slots}
        for variable in _compat.living_variables(self._concrete):
            slot = variables.slot_of(variable, names)
            self._names[id(slot.handle)] = slot.label
        for each, tensor in zip(call.given, call.inputs, strict=False):
            path = paths.get(id(each))
            self._names[id(tensor)] = f"argument `{path}`" if path else "an argument"

    def explain(self, failed: Failed) -> tuple[Sequence[NonFinite], str, list[Origin]]:
        """Finds the origins of non-finite results.

        The plain kernels are tried first: they are at hand, and XLA's differ from
        them in few operations, the gradient of sqrt at 0 for one. Where a plain kernel
        raises, as for a label that is not a class, XLA's may give NaN.

        Returns:
          The non-finite results with their origins, the reason why some may be
          missing, and all origins that were met.

        Raises:
          UnreadableError: If an operation cannot be run on its own.
        """
        best: tuple[Sequence[NonFinite], list[Origin]] = failed.nonfinite, []
        random: set[str] = set()
        ways = (False, True) if self._uses_xla() else (False,)
        for xla in ways:
            variables.restore(failed.held)
            try:
                propagation, outputs, random = self._follow(failed, xla)
            except UnreadableError:
                if xla == ways[-1]:
                    raise
                continue
            # The same output, in the call that failed and in this replay.
            outputs_by_id = dict(
                zip(map(id, _tensors(failed.result)), outputs, strict=True)
            )
            reported = [
                followed(each, propagation, outputs_by_id.get(id(each.key), each.key))
                for each in [
                    *failed.nonfinite,
                    *results.nonfinite_variables(failed.frozen),
                ]
            ]
            if failed.absorbs and propagation.absorbed:
                reported.append(
                    NonFinite("", None, origins=frozenset(propagation.absorbed[:1]))
                )
            if failed.absorbs:
                reported += chosen(failed.result, propagation, outputs_by_id)
            origins = propagation.all
            best = max(best, (reported, origins), key=_explained)
            if origins and all(each.origins for each in reported):
                break
        return best[0], _reason(random), best[1]

    def up_to_error(self) -> Raised:
        """Replays a call up to the operation that raises an error.

        Returns:
          Its inputs, unless none raises, and what led to them. The variables are as
          before.
        """
        now = [(slot, slot.read()) for slot in self._slots]
        propagation = self._propagation()
        try:
            with tally.entered():
                follow(self._concrete.graph, self._inputs, propagation)
        except UnreadableError as error:
            return Raised(error.inputs, propagation)
        finally:
            variables.restore(now)
        return Raised((), propagation)

    def _propagation(self) -> Propagation:
        propagation = AfterEager(lambda value: self._names.get(id(value), ""))
        named = [(self._names.get(id(each), ""), each) for each in self._inputs]
        propagation.rows = results.rows_of(self._arguments, named)
        return propagation

    def _follow(
        self, failed: Failed, xla: bool
    ) -> tuple[Propagation, list[Any], set[str]]:
        """Replays the call; its variables change as in the call."""
        propagation = self._propagation()
        for slot, value in failed.held:
            if not values.is_clean(value):
                propagation.outside(value, slot.label, slot.handle)
        outputs, random = follow(
            self._concrete.graph, self._inputs, propagation, xla=xla, drawn=failed.drawn
        )
        return propagation, outputs, random

    def _uses_xla(self) -> bool:
        return any(
            is_compiled(op)
            for graph in family(self._concrete.graph)
            for op in graph.get_operations()
        )


def _tensors(result: Any) -> list[Any]:
    flat = tf.nest.flatten(result, expand_composites=True)
    return [each for each in flat if each is not None]


def followed(result: NonFinite, propagation: Propagation, key: Any) -> NonFinite:
    """Returns a non-finite result with its origins, by tensor or handle."""
    return result._replace(
        origins=propagation.origins(key),
        path=lambda origin: propagation.path(key, origin),
        met_next=propagation.met_next,
    )


def chosen(
    result: Any, propagation: Propagation, keys: Mapping[int, Any] | None = None
) -> list[NonFinite]:
    """Returns the results whose integers NaN chose, as `argmax` of NaN does.

    Args:
      result: What a call returned.
      propagation: What was followed.
      keys: By `id` of a result: the tensor that was followed in its place.
    """
    found = []
    for label, value in values.leaves(result, "output"):
        key = value if keys is None else keys.get(id(value), value)
        if values.is_number(key) and not values.is_float(key):
            each = followed(NonFinite(label, value, value), propagation, key)
            for origin in each.origins:
                made = (step for step in each.path(origin) if _is_choice(step))
                origin.absorbed_at = next(((x.type, x.place()) for x in made), None)
            found += [each] if each.origins else []
    return found


def _is_choice(step: PathStep) -> bool:
    return step.type in values.CHOICES and not values.is_float(step.value())


def _explained(found: tuple[Sequence[NonFinite], list[Origin]]) -> int:
    """Returns for how many results an origin is known, 1 more if any is."""
    reported, origins = found
    return sum(bool(each.origins) for each in reported) + bool(origins)


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
