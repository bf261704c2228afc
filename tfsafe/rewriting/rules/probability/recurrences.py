"""Rules for exponentials that a loop carries and divides by."""

from typing import Any

import tensorflow as tf

from tfsafe.graph import OpFact, op_types
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space.analysis import logarithms
from tfsafe.rewriting.log_space.operations import loops
from tfsafe.rewriting.rules import references


def _match_normalised(op: tf.Operation, reader: Reader) -> Any:
    if is_watched(reader, op):
        return None
    return loops.normalised(op, logarithms(reader))


RULES = (
    Rule(
        name="normalised-recurrence",
        before="a loop of n = f * n + exp(i) * v, d = f * d + exp(i), h = n / d; of "
        "p = p / sum(p) from exp(x)",
        after="the same loop; it carries logarithms",
        fails_when="what is carried overflows or underflows, and the quotient does not",
        reference=references.LOGSUMEXP,
        op_types=op_types(OpFact.LOOP),
        match=_match_normalised,
    ),
)
