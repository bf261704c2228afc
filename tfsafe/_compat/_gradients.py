"""Wraps the internals of TensorFlow's gradient functions and their registry."""

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tfsafe._compat._functions import graph_attribute


@contextlib.contextmanager
def skipped_inputs(sources: Sequence[Any]) -> Iterator[None]:
    """Lets `tf.gradients` make only the gradients of inputs that depend on a source.

    It makes those of all inputs of an operation, of constants too, and drops them. A
    tape passes the inputs to skip to the gradient function: `skip_input_indices`, which
    the function asks the operation for. Tried: TensorFlow 2.21.0; another version that
    does not ask for it computes the same.

    Args:
      sources: Tensors of one graph.
    """
    reached = {tensor.name for tensor in sources}
    ops: dict[str, Any] = {}
    queue = list(sources)
    while queue:
        for op in queue.pop().consumers():
            if op.name not in ops:
                ops[op.name] = op
                reached.update(tensor.name for tensor in op.outputs)
                queue.extend(op.outputs)
    # A gradient function may itself ask for gradients between these operations.
    before = [(op, getattr(op, "skip_input_indices", None)) for op in ops.values()]
    for op in ops.values():
        inputs = enumerate(op.inputs)
        # What a loop takes besides, such as the empty list in which it keeps what its
        # gradient reads, depends on a source in its next iteration.
        if op.type not in {"StatelessWhile", "While"}:
            op.skip_input_indices = tuple(i for i, x in inputs if x.name not in reached)
    try:
        yield
    finally:
        for op, skipped in before:
            op.skip_input_indices = skipped


def registered_gradient(name: str) -> Callable[..., Any]:
    """Returns the gradient function that is registered under a name.

    `ops.gradient_registry`, tried with TensorFlow 2.16.1 and 2.21.0. There is a public
    way to register one, but not to look it up.
    """
    from tensorflow.python.framework import ops

    gradient = ops.gradient_registry.lookup(name)
    return gradient.strong() if isinstance(gradient, _GradientOfGraph) else gradient


class _GradientOfGraph:
    """A registered gradient that its graph keeps alive, not the registry.

    A gradient function holds tensors of the graph in which it was made. If the registry
    kept it, no traced function with a gradient of its own would ever be collected.
    """

    _ATTRIBUTE = "tfsafe_gradients"

    def __init__(self, graph: Any, name: str, gradient: Callable[..., Any]):
        self._graph = weakref.ref(graph)
        self._name = name
        # Only an attribute makes a cycle that the garbage collector sees.
        graph_attribute(graph, self._ATTRIBUTE, dict)[name] = gradient

    def __call__(self, *args: Any) -> Any:
        """Computes the gradient, as TensorFlow calls it."""
        return self.strong()(*args)

    def strong(self) -> Callable[..., Any]:
        """Returns the gradient function itself."""
        graph = self._graph()
        if graph is None:
            raise LookupError(f"the graph of the gradient {self._name} was deleted")
        found: Callable[..., Any] = getattr(graph, self._ATTRIBUTE)[self._name]
        return found


def register_gradient(graph: Any, name: str, gradient: Callable[..., Any]) -> None:
    """Registers a gradient function under a name, for as long as a graph lives.

    `ops.gradient_registry`, tried with TensorFlow 2.16.1 and 2.21.0.
    `tf.RegisterGradient` has no way to end a registration.
    """
    from tensorflow.python.framework import ops

    ops.gradient_registry.register(_GradientOfGraph(graph, name, gradient), name)
    registered = ops.gradient_registry._registry
    weakref.finalize(graph, registered.pop, name, None).atexit = False


def release_gradient(op: Any) -> None:
    """Has the graph keep the gradient that `tf.custom_gradient` gave an operation.

    `ops.gradient_registry`, tried with TensorFlow 2.16.1 and 2.21.0, which keeps it as
    long as the process lives.
    """
    from tensorflow.python.framework import ops

    name = op.get_attr("_gradient_op_type").decode()
    entry = ops.gradient_registry._registry.pop(name)
    register_gradient(op.graph, name, entry["type"])
