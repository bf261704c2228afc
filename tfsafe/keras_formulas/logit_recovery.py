"""Finds the logits behind probabilities, and attaches them in Keras' activations.

The activations are saved under their plain names, so that a file with one of them loads
anywhere.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat, ops
from tfsafe._limits import LIMITS

# Far above what rounding to bfloat16 does to a probability, and far below the
# difference between a softmax and a sigmoid, or a softmax along another axis.
_TOLERANCE = 0.02
# Operations that change the layout of a tensor, and how to apply them to the logits.
_LAYOUTS: dict[str, Callable[[tf.Operation, tf.Tensor], tf.Tensor]] = {
    "Reshape": lambda op, logits: tf.reshape(logits, op.inputs[1]),
    "ExpandDims": lambda op, logits: tf.expand_dims(logits, op.inputs[1]),
    "Squeeze": lambda op, logits: tf.squeeze(logits, op.get_attr("squeeze_dims")),
}


def attach_logits(probabilities: tf.Tensor, logits: Any, axis: Any) -> None:
    """Notes on a softmax along `axis` which logits it was made of.

    The operation that tfsafe's own softmax ends with does not show it.

    Args:
      probabilities: Softmax of the logits, without a mask.
      logits: Tensor of the same shape.
      axis: The axis of the softmax; several are not noted.
    """
    if isinstance(axis, int) and probabilities.shape.rank is not None:
        _compat.set_softmax(probabilities, logits, axis % probabilities.shape.rank)


def logits_behind(y_pred: Any, axis: int | None) -> tf.Tensor | None:
    """Returns the logits whose softmax or sigmoid `y_pred` is, or None.

    In a traced function, where each tensor knows the operation that made it, they are
    found behind casts, changes of layout and a mask that puts 0 in places. In eager
    mode they are what Keras' softmax and sigmoid attach to their results. tfsafe's
    softmax attaches them in both.

    Returns:
      Logits of the shape of `y_pred`, of any floating dtype.
    """
    if tf.is_symbolic_tensor(y_pred):
        return _traced(y_pred, axis)
    logits, attached_axis = _compat.softmax_of(y_pred)
    if axis is not None and attached_axis == axis:
        return logits
    logits = _compat.keras_logits(y_pred)
    if logits is None or not _agree(tf.convert_to_tensor(y_pred), logits, axis):
        return None
    return logits


def _traced(probs: tf.Tensor, axis: int | None) -> tf.Tensor | None:
    logits, attached_axis = _compat.softmax_of(probs)
    if axis is not None and attached_axis == axis:
        return logits
    op = probs.op
    if op.type == ("Sigmoid" if axis is None else "Softmax"):
        is_last = axis is None or axis == probs.shape.rank - 1
        return op.inputs[0] if is_last else None
    if op.type in {"Identity", "Cast"}:
        return _traced(op.inputs[0], axis)
    if op.type in _LAYOUTS:
        inner = _inner_axis(op.inputs[0].shape, probs.shape, axis)
        logits = None if inner == -1 else _traced(op.inputs[0], inner)
        return None if logits is None else _LAYOUTS[op.type](op, logits)
    if op.type == "Transpose":
        order = tf.get_static_value(op.inputs[1])
        if order is None:
            return None
        logits = _traced(op.inputs[0], None if axis is None else int(order[axis]))
        return None if logits is None else tf.transpose(logits, order)
    if op.type == "SelectV2" and _is_zero(op.inputs[2]):
        return _masked(op.inputs[0], op.inputs[1], axis)
    if op.type == "Mul":
        # As Keras before 3.13 masks a softmax.
        for probs, mask in (op.inputs, reversed(op.inputs)):
            if mask.op.type == "Cast" and mask.op.inputs[0].dtype == tf.bool:
                return _masked(mask.op.inputs[0], probs, axis)
    return None


def _inner_axis(
    inner: tf.TensorShape, outer: tf.TensorShape, axis: int | None
) -> int | None:
    """Returns where the class axis stood before a change of layout, -1 if unknown."""
    if axis is None:
        return None
    if inner.rank is None or axis != outer.rank - 1 or outer[-1] is None:
        return -1
    return inner.rank - 1 if inner[-1] == outer[-1] else -1


def _is_zero(x: tf.Tensor) -> bool:
    value = tf.get_static_value(x)
    return value is not None and not value.any()


def _masked(keep: tf.Tensor, probs: tf.Tensor, axis: int | None) -> tf.Tensor | None:
    logits = _traced(probs, axis)
    if logits is None:
        return None
    # The lowest finite number instead of -inf, which numeric checks would flag.
    lowest = tf.constant(-LIMITS[logits.dtype.name].max, logits.dtype)
    return tf.where(keep, logits, lowest)


def _agree(probs: tf.Tensor, logits: tf.Tensor, axis: int | None) -> bool:
    """Returns whether these are the logits of a softmax along `axis`, or of a sigmoid.

    Keras attaches them without telling the activation.
    """
    of = tf.sigmoid(logits) if axis is None else tf.nn.softmax(logits, axis)
    # NaN does not count as disagreement: the logits hold it as well.
    return not tf.reduce_any(tf.abs(of - tf.cast(probs, of.dtype)) > _TOLERANCE)


def softmax(x: Any, axis: int = -1) -> tf.Tensor:
    """Computes the softmax; a row of `-inf` has probabilities 0, not NaN."""
    if isinstance(x, keras.KerasTensor):
        return keras.activations.softmax(x, axis)
    probabilities = ops.softmax(x, axis)
    attach_logits(probabilities, x, axis)
    # As Keras' own does, for Keras' losses.
    _compat.set_keras_logits(probabilities, x)
    return probabilities


def log_softmax(x: Any, axis: int = -1) -> tf.Tensor:
    """Computes the logarithm of the softmax; `-inf` in a row of `-inf`, not NaN."""
    if isinstance(x, keras.KerasTensor):
        return keras.activations.log_softmax(x, axis)
    return ops.log_softmax(x, axis)


def log_sigmoid(x: Any) -> tf.Tensor:
    """Computes the logarithm of the sigmoid."""
    if isinstance(x, keras.KerasTensor):
        return keras.activations.log_sigmoid(x)
    return ops.log_sigmoid(x)
