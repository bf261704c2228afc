"""Names the functions by which Keras finds a class for a string or for a config."""

import importlib
from typing import Any

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
