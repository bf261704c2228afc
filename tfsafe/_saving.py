"""Loads files with classes of tfsafe, and makes plain Keras models for others.

Imports neither Keras nor TensorFlow before one of them is used.
"""

import contextlib
import contextvars
import importlib
from collections.abc import Iterator
from typing import Any

from tfsafe import _compat
from tfsafe._after_import import AfterImport
from tfsafe._faults import contained

_PREFIX = "tfsafe"
# The classes that Keras may find in a file: no others of the package are saved.
_SAVED = ("layers", "losses", "metrics", "optimizers", "regularizers")
# Arguments of ours that the layer of Keras lacks.
_OWN_ARGUMENTS = ("empty_value",)
# Layers whose counterparts in Keras ignore the mask.
_MASKED = ("AveragePooling1D", "GlobalMaxPooling1D", "LogSoftmax", "MaxPooling1D")
_plain: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "tfsafe_plain", default=False
)


def register_on_demand() -> None:
    """Has Keras find the classes of tfsafe in a file without an import of theirs."""

    def register() -> None:
        with contained("finding the classes of tfsafe in files"):
            _compat.load_on_demand(_PREFIX, _register)

    AfterImport(["keras"], register).install()


def _register() -> None:
    for name in _SAVED:
        importlib.import_module(f"{_PREFIX}.{name}")


def to_keras(model: Any) -> Any:
    """Returns the model with Keras' layers in place of tfsafe's.

    The result has the same weights, gives the same outputs where Keras' formulas are
    right, and is saved to a file that loads where tfsafe is not installed. It is not
    compiled: losses, metrics and optimizers stay with the model that was trained.

    Args:
      model: A functional or `Sequential` Keras model that is built, or one of your own
        class with `get_config`.

    Returns:
      A new model of the same class.

    Raises:
      TypeError: If `model` is not a Keras model.
      ValueError: If the model is not built, or if Keras has no counterpart of one of
        its layers, such as `LayerNormLSTM` or `MaxPooling1D` after a mask.

    Examples:
      >>> import keras
      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((3,)), tfsafe.layers.Softmax()])
      >>> type(tfsafe.to_keras(model).layers[0]) is keras.layers.Softmax
      True
    """
    import keras

    if not isinstance(model, keras.Layer):
        raise TypeError(
            "`model` must be a Keras model. Received: "
            f"model={model!r} of type {type(model).__name__}."
        )
    if not model.built:
        raise ValueError(
            f"`model` must be built. Received: {model.name!r}, which is not. Call it "
            "once on data of the right shape."
        )
    for layer in _compat.all_layers(model):
        _refuse_mask(layer)
    config = keras.saving.serialize_keras_object(model)
    config.pop("compile_config", None)
    with _as_keras():
        plain = keras.saving.deserialize_keras_object(_translated(config))
    plain.set_weights(_weights(model))
    return plain


@contextlib.contextmanager
def _as_keras() -> Iterator[None]:
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def wants_plain() -> bool:
    """Returns whether this thread makes Keras' own objects of a config just now."""
    return _plain.get()


def _translated(node: Any) -> Any:
    """Replaces each object of tfsafe in a config by the one of Keras."""
    if isinstance(node, list | tuple):
        return type(node)(map(_translated, node))
    if not isinstance(node, dict):
        return node
    node = {key: _translated(value) for key, value in node.items()}
    if str(node.get("registered_name")).startswith(_PREFIX):
        return _counterpart(node)
    return node


def _counterpart(node: dict[str, Any]) -> dict[str, Any]:
    import keras

    name, config = node["class_name"], dict(node["config"])
    package = node["module"].removeprefix(f"{_PREFIX}.")
    for argument in _OWN_ARGUMENTS:
        config.pop(argument, None)
    if name in ("LogSigmoid", "LogSoftmax") and config.pop("axis", -1) == -1:
        config["activation"] = "log_sigmoid" if name == "LogSigmoid" else "log_softmax"
        name = "Activation"
    elif name == "SafeMeanPooling" and config.pop("axis") in (1, [1]):
        name = "GlobalAveragePooling1D"
        config["data_format"] = "channels_last"
    elif config.get("rms_scaling"):
        # Keras divides by the deviation there, and by the root mean square here.
        name = "RMSNormalization"
        kept = ("name", "trainable", "dtype", "axis", "epsilon")
        config = {key: config[key] for key in kept}
    if not hasattr(getattr(keras, package), name):
        raise ValueError(
            "Every layer of `model` must have a counterpart in Keras. Received: "
            f"tfsafe.{package}.{name} named {config.get('name')!r}. Load such a model "
            "where tfsafe is installed, or export it with `model.export(path)`."
        )
    if node["class_name"] in _MASKED:
        for call in node.get("inbound_nodes", ()):
            call["kwargs"].pop("mask", None)
    return {
        **node,
        "module": f"keras.{package}",
        "class_name": name,
        "config": config,
        "registered_name": None,
    }


def _is_ours(layer: Any) -> bool:
    return type(layer).__module__ == f"{_PREFIX}.layers"


def _refuse_mask(layer: Any) -> None:
    is_masked = _is_ours(layer) and type(layer).__name__ in _MASKED
    if is_masked and _compat.is_called_with_mask(layer):
        raise ValueError(
            "Every layer of `model` must have a counterpart in Keras. Received: "
            f"{type(layer).__name__} named {layer.name!r} after a mask, which Keras' "
            "layer ignores. Export such a model with `model.export(path)`."
        )


def _weights(model: Any) -> list[Any]:
    """Returns the weights; a kernel under spectral normalization is the one in use."""
    in_use = {
        id(layer.kernel): layer.normalized_weights()[0]
        for layer in _compat.all_layers(model)
        if _is_ours(layer) and type(layer).__name__ == "SpectralNormalization"
    }
    return [in_use.get(id(weight), weight) for weight in model.weights]
