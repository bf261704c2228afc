"""Computes the CTC loss, also of alignments that are impossible."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe._gradients import custom_gradient, custom_gradient_in, nan_where
from tfsafe.keras_formulas import arguments
from tfsafe.keras_formulas.arguments import saved
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.exponential import exp
from tfsafe.ops.kernels.probability.probabilities import softmax
from tfsafe.ops.kernels.zeros import times_where_nonzero
from tfsafe.ops.nn.softmax import log_softmax

_BLANK = 0
_Gradient = Callable[[tf.Tensor], tf.Tensor]


@saved
def ctc(y_true: Any, y_pred: Any, *, zero_infinity: bool = True) -> tf.Tensor:
    """Computes the CTC loss of each sample of a batch, from logits.

    As `keras.losses.ctc`, in which a forbidden alignment costs 707 and not infinity:
    labels that do not fit into the frames, as a repeated one needs a blank between,
    cost some multiple of that and pull the model, and so does every alignment that is
    unlikelier than exp(-707).

    Args:
      y_true: Labels of shape `[batch, labels]`, of any numeric dtype. 0 is the blank,
        and pads labels at their end.
      y_pred: Logits of shape `[batch, frames, classes]`, at least one frame.
      zero_infinity: Whether a sample whose labels cannot be aligned counts 0. Its loss
        is inf otherwise.

    Returns:
      `Tensor` of shape `[batch]` of the dtype of `y_pred`, float32 for integers.

    Raises:
      TypeError: If `y_pred` is not dense.
      ValueError: If `y_true` does not have two axes, or `y_pred` three.

    Numerics:
      labels do not fit   value 0, or inf with `zero_infinity=False`; gradient 0 (a
                          choice: the slope is undefined)
      logit -inf          a class that cannot occur
      no label            the loss of a row of blanks
      label >= classes,
      NaN in the sample   value NaN
      A zero incoming gradient gives zero gradients, whatever the sample holds.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> print(losses.ctc([[1, 1], [1, 0]], tf.zeros([2, 2, 3])).numpy())
      [0.        1.0986123]

    References:
      Graves, Fernandez, Gomez, Schmidhuber, "Connectionist Temporal Classification:
      Labelling Unsegmented Sequence Data with Recurrent Neural Networks", 2006.
    """
    with tf.name_scope("ctc"):
        labels = tf.convert_to_tensor(y_true)
        logits = arguments.predictions(y_pred)
        _check_rank(labels, "y_true", "[batch, labels]", 2)
        _check_rank(logits, "y_pred", "[batch, frames, classes]", 3)
        loss = precision.in_float32(lambda x: _ctc(labels, x), logits)
        if not zero_infinity:
            return loss
        return tf.where(tf.math.is_inf(loss), tf.zeros_like(loss), loss)


def _check_rank(x: tf.Tensor, name: str, layout: str, rank: int) -> None:
    if x.shape.rank != rank:
        raise ValueError(
            f"`{name}` must have the shape {layout}. Received: "
            f"{name}.shape={x.shape}. Add or remove an axis."
        )


def _ctc(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    classes = tf.cast(tf.shape(logits)[-1], labels.dtype)
    known = (labels >= 0) & (labels < classes)
    labels = tf.cast(tf.where(known, labels, tf.zeros_like(labels)), tf.int32)
    states = _with_blanks(labels)
    frames = tf.gather(log_softmax(logits), states, axis=2, batch_dims=1)
    # From a label to the next one, unless a blank has to keep them apart.
    changes = tf.not_equal(states[:, 2:], states[:, :-2])
    changes = tf.pad(changes, [[0, 0], [2, 0]])
    may_skip = changes & tf.not_equal(states, _BLANK)
    last = 2 * tf.math.count_nonzero(labels, -1, keepdims=True, dtype=tf.int32)
    index = tf.range(tf.shape(states)[1])
    is_end = tf.equal(index, last) | tf.equal(index, last - 1)
    value = _log_likelihood(tf.transpose(frames, [1, 0, 2]), may_skip, is_end)
    return nan_where(tf.reduce_any(~known, -1), logits.dtype) - value


def _with_blanks(labels: tf.Tensor) -> tf.Tensor:
    """Returns blank, label, blank, ..., label, blank for each row."""
    pairs = tf.stack([tf.fill(tf.shape(labels), _BLANK), labels], -1)
    flat = tf.reshape(pairs, [tf.shape(labels)[0], 2 * tf.shape(labels)[1]])
    return tf.pad(flat, [[0, 0], [0, 1]], constant_values=_BLANK)


@custom_gradient_in(1)
def _log_likelihood(
    frames: tf.Tensor, may_skip: tf.Tensor, is_end: tf.Tensor
) -> tuple[tf.Tensor, _Gradient]:
    """Returns the log-probability of all alignments of each sample.

    Args:
      frames: Log-probabilities of the states, of shape `[frames, batch, states]`.
      may_skip: Whether a state can be reached from the one before the last.
      is_end: Whether an alignment may end in a state.
    """

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        posterior = _posterior(frames, may_skip, is_end)
        return times_where_nonzero(upstream[:, tf.newaxis], posterior)

    return _total(_paths(frames, may_skip, _is_start(frames)), is_end), vjp


def _posterior(frames: tf.Tensor, may_skip: tf.Tensor, is_end: tf.Tensor) -> tf.Tensor:
    """Returns the probability of being in each state at each frame."""
    before = _paths(frames, may_skip, _is_start(frames))
    total = _total(before, is_end)[:, tf.newaxis]
    # The same walk, from the ends to the start.
    after = _paths(
        tf.reverse(frames, [0, 2]),
        # No state comes two before the first two: whether it may skip is not read.
        tf.roll(tf.reverse(may_skip, [1]), 2, 1),
        tf.reverse(is_end, [1]),
    )
    log_probability = before + tf.reverse(after, [0, 2]) - frames - total
    impossible = tf.math.is_inf(frames) | tf.math.is_inf(total)
    log_probability = tf.where(impossible, _minus_inf(frames), log_probability)
    return exp(log_probability)


def _paths(frames: tf.Tensor, may_skip: tf.Tensor, is_start: tf.Tensor) -> tf.Tensor:
    """Returns the log-probability of all walks to each state at each frame."""
    count = tf.shape(frames)[0]
    shape = frames.shape[1:]
    queue = tf.TensorArray(frames.dtype, count, element_shape=shape).unstack(frames)
    state = tf.where(is_start, frames[0], _minus_inf(frames))
    walks = tf.TensorArray(frames.dtype, count, element_shape=shape).write(0, state)

    def step(time: tf.Tensor, state: tf.Tensor, walks: Any) -> list[Any]:
        skipping = tf.where(may_skip, _shifted(state, 2), _minus_inf(state))
        terms = tf.stack([state, _shifted(state, 1), skipping])
        state = tf.ensure_shape(_log_add(terms) + queue.read(time), shape)
        return [time + 1, state, walks.write(time, state)]

    return tf.while_loop(
        lambda time, *_: time < count,
        step,
        [1, state, walks],
        maximum_iterations=count - 1,
    )[2].stack()


def _total(walks: tf.Tensor, is_end: tf.Tensor) -> tf.Tensor:
    ends = tf.where(is_end, walks[-1], _minus_inf(walks))
    return _log_add(tf.transpose(ends))


def _is_start(frames: tf.Tensor) -> tf.Tensor:
    return tf.range(tf.shape(frames)[2]) < 2


def _shifted(x: tf.Tensor, by: int) -> tf.Tensor:
    """Shifts log-probabilities towards the end of the last axis of a matrix."""
    size = tf.shape(x)[1]
    return tf.pad(x, [[0, 0], [by, 0]], constant_values=float("-inf"))[:, :size]


@custom_gradient
def _log_add(
    terms: tf.Tensor,
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """Computes `log(sum(exp(terms)))` along the first axis."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return times_where_nonzero(upstream, softmax(terms, [0]))

    largest = tf.reduce_max(terms, 0)
    largest = tf.where(tf.math.is_inf(largest), tf.zeros_like(largest), largest)
    return tf.math.log(tf.reduce_sum(tf.exp(terms - largest), 0)) + largest, vjp


def _minus_inf(x: tf.Tensor) -> tf.Tensor:
    return tf.constant(float("-inf"), x.dtype)
