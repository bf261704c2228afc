"""Rules for divergences of two softmaxes, which vanish where these are equal."""

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import tensorflow as tf

from tfsafe.graph import DIVISIONS, SUMS, OpFact, op_types
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import NARROW, Reader, both_ways
from tfsafe.rewriting.log_space import logsumexp_by_hand
from tfsafe.rewriting.match.arithmetic import terms
from tfsafe.rewriting.rules.in_float64 import LOGARITHMS, Wide

_REDUCED = frozenset({"Mean", "Sum"})
_LAYOUTS = op_types(OpFact.RESHAPES)
# What is made in float64 besides sums, products and powers.
_MADE = frozenset({"LogSoftmax", "Softmax"})
# Numbers times softmaxes, each named by the number of its logits.
_Mixture = tuple[tuple[float, int], ...]
# A number times a softmax times the logarithm of a mixture.
_Term = tuple[float, int, _Mixture]
# The number of the softmax in a term that has none.
_OTHER = -1
# Longer sums are left alone, and deeper ones in a product.
_MOST, _DEPTH = 24, 4


class _Distributions:
    """Takes sums apart into numbers times softmaxes times logarithms."""

    def __init__(self, reader: Reader):
        self._reader = reader

    def weighted(self, tensor: tf.Tensor) -> Iterator[_Term]:
        """Yields weighted logarithms that add up to a tensor, also of what is summed.

        Something else in the tensor is a term of `_OTHER`, with no logarithm.
        """
        for factor, part in terms(self._reader, tensor):
            op = self._reader.op(part)
            if op.type in _REDUCED or op.type in _LAYOUTS:
                for number, weight, log in self.weighted(op.inputs[0]):
                    yield factor * number, weight, log
                continue
            found = [
                (factor * a * b, weight, log)
                for x, y in both_ways(op, "Mul")
                for a, weight in self.mixture(x)
                for b, log in self._logs(y)
            ]
            yield from found or [(factor, _OTHER, ())]

    def mixture(self, tensor: tf.Tensor) -> _Mixture:
        """Returns the softmaxes that add up to a tensor; none for another tensor."""
        found = []
        for factor, part in terms(self._reader, tensor):
            logits = self._logits(part)
            if logits is None:
                return ()
            found.append((factor, logits))
        return tuple(sorted(found))

    def _logits(self, tensor: tf.Tensor) -> int | None:
        op = self._reader.op(tensor)
        if op.type == "Softmax":
            return self._reader.number(op.inputs[0])
        return self._logits_of_log(op.inputs[0]) if op.type == "Exp" else None

    def _logits_of_log(self, tensor: tf.Tensor) -> int | None:
        op = self._reader.op(tensor)
        if op.type == "LogSoftmax":
            return self._reader.number(op.inputs[0])
        by_hand = logsumexp_by_hand.log_softmax_of
        found = by_hand(op, self._reader) if op.type == "Sub" else None
        return None if found is None else self._reader.number(found[0])

    def _logs(
        self, tensor: tf.Tensor, depth: int = _DEPTH
    ) -> list[tuple[float, _Mixture]]:
        """Returns the logarithms that add up to a tensor; none for another tensor."""
        logits = self._logits_of_log(tensor)
        if logits is not None:
            return [(1.0, ((1.0, logits),))]
        op = self._reader.op(tensor)
        if op.type == "Log":
            inner = self._reader.op(op.inputs[0])
            sides = inner.inputs if inner.type in DIVISIONS else op.inputs
            return [
                (sign, mixture)
                for sign, side in zip((1.0, -1.0), sides, strict=False)
                if (mixture := self.mixture(side))
            ]
        if op.type not in SUMS or not depth:
            return []
        signs = (1.0, -1.0 if op.type == "Sub" else 1.0)
        return [
            (sign * factor, log)
            for sign, each in zip(signs, op.inputs, strict=False)
            for factor, log in self._logs(each, depth - 1)
        ]

    def is_less_affinity(self, tensor: tf.Tensor) -> bool:
        """Returns whether a tensor is a number times 1 less an affinity."""
        rest = number = 0.0
        for factor, part in terms(self._reader, tensor):
            known = self._reader.scalar(part)
            if known is None and not self.is_affinity(part):
                return False
            rest += factor if known is None else factor * known
            number += 0.0 if known is None else factor * known
        return number != 0 and abs(rest) <= 1e-6 * abs(number)

    def is_affinity(self, tensor: tf.Tensor) -> bool:
        """Returns whether a tensor adds up products of powers of two softmaxes."""
        op = self._reader.op(tensor)
        while op.type in _LAYOUTS:
            op = self._reader.op(op.inputs[0])
        if op.type != "Sum":
            return False
        product = self._reader.op(op.inputs[0])
        if product.type == "Sqrt":
            product = self._reader.op(product.inputs[0])
            sides = list(product.inputs)
        else:
            roots = [self._reader.op(each) for each in product.inputs]
            is_root = all(each.type in {"Pow", "Sqrt"} for each in roots)
            sides = [each.inputs[0] for each in roots] if is_root else []
        if product.type != "Mul" or len(sides) != 2:
            return False
        p, q = map(self.mixture, sides)
        return bool(p and q and p != q)


def _cancels(terms_of_sum: Iterable[_Term]) -> bool:
    """Returns whether the terms of each softmax are 0 if all logarithms are alike."""
    sums: defaultdict[int, float] = defaultdict(float)
    logs: set[_Mixture] = set()
    most = 0.0
    for count, (factor, weight, log) in enumerate(terms_of_sum):
        if weight == _OTHER or count == _MOST:
            return False
        sums[weight] += factor
        logs.add(log)
        most = max(most, abs(factor))
    return len(logs) > 1 and all(abs(each) <= 1e-6 * most for each in sums.values())


def _match(
    op: tf.Operation, reader: Reader, others: Sequence[Rule] = ()
) -> Build | None:
    whole = op.outputs[0]
    if whole.dtype not in NARROW or is_watched(reader, op):
        return None
    found = _Distributions(reader)
    if op.type == "Log":
        is_near_0 = found.is_affinity(op.inputs[0])
    elif op.type in SUMS and found.is_less_affinity(whole):
        is_near_0 = True
    else:
        is_near_0 = _cancels(found.weighted(whole))
    if not is_near_0:
        return None
    formula = Wide(reader, others, _MADE, LOGARITHMS)

    def build(value: Value) -> tf.Tensor:
        return tf.cast(formula.of(value)(whole), whole.dtype)

    return build


def rule(others: Sequence[Rule]) -> Rule:
    """Returns the rule.

    Args:
      others: Rules for parts of the formula.
    """
    return Rule(
        name="divergence-of-softmax",
        before="sum(p * (log(p) - log(q))), 1 - sum(sqrt(p * q)) of softmaxes p, q",
        after="the same, computed in float64 and rounded once",
        fails_when="the logits are nearly equal: no digit is left",
        reference="Kullback and Leibler, On Information and Sufficiency, 1951",
        op_types=SUMS | _REDUCED | {"Log"},
        match=functools.partial(_match, others=others),
    )
