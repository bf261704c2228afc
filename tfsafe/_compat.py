"""Everything that depends on the version or the internals of TensorFlow and Keras.

The only file that may touch a private name. Each use says which versions were
tried; `tests/test_compat.py` fails loudly when one of them goes.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def require_tensorflow_backend() -> None:
    """Refuses Keras' other backends, before a layer fails in an obscure way.

    Raises:
      ImportError: If Keras runs on another backend than TensorFlow.
    """
    if importlib.util.find_spec("keras") is None:
        raise ImportError("tfsafe needs Keras 3. Install it with `pip install keras`.")
    # Before Keras is imported: without that backend installed its own import fails,
    # and the error would not say what to set.
    backend = _keras_backend()
    if backend != "tensorflow":
        raise ImportError(
            "tfsafe's losses, layers and optimizers run on Keras' TensorFlow backend. "
            f"Received: backend {backend!r}. Set KERAS_BACKEND=tensorflow before the "
            'first `import keras`, or "backend": "tensorflow" in ~/.keras/keras.json.'
        )
    import keras

    if not keras.__version__.startswith("3."):
        raise ImportError(
            f"tfsafe needs Keras 3. Received: keras {keras.__version__}. Upgrade with "
            "`pip install -U keras`, and unset TF_USE_LEGACY_KERAS if it is set."
        )


def _keras_backend() -> str:
    """Returns the backend Keras runs on, or would run on if it were imported now."""
    config = getattr(sys.modules.get("keras"), "config", None)  # not in Keras 2
    if config is not None:
        return config.backend()
    if os.environ.get("KERAS_BACKEND"):
        return os.environ["KERAS_BACKEND"]
    home = pathlib.Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser()
    try:
        return json.loads((home / "keras.json").read_text())["backend"]
    except (OSError, ValueError, KeyError):
        return "tensorflow"


def keras_class(module: str, name: str) -> Any:
    """Returns a class of Keras, or a stand-in where the installed version lacks it.

    The stand-in can be subclassed; making an object of it fails and says what to do.

    Args:
      module: Name of the module in `keras`, as in "layers".
      name: Of the class.
    """
    import keras

    namesake = getattr(getattr(keras, module), name, None)
    if namesake is not None:
        return namesake

    def refuse(_self: Any, *_: Any, **__: Any) -> None:
        raise ImportError(
            f"`{name}` needs a later Keras, which has `keras.{module}.{name}`. "
            f"Received: keras {keras.__version__}. Upgrade with `pip install -U keras`."
        )

    return type(name, (keras.layers.Layer,), {"__init__": refuse})


def spectrogram_parts(layer: Any, inputs: Any) -> tuple[Any, Any]:
    """Returns the real and the imaginary part that a Keras `STFTSpectrogram` takes.

    `_apply_conv` and `_adjust_shapes`, tried with Keras 3.15.1; 3.3.3 does not have the
    layer.
    """
    real, imaginary = (
        layer._adjust_shapes(layer._apply_conv(inputs, kernel))
        for kernel in (layer.real_kernel, layer.imag_kernel)
    )
    return real, imaginary


def keras_mask(tensor: Any) -> Any:
    """Returns the mask that a Keras layer attached to its output, or None.

    `_keras_mask`, tried with Keras 3.3.3 and 3.15.1. Keras' own accessor is not
    public, and a loss is handed the tensor alone.
    """
    return getattr(tensor, "_keras_mask", None)


def set_keras_mask(tensor: Any, mask: Any) -> None:
    """Attaches a mask to a tensor, as a Keras layer does to its output.

    `_keras_mask`, tried with Keras 3.3.3 and 3.15.1.
    """
    tensor._keras_mask = mask


def keras_logits(tensor: Any) -> Any:
    """Returns what a Keras softmax or sigmoid was applied to, or None.

    `_keras_logits`, tried with Keras 3.3.3 and 3.15.1. Keras attaches it to the
    output of its two activations, for its own losses.
    """
    return getattr(tensor, "_keras_logits", None)


def carry_keras_logits(origin: Any, cast: Any) -> None:
    """Attaches to a tensor what `keras_logits` returns for the one it was cast from.

    `_keras_logits`, tried with Keras 3.3.3 and 3.15.1.
    """
    set_keras_logits(cast, keras_logits(origin))


def set_keras_logits(tensor: Any, logits: Any) -> None:
    """Attaches to a tensor what Keras' losses are to take in its place, if not None.

    `_keras_logits`, tried with Keras 3.3.3 and 3.15.1.
    """
    if logits is not None:
        tensor._keras_logits = logits


def loss_options(loss: Any) -> dict[str, Any]:
    """Returns the arguments that a loss of Keras was made with for its function.

    `_fn_kwargs`, tried with Keras 3.3.3 and 3.15.1. The public `get_config` leaves out
    the `delta` of `Huber` and the `axis` of `CosineSimilarity`.
    """
    return dict(getattr(loss, "_fn_kwargs", {}))


def attention_dropout(layer: Any) -> Any:
    """Returns the dropout layer within a Keras attention layer with heads.

    `_dropout_layer`, tried with Keras 3.3.3 and 3.15.1. A second one would have random
    numbers, and a place in the saved file, of its own.
    """
    return layer._dropout_layer


# What Keras' `SwapEMAWeights` reads of the optimizer that it finds under a
# `LossScaleOptimizer`. Tried: Keras 3.3.3 and 3.15.1.
OPTIMIZER_INTERNALS = (
    "_distribution_strategy",
    "_model_variables_moving_average",
    "_trainable_variables",
)


def built_variables(optimizer: Any) -> list[Any]:
    """Returns the variables that a Keras optimizer was built with.

    Tried: Keras 3.3.3 and 3.15.1.
    """
    return list(optimizer._trainable_variables)


def variable_positions(optimizer: Any, variables: Sequence[Any]) -> list[int]:
    """Returns where variables stand in the list that an optimizer was built with.

    By Keras' own index, which knows the replicas of one distributed variable as one.
    Tried: Keras 3.3.3 and 3.15.1.

    Returns:
      One position per variable.

    Raises:
      ValueError: Keras' own, if the optimizer does not know one of them.
    """
    optimizer._check_variables_are_known(variables)
    return [optimizer._get_variable_index(variable) for variable in variables]


def strategy_of(optimizer: Any) -> Any:
    """Returns the distribution strategy under which a Keras optimizer was made.

    Tried: Keras 3.3.3 and 3.15.1.
    """
    return optimizer._distribution_strategy


def variable_key(optimizer: Any, variable: Any) -> Any:
    """Returns what a Keras optimizer knows a variable by.

    The same for all replicas of it. Tried: Keras 3.3.3 and 3.15.1.
    """
    return optimizer._var_key(variable)


def without_weight_decay(optimizer: Any, variables: Sequence[Any]) -> list[Any]:
    """Returns the variables that a Keras optimizer excludes from its weight decay.

    It looks at the names of TensorFlow's. Tried: Keras 3.3.3 and 3.15.1.
    """
    return [v for v in variables if not optimizer._use_weight_decay(tf_variable(v))]


def tf_variable(variable: Any) -> Any:
    """Returns TensorFlow's variable in one of Keras, or what is one already.

    The variables of a Keras 3.3 optimizer are no `keras.Variable`; but `value` is a
    method of TensorFlow's alone. Tried: Keras 3.3.3 and 3.15.1.
    """
    return variable if callable(variable.value) else variable.value


def centered_moments(optimizer: Any, variable: Any) -> tuple[Any, Any]:
    """Returns the slots of a centered `RMSprop`: mean square and mean of the gradient.

    Tried: Keras 3.3.3 and 3.15.1.
    """
    index = optimizer._get_variable_index(variable)
    return optimizer._velocities[index], optimizer._average_gradients[index]


def set_path(variable: Any, path: str) -> None:
    """Gives a Keras variable the path of another one, whose place it takes.

    `path` in Keras 3.3.3, `_path` in 3.15.1.
    """
    setattr(variable, "_path" if hasattr(variable, "_path") else "path", path)


def all_layers(model: Any) -> list[Any]:
    """Returns a model and the layers within it, at any depth.

    `_flatten_layers`, tried with Keras 3.3.3 and 3.15.1. The public `layers` leaves
    out those within a layer, such as the two of a `Bidirectional`.
    """
    return model._flatten_layers()


def sublayers(layer: Any) -> list[Any]:
    """Returns the layers that stand directly within a layer or a model.

    `_flatten_layers`, tried with Keras 3.3.3 and 3.15.1.
    """
    return list(layer._flatten_layers(include_self=False, recursive=False))


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


def autograph_options(function: Any) -> dict[str, Any]:
    """Returns the arguments for AutoGraph that a `tf.function` was made with.

    `_autograph` and `_experimental_autograph_options`, tried with TensorFlow 2.16.1 and
    2.21.0.
    """
    return {
        "autograph": function._autograph,
        "experimental_autograph_options": function._experimental_autograph_options,
    }


def is_xla(function_def: Any) -> bool:
    """Returns whether a function is compiled by XLA, from its definition.

    The attribute `_XlaMustCompile`. Tried: TensorFlow 2.16.1 and 2.21.0.
    """
    # Looked up by hand: reading a missing key of this map would insert it.
    name, attributes = "_XlaMustCompile", function_def.attr
    return name in attributes and bool(attributes[name].b)


_eager_callbacks = 0
_eager_lock = threading.Lock()


def add_eager_callback(callback: Callable[..., None]) -> None:
    """Calls `callback` after every operation that this thread executes.

    `context.add_op_callback` and `execute.execute`, on which TensorFlow's own
    `enable_check_numerics` is built. Its `op_callbacks.remove_op_callback` ends the
    callbacks of all threads where it ends the last one of its own; here they are
    counted. Tried: TensorFlow 2.16.1 and 2.21.0.

    Args:
      callback: Takes `op_type, inputs, attrs, outputs, op_name, graph`. `graph` is
        None for an operation that was executed, as opposed to traced.
    """
    from tensorflow.python.eager import context, execute

    global _eager_callbacks
    with _eager_lock:
        context.context().add_op_callback(callback)
        _eager_callbacks += 1
        execute.execute = execute.execute_with_callbacks


def remove_eager_callback(callback: Callable[..., None]) -> None:
    """Ends what `add_eager_callback` began, in the same thread."""
    from tensorflow.python.eager import context, execute

    global _eager_callbacks
    with _eager_lock:
        context.context().remove_op_callback(callback)
        _eager_callbacks -= 1
        if not _eager_callbacks and not context.context().op_callbacks:
            execute.execute = execute.quick_execute


@contextlib.contextmanager
def eager_callback(callback: Callable[..., None]) -> Iterator[None]:
    """Calls `callback` after every operation; see `add_eager_callback`.

    Args:
      callback: As there.

    Yields:
      Nothing.
    """
    add_eager_callback(callback)
    try:
        yield
    finally:
        remove_eager_callback(callback)


def called_function(frame: types.FrameType) -> tuple[Any, bool] | None:
    """Returns the traced function whose eager call is on the stack.

    The frame of `AtomicFunction.call_flat`. Tried: TensorFlow 2.16.1 and 2.21.0.

    Args:
      frame: Where to start; its callers are searched.

    Returns:
      Its graph and whether XLA compiles it; None if no function is being called.
    """
    inner: types.FrameType | None = frame
    while inner is not None:
        code = inner.f_code
        if code.co_name == "call_flat" and code.co_filename.endswith(
            "atomic_function.py"
        ):
            function = inner.f_locals["self"]
            return function.graph, is_xla(function.cached_definition)
        inner = inner.f_back
    return None


def differentiated(
    frame: types.FrameType,
) -> tuple[str, Sequence[Any], Sequence[Any]] | None:
    """Returns the forward operation that an eager tape differentiates just now.

    The frame of `backprop._gradient_function`. Tried: TensorFlow 2.16.1 and 2.21.0.

    Args:
      frame: Where to start; its callers are searched.

    Returns:
      Its type, its inputs and its outputs, as far as the tape kept them; None if no
      tape is at work.
    """
    inner: types.FrameType | None = frame
    while inner is not None:
        code = inner.f_code
        if code.co_name == "_gradient_function" and code.co_filename.endswith(
            "backprop.py"
        ):
            held = inner.f_locals
            return held["op_name"], held["inputs"] or (), held["outputs"] or ()
        inner = inner.f_back
    return None


def before_autograph(frame: types.FrameType) -> tuple[str, int, str]:
    """Returns file, line and function of a frame, as they were before AutoGraph.

    AutoGraph runs a rewritten copy of a function, which holds a map of its lines:
    `ag_source_map`, found in the frame that calls it. Tried: TensorFlow 2.16.1 and
    2.21.0. In traced functions TensorFlow applies the map itself.
    """
    code = frame.f_code
    place = code.co_filename, frame.f_lineno, code.co_name
    if "__autograph_generated_file" not in code.co_filename or frame.f_back is None:
        return place
    copy = frame.f_back.f_locals.get("converted_f")
    for copied, origin in getattr(copy, "ag_source_map", {}).items():
        if (copied.filename, copied.lineno) == place[:2]:
            return origin.loc.filename, origin.loc.lineno, origin.function_name
    return place


# The functions under which all gradient functions are called, by the name of their
# file: the tape's, and that of the bodies of loops, branches and nested functions.
# Tried: TensorFlow 2.16.1 and 2.21.0.
GRADIENT_FRAMES = {
    "imperative_grad.py": "imperative_grad",
    "gradients_util.py": "_GradientsHelper",
}
