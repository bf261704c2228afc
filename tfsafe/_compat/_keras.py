"""Wraps the internals of Keras, each by its purpose."""

import functools
import importlib
import importlib.util
import json
import os
import pathlib
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any


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
    public, and a loss receives only the tensor.
    """
    return getattr(tensor, "_keras_mask", None)


def is_called_with_mask(layer: Any) -> bool:
    """Returns whether a layer of a functional or `Sequential` model gets a mask.

    `_inbound_nodes` and `arguments`, tried with Keras 3.15.1.
    """
    calls = [node.arguments.kwargs for node in layer._inbound_nodes]
    return any(call.get("mask") is not None for call in calls)


def set_keras_mask(tensor: Any, mask: Any) -> None:
    """Attaches a mask to a tensor, as a Keras layer does to its output.

    `_keras_mask`, tried with Keras 3.3.3 and 3.15.1.
    """
    tensor._keras_mask = mask


def keras_logits(tensor: Any) -> Any:
    """Returns the input of the Keras softmax or sigmoid that made a tensor, or None.

    `_keras_logits`, tried with Keras 3.3.3 and 3.15.1. Keras attaches it to the
    output of its two activations, for its own losses.
    """
    return getattr(tensor, "_keras_logits", None)


def carry_keras_logits(origin: Any, cast: Any) -> None:
    """Attaches to a tensor what `keras_logits` returns for the one it was cast from.

    `_keras_logits`, tried with Keras 3.3.3 and 3.15.1.
    """
    set_keras_logits(cast, keras_logits(origin))
    logits, axis = softmax_of(origin)
    if axis is not None:
        set_softmax(cast, logits, axis)


def set_keras_logits(tensor: Any, logits: Any) -> None:
    """Attaches the logits that Keras' losses use in place of a tensor, if not None.

    `_keras_logits`, tried with Keras 3.3.3 and 3.15.1.
    """
    if logits is not None:
        tensor._keras_logits = logits


def set_softmax(tensor: Any, logits: Any, axis: int) -> None:
    """Notes on a tensor that it is the softmax of logits along an axis.

    Not as `keras_logits`: Keras' losses give NaN for logits of `-inf`.
    """
    tensor._tfsafe_softmax = logits, axis


def softmax_of(tensor: Any) -> tuple[Any, int | None]:
    """Returns the logits and the axis that `set_softmax` noted, or None twice."""
    return getattr(tensor, "_tfsafe_softmax", (None, None))


def loss_options(loss: Any) -> dict[str, Any]:
    """Returns the arguments that a loss of Keras was made with for its function.

    `_fn_kwargs`, tried with Keras 3.3.3 and 3.15.1. The public `get_config` leaves out
    the `delta` of `Huber` and the `axis` of `CosineSimilarity`.
    """
    return dict(getattr(loss, "_fn_kwargs", {}))


def loss_is_divided_by_replicas() -> bool:
    """Returns whether Keras' losses divide their mean by the number of replicas.

    `keras.src.losses.loss.scale_loss_for_distribution`: Keras 3.15.1 has it, 3.3.3
    does not.
    """
    import keras

    return hasattr(keras.src.losses.loss, "scale_loss_for_distribution")


def attention_dropout(layer: Any) -> Any:
    """Returns the dropout layer within a Keras attention layer with heads.

    `_dropout_layer`, tried with Keras 3.3.3 and 3.15.1. A second one would have random
    numbers, and a place in the saved file, of its own.
    """
    return layer._dropout_layer


def tf_variable(variable: Any) -> Any:
    """Returns the TensorFlow variable that a Keras variable wraps, or is.

    The variables of a Keras 3.3 optimizer are not a `keras.Variable`; but `value` is a
    method of TensorFlow's alone. Tried: Keras 3.3.3 and 3.15.1.
    """
    return variable if callable(variable.value) else variable.value


def is_keras_variable(thing: Any) -> bool:
    """Returns whether something is a variable of Keras.

    In Keras 3.3.3 `keras.Variable` is not a base of the variables that layers make;
    their common base is `KerasVariable`. Tried: Keras 3.3.3 and 3.15.1.
    """
    import keras

    return isinstance(thing, keras.Variable) or any(
        base.__name__ == "KerasVariable" for base in type(thing).__mro__
    )


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


def layers_on_stack(frame: types.FrameType | None) -> str:
    """Returns the path of the Keras layers whose calls are on the stack."""
    import keras

    names: list[str] = []
    for each, _ in traceback.walk_stack(frame) if frame is not None else ():
        if each.f_code.co_name == "__call__":
            layer = each.f_locals.get("self")
            if isinstance(layer, keras.layers.Layer) and layer.name not in names:
                names.append(layer.name)
    return "/".join(reversed(names))


def sublayers(layer: Any) -> list[Any]:
    """Returns the direct sublayers of a layer or a model.

    `_flatten_layers`, tried with Keras 3.3.3 and 3.15.1.
    """
    return list(layer._flatten_layers(include_self=False, recursive=False))


def build_state(model: Any, batch: Any, *, has_targets: bool) -> None:
    """Makes the variables that a model would make in its first step on such a batch.

    `_symbolic_build` and `compute_output_spec`, tried with Keras 3.3.3 and 3.15.1. The
    first makes those of the metrics and of the optimizer too; it needs the targets.

    Args:
      model: The model.
      batch: What the step takes.
      has_targets: Whether the step trains or evaluates.
    """
    import keras
    from keras.src import backend, tree

    if has_targets:
        model._symbolic_build(data_batch=batch)
    elif not all(layer.built for layer in all_layers(model)):
        x, _, _ = keras.utils.unpack_x_y_sample_weight(batch)
        specs = [keras.KerasTensor(each.shape, each.dtype) for each in tree.flatten(x)]
        backend.compute_output_spec(model, tree.pack_sequence_as(x, specs))


def is_stateless() -> bool:
    """Returns whether Keras runs layers on values that it holds outside of variables.

    `in_stateless_scope`, tried with Keras 3.3.3 and 3.15.1.
    """
    from keras.src.backend.common.stateless_scope import in_stateless_scope

    return bool(in_stateless_scope())


def call_context() -> dict[str, Any]:
    """Returns what the outermost call of a layer passes down, such as `training`.

    `current_call_ctx`, tried with Keras 3.3.3 and 3.15.1.
    """
    from keras.src.backend.common import global_state

    context = global_state.get_global_attribute("current_call_ctx")
    values = {} if context is None else vars(context)
    return {name: each for name, each in values.items() if name != "entry_layer"}


def added_losses(layer: Any) -> list[Any]:
    """Returns the list of what `add_loss` of a layer received since its last call.

    `_losses`, tried with Keras 3.3.3 and 3.15.1.
    """
    losses: list[Any] = layer._losses
    return losses


def load_on_demand(prefix: str, load: Callable[[], None]) -> None:
    """Calls `load` when Keras finds no class of a registered name, and looks again.

    `object_registration.get_registered_object`, through which all deserialization
    goes. The public `custom_objects` would need the classes to be imported. Tried:
    Keras 3.15.1.

    Args:
      prefix: Prefix of such a name.
      load: Registers the classes.
    """
    from keras.src.saving import object_registration as registry

    plain = registry.get_registered_object

    @functools.wraps(plain)
    def look_up(name: Any, *args: Any, **kwargs: Any) -> Any:
        found = plain(name, *args, **kwargs)
        if found is None and isinstance(name, str) and name.startswith(prefix):
            load()
            found = plain(name, *args, **kwargs)
        return found

    registry.get_registered_object = look_up


# The modules that hold a binding of `get` each, by the name of the public one.
_ROOTS = ("keras.src", "keras", "keras._tf_keras.keras")
_WITH_GET = ("activations", "losses", "metrics", "regularizers")


def getters() -> list[Any]:
    """Returns the modules whose `get` finds an object by its name.

    Tried: Keras 3.3.3 and 3.15.1. Keras itself calls those of `keras.src`.
    """
    return [
        importlib.import_module(f"{root}.{name}")
        for root in _ROOTS
        for name in _WITH_GET
    ]


def config_reader() -> tuple[Any, str]:
    """Returns where the function is that finds the class or function of a config.

    `serialization_lib._retrieve_class_or_fn`, tried with Keras 3.3.3 and 3.15.1. All
    `deserialize` functions, `load_model` and `optimizers.get` go through it.
    """
    from keras.src.saving import serialization_lib

    return serialization_lib, "_retrieve_class_or_fn"


def compile_utils() -> Any:
    """Returns the module that makes losses and metrics of the arguments of `compile`.

    `get_loss`, `get_metric`, `CompileLoss` and `CompileMetrics`, tried with Keras 3.3.3
    and 3.15.1. The two classes look their strings up in `build`, at the first batch.
    """
    from keras.src.trainers import compile_utils

    return compile_utils


def is_function_loss(loss: Any) -> bool:
    """Returns whether Keras made a loss object of a plain function.

    `LossFunctionWrapper`, tried with Keras 3.3.3 and 3.15.1.
    """
    from keras.src import losses

    return type(loss) is losses.LossFunctionWrapper


def require_tensorflow_backend() -> None:
    """Refuses Keras' other backends, before a layer fails in an obscure way.

    Raises:
      ImportError: If Keras runs on another backend than TensorFlow.
    """
    if importlib.util.find_spec("keras") is None:
        raise ImportError("tfsafe needs Keras 3. Install it with `pip install keras`.")
    # Check before Keras is imported: if that backend is not installed, the import of
    # Keras fails, and the error does not name the setting.
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
