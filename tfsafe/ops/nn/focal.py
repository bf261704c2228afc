"""Cross entropies that weigh each class by how well it is predicted already."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import precision, zeros
from tfsafe.ops.kernels.activation import sigmoid
from tfsafe.ops.kernels.exponential import expm1
from tfsafe.ops.kernels.power import constant_power
from tfsafe.ops.kernels.probability import cross_probabilities
from tfsafe.ops.kernels.probability.exponential_sums import log_softmax
from tfsafe.ops.kernels.zeros import times_where_nonzero
from tfsafe.ops.nn import classes, crossentropy


def binary_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    *,
    gamma: float = 2.0,
    alpha: float | None = None,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    bounded: bool = False,
    name: str = "binary_focal_crossentropy",
) -> tf.Tensor:
    """Computes `(1 - p_t) ** gamma * binary_crossentropy(y_true, y_pred)` elementwise.

    `p_t` is the probability of the target, `y_true * p + (1 - y_true) * (1 - p)`, and
    `p` is `sigmoid(y_pred)` with `from_logits=True`, otherwise `y_pred` itself. Nothing
    is clipped: a confident and wrong prediction keeps its gradient.

    Args:
      y_true: Floating `Tensor` of targets, from 0 to 1.
      y_pred: Floating `Tensor` with the shape and dtype of `y_true`.
      gamma: How fast the weight of a good prediction falls; at least 0.
      alpha: Weight of the targets of 1, against `1 - alpha` for those of 0, from 0
        to 1; None weighs both by 1.
      from_logits: Whether `y_pred` holds logits rather than probabilities.
      label_smoothing: Fraction of the target, from 0 to 1, that is moved to 1/2.
      bounded: Whether the logarithm of a probability continues with slope 1 below the
        smallest normal number (1.2e-38 and -87.3 in float32), so that no probability
        costs inf, and numbers outside [0, 1] have a finite loss of at least 0, whose
        gradient points into it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `y_pred`, one value for each element. float16
      and bfloat16 are computed in float32.

    Raises:
      TypeError: If a dtype is not floating, or the two differ.
      ValueError: If the shapes differ, or an option is out of its range.

    Numerics:
      logit -inf     target 0: value 0, gradient 0; target > 0: value inf
      logit inf      target 1: value 0, gradient 0; target < 1: value inf
      probability 0  target 0: value 0; target > 0: value inf, the infinite part of the
                     slope taken as 0; the same at 1
      outside [0, 1] a probability there gives NaN
      NaN            value NaN
      A zero incoming gradient gives a zero gradient.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> logits = tf.constant([-100.0, 3.0])
      >>> loss = tfsafe.ops.binary_focal_crossentropy(
      ...     [1.0, 1.0], logits, from_logits=True
      ... )
      >>> print(loss.numpy())
      [1.00000e+02 1.09283e-04]

    References:
      Lin, Goyal, Girshick, He, Dollar, "Focal Loss for Dense Object Detection", 2017,
      equation 4.
    """
    with tf.name_scope(name):
        y_true, y_pred = _args.float_tensors(y_true=y_true, y_pred=y_pred)
        y_true = classes.in_shape(y_true, y_pred)
        smoothing = classes.checked_smoothing(label_smoothing)
        gamma = _option(gamma, "gamma", None)
        balance = None if alpha is None else _option(alpha, "alpha", 1.0)

        def loss(target: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
            if smoothing:
                target = (1 - smoothing) * target + smoothing / 2
            values = crossentropy.binary(target, x, from_logits, bounded)
            yes, no = (sigmoid(x), sigmoid(-x)) if from_logits else (x, 1 - x)
            # Outside [0, 1] both distances grow with that of the prediction.
            yes, no = zeros.magnitude(yes), zeros.magnitude(no)
            missed = times_where_nonzero(target, no) + times_where_nonzero(
                1 - target, yes
            )
            values = zeros.weighted_loss(
                values, constant_power(_limited(missed), gamma)
            )
            if balance is not None:
                weight = target * balance + (1 - target) * (1 - balance)
                values = zeros.weighted_loss(values, weight)
            return values

        return precision.in_float32(loss, y_true, y_pred)


def categorical_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    *,
    gamma: float = 2.0,
    alpha: Any = 0.25,
    from_logits: bool = False,
    axis: int = -1,
    label_smoothing: float = 0.0,
    bounded: bool = False,
    name: str = "categorical_focal_crossentropy",
) -> tf.Tensor:
    """Computes `-sum(alpha * (1 - p) ** gamma * y_true * log(p), axis)`.

    `p` is `softmax(y_pred)` with `from_logits=True`, otherwise `y_pred` divided by its
    sum along `axis`. Nothing is clipped: a confident and wrong prediction keeps its
    gradient.

    Args:
      y_true: Floating `Tensor` of labels.
      y_pred: Floating `Tensor` with the shape and dtype of `y_true`.
      gamma: How fast the weight of a good prediction falls; at least 0.
      alpha: Weight of all classes, or a sequence with that of each.
      from_logits: Whether `y_pred` holds logits rather than probabilities.
      axis: The axis of the classes.
      label_smoothing: Fraction of each row's sum, from 0 to 1, spread evenly over
        all classes.
      bounded: Whether the logarithm of a probability continues with slope 1 below the
        smallest normal number (1.2e-38 and -87.3 in float32), so that no probability
        costs inf, and numbers outside [0, 1] have a finite loss of at least 0, whose
        gradient points into it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape of `y_pred` without `axis`, and its dtype. float16 and
      bfloat16 are computed in float32.

    Raises:
      TypeError: If a dtype is not floating, or the two differ.
      ValueError: If the shapes differ, or an option is out of its range.

    Numerics:
      logit -inf         label 0: counts 0, gradient 0; label > 0: value inf
      probability 0      label 0: counts 0; label > 0: value inf, its slope taken as 0
      row of zero labels value 0, gradient 0, whatever the predictions
      NaN                value NaN
      negative elsewhere a probability counts in the sum with its magnitude
      A zero incoming gradient gives a zero gradient.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> loss = tfsafe.ops.categorical_focal_crossentropy(
      ...     [[1.0, 0.0]], tf.constant([[-100.0, 100.0]]), from_logits=True
      ... )
      >>> print(loss.numpy())
      [50.]

    References:
      Lin, Goyal, Girshick, He, Dollar, "Focal Loss for Dense Object Detection", 2017,
      equation 5.
    """
    with tf.name_scope(name):
        y_true, y_pred = _args.float_tensors(y_true=y_true, y_pred=y_pred)
        axis = classes.class_axis(axis, y_pred.shape)
        y_true = classes.in_shape(y_true, y_pred)
        smoothing = classes.checked_smoothing(label_smoothing)
        gamma = _option(gamma, "gamma", None)

        def loss(labels: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
            labels = classes.smoothed_rows(labels, smoothing, axis)
            if from_logits:
                negative = -log_softmax(x, [axis])
            else:
                negative = cross_probabilities.negative_log(x, axis, bounded)
            # `1 - p` keeps its digits where `p` is close to 1.
            missed = -expm1(-negative)
            values = zeros.weighted_loss(
                negative, constant_power(_limited(missed), gamma)
            )
            weights = labels * _class_weights(alpha, x, axis)
            return tf.reduce_sum(zeros.weighted_loss(values, weights), axis)

        return precision.in_float32(loss, y_true, y_pred)


def categorical_generalized_cross_entropy(
    y_true: Any,
    y_pred: Any,
    *,
    q: float = 0.5,
    from_logits: bool = False,
    axis: int = -1,
    bounded: bool = False,
    name: str = "categorical_generalized_cross_entropy",
) -> tf.Tensor:
    """Computes `(1 - p[y_true] ** q) / q` for class indices.

    Between the cross entropy, for `q` near 0, and the absolute error, for `q` near 1.

    Args:
      y_true: Integer `Tensor` of class indices.
      y_pred: Floating `Tensor` with the shape of `y_true` and the classes at `axis`.
      q: Number between 0 and 1, both excluded.
      from_logits: Whether `y_pred` holds logits, and `p` is their softmax. Otherwise
        `p` is `y_pred` itself, which is not divided by its sum.
      axis: The axis of the classes in `y_pred`.
      bounded: Whether the logarithm of a probability continues with slope 1 below the
        smallest normal number (1.2e-38 and -87.3 in float32), so that no probability
        costs inf, and numbers outside [0, 1] have a finite loss of at least 0, whose
        gradient points into it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape of `y_true` and the dtype of `y_pred`. float16 and
      bfloat16 are computed in float32.

    Raises:
      TypeError: If `y_true` is not integer or `y_pred` is not floating.
      ValueError: If the shapes do not belong together, or an option is out of its
        range.

    Numerics:
      error          a few eps of the value or of 1, whichever is larger, from logits
      probability 0  at the label: value 1 / q, slope 0 (a choice: it is infinite)
      logit -inf     at the label: value 1 / q, gradient 0
      outside        a probability above 1 counts as its reciprocal; a negative one
                     at the label gives NaN
      label outside 0 .. classes - 1  value NaN, gradient 0, in every mode
      NaN            value NaN
      A zero incoming gradient gives a zero gradient.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> loss = tfsafe.ops.categorical_generalized_cross_entropy(
      ...     [0, 1], tf.constant([[0.0, 1.0], [0.75, 0.25]])
      ... )
      >>> print(loss.numpy())
      [2. 1.]

    References:
      Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural
      Networks with Noisy Labels", 2018.
    """
    with tf.name_scope(name):
        q = _option(q, "q", 1.0)
        if q in {0.0, 1.0}:
            raise ValueError(
                f"`q` must be between 0 and 1, both excluded. Received: {q=}."
            )
        indices, y_pred, axis = classes.indices_and_axis(y_true, y_pred, axis)

        def loss(x: tf.Tensor) -> tf.Tensor:
            def row(indices: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
                if from_logits:
                    return crossentropy.sparse_logits(indices, x)
                return cross_probabilities.sparse(indices, x, bounded, normalize=False)

            return -expm1(-q * classes.over_rows(row, indices, x, axis)) / q

        return precision.in_float32(loss, y_pred)


def _limited(missed: tf.Tensor) -> tf.Tensor:
    """Keeps the base of the power in [0, 1], where the predictions are not."""
    # Not `clip_by_value`, which loses a NaN under some versions of XLA.
    positive = tf.where(missed < 0, tf.zeros_like(missed), missed)
    return tf.where(positive > 1, tf.ones_like(missed), positive)


def _class_weights(alpha: Any, x: tf.Tensor, axis: int) -> tf.Tensor:
    weights = tf.convert_to_tensor(alpha, x.dtype)
    if weights.shape.rank == 0:
        return weights
    if weights.shape.rank != 1 or not weights.shape.is_compatible_with([x.shape[axis]]):
        raise ValueError(
            "`alpha` must be a number or a sequence with one number for each of the "
            f"{x.shape[axis]} classes. Received: alpha.shape={weights.shape}."
        )
    return tf.reshape(
        weights, [-1 if each == axis else 1 for each in range(x.shape.rank)]
    )


def _option(value: Any, name: str, most: float | None) -> float:
    """Returns an option as a float."""
    upper = float("inf") if most is None else most
    if not _args.is_number(value) or not 0 <= value <= upper or value == float("inf"):
        limits = "of at least 0" if most is None else f"from 0 to {most:g}"
        raise ValueError(
            f"`{name}` must be a number {limits}. Received: {name}={value!r}."
        )
    return float(value)
