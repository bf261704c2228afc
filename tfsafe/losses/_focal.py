"""Provides Keras' focal and generalised cross-entropies."""

import functools
from typing import Any

import keras

from tfsafe.keras_formulas import focal
from tfsafe.losses._reduction import Weighted, given, safe

# Keras 3.3 does not have it.
_BASE: Any = getattr(
    keras.losses, "CategoricalGeneralizedCrossEntropy", keras.losses.Loss
)


@safe
class BinaryFocalCrossentropy(Weighted, keras.losses.BinaryFocalCrossentropy):
    """Focal cross entropy of binary targets, with no NaN and no clip.

    `keras.losses.BinaryFocalCrossentropy`, right where that gives NaN or blocks the
    gradient. Logits are not turned into probabilities first.

    Args:
      apply_class_balancing: Whether `alpha` is used.
      alpha: Weight of the targets of 1, against `1 - alpha` for those of 0.
      gamma: How fast the weight of a good prediction falls; at least 0.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Fraction of the target, from 0 to 1, moved to 1/2.
      axis: The axis whose mean is one sample's loss.

    Numerics:
      logit -inf        target 0: value 0, gradient 0; target > 0: value inf
      certain and right value 0, gradient 0 for any `gamma` above 0
      probability < 1.2e-38 (in float32)  the logarithm continues with slope 1 from its
                        value there, -87.3 (a bounded choice); so at 1, for a target
                        below 1
      outside [0, 1]    finite and not negative, with a gradient towards it, as for
                        `BinaryCrossentropy`

      The logits behind a sigmoid are found as by `BinaryCrossentropy`.

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.BinaryFocalCrossentropy(from_logits=True)
      >>> print(loss([[1.0]], [[-100.0]]).numpy())
      100.
    """

    formula = staticmethod(focal.binary_focal_crossentropy)


@safe
class CategoricalFocalCrossentropy(Weighted, keras.losses.CategoricalFocalCrossentropy):
    """Focal cross entropy of rows of labels, with no NaN and no clip.

    `keras.losses.CategoricalFocalCrossentropy`, right where that gives NaN or blocks
    the gradient. Logits are not turned into probabilities first.

    Args:
      alpha: Weight of all classes, or a sequence with that of each.
      gamma: How fast the weight of a good prediction falls; at least 0.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Fraction of each row's sum, from 0 to 1, spread evenly over
        the classes.
      axis: The axis of the classes.

    Numerics:
      logit -inf          label 0: counts 0, gradient 0; label > 0: value inf
      row of zero labels  value 0, gradient 0, whatever the predictions
      probability < 1.2e-38 (in float32)  label 0: counts 0; label > 0: the logarithm
                          continues with slope 1 from its value there, -87.3 (a bounded
                          choice), for numbers below 0 as well
      probability < 0     counts with its magnitude in the sum by which a row is
                          divided, so that no loss is negative

      The logits behind a softmax are found as by `CategoricalCrossentropy`.

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.CategoricalFocalCrossentropy(from_logits=True)
      >>> print(loss([[1.0, 0.0]], [[-100.0, 100.0]]).numpy())
      50.
    """

    formula = staticmethod(focal.categorical_focal_crossentropy)


@safe
class CategoricalGeneralizedCrossEntropy(Weighted, _BASE):
    """Generalised cross entropy of class indices, `(1 - p ** q) / q`.

    `keras.losses.CategoricalGeneralizedCrossEntropy`, whose gradient is NaN once a
    probability is 0.

    Args:
      q: Number between 0, where it is the cross entropy, and 1, where it is the
        absolute error; both excluded.

    Raises:
      ValueError: If `q` is out of its range.

    Numerics:
      probability < 1.2e-38 (in float32)  at the label: value as near to `1 / q` as the
                        dtype resolves, its slope bounded by the one there
      probability > 1   counts as its reciprocal, so that no loss is negative
      unknown class     ValueError in eager mode; traced: value NaN, gradient 0

      The logits behind a softmax are found as by `CategoricalCrossentropy`; the
      gradient in these is `-(p ** q) * (y - p)`, and never large.

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.CategoricalGeneralizedCrossEntropy()
      >>> print(loss([0], [[0.0, 1.0]]).numpy())
      2.
    """

    takes_indices = True

    def __init__(
        self,
        q: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_generalized_cross_entropy",
        dtype: Any = None,
    ):
        if isinstance(q, bool) or not isinstance(q, int | float) or not 0 < q < 1:
            raise ValueError(
                f"`q` must be between 0 and 1, both excluded. Received: q={q!r}."
            )
        options = {"q": q} if _BASE is not keras.losses.Loss else {}
        super().__init__(
            name=name, reduction=reduction, **given(dtype=dtype), **options
        )
        self.q = q
        self.formula = functools.partial(focal.generalized, q=q)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments for `from_config`."""
        return {**super().get_config(), "q": self.q}
