"""Provides Keras' losses of hinges, angles and overlaps, with safe formulas."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe.keras_formulas import similarity
from tfsafe.losses import _reduction
from tfsafe.losses._reduction import Weighted, safe


@safe
class Hinge(Weighted, keras.losses.Hinge):
    """Mean of `max(1 - y_true * y_pred, 0)` for labels -1 and 1, or 0 and 1.

    `keras.losses.Hinge`, in which a weight of 0 or a mask removes a NaN, and half
    precision is counted and summed in float32.

    Examples:
      >>> from tfsafe import losses
      >>> y_true = [[float("nan")], [1.0]]
      >>> print(losses.Hinge()(y_true, [[1.0], [0.0]], sample_weight=[0, 1]).numpy())
      0.5
    """

    formula = staticmethod(similarity.hinge)


@safe
class SquaredHinge(Weighted, keras.losses.SquaredHinge):
    """Mean of `max(1 - y_true * y_pred, 0)^2` for labels -1 and 1, or 0 and 1.

    `keras.losses.SquaredHinge`, in which a weight of 0 or a mask removes a NaN, and
    half precision is counted and summed in float32.

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.SquaredHinge()
      >>> y_true = [[float("nan")], [1.0]]
      >>> print(loss(y_true, [[1.0], [-1.0]], sample_weight=[0, 1]).numpy())
      2.
    """

    formula = staticmethod(similarity.squared_hinge)


@safe
class CategoricalHinge(Weighted, keras.losses.CategoricalHinge):
    """How far the best wrong class comes within 1 of the true class.

    `keras.losses.CategoricalHinge`, in which a class that is masked with a logit of
    -inf counts nothing, where Keras' loss is NaN.

    Numerics:
      prediction -inf   wrong class: counts 0, slope 0; true class: value inf

    Examples:
      >>> from tfsafe import losses
      >>> y_pred = [[float("-inf"), 0.0, 1.0]]
      >>> print(losses.CategoricalHinge()([[0, 1, 0]], y_pred).numpy())
      2.
    """

    formula = staticmethod(similarity.categorical_hinge)


@safe
class CosineSimilarity(Weighted, keras.losses.CosineSimilarity):
    """Minus the cosine of the angle between labels and predictions.

    `keras.losses.CosineSimilarity` for vectors of any length, 0 included, and with an
    `axis` that survives a saved model.

    Args:
      axis: Axis or axes that make a vector.

    Numerics:
      zero vector       value 0, gradient 0 (a choice: the angle is undefined)

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.CosineSimilarity()([[1.0, 0.0]], [[1e20, 0.0]]).numpy())
      -1.
    """

    formula = staticmethod(similarity.cosine_similarity)


class _Overlap(Weighted):
    """A loss whose sums run over what weights and masks may leave out."""

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> tf.Tensor:
        """Returns the reduced loss, see the class."""
        mask = _compat.keras_mask(y_pred)
        pair = self._tensors(y_true, y_pred)
        if sample_weight is not None or mask is not None:
            # Labels and predictions of 0 are in none of the sums.
            pair = tuple(_kept(x, sample_weight, mask) for x in pair)
        return super().__call__(*pair, sample_weight)


def _kept(x: tf.Tensor, sample_weight: Any, mask: Any) -> tf.Tensor:
    weights = _reduction.weights(x, sample_weight, mask)
    return tf.where(tf.equal(weights, 0), tf.zeros_like(x), x)


@safe
class Dice(_Overlap, keras.losses.Dice):
    """Dice's loss, `1 - 2 sum(y_true * y_pred) / sum(y_true + y_pred)`.

    `keras.losses.Dice`, but right where the labels are all 0: there Keras' loss is 1
    with gradient 0, whatever the prediction.

    Args:
      reduction: How the losses of the samples are reduced, as in Keras.
      name: Name of the loss.
      axis: Axis or axes of one region; None means all of them.
      dtype: Dtype of the result; half precision is computed in float32.

    Numerics:
      labels all 0      value s / (2 + s) with s = sum(y_pred), gradient 2 / (2 + s)^2:
                        nothing predicted is perfect (a choice, of the smooth Dice)
      prediction < 0    counts with its magnitude in the denominator (a bounded choice)
      weight 0, masked  the elements count in no sum, NaN or not
      NaN elsewhere     value NaN

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.Dice()
      >>> print(loss([[0.0, 0.0]], [[0.0, 0.0]]).numpy())
      0.
      >>> print(loss([[0.0, 0.0]], [[0.5, 0.5]]).numpy())
      0.3333333
    """

    formula = staticmethod(similarity.dice)


@safe
class Tversky(_Overlap, keras.losses.Tversky):
    """Tversky's loss: Dice's, with weights for missed and for added elements.

    `keras.losses.Tversky`, but right where the labels are all 0: there Keras' loss is 1
    with gradient 0, whatever the prediction.

    Args:
      alpha: Weight of the elements that the prediction misses.
      beta: Weight of the elements that it adds.
      reduction: How the losses of the samples are reduced, as in Keras.
      name: Name of the loss.
      axis: Axis or axes of one region; None means all of them.
      dtype: Dtype of the result; half precision is computed in float32.

    Numerics:
      labels all 0      value b / (1 + b) with b = beta * sum(y_pred): nothing predicted
                        is perfect (a choice, of the smooth form)
      prediction < 0    counts with its magnitude in the denominator (a bounded choice)
      weight 0, masked  the elements count in no sum, NaN or not
      NaN elsewhere     value NaN

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.Tversky(beta=1.0)
      >>> print(loss([[0.0, 0.0]], [[0.5, 0.5]]).numpy())
      0.5
    """

    formula = staticmethod(similarity.tversky)
