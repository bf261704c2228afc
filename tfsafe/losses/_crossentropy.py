"""Provides Keras' cross-entropies of probabilities or logits, focal ones and CTC."""

import functools
from typing import Any

import keras

from tfsafe import _args
from tfsafe.keras_formulas import crossentropy, focal
from tfsafe.keras_formulas.ctc import ctc
from tfsafe.losses._reduction import Weighted, given, safe


@safe
class BinaryCrossentropy(Weighted, keras.losses.BinaryCrossentropy):
    """Cross entropy of binary targets, with no NaN and no clip.

    `keras.losses.BinaryCrossentropy`, right where that gives NaN or blocks the
    gradient.

    Args:
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Fraction of the target, from 0 to 1, moved to 1/2.
      axis: The axis whose mean is one sample's loss.

    Numerics:
      logit -inf        target 0: value 0, gradient 0; target > 0: value inf
      logit inf         target 1: value 0, gradient 0; target < 1: value inf
      probability < 1.2e-38 (in float32)  the logarithm continues with slope 1 from its
                        value there, -87.3 (a bounded choice); so at 1, for a target
                        below 1
      outside [0, 1]    finite and not negative, with a gradient towards it: above 1 a
                        logarithm counts with the other sign (`from_logits` is missing)

      Where `y_pred` is the result of a sigmoid, the logits are used, and no digit is
      lost: in eager mode if nothing but the loss's own cast came after Keras'
      `sigmoid`; in a traced function (`tf.function`, `fit`, XLA) also behind other
      casts, `Reshape`, `ExpandDims`, `Squeeze`, `Transpose` and a `tf.where` with 0,
      and of `tf.sigmoid` as well. Otherwise the loss has the digits of the probability:
      for a target of 0 it is within 1 % up to a logit of 5.5 in float16, 3 in bfloat16
      and 14.5 in float32, where `1 - p` cancels.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> loss = losses.BinaryCrossentropy(from_logits=True)
      >>> print(loss([[0.0]], tf.constant([[-float("inf")]])).numpy())
      0.
    """

    formula = staticmethod(crossentropy.binary_rows)


@safe
class CategoricalCrossentropy(Weighted, keras.losses.CategoricalCrossentropy):
    """Cross entropy of rows of labels, with no NaN and no clip.

    `keras.losses.CategoricalCrossentropy`, right where that gives NaN, blocks the
    gradient, or gives the wrong gradient: for rows of labels that do not sum to 1.

    Args:
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Fraction of each row's sum, from 0 to 1, spread evenly over
        the classes.
      axis: The axis of the classes.

    Numerics:
      logit -inf          label 0: counts 0, gradient 0; label > 0: value inf
      rows of any sum     gradient p * sum(y_true) - y_true
      row of zero labels  value 0, gradient 0, whatever the predictions
      probability < 1.2e-38 (in float32)  label 0: counts 0; label > 0: the logarithm
                          continues with slope 1 from its value there, -87.3 (a bounded
                          choice), for numbers below 0 as well
      probability < 0     counts with its magnitude in the sum by which a row is
                          divided, so that no loss is negative

      Where `y_pred` is the result of a softmax along `axis`, the logits are used, and
      no digit is lost: in eager mode if nothing but the loss's own cast came after
      Keras' `softmax`; in a traced function (`tf.function`, `fit`, XLA) also behind
      other casts, a change of layout that keeps the last axis, `Transpose` and a
      `tf.where` with 0, and of `tf.nn.softmax` as well. Otherwise the loss has the
      digits of the probability, and a class of probability 0 has lost its distance.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> loss = losses.CategoricalCrossentropy(from_logits=True)
      >>> logits = tf.constant([[-float("inf"), 0.0, 1.0]])
      >>> print(loss([[0.0, 1.0, 0.0]], logits).numpy())
      1.31326
    """

    formula = staticmethod(crossentropy.rows)


@safe
class SparseCategoricalCrossentropy(
    Weighted, keras.losses.SparseCategoricalCrossentropy
):
    """Cross entropy of class indices, with no NaN and no clip.

    `keras.losses.SparseCategoricalCrossentropy`, with the gradient of its logits where
    `ignore_class` loses them, and the classes along any axis.

    Args:
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      ignore_class: A label of this value is ignored, as if masked.
      reduction: How the losses of the samples are reduced, as in Keras.
      axis: The axis of the classes.
      name: Name of the loss.
      dtype: Dtype of the result; half precision is computed in float32.

    Numerics:
      logit -inf       at another class: counts 0, gradient 0; at the label: value inf
      unknown class    ValueError in eager mode; traced: value NaN, gradient 0
      probability < 1.2e-38 (in float32)  at the label: the logarithm continues with
                       slope 1 from its value there, -87.3 (a bounded choice), for
                       numbers below 0 as well
      probability < 0  counts with its magnitude in the sum by which a row is divided,
                       so that no loss is negative
      weight 0, mask, `ignore_class`  value 0, gradient 0, NaN or not
      NaN elsewhere    value NaN

      Where `y_pred` is the result of a softmax, its logits are used as by
      `CategoricalCrossentropy`.

    Examples:
      >>> import keras
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> loss = losses.SparseCategoricalCrossentropy(ignore_class=-1)
      >>> logits = tf.constant([[0.0, 200.0], [0.0, 0.0]])
      >>> print(loss([0, -1], keras.activations.softmax(logits)).numpy())
      200.
    """

    formula = staticmethod(crossentropy.indices)
    takes_indices = True


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
