"""Makes a loop that carries logarithms, and the numbers that it carried."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import Emission, maximum_iterations, unchanged
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import weighted_exp
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.log_space.form import Factored, Widened
from tfsafe.rewriting.log_space.operations import lists

# What is carried for one state: its logarithm, or its exponent and its weight.
Carried = tuple[Any, ...]
# Weights beyond it, and below its inverse, go into the exponent.
_LARGEST = 1e6


class Form(NamedTuple):
    """How one state is carried.

    Attributes:
      has_weight: As a weight and an exponent; otherwise as a logarithm.
      is_nonnegative: Whether the state cannot be negative.
    """

    has_weight: bool
    is_nonnegative: bool


class Plan(NamedTuple):
    """How a loop carries logarithms.

    Attributes:
      op: The loop.
      body: Its body.
      condition: Its condition.
      forms: By the position of a loop variable, how it is carried.
      moving: The positions of all loop variables that change and matter.
      results: By position, the factors of what the body returns.
      outside: By position, the factors of what the loop is given.
      given: What the seeds build while the loop is made, by position.
      is_half: Whether the loop is one of half precision, carried in float32.
    """

    op: tf.Operation
    body: tf.Graph
    condition: tf.Graph
    forms: dict[int, Form]
    moving: Sequence[int]
    results: dict[int, Factored]
    outside: dict[int, Factored]
    given: dict[int, Carried]
    is_half: bool

    def wide(self, value: Value) -> Value:
        """Returns what gives the tensors in the dtype in which they are carried."""
        is_plain = not self.is_half or isinstance(value, Widened)
        return value if is_plain else Widened(value, tf.float32)


def loop(plan: Plan) -> Callable[[Value], dict[int, Carried]]:
    """Returns what makes the loop, and gives what it carried at the end."""
    op, body = plan.op, plan.body
    moving, fixed = plan.moving, unchanged(body)

    def make(value: Value) -> dict[int, Carried]:
        wide = plan.wide(value)
        if plan.is_half and isinstance(value, Widened):
            value = value.value
        inputs = {i: value(x) for i, x in enumerate(op.inputs) if i not in plan.results}
        start = [
            _started(plan, i, wide) if i in plan.results else (inputs[i],)
            for i in moving
        ]
        constants = {
            i: _pair(plan.outside[i], wide)
            for i in fixed
            if i in plan.outside and plan.outside[i].name
        }

        def filled(states: Sequence[Carried]) -> list[Any]:
            whole = dict(inputs)
            plan.given.clear()
            plan.given.update(constants)
            for i, state in zip(moving, states, strict=True):
                dtype = op.inputs[i].dtype
                whole[i] = _number(state, dtype) if i in plan.results else state[0]
                plan.given[i] = state
            return [whole[i] for i in range(len(op.inputs))]

        def goes_on(*states: Carried) -> tf.Tensor:
            return Emission().emit(plan.condition, filled(states))[0]

        def step(*states: Carried) -> list[Carried]:
            emission = Emission(plan=lambda graph, _: _outputs(plan, graph, received))
            received: dict[int, Carried] = {}
            made = emission.emit(body, filled(states), wanted=tuple(moving))
            return [
                received.get(i, (each,)) for i, each in zip(moving, made, strict=True)
            ]

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


def numbers(plan: Plan, ends: dict[int, Carried], value: Value) -> list[tf.Tensor]:
    """Returns the outputs of the loop that is replaced."""

    def output(place: int) -> tf.Tensor:
        if place not in ends:
            return value(plan.op.inputs[place])
        if place not in plan.results:
            return ends[place][0]
        state = ends[place]
        if state[0].dtype == tf.variant:
            return lists.numbers(state, plan.body.outputs[place])
        return _number(state, plan.op.outputs[place].dtype)

    return [output(i) for i in range(len(plan.op.outputs))]


def _filled(op: tf.Operation, inputs: dict[int, Any]) -> list[Any]:
    return [inputs.get(i) for i in range(len(op.inputs))]


def _outputs(plan: Plan, graph: tf.Graph, received: dict[int, Carried]) -> Any:
    """Returns how to make what a body returns for the states that are carried."""
    if graph is not plan.body:
        return {}

    def maker(place: int) -> Callable[[Value], Sequence[tf.Tensor]]:
        def make(value: Value) -> Sequence[tf.Tensor]:
            result = plan.results[place]
            received[place] = _state(result, plan.given[place], plan.wide(value))
            return [received[place][0]]

        make.reads = ()  # type: ignore[attr-defined]
        return make

    return {plan.body.outputs[i].op.name: maker(i) for i in plan.results}


def _state(result: Factored, before: Carried, value: Value) -> Carried:
    """Returns what is carried on for one state."""
    log = _like(result.exponent(value), before[0])
    if len(before) == 1:
        return (log,)
    if log.dtype == tf.variant:
        return (log, before[1] if result.weight is None else result.weight(value))
    weight = 1.0 if result.weight is None else result.weight(value)
    return _balanced(log, _like(weight, before[1]))


def _balanced(log: tf.Tensor, weight: tf.Tensor) -> Carried:
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


def _pair(outside: Factored, value: Value) -> Carried:
    if outside.log is None:
        return outside.pair(value)[::-1]
    if outside.is_pure:
        return (outside.exponent(value),)
    weight = outside.weight(value)  # type: ignore[misc]
    return (outside.exponent(value), weight)


def _started(plan: Plan, place: int, value: Value) -> Carried:
    """Returns what is carried at the start for one state."""
    x, outside = plan.op.inputs[place], plan.outside[place]
    has_weight = plan.forms[place].has_weight
    if x.dtype == tf.variant:
        log = outside.exponent(value)
        if not has_weight:
            return (log,)
        if outside.weight is not None:
            return (log, outside.weight(value))
        return (log, lists.ones(log, plan.body.outputs[place], value))
    zeros = tf.zeros_like(value(x))
    log = tf.convert_to_tensor(outside.exponent(value), zeros.dtype) + zeros
    if not has_weight:
        return (log,)
    weight = 1.0 if outside.weight is None else outside.weight(value)
    return (log, tf.convert_to_tensor(weight, zeros.dtype) + zeros)


def _number(state: Carried, dtype: tf.DType) -> tf.Tensor:
    """Returns the number that a state is."""
    if dtype == tf.variant:
        return state[0]
    made = ops.exp(state[0]) if len(state) == 1 else weighted_exp(*state[::-1])
    return tf.cast(made, dtype)
