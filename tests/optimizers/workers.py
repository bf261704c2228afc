"""Run as a script by `test_workers.py`, once for each of two workers on one machine.

Prints a JSON object with what this worker has after a step that is bad on the other.
"""

import json
import os
import sys

import keras
import tensorflow as tf

from tfsafe.optimizers import SafeOptimizer


def main() -> None:
    index, *ports = map(int, sys.argv[1:])
    os.environ["TF_CONFIG"] = json.dumps({
        "cluster": {"worker": [f"127.0.0.1:{port}" for port in ports]},
        "task": {"type": "worker", "index": index},
    })
    # Before anything runs on a device, as it starts the server of this worker.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    results = {
        f"{policy}/{dtype}": run(strategy, policy, dtype)
        for policy in ("replace", "skip")
        # TensorFlow sends no bfloat16 from worker to worker.
        for dtype in ("float32", "float16")
    }
    results["outlier"] = outlier(strategy)
    results["reduced_gradient"] = reduced_gradient(strategy)
    json.dump(results, sys.stdout)


def run(strategy: tf.distribute.Strategy, policy: str, dtype: str) -> dict:
    """Takes three steps; in the second, only the second worker has a NaN."""
    with strategy.scope():
        variable = keras.Variable([1.0, 1.0], dtype=dtype, name="w")
        optimizer = SafeOptimizer(keras.optimizers.SGD(0.0625), policy)
        optimizer.build([variable])

    def step(is_second: tf.Tensor) -> None:
        is_bad = tf.logical_and(is_second, is_second_worker())
        gradient = tf.stack([tf.where(is_bad, float("nan"), 1.0), 1.0])
        optimizer.apply([tf.cast(gradient, dtype)], [variable])

    run_step = compiled(strategy, step)
    for is_second in (False, True, False):
        run_step(tf.constant(is_second))
    return {
        "weights": values_of(variable),
        "steps": optimizer.steps,
        "nonfinite_steps": optimizer.nonfinite_steps,
        "last_nonfinite_variables": optimizer.last_nonfinite_variables,
        "iterations": int(optimizer.iterations.numpy()),
    }


def outlier(strategy: tf.distribute.Strategy) -> dict:
    """Takes four steps of norm 1, and one with an outlier on the second worker."""
    with strategy.scope():
        variable = keras.Variable([1.0])
        sgd = keras.optimizers.SGD(0.0625)
        optimizer = SafeOptimizer(sgd, outlier_threshold=4.0, outlier_window=4)
        optimizer.build([variable])

    def step(is_last: tf.Tensor) -> None:
        is_long = tf.logical_and(is_last, is_second_worker())
        optimizer.apply([tf.where(is_long, [1e3], [1.0])], [variable])

    run_step = compiled(strategy, step)
    for index in range(5):
        run_step(tf.constant(index == 4))
    return {"weights": values_of(variable), "outlier_steps": optimizer.outlier_steps}


def reduced_gradient(strategy: tf.distribute.Strategy) -> float:
    """Measures what plain Keras makes of a gradient of 1 on each worker."""
    with strategy.scope():
        variable = keras.Variable(0.0)
        optimizer = keras.optimizers.SGD(1.0)
        optimizer.build([variable])
    gradient = tf.constant(1.0)
    step = compiled(strategy, lambda _: optimizer.apply([gradient], [variable]))
    step(tf.constant(False))
    return -float(variable.numpy())


def is_second_worker() -> tf.Tensor:
    replica = tf.distribute.get_replica_context()
    return tf.equal(replica.replica_id_in_sync_group, 1)


def compiled(strategy: tf.distribute.Strategy, step):
    @tf.function(autograph=False)
    def run_step(flag: tf.Tensor) -> None:
        strategy.run(step, args=(flag,))

    return run_step


def values_of(variable: keras.Variable) -> list[float]:
    return tf.cast(variable.value, tf.float32).numpy().tolist()


if __name__ == "__main__":
    main()
