"""Finds logarithms of lists of tensors, which `tf.scan` and `tf.TensorArray` use."""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import raw_kernel
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import weighted_exp
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.log_space.form import (
    Factored,
    LogForms,
    dtype_for,
    once,
)

READS = ("TensorListFromTensor", "TensorListGetItem", "TensorListStack")


def empty(x: tf.Tensor, filled: tf.Tensor) -> Factored | None:
    """Factors a list that is filled and returned as `filled`: zeros until then."""
    setter = _setter(filled)
    if x.op.type != "TensorListReserve" or setter.type != "TensorListSetItem":
        return None
    like = setter.inputs[2]
    is_known = like.shape.is_fully_defined() or like.graph is x.graph
    if not is_known or not like.dtype.is_floating:
        return None

    def build(value: Value) -> tf.Tensor:
        sizes = _sizes(like, value)
        whole = tf.concat([[value(x.op.inputs[1])], sizes], 0)
        nothing = tf.constant(-math.inf, dtype_for(value, like.dtype))
        return tf.raw_ops.TensorListFromTensor(
            tensor=tf.fill(whole, nothing), element_shape=sizes
        )

    return Factored("", once(build))


def ones(logs: tf.Tensor, filled: tf.Tensor, value: Value) -> tf.Tensor:
    """Returns the weights of a list of logarithms alone, `filled` in what is read."""
    dtype = dtype_for(value, _setter(filled).get_attr("element_dtype"))
    sizes = tf.raw_ops.TensorListElementShape(input_handle=logs, shape_type=tf.int32)
    whole = tf.concat([[tf.raw_ops.TensorListLength(input_handle=logs)], sizes], 0)
    return tf.raw_ops.TensorListFromTensor(
        tensor=tf.ones(whole, dtype), element_shape=sizes
    )


def numbers(state: Sequence[tf.Tensor], filled: tf.Tensor) -> tf.Tensor:
    """Returns the list of numbers of a list of logarithms, and perhaps of weights."""
    log, *weight = (_stacked(each, filled) for each in state)
    made = weighted_exp(weight[0], log) if weight else ops.exp(log)
    return _listed(made, state[0], filled)


def narrowed(items: tf.Tensor, filled: tf.Tensor) -> tf.Tensor:
    """Returns a list in float32 in the half precision of the list that is read."""
    return _listed(_stacked(items, filled), items, filled)


def _stacked(items: tf.Tensor, filled: tf.Tensor) -> tf.Tensor:
    dtype = _setter(filled).get_attr("element_dtype")
    return tf.raw_ops.TensorListStack(
        input_handle=items,
        element_shape=_element_shape(items),
        element_dtype=tf.float32 if dtype in precision.HALF else dtype,
    )


def _listed(made: tf.Tensor, like: tf.Tensor, filled: tf.Tensor) -> tf.Tensor:
    made = tf.cast(made, _setter(filled).get_attr("element_dtype"))
    return tf.raw_ops.TensorListFromTensor(
        tensor=made, element_shape=_element_shape(like)
    )


def _element_shape(items: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.TensorListElementShape(input_handle=items, shape_type=tf.int32)


def _setter(filled: tf.Tensor) -> tf.Operation:
    setter = filled.op
    while setter.type == "Identity":
        setter = setter.inputs[0].op
    return setter


def _sizes(like: tf.Tensor, value: Value) -> tf.Tensor:
    if like.shape.is_fully_defined():
        return tf.constant(like.shape.as_list(), tf.int32)
    return tf.shape(value(like))


def item(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a list made of a tensor, an item of a list, or the tensor of a list."""
    a = logs.of(op.inputs[0])
    if a is None or a.is_partial or a.log is None:
        return None

    def moved(value: Value, x: tf.Tensor) -> tf.Tensor:
        rest = [value(each) for each in op.inputs[1:]]
        if op.type == "TensorListFromTensor":
            return raw_kernel(op)([x, *rest])[0]
        dtype = dtype_for(value, op.get_attr("element_dtype"))
        if op.type == "TensorListStack":
            count = op.get_attr("num_elements")
            return tf.raw_ops.TensorListStack(
                input_handle=x,
                element_shape=rest[0],
                element_dtype=dtype,
                num_elements=count,
            )
        return tf.raw_ops.TensorListGetItem(
            input_handle=x, index=rest[0], element_shape=rest[1], element_dtype=dtype
        )

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
    a = logs.of(op.inputs[0]) or empty(op.inputs[0], op.outputs[0])
    b = logs.parts(op.inputs[2])
    if a is None or b.is_partial or a.log is None:
        return None
    like = op.inputs[2]

    def put(value: Value, old: tf.Tensor, x: Any) -> tf.Tensor:
        x = tf.convert_to_tensor(x, dtype_for(value, like.dtype))
        whole = tf.broadcast_to(x, _sizes(like, value))
        return raw_kernel(op)([old, value(op.inputs[1]), whole])[0]

    if a.is_pure and b.is_pure:
        return a._replace(
            name="log-of-product",
            log=once(lambda value: put(value, a.exponent(value), b.exponent(value))),
        )

    def weights(value: Value) -> tf.Tensor:
        old = (
            a.weight(value)
            if a.weight
            else ones(a.exponent(value), op.outputs[0], value)
        )
        return put(value, old, 1.0 if b.weight is None else b.weight(value))

    return a._replace(
        log=once(lambda value: put(value, a.exponent(value), b.exponent(value))),
        weight=once(weights),
        name="log-of-product",
        is_nonnegative=a.is_nonnegative and b.is_nonnegative,
    )
