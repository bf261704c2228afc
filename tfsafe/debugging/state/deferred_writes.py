"""Delays what a call writes until its results are known to be finite."""

import contextlib
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe.debugging import values
from tfsafe.debugging.state.update_part import (
    READ,
    WRITES,
    UpdatePart,
    copied,
    read_variable,
)
from tfsafe.graph import (
    PLAIN_CALLS,
    OpFact,
    Plan,
    Value,
    bodies,
    is_call,
    is_compiled,
    op_types,
    stacked,
    summed,
)

_OF_VARIABLES = ("Assign", "ReadVariable", "Resource", "Rng", "Stateful", "Var")
_HARMLESS = op_types(OpFact.IGNORES_VALUE)


def may_repeat(op: tf.Operation) -> bool:
    """Returns whether an operation has no effects but on values of variables."""
    return (
        not op.op_def.is_stateful
        or is_call(op)
        or op.type == "Placeholder"
        or op.type.startswith(_OF_VARIABLES)
    )


def plain_variables(graph: tf.Graph) -> set[int]:
    """Returns the positions of the variables that a graph only reads and assigns.

    As a whole, and not within loops, branches or functions that XLA compiles.
    """
    position = {
        tensor.name: index
        for index, tensor in enumerate(graph.inputs)
        if tensor.dtype == tf.resource
    }
    plain = set(position.values())
    for op in graph.get_operations():
        for place, tensor in enumerate(op.inputs):
            index = position.get(tensor.name)
            if index is not None and not _is_plain(op, place):
                plain.discard(index)
    return plain - {position.get(tensor.name, -1) for tensor in graph.outputs}


def _is_plain(op: tf.Operation, place: int) -> bool:
    if op.type in PLAIN_CALLS:
        return not is_compiled(op) and place in plain_variables(next(bodies(op)))
    return not is_call(op) and (
        op.type == READ or op.type in WRITES or op.type in _HARMLESS
    )


class Frozen:
    """Gives variables their new values at the end of a call, or not at all.

    The old values need not be kept then: nothing has to be restored.

    The new values of small variables are kept until then. Those of large ones are
    computed twice instead, once to be checked, and once in the branch that writes them:
    no second copy of them is in memory. Nothing in between is checked by itself: XLA
    would keep it. A replay finds the operation.
    """

    def __init__(
        self,
        handles: Sequence[tf.Tensor],
        update: UpdatePart | None = None,
        *,
        tests_divisors: bool = False,
    ):
        self._handles = {id(handle): handle for handle in handles}
        self._update = update
        self._tests_divisors = tests_divisors
        # Sums over divisors since the last variable was written.
        self._divisors: list[tf.Tensor] = []
        # Of the new values that are computed twice, a sum over each.
        self._sums: dict[int, tf.Tensor] = {}
        # What is summed together has the same group.
        self._group: dict[int, tuple[Any, ...]] = {}
        # What looks at tensors since the last of them was written.
        self._awaited: list[tf.Tensor] = []
        self._copy_of: Value = lambda tensor: tensor
        self._old: dict[int, tf.Tensor] = {}
        self._new: dict[int, tf.Tensor] = {}

    def plan(self, graph: tf.Graph, _: Any) -> Plan:
        """Returns how to make what reads and writes variables; see `graph.Plan`."""
        if not self._handles:
            return {}
        return {
            op.name: functools.partial(
                self._quotient if self._divides(op) else self._make, op
            )
            for op in graph.get_operations()
            if op.type == READ or op.type in WRITES or self._divides(op)
        }

    def updates(self, op: tf.Operation) -> bool:
        """Returns whether an operation only computes new values of large variables."""
        return self._update is not None and self._update.has(op)

    @property
    def divides(self) -> bool:
        """Whether an infinite divisor counts as a new value that is not finite."""
        update = self._update
        return update is not None and any(map(self._divides, update.operations))

    def _divides(self, op: tf.Operation) -> bool:
        return self._tests_divisors and values.may_absorb(op.type) and self.updates(op)

    def _quotient(self, op: tf.Operation, value: Value) -> list[tf.Tensor]:
        inputs = list(map(value, op.inputs))
        quotient, divisor = copied(op, inputs), inputs[values.DENOMINATORS[op.type]]
        # NaN where the divisor is infinite; the branch that writes has the quotient
        # itself. XLA would keep a divisor that it sums over.
        if _compat.is_traced_for_xla():
            return [quotient + 0 * divisor]
        self._divisors.append(finite_sum(divisor))
        return [quotient]

    def _make(self, op: tf.Operation, value: Value) -> list[tf.Tensor]:
        handle = value(op.inputs[0])
        if id(handle) not in self._handles:
            return _copied(op, value)
        if op.type == READ:
            return [self._value(handle, op.outputs[0])]
        if self._update is None or not self._update.writes(op):
            self._assign(op, handle, value)
            return []
        self._copy_of = value
        for tensor in self._update.inputs_of(op):
            value(tensor)
        # One after the other: otherwise the new values of many are in memory at once,
        # and what they are computed from, while flags of it are computed.
        with self._after_looks() if self._sums else contextlib.nullcontext():
            self._awaited.clear()
            self._assign(op, handle, value)
            self._sums.pop(id(handle), None)
            total = tf.add_n([self._sum(op, id(handle)), *self._divisors])
            self._divisors.clear()
            self._sums[id(handle)] = total
        self.wait_for(self._sums[id(handle)])
        return []

    def wait_for(self, number: tf.Tensor) -> None:
        """Makes the update of large variables wait for what looks at a tensor."""
        if self._update is not None and self._update.handles:
            self._awaited.append(number)

    def _after_looks(self) -> contextlib.AbstractContextManager[Any]:
        home = tf.compat.v1.get_default_graph()
        awaited = [each.op for each in self._awaited if each.graph is home]
        return tf.control_dependencies([tf.group(awaited)] if awaited else [])

    def _sum(self, op: tf.Operation, key: int) -> tf.Tensor:
        """Returns a sum over a new value, or 0 where `values` has one over its group.

        XLA holds each tensor that it sums over. So for XLA the new values that follow
        from one gradient are added, element by element, before the sum.
        """
        new = self._new[key]
        # In half precision, a few finite numbers soon overflow.
        is_wide = values.is_float(new) and new.dtype.size > 2
        self._group.pop(key, None)
        if not (
            self._update is not None
            and _compat.is_traced_for_xla()
            and is_wide
            and new.shape.is_fully_defined()
        ):
            return finite_sum(new)
        sources = self._update.inputs_of(op)
        alike = [each.name for each in sources if each.shape == new.shape]
        group = (new.dtype, new.shape, *alike)
        last = next(reversed(self._group.values()), group)
        # What is computed from slots alone is written after them.
        self._group[key] = last if not alike and last[:2] == group else group
        return tf.zeros([], tf.float64)

    def _assign(self, op: tf.Operation, handle: tf.Tensor, value: Value) -> None:
        new = value(op.inputs[1])
        old = None if op.type == "AssignVariableOp" else self._value(handle, new)
        self._new[id(handle)] = WRITES[op.type](old, new)

    def _value(self, handle: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
        key = id(handle)
        if key in self._new:
            return self._new[key]
        if key not in self._old:
            self._old[key] = read_variable(handle, like)
        return self._old[key]

    def values(self) -> list[tf.Tensor]:
        """Returns the new values, or sums over them."""
        groups: dict[tuple[Any, ...], list[tf.Tensor]] = {}
        for key, group in self._group.items():
            groups.setdefault(group, []).append(self._new[key])
        shown = _shown(self._new.values())
        return [
            *(
                each
                for each in (self._new | self._sums).values()
                if id(each) not in shown
            ),
            *(tf.add_n(group) for group in groups.values()),
        ]

    def commit(self, is_good: tf.Tensor) -> None:
        """Writes the new values if the call is good."""
        value, update = self._copy_of, self._update
        given = (
            {name: value(tensor) for name, tensor in update.inputs.items()}
            if update is not None and self._sums
            else {}
        )

        def write() -> tf.Tensor:
            for key in self._new.keys() - self._sums.keys():
                tf.raw_ops.AssignVariableOp(
                    resource=self._handles[key], value=self._new[key]
                )
            if update is not None and self._sums:
                update.emit(given, value)
            return is_good

        if self._new:
            tf.cond(is_good, write, lambda: is_good)


# Numbers of inputs, from the first, whose NaN or infinity makes the output so, too. An
# infinite divisor does not.
_SHOWN_INPUTS = {"AddV2": 2, "Identity": 1, "Mul": 2, "Neg": 1, "RealDiv": 1, "Sub": 2}


def _shown(tensors: Iterable[tf.Tensor]) -> set[int]:
    """Returns the `id` of tensors whose non-finite values make another one non-finite.

    A moving mean of gradients is one: the new value of the weight follows from it.
    """
    names = {tensor.name: tensor for tensor in tensors}
    shown: set[int] = set()
    for last in names.values():
        queue, seen = [last], {last.name}
        while queue:
            op = queue.pop().op
            for each in op.inputs[: _SHOWN_INPUTS.get(op.type, 0)]:
                # Otherwise a broadcast to no elements could be between them.
                is_alike = each.shape.is_fully_defined() and each.shape == last.shape
                if is_alike and each.name not in seen:
                    seen.add(each.name)
                    queue.append(each)
                    if each.name in names:
                        shown.add(id(names[each.name]))
    return shown


def _copied(op: tf.Operation, value: Value) -> list[tf.Tensor]:
    handle = value(op.inputs[0])
    if op.type == READ:
        return [read_variable(handle, op.outputs[0])]
    getattr(tf.raw_ops, op.type)(resource=handle, value=value(op.inputs[1]))
    return []


def finite_sum(structure: Any) -> tf.Tensor:
    """Returns a sum that is finite only if every number in the structure is."""
    sums: dict[tf.DType, list[tf.Tensor]] = {}
    for each in tf.nest.flatten(structure, expand_composites=True):
        if values.is_float(each):
            part = summed(each)
            sums.setdefault(part.dtype, []).append(part)
    # In float64, the sum over many does not overflow.
    parts = [summed(tf.cast(stacked(each), tf.float64)) for each in sums.values()]
    return tf.add_n(parts) if parts else tf.constant(0.0, tf.float64)
