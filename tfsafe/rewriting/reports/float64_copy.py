"""Emits a traced function in float64, as the reference for two forms of it."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import Emission, is_call
from tfsafe.rewriting.engine.rule import Value

_NARROW = (tf.float16, tf.bfloat16, tf.float32)
_WIDE = tf.float64
_ENUMS = frozenset(dtype.as_datatype_enum for dtype in _NARROW)
_HELD = (tf.resource, tf.variant)
# Their numbers are the same in each dtype only if drawn or read in one dtype.
_NOT_WIDENED = ("Bitcast", "Const", "Random", "Stateful", "Multinomial")


def widened(
    graph: tf.Graph, inputs: Sequence[Any], variables: Sequence[tf.Variable] = ()
) -> list[tf.Tensor]:
    """Emits a graph with its arithmetic in float64.

    Constants, random numbers and variables keep the values that they have in the dtype
    of the graph. What has no kernel in float64 is computed in its own dtype.

    Args:
      graph: Graph of a traced function.
      inputs: One tensor for each of `graph.inputs`.
      variables: Those of the function, to take gradients by.

    Returns:
      One tensor for each of `graph.outputs`, the floating ones in float64.
    """
    return Emission(plan=_plan).emit(graph, [_wide(x) for x in inputs], variables)


def _plan(graph: tf.Graph) -> dict[str, Callable[[Value], Sequence[tf.Tensor]]]:
    return {
        op.name: _Copy(op)
        for op in graph.get_operations()
        if not is_call(op)
        and any(_is_narrow(each) for each in [*op.inputs, *op.outputs])
    }


def _is_narrow(tensor: Any) -> bool:
    return tensor.dtype in _NARROW


def _wide(tensor: Any) -> Any:
    return tf.cast(tensor, _WIDE) if _is_narrow(tensor) else tensor


class _Copy:
    """Makes the outputs of one operation in float64."""

    def __init__(self, op: tf.Operation):
        self._op = op
        self._attributes = {
            name: value
            for name, value in op.node_def.attr.items()
            if not name.startswith("_")
        }

    def __call__(self, value: Value) -> Sequence[tf.Tensor]:
        op = self._op
        inputs = [value(each) for each in op.inputs]
        dtypes = [each.dtype for each in op.outputs]
        if self._can_widen():
            attributes = {name: _doubled(a) for name, a in self._attributes.items()}
            wide = [_WIDE if each in _NARROW else each for each in dtypes]
            return self._made(inputs, wide, attributes)
        narrow = [
            tf.cast(each, original.dtype) if _is_narrow(original) else each
            for each, original in zip(inputs, op.inputs, strict=True)
        ]
        return [_wide(each) for each in self._made(narrow, dtypes, self._attributes)]

    def _made(
        self, inputs: Sequence[Any], dtypes: Sequence[tf.DType], attributes: Any
    ) -> Sequence[tf.Tensor]:
        op = self._op
        with tf.device(op.device):
            copy = _compat.create_op(
                op.type, list(inputs), list(dtypes), attrs=attributes, op_def=op.op_def
            )
        return copy.outputs

    def _can_widen(self) -> bool:
        op = self._op
        if any(mark in op.type for mark in _NOT_WIDENED):
            return False
        if any(each.dtype in _HELD for each in [*op.inputs, *op.outputs]):
            return False
        definition = op.op_def
        arguments = [*definition.input_arg, *definition.output_arg]
        if any(each.type in _ENUMS for each in arguments):
            return False
        double = _WIDE.as_datatype_enum
        return all(
            not each.allowed_values.list.type or double in each.allowed_values.list.type
            for each in definition.attr
            if each.name in self._attributes
            and self._attributes[each.name].type in _ENUMS
        )


def _doubled(attribute: Any) -> Any:
    """Returns an attribute with float64 in the place of narrower dtypes."""
    copy = type(attribute)()
    copy.CopyFrom(attribute)
    if copy.type in _ENUMS:
        copy.type = _WIDE.as_datatype_enum
    for index, each in enumerate(copy.list.type if copy.HasField("list") else ()):
        if each in _ENUMS:
            copy.list.type[index] = _WIDE.as_datatype_enum
    return copy
