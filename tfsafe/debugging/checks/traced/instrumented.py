"""Emits a copy of a traced function with flags on its operations."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.traced import choices
from tfsafe.debugging.state.deferred_writes import (
    Frozen,
    may_repeat,
    plain_variables,
)
from tfsafe.debugging.state.update_part import UpdatePart
from tfsafe.debugging.state.variables import Slot
from tfsafe.debugging.values import is_absorbed, may_absorb
from tfsafe.graph import (
    Drawing,
    Emission,
    OpFact,
    TracedCall,
    bodies,
    drawing,
    family,
    in_order,
    is_call,
    is_drawn,
    is_in_a_formula,
    locate,
    op_types,
    written_inputs,
)


class Look(NamedTuple):
    """What one trace of a check examines.

    Attributes:
      kept: The variables whose values before the call are returned.
      frozen: The variables that are written only if the call is good.
      flagged: The operations that have flags, each with the index of its output.
      graphs: The graphs of these operations.
      drawn: The operations whose outputs are returned for a replay.
    """

    kept: Sequence[Slot]
    frozen: Sequence[Slot] = ()
    flagged: Sequence[tuple[tf.Operation, int]] = ()
    graphs: Sequence[tf.Graph] = ()
    drawn: Sequence[Drawing] = ()


class Instrumented:
    """A call that is copied while a check is traced.

    Attributes:
      look: What the trace examines.
      frozen: The writes that it delays.
      result: The result of the function, once it is emitted.
      flags: Boolean vector: which of `look.flagged` are not finite.
      drawn: The outputs of the operations `look.drawn`.
      absorbs: Whether a division turned an overflow into 0, or NaN chose an integer
        that is returned; None if none can.
    """

    def __init__(
        self, call: TracedCall, options: Options, slots: Sequence[Slot], *, holds: bool
    ):
        self._call = call
        self._options = options
        self._graph, self._inputs = call.inside()
        self._graphs = family(self._graph)
        plain = _plain(self._graph, self._inputs) if holds else set()
        if not all(map(may_repeat, _operations(self._graphs))):
            plain = set()
        frozen = [slot for slot in slots if id(slot.handle) in plain]
        kept = [slot for slot in slots if id(slot.handle) not in plain]
        held = {id(slot.handle) for slot in frozen}
        names = [
            tensor.name
            for tensor, each in zip(self._graph.inputs, self._inputs, strict=True)
            if id(each) in held
        ]
        self.frozen = Frozen(
            [slot.handle for slot in frozen],
            UpdatePart(self._graph, names),
            tests_divisors=options.level != "watch",
        )
        self.look = Look(kept, frozen, graphs=self._graphs)
        self._choices = choices.returned_by(self._graph)
        self.result: Any = None
        self.flags = tf.zeros([0], tf.bool)
        self.drawn: list[list[tf.Tensor]] = []
        self.absorbs: tf.Tensor | None = None

    @property
    def is_due(self) -> bool:
        """Whether the call must be copied, to be checked or to be cheaper."""
        return (
            self._options.level != "watch"
            or bool(self.look.frozen)
            or any(map(is_drawn, _operations(self._graphs)))
            or bool(self._choices)
        )

    def emit(self) -> None:
        """Emits the copy into the trace that is being made."""
        home = tf.compat.v1.get_default_graph()
        keys: list[Drawing] = []
        drawn: list[list[tf.Tensor]] = []
        graphs, options = self._graphs, self._options
        chosen = self._choices

        absorbed: list[tf.Tensor] = []
        looks = options.level != "watch"

        # TensorFlow never unregisters a gradient, nor these two, which it refers to:
        # they must not refer to the call.
        def observe(op: tf.Operation, inputs: Any, outputs: Sequence[Any]) -> None:
            # In a loop, an operation draws more than once.
            if tf.compat.v1.get_default_graph() is not home:
                return
            if is_drawn(op):
                keys.append(drawing(op))
                drawn.append(list(outputs))
            if looks and _divides(op) and not self.frozen.updates(op):
                absorbed.append(is_absorbed(op.type, inputs))
                self.frozen.wait_for(absorbed[-1])

        def checks(op: tf.Operation) -> list[int]:
            if self.frozen.updates(op):
                return []
            outputs = outputs_to_check(op, options.level)
            if outputs and _is_excluded(op, graphs, options):
                outputs = []
            return [*outputs, *chosen.get(op, ())]

        def number(*output: Any) -> tf.Tensor:
            found = choices.number(*output)
            self.frozen.wait_for(found)
            return found

        emission = Emission(
            plan=self.frozen.plan, observe=observe, checks=checks, number=number
        )
        variables = _compat.living_variables(self._call.concrete)
        outputs = emission.emit(self._graph, self._inputs, variables)
        flagged, self.flags = emission.flagged, emission.flags
        of_choices = [i in chosen.get(op, ()) for op, i in flagged]
        if any(of_choices):
            absorbed.append(tf.reduce_any(self.flags & of_choices))
            others = np.flatnonzero(~np.array(of_choices))
            flagged = [flagged[i] for i in others]
            self.flags = tf.gather(self.flags, others)
        self.look = self.look._replace(flagged=flagged, drawn=keys)
        self.drawn = drawn
        self.result = self._call.packed(outputs)
        self.absorbs = tf.reduce_any(tf.stack(absorbed)) if absorbed else None


def _divides(op: tf.Operation) -> bool:
    return may_absorb(op.type) and op.outputs[0].dtype.is_floating


def _operations(graphs: Sequence[tf.Graph]) -> Iterator[tf.Operation]:
    for graph in graphs:
        yield from graph.get_operations()


def _plain(graph: tf.Graph, inputs: Sequence[Any]) -> set[int]:
    """Returns the `id` of the handles that are plain wherever they are passed."""
    plain = plain_variables(graph) & set(written_inputs(graph))
    others = {id(each) for index, each in enumerate(inputs) if index not in plain}
    return {id(inputs[index]) for index in plain} - others


def _is_excluded(
    op: tf.Operation, graphs: Sequence[tf.Graph], options: Options
) -> bool:
    if options.strict and op.type == "Const" and is_in_a_formula(op):
        # What a formula selects where it has no value.
        return True
    if not options.exclude:
        return False
    place = locate(op, graphs)
    return options.excludes(
        [op.type, place.forward_op], [op.name, place.scope], place.site
    )


def raised(look: Look, flags: Any) -> list[tuple[tf.Operation, int]]:
    """Returns the operations whose flags are up, in the order of the program."""
    up = {
        (drawing(op), index): (op, index)
        for (op, index), flag in zip(look.flagged, flags.numpy(), strict=True)
        if flag
    }
    if not up:
        return []
    order = {key: place for place, key in enumerate(_in_order(look.graphs[0]))}
    return sorted(up.values(), key=lambda each: order[drawing(each[0])])


def _in_order(graph: tf.Graph) -> Iterator[Drawing]:
    for op in in_order(graph):
        if is_call(op):
            for body in bodies(op):
                yield from _in_order(body)
        else:
            yield drawing(op)


_DOMAIN = op_types(OpFact.SINGULAR)
_MOVES = op_types(OpFact.ADDS_NO_NUMBER)
_STAYS_FINITE = op_types(OpFact.STAYS_FINITE)
_FIRST_ALONE = op_types(OpFact.ONE_RESULT)


def outputs_to_check(op: tf.Operation, level: str) -> list[int]:
    """Returns the indices of the outputs of `op` that a level checks.

    Args:
      op: An operation of a traced function.
      level: `"domain"`, `"full"`, or any other for none.
    """
    if level == "domain":
        is_due = op.type in _DOMAIN
    else:
        is_due = level == "full" and op.type not in _MOVES and not _is_finite(op)
    if not is_due:
        return []
    outputs = op.outputs[:1] if op.type in _FIRST_ALONE else op.outputs
    return [
        index
        for index, tensor in enumerate(outputs)
        if tensor.dtype.is_complex
        or (tensor.dtype.is_floating and not _is_checked_before(op))
    ]


def _is_checked_before(op: tf.Operation) -> bool:
    """Returns whether `op` only fails where an input fails, which is checked itself.

    What comes from outside of the graph is not.
    """
    return op.type in _STAYS_FINITE and not any(
        source.type == "Placeholder" or is_call(source)
        for source in map(_source, op.inputs)
    )


def _source(tensor: tf.Tensor) -> tf.Operation:
    """Returns the operation that a tensor has its numbers from."""
    queue = [tensor]
    while queue[-1].op.type in _MOVES and queue[-1].op.inputs:
        queue.append(queue[-1].op.inputs[0])
    return queue[-1].op


def _is_finite(op: tf.Operation) -> bool:
    """Returns whether `op` is a constant without NaN and Inf."""
    if op.type != "Const":
        return False
    value = tf.make_ndarray(op.get_attr("value"))
    if value.dtype.kind not in "fcV":
        return True
    return bool(np.isfinite(value.astype(np.complex128)).all())
