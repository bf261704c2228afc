"""Running a traced function again, one operation at a time, on real tensors.

Loops are run iteration by iteration and nested functions from the inside, so that
an observer sees every value and its operation, in the order of the program. Only
public TensorFlow is used: the graph says what to run, `tf.raw_ops` runs it.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe.graph import _functions
from tfsafe.graph._dataset_elements import Datasets, is_reduction
from tfsafe.graph._functions import UnreadableError
from tfsafe.graph._op_facts import OpFact, op_types

_NOT_AGAIN = op_types(OpFact.NOT_REPLAYED)
_PASS = op_types(OpFact.RETURNS_INPUT)
_NEXT = op_types(OpFact.NEXT_ELEMENT)
_Kernel = Callable[[Sequence[Any]], Sequence[Any]]
# An operation, by its graph and its name.
Drawing = tuple[int, str]


def is_drawn(op: tf.Operation) -> bool:
    """Returns whether `op` gives something else each time, from a state of its own."""
    return op.type in _functions.KERNEL_RANDOM or op.type in _NEXT


def drawing(op: tf.Operation) -> Drawing:
    """Returns the key of an operation."""
    return id(op.graph), op.name


class Executed(NamedTuple):
    """One operation that was run.

    Attributes:
      op: The operation in its graph.
      inputs: The values that went in.
      outputs: The values that came out.
      loops: Iterations of the loops around it, outermost first, counted from 0.
    """

    op: tf.Operation
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    loops: tuple[int, ...]


class _Step(NamedTuple):
    op: tf.Operation
    kernel: _Kernel | None
    inputs: list[int]
    outputs: list[int]
    last_uses: list[int]


class _Program(NamedTuple):
    steps: list[_Step]
    size: int
    inputs: list[int]
    outputs: list[int]


class Replay:
    """Runs graphs and passes each operation to an observer.

    Args:
      observe: Called after each operation that computes something.
      xla: Whether what was compiled by XLA is run with XLA's kernels, each operation
        compiled alone.
      drawn: The outputs of operations that a replay cannot draw, by `drawing`.

    Attributes:
      random: Types of the operations met whose kernels draw from a state of their
        own, which no replay can rewind.
    """

    def __init__(
        self,
        observe: Callable[[Executed], None],
        xla: bool = False,
        drawn: Mapping[Drawing, Sequence[Any]] | None = None,
    ):
        self.random: set[str] = set()
        self._drawn = drawn or {}
        self._observe = observe
        self._xla = xla
        self._programs: dict[tuple[int, bool], _Program] = {}
        self._datasets = Datasets(
            lambda graph, inputs, loops: self.run(graph, inputs, loops=loops),
            lambda *executed: observe(Executed(*executed)),
        )

    def run(
        self,
        graph: tf.Graph,
        inputs: Sequence[Any],
        *,
        compiled: bool = False,
        loops: tuple[int, ...] = (),
    ) -> list[Any]:
        """Runs one graph.

        Args:
          graph: Graph of a traced function.
          inputs: One value for each of `graph.inputs`, captured ones included.
          compiled: Whether XLA compiles this graph.
          loops: Iterations of the loops around it.

        Returns:
          One value for each of `graph.outputs`.

        Raises:
          UnreadableError: If the graph holds something that cannot be run on its own.
        """
        program = self._program(graph, compiled)
        slots: list[Any] = [None] * program.size
        for slot, value in zip(program.inputs, inputs, strict=True):
            slots[slot] = value
        for op, kernel, places, results, last_uses in program.steps:
            given = [slots[place] for place in places]
            try:
                values = (
                    self._call(op, given, compiled, loops)
                    if kernel is None
                    else kernel(given)
                )
            except (tf.errors.OpError, TypeError, ValueError) as error:
                raise UnreadableError(f"`{op.type}` failed: {error}", given) from error
            # A function that was differentiated has its intermediates as further
            # outputs, after its own.
            for slot, value in zip(results, values, strict=False):
                slots[slot] = value
            if kernel is not None and op.type not in _PASS:
                self._datasets.note(op, given, values)
                self._observe(Executed(op, given, values, loops))
            for slot in last_uses:
                slots[slot] = None
        return [slots[slot] for slot in program.outputs]

    def _program(self, graph: tf.Graph, compiled: bool) -> _Program:
        key = id(graph), compiled and self._xla
        if key not in self._programs:
            self._programs[key] = self._read(graph, compiled and self._xla)
        return self._programs[key]

    def _read(self, graph: tf.Graph, compiled: bool) -> _Program:
        slots: dict[str, int] = {}
        for tensor in graph.inputs:
            slots[tensor.name] = len(slots)
        inputs = list(slots.values())
        steps = []
        meetings = _meetings(graph)
        for op in _functions.in_order(graph, meetings):
            # An input of the graph, which need not be a placeholder: the captures of
            # `tf.vectorized_map` are of type `Const`. Or run with those that it meets.
            is_known = op.outputs and op.outputs[0].name in slots
            if is_known or op.type == "Placeholder" or op.type in _NOT_AGAIN:
                continue
            together = meetings.get(op.name, [])
            known = self._drawn.get(drawing(op))
            if known is None:
                self.random |= _functions.KERNEL_RANDOM & {op.type}
            results = [each for part in together or [op] for each in part.outputs]
            for tensor in results:
                slots[tensor.name] = len(slots)
            arguments = [part.inputs[0] for part in together] or op.inputs
            used = [slots[tensor.name] for tensor in arguments]
            made = [slots[tensor.name] for tensor in results]
            kernel = (
                _kernel_of(op, together, compiled)
                if known is None
                else functools.partial(_known, known)
            )
            steps.append(_Step(op, kernel, used, made, []))
        outputs = [slots[tensor.name] for tensor in graph.outputs]
        kept = set(outputs)
        for step in reversed(steps):
            done = (set(step.inputs) | set(step.outputs)) - kept
            step.last_uses.extend(done)
            kept |= done
        return _Program(steps, len(slots), inputs, outputs)

    def _call(
        self,
        op: tf.Operation,
        inputs: Sequence[Any],
        compiled: bool,
        loops: tuple[int, ...],
    ) -> Sequence[Any]:
        compiled = compiled or _functions.is_compiled(op)
        if is_reduction(op):
            return self._datasets.reduced(op, inputs, loops)
        if op.type in _functions.LOOPS:
            return self._loop(op, inputs, compiled, loops)
        if op.type in _functions.BRANCHES:
            taken = "then_branch" if np.any(inputs[0]) else "else_branch"
            graph = _functions.body(op, taken)
        elif op.type in _functions.CASES:
            graphs = _functions.branches(op)
            index = int(inputs[0])
            graph = graphs[index if 0 <= index < len(graphs) else -1]
        else:
            graph = _functions.body(op, "f")
            return self.run(graph, inputs, compiled=compiled, loops=loops)
        return self.run(graph, inputs[1:], compiled=compiled, loops=loops)

    def _loop(
        self,
        op: tf.Operation,
        values: Sequence[Any],
        compiled: bool,
        loops: tuple[int, ...],
    ) -> Sequence[Any]:
        condition, body = _functions.body(op, "cond"), _functions.body(op, "body")
        count = 0
        while True:
            inside = (*loops, count)
            more = self.run(condition, values, compiled=compiled, loops=inside)
            if not np.any(more[0]):
                return values
            values = self.run(body, values, compiled=compiled, loops=inside)
            count += 1


def _kernel_of(
    op: tf.Operation, together: Sequence[tf.Operation], compiled: bool
) -> _Kernel | None:
    """Returns the function that runs a step; None for a call."""
    if together:
        return kernel(together)
    calls = _functions.is_call(op) or is_reduction(op)
    return None if calls else _kernel(op, compiled)


def _known(values: Sequence[Any], _: Sequence[Any]) -> Sequence[Any]:
    return values


def _kernel(op: tf.Operation, compiled: bool) -> _Kernel:
    """Returns the function that runs `op` on a list of its inputs."""
    if op.type in _PASS:
        return lambda inputs: inputs
    if op.type == "Const":
        constant = [tf.constant(tf.make_ndarray(op.get_attr("value")))]
        return lambda _: constant
    if op.type == "FakeParam":
        # In place of a value of the branch that was not taken.
        shape = [size or 0 for size in tf.TensorShape(op.get_attr("shape"))]
        filler = [tf.zeros(shape, op.get_attr("dtype"))]
        return lambda _: filler
    kernel = raw_kernel(op)
    if compiled and _is_arithmetic(op):
        return _compiled(kernel)
    if op.device:
        return _placed(kernel, op.device)
    return kernel


def _compiled(kernel: _Kernel) -> _Kernel:
    """Returns a kernel of XLA's: one concrete function for each kind of inputs.

    A loop can change the shapes. Concrete functions are what XLA compiles in any case;
    a `tf.function` around them would warn of so many traces.
    """
    known: dict[Any, Any] = {}

    def run(inputs: Sequence[Any]) -> Sequence[Any]:
        key = tuple((each.dtype, tuple(each.shape)) for each in inputs)
        if key not in known:
            function = tf.function(kernel, autograph=False, jit_compile=True)
            known[key] = function.get_concrete_function(list(inputs))
        return known[key](list(inputs))

    return run


def _is_arithmetic(op: tf.Operation) -> bool:
    tensors = [*op.inputs, *op.outputs]
    plain = all(
        tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool
        for tensor in tensors
    )
    return plain and any(tensor.dtype.is_floating for tensor in op.outputs)


def _placed(kernel: _Kernel, device: str) -> _Kernel:
    def run(inputs: Sequence[Any]) -> Sequence[Any]:
        with tf.device(device):
            return kernel(inputs)

    return run


def raw_kernel(op: tf.Operation) -> _Kernel:
    """Returns the function that makes `op` from a list of tensors for its inputs.

    Raises:
      UnreadableError: If the operation holds a resource of its own.
    """
    function = getattr(tf.raw_ops, op.type, None)
    if function is None or "Iterator" in op.type or "Collective" in op.type:
        raise UnreadableError(f"`{op.type}` cannot be run a second time on its own")
    fixed = _functions.attributes(op)
    # A function is given by its name.
    fixed = {name: getattr(each, "name", each) for name, each in fixed.items()}
    names = [name for name in inspect.signature(function).parameters if name != "name"]
    arguments = op.op_def.input_arg
    # `tf.raw_ops` renames a few arguments and keeps their order.
    fixed = _renamed(fixed, names[len(arguments) :])
    counts: list[int | None] = []
    for argument in arguments:
        if argument.number_attr:
            counts.append(op.get_attr(argument.number_attr))
        elif argument.type_list_attr:
            counts.append(len(op.get_attr(argument.type_list_attr)))
        else:
            counts.append(None)

    def run(inputs: Sequence[Any]) -> Sequence[Any]:
        values = iter(inputs)
        given = {
            name: next(values)
            if count is None
            else [next(values) for _ in range(count)]
            for name, count in zip(names, counts, strict=False)
        }
        return _flat(function(**given, **fixed))

    return run


def _renamed(fixed: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    unknown = [name for name in fixed if name not in names]
    free = [name for name in names if name not in fixed]
    new = dict(zip(unknown, free, strict=True))
    return {new.get(name, name): value for name, value in fixed.items()}


def _flat(result: Any) -> Sequence[Any]:
    if isinstance(result, tf.Tensor):
        return [result]
    if result is None or isinstance(result, tf.Operation):
        return []
    return [each for part in result for each in _flat(part)]


_TYPE = "CollectiveReduceV2"
_MERGE: dict[bytes, Callable[[Any], Any]] = {
    b"Add": tf.math.add_n,
    b"Max": lambda values: tf.math.reduce_max(values, 0),
    b"Min": lambda values: tf.math.reduce_min(values, 0),
    b"Mul": lambda values: tf.math.reduce_prod(values, 0),
}


def _meetings(graph: tf.Graph) -> dict[str, list[tf.Operation]]:
    """Finds the reductions that wait for each other.

    TensorFlow launches them in the same order on each device: those that are first
    on theirs meet, then the second, and so on.

    Returns:
      All that take part in a reduction, itself included, by its name.

    Raises:
      UnreadableError: If some that take part are not in the graph.
    """
    by_device: dict[str, list[tf.Operation]] = {}
    for op in graph.get_operations():
        if op.type == _TYPE:
            by_device.setdefault(op.device, []).append(op)
    queues = list(by_device.values())
    if len({len(each) for each in queues}) > 1 or any(
        tf.get_static_value(op.inputs[1]) != len(queues)
        for each in queues
        for op in each
    ):
        raise UnreadableError(f"`{_TYPE}` waits for replicas elsewhere")
    return {op.name: list(parts) for parts in zip(*queues, strict=True) for op in parts}


def kernel(parts: Sequence[tf.Operation]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Returns a function that takes the values of all parts and gives all results."""
    merge = _MERGE[parts[0].get_attr("merge_op")]
    is_mean = parts[0].get_attr("final_op") == b"Div"

    def run(values: Sequence[Any]) -> Sequence[Any]:
        total = merge(values)
        if is_mean:
            total = total / len(values)
        return [total] * len(values)

    return run
