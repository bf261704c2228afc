"""Layers that stay right where Keras gives NaN, and every other name of `keras.layers`.

`__all__` lists what tfsafe adds or makes safe; any other public name is Keras' own
object.
"""

from typing import TYPE_CHECKING

from tfsafe import _swap
from tfsafe.layers._activation import LogSigmoid
from tfsafe.layers._layer_norm_gru import LayerNormGRU, LayerNormGRUCell
from tfsafe.layers._layer_norm_lstm import LayerNormLSTM, LayerNormLSTMCell
from tfsafe.layers._pooling import SafeMeanPooling

if TYPE_CHECKING:
    from keras.layers import *  # noqa: F403 (the names that `__getattr__` answers to)

__all__ = [
    "LayerNormGRU",
    "LayerNormGRUCell",
    "LayerNormLSTM",
    "LayerNormLSTMCell",
    "LogSigmoid",
    "SafeMeanPooling",
]

__getattr__, __dir__ = _swap.fall_back_to_keras(__name__, __all__)
