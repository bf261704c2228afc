"""Factors sums whose terms may have weights of 0, for a division by another sum."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe.rewriting.engine.rule import Build
from tfsafe.rewriting.log_space import pairs, sums
from tfsafe.rewriting.log_space.form import Factored, LogForms
from tfsafe.rewriting.log_space.operations import matrices, segments
from tfsafe.rewriting.match.arithmetic import is_sum

# Of each type of operation, how to factor it.
CASES: dict[str, Callable[..., Factored | None]] = {
    **dict.fromkeys(("BatchMatMulV2", "MatMul"), matrices.product),
    "Einsum": matrices.einsum,
    **dict.fromkeys(("Mean", "Sum"), sums.reduced_sum),
    **dict.fromkeys(segments.SUMS, segments.segment_sum),
}


def weighted_sum(op: tf.Operation, logs: LogForms, least: Build) -> Factored | None:
    """Factors a sum whose terms may have weights of 0.

    Args:
      op: The operation.
      logs: What is known about logarithms.
      least: Builds what the exponent that is taken out is at least.

    Returns:
      The factors; None for another operation.
    """
    if is_sum(op) and len(op.inputs) == 2:
        a, b = (logs.parts(each) for each in op.inputs)
        if a.is_partial or b.is_partial or a.log is b.log is None:
            return None
        return pairs.total(a, b, 1, least)
    case = CASES.get(op.type)
    return None if case is None else case(op, logs, least)
