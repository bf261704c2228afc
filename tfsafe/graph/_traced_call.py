"""Describes one call of a function as a graph and the values of the graph's inputs."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import _functions

_HANDLES = (tf.resource, tf.variant)
# What TensorFlow adds around a call that has the same arguments and results.
_PASSIVE = frozenset({"Identity", "NoOp", "Placeholder"})


@runtime_checkable
class Wrapper(Protocol):
    """A callable around a function that other features may rewrite first."""

    def around(self, change: Callable[[Any], Any]) -> Any:
        """Returns the same wrapper around the changed function."""


def resemble(function: Any, original: Any) -> None:
    """Gives a function the name, the docstring and the signature of another one."""
    functools.update_wrapper(function, original, updated=())
    with contextlib.suppress(TypeError, ValueError):
        function.__signature__ = inspect.signature(original)


class TracedCall:
    """One call of a function, traced with the tensors of the call as arguments.

    Variables and handles among the arguments are captured by the trace: what
    TensorFlow knows of a handle does not enter another trace as an argument.

    Args:
      function: The function. If it is a `tf.function`, its own trace is reused where
        there is one, so that its Python code does not run twice.
      args: Its positional arguments; tensors of a trace, or eager ones.
      kwargs: Its keyword arguments.
      **options: Arguments of the `tf.function` that traces the call.

    Attributes:
      concrete: The concrete function of the call, which takes its tensors alone.
      given: The tensors as they were passed; NumPy arrays are among them.
      inputs: One value for each input of `concrete.graph`, captured ones included.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        **options: Any,
    ):
        structure = tuple(args), dict(kwargs)
        leaves = tf.nest.flatten(structure)
        places = [index for index, leaf in enumerate(leaves) if _is_argument(leaf)]

        def filled(values: Sequence[Any]) -> Any:
            everything = list(leaves)
            for index, value in zip(places, values, strict=True):
                everything[index] = value
            return tf.nest.pack_sequence_as(structure, everything)

        # Without annotations: AutoGraph converts it.
        def call(values):  # type: ignore[no-untyped-def]
            own_args, own_kwargs = filled(values)
            return function(*own_args, **own_kwargs)

        self._arguments = [leaves[index] for index in places]
        if isinstance(function, tf.types.experimental.ConcreteFunction):
            # In a trace, TensorFlow calls none that has lost one of its variables.
            function.graph.variables = _compat.living_variables(function)
        self.concrete = tf.function(
            call, **{"autograph": False, **options}
        ).get_concrete_function(self._arguments)
        self.given = tf.nest.flatten(self._arguments, expand_composites=True)
        own = [tf.convert_to_tensor(each) for each in self.given]
        self.inputs = [*own, *self.concrete.captured_inputs]

    @property
    def fits(self) -> bool:
        """Whether the arguments have the dtypes that the functions called expect.

        A concrete function does not convert its arguments: the call fails when it runs.
        """
        return all(
            given.dtype == expected.dtype
            for op in self.concrete.graph.get_operations()
            if op.type in _functions.PLAIN_CALLS
            for given, expected in zip(
                op.inputs, _functions.body(op, "f").inputs, strict=True
            )
        )

    def run(self) -> Any:
        """Makes the call; returns its result."""
        return self.concrete(self._arguments)

    def inside(self) -> tuple[tf.Graph, list[Any]]:
        """Returns the graph of the function itself, and the values of its inputs.

        If the trace does more than call one other function, this is the trace's own
        graph: a function may be traced in place, without an operation that calls it,
        or first make a tensor of a Python number, as its signature asks.
        """
        graph = self.concrete.graph
        values = dict(
            zip((each.name for each in graph.inputs), self.inputs, strict=True)
        )
        active = [op for op in graph.get_operations() if op.type not in _PASSIVE]
        if len(active) != 1 or active[0].type not in _functions.PLAIN_CALLS:
            return graph, self.inputs
        call = active[0]
        inner = _functions.body(call, "f")
        is_whole = [each.name for each in call.outputs] == [
            _functions.behind_identities(each).name for each in graph.outputs
        ]
        if not is_whole or any(each.name not in values for each in call.inputs):
            return graph, self.inputs
        return inner, [values[each.name] for each in call.inputs]

    def packed(self, outputs: Sequence[Any]) -> Any:
        """Returns the result of the call for given outputs of the graph."""
        structure = self.concrete.structured_outputs
        flat = tf.nest.flatten(structure, expand_composites=True)
        left = iter(outputs)
        filled = [None if each is None else next(left) for each in flat]
        return tf.nest.pack_sequence_as(structure, filled, expand_composites=True)


def _is_argument(leaf: Any) -> bool:
    if isinstance(leaf, tf.Variable):
        return False
    # `tf.is_tensor` is False for the values of several replicas.
    if isinstance(leaf, np.ndarray | np.generic | tf.distribute.DistributedValues):
        return True
    if isinstance(leaf, tf.Tensor):
        return leaf.dtype not in _HANDLES
    return bool(tf.is_tensor(leaf))
