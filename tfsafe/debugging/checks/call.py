"""One call of a `tf.function`, as a graph whose inputs are the tensors of the call."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe.graph import bodies, is_call


class Call:
    """One call of a `tf.function`, laid open.

    Args:
      function: The function.
      args: Its positional arguments; tensors of a trace, or eager ones.
      kwargs: Its named arguments.

    Attributes:
      concrete: A concrete function around the call, which takes its tensors alone.
      given: The tensors as they were passed; NumPy arrays are among them.
      inputs: One value for each input of `concrete.graph`, captured ones included.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ):
        leaves = tf.nest.flatten((args, kwargs))
        moving = [i for i, leaf in enumerate(leaves) if _is_fed(leaf)]

        def call(values: Sequence[Any]) -> Any:
            filled = list(leaves)
            for index, value in zip(moving, values, strict=True):
                filled[index] = value
            args_, kwargs_ = tf.nest.pack_sequence_as((args, kwargs), filled)
            return function(*args_, **kwargs_)

        # The function's own trace is found again: its Python code does not run.
        fed = [leaves[index] for index in moving]
        self.concrete = tf.function(call, autograph=False).get_concrete_function(fed)
        self.given = tf.nest.flatten(fed, expand_composites=True)
        own = [tf.convert_to_tensor(each) for each in self.given]
        self.inputs = [*own, *self.concrete.captured_inputs]

    def inside(self) -> tuple[tf.Graph, list[Any]]:
        """Returns the graph of the function itself, and its inputs.

        That of the call where this does more than to hand on its tensors: it may make
        a tensor of a Python number first, as a signature asks.
        """
        graph = self.concrete.graph
        known = dict(
            zip((each.name for each in graph.inputs), self.inputs, strict=True)
        )
        (op,) = filter(is_call, graph.get_operations())
        inner = next(bodies(op))
        plain = all(each.name in known for each in op.inputs)
        if not plain or len(inner.outputs) != len(graph.outputs):
            return graph, self.inputs
        return inner, [known[each.name] for each in op.inputs]

    def packed(self, outputs: Sequence[Any]) -> Any:
        """Returns the result that the call gives with these outputs of the graph."""
        structure = self.concrete.structured_outputs
        flat = tf.nest.flatten(structure, expand_composites=True)
        left = iter(outputs)
        filled = [None if each is None else next(left) for each in flat]
        return tf.nest.pack_sequence_as(structure, filled, expand_composites=True)


def _is_fed(leaf: Any) -> bool:
    # The values of several replicas are no tensor to `tf.is_tensor`.
    if isinstance(leaf, np.ndarray | np.generic | tf.distribute.DistributedValues):
        return not isinstance(leaf, tf.Variable)
    return tf.is_tensor(leaf) and not isinstance(leaf, tf.Variable)
