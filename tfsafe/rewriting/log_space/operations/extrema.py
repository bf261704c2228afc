"""Finds logarithms of the largest and the smallest of exponentials."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe.rewriting.log_space.form import Factored, LogForms, applied, once
from tfsafe.rewriting.log_space.pairs import both, combined
from tfsafe.rewriting.log_space.sums import weighted_sum


def extremum(reduction: Callable[..., tf.Tensor]) -> Any:
    """Returns the case of the largest or smallest element along axes."""

    def case(op: tf.Operation, logs: LogForms) -> Factored | None:
        a = logs.of(op.inputs[0])
        axes = logs.reader.axes(op.inputs[1], op.inputs[0].shape.rank)
        if a is None or axes is None or a.is_partial:
            return None
        keepdims = op.get_attr("keep_dims")
        if not a.is_pure:
            # Over the largest exponential, the smallest or a negative one may be 0.
            is_kept = op.type == "Max" and a.is_nonnegative and bool(axes)
            return weighted_sum(a, axes, keepdims, reduction) if is_kept else None
        log = applied(lambda log: reduction(log, axes, keepdims=keepdims), a.exponent)
        return a._replace(log=log, offset=0.0)

    return case


def larger(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors the larger or the smaller of two exponentials."""
    a, b = (logs.parts(each) for each in op.inputs)
    if a.is_partial or b.is_partial:
        return None
    if not (a.name and b.name) and not (a.has_exp or b.has_exp):
        return None
    choose = tf.maximum if op.type == "Maximum" else tf.minimum
    if not (a.is_pure and b.is_pure):
        signs = a.is_nonnegative, b.is_nonnegative
        is_nonnegative = any(signs) if op.type == "Maximum" else all(signs)
        return combined(a, b, choose, is_nonnegative)
    return Factored(
        a.name or b.name,
        once(lambda value: choose(*both(a, b, value))),
        has_exp=a.has_exp or b.has_exp,
    )
