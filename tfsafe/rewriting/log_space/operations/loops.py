"""Finds the logarithms of what a loop carries, and makes the loop carry them.

A state that is multiplied by probabilities underflows after a few hundred steps. The
loop that is made carries its logarithm; a state that may be negative is carried as a
weight and an exponent.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import (
    ADDITIONS,
    DIVISIONS,
    Emission,
    OpFact,
    loop_graphs,
    maximum_iterations,
    op_types,
    unchanged,
)
from tfsafe.ops.kernels.probability.weighted_exponentials import weighted_exp
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.facts.tensors import Reader, is_float, same_shape
from tfsafe.rewriting.log_space.form import Factored, LogForms, once
from tfsafe.rewriting.log_space.operations import lists

# What is carried for one state: its logarithm, or its exponent and its weight.
_Carried = tuple[Any, ...]
# Through which a state may go to be carried on.
_CARRYING = (
    ADDITIONS
    | op_types(OpFact.MOVES)
    | DIVISIONS
    | {
        *(
            "BatchMatMulV2",
            "ConcatV2",
            "Cumsum",
            "Einsum",
            "Identity",
            "MatMul",
            "Max",
            "Maximum",
        ),
        *("Mean", "Mul", "Neg", "Pack", "Pad", "PadV2", "Prod", "SelectV2", "Square"),
        *("Sub", "Sum"),
        *("TensorListGetItem", "TensorListSetItem"),
    }
)
# Weights beyond it, and below its inverse, go into the exponent.
_LARGEST = 1e6


class _Form(NamedTuple):
    """How one state is carried.

    Attributes:
      has_weight: As a weight and an exponent; otherwise as a logarithm.
      is_nonnegative: Whether the state cannot be negative.
    """

    has_weight: bool
    is_nonnegative: bool


class _Plan(NamedTuple):
    """How a loop carries logarithms.

    Attributes:
      op: The loop.
      body: Its body.
      condition: Its condition.
      forms: By the position of a loop variable, how it is carried.
      results: By position, the factors of what the body returns.
      outside: By position, the factors of what the loop is given.
      given: What the seeds build while the loop is made, by position.
    """

    op: tf.Operation
    body: tf.Graph
    condition: tf.Graph
    forms: dict[int, _Form]
    results: dict[int, Factored]
    outside: dict[int, Factored]
    given: dict[int, _Carried]


class _Memory(dict[str, "Callable[[Value], dict[int, _Carried]] | None"]):
    """By the name of a loop: how to make it."""


class _Plans(dict[str, "_Plan | None"]):
    """By the name of a loop: how it carries logarithms."""


def carried(tensor: tf.Tensor, logs: LogForms) -> Factored | None:
    """Factors an output of a loop."""
    op, place = tensor.op, tensor.value_index
    plans = logs.reader.memory.setdefault(_Plans, _Plans())
    loops = logs.reader.memory.setdefault(_Memory, _Memory())
    if op.name not in plans:
        plans[op.name] = plan = _planned(op, logs)
        loops[op.name] = None if plan is None else once(_loop(plan))
    plan, make = plans[op.name], loops[op.name]
    if plan is None or make is None or place not in plan.results:
        return None
    form = plan.forms[place]
    return Factored(
        "log-of-product",
        once(lambda value: make(value)[place][0]),
        once(lambda value: make(value)[place][1]) if form.has_weight else None,
        is_nonnegative=form.is_nonnegative,
        has_exp=True,
    )


def _planned(op: tf.Operation, logs: LogForms) -> _Plan | None:
    condition, body = loop_graphs(op)
    reader, fixed = Reader(body), unchanged(body)
    if not (_is_pure(op, body, logs) and _is_pure(op, condition, logs)):
        return None
    outside = {i: _given(x, body, i, logs) for i, x in enumerate(op.inputs)}
    known = {i: each for i, each in outside.items() if each is not None}
    if not _is_exponential(known, reader, logs):
        return None
    given: dict[int, _Carried] = {}
    forms = {
        i: _Form(not each.is_pure, each.is_nonnegative)
        for i, each in known.items()
        if i not in fixed
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
            i: _Form(
                form.has_weight or not results[i].is_pure,
                form.is_nonnegative and results[i].is_nonnegative,
            )
            for i, form in forms.items()
            if results[i].name and not results[i].is_partial
        }
        if after == forms:
            plan = _Plan(op, body, condition, forms, results, known, given)
            return plan if _is_closed(plan, fixed) else None
        forms = after
    return None


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
    if not is_float(x) or x.dtype.size < 4 or x.shape.rank is None:
        return None
    state = body.inputs[place]
    is_kept = same_shape(x, state) and same_shape(state, body.outputs[place])
    return logs.parts(x) if is_kept else None


def _seed(
    place: int,
    form: _Form | None,
    outside: Factored,
    body: tf.Graph,
    given: dict[int, _Carried],
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
        form = _Form(not outside.is_pure, outside.is_nonnegative)
    return Factored(
        "log-of-product",
        lambda _: given[place][0],
        (lambda _: given[place][1]) if form.has_weight else None,
        is_nonnegative=form.is_nonnegative,
        has_exp=True,
    )


def _is_closed(plan: _Plan, fixed: set[int]) -> bool:
    """Returns whether nothing needs the numbers whose logarithms are carried."""
    others = [
        each
        for i, each in enumerate(plan.body.outputs)
        if i not in plan.results and i not in fixed
    ]
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


def _reached(tensors: Sequence[tf.Tensor]) -> set[str]:
    queue, seen = list(tensors), set()
    while queue:
        tensor = queue.pop()
        if tensor.name not in seen:
            seen.add(tensor.name)
            queue.extend(tensor.op.inputs)
    return seen


def _loop(plan: _Plan) -> Callable[[Value], dict[int, _Carried]]:
    """Returns what makes the loop, and gives what it carried at the end."""
    op, body = plan.op, plan.body
    fixed = unchanged(body)
    moving = [i for i in range(len(op.inputs)) if i not in fixed]

    def make(value: Value) -> dict[int, _Carried]:
        inputs = {i: value(x) for i, x in enumerate(op.inputs) if i not in plan.results}
        start = [
            _started(plan, i, value) if i in plan.results else (inputs[i],)
            for i in moving
        ]
        constants = {
            i: _pair(plan.outside[i], value)
            for i in fixed
            if i in plan.outside and plan.outside[i].name
        }

        def filled(states: Sequence[_Carried]) -> list[Any]:
            whole = dict(inputs)
            plan.given.clear()
            plan.given.update(constants)
            for i, state in zip(moving, states, strict=True):
                whole[i] = _number(state) if i in plan.results else state[0]
                plan.given[i] = state
            return [whole[i] for i in range(len(op.inputs))]

        def goes_on(*states: _Carried) -> tf.Tensor:
            return Emission().emit(plan.condition, filled(states))[0]

        def step(*states: _Carried) -> list[_Carried]:
            emission = Emission(plan=lambda graph: _outputs(plan, graph, received))
            received: dict[int, _Carried] = {}
            made = emission.emit(body, filled(states))
            return [received.get(i, (made[i],)) for i in moving]

        ends = tf.while_loop(
            goes_on,
            step,
            start,
            shape_invariants=[
                tuple(body.inputs[i].shape for _ in state)
                for i, state in zip(moving, start, strict=True)
            ],
            parallel_iterations=op.get_attr("parallel_iterations"),
            maximum_iterations=maximum_iterations(op, _filled(op, inputs)),
        )
        return dict(zip(moving, ends, strict=True))

    return make


def _filled(op: tf.Operation, inputs: dict[int, Any]) -> list[Any]:
    return [inputs.get(i) for i in range(len(op.inputs))]


def _outputs(plan: _Plan, graph: tf.Graph, received: dict[int, _Carried]) -> Any:
    """Returns how to make what a body returns for the states that are carried."""
    if graph is not plan.body:
        return {}

    def maker(place: int) -> Callable[[Value], Sequence[tf.Tensor]]:
        def make(value: Value) -> Sequence[tf.Tensor]:
            result = plan.results[place]
            received[place] = _state(result, plan.given[place], value)
            return [received[place][0]]

        make.reads = ()  # type: ignore[attr-defined]
        return make

    return {plan.body.outputs[i].op.name: maker(i) for i in plan.results}


def _state(result: Factored, before: _Carried, value: Value) -> _Carried:
    """Returns what is carried on for one state."""
    log = _like(result.exponent(value), before[0])
    if len(before) == 1:
        return (log,)
    if log.dtype == tf.variant:
        return (log, before[1] if result.weight is None else result.weight(value))
    weight = 1.0 if result.weight is None else result.weight(value)
    return _balanced(log, _like(weight, before[1]))


def _balanced(log: tf.Tensor, weight: tf.Tensor) -> _Carried:
    """Moves the size of a very large or small weight into the exponent."""
    size = tf.abs(tf.stop_gradient(weight))
    is_far = ((size > _LARGEST) | (size < 1 / _LARGEST)) & (size > 0)
    is_far &= tf.math.is_finite(size)
    moved = tf.math.log(tf.where(is_far, size, tf.ones_like(size)))
    return log + moved, weight * tf.exp(-moved)


def _like(made: Any, before: tf.Tensor) -> tf.Tensor:
    """Returns a tensor in the shape in which it is carried."""
    if before.dtype == tf.variant:
        return made
    made = tf.convert_to_tensor(made, before.dtype)
    if made.shape == before.shape:
        return made
    return tf.broadcast_to(made, tf.shape(before))


def _pair(outside: Factored, value: Value) -> _Carried:
    if outside.log is None:
        return outside.pair(value)[::-1]
    if outside.is_pure:
        return (outside.exponent(value),)
    weight = outside.weight(value)  # type: ignore[misc]
    return (outside.exponent(value), weight)


def _started(plan: _Plan, place: int, value: Value) -> _Carried:
    """Returns what is carried at the start for one state."""
    x, outside = plan.op.inputs[place], plan.outside[place]
    has_weight = plan.forms[place].has_weight
    if x.dtype == tf.variant:
        log = outside.exponent(value)
        if not has_weight:
            return (log,)
        if outside.weight is not None:
            return (log, outside.weight(value))
        return (log, lists.ones(log, plan.body.outputs[place]))
    zeros = tf.zeros_like(value(x))
    log = tf.convert_to_tensor(outside.exponent(value), x.dtype) + zeros
    if not has_weight:
        return (log,)
    weight = 1.0 if outside.weight is None else outside.weight(value)
    return (log, tf.convert_to_tensor(weight, x.dtype) + zeros)


def _number(state: _Carried) -> tf.Tensor:
    """Returns the number that a state is."""
    if state[0].dtype == tf.variant:
        return state[0]
    if len(state) == 1:
        return ops.exp(state[0])
    return weighted_exp(state[1], state[0])
