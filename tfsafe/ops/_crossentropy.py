"""Cross entropies: of rows of labels, of class indices, of binary targets."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import chain
from tfsafe.ops import _precision
from tfsafe.ops._division import ratio
from tfsafe.ops._logarithm import log, log_sigmoid
from tfsafe.ops._softmax import log_softmax

_Gradient = Callable[[tf.Tensor], tf.Tensor]


def categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    *,
    from_logits: bool = False,
    axis: int = -1,
    label_smoothing: float = 0.0,
    name: str = "categorical_crossentropy",
) -> tf.Tensor:
    """Computes `-sum(y_true * log(p), axis)` for rows of one-hot or soft labels.

    `p` is `softmax(y_pred)` with `from_logits=True`, otherwise `y_pred` divided by its
    sum along `axis`. Nothing is clipped, and a label of 0 counts 0 whatever stands
    beside it, so a class can be excluded with a logit of `-inf`.

    Args:
      y_true: Floating `Tensor` of labels. Rows need not sum to 1; a row of zeros asks
        for nothing and costs nothing.
      y_pred: Floating `Tensor` with the shape and dtype of `y_true`.
      from_logits: Whether `y_pred` holds logits rather than probabilities.
      axis: The axis of the classes.
      label_smoothing: Share of each row's sum, from 0 to 1, that is spread evenly over
        all classes.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape of `y_pred` without `axis`, and its dtype. float16 and
      bfloat16 are computed in float32.

    Raises:
      TypeError: If a dtype is not floating, or the two differ.
      ValueError: If the shapes differ, or an option is out of its range.

    Numerics:
      gradient           p * sum(y_true) - y_true in the logits, for any sum of the row
      logit -inf         label 0: counts 0, gradient 0; label > 0: value inf
      probability 0      label 0: counts 0; label > 0: value inf, its slope taken as 0
      row of zero labels value 0, gradient 0, whatever the predictions
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
        axis = class_axis(axis, y_pred.shape)
        y_true = _in_shape(y_true, y_pred)
        smoothing = smoothing_share(label_smoothing)

        def loss(labels: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
            if smoothing:
                total = tf.reduce_sum(labels, axis, keepdims=True)
                classes = tf.cast(tf.shape(labels)[axis], labels.dtype)
                labels = (1 - smoothing) * labels + smoothing * total / classes
            return tf.reduce_sum(_weigh(_surprise(x, from_logits, axis), labels), axis)

        return _precision.in_float32(loss, y_true, y_pred)


def sparse_categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    *,
    from_logits: bool = False,
    axis: int = -1,
    label_smoothing: float = 0.0,
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
      label_smoothing: Share of the label, from 0 to 1, that is spread evenly over all
        classes.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape of `y_true` and the dtype of `y_pred`. float16 and
      bfloat16 are computed in float32.

    Raises:
      TypeError: If `y_true` is not integer or `y_pred` is not floating.
      ValueError: If the shapes do not belong together, or an option is out of its
        range.

    Numerics:
      logit -inf     at another class: counts 0, gradient 0; at the label: value inf
      probability 0  at the label: value inf, its slope taken as 0
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
        y_pred = _args.float_tensor(y_pred, "y_pred")
        indices = tf.convert_to_tensor(y_true)
        if not indices.dtype.is_integer:
            raise TypeError(
                "`y_true` must have an integer dtype, because it holds class indices. "
                f"Received: dtype={indices.dtype.name}, shape={indices.shape}. Convert "
                "it first, for example `tf.cast(y_true, tf.int32)`."
            )
        axis = class_axis(axis, y_pred.shape)
        indices = _in_shape(indices, y_pred, without=axis)
        smoothing = smoothing_share(label_smoothing)
        indices = tf.cast(indices, tf.int64)
        return _precision.in_float32(
            lambda x: _sparse(
                indices, _surprise(x, from_logits, axis), axis, smoothing
            ),
            y_pred,
        )


def _sparse(
    indices: tf.Tensor, surprise: tf.Tensor, axis: int, smoothing: float
) -> tf.Tensor:
    classes = tf.shape(surprise, tf.int64)[axis]
    layout = [-1 if each == axis else 1 for each in range(surprise.shape.rank)]
    hit = tf.equal(tf.reshape(tf.range(classes), layout), tf.expand_dims(indices, axis))
    # A selection, not a product with one-hot labels: 0 * inf does not arise.
    loss = tf.reduce_sum(tf.where(hit, surprise, tf.zeros_like(surprise)), axis)
    if smoothing:
        share = smoothing / tf.cast(classes, loss.dtype)
        loss = tf.math.multiply_no_nan(loss, 1 - smoothing)
        loss += share * tf.reduce_sum(surprise, axis)
    inside = (indices >= 0) & (indices < classes)
    return tf.where(inside, loss, tf.constant(float("nan"), loss.dtype))


def binary_crossentropy(
    y_true: Any,
    y_pred: Any,
    *,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    name: str = "binary_crossentropy",
) -> tf.Tensor:
    """Computes `-y_true * log(p) - (1 - y_true) * log(1 - p)` elementwise.

    `p` is `sigmoid(y_pred)` with `from_logits=True`, otherwise `y_pred` itself. Nothing
    is clipped; each of the two terms counts 0 where its factor is 0.

    Args:
      y_true: Floating `Tensor` of targets, from 0 to 1.
      y_pred: Floating `Tensor` with the shape and dtype of `y_true`.
      from_logits: Whether `y_pred` holds logits rather than probabilities.
      label_smoothing: Share of the target, from 0 to 1, that is moved to 1/2.
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
                     part of the slope taken as 0; 1 likewise
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
        y_true = _in_shape(y_true, y_pred)
        smoothing = smoothing_share(label_smoothing)

        def loss(target: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
            if smoothing:
                target = (1 - smoothing) * target + smoothing / 2
            yes = log_sigmoid(x) if from_logits else log(x)
            no = log_sigmoid(-x) if from_logits else _log_complement(x)
            return _weigh(-yes, target) + _weigh(-no, 1.0 - target)

        return _precision.in_float32(loss, y_true, y_pred)


def class_axis(axis: Any, shape: tf.TensorShape) -> int:
    """Returns the class axis as a non-negative number.

    Raises:
      TypeError: If `axis` is not an integer.
      ValueError: If it is out of range, if the rank is unknown, or if there are no
        classes along it.
    """
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise TypeError(
            "`axis` must be an integer, the axis of the classes. "
            f"Received: axis={axis!r}."
        )
    if not shape.rank:
        raise ValueError(
            "`y_pred` must have a known number of axes, at least one. Received: "
            f"y_pred.shape={shape}. Set it, for example with "
            "`tf.ensure_shape(y_pred, [None, num_classes])`."
        )
    _args.axes(axis, shape)
    positive = int(axis) % shape.rank
    if shape[positive] == 0:
        raise ValueError(
            f"`y_pred` must have at least one class along axis {axis}. Received: "
            f"shape={shape}."
        )
    return positive


def smoothing_share(value: Any) -> float:
    """Returns `label_smoothing` as a float.

    Raises:
      ValueError: If it is not a number from 0 to 1.
    """
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(
            "`label_smoothing` must be a number from 0 to 1. "
            f"Received: label_smoothing={value!r}."
        )
    return float(value)


def _in_shape(
    y_true: tf.Tensor, y_pred: tf.Tensor, without: int | None = None
) -> tf.Tensor:
    """Returns `y_true` in the shape of `y_pred`, or in that without one axis."""
    expected, sizes, what = y_pred.shape, tf.shape(y_pred), "that of `y_pred`"
    if without is not None:
        what += " without the class axis"
        expected = expected[:without].concatenate(expected[without + 1 :])
        sizes = tf.concat([sizes[:without], sizes[without + 1 :]], 0)
    if not y_true.shape.is_compatible_with(expected):
        raise ValueError(
            f"The shape of `y_true` must be {what}, which is {expected}. Received: "
            f"y_true.shape={y_true.shape}."
        )
    if y_true.shape.is_fully_defined() and expected.is_fully_defined():
        return y_true
    # What only the run will tell must end in an error, not in a broadcast.
    return tf.reshape(y_true, sizes)


def _surprise(x: tf.Tensor, from_logits: bool, axis: int) -> tf.Tensor:
    """Returns `-log(p)` for each class."""
    if from_logits:
        return -log_softmax(x, axis=axis)
    return log(tf.reduce_sum(x, axis, keepdims=True)) - log(x)


@tf.custom_gradient
def _weigh(
    surprise: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Returns `surprise * labels`, and 0 where a label is 0."""

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # The slope in a label is infinite where its class is impossible. There it is
        # taken as 0: a teacher's softmax would multiply it by a 0 of its own.
        finite = tf.where(tf.math.is_inf(surprise), tf.zeros_like(surprise), surprise)
        return chain(upstream, labels), chain(upstream, finite)

    return tf.math.multiply_no_nan(surprise, labels), vjp


@tf.custom_gradient
def _log_complement(p: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Returns `log(1 - p)`; the slope at 1, where it is infinite, is taken as 0."""
    return tf.math.log1p(-p), lambda upstream: ratio(-upstream, 1.0 - p)
