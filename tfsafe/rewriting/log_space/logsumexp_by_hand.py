"""Recognises logarithms of sums of exponentials, written by hand."""

from typing import NamedTuple

import tensorflow as tf

from tfsafe.rewriting.facts.layouts import reshapes
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import is_sum
from tfsafe.rewriting.match.reductions import lines_up


class LogSum(NamedTuple):
    """The logarithm of a sum of exponentials over axes."""

    x: tf.Tensor
    axes: tuple[int, ...]
    keepdims: bool


def _base(tensor: tf.Tensor, reader: Reader) -> tuple[tf.Tensor, bool]:
    """Returns what a tensor is a reshaped copy of, and whether it has no gradient."""
    tensor = reader.source(tensor)
    is_stopped = False
    while tensor.op.type == "StopGradient" or reshapes(reader, tensor.op):
        is_stopped |= tensor.op.type == "StopGradient"
        tensor = reader.source(tensor.op.inputs[0])
    return tensor, is_stopped


def _plain_total(tensor: tf.Tensor, reader: Reader) -> LogSum | None:
    """Recognises `log(sum(exp(x)))`."""
    log = reader.op(tensor)
    total = reader.op(log.inputs[0]) if log.type == "Log" else log
    if log.type != "Log" or total.type != "Sum":
        return None
    exponential = reader.op(total.inputs[0])
    axes = reader.axes(total.inputs[1], total.inputs[0].shape.rank)
    if exponential.type != "Exp" or axes is None:
        return None
    return LogSum(exponential.inputs[0], axes, total.get_attr("keep_dims"))


def logsumexp_of(op: tf.Operation, reader: Reader) -> LogSum | None:
    """Recognises `log(sum(exp(x - m))) + m`, m having size 1 along the axes."""
    for log, shift in both_ways(op) if is_sum(op) else []:
        found = _plain_total(log, reader)
        if found is None:
            continue
        difference = reader.op(found.x)
        if difference.type != "Sub":
            continue
        x, m = difference.inputs
        if _is_put_back(m, shift, log, found, reader):
            return found._replace(x=x)
    return None


def any_logsumexp(tensor: tf.Tensor, reader: Reader) -> LogSum | None:
    """Recognises `log(sum(exp(x)))`, with a shift or without."""
    return _plain_total(tensor, reader) or logsumexp_of(reader.op(tensor), reader)


def _is_put_back(
    m: tf.Tensor, shift: tf.Tensor, log: tf.Tensor, found: LogSum, reader: Reader
) -> bool:
    if m.shape.rank == 0:
        return shift.shape.rank == 0 and _is_same_base(m, shift, reader)
    if m.shape.rank is None or m.shape.rank != found.x.shape.rank:
        return False
    if any(m.shape[axis] != 1 for axis in found.axes):
        return False
    return shift.shape.rank == log.shape.rank and _is_same_base(m, shift, reader)


def _is_same_base(m: tf.Tensor, shift: tf.Tensor, reader: Reader) -> bool:
    """Returns whether two tensors are the same but for their shape."""
    (a, is_stopped), (b, is_also) = _base(m, reader), _base(shift, reader)
    if is_stopped != is_also:
        return False
    if reader.same(a, b):
        return True
    # A maximum with the reduced axes kept, and the same without.
    if a.op.type != "Max" or b.op.type != "Max":
        return False
    axes = [
        reader.axes(each.op.inputs[1], each.op.inputs[0].shape.rank) for each in (a, b)
    ]
    is_alike = reader.same(a.op.inputs[0], b.op.inputs[0])
    return is_alike and axes[0] is not None and axes[0] == axes[1]


def log_softmax_of(
    op: tf.Operation, reader: Reader
) -> tuple[tf.Tensor, tuple[int, ...]] | None:
    """Recognises `x - log(sum(exp(x)))`, with the sum lined up with its rows."""
    x, total = op.inputs
    base, is_stopped = _base(total, reader)
    if is_stopped:
        return None
    found = any_logsumexp(base, reader)
    if found is None or not reader.same(found.x, x):
        return None
    rank = x.shape.rank
    is_aligned = base is reader.source(total) and found.keepdims
    if not is_aligned:
        is_whole = rank is not None and len(found.axes) == rank
        if not (is_whole and total.shape.num_elements() == 1) and not lines_up(
            total.shape, x.shape, found.axes
        ):
            return None
    return x, found.axes


def unshifted(
    op: tf.Operation, axes: tuple[int, ...], reader: Reader
) -> tf.Tensor | None:
    """Recognises `exp(x - max(x))`, which is NaN in a row of -inf; returns `x`."""
    shifted = reader.op(op.inputs[0]) if op.type == "Exp" else None
    if shifted is None or shifted.type != "Sub":
        return None
    x, shift = shifted.inputs
    largest = reader.value_source(shift).op
    if largest.type != "Max" or not reader.same(largest.inputs[0], x):
        return None
    is_along = reader.axes(largest.inputs[1], x.shape.rank) == axes
    return x if is_along and largest.get_attr("keep_dims") else None
