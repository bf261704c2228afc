"""Finds the operations of a graph, and the variables of a loop, that are needed.

A loop that was differentiated keeps what its gradient reads in variables of its own.
Where that gradient is not wanted, they are not either.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import _custom_gradients, _functions
from tfsafe.graph._op_facts import OpFact, op_types

# Gives the tensors that an operation reads.
Reads = Callable[[tf.Operation], Sequence[tf.Tensor]]


def upstream(tensors: Iterable[tf.Tensor], reads: Reads) -> Iterator[tf.Tensor]:
    """Yields tensors and all that they are computed from, each once."""
    queue = list(tensors)
    seen, made = set(map(id, queue)), set()
    for tensor in queue:
        yield tensor
        if tensor.op not in made:
            made.add(tensor.op)
            new = [each for each in reads(tensor.op) if id(each) not in seen]
            seen.update(map(id, new))
            queue += new


def _upstream(tensors: Iterable[tf.Tensor], reads: Reads) -> dict[str, tf.Tensor]:
    return {tensor.name: tensor for tensor in upstream(tensors, reads)}


def needed(
    graph: tf.Graph,
    outputs: Iterable[tf.Tensor],
    without: Collection[str],
    reads: Reads,
) -> tuple[set[str], set[str]]:
    """Finds what is computed for some tensors of a graph and for its effects.

    Args:
      graph: The graph.
      outputs: The tensors.
      without: Names of the operations that need not run for their effects.
      reads: Gives the tensors that an operation reads.

    Returns:
      The names of the operations, and those of the tensors that are read.
    """
    effects = [
        op for op in graph.get_operations() if op.name not in without and has_effect(op)
    ]
    read = [tensor for op in effects for tensor in reads(op)]
    behind = _upstream([*outputs, *read], reads)
    names = {op.name for op in effects} | {each.op.name for each in behind.values()}
    return names, set(behind)


def read_by(op: tf.Operation) -> list[tf.Tensor]:
    """Returns what an operation reads, now or when it is differentiated."""
    return [*op.inputs, *_custom_gradients.reads(op)]


def live_operations(
    graph: tf.Graph,
    instead: Mapping[str, Sequence[tf.Tensor]],
    wanted: Collection[int] | None = None,
) -> tuple[list[tf.Operation], set[str]]:
    """Finds what a graph must run, for its effects or for its outputs.

    Args:
      graph: Graph of a traced function.
      instead: What some operations read in place of their inputs, by their names.
      wanted: Positions of the outputs that are wanted; None for all.

    Returns:
      The operations, and the names of the tensors that are read.
    """

    def reads(op: tf.Operation) -> Sequence[tf.Tensor]:
        return instead[op.name] if op.name in instead else read_by(op)

    outputs = graph.outputs
    outputs = outputs if wanted is None else [outputs[i] for i in wanted]
    live, read = needed(graph, outputs, (), reads)
    return [op for op in graph.get_operations() if op.name in live], read


def live_variables(
    op: tf.Operation,
    used: Iterable[int],
    reads: Callable[[tf.Graph], Reads] = lambda _: read_by,
) -> set[int]:
    """Returns the positions of the loop variables that matter.

    Args:
      op: The loop.
      used: Positions of the outputs that are read.
      reads: Gives, for a graph, what each of its operations reads.
    """
    condition, body = _functions.body(op, "cond"), _functions.body(op, "body")
    live: set[int] = set()
    queue = [*used, *_reached(condition, condition.outputs, reads(condition))]
    effects = [each for each in body.get_operations() if has_effect(each)]
    read_in_body = reads(body)
    queue += _reached(
        body, [tensor for each in effects for tensor in each.inputs], read_in_body
    )
    while queue:
        position = queue.pop()
        if position not in live:
            live.add(position)
            queue.extend(_reached(body, [body.outputs[position]], read_in_body))
    return live


def _reached(graph: tf.Graph, tensors: Iterable[tf.Tensor], reads: Reads) -> list[int]:
    found = _upstream(tensors, reads)
    return [i for i, tensor in enumerate(graph.inputs) if tensor.name in found]


# The random kernels advance a state of their own, which nothing can read; TensorFlow
# prunes them too where their value is not needed.
_VALUES_ONLY = op_types(OpFact.DRAWS, OpFact.NO_EFFECT)


def has_effect(op: tf.Operation) -> bool:
    """Returns whether an operation must run even if its outputs are not needed.

    Reading a variable counts, so that a read stays between the writes around it; the
    bodies of a call count by what they write.
    """
    if _functions.is_call(op):
        return any(
            inner.type != "ReadVariableOp" and has_effect(inner)
            for graph in _functions.bodies(op)
            for inner in graph.get_operations()
        )
    return op.type not in _VALUES_ONLY and _compat.op_def(op).is_stateful


def wanted(op: tf.Operation, used: Collection[str]) -> tuple[int, ...]:
    """Returns the positions of the outputs of a call that are read.

    Args:
      op: The call.
      used: Names of all tensors that are read.
    """
    is_whole = has_effect(op)
    outputs = enumerate(op.outputs)
    return tuple(i for i, tensor in outputs if is_whole or tensor.name in used)
