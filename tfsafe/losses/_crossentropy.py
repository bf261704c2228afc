"""Provides Keras' cross-entropies of probabilities or logits."""

import keras

from tfsafe.keras_formulas import crossentropy
from tfsafe.losses._reduction import Weighted, safe


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

    formula = staticmethod(crossentropy.binary_crossentropy)


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
      probability < 1.2e-38 (in float32)  at the label: the logarithm goes on with slope
                       1 from its value there, -87.3 (a bounded choice), for numbers
                       below 0 as well
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
