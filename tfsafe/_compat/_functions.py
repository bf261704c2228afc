"""The internals of TensorFlow's traced functions and strategies."""

from collections.abc import Callable
from typing import Any


def strategy_needs_merge_call() -> bool:
    """Returns whether optimizers leave the replica context to update a variable.

    Keras' `LossScaleOptimizer` asks the same. Tried: TensorFlow 2.16.1 and 2.21.0.
    """
    import tensorflow as tf

    return not tf.__internal__.distribute.strategy_supports_no_merge_call()


def function_graph(graph: Any, name: str) -> Any:
    """Returns the graph of a function that an operation of `graph` calls, or None.

    `Graph._get_function`, tried with TensorFlow 2.16.1 and 2.21.0. The public
    `as_graph_def().library` has the function too, but not the stack traces of its
    operations, which is what a finding needs.
    """
    function = graph._get_function(name)
    return None if function is None else function.graph


def registered_gradient(name: str) -> Callable[..., Any]:
    """Returns the gradient function that is registered under a name.

    `ops.gradient_registry`, tried with TensorFlow 2.16.1 and 2.21.0. There is a public
    way to register one, but not to look it up.
    """
    from tensorflow.python.framework import ops

    return ops.gradient_registry.lookup(name)


def with_body(function: Any, body: Callable[..., Any] | None = None) -> Any:
    """Returns a `tf.function` with the options of another one, not traced yet.

    `_clone`, tried with TensorFlow 2.16.1 and 2.21.0. Of the options only the input
    signature is public.

    Args:
      function: The other one.
      body: The Python function that it is made of; that of `function` where None.
    """
    return function._clone(body)


# The method of a `tf.function` that gives `tf.saved_model.save` its traces. Tried:
# TensorFlow 2.16.1 and 2.21.0.
SAVED_TRACES = "_list_all_concrete_functions_for_serialization"


def autograph_options(function: Any) -> dict[str, Any]:
    """Returns the arguments for AutoGraph that a `tf.function` was made with.

    `_autograph` and `_experimental_autograph_options`, tried with TensorFlow 2.16.1 and
    2.21.0.
    """
    return {
        "autograph": function._autograph,
        "experimental_autograph_options": function._experimental_autograph_options,
    }


def forget_conversion(error: Exception) -> None:
    """Has an outer `tf.function` raise an error that AutoGraph explained unchanged.

    AutoGraph makes another error of one with this attribute, and a `StagingError` of
    one that it has already made. Tried: TensorFlow 2.16.1 and 2.21.0.
    """
    error.__dict__.pop("ag_error_metadata", None)


def is_called_in_place(function: Any) -> bool:
    """Returns whether a `tf.function` has no option that needs a call of its own.

    `_jit_compile` and `_attributes`, tried with TensorFlow 2.16.1 and 2.21.0.
    """
    return (
        function.input_signature is None
        and not function._jit_compile
        and not function._attributes
    )


def is_xla(function_def: Any) -> bool:
    """Returns whether a function is compiled by XLA, from its definition.

    The attribute `_XlaMustCompile`. Tried: TensorFlow 2.16.1 and 2.21.0.
    """
    # Looked up by hand: reading a missing key of this map would insert it.
    name, attributes = "_XlaMustCompile", function_def.attr
    return name in attributes and bool(attributes[name].b)
