"""Notes what a tape records of a graph."""

from typing import Any

import tensorflow as tf


class Spans:
    """The operations of a graph that a tape or accumulator has recorded.

    Args:
      tape: The tape or accumulator.

    Attributes:
      graph: The graph.
      tape: The tape, held so that no other is given its id.
    """

    def __init__(self, tape: Any):
        self.graph = tf.compat.v1.get_default_graph()
        self.tape = tape
        self._starts: list[int] = []
        self._ends: list[int] = []

    def begin(self) -> None:
        """Notes that it records from here on."""
        self._starts.append(len(self.graph.get_operations()))

    def end(self) -> None:
        """Notes that it records no more."""
        if len(self._ends) < len(self._starts):
            self._ends.append(len(self.graph.get_operations()))

    def names(self) -> set[str]:
        """Returns the names of the operations that it recorded."""
        ops = self.graph.get_operations()
        ends = [*self._ends, len(ops)]
        return {
            op.name
            for start, end in zip(self._starts, ends, strict=False)
            for op in ops[start:end]
        }
