"""Tracing a function to its stable form.

Three traces make one: the function as it is written; its operations in one graph, with
the bodies of plain calls in the place of the calls, so that a formula is seen whole, and
without the gradients that it took; and, in the trace that is to be made, those
operations again with the rules applied and the gradients taken anew.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import Emission, UnreadableError, family, is_compiled
from tfsafe.rewriting._plan import Key, Planner, Rewrite, key
from tfsafe.rewriting._recording import Recording, recorded
from tfsafe.rewriting._requests import inside, makers, stand_ins
from tfsafe.rewriting._rule import Rule

_PLAIN_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_WHOLE = (tf.resource, tf.variant)


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
    recording, origins = written.recording, {}
    if recording.is_asked() or any(map(_has_plain_calls, graphs)):
        graph, inputs, recording, origins = _flat(graph, inputs, recording)
    planner = Planner(rules, recording, origins)
    outputs = Emission(plan=planner.plan).emit(
        graph, [inside(each) for each in inputs], written.concrete.variables
    )
    return written.pack(outputs), planner.rewrites()


def _name(function: Any) -> str:
    return getattr(function.python_function, "__name__", "function")


def _has_plain_calls(graph: tf.Graph) -> bool:
    return any(
        op.type in _PLAIN_CALLS and not is_compiled(op) for op in graph.get_operations()
    )


def _written(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> _Written:
    leaves = tf.nest.flatten((args, kwargs))
    places = [
        i
        for i, each in enumerate(leaves)
        if isinstance(each, tf.Tensor) and each.dtype not in _WHOLE
    ]
    arguments = [leaves[i] for i in places]
    recording = Recording()
    python_function = function.python_function
    results: list[Any] = []

    @tf.autograph.experimental.do_not_convert
    def given(tensors: Sequence[tf.Tensor]) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        return tf.nest.pack_sequence_as((args, kwargs), filled)

    @tf.autograph.experimental.do_not_convert
    def keep(result: Any) -> list[tf.Tensor]:
        results[:] = [result]
        return [
            tf.convert_to_tensor(each)
            for each in tf.nest.flatten(result, expand_composites=True)
            if each is not None
        ]

    def body(*tensors):  # type: ignore[no-untyped-def]
        own_args, own_kwargs = given(tensors)
        with recorded(recording):
            return keep(python_function(*own_args, **own_kwargs))

    concrete = tf.function(
        body, **_compat.autograph_options(function)
    ).get_concrete_function(*(tf.TensorSpec(t.shape, t.dtype) for t in arguments))

    def pack(outputs: Sequence[tf.Tensor]) -> Any:
        rest = iter(outputs)
        flat = tf.nest.flatten(results[0], expand_composites=True)
        return tf.nest.pack_sequence_as(
            results[0],
            [None if each is None else next(rest) for each in flat],
            expand_composites=True,
        )

    inputs = [*arguments, *concrete.captured_inputs]
    return _Written(concrete, inputs, arguments, recording, pack)


def _flat(
    graph: tf.Graph, inputs: Sequence[Any], recording: Recording
) -> tuple[tf.Graph, Sequence[Any], Recording, dict[Key, tf.Operation]]:
    """Emits a graph with the bodies of its plain calls in place of the calls."""
    flat = Recording()
    origins: dict[Key, tf.Operation] = {}

    def plan(each: tf.Graph) -> Any:
        return makers(
            recording.requests(each),
            lambda request, value: stand_ins(request, value, flat.add),
        )

    def note(
        op: tf.Operation, _: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor]
    ) -> None:
        for each in outputs:
            origins[key(each.op)] = op

    def emit() -> list[tf.Tensor]:
        emission = Emission(plan=plan, observe=note)
        return emission.emit(graph, [inside(each) for each in inputs])

    concrete = tf.function(emit, autograph=False).get_concrete_function()
    return concrete.graph, concrete.captured_inputs, flat, origins
