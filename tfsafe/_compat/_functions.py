"""Wraps the internals of TensorFlow's traced functions, strategies and names."""

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


def strategy_needs_merge_call() -> bool:
    """Returns whether optimizers leave the replica context to update a variable.

    Keras' `LossScaleOptimizer` asks the same. Tried: TensorFlow 2.16.1 and 2.21.0.
    """
    import tensorflow as tf

    return not tf.__internal__.distribute.strategy_supports_no_merge_call()


def living_variables(concrete: Any) -> tuple[Any, ...]:
    """Returns the variables that a concrete function uses and that still exist.

    `FuncGraph._weak_variables`, tried with TensorFlow 2.16.1 and 2.21.0. The public
    `variables` raises AssertionError if one is gone, though the function runs on: it
    holds the handles. That is so for a signature whose SavedModel was not kept.
    """
    known = (reference() for reference in concrete.graph._weak_variables)
    return tuple(each for each in known if each is not None)


def function_graph(graph: Any, name: str) -> Any:
    """Returns the graph of a function that an operation of `graph` calls, or None.

    `Graph._get_function`, tried with TensorFlow 2.16.1 and 2.21.0. The public
    `as_graph_def().library` has the function too, but not the stack traces of its
    operations, which a finding needs. None too for a function of TensorFlow 1, such as
    the loop of `tf.nn.ctc_loss`, which has no graph.
    """
    return getattr(graph._get_function(name), "graph", None)


def count_operations(graph: Any) -> int:
    """Returns how many operations a graph has, without a list of them.

    `Graph.version` is public, and said to increase as operations are added; that it
    counts them was tried with TensorFlow 2.16.1 and 2.21.0.
    """
    count: int = graph.version
    return count


def graph_attribute(graph: Any, name: str, make: Callable[[], Any]) -> Any:
    """Returns an attribute of a graph, which it is given if it has none.

    Not by `vars(graph).setdefault`: a `tf.Graph` has no `__dict__`. Tried: TensorFlow
    2.21.0.
    """
    if not hasattr(graph, name):
        setattr(graph, name, make())
    return getattr(graph, name)


def create_op(*args: Any, **kwargs: Any) -> Any:
    """Returns a new operation of the default graph, as `tf.Graph.create_op` does.

    Without its wrappers, which look for a deprecated argument by way of `inspect`, in a
    third of the time that it takes to make an operation. Tried: TensorFlow 2.16.1 and
    2.21.0.
    """
    import tensorflow as tf

    create = inspect.unwrap(tf.Graph.create_op)
    return create(tf.compat.v1.get_default_graph(), *args, **kwargs)


def op_def(op: Any) -> Any:
    """Returns the definition of an operation, which must not be changed.

    `Graph.op_def_for_type`, tried with TensorFlow 2.21.0. It keeps what it has read,
    where the public `Operation.op_def` parses the definition each time.
    """
    read = getattr(op.graph, "op_def_for_type", None)
    return op.op_def if read is None else read(op.type)


def captured(tensor: Any) -> Any:
    """Returns a tensor or handle from outside as captured by the default graph.

    `FuncGraph.capture`, tried with TensorFlow 2.21.0. The public way is an
    operation that reads the tensor, which costs more than the capture.
    """
    import tensorflow as tf

    graph = tf.compat.v1.get_default_graph()
    if not hasattr(graph, "capture"):
        return tf.identity(tensor).op.inputs[0]
    return graph.capture(tensor)


def with_body(function: Any, body: Callable[..., Any] | None = None) -> Any:
    """Returns a `tf.function` with the options of another one, not traced yet.

    `_clone`, tried with TensorFlow 2.16.1 and 2.21.0. Only one of the options, the
    input signature, is public.

    Args:
      function: The other one.
      body: The Python function to trace; None takes that of `function`.
    """
    return function._clone(body)


def traced(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the concrete function of a call of a `tf.function`.

    `traceback_utils.filter_traceback`, which TensorFlow puts around calls alone: an
    error of the user's code shows the frames that it would show in a call. Tried:
    TensorFlow 2.21.0.
    """
    from tensorflow.python.util import traceback_utils

    make = traceback_utils.filter_traceback(function.get_concrete_function)
    return make(*args, **kwargs)


# The method of a `tf.function` that lists its traces, for `tf.saved_model.save`.
# Tried: TensorFlow 2.21.0.
TRACES = "_list_all_concrete_functions"


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

    AutoGraph converts an error with this attribute to another type, and an error that
    it has already converted to a `StagingError`. Tried: TensorFlow 2.16.1 and 2.21.0.
    """
    error.__dict__.pop("ag_error_metadata", None)


@contextlib.contextmanager
def hidden_callers() -> Iterator[None]:
    """Keeps the callers of the block out of AutoGraph's report of an error in it.

    Tried: TensorFlow 2.21.0.
    """
    try:
        yield
    except Exception as error:
        error.__dict__["ag_pass_through"] = True
        raise


def bind_to_signature(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Raises the TypeError of a `tf.function` whose `input_signature` does not fit.

    `function_type_utils.bind_function_inputs`, which a call begins with. Tried:
    TensorFlow 2.21.0. Nothing is raised where that is missing.
    """
    try:
        from tensorflow.python.eager.polymorphic_function import function_type_utils

        bind, of_type = function_type_utils.bind_function_inputs, function.function_type
        defaults = function._default_values
    except (ImportError, AttributeError):
        return
    bind(args, kwargs, of_type, defaults)


def is_called_in_place(function: Any) -> bool:
    """Returns whether a `tf.function` has no option that needs a call of its own.

    `_jit_compile` and `_attributes`, tried with TensorFlow 2.16.1 and 2.21.0.
    """
    return (
        function.input_signature is None
        and not function._jit_compile
        and not function._attributes
    )


def is_traced_for_xla() -> bool:
    """Returns whether the function that is being traced is compiled by XLA.

    `control_flow_util.GraphOrParentsInXlaContext`, which TensorFlow's own loops ask.
    Tried: TensorFlow 2.21.0. False where that is missing.
    """
    import tensorflow as tf

    if tf.executing_eagerly():
        return False
    try:
        from tensorflow.python.ops import control_flow_util as util

        graph = tf.compat.v1.get_default_graph()
        return bool(util.GraphOrParentsInXlaContext(graph))
    except (ImportError, AttributeError):
        return False


def is_watched_once(tensors: Sequence[Any]) -> bool:
    """Returns whether exactly one tape may ask for a gradient in these tensors.

    `gradients_util.PossibleTapeGradientTypes`, which TensorFlow asks before it calls a
    function. Tried: TensorFlow 2.21.0. False where that is missing.
    """
    try:
        from tensorflow.python.ops import gradients_util as util

        orders = util.PossibleTapeGradientTypes(list(tensors))
        return bool(orders == util.POSSIBLE_GRADIENT_TYPES_FIRST_ORDER)
    except (ImportError, AttributeError):
        return False


def eager_mode() -> Any:
    """Returns a context in which operations run at once.

    `eager.context.eager_mode`: `tf.init_scope` stays in a graph that is entered by
    hand, as with `tf.Graph().as_default()`. Tried: TensorFlow 2.16.1 and 2.21.0.
    """
    from tensorflow.python.eager import context

    return context.eager_mode()


def stop_recording() -> Any:
    """Returns a context in which no gradient tape records.

    `eager.record.stop_recording`. Tried: TensorFlow 2.21.0.
    """
    from tensorflow.python.eager import record

    return record.stop_recording()


def is_xla(function_def: Any) -> bool:
    """Returns whether a function is compiled by XLA, from its definition.

    The attribute `_XlaMustCompile`. Tried: TensorFlow 2.16.1 and 2.21.0.
    """
    # Looked up by hand: reading a missing key of this map would insert it.
    name, attributes = "_XlaMustCompile", function_def.attr
    return name in attributes and bool(attributes[name].b)


def is_python_thread() -> bool:
    """Returns whether Python started this thread.

    TensorFlow runs a `tf.py_function` in threads of its own, for which `threading`
    makes an object named "Dummy-1" and so on.
    """
    return not threading.current_thread().name.startswith("Dummy-")


def host_array(value: Any) -> Any:
    """Returns a tensor with a value, or what `np.asarray` takes, as an array.

    `np.asarray` raises for a scalar tensor of bfloat16, whose `__array__` returns a
    number. Tried: TensorFlow 2.21.0.
    """
    import numpy as np

    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def is_loop_counter(name: str) -> bool:
    """Returns whether a tensor of this name is the counter that a `while_loop` adds."""
    return "loop_counter" in name


def before_vectorizing(name: str) -> str | None:
    """Returns the name of the operation that `tf.vectorized_map` replaced, or None.

    `loop_body/Sqrt` for `loop_body/Sqrt/pfor/...`.
    """
    return name.rpartition("/pfor/")[0] or None


def forward_scope(name: str) -> str:
    """Returns the name scope of an operation, without the one around gradients.

    `tf.GradientTape` puts its operations into "gradient_tape/", `tf.gradients` into
    "gradients/".
    """
    name = name.removeprefix("gradient_tape/").rpartition("gradients/")[2]
    return name.rpartition("/")[0]


def differentiated_type(path: str, function: str) -> str:
    """Returns the type of operation that a gradient function differentiates, or "".

    TensorFlow names the functions `_RealDivGrad` or `_SelectGradV2`, in files such as
    `math_grad.py`.
    """
    if path.endswith("_grad.py") and "Grad" in function:
        return function.strip("_").replace("Grad", "")
    return ""
