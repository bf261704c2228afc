"""Losses that stay right where Keras gives NaN, and every other name of `keras.losses`.

`__all__` lists what tfsafe adds or makes safe; any other public name is Keras' own
object.
"""

from typing import TYPE_CHECKING

from tfsafe import _swap
from tfsafe.losses._stable_cross_entropy import StableCrossEntropy

if TYPE_CHECKING:
    from keras.losses import *  # noqa: F403 (the names that `__getattr__` answers to)

__all__ = ["StableCrossEntropy"]

__getattr__, __dir__ = _swap.fall_back_to_keras(__name__, __all__)
