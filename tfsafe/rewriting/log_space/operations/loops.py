"""Finds the logarithms of what a loop carries, and makes the loop carry them.

A state that is multiplied by probabilities underflows after a few hundred steps. The
loop that is made carries its logarithm; a state that may be negative is carried as a
weight and an exponent.
"""

from collections.abc import Callable, Collection, Iterable

import tensorflow as tf

from tfsafe.graph import (
    ADDITIONS,
    DIVISIONS,
    OpFact,
    live_variables,
    loop_graphs,
    op_types,
    unchanged,
)
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.finiteness import may_overflow
from tfsafe.rewriting.facts.layouts import same_shape
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.log_space.form import (
    Factored,
    LogForms,
    Widened,
    once,
)
from tfsafe.rewriting.log_space.operations import lists
from tfsafe.rewriting.log_space.operations.carrying import (
    Carried,
    Form,
    Plan,
    loop,
    numbers,
)

# Through which a state may go to be carried on.
_CARRYING = (
    ADDITIONS
    | op_types(OpFact.MOVES)
    | DIVISIONS
    | {
        *(
            "Abs",
            "BatchMatMulV2",
            "ConcatV2",
            "Cumsum",
            "Einsum",
            "Identity",
            "MatMul",
            "Max",
            "Maximum",
        ),
        *("Mean", "Mul", "Neg", "Pack", "Pad", "PadV2", "Pow", "Prod", "SelectV2"),
        *("Square", "Sub", "Sum"),
        *("TensorListGetItem", "TensorListSetItem"),
    }
)


class _Memory(dict[str, "Callable[[Value], dict[int, Carried]] | None"]):
    """By the name of a loop: how to make it."""


class _Plans(dict[str, "Plan | None"]):
    """By the name of a loop: how it carries logarithms."""


def carried(tensor: tf.Tensor, logs: LogForms) -> Factored | None:
    """Factors an output of a loop."""
    place = tensor.value_index
    plan, make = _remembered(tensor.op, logs)
    if plan is None or make is None or place not in plan.results:
        return None
    form = plan.forms[place]

    def part(number: int) -> Build:
        def build(value: Value) -> tf.Tensor:
            made = make(value)[place][number]
            if not plan.is_half or isinstance(value, Widened):
                return made
            if tensor.dtype == tf.variant:
                return lists.narrowed(made, plan.body.outputs[place])
            return tf.cast(made, tensor.dtype)

        return once(build)

    return Factored(
        "log-of-product",
        part(0),
        part(1) if form.has_weight else None,
        is_nonnegative=form.is_nonnegative,
        has_exp=True,
    )


def normalised(
    op: tf.Operation, logs: LogForms
) -> Callable[[Value], list[tf.Tensor]] | None:
    """Returns what makes a loop that divides what it carries by a sum of exponentials.

    What it carries may overflow, and the quotients do not.
    """
    body = loop_graphs(op)[1]
    below = [e.inputs[1] for e in body.get_operations() if e.type in DIVISIONS]
    if not below or not (_overflows(logs.reader) or _overflows(Reader(body))):
        return None
    plan, make = _remembered(op, logs)
    if plan is None or make is None:
        return None
    others = set(plan.moving) - set(plan.results)
    if any(is_float(op.inputs[i]) or op.inputs[i].dtype == tf.variant for i in others):
        return None
    states = {body.inputs[i].name for i in plan.results}
    if not states & _reached(below):
        return None
    whole = make
    return lambda value: numbers(plan, whole(value), value)


def _overflows(reader: Reader) -> bool:
    return any(
        op.type == "Exp" and may_overflow(reader, op.inputs[0])
        for op in reader.operations
    )


def _remembered(
    op: tf.Operation, logs: LogForms
) -> tuple[Plan | None, Callable[[Value], dict[int, Carried]] | None]:
    """Returns how a loop carries logarithms, and what makes it."""
    plans = logs.reader.memory.setdefault(_Plans, _Plans())
    loops = logs.reader.memory.setdefault(_Memory, _Memory())
    if op.name not in plans:
        plans[op.name] = plan = _planned(op, logs)
        loops[op.name] = None if plan is None else once(loop(plan))
    return plans[op.name], loops[op.name]


def _planned(op: tf.Operation, logs: LogForms) -> Plan | None:
    condition, body = loop_graphs(op)
    reader, fixed = Reader(body), unchanged(body)
    dtypes = {x.dtype for e in body.get_operations() for x in e.outputs}
    is_in_half = not dtypes.isdisjoint(precision.HALF)
    if is_in_half and tf.float64 in dtypes:
        return None
    if not (_is_pure(op, body, logs) and _is_pure(op, condition, logs)):
        return None
    outside = {i: _given(x, body, i, logs) for i, x in enumerate(op.inputs)}
    known = {i: each for i, each in outside.items() if each is not None}
    if not _is_exponential(known, reader, logs):
        return None
    moving = _moving(op, fixed, logs)
    given: dict[int, Carried] = {}
    forms = {
        i: Form(not each.is_pure, each.is_nonnegative)
        for i, each in known.items()
        if i in moving
    }
    while forms:
        seeds = {
            body.inputs[i].name: _seed(i, forms.get(i), known[i], body, given)
            for i in known
            if i in fixed or i in forms
        }
        inner = logs.inside(reader, seeds)
        results = {i: inner.parts(body.outputs[i]) for i in forms}
        after = {
            i: Form(
                form.has_weight or not results[i].is_pure,
                form.is_nonnegative and results[i].is_nonnegative,
            )
            for i, form in forms.items()
            if results[i].name and not results[i].is_partial
        }
        if after == forms:
            plan = Plan(
                op, body, condition, forms, moving, results, known, given, is_in_half
            )
            return plan if _is_closed(plan) else None
        forms = after
    return None


def _moving(op: tf.Operation, fixed: Collection[int], logs: LogForms) -> list[int]:
    """Returns the positions of the loop variables that change and matter.

    Those that keep what the gradient of a tape reads do not matter: it is taken again.
    """
    used = [i for i, each in enumerate(op.outputs) if logs.reader.is_read(each)]
    return sorted(live_variables(op, used) - set(fixed))


def _is_pure(op: tf.Operation, graph: tf.Graph, logs: LogForms) -> bool:
    """Returns whether a graph may be run twice, and takes no gradient inside."""
    places = {each.name: i for i, each in enumerate(graph.inputs)}
    for each in graph.get_operations():
        if each.type == "Placeholder" and each.outputs[0].name not in places:
            return False
        if each.type == "ReadVariableOp":
            place = places.get(each.inputs[0].name)
            if place is None or logs.reader.is_written(op.inputs[place]):
                return False
        elif each.op_def.is_stateful:
            return False
    return True


def _is_exponential(known: dict[int, Factored], reader: Reader, logs: LogForms) -> bool:
    """Returns whether an exponential or a probability is what a loop works on."""
    if any(each.name for each in known.values()):
        return True
    inner = logs.inside(reader, {})
    return any(
        inner.of(each) is not None
        for op in reader.operations
        for each in op.outputs
        if is_float(each)
    )


def _given(x: tf.Tensor, body: tf.Graph, place: int, logs: LogForms) -> Factored | None:
    """Factors what a loop is given for one of its variables."""
    if x.dtype == tf.variant:
        return logs.of(x) or lists.empty(x, body.outputs[place])
    if not is_float(x) or x.shape.rank is None:
        return None
    state = body.inputs[place]
    is_kept = same_shape(x, state) and same_shape(state, body.outputs[place])
    return logs.parts(x) if is_kept else None


def _seed(
    place: int,
    form: Form | None,
    outside: Factored,
    body: tf.Graph,
    given: dict[int, Carried],
) -> Factored:
    """Factors an input of a body; `form` is None for one that never changes."""
    if form is None and not outside.name:
        if not is_float(body.inputs[place]):
            return outside
        return Factored(
            "",
            None,
            lambda value: value(body.inputs[place]),
            is_nonnegative=outside.is_nonnegative,
        )
    if form is None:
        form = Form(not outside.is_pure, outside.is_nonnegative)
    return Factored(
        "log-of-product",
        lambda _: given[place][0],
        (lambda _: given[place][1]) if form.has_weight else None,
        is_nonnegative=form.is_nonnegative,
        has_exp=True,
    )


def _is_closed(plan: Plan) -> bool:
    """Returns whether nothing needs the numbers whose logarithms are carried."""
    others = [plan.body.outputs[i] for i in plan.moving if i not in plan.results]
    reached = _reached(others) | _reached(plan.condition.outputs)
    inputs = {
        graph.inputs[i].name
        for graph in (plan.body, plan.condition)
        for i in plan.results
    }
    if inputs & reached:
        return False
    wanted = _reached([plan.body.outputs[i] for i in plan.results])
    moved = {plan.body.inputs[i].name for i in plan.results}
    for op in plan.body.get_operations():
        is_moved = any(each.name in moved for each in op.inputs)
        if is_moved and op.outputs[0].name in wanted:
            if op.type not in _CARRYING:
                return False
            moved.update(each.name for each in op.outputs)
    return True


def _reached(tensors: Iterable[tf.Tensor]) -> set[str]:
    queue, seen = list(tensors), set()
    while queue:
        tensor = queue.pop()
        if tensor.name not in seen:
            seen.add(tensor.name)
            queue.extend(tensor.op.inputs)
    return seen
