"""Provides Keras' CTC loss, for alignments that may be impossible."""

import functools
from typing import Any

import keras

from tfsafe import _args
from tfsafe.keras_formulas.ctc import ctc
from tfsafe.losses._reduction import Weighted, given, safe


@safe
class CTC(Weighted, keras.losses.CTC):
    """Connectionist temporal classification, from logits.

    `keras.losses.CTC`, in which a sample whose labels cannot be aligned with its frames
    costs some 707 and pulls the model with a gradient that means nothing.

    Args:
      reduction: How the losses of the samples are reduced, as in Keras.
      name: Name of the loss.
      dtype: Dtype of the result; half precision is computed in float32.
      zero_infinity: Whether such a sample counts 0, with gradient 0. Its loss is inf
        otherwise. It counts in a mean either way.

    Call arguments:
      y_true: Labels of shape `[batch, labels]`. 0 is the blank, and pads labels at
        their end.
      y_pred: Logits of shape `[batch, frames, classes]`.
      sample_weight: Weights of shape `[batch]`.

    Raises:
      ValueError: If `zero_infinity` is not a boolean, or the inputs do not have these
        axes.

    Numerics:
      labels do not fit  value 0, or inf with `zero_infinity=False`; gradient 0
      logit -inf         a class that cannot occur
      weight 0           value and gradients 0, NaN or not
      empty batch        value 0
      label >= classes   value NaN
      NaN elsewhere      value NaN

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> print(losses.CTC()([[1, 1], [1, 0]], tf.zeros([2, 2, 3])).numpy())
      0.5493061
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "ctc",
        dtype: Any = None,
        *,
        zero_infinity: bool = True,
    ):
        super().__init__(reduction=reduction, name=name, **given(dtype=dtype))
        self.zero_infinity = _args.one_of(zero_infinity, (False, True), "zero_infinity")
        self.formula = functools.partial(ctc, zero_infinity=zero_infinity)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments for `from_config`."""
        return {**super().get_config(), "zero_infinity": self.zero_infinity}
