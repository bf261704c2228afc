"""Answers questions about the tensors of a traced graph."""

import functools
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import ADDITIONS, READERS, OpFact, is_custom, op_types, raw_kernel
from tfsafe.rewriting.facts.bounds import bounds_of
from tfsafe.rewriting.facts.interface import Bounds
from tfsafe.rewriting.facts.layouts import layout, reshapes, unchanged

_COPIES = op_types(OpFact.COPIES)
_FOLDED = op_types(OpFact.FOLDS)
_STATIC = frozenset({"Const", "Rank", "Shape", "Size"})
# Others are not the same in every call.
_CONSTANTS = _STATIC | _COPIES | _FOLDED | {"StopGradient"}
_MOVED = op_types(OpFact.MOVES)
_COMMUTATIVE = op_types(OpFact.COMMUTES)
# With `AddN`, which may also add two.
_PAIRS = _COMMUTATIVE | ADDITIONS
# Their results are 0 or 1 if their inputs are.
_KEEP_MASKS = frozenset({"Maximum", "Minimum", "Mul"})
# Larger constants are data, which no rule looks at.
_MOST_ELEMENTS = 4096
# Chains of operations beyond it are not followed: Python's stack is finite.
_DEPTH = 48
# The second marks a gradient; it is not computed in the graph that is emitted.
_INPUTS = frozenset({"Placeholder", "PlaceholderWithDefault", "ReadVariableOp"})

# Float64 has the digits and the range that they lack.
NARROW = frozenset({tf.float16, tf.bfloat16, tf.float32})
_FLOATS = NARROW | {tf.float64}


def is_float(tensor: tf.Tensor) -> bool:
    """Returns whether the dtype is one that the functions of `tfsafe.ops` take."""
    return tensor.dtype in _FLOATS


def both_ways(
    op: tf.Operation, *op_types: str
) -> Iterable[tuple[tf.Tensor, tf.Tensor]]:
    """Yields the two inputs of `op`, in either order.

    Args:
      op: An operation; one of another type or with another number of inputs yields
        nothing.
      *op_types: Its type; any operation whose inputs may change places where empty.
    """
    if op.type in (op_types or _PAIRS) and len(op.inputs) == 2:
        a, b = op.inputs
        yield a, b
        yield b, a


class Reader:
    """Answers questions about the tensors of one graph; what is unknown is False.

    Args:
      graph: Graph of a traced function or of the body of a loop or branch. Its inputs
        can be anything.
      operations: Those of its operations that count; None for all.
      rules: The names of the rules to apply, also within the formulas of others; None
        for all.
      kept: The names of tensors that a gradient is taken by, with which a formula that
        is computed in another dtype begins.
      read: The names of the tensors that are read; None if that is unknown.

    Attributes:
      graph: The graph.
      rules: As given.
      kept: As given.
      operations: Those of its operations that count, in order.
      memory: What rules remember about it, by the type of what they remember.
    """

    def __init__(
        self,
        graph: tf.Graph,
        operations: Sequence[tf.Operation] | None = None,
        rules: Collection[str] | None = None,
        kept: Collection[str] = (),
        read: Collection[str] | None = None,
    ):
        self.graph = graph
        self.rules = rules
        self.kept = kept
        self._read = read
        self.operations = graph.get_operations() if operations is None else operations
        self.memory: dict[type, Any] = {}
        self._constants: dict[str, np.ndarray | None] = {}
        self._scalars: dict[str, float | None] = {}
        # A tensor, what it is a copy of, and the operation that computes that.
        self._sources: dict[int, tuple[tf.Tensor, tf.Tensor, tf.Operation]] = {}
        # Other spellings, by the names of the tensors, and back.
        self._usual: dict[str, tf.Tensor] = {}
        self._written_as: dict[str, tf.Tensor] = {}
        self._numbers: dict[str, int] = {}
        self._known: dict[tuple[object, ...], int] = {}
        self._bounds: dict[str, Bounds] = {}
        self._masks: dict[str, bool] = {}
        self._written: set[str] | None = None
        self._depth = 0

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The names of the operations."""
        return frozenset(op.name for op in self.operations)

    def is_read(self, tensor: tf.Tensor) -> bool:
        """Returns whether anything may read a tensor."""
        return self._read is None or self.written(tensor).name in self._read

    @functools.cached_property
    def _known_operations(self) -> set[str]:
        """The names of the operations, and of those of other spellings."""
        return set(self.names)

    def respell(self, tensor: tf.Tensor, usual: tf.Tensor) -> None:
        """Has another tensor of the graph, of equal values, seen in place of one.

        Args:
          tensor: Is seen no more.
          usual: A new one, or one that `tensor` is made of.
        """
        self._sources.pop(id(tensor), None)
        self._usual[tensor.name] = usual
        if usual.op.name not in self._known_operations:
            self._written_as[usual.name] = tensor
        stack = [usual]
        while stack:
            op = stack.pop().op
            if op.name not in self._known_operations:
                self._known_operations.add(op.name)
                stack.extend(op.inputs)

    def usual(self, op: tf.Operation) -> tf.Operation:
        """Returns the operation that is seen in place of one."""
        # A rule makes all outputs.
        other = self._usual.get(op.outputs[0].name) if len(op.outputs) == 1 else None
        return op if other is None or len(other.op.outputs) > 1 else other.op

    def written(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the tensor that the program makes, where another is seen for it."""
        return self._written_as.get(tensor.name, tensor)

    def source(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns what `tensor` is a copy of; not through `tf.stop_gradient`.

        Nor through a copy that is kept.
        """
        return self._found(tensor)[1]

    def _found(self, tensor: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Operation]:
        # By `id`, which takes less time than the name; a kept tensor keeps its own.
        known = self._sources.get(id(tensor))
        if known is None:
            source = self._source(tensor)
            known = self._sources[id(tensor)] = tensor, source, source.op
        return known

    def _source(self, tensor: tf.Tensor) -> tf.Tensor:
        while tensor.name not in self.kept:
            op = tensor.op
            if op.type in _COPIES or (op.type == "IdentityN" and not is_custom(op)):
                tensor = op.inputs[tensor.value_index]
                continue
            same = unchanged(self, tensor)
            if same is None:
                same = self._usual.get(tensor.name)
            if same is None:
                break
            tensor = same
        return tensor

    def op(self, tensor: tf.Tensor) -> tf.Operation:
        """Returns the operation that computes `tensor`, behind its copies."""
        return self._found(tensor)[2]

    def value_source(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns what `tensor` has the values of, through `tf.stop_gradient` too."""
        while True:
            tensor = self.source(tensor)
            if tensor.op.type != "StopGradient":
                return tensor
            tensor = tensor.op.inputs[0]

    def constant(self, tensor: tf.Tensor) -> np.ndarray | None:
        """Returns the value of a small tensor that is the same in every call."""
        if tensor.name not in self._constants:
            if self._depth > _DEPTH:
                return None
            self._depth += 1
            self._constants[tensor.name] = self._fold(tensor)
            self._depth -= 1
        return self._constants[tensor.name]

    def _fold(self, tensor: tf.Tensor) -> np.ndarray | None:
        op = tensor.op
        if op.type not in _CONSTANTS:
            return None
        size = tensor.shape.num_elements()
        if size is None or size > _MOST_ELEMENTS:
            return None
        if op.type in _STATIC:
            return _static(tensor)
        if op.type not in _FOLDED:
            return self.constant(op.inputs[0])
        inputs = [self.constant(each) for each in op.inputs]
        known = [each for each in inputs if each is not None]
        return _computed(op, known) if len(known) == len(inputs) else None

    def scalar(self, tensor: tf.Tensor) -> float | None:
        """Returns the number that all elements of a constant are."""
        value = self.constant(tensor)
        if value is None:
            return None
        if tensor.name not in self._scalars:
            self._scalars[tensor.name] = _scalar(value)
        return self._scalars[tensor.name]

    def is_number(self, tensor: tf.Tensor, number: float) -> bool:
        """Returns whether all of `tensor` is `number`, rounded to its dtype."""
        value = self.scalar(tensor)
        return value is not None and value == float(
            tf.as_dtype(tensor.dtype).as_numpy_dtype(number)
        )

    def same(self, a: tf.Tensor, b: tf.Tensor) -> bool:
        """Returns whether two tensors are computed alike, from the same inputs."""
        return a.dtype == b.dtype and self.number(a) == self.number(b)

    def number(self, tensor: tf.Tensor) -> int:
        """Numbers the tensors, those that are computed alike by the same number."""
        source = self.source(tensor)
        stack = [] if source.name in self._numbers else [source]
        while stack:
            top = stack[-1]
            inputs = [self.source(each) for each in top.op.inputs]
            missing = [each for each in inputs if each.name not in self._numbers]
            if missing and self._is_pure(top) and top.name not in self._numbers:
                stack.extend(missing)
                continue
            stack.pop()
            if top.name not in self._numbers:
                known = [self._numbers.get(each.name, -1) for each in inputs]
                key = self._key(top, known)
                self._numbers[top.name] = self._known.setdefault(key, len(self._known))
        return self._numbers[source.name]

    def _key(self, tensor: tf.Tensor, inputs: Sequence[int]) -> tuple[object, ...]:
        op = tensor.op
        if not self._is_pure(tensor):
            return (tensor.name,)
        shape = layout(self, op)
        if shape is not None:
            return shape, self._numbers[self._reshaped(tensor).name]
        numbers = sorted(inputs) if op.type in _COMMUTATIVE else inputs
        return (op.type, tensor.value_index, attributes(op), *numbers)

    def _reshaped(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the tensor that a tensor has the elements of, before all reshapes."""
        while reshapes(self, tensor.op) and self._is_pure(tensor):
            tensor = self.source(tensor.op.inputs[0])
        return tensor

    def _is_pure(self, tensor: tf.Tensor) -> bool:
        op = tensor.op
        if tensor.name in self.kept:
            return False
        if op.type in _INPUTS:
            return op.type == "ReadVariableOp" and not self.is_written(op.inputs[0])
        return (
            bool(op.inputs or op.type == "Const") and not _compat.op_def(op).is_stateful
        )

    def is_written(self, handle: tf.Tensor) -> bool:
        """Returns whether an operation of the graph may change a variable."""
        if self._written is None:
            self._written = {
                each.name
                for op in self.operations
                if op.type not in READERS
                for each in op.inputs
                if each.dtype == tf.resource
            }
        return handle.name in self._written

    def bounds(self, tensor: tf.Tensor) -> Bounds:
        """Returns numbers that no element of `tensor` lies beyond, unless it is NaN."""
        tensor = self.value_source(tensor)
        if tensor.name not in self._bounds:
            if self._depth > _DEPTH:
                return Bounds(-math.inf, math.inf)
            self._depth += 1
            self._bounds[tensor.name] = bounds_of(tensor, self)
            self._depth -= 1
        return self._bounds[tensor.name]

    def is_nonnegative(self, tensor: tf.Tensor) -> bool:
        """Returns whether no element can be negative."""
        return self.bounds(tensor).low >= 0

    def is_probability(self, tensor: tf.Tensor) -> bool:
        """Returns whether no element can be below 0 or above 1."""
        bounds = self.bounds(tensor)
        return bounds.low >= 0 and bounds.high <= 1

    def is_mask(self, tensor: tf.Tensor) -> bool:
        """Returns whether every element is 0 or 1."""
        tensor = self.value_source(tensor)
        if tensor.name not in self._masks:
            self._masks[tensor.name] = self._is_mask(tensor)
        return self._masks[tensor.name]

    def _is_mask(self, tensor: tf.Tensor) -> bool:
        op = tensor.op
        if op.type == "Cast":
            return op.inputs[0].dtype == tf.bool or self.is_mask(op.inputs[0])
        if op.type == "OneHot":
            return self.is_number(op.inputs[2], 1) and self.is_number(op.inputs[3], 0)
        if op.type in _MOVED:
            return self.is_mask(op.inputs[0])
        if op.type in _KEEP_MASKS:
            return all(self.is_mask(each) for each in op.inputs)
        if op.type in {"MatrixBandPart", "MatrixDiag", "MatrixDiagV3", "Pad"}:
            # What they put around it is 0, or what `padding_value` is.
            rest = op.inputs[4:] if op.type == "MatrixDiagV3" else ()
            return all(self.is_mask(each) for each in (op.inputs[0], *rest))
        if op.type == "Sub" and self.is_number(op.inputs[0], 1):
            return self.is_mask(op.inputs[1])
        value = self.constant(tensor)
        return value is not None and bool(np.isin(value, (0, 1)).all())

    def is_scaled_mask(self, tensor: tf.Tensor) -> bool:
        """Returns whether a tensor is a mask, or one times a finite number."""
        op = self.value_source(tensor).op
        if self.is_mask(tensor) or op.type != "Mul":
            return self.is_mask(tensor)
        a, b = op.inputs
        numbers = (self.scalar(a), self.scalar(b))
        return any(
            number is not None and math.isfinite(number) and self.is_mask(mask)
            for number, mask in zip(numbers, (b, a), strict=True)
        )

    def axes(self, tensor: tf.Tensor, rank: int | None) -> tuple[int, ...] | None:
        """Returns the constant axes of a reduction, in order, or None if unknown.

        They are counted from the front where the rank is known; else all of them must
        be counted from the end.
        """
        value = self.constant(tensor)
        if value is None:
            return None
        axes = [int(axis) for axis in value.flat]
        if rank is not None:
            axes = [axis % rank for axis in axes]
        elif any(axis >= 0 for axis in axes):
            return None
        return tuple(sorted(axes))


def _scalar(value: np.ndarray) -> float | None:
    if value.size == 0 or value.dtype.kind in "OSUbcMm":
        return None
    first = float(value.flat[0])
    return first if np.all(value.astype(np.float64) == first) else None


def attributes(op: tf.Operation) -> tuple[tuple[str, bytes], ...]:
    """Returns the attributes that matter to what an operation computes."""
    return tuple(
        (name, value.SerializeToString(deterministic=True))
        for name, value in sorted(op.node_def.attr.items())
        if not name.startswith("_") or name == "_gradient_op_type"
    )


def _static(tensor: tf.Tensor) -> np.ndarray | None:
    if tensor.dtype in {tf.string, tf.resource, tf.variant}:
        return None
    value = tf.get_static_value(tensor)
    return None if value is None else np.asarray(value)


def _computed(op: tf.Operation, inputs: Sequence[np.ndarray]) -> np.ndarray | None:
    """Runs an operation on constants, with TensorFlow's own rounding."""
    with _compat.eager_mode(), tf.device("CPU"):
        tensors = [
            tf.constant(value, each.dtype)
            for value, each in zip(inputs, op.inputs, strict=True)
        ]
        return _compat.host_array(raw_kernel(op)(tensors)[0])
