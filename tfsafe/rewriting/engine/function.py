"""Makes the `tf.function` that runs the stable form of a function."""

import contextlib
import contextvars
import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import or_plain, warn_of_fault
from tfsafe.graph import (
    dataset_family,
    has_effect,
    replacements,
    resemble,
    written_inputs,
)
from tfsafe.rewriting.engine import tape_recording
from tfsafe.rewriting.engine.planner import Rewrite
from tfsafe.rewriting.engine.retrace import rewritten
from tfsafe.rewriting.engine.rule import Rule

_FOUND: contextvars.ContextVar[list[Rewrite] | None] = contextvars.ContextVar(
    "tfsafe_rewrites", default=None
)
_IS_WRITTEN: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "tfsafe_is_written", default=False
)
_MARK = "tfsafe_stabilized"
# How TensorFlow names the operation that raised an error.
_NODES = re.compile(r"{{(?:function_node \S+}}{{)?node ([^}\s]+)}}")


class _Stabilized(tape_recording.FUNCTION):
    """A `tf.function` that is inlined where another one is traced.

    If a constant went from the forward pass of a call to its gradient, XLA would treat
    everything that the call depends on as constant and compile the outer function in
    every step.
    """

    @property
    def name(self) -> str:
        """The name that Keras gives a loss, and its name scope: not "<lambda>"."""
        return str(super().name).strip("<>")

    @tf.autograph.experimental.do_not_convert
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = _state_of(self)
        if state is None or state.is_plain:
            return self.python_function(*args, **kwargs)
        if _compat.is_called_in_place(self) and _is_traced_into():
            args, kwargs = tf.nest.map_structure(as_argument, (args, kwargs))
            return self.python_function(*args, **kwargs)
        written: list[tuple[Any, tf.Tensor]] = []
        try:
            if not state.has_run and tf.executing_eagerly():
                written = _written(self.get_concrete_function(*args, **kwargs))
            result = super().__call__(*args, **kwargs)
            state.has_run = True
            return result
        except tf.errors.OpError as error:
            # Others are the program's own, such as the end of a data set.
            if not tf.executing_eagerly() or not _is_ours(self, error, args, kwargs):
                raise
            fault: Exception = error
        except _HalfMadeError as error:
            fault = error.fault
        for handle, value in written:
            tf.raw_ops.AssignVariableOp(resource=handle, value=value)
        state.is_plain = True
        result = self.python_function(*args, **kwargs)
        warn_of_fault(f"the stable form of `{state.name}`", fault)
        return result


class _HalfMadeError(Exception):
    """The stable form could not be made, and what was made of it must not run.

    Attributes:
      fault: Why.
    """

    def __init__(self, fault: Exception):
        super().__init__(str(fault))
        self.fault = fault


@dataclasses.dataclass
class _State:
    """What is known of a stabilised function.

    Attributes:
      name: Its name.
      skipped: The rewrites not to make.
      may_create: Whether it may create variables, as in its first trace.
      has_run: Whether a call has ended without an error.
      is_plain: Whether it runs as written, because its stable form failed.
    """

    name: str
    skipped: Collection[tuple[str, str]]
    may_create: bool = True
    has_run: bool = False
    is_plain: bool = False


def _written(concrete: Any) -> list[tuple[Any, tf.Tensor]]:
    """Returns the handles of the variables that a function writes, and their values."""
    captured = concrete.captured_inputs
    first = len(concrete.graph.inputs) - len(captured)
    return [
        (handle, tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))
        for index, dtype in written_inputs(concrete.graph).items()
        for handle in captured[index - first : index - first + 1]
        if index >= first
    ]


def _is_ours(
    function: Any, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Returns whether an operation that replaces another one raised an error."""
    named = {name.rpartition("/")[2] for name in _NODES.findall(str(error))}
    concrete = function.get_concrete_function(*args, **kwargs)
    graphs = list(dataset_family(concrete.graph))
    made = {name.rpartition("/")[2] for each in graphs for name in replacements(each)}
    return not named.isdisjoint(made)


def _is_traced_into() -> bool:
    """Returns whether a `tf.function` is being traced, or a branch or loop in it."""
    graph = tf.compat.v1.get_default_graph()
    return not tf.executing_eagerly() and graph.building_function


def as_argument(value: Any) -> Any:
    """Returns an argument, arrays and numbers of NumPy as tensors."""
    return tf.constant(value) if isinstance(value, np.ndarray | np.generic) else value


def stabilized(
    function: Callable[..., Any],
    rules: Sequence[Rule],
    *,
    autograph: bool = True,
    skipped: Collection[tuple[str, str]] = (),
) -> Any:
    """Returns a `tf.function` that runs the stable form of a function."""
    plain: Any = (
        function if is_traced(function) else tf.function(function, autograph=autograph)
    )

    state = _State(getattr(plain, "__name__", "function"), skipped)

    @tf.autograph.experimental.do_not_convert
    def body(*args: Any, **kwargs: Any) -> Any:
        if state.is_plain:
            return _as_written(plain, args, kwargs)
        if tf.executing_eagerly():
            # `tf.config.run_functions_eagerly`: only a graph can be rewritten.
            return result.get_concrete_function(*args, **kwargs)(*args, **kwargs)
        if tape_recording.active() is not None:
            return plain(*args, **kwargs)
        value, found = _in_place(state, plain, rules, args, kwargs)
        collector = _FOUND.get()
        if collector is not None:
            collector.extend(found)
        return value

    resemble(body, plain.python_function)
    setattr(body, _MARK, state)
    result = _compat.with_body(plain, body)
    result.__class__ = _Stabilized
    resemble(result, plain.python_function)
    return result


def _as_written(plain: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls a function whose stable form failed."""
    token = _IS_WRITTEN.set(True)
    try:
        return plain(*args, **kwargs)
    finally:
        _IS_WRITTEN.reset(token)


def is_as_written() -> bool:
    """Returns whether a function runs as written because its stable form failed."""
    return _IS_WRITTEN.get()


def _in_place(
    state: _State,
    plain: Any,
    rules: Sequence[Rule],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> tuple[Any, list[Rewrite]]:
    """Emits the stable form into the graph being made; the plain one if that fails."""
    faults: list[Exception] = []
    graph = tf.compat.v1.get_default_graph()
    before = len(graph.get_operations())

    def plainly() -> tuple[Any, list[Rewrite]]:
        if any(map(has_effect, graph.get_operations()[before:])):
            # They would happen twice. A new trace is without them.
            raise _HalfMadeError(faults[-1])
        return _as_written(plain, args, kwargs), []

    def ours() -> tuple[Any, list[Rewrite]]:
        try:
            found = rewritten(
                plain,
                rules,
                args,
                kwargs,
                may_create=state.may_create,
                skipped=state.skipped,
            )
        except Exception as error:
            faults.append(error)
            raise
        state.may_create = False
        return found

    def give_up() -> None:
        state.is_plain = True

    return or_plain(f"the stable form of `{state.name}`", ours, plainly, give_up)


def is_traced(function: Any) -> bool:
    """Returns whether this is a `tf.function`."""
    return isinstance(function, tape_recording.FUNCTION)


def is_stabilized(function: Any) -> bool:
    """Returns whether this is a `tf.function` that `stabilized` made."""
    return _state_of(function) is not None


def _state_of(function: Any) -> _State | None:
    body = getattr(function, "python_function", None)
    # That of a method is wrapped once more, to be bound.
    inner = getattr(body, "__wrapped__", None)
    state: _State | None = getattr(body, _MARK, None) or getattr(inner, _MARK, None)
    return state


@contextlib.contextmanager
def collected() -> Iterator[list[Rewrite]]:
    """Collects the rewrites of the functions that this thread traces."""
    found: list[Rewrite] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)
