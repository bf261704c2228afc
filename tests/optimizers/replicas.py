"""Run as a script by `test_replicas.py`: TensorFlow splits the CPU at start-up only.

Prints a JSON object with what two replicas have after a step that is bad on one.
"""

import itertools
import json
import sys

import keras
import numpy as np
import tensorflow as tf

import tfsafe
from tfsafe.optimizers import SafeOptimizer

DEVICES = ["CPU:0", "CPU:1"]


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy(DEVICES)
    cases = itertools.product(("replace", "skip"), ("plain", "loss_scale", "eager"))
    results = {
        f"{policy}/{kind}": run(strategy, policy, kind) for policy, kind in cases
    }
    results["fit"] = fit()
    for safe in (True, False):
        results[f"loss_scale_optimizer/{safe}"] = loss_scale_optimizer(strategy, safe)
    results["half"] = half(strategy)
    results["outlier"] = outlier(strategy)
    for policy in ("replace", "zero_variable"):
        results[f"nothing_left/{policy}"] = nothing_left(strategy, policy)
    results["outside"] = {
        part: made_outside(strategy, part) for part in ("wrapper", "inner")
    }
    results["reduced_gradient"] = reduced_gradient(strategy)
    json.dump(results, sys.stdout)


def run(strategy: tf.distribute.Strategy, policy: str, kind: str) -> dict:
    """Takes three steps; in the second, only replica 1 has a NaN."""
    with strategy.scope():
        kernel = keras.Variable(np.ones(3, "float32"), name="kernel")
        table = keras.Variable(np.ones((4, 2), "float32"), name="table")
        unused = keras.Variable(1.0, name="unused")
        guard = SafeOptimizer(
            keras.optimizers.SGD(0.1, momentum=0.5), policy, count_elements=True
        )
        optimizer = guard
        if kind == "loss_scale":
            optimizer = keras.optimizers.LossScaleOptimizer(guard, initial_scale=1.0)
        optimizer.build([kernel, table, unused])

    def step(is_second: tf.Tensor) -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        is_bad = tf.logical_and(is_second, tf.equal(replica, 1))
        first = tf.where(is_bad, float("nan"), 1.0)
        rows = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([2]), tf.constant([4, 2]))
        gradient = tf.stack([first, 1.0, 1.0])
        optimizer.apply([gradient, rows, None], [kernel, table, unused])

    def run_step(is_second: tf.Tensor) -> None:
        strategy.run(step, args=(is_second,))

    if kind != "eager":
        # Converted by AutoGraph, as most functions of users are.
        run_step = tf.function(run_step)
    for is_second in (False, True, False):
        run_step(tf.constant(is_second))
    return {
        "kernel": replicas_of(strategy, kernel),
        "table": replicas_of(strategy, table),
        "iterations": int(guard.iterations.numpy()),
        "steps": guard.steps,
        "nonfinite_steps": guard.nonfinite_steps,
        "last_nonfinite_step": guard.last_nonfinite_step,
        "last_nonfinite_elements": guard.last_nonfinite_elements,
    }


def loss_scale_optimizer(strategy: tf.distribute.Strategy, safe: bool) -> dict:
    """Takes two steps; in the second, only replica 1 has a NaN."""
    module = tfsafe.optimizers if safe else keras.optimizers
    with strategy.scope():
        variable = keras.Variable([1.0])
        optimizer = module.LossScaleOptimizer(
            keras.optimizers.SGD(0.5), initial_scale=4.0
        )
        optimizer.build([variable])

    def step(is_second: tf.Tensor) -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        is_bad = tf.logical_and(is_second, tf.equal(replica, 1))
        optimizer.apply([tf.where(is_bad, float("nan"), [4.0])], [variable])

    @tf.function(autograph=False)
    def run_step(is_second: tf.Tensor) -> None:
        strategy.run(step, args=(is_second,))

    for is_second in (False, True):
        run_step(tf.constant(is_second))
    return {
        "weights": replicas_of(strategy, variable),
        "scales": replicas_of(strategy, optimizer.dynamic_scale),
        "iterations": int(optimizer.inner_optimizer.iterations.numpy()),
    }


def fit() -> dict:
    """Trains with `model.fit`; rows 12 to 15 go to replica 1 in the second step."""
    # TensorFlow 2.16 fails in `fit` if anything is reduced before Adam, unless so.
    reduction = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=reduction)
    with strategy.scope():
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        optimizer = SafeOptimizer(keras.optimizers.Adam(), "skip")
        model.compile(optimizer, "mse")
    x = np.ones((24, 2), "float32")
    x[13] = np.nan
    model.fit(x, np.ones((24, 1), "float32"), batch_size=8, shuffle=False, verbose=0)
    return {
        "iterations": int(optimizer.iterations.numpy()),
        "nonfinite_steps": optimizer.nonfinite_steps,
        "is_finite": all(bool(np.isfinite(w).all()) for w in model.get_weights()),
    }


def half(strategy: tf.distribute.Strategy) -> dict:
    """Takes 16 steps that bfloat16 is too coarse for; one is bad on replica 1."""
    with strategy.scope():
        variable = keras.Variable([1.0, 1.0], dtype="bfloat16")
        sgd = keras.optimizers.SGD(2.0**-11, use_ema=True, ema_momentum=0.0)
        optimizer = SafeOptimizer(sgd, "skip")
        optimizer.build([variable])

    def step(bad_step: tf.Tensor) -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        is_bad = tf.logical_and(bad_step, tf.equal(replica, 1))
        gradient = tf.where(is_bad, float("nan"), tf.ones(2))
        optimizer.apply([tf.cast(gradient, tf.bfloat16)], [variable])

    @tf.function(autograph=False)
    def run_step(is_bad: tf.Tensor) -> None:
        strategy.run(step, args=(is_bad,))

    for index in range(17):
        run_step(tf.constant(index == 5))
    stepped = replicas_of(strategy, variable)
    with strategy.scope():
        variable.assign([3.0, 1.0])
    run_step(tf.constant(True))
    run_step(tf.constant(False))
    assigned = replicas_of(strategy, variable)
    optimizer.finalize_variable_values([variable])
    return {
        "stepped": stepped,
        "assigned": assigned,
        "finalized": replicas_of(strategy, variable),
        "nonfinite_steps": optimizer.nonfinite_steps,
    }


def outlier(strategy: tf.distribute.Strategy) -> dict:
    """Takes eight steps of norm 1, and one with an outlier on replica 1 only."""
    with strategy.scope():
        variable = keras.Variable([1.0])
        optimizer = SafeOptimizer("sgd", outlier_threshold=4.0, outlier_window=8)
        optimizer.build([variable])

    def step(is_outlier: tf.Tensor) -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        is_long = tf.logical_and(is_outlier, tf.equal(replica, 1))
        optimizer.apply([tf.where(is_long, [1e3], [1.0])], [variable])

    @tf.function(autograph=False)
    def run_step(is_outlier: tf.Tensor) -> None:
        strategy.run(step, args=(is_outlier,))

    for index in range(9):
        run_step(tf.constant(index == 8))
    (statistic,) = [v for v in optimizer.variables if "statistic" in v.name]
    return {
        "outlier_steps": optimizer.outlier_steps,
        "iterations": int(optimizer.iterations.numpy()),
        "statistics": replicas_of(strategy, statistic),
    }


def nothing_left(strategy: tf.distribute.Strategy, policy: str) -> list[list]:
    """Takes steps that are bad as a whole on one replica, or on both, or with zeros."""
    nan = float("nan")
    with strategy.scope():
        weights = keras.Variable([1.0, 1.0])
        optimizer = SafeOptimizer(keras.optimizers.SGD(0.1, momentum=0.5), policy)
        optimizer.build([weights])

    def step(of_each: tf.Tensor) -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        optimizer.apply([of_each[replica] * tf.ones(2)], [weights])

    run_step = tf.function(
        lambda of_each: strategy.run(step, args=(of_each,)), autograph=False
    )
    course = []
    for of_each in ([1.0, 1.0], [nan, 1.0], [nan, nan], [0.0, nan], [0.0, 0.0]):
        run_step(tf.constant(of_each))
        iterations = int(optimizer.iterations.numpy())
        course.append([iterations, *replicas_of(strategy, weights)])
    return course


def made_outside(strategy: tf.distribute.Strategy, part: str) -> str:
    """Returns the error for a wrapper or an inner optimizer made out of the scope."""
    inner = keras.optimizers.SGD(0.1)
    outside = SafeOptimizer(inner)
    with strategy.scope():
        optimizer = outside if part == "wrapper" else SafeOptimizer(inner)
        variable = keras.Variable([1.0])
    try:
        strategy.run(lambda: optimizer.apply([tf.constant([1.0])], [variable]))
    except ValueError as error:
        return str(error)
    return ""


def reduced_gradient(strategy: tf.distribute.Strategy) -> float:
    """Measures what plain Keras makes of a gradient of 1 on each replica."""
    with strategy.scope():
        variable = keras.Variable(0.0)
        optimizer = keras.optimizers.SGD(1.0)
        optimizer.build([variable])

    @tf.function(autograph=False)
    def step() -> None:
        strategy.run(lambda: optimizer.apply([tf.constant(1.0)], [variable]))

    step()
    return -float(variable.numpy())


def replicas_of(strategy: tf.distribute.Strategy, variable: keras.Variable) -> list:
    values = strategy.experimental_local_results(variable.value)
    return [value.numpy().tolist() for value in values]


if __name__ == "__main__":
    main()
