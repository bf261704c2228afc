"""A traced function with flags on its operations, and with what it drew."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe.debugging._call import Call
from tfsafe.debugging._flagged import outputs_to_check
from tfsafe.debugging._options import Options
from tfsafe.graph import (
    Drawing,
    Emission,
    bodies,
    drawing,
    family,
    in_order,
    is_call,
    is_drawn,
    locate,
)


class Look(NamedTuple):
    """What one trace of a twin looks at.

    Attributes:
      flagged: The operations that have flags, each with the index of its output.
      graphs: The graphs in which they stand.
      drawn: The operations whose outputs are handed out.
    """

    flagged: list[tuple[tf.Operation, int]]
    graphs: list[tf.Graph]
    drawn: list[Drawing]


class Twin(NamedTuple):
    """What a twin gives.

    Attributes:
      result: The result of the function.
      flags: Boolean vector: which of `look.flagged` are not finite.
      drawn: The outputs of the operations `look.drawn`.
      look: What it looks at.
    """

    result: Any
    flags: tf.Tensor
    drawn: list[list[tf.Tensor]]
    look: Look


def is_due(concrete: Any, options: Options) -> bool:
    """Returns whether a function must be emitted again to be checked.

    Either because its operations are to have flags, or because it draws from something
    that a replay cannot rewind: the elements of a dataset, random numbers without seed.

    Raises:
      UnreadableError: If the function cannot be read.
    """
    graphs = family(concrete.graph)
    return options.level != "watch" or any(
        is_drawn(op) for graph in graphs for op in graph.get_operations()
    )


def emit(call: Call, options: Options) -> Twin:
    """Emits a call into the trace that is being made."""
    graphs = family(call.concrete.graph)
    home = tf.compat.v1.get_default_graph()
    drawn: list[list[tf.Tensor]] = []
    keys: list[Drawing] = []

    def observe(op: tf.Operation, _: Any, outputs: Sequence[tf.Tensor]) -> None:
        # In a loop, an operation draws more than once.
        if is_drawn(op) and outputs[0].graph is home:
            keys.append(drawing(op))
            drawn.append(list(outputs))

    def checks(op: tf.Operation) -> list[int]:
        outputs = outputs_to_check(op, options.level)
        return [] if outputs and _is_ignored(op, graphs, options) else outputs

    for variable in call.concrete.variables:
        # An outer tape learns of the variables that a trace reads.
        variable.read_value()
    emission = Emission(observe=observe, checks=checks)
    outputs = emission.emit(call.concrete.graph, call.inputs)
    look = Look(emission.flagged, graphs, keys)
    return Twin(call.packed(outputs), emission.flags(), drawn, look)


def _is_ignored(op: tf.Operation, graphs: Sequence[tf.Graph], options: Options) -> bool:
    if not options.ignore:
        return False
    place = locate(op, graphs)
    return options.ignores(
        [op.type, place.forward_op], [op.name, place.scope], place.site
    )


def raised(look: Look, flags: Any) -> list[tuple[tf.Operation, int]]:
    """Returns the operations whose flags are up, in the order of the program."""
    up = {
        (drawing(op), index): (op, index)
        for (op, index), flag in zip(look.flagged, flags.numpy(), strict=True)
        if flag
    }
    order = {key: place for place, key in enumerate(_in_order(look.graphs[0]))}
    return sorted(up.values(), key=lambda each: order[drawing(each[0])])


def _in_order(graph: tf.Graph) -> Iterator[Drawing]:
    for op in in_order(graph):
        if is_call(op):
            for body in bodies(op):
                yield from _in_order(body)
        else:
            yield drawing(op)
