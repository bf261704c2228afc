"""Takes a step in a branch, under any distribution strategy."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _compat


def unless(
    skips: tf.Tensor, step: Callable[[list[Any]], None], grads: list[Any]
) -> None:
    """Calls `step(grads)` in a branch, which a skipped step never enters.

    Args:
      skips: Boolean scalar `Tensor`, the same on all replicas.
      step: Takes the step of one replica.
      grads: Gradients of this replica.
    """

    def step_on_all(strategy: Any, skips: Any, grads: list[Any]) -> None:
        tf.cond(
            # The same on all replicas.
            strategy.experimental_local_results(skips)[0],
            lambda: None,
            lambda: strategy.extended.call_for_each_replica(step, args=(grads,)),
        )

    if _compat.strategy_needs_merge_call():
        # A branch within a replica must not leave it, but the step has to: therefore
        # the branch is outside, and the replicas are within.
        replica = tf.distribute.get_replica_context()
        replica.merge_call(step_on_all, args=(skips, grads))
    else:
        tf.cond(skips, lambda: None, lambda: step(grads))
