"""Cross entropies: of rows of labels, of class indices, of binary targets."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import custom_gradient, known
from tfsafe.ops.kernels import precision, zeros
from tfsafe.ops.kernels.activation import sigmoid
from tfsafe.ops.kernels.probability import cross_probabilities, cross_rows
from tfsafe.ops.kernels.zeros import times_upstream
from tfsafe.ops.nn import classes as _classes

_Gradients = tuple[tf.Tensor, tf.Tensor]


def categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    *,
    from_logits: bool = False,
    axis: int = -1,
    label_smoothing: float = 0.0,
    bounded: bool = False,
    name: str = "categorical_crossentropy",
) -> tf.Tensor:
    """Computes `-sum(y_true * log(p), axis)` for rows of one-hot or soft labels.

    `p` is `softmax(y_pred)` with `from_logits=True`, otherwise `y_pred` divided by its
    sum along `axis`. Nothing is clipped, and a label of 0 counts 0 whatever its
    logit is, so a class can be excluded with a logit of `-inf`.

    Args:
      y_true: Floating `Tensor` of labels. Rows need not sum to 1; a row of zeros asks
        for nothing and costs nothing.
      y_pred: Floating `Tensor` with the shape and dtype of `y_true`.
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
      error              value within a few eps of its largest term, or of sum(y_true)
      gradient           p * sum(y_true) - y_true in the logits, for any sum of the row
      logit -inf         label 0: counts 0, gradient 0; label > 0: value inf
      probability 0      label 0: counts 0; label > 0: value inf, its slope taken as 0
      row of zero labels value 0, gradient 0, whatever the predictions
      negative elsewhere a probability counts in the sum with its magnitude
      NaN                value NaN
      Smoothing puts a label on every class: one of probability 0 then gives inf.
      A zero incoming gradient gives a zero gradient, also where a label is NaN.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> logits = tf.constant([[-float("inf"), 0.0, 1.0]])
      >>> labels = tf.constant([[0.0, 1.0, 0.0]])
      >>> loss = tfsafe.ops.categorical_crossentropy(
      ...     labels, logits, from_logits=True
      ... )
      >>> print(loss.numpy())
      [1.31326]

    References:
      Goodfellow, Bengio, Courville, "Deep Learning", 2016, section 6.2.2.3.
    """
    with tf.name_scope(name):
        y_true, y_pred = _args.float_tensors(y_true=y_true, y_pred=y_pred)
        axis = _classes.class_axis(axis, y_pred.shape)
        y_true = _classes.in_shape(y_true, y_pred)
        smoothing = _classes.checked_smoothing(label_smoothing)

        def loss(labels: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
            return rows(labels, x, axis, smoothing, from_logits, bounded)

        return precision.in_float32(loss, y_true, y_pred)


def rows(
    labels: tf.Tensor,
    x: tf.Tensor,
    axis: int,
    smoothing: float,
    from_logits: bool,
    bounded: bool,
) -> tf.Tensor:
    """Returns the loss of each row of labels, of float32 or float64 tensors."""
    if smoothing:
        labels = _classes.smoothed_rows(labels, smoothing, axis)
    if from_logits:
        return _classes.over_rows(cross_rows.dense, labels, x, axis)
    losses = cross_probabilities.negative_log(x, axis, bounded)
    return tf.reduce_sum(zeros.weighted_loss(losses, labels), axis)


def sparse_categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    *,
    from_logits: bool = False,
    axis: int = -1,
    label_smoothing: float = 0.0,
    bounded: bool = False,
    name: str = "sparse_categorical_crossentropy",
) -> tf.Tensor:
    """Computes `-log(p[y_true])` for class indices.

    `p` is `softmax(y_pred)` with `from_logits=True`, otherwise `y_pred` divided by its
    sum along `axis`. The same as `categorical_crossentropy` of the one-hot labels.

    Args:
      y_true: Integer `Tensor` of class indices.
      y_pred: Floating `Tensor` with the shape of `y_true` and the classes at `axis`.
      from_logits: Whether `y_pred` holds logits rather than probabilities.
      axis: The axis of the classes in `y_pred`.
      label_smoothing: Fraction of the label, from 0 to 1, spread evenly over all
        classes.
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
      error          a few eps of the loss or of 1, whichever is larger; the same for
                     the gradient, p - 1 at the label and p elsewhere
      logit -inf     at another class: counts 0, gradient 0; at the label: value inf
      probability 0  at the label: value inf, its slope taken as 0
      negative elsewhere  a probability counts in the sum with its magnitude
      label outside 0 .. classes - 1  value NaN, gradient 0, in every mode
      NaN            value NaN
      Smoothing puts a label on every class: one of probability 0 then gives inf.
      A zero incoming gradient gives a zero gradient.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> logits = tf.constant([[-float("inf"), 0.0, 1.0]])
      >>> loss = tfsafe.ops.sparse_categorical_crossentropy(
      ...     [1], logits, from_logits=True
      ... )
      >>> print(loss.numpy())
      [1.31326]

    References:
      Goodfellow, Bengio, Courville, "Deep Learning", 2016, section 6.2.2.3.
    """
    with tf.name_scope(name):
        indices, y_pred, axis = _classes.indices_and_axis(y_true, y_pred, axis)
        smoothing = _classes.checked_smoothing(label_smoothing)

        def loss(x: tf.Tensor) -> tf.Tensor:
            return sparse(indices, x, axis, smoothing, from_logits, bounded)

        return precision.in_float32(loss, y_pred)


def sparse(
    indices: tf.Tensor,
    x: tf.Tensor,
    axis: int,
    smoothing: float,
    from_logits: bool,
    bounded: bool,
) -> tf.Tensor:
    """Returns the loss of each class index, from a float32 or float64 tensor."""
    if smoothing:
        return _smoothed(indices, x, axis, smoothing, from_logits, bounded)
    if from_logits:
        return _classes.over_rows(sparse_logits, indices, x, axis)
    row = functools.partial(cross_probabilities.sparse, bounded=bounded)
    return _classes.over_rows(row, indices, x, axis)


def sparse_logits(indices: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Returns `log(sum(exp(z))) - z[index]` for each row."""
    is_class, classified = cross_rows.known_classes(indices, logits)
    return cross_rows.nan_unless(is_class, cross_rows.sparse(classified, logits))


def _smoothed(
    indices: tf.Tensor,
    x: tf.Tensor,
    axis: int,
    smoothing: float,
    from_logits: bool,
    bounded: bool,
) -> tf.Tensor:
    classes = tf.shape(x)[axis]
    part = tf.constant(smoothing, x.dtype) / tf.cast(classes, x.dtype)
    labels = tf.one_hot(indices, classes, 1 - smoothing, 0.0, axis, x.dtype) + part
    loss = rows(labels, x, axis, 0.0, from_logits, bounded)
    is_class = (indices >= 0) & (indices < tf.cast(classes, indices.dtype))
    return cross_rows.nan_unless(is_class, loss)


def binary_crossentropy(
    y_true: Any,
    y_pred: Any,
    *,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    bounded: bool = False,
    name: str = "binary_crossentropy",
) -> tf.Tensor:
    """Computes `-y_true * log(p) - (1 - y_true) * log(1 - p)` elementwise.

    `p` is `sigmoid(y_pred)` with `from_logits=True`, otherwise `y_pred` itself. Nothing
    is clipped; each of the two terms counts 0 where its factor is 0.

    Args:
      y_true: Floating `Tensor` of targets, from 0 to 1.
      y_pred: Floating `Tensor` with the shape and dtype of `y_true`.
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
      gradient       sigmoid(y_pred) - y_true in the logits, without cancellation
      logit -inf     target 0: value 0, gradient 0; target > 0: value inf
      logit inf      target 1: value 0, gradient 0; target < 1: value inf
      probability 0  target 0: value 0, slope 1; target > 0: value inf, the infinite
                     part of the slope taken as 0; the same at 1
      outside [0, 1] a probability there gives NaN
      NaN            value NaN
      A zero incoming gradient gives a zero gradient, also where a target is NaN.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> logits = tf.constant([-float("inf"), -20.0])
      >>> loss = tfsafe.ops.binary_crossentropy(
      ...     [0.0, 1.0], logits, from_logits=True
      ... )
      >>> print(loss.numpy())
      [ 0. 20.]

    References:
      Goodfellow, Bengio, Courville, "Deep Learning", 2016, section 6.2.2.2.
    """
    with tf.name_scope(name):
        y_true, y_pred = _args.float_tensors(y_true=y_true, y_pred=y_pred)
        y_true = _classes.in_shape(y_true, y_pred)
        smoothing = _classes.checked_smoothing(label_smoothing)

        def loss(target: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
            if smoothing:
                target = (1 - smoothing) * target + smoothing / 2
            return binary(target, x, from_logits, bounded)

        return precision.in_float32(loss, y_true, y_pred)


def binary(
    target: tf.Tensor, x: tf.Tensor, from_logits: bool, bounded: bool
) -> tf.Tensor:
    """Returns the loss of each element."""
    if from_logits:
        return _binary_logits(target, x)
    if bounded:
        return cross_probabilities.bounded_binary(target, x)
    return cross_probabilities.binary(target, x)


@custom_gradient
def _binary_logits(
    target: tf.Tensor, z: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Gradients]]:
    """Returns `log(1 + exp(z)) - y * z`, as two terms of one sign."""
    # The target's distance from the outcome that the logit's sign predicts.
    is_positive = z > 0
    distance = tf.where(is_positive, 1 - target, target)
    size = tf.abs(z)
    decay = tf.exp(-size)

    def vjp(upstream: tf.Tensor) -> _Gradients:
        # `sigmoid(z) - y` without the sigmoid's 1 - tiny.
        slope = decay / (1 + decay) - distance
        slope = tf.where(is_positive, -slope, slope)
        slope = known(slope, lambda target, z: sigmoid(z) - target, target, z)
        return times_upstream(-upstream, zeros.zero_where_inf(z)), times_upstream(
            upstream, slope
        )

    return tf.math.multiply_no_nan(size, distance) + tf.math.log1p(decay), vjp
