"""`python -m tfsafe run` of programs with several workers or parameter servers."""

import textwrap

import pytest

from tests.support.processes import free_ports, outputs

pytestmark = pytest.mark.slow

RUN = ["-m", "tfsafe", "run"]

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

CLUSTER = textwrap.dedent("""
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
""")

SERVERS = CLUSTER + textwrap.dedent("""
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


SAFE_OPTIMIZER = textwrap.dedent("""
    import keras

    import tfsafe

    for policy in ("skip", "zero_variable", "replace"):
        with strategy.scope():
            weights = [keras.Variable([1.0, 2.0]), keras.Variable([3.0])]
            inner = keras.optimizers.Adam(0.1)
            optimizer = tfsafe.SafeOptimizer(inner, policy=policy)
            optimizer.build(weights)

        @tf.function
        def step(i):
            def replica(i):
                with tf.GradientTape() as tape:
                    loss = sum(tf.reduce_sum(w.value ** 2) for w in weights)
                first, second = tape.gradient(loss, [w.value for w in weights])
                first += tf.where(i == 1, [float("nan"), 0.0], [0.0, 0.0])
                optimizer.apply([first, second], weights)

            return strategy.run(replica, args=(i,))

        for i in range(4):
            run(step, tf.constant(i))
        print([["%.5f" % v for v in w.numpy()] for w in weights])
        print(int(optimizer.iterations))
""")
# Keras' own `fit` runs under neither strategy. It must fail as it does without us.
MONITORED = textwrap.dedent("""
    import keras

    from tfsafe.callbacks import NumericsMonitor

    levels = ("watch", "domain", "full", None)
    monitors = [NumericsMonitor(checks=level) for level in levels]
    for callbacks in ([], *([monitor] for monitor in monitors)):
        with strategy.scope():
            model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
            model.compile("sgd", "mse")
        try:
            x = tf.ones([8, 2])
            model.fit(x, x[:, :1], batch_size=4, verbose=0, callbacks=callbacks)
            print("trained", float(model.evaluate(x, x[:, :1], verbose=0)))
        except Exception as error:
            print(type(error).__name__, str(error).splitlines()[0])
""")
ON_SERVERS = """
def run(step, i):
    coordinator.schedule(step, args=(i,))
    coordinator.join()
"""
ALONE = """
import tensorflow as tf

strategy = tf.distribute.get_strategy()

def run(step, i):
    step(i)
"""


def of_workers(way, folder, program=WORKER):
    (folder / "worker.py").write_text(program)
    ports = free_ports(2)
    return outputs([[*way, "worker.py", str(i), *ports] for i in range(2)], folder)


def of_servers(way, folder, program=SERVERS):
    (folder / "servers.py").write_text(program)
    return outputs([[*way, "servers.py"]], folder)


@pytest.mark.parametrize("programs", [of_workers, of_servers])
def test_a_program_prints_the_same(programs, tmp_path):
    plain = programs([], tmp_path)
    assert all(plain)
    # The checks of the other levels are among those of `full`.
    way = [*RUN, "--checks", "full", "--stabilize"]
    assert programs(way, tmp_path) == plain


@pytest.mark.parametrize(
    ("programs", "begin"),
    [(of_workers, WORKER.partition("import keras")[0]), (of_servers, CLUSTER)],
    ids=["workers", "servers"],
)
def test_a_monitor_of_any_level_changes_nothing_in_fit(programs, begin, tmp_path):
    for printed in programs([], tmp_path, begin + MONITORED):
        plain, *monitored = printed.splitlines()
        assert monitored == [plain] * 4


def test_infinities_on_one_worker_end_both_with_a_finding(tmp_path):
    """The gradients of both are summed, and none waits for the other."""
    step = 'print("%.5f" % train(x))'
    caught = """try:
        train(x / (1.0 - i * index))
    except Exception as error:
        print(type(error).__name__)
        break"""
    assert step in WORKER
    found = of_workers(RUN, tmp_path, WORKER.replace(step, caught))
    assert [each.splitlines()[0] for each in found] == ["NumericsError"] * 2


def test_a_safe_optimizer_decides_on_parameter_servers_as_on_one_device(tmp_path):
    printed = []
    for name, begin in [("alone", ALONE), ("servers", CLUSTER + ON_SERVERS)]:
        (tmp_path / f"{name}.py").write_text(begin + SAFE_OPTIMIZER)
        printed += outputs([[f"{name}.py"]], tmp_path)
    alone, servers = printed
    assert servers == alone
    assert [each for each in alone.split() if each.isdigit()] == ["3", "4", "4"]
    assert "nan" not in alone
