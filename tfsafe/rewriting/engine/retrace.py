"""Tracing a function to its stable form.

Three traces make one: the function as it is written; its operations in one graph, with
the bodies of plain calls in the place of the calls, so that a formula is seen whole,
and without the gradients that it took; and, in the trace that is to be made, those
operations again with the rules applied and the gradients taken anew.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import (
    Emission,
    OpFact,
    UnreadableError,
    family,
    is_compiled,
    op_types,
)
from tfsafe.rewriting.engine.gradient_requests import inside, makers, stand_ins
from tfsafe.rewriting.engine.planner import Planner, Rewrite
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.engine.tape_recording import Recording, recorded

_PLAIN_CALLS = op_types(OpFact.PLAIN_CALL)
_HANDLES = (tf.resource, tf.variant)


class _Written(NamedTuple):
    """A function as it is written, traced.

    Attributes:
      concrete: Its trace.
      inputs: The tensors outside that its graph's inputs stand for.
      arguments: Those of them that are its arguments.
      recording: What it asked of tapes.
      pack: Packs its outputs as it does.
    """

    concrete: Any
    inputs: Sequence[Any]
    arguments: Sequence[tf.Tensor]
    recording: Recording
    pack: Callable[[Sequence[tf.Tensor]], Any]


def rewritten(
    function: Any,
    rules: Sequence[Rule],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> tuple[Any, list[Rewrite]]:
    """Emits the stable form of a function into the graph that is being made.

    Args:
      function: A `tf.function`.
      rules: The rules to apply, the first that fits each operation.
      args: Arguments, as another `tf.function` receives them while it is traced.
      kwargs: Likewise, by name.

    Returns:
      What the function returns, and what was rewritten.
    """
    written = _written(function, args, kwargs)
    graph, inputs = written.concrete.graph, written.inputs
    try:
        graphs = family(graph)
    except UnreadableError as error:
        warnings.warn(
            f"`{_name(function)}` is left as it is, for its operations cannot be read: "
            f"{error}.",
            RuntimeWarning,
            stacklevel=2,
        )
        return written.pack(written.concrete(*written.arguments)), []
    recording = written.recording
    if any(map(_has_plain_calls, graphs)):
        graph, recording = _flat(graph, inputs, recording)
        graphs = family(graph)
    planner = Planner(rules, recording)
    for variable in written.concrete.variables:
        # Before `inside`: a tape follows the handle of a variable that it knows.
        _compat.watch(variable)
    outputs = Emission(plan=planner.plan).emit(graph, [inside(i) for i in inputs])
    return written.pack(outputs), planner.rewrites(graphs)


def _name(function: Any) -> str:
    return getattr(function.python_function, "__name__", "function")


def _has_plain_calls(graph: tf.Graph) -> bool:
    return any(
        op.type in _PLAIN_CALLS and not is_compiled(op) for op in graph.get_operations()
    )


def _written(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Written:
    call = _Call(args, kwargs)
    recording = Recording()
    python_function = function.python_function

    def body(*tensors):  # type: ignore[no-untyped-def]
        own_args, own_kwargs = call.given(tensors)
        with recorded(recording):
            return call.kept(python_function(*own_args, **own_kwargs))

    concrete = tf.function(
        body, **_compat.autograph_options(function)
    ).get_concrete_function(*(tf.TensorSpec(t.shape, t.dtype) for t in call.tensors))
    inputs = [*call.tensors, *concrete.captured_inputs]
    return _Written(concrete, inputs, call.tensors, recording, call.packed)


class _Call:
    """Makes the arguments and the result of a call lists of tensors, and back.

    Args:
      args: Arguments.
      kwargs: Arguments by name.

    Attributes:
      tensors: The tensors among the arguments. Handles are not: what is known of a
        handle does not enter another trace with it, but is captured.
    """

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any]):
        self._structure = args, kwargs
        self._leaves = tf.nest.flatten(self._structure)
        self._places = [
            index
            for index, each in enumerate(self._leaves)
            if isinstance(each, tf.Tensor) and each.dtype not in _HANDLES
        ]
        self._result: Any = None
        self.tensors = [self._leaves[index] for index in self._places]

    @tf.autograph.experimental.do_not_convert
    def given(self, tensors: Sequence[tf.Tensor]) -> Any:
        """Returns the arguments with other tensors in place of the tensors."""
        filled = list(self._leaves)
        for index, tensor in zip(self._places, tensors, strict=True):
            filled[index] = tensor
        return tf.nest.pack_sequence_as(self._structure, filled)

    @tf.autograph.experimental.do_not_convert
    def kept(self, result: Any) -> list[tf.Tensor]:
        """Notes the structure of a result; returns its tensors."""
        self._result = tf.nest.map_structure(
            lambda each: tf.identity(each) if isinstance(each, tf.Variable) else each,
            result,
        )
        flat = tf.nest.flatten(self._result, expand_composites=True)
        return [tf.convert_to_tensor(each) for each in flat if each is not None]

    def packed(self, outputs: Sequence[tf.Tensor]) -> Any:
        """Returns the result with other tensors in place of its own."""
        rest = iter(outputs)
        flat = tf.nest.flatten(self._result, expand_composites=True)
        return tf.nest.pack_sequence_as(
            self._result,
            [None if each is None else next(rest) for each in flat],
            expand_composites=True,
        )


def _flat(
    graph: tf.Graph, inputs: Sequence[Any], recording: Recording
) -> tuple[tf.Graph, Recording]:
    """Emits a graph with the bodies of its plain calls in place of the calls."""
    recorded_anew = Recording()

    def plan(each: tf.Graph) -> Any:
        return makers(
            recording.requests(each),
            lambda request, value: stand_ins(request, value, recorded_anew.add),
        )

    # It is only read, and never made a function.
    flat = tf.Graph()
    with flat.as_default():
        flat.inputs = [
            tf.compat.v1.placeholder(each.dtype, each.shape) for each in inputs
        ]
        flat.outputs = Emission(plan=plan).emit(graph, flat.inputs)
    return flat, recorded_anew
