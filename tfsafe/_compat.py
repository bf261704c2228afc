"""Everything that depends on the version or the internals of TensorFlow and Keras.

The only file that may touch a private name. Each use says which versions were
tried; `tests/test_compat.py` fails loudly when one of them goes.
"""

import importlib.util
import os


def require_tensorflow_backend() -> None:
    """Refuses Keras' other backends, before a layer fails in an obscure way.

    Raises:
      ImportError: If Keras runs on another backend than TensorFlow.
    """
    if importlib.util.find_spec("keras") is None:
        raise ImportError("tfsafe needs Keras 3. Install it with `pip install keras`.")
    import keras

    if not keras.__version__.startswith("3."):
        raise ImportError(
            f"tfsafe needs Keras 3. Received: keras {keras.__version__}. Upgrade with "
            "`pip install -U keras`, and unset TF_USE_LEGACY_KERAS if it is set."
        )
    backend = keras.config.backend()
    if backend != "tensorflow":
        raise ImportError(
            "tfsafe's losses, layers and optimizers run on Keras' TensorFlow backend. "
            f"Received: backend {backend!r} (KERAS_BACKEND="
            f"{os.environ.get('KERAS_BACKEND')!r}). Set KERAS_BACKEND=tensorflow "
            "before the first `import keras`."
        )
