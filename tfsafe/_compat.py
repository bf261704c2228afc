"""Everything that depends on the version or the internals of TensorFlow and Keras.

The only file that may touch a private name. Each use says which versions were
tried; `tests/test_compat.py` fails loudly when one of them goes.
"""

import importlib.util
import json
import os
import pathlib
import sys
from collections.abc import Sequence
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
    if "keras" in sys.modules:
        return sys.modules["keras"].config.backend()
    if os.environ.get("KERAS_BACKEND"):
        return os.environ["KERAS_BACKEND"]
    home = pathlib.Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser()
    try:
        return json.loads((home / "keras.json").read_text())["backend"]
    except (OSError, ValueError, KeyError):
        return "tensorflow"


def keras_mask(tensor: Any) -> Any:
    """Returns the mask that a Keras layer attached to its output, or None.

    `_keras_mask`, tried with Keras 3.3.3 and 3.15.1. Keras' own accessor is not
    public, and a loss is handed the tensor alone.
    """
    return getattr(tensor, "_keras_mask", None)


def keras_logits(tensor: Any) -> Any:
    """Returns what a Keras softmax or sigmoid was applied to, or None.

    `_keras_logits`, tried with Keras 3.3.3 and 3.15.1. Keras attaches it to the
    output of its two activations, for its own losses.
    """
    return getattr(tensor, "_keras_logits", None)


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


def strategy_needs_merge_call() -> bool:
    """Returns whether optimizers leave the replica context to update a variable.

    Keras' `LossScaleOptimizer` asks the same. Tried: TensorFlow 2.16.1 and 2.21.0.
    """
    import tensorflow as tf

    return not tf.__internal__.distribute.strategy_supports_no_merge_call()
