"""Defines the rows of the catalogue, and the function that most are made with."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tests.support import contrast
from tests.support.modes import MODES

# In place of a value or of gradients: any finite numbers are right.
FINITE = contrast.FINITE


@dataclasses.dataclass(frozen=True)
class Row:
    """One trap: the form that people write, and ours.

    Attributes:
      id: Identifier, as in "O40".
      trap: The usual call and its input, in a few words for the coverage page.
      fixed_by: The public name below `tfsafe` that is right there, as in "ops.log".
      usual: Takes a mode and returns whether TensorFlow's or Keras' form is right.
      ours: The same of tfsafe's form.
      modes: The modes that the row names.
      fails_in: The modes in which the usual form fails.
      wrapped: Takes a decorator, such as `tfsafe.stabilize`, and a mode; returns
        whether the decorated usual form is right. None if the usual form is not a
        function of tensors.
      is_by_hand: Whether the usual form is a formula that users write by hand, so that
        `tfsafe.stabilize` has to make it right.
    """

    id: str
    trap: str
    fixed_by: str
    usual: Callable[[str], bool]
    ours: Callable[[str], bool]
    modes: Sequence[str] = MODES
    fails_in: Sequence[str] = MODES
    wrapped: Callable[[Callable[..., Any], str], bool] | None = None
    is_by_hand: bool = False


def formula(
    id: str,
    trap: str,
    fixed_by: str,
    usual: Callable[..., tf.Tensor],
    ours: Callable[..., tf.Tensor],
    args: Sequence[Any],
    value: Any,
    gradients: Sequence[Any],
    *,
    dtype: Any = "float32",
    modes: Sequence[str] = MODES,
    fails_in: Sequence[str] | None = None,
    is_by_hand: bool = False,
) -> Row:
    """Returns the row of a function with a right value and right gradients.

    Args:
      id: Identifier.
      trap: The usual call and its input.
      fixed_by: The public name that is right there.
      usual: TensorFlow's or Keras' form, a function of the tensors `args`.
      ours: tfsafe's form, of the same tensors.
      args: Numbers or arrays; all are cast to `dtype` and differentiated.
      value: The right value; `FINITE` where any finite number will do. NaN and
        infinity count as themselves.
      gradients: The right gradient of the summed value for each argument; None for an
        argument that has none, `FINITE` where any finite number will do.
      dtype: Of the arguments.
      modes: The modes that the row names.
      fails_in: The modes in which the usual form fails; None means all of `modes`.
      is_by_hand: Whether `tfsafe.stabilize` has to make the usual form right.
    """

    def check(function: Callable[..., tf.Tensor]) -> Callable[[str], bool]:
        def is_right(mode: str) -> bool:
            tensors = [tf.cast(tf.constant(np.asarray(arg)), dtype) for arg in args]
            return contrast.is_right(function, tensors, value, gradients, mode)

        return is_right

    return Row(
        id,
        trap,
        fixed_by,
        check(usual),
        check(ours),
        modes,
        modes if fails_in is None else fails_in,
        lambda decorator, mode: check(decorator(usual))(mode),
        is_by_hand,
    )
