"""Joins the results of a step on several replicas."""

from typing import Any

import keras
import tensorflow as tf


def check_strategy(model: keras.Model) -> None:
    """Refuses strategies that a replay cannot follow.

    Raises:
      ValueError: If the replicas are not those of one process.
    """
    reason = why_unchecked(model)
    if reason is not None:
        raise ValueError(reason)


def why_unchecked(model: keras.Model) -> str | None:
    """Returns why the replicas of a model cannot be followed, or None if they can."""
    strategy = model.distribute_strategy
    replicas = strategy.num_replicas_in_sync
    if replicas == 1 or isinstance(strategy, tf.distribute.MirroredStrategy):
        return None
    return (
        "The checks follow a model on the devices of one process. Received: a model "
        f"under {type(strategy).__name__} with {replicas} replicas. Look for the "
        "failure under `tf.distribute.MirroredStrategy`, or on one replica."
    )


def mean(strategy: tf.distribute.Strategy, results: Any) -> Any:
    """Returns the means over the replicas of what a step returned."""
    if strategy.num_replicas_in_sync == 1:
        return results
    return tf.nest.map_structure(
        lambda each: tf.reduce_mean(strategy.experimental_local_results(each), 0),
        results,
    )


def joined(strategy: tf.distribute.Strategy, results: Any) -> Any:
    """Returns the rows of all replicas, in their order."""
    if strategy.num_replicas_in_sync == 1:
        return results
    return tf.nest.map_structure(
        lambda each: tf.concat(strategy.experimental_local_results(each), 0), results
    )
