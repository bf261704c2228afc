"""Finds logarithms of lists of tensors, which `tf.scan` and `tf.TensorArray` use."""

import math
from typing import Any

import tensorflow as tf

from tfsafe.graph import raw_kernel
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.log_space.form import Factored, LogForms, once

READS = ("TensorListFromTensor", "TensorListGetItem", "TensorListStack")


def empty(x: tf.Tensor, filled: tf.Tensor) -> Factored | None:
    """Factors a list that a loop fills and returns as `filled`: zeros until then."""
    setter = filled.op
    while setter.type == "Identity":
        setter = setter.inputs[0].op
    if x.op.type != "TensorListReserve" or setter.type != "TensorListSetItem":
        return None
    shape, dtype = setter.inputs[2].shape, setter.inputs[2].dtype
    if not shape.is_fully_defined() or dtype not in {tf.float32, tf.float64}:
        return None

    def build(value: Value) -> tf.Tensor:
        sizes = tf.constant(shape.as_list(), tf.int32)
        whole = tf.concat([[value(x.op.inputs[1])], sizes], 0)
        nothing = tf.constant(-math.inf, dtype)
        return tf.raw_ops.TensorListFromTensor(
            tensor=tf.fill(whole, nothing), element_shape=sizes
        )

    return Factored("", once(build))


def item(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a list made of a tensor, an item of a list, or the tensor of a list."""
    a = logs.of(op.inputs[0])
    if a is None or a.is_partial or a.log is None:
        return None

    def moved(value: Value, x: tf.Tensor) -> tf.Tensor:
        rest = [value(each) for each in op.inputs[1:]]
        return raw_kernel(op)([x, *rest])[0]

    is_tensor = op.type == "TensorListFromTensor" and a.weight is not None
    exponent = (lambda v: a.pair(v)[1]) if is_tensor else a.exponent
    weight = (lambda v: a.pair(v)[0]) if is_tensor else a.weight
    return a._replace(
        log=once(lambda value: moved(value, exponent(value))),
        weight=None if weight is None else once(lambda v: moved(v, weight(v))),
        offset=0.0,
        is_masked=False,
    )


def set_item(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a list with another item."""
    a, b = logs.of(op.inputs[0]), logs.parts(op.inputs[2])
    if a is None or b.is_partial or a.log is None:
        return None
    like = op.inputs[2]

    def put(value: Value, old: tf.Tensor, x: Any) -> tf.Tensor:
        whole = tf.broadcast_to(tf.convert_to_tensor(x, like.dtype), like.shape)
        return raw_kernel(op)([old, value(op.inputs[1]), whole])[0]

    if a.is_pure and b.is_pure:
        return a._replace(
            name="log-of-product",
            log=once(lambda value: put(value, a.exponent(value), b.exponent(value))),
        )

    def weights(value: Value) -> tf.Tensor:
        # A list of logarithms alone is analysed again, with weights.
        old = a.exponent(value) if a.weight is None else a.weight(value)
        return put(value, old, 1.0 if b.weight is None else b.weight(value))

    return a._replace(
        log=once(lambda value: put(value, a.exponent(value), b.exponent(value))),
        weight=once(weights),
        name="log-of-product",
        is_nonnegative=a.is_nonnegative and b.is_nonnegative,
    )
