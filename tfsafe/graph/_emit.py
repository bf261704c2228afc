"""Emits a copy of a traced function, operation by operation, into another trace.

The copy has the same operations on the same devices, in the same order where they have
side effects. The caller may replace some operations, and have the outputs of others
checked. Loops and branches are emitted by `tf.while_loop` and `tf.cond`, so that the
copy can be differentiated; the bodies of plain calls are emitted where they are called.
"""

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import warn_of_fault
from tfsafe.graph import (
    _custom_gradients,
    _dataset_functions,
    _flags,
    _functions,
    _liveness,
    _places,
)

# Gives the copy of a tensor.
Value = Callable[[tf.Tensor], tf.Tensor]
# How to make the outputs of an operation, by its name, instead of copying it. The
# tensors that a maker will ask for may be listed in its attribute `reads`; without it
# it is found out when it asks.
Plan = Mapping[str, Callable[[Value], Sequence[tf.Tensor]]]
# Receives an operation, the copies of its inputs and its new outputs.
Observe = Callable[[tf.Operation, Sequence[tf.Tensor], Sequence[tf.Tensor]], None]

# Positions of the outputs of a graph that are wanted; None for all.
_Wanted = tuple[int, ...] | None
# These outputs, and flags.
_Made = tuple[list[tf.Tensor], tf.Tensor]
# Makers that ask for what other makers make, which ask in their turn: no deeper.
_DEPTH = 8
# They name operations and gradients of the graph that is read.
_LEFT_OUT = frozenset({"_class", "_gradient_op_type"})


class Emission:
    """Emits graphs again while a `tf.function` is traced.

    Args:
      plan: Called with each graph, bodies of loops and branches included, before it is
        emitted, and the positions of its outputs that are wanted, None for all; returns
        what to make in place of some of its operations.
      observe: Called after each operation that was copied. Those in bodies belong to
        other graphs than those around them.
      checks: Gives the indices of the outputs of an operation that flags are for.
      number: Gives the number behind a flag, finite only if the output is good.
      datasets: Whether to emit the functions of datasets that have a plan, too.
      repeated: Gives the names of operations whose effects those of the plan have.

    Attributes:
      flags: A boolean vector: which outputs of the last graph are not finite. For an
        operation in a loop, whether that was so in any iteration; for one that did not
        run, False.
      flagged: The operation and the index of its output behind each flag.
    """

    def __init__(
        self,
        *,
        plan: Callable[[tf.Graph, _Wanted], Plan] = lambda *_: {},
        observe: Observe = lambda *_: None,
        checks: _flags.Checks = lambda _: (),
        number: _flags.Number = _flags.total_of,
        datasets: bool = False,
        repeated: Callable[[tf.Graph], Collection[str]] = lambda _: (),
    ):
        self.plan = plan
        self.observe = observe
        self.checks = functools.cache(checks)
        self.number = number
        self.datasets = datasets
        self.repeated = repeated
        self.flagged: list[_flags.Output] = []
        # The graph is kept with its plan so that its `id` stays taken.
        self._plans: dict[tuple[int, _Wanted], tuple[tf.Graph, Plan]] = {}
        self.flags = tf.zeros([0], tf.bool)
        # Called with an operation and what to make in its place.
        self.at: Callable[..., Any]

    def emit(
        self,
        graph: tf.Graph,
        inputs: Sequence[Any],
        variables: Iterable[tf.Variable] = (),
        wanted: _Wanted = None,
    ) -> list[tf.Tensor]:
        """Emits one graph into the graph that is being made.

        Args:
          graph: Graph of a traced function.
          inputs: One tensor for each of `graph.inputs`, captured ones included.
          variables: Those of the traced function, which a tape around the copy is to
            watch.
          wanted: Positions of the outputs that are wanted; None for all.

        Returns:
          The outputs that are wanted.

        Raises:
          UnreadableError: If the graph calls a function that Python does not know.
        """
        for variable in variables:
            # A tape learns of a variable by its name, not by what reads it.
            _compat.watch(variable)
        with _places.kept() as self.at:
            outputs, self.flags = Body(self, graph, inputs, wanted).run()
        self.flagged = _flags.outputs_of(graph, self.checks)
        return outputs

    def plan_of(self, graph: tf.Graph, wanted: _Wanted = None) -> Plan:
        """Returns the plan of a graph, which is asked for once."""
        key = id(graph), wanted
        if key not in self._plans:
            self._plans[key] = graph, self.plan(graph, wanted)
        return self._plans[key][1]

    def reads(self, graph: tf.Graph, wanted: _Wanted = None) -> _liveness.Reads:
        """Returns the function that gives what an operation of the graph may read."""
        plan = self.plan_of(graph, wanted)

        # Asked for again and again, and a custom gradient is searched for tensors.
        @functools.cache
        def reads(op: tf.Operation) -> Sequence[tf.Tensor]:
            if op.name in plan:
                return getattr(plan[op.name], "reads", op.inputs)
            return _liveness.read_by(op)

        return reads


class Body:
    """One graph that is being emitted."""

    def __init__(
        self,
        emission: Emission,
        graph: tf.Graph,
        inputs: Sequence[Any],
        wanted: _Wanted = None,
    ):
        self._emission = emission
        self._body = functools.partial(Body, emission)
        self._graph = graph
        self._wanted = wanted
        self._plan = emission.plan_of(graph, wanted)
        self._reads = emission.reads(graph, wanted)
        self._home = tf.compat.v1.get_default_graph()
        # Copies by the name of the tensor.
        self._copies = {
            tensor.name: value
            for tensor, value in zip(graph.inputs, inputs, strict=True)
        }
        # What is given is there.
        self._made = {tensor.op.name for tensor in graph.inputs}
        # By device and value.
        self._constants: dict[tuple[str, bytes], Sequence[tf.Tensor]] = {}
        # Names of the tensors that a maker may differentiate by.
        reads = (getattr(maker, "reads", ()) for maker in self._plan.values())
        self._asked_for = {tensor.name for each in reads for tensor in each}
        # How many makers are asking just now, one within the other.
        self._depth = 0
        # Names of the tensors that are read.
        self._used: set[str] = set()
        self._totals: dict[tuple[str, int], tf.Tensor] = {}
        self._inner: dict[str, tf.Tensor] = {}
        self._replacements = _places.Replacements(self._home)

    def run(self) -> _Made:
        """Emits the graph.

        Returns:
          Its outputs that are wanted, and its flags.
        """
        outputs, wanted = self._graph.outputs, self._wanted
        read = outputs if wanted is None else [outputs[i] for i in wanted]
        repeated = self._emission.repeated(self._graph)
        needed = functools.partial(_liveness.needed, self._graph, read, repeated)
        possible, self._used = needed(self._reads)
        certain = needed(self._reads_first)[0] if self._plan else possible
        for op in _functions.as_made(self._graph):
            # What a maker may ask for is made when it does, save what might give
            # something else by then.
            is_due = op.name in possible and _compat.op_def(op).is_stateful
            if is_due or op.name in certain:
                self._make(op)
        made = [self.value(tensor) for tensor in read]
        self._replacements.note()
        checks = self._emission.checks
        return made, _flags.joined(self._graph, checks, self._totals, self._inner)

    def value(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the copy of a tensor; makes it now if it was not needed before."""
        if tensor.name not in self._copies:
            if self._depth == _DEPTH:
                raise _functions.TooDeepError(tensor)
            self._depth += 1
            try:
                with self._home.as_default():
                    self._make(self._ask(tensor))
            finally:
                self._depth -= 1
        return self._copies[tensor.name]

    def _ask(self, tensor: tf.Tensor) -> tf.Operation:
        """Returns the operation to make for a tensor that is not there."""
        self._used.add(tensor.name)
        # A call made without this output is repeated with it.
        self._made.discard(tensor.op.name)
        return tensor.op

    def _reads_first(self, op: tf.Operation) -> Sequence[tf.Tensor]:
        """Returns what must be there before an operation is made."""
        if op.name in self._plan:
            return getattr(self._plan[op.name], "reads", ())
        return self._reads(op)

    def _make(self, last: tf.Operation) -> None:
        """Makes an operation, and before it those whose outputs it reads."""
        # A stack in place of recursion: a graph can be deeper than Python's limit.
        stack = [last]
        while stack:
            op = stack[-1]
            missing = [
                tensor
                for tensor in self._reads_first(op)
                if tensor.name not in self._copies and tensor.op.name != op.name
            ]
            if missing and op.name not in self._made:
                stack.extend(self._ask(tensor) for tensor in missing)
                continue
            stack.pop()
            if op.name not in self._made:
                self._made.add(op.name)
                try:
                    self._emit(op)
                except _functions.TooDeepError as error:
                    self._made.discard(op.name)
                    if self._depth:
                        raise
                    stack += [op, self._ask(error.tensor)]

    def _emit(self, op: tf.Operation) -> None:
        outputs = self._replaced(op) if op.name in self._plan else None
        if outputs is None:
            inputs = [self.value(tensor) for tensor in op.inputs]
            outputs = self._run(op, inputs)
            self._emission.observe(op, inputs, outputs)
        for tensor, copy in zip(op.outputs, outputs, strict=False):
            if copy is not None:
                self._copies[tensor.name] = copy
        if not _functions.is_call(op):
            for index in self._emission.checks(op):
                number = self._emission.number(op, index, self.value, outputs)
                self._totals[op.name, index] = number

    def _replaced(self, op: tf.Operation) -> Sequence[tf.Tensor] | None:
        """Returns what the plan makes for an operation; None if that fails."""
        begin = self._replacements.begin()
        try:
            outputs = self._emission.at(op, self._plan[op.name], self.value)
        except _functions.TooDeepError:
            raise
        except Exception as error:
            warn_of_fault(f"the replacement of `{op.type}`", error)
            return None
        self._replacements.end(op, begin)
        return outputs

    def _run(self, op: tf.Operation, inputs: Sequence[Any]) -> Sequence[tf.Tensor]:
        with tf.device(op.device) if op.device else contextlib.nullcontext():
            if op.type == "Const":
                return self._constant(op)
            if not _functions.is_call(op):
                outputs = _dataset_functions.emitted(
                    self._emission, self._body, op, inputs
                )
                return outputs or self._copy(op, inputs)
            wanted = _liveness.wanted(op, self._used)
            if op.type in _functions.LOOPS:
                outputs, flags = self._loop(op, inputs, wanted)
            elif op.type in _functions.BRANCHES | _functions.CASES:
                outputs, flags = self._choice(op, inputs, wanted)
            else:
                outputs, flags = self._call(op, inputs, wanted)
        self._inner[op.name] = flags
        made = dict(zip(wanted, outputs, strict=True))
        return [made.get(i) for i in range(len(op.outputs))]

    def _copy(self, op: tf.Operation, inputs: Sequence[Any]) -> Sequence[tf.Tensor]:
        given = op.node_def.attr.items()
        attributes = {name: each for name, each in given if name not in _LEFT_OUT}
        for value in attributes.values():
            if value.HasField("func"):
                _compat.share_function(op.graph, value.func.name)
        with _custom_gradients.kept(
            op, self.value, lambda *call: self._body(*call).run()[0]
        ) as gradient:
            copy = self._emission.at(
                op,
                _compat.create_op,
                op.type,
                list(inputs),
                [tensor.dtype for tensor in op.outputs],
                name=op.name,
                attrs=attributes,
                op_def=_compat.op_def(op),
            )
        # A tape in the new trace sees only what is recorded for it.
        _compat.record(copy, gradient)
        _places.note_copy(copy, op)
        for tensor, output in zip(op.outputs, copy.outputs, strict=True):
            # What `set_shape` or `ensure_shape` added.
            output.set_shape(tensor.shape)
        return copy.outputs

    def _constant(self, op: tf.Operation) -> Sequence[tf.Tensor]:
        """Returns one copy for equal constants; one of its own to differentiate by."""
        if op.outputs[0].name in self._asked_for:
            return self._copy(op, ())
        value = op.node_def.attr["value"].SerializeToString(deterministic=True)
        key = op.device, value
        if key not in self._constants:
            self._constants[key] = self._copy(op, ())
        return self._constants[key]

    def _call(self, op: tf.Operation, inputs: Sequence[Any], wanted: _Wanted) -> _Made:
        def called() -> _Made:
            return self._body(_functions.body(op, "f"), inputs, wanted).run()

        if _functions.is_compiled(op):
            return tf.function(called, autograph=False, jit_compile=True)()
        return called()

    def _choice(
        self, op: tf.Operation, inputs: Sequence[Any], wanted: _Wanted
    ) -> _Made:
        graphs, checks = _functions.branches(op), self._emission.checks
        counts = [len(_flags.outputs_of(graph, checks)) for graph in graphs]

        def branch(position: int) -> _Made:
            outputs, own = self._body(graphs[position], inputs[1:], wanted).run()
            # Each gives the flags of all, its own being true.
            flags = [tf.zeros([count], tf.bool) for count in counts]
            flags[position] = own
            return outputs, tf.concat(flags, 0)

        branches = [functools.partial(branch, i) for i in range(len(graphs))]
        if op.type in _functions.CASES:
            return tf.switch_case(inputs[0], branches)
        return tf.cond(inputs[0], *branches)

    def _loop(
        self, op: tf.Operation, inputs: Sequence[Any], wanted: Sequence[int]
    ) -> _Made:
        condition, body = _functions.body(op, "cond"), _functions.body(op, "body")
        fixed = _functions.unchanged(body)
        written = tuple(sorted(_liveness.live_variables(op, wanted) - fixed))

        def reads(graph: tf.Graph) -> _liveness.Reads:
            return self._emission.reads(graph, written if graph is body else None)

        # By its plan, the body may read less than the written one.
        moving = tuple(sorted(_liveness.live_variables(op, wanted, reads) - fixed))

        def filled(values: Sequence[Any]) -> list[Any]:
            changed = dict(zip(moving, values, strict=True))
            return [changed.get(i, inputs[i]) for i in range(len(inputs))]

        def goes_on(values: Sequence[Any], _: Sequence[tf.Tensor]) -> tf.Tensor:
            return self._body(condition, filled(values)).run()[0][0]

        def once(values: Sequence[Any], flags: Sequence[tf.Tensor]) -> Any:
            outputs, new = self._body(body, filled(values), moving).run()
            return outputs, [each | new for each in flags]

        count = len(_flags.outputs_of(body, self._emission.checks))
        none = tf.zeros([count], tf.bool)
        values, flags = tf.while_loop(
            goes_on,
            once,
            ([inputs[i] for i in moving], [none] if count else []),
            shape_invariants=(
                [body.inputs[i].shape for i in moving],
                [none.shape] if count else [],
            ),
            parallel_iterations=op.get_attr("parallel_iterations"),
            maximum_iterations=_functions.maximum_iterations(op, inputs),
        )
        ends = filled(values)
        return [ends[i] for i in wanted], flags[0] if count else none
