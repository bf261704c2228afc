"""`python -m tfsafe run` of programs with several workers or parameter servers."""

import textwrap

import pytest

from tests.support.processes import free_ports, outputs

pytestmark = pytest.mark.slow

WAYS = {
    "watch": ["-m", "tfsafe", "run"],
    "both": ["-m", "tfsafe", "run", "--checks", "full", "--stabilize"],
}

WORKER = textwrap.dedent("""
    import json
    import os
    import sys

    index, *ports = map(int, sys.argv[1:])
    os.environ["TF_CONFIG"] = json.dumps({
        "cluster": {"worker": [f"127.0.0.1:{port}" for port in ports]},
        "task": {"type": "worker", "index": index},
    })
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    import keras

    with strategy.scope():
        weights = tf.Variable([[1.0], [2.0]])
        variable = keras.Variable([1.0, 1.0], name="w")
        optimizer = keras.optimizers.SGD(0.1)
        optimizer.build([variable])

    def step(x):
        with tf.GradientTape() as tape:
            out = tf.math.log(1.0 + tf.exp(x @ weights))
            loss = tf.reduce_mean((out - 1.0) ** 2)
        gradient = tape.gradient(loss, weights)
        group = tf.distribute.get_replica_context()
        weights.assign_sub(0.1 * group.all_reduce("sum", gradient))
        optimizer.apply([tf.reshape(gradient, [2])], [variable])
        return loss

    @tf.function
    def train(x):
        return strategy.reduce("sum", strategy.run(step, args=(x,)), axis=None)

    for i in range(3):
        x = tf.random.stateless_normal([4, 2], [i, index])
        print("%.5f" % train(x))
    print(["%.5f" % v for v in weights.numpy().ravel()])
    print(["%.5f" % v for v in variable.numpy()])
""")

SERVERS = textwrap.dedent("""
    import socket

    import tensorflow as tf

    def free_port():
        with socket.socket() as open_:
            open_.bind(("127.0.0.1", 0))
            return open_.getsockname()[1]

    jobs = {name: [f"127.0.0.1:{free_port()}"] for name in ("worker", "ps")}
    spec = tf.train.ClusterSpec(jobs)
    servers = [
        tf.distribute.Server(spec, job_name=name, task_index=0, protocol="grpc")
        for name in jobs
    ]
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        spec, rpc_layer="grpc"
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable([[1.0], [2.0]])

    @tf.function
    def step(seed):
        def replica(seed):
            x = tf.random.stateless_normal([4, 2], seed)
            with tf.GradientTape() as tape:
                out = tf.math.log(1.0 + tf.exp(x @ weights))
                loss = tf.reduce_mean((out - 1.0) ** 2)
            weights.assign_sub(0.1 * tape.gradient(loss, weights))
            return loss

        return strategy.run(replica, args=(seed,))

    for i in range(3):
        remote = coordinator.schedule(step, args=(tf.constant([i, 1]),))
        coordinator.join()
        print("%.5f" % remote.fetch())
    print(["%.5f" % v for v in weights.numpy().ravel()])
""")


def of_workers(way, folder, program=WORKER):
    (folder / "worker.py").write_text(program)
    ports = free_ports(2)
    return outputs([[*way, "worker.py", str(i), *ports] for i in range(2)], folder)


def of_servers(way, folder):
    (folder / "servers.py").write_text(SERVERS)
    return outputs([[*way, "servers.py"]], folder)


@pytest.mark.parametrize("programs", [of_workers, of_servers])
def test_a_program_prints_the_same(programs, tmp_path):
    plain = programs([], tmp_path)
    assert all(plain)
    for name, way in WAYS.items():
        assert programs(way, tmp_path) == plain, name


def test_infinities_on_one_worker_end_both_with_a_finding(tmp_path):
    """The gradients of both are summed, and none waits for the other."""
    step = 'print("%.5f" % train(x))'
    caught = """try:
        train(x / (1.0 - i * index))
    except Exception as error:
        print(type(error).__name__)
        break"""
    assert step in WORKER
    found = of_workers(WAYS["watch"], tmp_path, WORKER.replace(step, caught))
    assert [each.splitlines()[0] for each in found] == ["NumericsError"] * 2
