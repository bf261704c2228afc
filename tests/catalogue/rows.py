"""What a row of the catalogue is, and how most of them are written."""

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
      id: Of the catalogue, as in "O40".
      trap: The usual call and its input, in a few words for the coverage page.
      cure: The public name that mends it, below `tfsafe`, as in "ops.log".
      usual: Takes a mode and tells whether TensorFlow's or Keras' form is right there.
      ours: The same of tfsafe's form.
      modes: The modes that the row names.
      fails_in: The modes in which the usual form fails.
      wrapped: Takes what wraps a function, `tfsafe.stabilize` for one, and a mode;
        tells whether the usual form is right when wrapped. None where it is no
        function of tensors.
    """

    id: str
    trap: str
    cure: str
    usual: Callable[[str], bool]
    ours: Callable[[str], bool]
    modes: Sequence[str] = MODES
    fails_in: Sequence[str] = MODES
    wrapped: Callable[[Callable[..., Any], str], bool] | None = None


def formula(
    id: str,
    trap: str,
    cure: str,
    usual: Callable[..., tf.Tensor],
    ours: Callable[..., tf.Tensor],
    args: Sequence[Any],
    value: Any,
    gradients: Sequence[Any],
    *,
    dtype: Any = "float32",
    modes: Sequence[str] = MODES,
    fails_in: Sequence[str] | None = None,
) -> Row:
    """Returns the row of a function with a right value and right gradients.

    Args:
      id: Of the catalogue.
      trap: The usual call and its input.
      cure: The public name that mends it.
      usual: TensorFlow's or Keras' form, a function of the tensors `args`.
      ours: tfsafe's form, of the same tensors.
      args: Numbers or arrays; all are cast to `dtype` and differentiated.
      value: The right value; `FINITE` where any finite number will do. NaN and
        infinity count as themselves.
      gradients: The right gradient of the summed value for each argument; None for an
        argument that has none, `FINITE` where any finite number will do.
      dtype: Of the arguments.
      modes: The modes that the row names.
      fails_in: The modes in which the usual form fails; all of `modes` where None.
    """

    def check(function: Callable[..., tf.Tensor]) -> Callable[[str], bool]:
        def is_right(mode: str) -> bool:
            tensors = [tf.cast(tf.constant(np.asarray(arg)), dtype) for arg in args]
            return contrast.is_right(function, tensors, value, gradients, mode)

        return is_right

    return Row(
        id,
        trap,
        cure,
        check(usual),
        check(ours),
        modes,
        modes if fails_in is None else fails_in,
        lambda wrapper, mode: check(wrapper(usual))(mode),
    )
