"""Has the names of `keras.optimizers`, with `SafeOptimizer` around every optimizer."""

from typing import Any

import keras

from tfsafe import SafeOptimizer


def __getattr__(name: str) -> Any:
    thing = getattr(keras.optimizers, name)
    if not (isinstance(thing, type) and issubclass(thing, keras.optimizers.Optimizer)):
        return thing
    if name in ("LossScaleOptimizer", "Optimizer"):
        return thing
    return lambda *arguments, **options: SafeOptimizer(thing(*arguments, **options))
