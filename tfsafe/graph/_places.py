"""Where an operation comes from: the user's line, the forward operation, the scope."""

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import _compat
from tfsafe._report.caller import (
    is_file_of_keras,
    is_file_of_optimizers,
    is_own_file,
    is_user_file as is_user_file,
)
from tfsafe.errors import Site
from tfsafe.graph import _functions
from tfsafe.graph._stacks import frames_of, is_made_by, stack_of, stacks_kept


class Place(NamedTuple):
    """Where an operation comes from.

    Attributes:
      site: The user's line, or None.
      is_gradient: Whether the operation belongs to a backward pass.
      forward_op: Type of the forward operation that it differentiates, if known.
      scope: Name scope of the operation.
      is_stable: Whether its function runs in its stable form.
      is_library: Whether Keras or tfsafe makes it, not the line of the user.
    """

    site: Site | None
    is_gradient: bool = False
    forward_op: str = ""
    scope: str = ""
    is_stable: bool = False
    is_library: bool = False


def body_of(function: Callable[..., Any]) -> Any:
    """Returns the innermost Python function behind wrappers and callable objects."""
    body = inspect.unwrap(function)
    while isinstance(body, functools.partial):
        body = body.func
    body = getattr(body, "__func__", body)
    if hasattr(body, "__code__") or not callable(body):
        return body
    # An object that can be called.
    return type(body).__call__


def is_user_function(function: Callable[..., Any]) -> bool:
    """Returns whether the user wrote a Python function, as opposed to a library."""
    code = getattr(body_of(function), "__code__", None)
    return code is None or is_user_file(code.co_filename)


# Attribute of a graph: what its operations are copies of, by their names. The graph has
# it, not this module, so that both go when they are not needed any more: by way of a
# Python function the one can hold on to the other.
_ORIGINALS = "tfsafe_originals"
# Attribute of a graph: the names of the new operations among them.
_REPLACEMENTS = "tfsafe_replacements"
# Attribute of a graph that was traced as written, to be emitted in its stable form.
_STABLE = "tfsafe_stable"
# Attribute of a graph that was read from a file: the places, by name of the operation.
_PLACES = "tfsafe_places"


def note_places(graph: tf.Graph, places: Mapping[str, Place]) -> None:
    """Notes the places of the operations of a graph that has no stack traces."""
    setattr(graph, _PLACES, dict(places))


def note_stable(graphs: Iterable[tf.Graph]) -> None:
    """Notes that the operations of graphs are emitted in their stable form."""
    for each in graphs:
        setattr(each, _STABLE, True)


def note_copy(copy: tf.Operation, op: tf.Operation) -> None:
    """Notes that one operation was emitted for another, whose place it has."""
    _compat.graph_attribute(copy.graph, _ORIGINALS, dict)[copy.name] = original(op)


@contextlib.contextmanager
def kept() -> Iterator[Callable[..., Any]]:
    """Has TensorFlow's errors show the place of an operation for its copy.

    Yields:
      A function `at(op, make, ...)` that calls `make(...)`: what that makes is shown
      where the operation is.
    """
    with stacks_kept(), _compat.stacks_of_program() as at:

        def at_place(op: tf.Operation, *call: Any, **kwargs: Any) -> Any:
            return at(stack_of(original(op)).frames, *call, **kwargs)

        yield at_place


class Replacements:
    """Notes which operations of a graph that is being made replace others.

    They are noted together: the list of the operations is as long as the graph.
    """

    def __init__(self, graph: tf.Graph):
        self._graph = graph
        # An operation, and those from where to where in the graph replace it.
        self._waiting: list[tuple[tf.Operation, int, int]] = []
        self._is_made = False

    def begin(self) -> int:
        """Returns what `end` takes, before an operation is replaced."""
        return _compat.count_operations(self._graph)

    def end(self, op: tf.Operation, begin: int) -> None:
        """Notes that what was made since `begin` replaces an operation."""
        self._waiting.append((op, begin, _compat.count_operations(self._graph)))
        # A gradient of the user's can ask for something when the graph is made.
        if self._is_made:
            self.note()

    def note(self) -> None:
        """Ends the graph: what replaced its operations can be asked for from now on."""
        self._is_made = True
        operations = self._graph.get_operations() if self._waiting else []
        for op, begin, end in self._waiting:
            _note_replacement(operations[begin:end], op)
        self._waiting.clear()


def _note_replacement(made: Iterable[tf.Operation], op: tf.Operation) -> None:
    for each in made:
        if each.name in getattr(each.graph, _ORIGINALS, {}):
            continue
        note_copy(each, op)
        _compat.graph_attribute(each.graph, _REPLACEMENTS, set).add(each.name)
        # Those in its bodies too.
        if _functions.is_call(each):
            for body in _functions.bodies(each):
                _note_replacement(body.get_operations(), op)


def replacements(graph: tf.Graph) -> set[str]:
    """Returns the names of the operations of a graph that replace others."""
    return getattr(graph, _REPLACEMENTS, set())


def original(op: tf.Operation) -> tf.Operation:
    """Returns the operation that `op` was emitted for, or `op` itself."""
    return getattr(op.graph, _ORIGINALS, {}).get(op.name, op)


def locate_all(
    ops: Iterable[tf.Operation], graphs: Sequence[tf.Graph]
) -> dict[str, Place]:
    """Finds where many operations of one graph come from; see `locate`.

    Returns:
      The places, by name. Each stack is read once: an operation of the backward pass
      is compared with all its neighbours.
    """
    with stacks_kept():
        return {op.name: locate(op, graphs) for op in ops}


def locate(op: tf.Operation, graphs: Sequence[tf.Graph] = ()) -> Place:
    """Finds where an operation of a traced function comes from.

    For an operation of the backward pass this is the line of the forward operation,
    or the line of the user's own gradient function.

    Args:
      op: The operation.
      graphs: The graphs that may have its forward operation.

    Returns:
      The place, as far as the stack traces in the graph tell it.
    """
    first = original(op)
    known = getattr(first.graph, _PLACES, None)
    if known is not None:
        return known.get(first.name) or Place(None, scope=first.name.rpartition("/")[0])
    written = _before_vectorizing(op)
    if written is not None:
        return locate(written, graphs)
    # What replaces an operation has the scope of a formula; the user's is that of the
    # operation that was replaced.
    named = first if op.name in replacements(op.graph) else op
    stack, scope = stack_of(first), _compat.forward_scope(named.name)
    is_stable = hasattr(first.graph, _STABLE)
    if not stack.inner:
        # What `tf.gradients` made for a replacement.
        name = _differentiated(op) if named is first is not op else ""
        if name and (forward := _named(op.graph, name)) is not None:
            place = locate(forward, graphs)
            return place._replace(is_gradient=True, forward_op=forward.type)
        return Place(
            stack.site, scope=scope, is_stable=is_stable, is_library=stack.is_library
        )
    if stack.inner_site is not None:
        return Place(stack.inner_site, True, scope=scope, is_stable=is_stable)
    forward = _forward_op(op, stack.kind, graphs)
    if forward is None:
        return Place(stack.site, True, stack.kind, scope, is_stable)
    place = locate(forward, graphs)
    return place._replace(
        site=place.site or stack.site, is_gradient=True, forward_op=forward.type
    )


def _before_vectorizing(op: tf.Operation) -> tf.Operation | None:
    """Returns the operation of the user's that `tf.vectorized_map` made `op` from.

    It is still in the graph, unused: `loop_body/Sqrt` for
    `loop_body/Sqrt/pfor/...`.
    """
    name = _compat.before_vectorizing(op.name)
    return None if name is None else _named(op.graph, name)


def _named(graph: tf.Graph, name: str) -> tf.Operation | None:
    """Returns the operation of a name, without a walk over all of the graph."""
    try:
        return graph.get_operation_by_name(name)
    except KeyError:
        return None


def _is_backward(op: tf.Operation) -> bool:
    """Returns whether an operation is in a library's gradient function.

    The user's own code is not part of it, such as what `tf.recompute_grad` replays.
    """
    stack = stack_of(original(op))
    return bool(stack.inner) and stack.inner_site is None


def position_on_line(op: tf.Operation) -> tuple[int, int, frozenset[int]]:
    """Returns which of the operations of its type on its line an operation is.

    Returns:
      Its position among them, from 0, and their number; and all lines of its file that
      have operations of its type. Those of the backward pass do not count.
    """
    first = original(op)
    site = locate(first).site
    sites = [
        (each.name, place.site)
        for each in first.graph.get_operations()
        if each.type == first.type and not (place := locate(each)).is_gradient
    ]
    alike = [name for name, there in sites if there == site]
    position = alike.index(first.name) if first.name in alike else 0
    path = site.path if site else ""
    lines = {there.line for _, there in sites if there and there.path == path}
    return position, len(alike), frozenset(lines)


def is_library_code(op: tf.Operation) -> bool:
    """Returns whether Keras or tfsafe makes an operation, not the line of the user.

    Their layers, losses, metrics, optimizers or the training; of a backward pass, the
    forward operation counts.
    """
    stack = stack_of(original(op))
    if stack.inner and stack.inner_site is None:
        forward = _forward_op(op, stack.kind, ())
        if forward is not None:
            return is_library_code(forward)
    return stack.inner_site is None and stack.is_library


def is_optimizer_of_keras(op: tf.Operation) -> bool:
    """Returns whether an optimizer of Keras makes an operation.

    Not one that the user derives from it, in what the user writes.
    """
    return is_made_by(is_file_of_optimizers, frames_of(original(op)))


def is_in_a_formula(op: tf.Operation) -> bool:
    """Returns whether a formula of Keras or tfsafe has an operation in it."""
    return op.name in replacements(op.graph) or is_made_by(
        lambda path: is_own_file(path) or is_file_of_keras(path),
        frames_of(original(op)),
    )


def _forward_op(
    op: tf.Operation, kind: str, graphs: Sequence[tf.Graph]
) -> tf.Operation | None:
    name = _differentiated(op)
    # Inside bodies.
    return _by_name(name, kind, op.graph, graphs) if name else _by_tensors(op, kind)


def _differentiated(op: tf.Operation) -> str:
    """Returns the name of the operation that `tf.gradients` differentiated by `op`.

    It is in that of `op`: `gradients/<name of the forward operation>_grad/...`.
    """
    tail = op.name.rpartition("gradients/")[2]
    return tail.rpartition("_grad/")[0] if tail != op.name else ""


def _by_name(
    name: str, kind: str, graph: tf.Graph, graphs: Sequence[tf.Graph]
) -> tf.Operation | None:
    named = (_named(each, name) for each in graphs if each is not graph)
    candidates = [op for op in named if op is not None and _is_kind(op, kind)]
    home = _stem(graph)
    return max(candidates, key=lambda op: _shared(home, _stem(op.graph)), default=None)


def _shared(one: str, other: str) -> int:
    """Returns the length of the common beginning of two names."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _stem(graph: tf.Graph) -> str:
    # A graph outside of functions has no name.
    # `__backward_step_12` belongs to `__forward_step_34`, `body_5_grad_9` to `body_5`.
    return re.sub(
        r"^__(inference_*|forward_|backward_)+", "", getattr(graph, "name", "")
    )


def _is_kind(op: tf.Operation, kind: str) -> bool:
    # The gradient of `Add` serves `AddV2` too.
    return not kind or op.type == kind or op.type.startswith(kind)


def _by_tensors(op: tf.Operation, kind: str) -> tf.Operation | None:
    """Returns the forward operation that has most tensors in common with `op`.

    A gradient function reads inputs and outputs of the operation that it
    differentiates, directly or in the few steps that it takes.
    """
    direct, near = _forward_tensors(op)
    touched = {tensor.name: tensor for tensor in [*direct, *near]}
    weight = dict.fromkeys((tensor.name for tensor in near), 1)
    weight.update(dict.fromkeys((tensor.name for tensor in direct), 2))
    candidates = {tensor.op.name: tensor.op for tensor in touched.values()}
    for tensor in touched.values():
        candidates.update({each.name: each for each in tensor.consumers()})

    def shared(candidate: tf.Operation) -> int:
        names = {each.name for each in [*candidate.inputs, *candidate.outputs]}
        return sum(weight[name] for name in names & set(weight))

    fitting = [
        each
        for each in candidates.values()
        if not _is_backward(each) and _is_kind(each, kind)
    ]
    return max(fitting, key=shared, default=None)


def _forward_tensors(op: tf.Operation) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """Returns the forward tensors that `op` reads, and those its neighbours read.

    Neighbours are the operations made by the same call of a gradient function.
    """
    key = _gradient_call(op)
    group, queue = {op.name: op}, [op]
    while queue:
        each = queue.pop()
        around = [tensor.op for tensor in each.inputs]
        around += [user for tensor in each.outputs for user in tensor.consumers()]
        for other in around:
            if other.name not in group and _gradient_call(other) == key:
                group[other.name] = other
                queue.append(other)

    def forward(ops: Iterable[tf.Operation]) -> list[tf.Tensor]:
        return [
            tensor
            for each in ops
            for tensor in each.inputs
            if not _is_backward(tensor.op)
        ]

    return forward([op]), forward(group.values())


def _gradient_call(op: tf.Operation) -> tuple[str, str]:
    return stack_of(original(op)).kind, _compat.forward_scope(op.name)
