"""Finds the logarithm of each tensor of a graph, and of its complement."""

from collections.abc import Callable, Mapping

import tensorflow as tf

from tfsafe.graph import OpFact, op_types
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.log_space import by_operation, complements, weighted_sums
from tfsafe.rewriting.log_space.form import (
    Factored,
    Widened,
    log_number,
    once,
    together,
    with_inputs,
)
from tfsafe.rewriting.log_space.operations import loops
from tfsafe.rewriting.log_space.sums import one_plus
from tfsafe.rewriting.match.arithmetic import negated

# Operations that move elements of some of their inputs and change none.
MOVERS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(op_types(OpFact.MOVES), (0,)),
    "MatrixDiagPart": (0,),
    "MatrixDiagPartV3": (0,),
    "Select": (1, 2),
    "SelectV2": (1, 2),
    "StopGradient": (0,),
}
_LOOPS = op_types(OpFact.LOOP)
_ZEROED = {"MatrixBandPart", "MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"}
_NOTHING: Mapping[str, Factored] = {}
# Deeper formulas are left alone: Python's stack is finite.
_DEPTH = 40


class Logarithms:
    """Knows how to write the logarithms of the tensors of one graph."""

    def __init__(self, reader: Reader, seeds: Mapping[str, Factored] = _NOTHING):
        self.reader = reader
        self._found: dict[tuple[str, bool], Factored | None] = {
            (name, False): each for name, each in seeds.items()
        }
        self._depth = 0

    def of(self, tensor: tf.Tensor) -> Factored | None:
        """Factors a tensor in which there is an exponential or a probability."""
        return self._remember(tensor, False)

    def inside(self, reader: Reader, seeds: Mapping[str, Factored]) -> "Logarithms":
        """Returns what is known of another graph."""
        return Logarithms(reader, seeds)

    def complement(self, tensor: tf.Tensor) -> Factored | None:
        """Factors `1 - tensor` of such a tensor."""
        return self._remember(tensor, True)

    def one_plus(self, tensor: tf.Tensor) -> Factored | None:
        """Factors `1 + tensor` of an exponential, or of a negative probability."""
        minus = negated(self.reader, tensor)
        if minus is not None:
            return self.complement(minus)
        op = self.reader.op(tensor)
        if op.type == "Expm1":
            x = op.inputs[0]
            return Factored("log-of-exp", lambda value: value(x), has_exp=True)
        found = self.of(tensor)
        return None if found is None else one_plus(found)

    def divided_by(
        self, tensor: tf.Tensor, divisor: tf.Tensor, by: Factored
    ) -> Factored | None:
        """Factors a weighted sum that is divided by a sum of exponentials.

        Args:
          tensor: The sum.
          divisor: What it is divided by.
          by: The factors of the divisor.

        Returns:
          The factors, with the divisor's exponent at least; None for other tensors.
        """
        op = self.reader.op(tensor)
        shape, other = tensor.shape, divisor.shape
        if by.log is None or other.rank not in {0, shape.rank}:
            return None
        if MOVERS.get(op.type) == (0,):
            inner = op.inputs[0]
            found = None if other.rank else self.divided_by(inner, divisor, by)
            return None if found is None else together(op, {0: found})
        sizes = zip(shape, other, strict=True) if other.rank else ()
        if any(size == 1 and larger != 1 for size, larger in sizes):
            return None
        return weighted_sums.weighted_sum(op, self, by.exponent)

    def parts(self, tensor: tf.Tensor) -> Factored:
        """Factors any tensor; one without an exponential is its own weight."""
        return self.of(tensor) or self.plain(tensor)

    def plain(self, tensor: tf.Tensor) -> Factored:
        """Returns a tensor as its own weight; a positive constant as an offset."""
        number = self.reader.scalar(tensor)
        if number is not None and number > 0 and tensor.shape.rank == 0:
            return Factored("", None, offset=log_number(number))
        return Factored(
            "",
            None,
            weight=lambda value: value(tensor),
            is_nonnegative=self.reader.is_nonnegative(tensor),
            is_masked=self.reader.is_mask(tensor),
        )

    def _remember(self, tensor: tf.Tensor, is_complement: bool) -> Factored | None:
        tensor = self.reader.source(tensor)
        key = (tensor.name, is_complement)
        if key not in self._found:
            is_list = tensor.dtype == tf.variant and not is_complement
            if self._depth > _DEPTH or not (is_float(tensor) or is_list):
                return None
            self._depth += 1
            found = self._find(tensor, is_complement)
            self._found[key] = found if self._is_allowed(found) else None
            self._depth -= 1
        return self._found[key]

    def _is_allowed(self, found: Factored | None) -> bool:
        """Returns whether no rule that the user excluded recognised a factor."""
        rules = self.reader.rules
        # An exponential by itself is what most other formulas are made of.
        if found is None or rules is None or found.name in {"", "log-of-exp"}:
            return True
        return found.name in rules

    def _find(self, tensor: tf.Tensor, is_complement: bool) -> Factored | None:
        op = tensor.op
        inner: Callable[[tf.Tensor], Factored | None]
        inner = self.complement if is_complement else self.of
        if op.type in MOVERS or op.type in {"ConcatV2", "Pack"}:
            return self._moved(op, is_complement)
        if op.type in {"Pad", "PadV2"}:
            return self._padded(op, is_complement)
        if op.type in _ZEROED:
            return None if is_complement else self._zeroed(op)
        if op.type in _LOOPS:
            return None if is_complement else loops.carried(tensor, self)
        if op.type == "Cast":
            return _cast(inner(op.inputs[0]), op)
        if is_complement:
            return complements.complement(op, self)
        return by_operation.factored(op, self)

    def _moved(self, op: tf.Operation, is_complement: bool) -> Factored | None:
        if op.type == "Select" and op.inputs[0].shape.rank != op.inputs[1].shape.rank:
            return None
        if op.type == "MatrixDiagPartV3" and not _is_one_diagonal(op):
            return None
        places = MOVERS.get(op.type) or range(len(op.inputs) - (op.type == "ConcatV2"))
        find = self.complement if is_complement else self.of
        found = {i: find(op.inputs[i]) for i in places}
        # What a loop never changes is known there, and may be no exponential.
        if not any(each is not None and each.name for each in found.values()):
            return None
        still = self._still_complement if is_complement else self._still
        filled = {i: each or still(op.inputs[i]) for i, each in found.items()}
        return together(op, filled)

    def _padded(self, op: tf.Operation, is_complement: bool) -> Factored | None:
        """Factors an exponential or a probability with a number around it."""
        find = self.complement if is_complement else self.of
        found = find(op.inputs[0])
        number = self.reader.scalar(op.inputs[2]) if len(op.inputs) > 2 else 0.0
        if found is None or number is None or not 0 <= number <= 1:
            return None
        around = 1 - number if is_complement else number
        is_pure = found.is_pure and around > 0
        if found.is_partial and not is_pure:
            return None

        def padded(part: tf.Tensor, beyond: float, value: Value) -> tf.Tensor:
            return tf.pad(part, value(op.inputs[1]), constant_values=beyond)

        def log(value: Value) -> tf.Tensor:
            beyond = log_number(around) if around else 0.0
            return padded(found.pair(value)[1], beyond, value)

        def weight(value: Value) -> tf.Tensor:
            return padded(found.pair(value)[0], float(around > 0), value)

        return found._replace(
            log=once(log),
            weight=None if is_pure else once(weight),
            offset=0.0,
            is_masked=found.is_pure or found.is_masked,
        )

    def _zeroed(self, op: tf.Operation) -> Factored | None:
        """Factors a matrix with 0 on its diagonal, or outside of a band."""
        found = self.of(op.inputs[0])
        if found is None or found.is_partial:
            return None
        diagonal = op.inputs[1]
        if op.type != "MatrixBandPart" and not self.reader.is_number(diagonal, 0):
            return None

        def weight(value: Value) -> tf.Tensor:
            return with_inputs(op, value, {0: found.pair(value)[0]})

        return found._replace(
            log=once(lambda value: found.pair(value)[1]),
            weight=once(weight),
            offset=0.0,
            is_masked=found.is_pure or found.is_masked,
        )

    def _still_complement(self, tensor: tf.Tensor) -> Factored:
        """Factors 1 minus a tensor that is joined with a probability."""
        return Factored(
            "",
            None,
            weight=lambda value: 1 - value(tensor),
            is_nonnegative=self.reader.bounds(tensor).high <= 1,
            is_masked=self.reader.is_mask(tensor),
        )

    def _still(self, tensor: tf.Tensor) -> Factored:
        """Factors a tensor that is joined with an exponential, in its own shape."""
        number = self.reader.scalar(tensor)
        plain = self.plain(tensor)
        if number is None or number <= 0:
            return plain._replace(weight=lambda value: value(tensor), offset=0.0)
        log = log_number(number)
        return Factored("", lambda value: tf.zeros_like(value(tensor)) + log)


def _is_one_diagonal(op: tf.Operation) -> bool:
    """Returns whether no diagonal is padded to the length of another."""
    rank = op.inputs[0].shape.rank
    return rank is not None and op.outputs[0].shape.rank == rank - 1


def _cast(found: Factored | None, op: tf.Operation) -> Factored | None:
    """Factors a cast between floating dtypes; the wider one computes."""
    if found is None:
        return None
    target = op.outputs[0].dtype
    is_wider = target.size > op.inputs[0].dtype.size

    def recast(build: Build) -> Build:
        def cast(value: Value) -> tf.Tensor:
            made = build(Widened(value, target)) if is_wider else build(value)
            return tf.cast(made, value.dtype if isinstance(value, Widened) else target)

        return once(cast)

    return found._replace(
        log=None if found.log is None else recast(found.log),
        weight=None if found.weight is None else recast(found.weight),
    )


def logarithms(reader: Reader) -> Logarithms:
    """Returns what is known of the logarithms in a reader's graph."""
    if Logarithms not in reader.memory:
        reader.memory[Logarithms] = Logarithms(reader)
    return reader.memory[Logarithms]
