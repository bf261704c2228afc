"""Cross entropy of rows of logits: the loss and, from the same pass, its slope.

With m the largest logit of a row, S the sum of `exp(z - m)`, y its labels and s their
sum, the loss is `s * log(S) - sum(y * (z - m))` and its slope is `s * softmax(z) - y`.

TensorFlow's fused kernel for indices is right except for rows of nothing but -inf. The
one for rows of labels takes s = 1, and multiplies a logit of -inf by a label of 0. The
operations that replace it are ordered so that each can overwrite its argument: as in
the kernel, no more than one tensor of the size of the logits is held.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from tfsafe._gradients import custom_gradient, known
from tfsafe.ops.kernels.probability.exponential_sums import log_softmax
from tfsafe.ops.kernels.probability.probabilities import softmax
from tfsafe.ops.kernels.zeros import times_upstream, times_where_nonzero, zero_where_inf

_Gradients = tuple[tf.Tensor, tf.Tensor]


class _Rows(NamedTuple):
    """Losses, their slopes in the logits, and what a row of logits is shifted by."""

    loss: tf.Tensor
    slope: tf.Tensor
    shift: tf.Tensor
    is_empty: tf.Tensor


@custom_gradient
def dense(
    labels: tf.Tensor, z: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Gradients]]:
    """Returns the loss of each row, for labels and logits of the shape [rows, n]."""
    rows = _dense(tf.stop_gradient(labels), tf.stop_gradient(z))

    def vjp(upstream: tf.Tensor) -> _Gradients:
        column = upstream[:, tf.newaxis]
        in_labels = known(rows.shift - z, lambda z: -log_softmax(z, [-1]), z)
        in_labels = zero_where_inf(in_labels)
        slope = known(rows.slope, _dense_slope, labels, z)
        possible = tf.where(rows.is_empty, tf.zeros_like(column), column)
        return times_upstream(column, in_labels), times_upstream(possible, slope)

    return rows.loss, vjp


def sparse(indices: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    """Returns the loss of each row of logits; the indices are classes."""

    @custom_gradient
    def function(z: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        loss, slope = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(
            features=tf.stop_gradient(z), labels=indices
        )
        # The kernel makes a row of nothing but -inf NaN.
        largest = tf.reduce_max(z, -1)
        is_empty = tf.equal(largest, float("-inf"))

        def again(z: tf.Tensor) -> tf.Tensor:
            return _dense_slope(tf.one_hot(indices, tf.shape(z)[-1], dtype=z.dtype), z)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            possible = tf.where(is_empty, tf.zeros_like(upstream), upstream)
            return times_upstream(possible[:, tf.newaxis], known(slope, again, z))

        return tf.where(is_empty, -largest, loss), vjp

    return function(z)


def known_classes(indices: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns which indices are a class, and 0 in the place of the others."""
    is_class = (indices >= 0) & (indices < tf.shape(x, indices.dtype)[-1])
    return is_class, tf.where(is_class, indices, tf.zeros_like(indices))


def nan_unless(condition: tf.Tensor, loss: tf.Tensor) -> tf.Tensor:
    """Returns NaN, with gradient 0, where a row has no loss."""
    return tf.where(condition, loss, tf.constant(float("nan"), loss.dtype))


def places(indices: tf.Tensor) -> tf.Tensor:
    """Returns row and column of each row's own class."""
    return tf.stack([tf.range(tf.size(indices, indices.dtype)), indices], -1)


def _dense_slope(labels: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    total = tf.reduce_sum(labels, -1, keepdims=True)
    return times_where_nonzero(total, softmax(z, [-1])) - labels


def _dense(labels: tf.Tensor, z: tf.Tensor) -> _Rows:
    total = tf.reduce_sum(labels, -1, keepdims=True)
    largest = tf.reduce_max(z, -1, keepdims=True)
    # A row of nothing but -inf is shifted by 0, and the sum of its exponentials is 1.
    is_empty = tf.equal(largest, float("-inf"))
    largest = tf.where(is_empty, tf.zeros_like(largest), largest)
    weighted = tf.math.multiply_no_nan(z - largest, labels)
    weighted = tf.reduce_sum(weighted, -1, keepdims=True)
    # One after the other, so that two differences are not held at once.
    with tf.control_dependencies([weighted]):
        exponentials = tf.exp(z - largest)
    partition = tf.reduce_sum(exponentials, -1, keepdims=True)
    partition = tf.where(is_empty, tf.ones_like(partition), partition)
    logarithm = tf.math.log(partition)
    loss = tf.math.multiply_no_nan(logarithm, total) - weighted
    # A sum of labels of 0 drops the softmax, were it NaN.
    factor = tf.math.multiply_no_nan(1 / partition, total)
    slope = tf.math.multiply_no_nan(exponentials, factor) - labels
    return _Rows(loss[:, 0], slope, largest + logarithm, is_empty)
