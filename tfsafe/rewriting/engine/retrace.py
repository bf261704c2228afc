"""Traces a function to its stable form, in three steps.

The function is traced as written. Its operations are copied into one graph, with plain
calls inlined so that a formula is seen whole, and without the gradients that it took.
Then they are emitted into the outer trace with the rules applied, and the gradients are
recomputed there.
"""

import contextlib
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import users_code
from tfsafe.graph import (
    Emission,
    TracedCall,
    UnreadableError,
    dataset_family,
    has_plain_calls,
    note_stable,
)
from tfsafe.rewriting.engine.gradient_requests import inside, makers, placeholders
from tfsafe.rewriting.engine.planner import Planner, Rewrite
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.engine.tape_recording import Recording, recorded
from tfsafe.rewriting.engine.untraceable import needs_values


def rewritten(
    function: Any,
    rules: Sequence[Rule],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    may_create: bool = True,
    skipped: Collection[tuple[str, str]] = (),
) -> tuple[Any, list[Rewrite]]:
    """Emits the stable form of a function into the graph being made.

    Args:
      function: A `tf.function`.
      rules: The rules to apply; the first that fits an operation replaces it.
      args: Arguments, as another `tf.function` receives them while it is traced.
      kwargs: Keyword arguments.
      may_create: Whether the function may create variables.
      skipped: The rewrites not to make; see `Planner`.

    Returns:
      The result of the function, and what was rewritten.

    Raises:
      TypeError: If the function asks a tensor for its values, as NumPy does.
      ValueError: If the function creates a variable although it must not.
    """
    call, recording = _written(function, args, kwargs, may_create)
    graph, inputs = call.concrete.graph, call.inputs
    try:
        if not call.fits:
            return function(*args, **kwargs), []
        graphs = list(dataset_family(graph))
    except UnreadableError as error:
        warnings.warn(
            f"`{_name(function)}` is not rewritten because its operations cannot be "
            f"read: {error}.",
            RuntimeWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs), []
    note_stable(graphs)
    if any(map(has_plain_calls, graphs)):
        graph, recording = _flat(graph, inputs, recording)
        graphs = list(dataset_family(graph))
    planner = Planner(rules, recording, skipped)
    for variable in _compat.living_variables(call.concrete):
        # Before `inside`: a tape follows the handle of a variable that it knows.
        _compat.watch(variable)
    emission = Emission(plan=planner.plan, datasets=True, repeated=recording.superseded)
    outputs = emission.emit(graph, [inside(i) for i in inputs])
    return call.packed(outputs), planner.rewrites(graphs)


def _name(function: Any) -> str:
    return getattr(function.python_function, "__name__", "function")


def _written(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], may_create: bool
) -> tuple[TracedCall, Recording]:
    """Traces a function as written and records what it asks of tapes."""
    recording = Recording()
    python_function = function.python_function

    def body(*args: Any, **kwargs: Any) -> Any:
        with (
            _creation(may_create),
            recorded(recording),
            users_code(),
            _compat.hidden_callers(),
        ):
            return _compat.as_converted(python_function)(*args, **kwargs)

    options = _compat.autograph_options(function) | _compat.UNORDERED
    try:
        return TracedCall(body, args, kwargs, **options), recording
    except Exception as error:
        _compat.forget_conversion(error)
        explained = needs_values(error, _name(function))
        if explained is not None:
            raise explained from None
        raise


def _creation(may_create: bool) -> contextlib.AbstractContextManager[None]:
    if may_create:
        return contextlib.nullcontext()
    return tf.variable_creator_scope(_refuse_variable)


def _refuse_variable(*args: Any, **kwargs: Any) -> Any:
    """Raises TensorFlow's error: the inner trace alone would allow the variable."""
    del args, kwargs
    raise ValueError(
        "tf.function only supports singleton tf.Variables created on the first call. "
        "Make sure the tf.Variable is only created once or created outside "
        "tf.function. See https://www.tensorflow.org/guide/function#creating_"
        "tfvariables for more information."
    )


def _flat(
    graph: tf.Graph, inputs: Sequence[Any], recording: Recording
) -> tuple[tf.Graph, Recording]:
    """Emits a graph with the bodies of its plain calls in place of the calls."""
    recorded_flat = Recording()

    def plan(each: tf.Graph, _: Any) -> Any:
        return makers(
            recording.requests(each),
            lambda request, value: placeholders(request, value, recorded_flat.add),
        )

    # It is only read, and never made a function.
    flat = tf.Graph()
    with flat.as_default():
        flat.inputs = [
            tf.compat.v1.placeholder(each.dtype, each.shape) for each in inputs
        ]
        emission = Emission(plan=plan, datasets=True, repeated=recording.superseded)
        flat.outputs = emission.emit(graph, flat.inputs)
    return flat, recorded_flat
