"""Names the options of layers for type checkers, and registers families of layers."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict, TypeVar

import keras


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


_Layer = TypeVar("_Layer", bound=type)


def member_of_family(shared: str) -> Callable[[_Layer], _Layer]:
    """Returns a class decorator: registers a layer and completes its docstring.

    Args:
      shared: Sections that every layer of the family has, put before "Examples:".

    Returns:
      The decorator.
    """
    shared = inspect.cleandoc(shared)

    def decorate(layer: _Layer) -> _Layer:
        head, title, examples = inspect.cleandoc(layer.__doc__ or "").partition(
            "Examples:"
        )
        layer.__doc__ = f"{head}{shared}\n\n{title}{examples}\n"
        return keras.saving.register_keras_serializable(package="tfsafe")(layer)

    return decorate
