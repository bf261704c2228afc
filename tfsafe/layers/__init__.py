"""Layers that stay right where Keras gives NaN, and every other name of `keras.layers`.

`__all__` lists what tfsafe adds or makes safe; any other public name is Keras' own
object.
"""

from typing import TYPE_CHECKING

from tfsafe import _swap
from tfsafe.layers.attention.attention import AdditiveAttention, Attention
from tfsafe.layers.attention.multi_head import GroupQueryAttention, MultiHeadAttention
from tfsafe.layers.core.activation import LogSigmoid, LogSoftmax, Softmax
from tfsafe.layers.core.categories import CategoryEncoding, Discretization, Hashing
from tfsafe.layers.core.dropout import (
    AlphaDropout,
    Dropout,
    GaussianDropout,
    SpatialDropout1D,
    SpatialDropout2D,
    SpatialDropout3D,
)
from tfsafe.layers.core.embedding import Embedding
from tfsafe.layers.core.masking import Masking
from tfsafe.layers.core.spectrogram import Dot, STFTSpectrogram
from tfsafe.layers.normalization.adapted import Normalization
from tfsafe.layers.normalization.batch import BatchNormalization
from tfsafe.layers.normalization.per_sample import (
    GroupNormalization,
    LayerNormalization,
    RMSNormalization,
    UnitNormalization,
)
from tfsafe.layers.normalization.spectral import SpectralNormalization
from tfsafe.layers.pooling.keras_pooling import (
    AveragePooling1D,
    GlobalAveragePooling1D,
    GlobalMaxPooling1D,
    MaxPooling1D,
)
from tfsafe.layers.pooling.safe_mean import SafeMeanPooling
from tfsafe.layers.recurrent.keras_recurrent import (
    GRU,
    LSTM,
    RNN,
    ConvLSTM1D,
    ConvLSTM2D,
    ConvLSTM3D,
    SimpleRNN,
    TimeDistributed,
)
from tfsafe.layers.recurrent.layer_norm_gru import LayerNormGRU, LayerNormGRUCell
from tfsafe.layers.recurrent.layer_norm_lstm import LayerNormLSTM, LayerNormLSTMCell

# Keras' own second names.
AvgPool1D = AveragePooling1D
GlobalAvgPool1D = GlobalAveragePooling1D
GlobalMaxPool1D = GlobalMaxPooling1D
MaxPool1D = MaxPooling1D

if TYPE_CHECKING:
    from tfsafe.layers._keras_names import *  # noqa: F403

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "AdditiveAttention",
    "AlphaDropout",
    "Attention",
    "AveragePooling1D",
    "AvgPool1D",
    "BatchNormalization",
    "CategoryEncoding",
    "ConvLSTM1D",
    "ConvLSTM2D",
    "ConvLSTM3D",
    "Discretization",
    "Dot",
    "Dropout",
    "Embedding",
    "GaussianDropout",
    "GlobalAveragePooling1D",
    "GlobalAvgPool1D",
    "GlobalMaxPool1D",
    "GlobalMaxPooling1D",
    "GroupNormalization",
    "GroupQueryAttention",
    "Hashing",
    "LayerNormGRU",
    "LayerNormGRUCell",
    "LayerNormLSTM",
    "LayerNormLSTMCell",
    "LayerNormalization",
    "LogSigmoid",
    "LogSoftmax",
    "Masking",
    "MaxPool1D",
    "MaxPooling1D",
    "MultiHeadAttention",
    "Normalization",
    "RMSNormalization",
    "STFTSpectrogram",
    "SafeMeanPooling",
    "SimpleRNN",
    "Softmax",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
    "SpectralNormalization",
    "TimeDistributed",
    "UnitNormalization",
]

# Hidden from type checkers, which are to report a misspelled name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = _swap.fall_back_to_keras(__name__, __all__)
