"""Keeping the gradients of `tf.custom_gradient` when a graph is emitted again.

TensorFlow registers such a gradient under a name that an `IdentityN` operation carries.
The registered function holds tensors of the graph in which it was traced, so it is
traced there, once more, when a gradient is asked for, and emitted after that.
"""

import contextlib
import functools
import itertools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorflow as tf

from tfsafe import _compat

_ATTRIBUTE = "_gradient_op_type"
_numbers = itertools.count()

# Emits a graph: takes it and its inputs, returns its outputs.
_Emit = Callable[[tf.Graph, list[Any]], list[Any]]


def is_custom(op: tf.Operation) -> bool:
    """Returns whether an operation has a gradient of its own."""
    return _ATTRIBUTE in op.node_def.attr and not op.type.endswith("PartitionedCall")


def reads(op: tf.Operation) -> list[tf.Tensor]:
    """Returns the tensors of its graph that an operation's own gradient holds."""
    if not is_custom(op):
        return []
    found: dict[str, tf.Tensor] = {}
    _search(_compat.registered_gradient(_name(op)), op.graph, found, set())
    return list(found.values())


@contextlib.contextmanager
def kept(
    op: tf.Operation, value: Callable[[tf.Tensor], Any], emit: _Emit
) -> Iterator[Callable[..., Any] | None]:
    """Gives the operation that is made within the gradient of its own that `op` has.

    Args:
      op: An operation.
      value: Gives the copy of a tensor of `op.graph`.
      emit: Emits the graph of the gradient.

    Yields:
      The gradient: takes one tensor for each output, returns one for each input. None
      if it is the one of the operation's type.
    """
    if not is_custom(op):
        yield None
        return
    name = f"tfsafe_emitted_{next(_numbers)}"
    home = tf.compat.v1.get_default_graph()
    # Now: the graph of a branch captures nothing more when it is done.
    copies = {each.name: _within(home, value(each)) for each in reads(op)}

    def gradient(_: tf.Operation, *upstream: Any) -> Any:
        # A resource among the outputs has no upstream gradient.
        given = [each for each in upstream if each is not None]
        specs = [
            None if each is None else tf.TensorSpec(each.shape, each.dtype)
            for each in upstream
        ]
        with op.graph.as_default():
            traced = _traced(op, specs)
        # A variable of the program is captured by its handle, which no graph holds.
        captured = [
            (copies[each.name] if each.name in copies else value(each))
            if getattr(each, "graph", None) is op.graph
            else each
            for each in traced.captured_inputs
        ]
        outputs = iter(emit(traced.graph, [*given, *captured]))
        # What has no gradient is None, and no output of the graph.
        return tf.nest.map_structure(
            lambda each: None if each is None else next(outputs),
            traced.structured_outputs,
            expand_composites=True,
        )

    _compat.register_gradient(home, name, gradient)
    with home.gradient_override_map({op.type: name}):
        yield functools.partial(gradient, None)


def _within(home: tf.Graph, tensor: Any) -> Any:
    """Returns a tensor of a surrounding graph as a graph captures it."""
    if getattr(tensor, "graph", home) is home:
        return tensor
    with home.as_default():
        return _compat.captured(tensor)


def _traced(op: tf.Operation, specs: list[tf.TensorSpec | None]) -> Any:
    registered = functools.partial(_compat.registered_gradient(_name(op)), op)
    function = tf.function(lambda *upstream: registered(*upstream), autograph=False)
    return function.get_concrete_function(*specs)


def _name(op: tf.Operation) -> str:
    return op.get_attr(_ATTRIBUTE).decode()


def _search(
    thing: Any, graph: tf.Graph, found: dict[str, tf.Tensor], seen: set[int]
) -> None:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if tf.is_tensor(thing):
        if getattr(thing, "graph", None) is graph:
            found[thing.name] = thing
        return
    for part in _parts(thing):
        _search(part, graph, found, seen)


def _parts(thing: Any) -> Iterable[Any]:
    if isinstance(thing, types.FunctionType):
        for cell in thing.__closure__ or ():
            # A cell whose variable was never bound is empty.
            with contextlib.suppress(ValueError):
                yield cell.cell_contents
        yield from thing.__defaults__ or ()
        yield from (thing.__kwdefaults__ or {}).values()
        yield getattr(thing, "__wrapped__", None)
    elif isinstance(thing, types.MethodType):
        yield thing.__func__
    elif isinstance(thing, functools.partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, dict):
        yield from thing.values()
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from thing
