"""What is not finite in a training: variables, losses, and how messages name them."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _args

CURE = (
    "To see which line makes the first bad value, train once with "
    "`tfsafe.checked(model)`."
)


class FiniteCheck:
    """Finds the variables that hold NaN or infinity, in one compiled call.

    Args:
      variables: Returns the variables. Asked at the first check, when Keras has built
        what it builds late. Those of no floating dtype always pass.
    """

    def __init__(self, variables: Callable[[], Iterable[Any]]):
        self._variables = variables
        self._paths: list[str] = []
        self._flags: Any = None

    def broken(self) -> list[str]:
        """Returns the paths of the variables that are not finite."""
        if self._flags is None:
            checked = [v for v in self._variables() if _is_float(v)]
            self._paths = [getattr(v, "path", v.name) for v in checked]
            self._flags = tf.function(lambda: _are_broken(checked), autograph=False)
        flags = self._flags().numpy()
        return [path for path, bad in zip(self._paths, flags, strict=True) if bad]


def nonfinite_losses(logs: Mapping[str, Any] | None) -> list[str]:
    """Returns the names of the losses in Keras' logs that are NaN or infinite."""
    return [
        name
        for name, value in (logs or {}).items()
        if (name == "loss" or name.endswith("_loss")) and not is_finite(value)
    ]


def is_finite(value: Any) -> bool:
    """Returns whether a number of Keras' logs is finite."""
    return math.isfinite(float(value))


def is_monitored(monitor: str, logs: Mapping[str, Any] | None) -> bool:
    """Returns whether a monitored value can be compared: finite, or Keras' to judge.

    Keras warns of a value that is missing or no scalar.
    """
    value = (logs or {}).get(monitor)
    return value is None or np.ndim(value) > 0 or is_finite(value)


def listed(paths: Iterable[str]) -> str:
    """Names the first three paths, and counts the others."""
    first, rest = list(paths)[:3], list(paths)[3:]
    return ", ".join(first) + (f" and {len(rest)} more" if rest else "")


def _is_float(variable: Any) -> bool:
    return tf.as_dtype(variable.dtype) in _args.FLOATS


def _are_broken(variables: list[Any]) -> tf.Tensor:
    values = map(tf.convert_to_tensor, variables)
    return tf.stack(
        # The constant is for a model without weights.
        [tf.constant(False)]
        + [~tf.reduce_all(tf.math.is_finite(value)) for value in values]
    )[1:]
