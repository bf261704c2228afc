"""Finds logarithms of elements selected from a softmax written by hand."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import OpFact, op_types
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.layouts import taken
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space import probabilities
from tfsafe.rewriting.log_space.form import Factored, LogForms, once, with_inputs
from tfsafe.rewriting.log_space.sums import weighted_sum

_ELEMENTWISE = op_types(OpFact.ELEMENTWISE)
_PICKS = op_types(OpFact.PICKS)


def picked(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `a / sum(e)` where `a` is some of the elements of `e`."""
    total = probabilities.total_of(op.inputs[1], logs.reader)
    if total is None or not total.is_plain or total.op.type == "Einsum":
        return None
    softmax = probabilities.whole_softmax(total.op.inputs[0], total.axes, logs)
    if softmax is None:
        return None
    return _by_weights(op, total, softmax, logs) or _by_place(op, total, softmax, logs)


def largest(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors the largest elements of probabilities, sorted."""
    found = logs.of(op.inputs[0])
    if found is None or not found.is_pure or found.is_partial:
        return None
    places = op.outputs[1]

    def log(value: Value) -> tf.Tensor:
        whole = found.whole_log(value)
        if places.consumers():
            # The places that the user has, also where some elements underflow.
            return tf.gather(whole, value(places), batch_dims=whole.shape.rank - 1)
        is_sorted = op.get_attr("sorted")
        return tf.math.top_k(whole, value(op.inputs[1]), sorted=is_sorted).values

    if op.inputs[0].shape.rank is None:
        return None
    return found._replace(log=once(log), offset=0.0)


def _log_softmax(softmax: probabilities.Softmax) -> Build:
    def build(value: Value) -> tf.Tensor:
        mask = None if softmax.mask is None else softmax.mask(value)
        return ops.log_softmax(softmax.logits(value), softmax.axis, mask=mask)

    return once(build)


def _by_weights(
    op: tf.Operation,
    total: probabilities.Total,
    softmax: probabilities.Softmax,
    logs: LogForms,
) -> Factored | None:
    """Factors `sum(y * e) / sum(e)`."""
    reader = logs.reader
    top = reader.op(op.inputs[0])
    if top.type != "Sum" or reader.op(top.inputs[0]).type != "Mul":
        return None
    same_axes = reader.axes(top.inputs[1], top.inputs[0].shape.rank) == total.axes
    keepdims = top.get_attr("keep_dims")
    if not same_axes or keepdims != total.op.get_attr("keep_dims"):
        return None
    product = reader.op(top.inputs[0])
    for e, weight in both_ways(product):
        is_whole = product.outputs[0].shape.rank == e.shape.rank is not None
        if not is_whole or not reader.same(e, total.op.inputs[0]):
            continue
        if logs.of(weight) is not None:
            return None
        built = logs.plain(weight).weight or _itself(weight)
        weighted = Factored(
            "log-of-softmax",
            _log_softmax(softmax),
            built,
            is_nonnegative=reader.is_nonnegative(weight),
        )
        return weighted_sum(weighted, total.axes, keepdims)
    return None


def _itself(tensor: tf.Tensor) -> Build:
    return lambda value: value(tensor)


def _by_place(
    op: tf.Operation,
    total: probabilities.Total,
    softmax: probabilities.Softmax,
    logs: LogForms,
) -> Factored | None:
    """Factors `e[k] / sum(e)`, also where `e[k]` is computed from what `e` is."""
    if total.op.get_attr("keep_dims"):
        return None
    mover = _mover(op.inputs[0], total.op.inputs[0], logs.reader)
    if mover is None or not _is_aligned(mover, total.axes, logs.reader):
        return None
    log_softmax = _log_softmax(softmax)

    def build(value: Value) -> tf.Tensor:
        return with_inputs(mover, value, {0: log_softmax(value)})

    return Factored("log-of-softmax", once(build))


def place_in_rows(
    part: tf.Tensor, whole: tf.Tensor, axes: tuple[int, ...], reader: Reader
) -> tf.Operation | None:
    """Returns the operation that picks one element `part` of each row of `whole`."""
    op = reader.op(part)
    if op.type not in _PICKS or not reader.same(op.inputs[0], whole):
        return None
    return op if _is_aligned(op, axes, reader) else None


def _mover(part: tf.Tensor, whole: tf.Tensor, reader: Reader) -> tf.Operation | None:
    """Returns the operation that picks `part` out of `whole`.

    An elementwise function of what is picked is what is picked of the function.
    """
    op, other = reader.op(part), reader.op(whole)
    if op.type in _PICKS:
        return op if reader.same(op.inputs[0], whole) else None
    if op.type != other.type or op.type not in _ELEMENTWISE:
        return None
    found: list[tf.Operation] = []
    for mine, theirs in zip(op.inputs, other.inputs, strict=True):
        if reader.scalar(mine) is not None and reader.same(mine, theirs):
            continue
        mover = _mover(mine, theirs, reader)
        if mover is None:
            return None
        found.append(mover)
    return found[0] if len(found) == 1 else None


def _is_aligned(mover: tf.Operation, axes: tuple[int, ...], reader: Reader) -> bool:
    """Returns whether what is picked and the sum belong to the same rows."""
    rank = mover.inputs[0].shape.rank
    if rank is None:
        return False
    if len(axes) == rank:
        return True
    if mover.type == "MatrixDiagPartV3":
        # Row and column i of a square have the diagonal's element i in common.
        is_main = reader.is_number(mover.inputs[1], 0)
        return is_main and rank == 2 and len(axes) == 1
    if len(axes) > 1:
        return False
    (axis,) = axes
    if mover.type == "GatherV2":
        along = reader.scalar(mover.inputs[2])
        batch = mover.get_attr("batch_dims") % rank
        is_last = along is not None and int(along) % rank == axis == rank - 1
        return is_last and batch == axis == mover.inputs[1].shape.rank
    found = taken(reader, mover)
    return found is not None and found[0] == axis
