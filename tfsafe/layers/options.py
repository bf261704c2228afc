"""Names the arguments that layers take by `**kwargs`, for type checkers."""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict


class OptionsButName(TypedDict, total=False):
    """What every Keras layer takes, without its name."""

    activity_regularizer: Any
    autocast: bool
    dtype: Any
    input_shape: Any
    trainable: bool


class LayerOptions(OptionsButName, total=False):
    """What every Keras layer takes."""

    name: str | None


class LayerNormalizationOptions(LayerOptions, total=False):
    """What `keras.layers.LayerNormalization` takes."""

    axis: int | Sequence[int]
    epsilon: float
    center: bool
    scale: bool
    beta_initializer: Any
    gamma_initializer: Any
    beta_regularizer: Any
    gamma_regularizer: Any
    beta_constraint: Any
    gamma_constraint: Any


class KerasCellOptions(LayerOptions, total=False):
    """What the cells of Keras' LSTM and GRU take."""

    kernel_initializer: Any
    recurrent_initializer: Any
    bias_initializer: Any
    kernel_regularizer: Any
    recurrent_regularizer: Any
    bias_regularizer: Any
    kernel_constraint: Any
    recurrent_constraint: Any
    bias_constraint: Any
    dropout: float
    seed: Any


class CellOptions(KerasCellOptions, total=False):
    """What cells with layer normalization take."""

    layer_norm: bool
    fused: bool
    epsilon: float
    norm_gain_initializer: Any
    norm_shift_initializer: Any
    recurrent_dropout: float
    recurrent_dropout_mask: Literal["step", "sequence"]


class AnyCellOptions(CellOptions, total=False):
    """What one of these cells takes: the last two are those of the LSTM's."""

    forget_bias: float
    normalize_state: Literal["output", "stored"]
