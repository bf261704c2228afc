"""The rule for half-precision formulas whose parts leave the range of the dtype."""

import collections
import functools
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import ADDITIONS, DIVISIONS, RECIPROCALS, SEGMENT_SUMS, raw_kernel
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.engine.rule import Build, Rule, Value, first
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space.form import Widened
from tfsafe.rewriting.match import wider
from tfsafe.rewriting.match.arithmetic import LOST_EPSILON, Term, adds_lost_epsilon
from tfsafe.rewriting.match.products import scaled
from tfsafe.rewriting.match.trees import Trees
from tfsafe.rewriting.rules.masks import empty_sums

# What makes numbers much larger or smaller, and what brings them back into range.
_CONTRACTIONS = frozenset({"Einsum", "MatMul", "BatchMatMulV2"})
_STRETCHES = frozenset({
    *("Exp", "L2Loss", "Mul", "Square", "SquaredDifference", "Pow", "Sum", "Mean"),
    *_CONTRACTIONS,
    *SEGMENT_SUMS,
})
_DIVISIONS = DIVISIONS | {"DivNoNan"}
_INVERSES = RECIPROCALS | _DIVISIONS | {"Rsqrt", "Pow", "Exp"}
_INSIDE = frozenset({
    *_STRETCHES,
    *wider.SAFE,
    *ADDITIONS,
    *_CONTRACTIONS,
    "Abs",
    "BroadcastTo",
    "EuclideanNorm",
    "Exp",
    "ExpandDims",
    "GatherV2",
    "Log",
    "MatrixDiagPartV3",
    "Maximum",
    "Minimum",
    "Neg",
    "Pack",
    "Reshape",
    "Sigmoid",
    "Softmax",
    "Squeeze",
    "StopGradient",
    "StridedSlice",
    "Sub",
    "Tile",
    "Transpose",
})
# A smaller factor would leave nothing of small elements.
_LEAST_SCALE = 2.0**-8
_SOFTMAXES: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "LogSoftmax": ops.log_softmax,
    "Softmax": ops.softmax,
}
# Rules that make probabilities in the dtype of their logits.
_PROBABILITIES = {"complement-of-softmax", "sigmoid-by-hand", "softmax-by-hand"}
# Operations in float32 between two casts.
_DEPTH = 6
# Of a longer formula, the operations that are nearest to its end.
_MOST = 40


class _Chain:
    """The part of a formula that is computed in float32.

    Args:
      op: The operation that it ends in.
      reader: Reader of the graph.
      others: Rules for whole formulas. What one of them replaces is not taken apart.

    Attributes:
      inside: Names of its operations.
      stretches: Whether a part may leave the range of the dtype.
      inverts: Whether a part divides by another.
      restores: Whether an epsilon is added that the dtype does not have.
    """

    def __init__(self, op: tf.Operation, reader: Reader, others: Sequence[Rule]):
        self._reader = reader
        self.inside: set[str] = set()
        self.stretches = False
        self.inverts = False
        self.restores = False
        self._logged: set[str] = set()
        self._known: dict[str, Build] = {}
        self._guarded: set[str] = set()
        queue = collections.deque([op])
        while queue and len(self.inside) < _MOST:
            each = queue.popleft()
            if each.name in self.inside:
                continue
            self.inside.add(each.name)
            if each is not op:
                self.stretches |= self._stretches(each)
                self.inverts |= each.type in _INVERSES
            if each.type == "Log":
                self._logged.add(reader.op(each.inputs[0]).name)
            self.restores |= self._epsilon(each) is not None
            # Logits are as exact as their dtype.
            for tensor in each.inputs if each is op or each.type != "Softmax" else ():
                self.restores |= self._loses_epsilon(tensor)
                inner = reader.op(tensor)
                if self._is_computed(tensor) and not self._is_known(inner, others):
                    queue.append(inner)

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

    def _is_known(self, op: tf.Operation, others: Sequence[Rule]) -> bool:
        for rule in others:
            build = rule.match(op, self._reader) if op.type in rule.op_types else None
            if build is not None and rule.name == "guard":
                self._guarded.add(op.name)
            elif build is not None:
                # A fixed tree is made in the dtype of what it is made of.
                is_tree = isinstance(rule.match, Trees)
                if is_tree or rule.name in _PROBABILITIES:
                    self._known[op.name] = build
                if is_tree:
                    inner = (self._reader.op(each) for each in op.inputs)
                    self.stretches |= any(e.type in _STRETCHES for e in inner)
                return True
        return False

    def _stretches(self, op: tf.Operation) -> bool:
        if op.type == "Mul":
            return all(self._reader.constant(each) is None for each in op.inputs)
        return op.type in _STRETCHES

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

        def compute(tensor: tf.Tensor, op: tf.Operation) -> tf.Tensor:
            if op.name in self._known:
                return self._known[op.name](Widened(value, tf.float32))
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
            if op.type in _SOFTMAXES:
                return _SOFTMAXES[op.type](*inputs)
            return wider.run(op, inputs)

        return tf.cast(wide(tensor), tensor.dtype)


def _is_fraction(op: tf.Operation, reader: Reader) -> bool:
    """Returns whether a quotient of nothing is 0 by the rule for such quotients."""
    rule = empty_sums.FRACTION_OF_ZERO
    is_applied = reader.rules is None or rule.name in reader.rules
    return is_applied and first([rule], op, reader) is not None


def _match(
    op: tf.Operation, reader: Reader, others: Sequence[Rule] = ()
) -> Build | None:
    tensor = op.outputs[0]
    if tensor.dtype not in precision.HALF or is_watched(reader, op):
        return None
    scale = _scale(op, reader)
    if scale is not None and _is_contraction(reader.op(scale.tensor), scale.factor):
        return _scaled_first(reader.op(scale.tensor), scale.factor)
    is_sum_inside = op.type == "Sub" or op.type in _SOFTMAXES
    if is_sum_inside and not wider.adds_products(reader, *op.inputs):
        return None
    if op.type == "Cast" and not _is_mean_of_keras(op, reader):
        return None
    chain = _Chain(op, reader, others)
    # The sum of a mean may overflow.
    if not (chain.stretches or chain.restores or op.type == "Mean"):
        return None
    is_open = chain.inverts or chain.restores
    if op.type == "Mul" and not is_open and scale is None:
        return None
    if op.type == "Pow" and not _is_root(op, reader):
        return None
    if op.type == "Log" and not is_open and not _is_moment(op, reader):
        return None
    return lambda value: chain.build(tensor, value)


def _is_mean_of_keras(op: tf.Operation, reader: Reader) -> bool:
    """Returns whether a mean is taken in float32, of a power in half precision."""
    mean = reader.op(op.inputs[0])
    wide = reader.op(mean.inputs[0]) if mean.type == "Mean" else mean
    if wide is mean or wide.type != "Cast":
        return False
    power = wide.inputs[0]
    return power.dtype in precision.HALF and reader.op(power).type in _STRETCHES


def _scale(op: tf.Operation, reader: Reader) -> Term | None:
    """Reads a tensor times a number that brings it nearer to 0."""
    # bfloat16 has the range of float32.
    if op.outputs[0].dtype != tf.float16:
        return None
    term = scaled(reader, op.outputs[0])
    return term if 0 < abs(term.factor) < 1 else None


def _is_contraction(op: tf.Operation, factor: float) -> bool:
    """Returns whether a factor of a contraction may be multiplied beforehand."""
    is_pair = op.type in _CONTRACTIONS and len(op.inputs) == 2
    return is_pair and abs(factor) > _LEAST_SCALE


def _scaled_first(op: tf.Operation, factor: float) -> Build:
    """Returns how to build a contraction times a number, in float16 as it was."""

    def build(value: Value) -> tf.Tensor:
        a, b = map(value, op.inputs)
        return precision.contracted(
            lambda a, b: raw_kernel(op)([a, b])[0], a, b, factor
        )

    return build


def _is_moment(op: tf.Operation, reader: Reader) -> bool:
    """Returns whether the logarithm is of a sum or a mean of products or powers."""
    inner = reader.op(op.inputs[0])
    if inner.type not in {"Sum", "Mean"}:
        return inner.type in _CONTRACTIONS
    return reader.op(inner.inputs[0]).type in _STRETCHES


def _is_root(op: tf.Operation, reader: Reader) -> bool:
    exponent = reader.scalar(op.inputs[1])
    return exponent is not None and exponent < 1


def rule(others: Sequence[Rule]) -> Rule:
    """Returns the rule."""
    return Rule(
        name="half-precision",
        before="x * rsqrt(mean(x * x)), mean(x), m / (sqrt(v) + 1e-8), log(p + 1e-9), "
        "0.5 * x ** 2, sum(x * x) - sum(y * y), matmul(q, k) / 8 in float16",
        after="the same, computed in float32 and rounded once; matmul(q / 8, k)",
        fails_when="a square, a product or a sum overflows or vanishes, and the result "
        "does not; an epsilon that is cast to half precision is 0",
        reference="Micikevicius et al., Mixed Precision Training, ICLR 2018",
        op_types=(
            *("Cast", "Log", "Mean", "Mul", "Pow", "Rsqrt", "Sqrt", "Sub"),
            *_DIVISIONS,
            *_SOFTMAXES,
        ),
        match=functools.partial(_match, others=others),
    )
