"""Writes to variables in a branch, under any distribution strategy."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._patching import Patch

# Variables of fewer bytes are updated side by side.
_LARGE = 2**26


def either(
    condition: tf.Tensor,
    if_true: Callable[[list[Any]], None],
    if_false: Callable[[list[Any]], None],
    args: list[Any],
) -> None:
    """Calls one of two functions with `args`, each in a branch."""

    def on_all(strategy: Any, condition: Any, args: list[Any]) -> None:
        run = strategy.extended.call_for_each_replica
        tf.cond(
            # The same on all replicas.
            strategy.experimental_local_results(condition)[0],
            lambda: run(if_true, args=(args,)),
            lambda: run(if_false, args=(args,)),
        )

    if _compat.strategy_needs_merge_call():
        # A branch within a replica must not leave it, but a write has to: therefore
        # the branch is outside, and the replicas are within.
        replica = tf.distribute.get_replica_context()
        replica.merge_call(on_all, args=(condition, args))
    else:
        tf.cond(condition, lambda: if_true(args), lambda: if_false(args))


def nothing(args: list[Any]) -> None:
    """Leaves the variables unchanged."""


@contextlib.contextmanager
def in_turn(optimizer: Any, variables: Sequence[Any]) -> Iterator[None]:
    """Has an optimizer update large variables one after the other.

    In a branch all gradients are there from the beginning. TensorFlow would compute the
    updates of all variables at once, and need memory for all of them.
    """
    size = sum(math.prod(v.shape) * tf.as_dtype(v.dtype).size for v in variables)
    if tf.executing_eagerly() or tf.distribute.has_strategy() or size < _LARGE:
        yield
        return
    patch = Patch(optimizer, "update_step", _waiting)
    patch.install()
    try:
        yield
    finally:
        patch.remove()


def _waiting(update: Callable[..., None]) -> Callable[..., None]:
    last: list[tf.Operation] = []

    def wait(gradient: Any, variable: Any, learning_rate: Any) -> None:
        graph = tf.compat.v1.get_default_graph()
        with tf.control_dependencies([op for op in last if op.graph is graph]):
            update(gradient, variable, learning_rate)
        last[:] = graph.get_operations()[-1:]

    return wait
