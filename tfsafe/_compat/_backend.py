"""Checks the backend of Keras, and replaces classes that it lacks."""

import importlib.util
import json
import os
import pathlib
import sys
from typing import Any


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
