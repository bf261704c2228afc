"""Running one function through a table of rules, without the driver."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe.graph._emit import Emission
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.facts.tensors import Reader


def in_modes(*names: str) -> list[tuple[str, str]]:
    """Returns each name with two modes: with the graph, and with one of the others."""
    others = itertools.cycle(("xla", "eager"))
    return [(name, mode) for name in names for mode in ("graph", next(others))]


def _matches(rules: Sequence[Rule], op: tf.Operation, reader: Reader) -> Any:
    for rule in rules:
        if op.type in rule.op_types:
            build = rule.match(op, reader)
            if build is not None:
                return rule.name, build
    return None


def fired(rules: Sequence[Rule], function: Callable[..., Any], *args: Any) -> list[str]:
    """Returns the names of the rules that match, in the order of the program.

    Args:
      rules: The table, in the order in which its rules are tried.
      function: Of tensors.
      *args: Tensors, or specifications of tensors.
    """
    graph = _graph(function, args)
    reader = Reader(graph)
    found = (_matches(rules, op, reader) for op in graph.get_operations())
    return [match[0] for match in found if match is not None]


def rewritten(
    rules: Sequence[Rule], function: Callable[..., Any], *specs: Any
) -> Callable[..., tf.Tensor]:
    """Returns `function` with its operations made as the rules say.

    Args:
      rules: The table, in the order in which its rules are tried.
      function: Of tensors; returns one.
      *specs: What to trace it with, in place of the arguments of the call.
    """

    def run(*args: Any) -> tf.Tensor:
        graph = _graph(function, specs or args)
        return Emission(plan=lambda g: _plan(rules, g)).emit(graph, args)[0]

    return tf.function(run, autograph=False)


def _graph(function: Callable[..., Any], args: Sequence[Any]) -> tf.Graph:
    specs = [
        arg if isinstance(arg, tf.TensorSpec) else tf.TensorSpec(arg.shape, arg.dtype)
        for arg in args
    ]
    traced = tf.function(function, autograph=False)
    return traced.get_concrete_function(*specs).graph


def _plan(rules: Sequence[Rule], graph: tf.Graph) -> dict[str, Any]:
    reader = Reader(graph)
    plan = {}
    for op in graph.get_operations():
        match = _matches(rules, op, reader)
        if match is not None:
            plan[op.name] = _maker(op, match[1])
    return plan


def _maker(op: tf.Operation, build: Any) -> Any:
    def make(value: Any) -> list[tf.Tensor]:
        twin = tf.identity(build(value))
        assert twin.dtype == op.outputs[0].dtype
        assert twin.shape.is_compatible_with(op.outputs[0].shape), op
        return [twin]

    return make


def _slopes(
    values: Sequence[tf.Tensor], args: Sequence[tf.Tensor], upstreams: Any = None
) -> list[tf.Tensor]:
    # Not by a tape, which does not see how an emission makes operations.
    return tf.gradients(
        list(values), list(args), upstreams, unconnected_gradients="zero"
    )


def silent_gradients(
    rules: Sequence[Rule], function: Callable[..., Any], args: Sequence[tf.Tensor]
) -> list[tf.Tensor]:
    """Returns what must be 0: see `tests.support.modes.silent_gradients`."""
    inlined = rewritten(rules, function).python_function

    @tf.function(autograph=False)
    def run(*args: tf.Tensor) -> list[tf.Tensor]:
        value = inlined(*args)
        firsts = _slopes([value], args, [tf.zeros_like(value)])
        slopes = _slopes([value], args)
        zeros = [tf.zeros_like(slope) for slope in slopes]
        return [*firsts, *_slopes(firsts, args), *_slopes(slopes, args, zeros)]

    return run(*args)


def second_gradients(
    rules: Sequence[Rule],
    function: Callable[..., Any],
    args: Sequence[tf.Tensor],
    mode: str,
) -> list[tf.Tensor]:
    """Returns the gradients of the sum of all gradients."""
    inlined = rewritten(rules, function).python_function

    @tf.function(autograph=False, jit_compile=mode == "xla")
    def run(*args: tf.Tensor) -> list[tf.Tensor]:
        return _slopes(_slopes([inlined(*args)], args), args)

    return run(*args)
