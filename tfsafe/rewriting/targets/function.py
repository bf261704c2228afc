"""Makes the `tf.function` that runs the stable form of a function."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import resemble
from tfsafe.rewriting.engine import tape_recording
from tfsafe.rewriting.engine.planner import Rewrite
from tfsafe.rewriting.engine.retrace import rewritten
from tfsafe.rewriting.engine.rule import Rule

_FOUND: contextvars.ContextVar[list[Rewrite] | None] = contextvars.ContextVar(
    "tfsafe_rewrites", default=None
)
_MARK = "tfsafe_stabilized"


class _Stabilized(tape_recording.FUNCTION):
    """A `tf.function` that is inlined where another one is traced.

    If a constant went from the forward pass of a call to its gradient, XLA would treat
    everything that the call depends on as constant and compile the outer function in
    every step.
    """

    @tf.autograph.experimental.do_not_convert
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _compat.is_called_in_place(self) or not _is_traced_into():
            return super().__call__(*args, **kwargs)
        args, kwargs = tf.nest.map_structure(_as_argument, (args, kwargs))
        return self.python_function(*args, **kwargs)


def _is_traced_into() -> bool:
    """Returns whether a `tf.function` is being traced, or a branch or loop in it."""
    graph = tf.compat.v1.get_default_graph()
    return not tf.executing_eagerly() and graph.building_function


def _as_argument(value: Any) -> Any:
    return tf.constant(value) if isinstance(value, np.ndarray | np.generic) else value


def stabilized(
    function: Callable[..., Any], rules: Sequence[Rule], *, autograph: bool = True
) -> Any:
    """Returns a `tf.function` that runs the stable form of a function.

    Args:
      function: A Python function or a `tf.function`, whose options are kept.
      rules: The rules to apply.
      autograph: Whether AutoGraph converts a Python function.
    """
    plain: Any = (
        function if is_traced(function) else tf.function(function, autograph=autograph)
    )

    may_create = True

    @tf.autograph.experimental.do_not_convert
    def body(*args: Any, **kwargs: Any) -> Any:
        nonlocal may_create
        if tf.executing_eagerly():
            # `tf.config.run_functions_eagerly`: only a graph can be rewritten.
            return result.get_concrete_function(*args, **kwargs)(*args, **kwargs)
        if tape_recording.active() is not None:
            return plain(*args, **kwargs)
        value, found = rewritten(plain, rules, args, kwargs, may_create=may_create)
        may_create = False
        collector = _FOUND.get()
        if collector is not None:
            collector.extend(found)
        return value

    resemble(body, plain.python_function)
    setattr(body, _MARK, True)
    result = _compat.with_body(plain, body)
    result.__class__ = _Stabilized
    resemble(result, plain.python_function)
    return result


def is_traced(function: Any) -> bool:
    """Returns whether this is a `tf.function`."""
    return isinstance(function, tape_recording.FUNCTION)


def is_stabilized(function: Any) -> bool:
    """Returns whether this is a `tf.function` that `stabilized` made."""
    body = getattr(function, "python_function", None)
    # That of a method is wrapped once more, to be bound.
    return hasattr(body, _MARK) or hasattr(getattr(body, "__wrapped__", None), _MARK)


@contextlib.contextmanager
def collected() -> Iterator[list[Rewrite]]:
    """Collects the rewrites of the functions that this thread traces."""
    found: list[Rewrite] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)
