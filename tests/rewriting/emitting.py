"""Runs one function through rules, as planned by the production planner."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe.graph._emit import Emission
from tfsafe.rewriting.engine.planner import Planner
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.engine.tape_recording import Recording


def in_modes(*names: str) -> list[tuple[str, str]]:
    """Returns each name with two modes: with the graph, and with one of the others."""
    others = itertools.cycle(("xla", "eager"))
    return [(name, mode) for name in names for mode in ("graph", next(others))]


def fired(rules: Sequence[Rule], function: Callable[..., Any], *args: Any) -> list[str]:
    """Returns the names of the rules that match, in the order of the program.

    Args:
      rules: The table, in the order in which its rules are tried.
      function: Of tensors.
      *args: Tensors, or specifications of tensors.
    """
    graph = _graph(function, args)
    planner = Planner(rules, Recording())
    emit = tf.function(
        lambda *inputs: Emission(plan=planner.plan).emit(graph, inputs),
        autograph=False,
    )
    emit.get_concrete_function(*(tf.TensorSpec(x.shape, x.dtype) for x in graph.inputs))
    return [rewrite.rule.name for rewrite in planner.rewrites([graph])]


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
        planner = Planner(rules, Recording())
        return Emission(plan=planner.plan).emit(graph, args)[0]

    return tf.function(run, autograph=False)


def _graph(function: Callable[..., Any], args: Sequence[Any]) -> tf.Graph:
    specs = [
        arg if isinstance(arg, tf.TensorSpec) else tf.TensorSpec(arg.shape, arg.dtype)
        for arg in args
    ]
    traced = tf.function(function, autograph=False)
    return traced.get_concrete_function(*specs).graph


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
