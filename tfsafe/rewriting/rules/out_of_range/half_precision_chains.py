"""Finds the part of a half-precision formula that is computed in float32."""

import collections
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import ADDITIONS, DIVISIONS, RECIPROCALS, SEGMENT_SUMS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.analysis import wider
from tfsafe.rewriting.engine.rule import Build, Rule, Value, first
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space.form import Widened
from tfsafe.rewriting.match.arithmetic import LOST_EPSILON, adds_lost_epsilon
from tfsafe.rewriting.match.trees import Trees
from tfsafe.rewriting.rules.in_float64 import is_made_wide
from tfsafe.rewriting.rules.masks import empty_sums

# What makes numbers much larger or smaller, and what brings them back into range.
CONTRACTIONS = frozenset({"Einsum", "MatMul", "BatchMatMulV2"})
STRETCHES = frozenset({
    *("Exp", "L2Loss", "Mul", "Square", "SquaredDifference", "Pow", "Sum", "Mean"),
    *CONTRACTIONS,
    *SEGMENT_SUMS,
    "Cumsum",
})
_INVERSES = DIVISIONS | RECIPROCALS | {"DivNoNan", "Rsqrt", "Pow", "Exp"}
_INSIDE = frozenset({
    *STRETCHES,
    *wider.SAFE,
    *ADDITIONS,
    "Abs",
    "BroadcastTo",
    "EuclideanNorm",
    "ExpandDims",
    "GatherV2",
    "Log",
    "MatrixDiagPartV3",
    "Max",
    "Maximum",
    "Min",
    "Minimum",
    "Neg",
    "Pack",
    "Relu",
    "Reshape",
    "Select",
    "SelectV2",
    "Sigmoid",
    "Softmax",
    "Squeeze",
    "StopGradient",
    "StridedSlice",
    "Sub",
    "Tanh",
    "Tile",
    "Transpose",
})
SOFTMAXES: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "LogSoftmax": ops.log_softmax,
    "Softmax": ops.softmax,
}
# Rules that are made in the dtype of what they are made of, besides fixed trees.
ANY_DTYPE = {
    *("complement-of-power", "complement-of-softmax", "fraction-of-difference"),
    *("mask-after", "mask-over"),
    *("difference-from-one", "norm", "projection"),
    *("log-softmax-by-hand", "logsumexp-by-hand"),
    *("product-of-exponentials", "ratio-of-exponentials", "removable-singularity"),
    *("sigmoid-by-hand", "softmax-by-hand", "softplus-by-hand", "squared-distances"),
}
# How many operations below its end a fixed tree takes apart.
_REACH = 4
# Operations in float32 between two casts.
_DEPTH = 6
# Of a longer formula, the operations that are nearest to its end.
_MOST = 120


class _Known(dict[str, tuple[Rule | None, Build | None, bool]]):
    """By the name of an operation: its rule and build, and whether it has a guard."""


class Chain:
    """The part of a formula that is computed in float32.

    Args:
      op: The operation that it ends in.
      reader: Reader of the graph.
      others: Rules for whole formulas. What one of them replaces is not taken apart.
      build: Builds the output of `op` by one of these, in any dtype.

    Attributes:
      inside: Names of its operations.
      stretches: Whether a part may leave the range of the dtype.
      inverts: Whether a part divides by another.
      restores: Whether an epsilon is added that the dtype does not have.
    """

    def __init__(
        self,
        op: tf.Operation,
        reader: Reader,
        others: Sequence[Rule],
        build: Build | None = None,
    ):
        self._reader = reader
        self.inside: set[str] = set()
        self.stretches = False
        self.inverts = False
        self.restores = False
        self._logged: set[str] = set()
        self._known: dict[str, Build] = {} if build is None else {op.name: build}
        self._guarded: set[str] = set()
        seen: set[str] = set()
        queue = collections.deque([(op, 0)])
        while queue and len(self.inside) < _MOST:
            each, reach = queue.popleft()
            if each.name in seen:
                continue
            seen.add(each.name)
            is_left = each is not op and self._is_left(each, others)
            if is_left and not reach:
                continue
            reach = _REACH if each.name in self._known else max(reach - 1, 0)
            if not is_left:
                self._include(each, op)
            # Logits are as exact as their dtype.
            for tensor in each.inputs if each is op or each.type != "Softmax" else ():
                self.restores |= self._loses_epsilon(tensor)
                if self._is_computed(tensor):
                    queue.append((reader.op(tensor), reach))

    def _include(self, op: tf.Operation, end: tf.Operation) -> None:
        self.inside.add(op.name)
        if op is not end:
            self.stretches |= self._stretches(op)
            self.inverts |= op.type in _INVERSES
        if op.type == "Log":
            self._logged.add(self._reader.op(op.inputs[0]).name)
        self.restores |= self._epsilon(op) is not None

    def _is_computed(self, tensor: tf.Tensor) -> bool:
        op = self._reader.op(tensor)
        if self._reader.constant(tensor) is not None:
            return False
        # Keras takes its means in float32, and rounds them.
        if op.type == "Cast":
            return self._casts(op)
        return op.type in _INSIDE and (
            tensor.dtype in precision.HALF or self._widens(op)
        )

    def _casts(self, op: tf.Operation, depth: int = _DEPTH) -> bool:
        """Returns whether a half-precision formula goes on before a cast."""
        x = op.inputs[0]
        if x.dtype in precision.HALF:
            return op.outputs[0].dtype == tf.float32
        return x.dtype == tf.float32 and self._widens(self._reader.op(x), depth)

    def _widens(self, op: tf.Operation, depth: int = _DEPTH) -> bool:
        """Returns whether a formula in float32 begins in half precision."""
        if op.outputs[0].dtype != tf.float32 or not depth:
            return False
        if op.type == "Cast":
            return op.inputs[0].dtype in precision.HALF
        inner = (self._reader.op(each) for each in op.inputs)
        return op.type in _INSIDE and any(self._widens(e, depth - 1) for e in inner)

    def _is_left(self, op: tf.Operation, others: Sequence[Rule]) -> bool:
        """Returns whether a rule makes the output of `op` in half precision."""
        known = self._reader.memory.setdefault(_Known, _Known())
        if op.name not in known:
            known[op.name] = _known(op, self._reader, others)
        rule, build, has_guard = known[op.name]
        if has_guard:
            self._guarded.add(op.name)
        if rule is None or build is None:
            return False
        if not is_made_wide(rule, ANY_DTYPE):
            return True
        self._known[op.name] = build
        if isinstance(rule.match, Trees):
            inner = (self._reader.op(each) for each in op.inputs)
            self.stretches |= any(e.type in STRETCHES for e in inner)
        self.stretches |= rule.name == "squared-distances"
        return False

    def _stretches(self, op: tf.Operation) -> bool:
        if op.type == "Mul":
            return all(self._reader.constant(each) is None for each in op.inputs)
        return op.type in STRETCHES

    def _loses_epsilon(self, tensor: tf.Tensor) -> bool:
        """Returns whether a number that is not 0 is cast to 0."""
        wide = self._before_cast(tensor)
        return bool(
            wide is not None
            and self._reader.scalar(tensor) == 0
            and self._reader.scalar(wide)
        )

    def _epsilon(self, op: tf.Operation) -> float | None:
        """Returns what to add in place of an epsilon that is 0 in the dtype."""
        if not adds_lost_epsilon(self._reader, op):
            return None
        is_root = self._reader.op(op.inputs[0]).type in {"Sqrt", "EuclideanNorm"}
        is_one = is_root or op.name in self._logged
        return LOST_EPSILON if is_one else LOST_EPSILON**2

    def _before_cast(self, tensor: tf.Tensor) -> tf.Tensor | None:
        op = self._reader.op(tensor)
        if op.type != "Cast" or self._reader.constant(tensor) is None:
            return None
        x = op.inputs[0]
        return x if x.dtype in {tf.float32, tf.float64} else None

    def build(self, tensor: tf.Tensor, value: Value) -> tf.Tensor:
        """Builds a tensor of the chain in float32."""
        made: dict[str, tf.Tensor] = {}

        def wide(tensor: tf.Tensor) -> tf.Tensor:
            source = self._reader.source(tensor)
            if source.name not in made:
                made[source.name] = compute(tensor, source.op)
            return made[source.name]

        def operand(tensor: tf.Tensor) -> tf.Tensor:
            return wide(tensor) if tensor.dtype in precision.HALF else value(tensor)

        operands = Widened(operand, tf.float32)

        def compute(tensor: tf.Tensor, op: tf.Operation) -> tf.Tensor:
            if op.name in self._known:
                return tf.cast(self._known[op.name](operands), tf.float32)
            if op.name in self.inside and op.type == "Cast":
                return wide(op.inputs[0])
            if tensor.dtype not in precision.HALF and op.name not in self.inside:
                return value(tensor)
            if op.name not in self.inside:
                before = self._before_cast(tensor)
                is_epsilon = before is not None and self._loses_epsilon(tensor)
                return tf.cast(value(before if is_epsilon else tensor), tf.float32)
            inputs = [wide(each) for each in op.inputs]
            if op.name in self._guarded:
                inputs = [unchanged_values.held(each) for each in inputs]
            epsilon = self._epsilon(op)
            if epsilon is not None:
                return inputs[0] + inputs[1] + epsilon
            if _is_fraction(op, self._reader):
                return ops.xdivy(*inputs)
            if op.type in SOFTMAXES:
                return SOFTMAXES[op.type](*inputs)
            return wider.run(op, inputs)

        return tf.cast(wide(tensor), tensor.dtype)


def _known(
    op: tf.Operation, reader: Reader, others: Sequence[Rule]
) -> tuple[Rule | None, Build | None, bool]:
    """Returns the first rule for an operation but a guard, and whether it has one."""
    has_guard = False
    for rule in others:
        is_tried = op.type in rule.op_types and is_applied(rule.name, reader)
        build = rule.match(op, reader) if is_tried else None
        if build is not None and rule.name != "guard":
            return rule, build, has_guard
        has_guard |= build is not None
    return None, None, has_guard


def _is_fraction(op: tf.Operation, reader: Reader) -> bool:
    """Returns whether a quotient of nothing is 0 by the rule for such quotients."""
    rule = empty_sums.FRACTION_OF_ZERO
    return is_applied(rule.name, reader) and first([rule], op, reader) is not None


def is_applied(name: str, reader: Reader) -> bool:
    """Returns whether a rule may be applied within the formulas of others."""
    return reader.rules is None or name in reader.rules
