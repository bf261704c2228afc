"""Registers the layers of a family, whose docstrings have the same last sections."""

import inspect
from collections.abc import Callable
from typing import TypeVar

import keras

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
