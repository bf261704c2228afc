"""Replays a traced function and follows its non-finite values."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe.debugging.tracing.provenance import Propagation
from tfsafe.debugging.tracing.step import OnLine, Step, maker
from tfsafe.graph import (
    Drawing,
    Executed,
    Replay,
    dataset_family,
    locate,
    position_on_line,
)


def follow(
    graph: tf.Graph,
    inputs: Sequence[Any],
    propagation: Propagation,
    *,
    others: Iterable[tf.Graph] = (),
    compiled: bool = False,
    xla: bool = False,
    drawn: Mapping[Drawing, Sequence[Any]] | None = None,
) -> tuple[list[Any], set[str]]:
    """Runs a graph operation by operation and follows its non-finite values.

    Args:
      graph: Graph of a traced function.
      inputs: One value for each of its inputs.
      propagation: Observes every operation.
      others: Further graphs that may have forward operations.
      compiled: Whether XLA compiles the graph itself.
      xla: Whether to use XLA's kernels for what XLA compiles.
      drawn: The outputs of operations that a replay cannot draw, by `drawing`.

    Returns:
      The outputs, and the types of the operations met that draw random numbers from
      a state that cannot be rewound.
    """
    graphs = [each for root in (graph, *others) for each in dataset_family(root)]
    # By `id`: what is alive was made by the last operation of that key, or came from
    # outside and was there from the beginning.
    makers: dict[int, str] = {}

    def observe(executed: Executed) -> None:
        op = executed.op
        propagation.observe(
            Step(
                op.type,
                op.name,
                executed.inputs,
                executed.outputs,
                functools.partial(locate, op, graphs),
                lambda: [makers.get(id(each), "") for each in executed.inputs],
                executed.loops,
                op.get_attr,
                lambda: OnLine(*position_on_line(op)),
            )
        )
        before = makers.get(id(executed.inputs[0]), "") if executed.inputs else ""
        for each in executed.outputs:
            makers[id(each)] = maker(op.type, before)

    replay = Replay(observe, xla, drawn)
    outputs = replay.run(graph, inputs, compiled=compiled)
    return outputs, replay.random
