"""Regularizers that stay right where Keras gives NaN, and the others of Keras.

`__all__` lists what tfsafe makes safe; any other public name of `keras.regularizers` is
Keras' own object.
"""

from typing import TYPE_CHECKING

from tfsafe import _swap
from tfsafe.regularizers._orthogonal import OrthogonalRegularizer

if TYPE_CHECKING:
    from tfsafe.regularizers._keras_names import *  # noqa: F403

__all__ = ["OrthogonalRegularizer"]

# Hidden from type checkers, which are to report a misspelled name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = _swap.fall_back_to_keras(__name__, __all__)
