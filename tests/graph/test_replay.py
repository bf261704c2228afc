"""A traced function that is run operation by operation does what it does."""

import logging
import os

import keras
import numpy as np
import optree
import pytest
import tensorflow as tf

from tests.debugging import programs
from tests.support.oracle import assert_close
from tfsafe import graph


def trace(function, *args):
    return tf.function(function, autograph=False).get_concrete_function(*args)


def replay(concrete, *args, **options):
    seen = []
    runner = graph.Replay(seen.append, **options)
    inputs = [*args, *concrete.captured_inputs]
    return runner.run(concrete.graph, inputs), seen


def assert_replays(function, *args):
    concrete = trace(function, *args)
    expected = tf.nest.flatten(concrete(*args), expand_composites=True)
    found, _ = replay(concrete, *args)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


X = tf.constant([[1.0, 2.0, 3.0], [4.0, 0.5, 1.0]])
INDEX = tf.constant(1)


def in_dataset_loop(x):
    total = tf.zeros([])
    for count, row in slices(x).repeat(3).enumerate():
        if count > 4:
            break
        for each in slices(row):
            total += each * tf.cast(count, tf.float32)
    return total


add = tf.add
slices = tf.data.Dataset.from_tensor_slices
FUNCTIONS = {
    "arithmetic": lambda x: tf.reduce_sum(x * x, 1) - tf.reduce_max(x),
    "squeeze": lambda x: tf.squeeze(x[:, :1], axis=[1]),
    "split": lambda x: tf.split(x, 3, axis=1),
    "unstack": tf.unstack,
    "concat": lambda x: tf.concat([x, x + 1.0, x], 0),
    "einsum": lambda x: tf.einsum("ij,kj->ik", x, x),
    "top-k": lambda x: tf.math.top_k(x, 2),
    "strings": lambda x: tf.strings.as_string(x),
    "identity-n": lambda x: tf.identity_n([x, x]),
    "check": lambda x: tf.debugging.check_numerics(x, "bad"),
    "cond": lambda x: tf.cond(x[0, 0] > 2.0, lambda: x, lambda: -x),
    "switch": lambda x: tf.switch_case(INDEX, [lambda: x, lambda: x * 2.0]),
    "switch-default": lambda x: tf.switch_case(INDEX + 7, [lambda: x, lambda: x - 1.0]),
    "while": lambda x: tf.while_loop(
        lambda i, _: i < 4, lambda i, y: [i + 1, y * y], [0, x]
    ),
    "map": lambda x: tf.map_fn(tf.cumsum, x),
    "scan": lambda x: tf.scan(lambda a, b: a * 0.5 + b, x),
    "vectorized": lambda x: tf.vectorized_map(tf.reduce_sum, x),
    "stateless-random": lambda x: x + tf.random.stateless_normal([2, 3], [1, 2]),
    "in-loop-gradient": programs.in_loop_gradient,
    "not-taken": lambda x: (
        x + tf.size(tf.raw_ops.FakeParam(dtype=tf.float32, shape=[0]), tf.float32)
    ),
    "nested-gradient": programs.in_nested_gradient,
    "dataset": lambda x: slices(x).reduce(0.0, lambda total, row: total * 0.5 + row),
    "dataset-scan": lambda x: (
        slices(x).scan(0.0, lambda a, b: (a + b, a)).reduce(x, add)
    ),
    "dataset-map": lambda x: slices(x).map(tf.exp).batch(2).reduce(x, add),
    "dataset-filter": lambda x: (
        slices(x).filter(lambda row: row[0] > 1.0).map(tf.exp).reduce(x, add)
    ),
    "dataset-dict": lambda x: slices({"a": x, "b": -x}).reduce(
        0.0, lambda a, row: a * row["a"] + row["b"]
    ),
    "dataset-ragged": lambda x: slices(tf.ragged.constant([[1.0], [2.0, 4.0]])).reduce(
        0.0, lambda total, row: total * 2.0 + tf.reduce_mean(row)
    ),
    "dataset-empty": lambda x: slices(x).take(0).reduce(x, add),
    "dataset-flat-map": lambda x: slices(x).flat_map(slices).reduce(0.0, add),
    "dataset-loop": tf.autograph.to_graph(in_dataset_loop),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_replay_gives_the_same_values(name):
    assert_replays(FUNCTIONS[name], X)


def test_the_gradient_of_a_branch_that_is_not_taken_is_replayed():
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cond(x[0, 0] > 2.0, lambda: tf.exp(x), lambda: tf.sin(x) * x)
        return tape.gradient(y, x)

    assert_replays(run, X)


def test_a_recurrent_layer_and_its_gradient_are_replayed():
    layer = keras.layers.LSTM(2)
    layer(X[tf.newaxis])

    def run(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(layer(x[tf.newaxis]))
        return tape.gradient(y, layer.trainable_variables)

    assert_replays(run, X)


def test_variables_are_read_and_written_in_the_order_of_the_program():
    count = tf.Variable(1.0)

    def run(x):
        before = count * 2.0
        count.assign_add(x)
        return before + count

    concrete = trace(run, tf.constant(3.0))
    found, _ = replay(concrete, tf.constant(3.0))
    assert found[0].numpy() == 6.0
    assert count.numpy() == 4.0


def test_every_iteration_is_seen_with_its_number():
    _, seen = replay(trace(programs.in_loop, X), X)
    assert [each.loops for each in seen if each.op.type == "Sqrt"] == [(0,), (1,), (2,)]


def test_messages_are_not_printed_again(capfd):
    def run(x):
        tf.print("once")
        tf.debugging.assert_positive(x)
        return x * 1.0

    replay(trace(run, X), X)
    assert "once" not in "".join(capfd.readouterr())


def test_the_kernels_of_xla_are_used_where_xla_compiles():
    def root(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.where(x > 0, tf.sqrt(x), tf.zeros_like(x))
        return tape.gradient(y, x)

    compiled = tf.function(root, jit_compile=True)
    concrete = trace(lambda x: compiled(x), tf.zeros([1]))
    plain, _ = replay(concrete, tf.zeros([1]))
    xla, _ = replay(concrete, tf.zeros([1]), xla=True)
    assert plain[0].numpy() == [0.0]
    assert np.isnan(xla[0].numpy())


def test_an_operation_with_a_device_runs_there():
    def run(x):
        with tf.device("CPU:0"):
            return x * 2.0

    _, seen = replay(trace(run, X), X)
    (product,) = [each for each in seen if each.op.type == "Mul"]
    assert product.op.device
    assert product.outputs[0].device.endswith("CPU:0")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: next(ITERATOR), "`IteratorGetNext` cannot be run a second time"),
        (lambda: tf.reshape(X, [FOUR]), "`Reshape` failed: "),
    ],
    ids=["iterator", "error"],
)
def test_what_cannot_be_replayed_is_reported(function, message):
    with pytest.raises(graph.UnreadableError, match=message):
        replay(trace(function))


ITERATOR = iter(tf.data.Dataset.range(3))
FOUR = tf.Variable(4)


def test_a_function_that_python_does_not_know_is_reported(monkeypatch):
    concrete = trace(programs.in_nested, X)
    monkeypatch.setattr("tfsafe._compat.function_graph", lambda *_: None)
    with pytest.raises(graph.UnreadableError, match=r"function `\w+` is not known"):
        replay(concrete, X)


def test_written_variables_are_found_in_loops_branches_and_nested_functions():
    names = ["read", "nested", "loop", "branch", "switched", "plain"]
    variables = {name: tf.Variable(1.0, name=name) for name in names}

    @tf.function
    def inner():
        variables["nested"].assign(2.0)
        return variables["read"] * 1.0

    def body(i):
        variables["loop"].assign_add(1.0)
        return i + 1

    def add():
        return variables["branch"].assign_add(1.0) + 0.0

    def set_switched():
        return variables["switched"].assign(3.0) + 0.0

    def run(x):
        tf.while_loop(lambda i: i < 2, body, [0])
        tf.cond(x > 0.0, add, lambda: variables["read"] + 0.0)
        tf.identity(variables["plain"].handle)
        variables["plain"].assign(x)
        tf.switch_case(tf.cast(x, tf.int32), [set_switched, set_switched])
        return inner() + tf.gather(variables["read"][tf.newaxis], [0])

    concrete = trace(run, tf.constant(1.0))
    offset = len(concrete.graph.inputs) - len(concrete.captured_inputs)
    handles = {id(each.handle): name for name, each in variables.items()}
    found = {
        handles[id(concrete.captured_inputs[index - offset])]: dtype
        for index, dtype in graph.written_inputs(concrete.graph).items()
    }
    assert found == dict.fromkeys(set(names) - {"read"}, tf.float32)


def test_a_table_is_no_variable():
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)

    def run(x):
        table.insert(tf.constant([1], tf.int64), [x])
        return table.lookup(tf.constant([1], tf.int64))

    concrete = trace(run, tf.constant(1.0))
    assert graph.written_inputs(concrete.graph) == {}


def test_library_files_are_distinguished_from_the_users():
    assert graph.is_user_file(__file__)
    assert graph.is_user_file("<ipython-input-3>")
    for library in (each.__file__ for each in (tf, keras, np, optree, graph)):
        assert not graph.is_user_file(library)
    assert not graph.is_user_file(os.__file__)
    assert graph.is_user_file(pytest.__file__)


def test_an_operation_without_a_stack_has_no_line():
    module = tf.Module()
    module.run = tf.function(tf.exp, input_signature=[tf.TensorSpec([])])
    concrete = module.run.get_concrete_function()
    (op,) = [each for each in concrete.graph.get_operations() if each.type == "Exp"]
    place = graph.locate(op)
    assert not place.is_gradient
    assert place.site is None or place.site.path == __file__


def test_many_kernels_of_xla_are_no_reason_for_a_warning():
    @tf.function(autograph=False, jit_compile=True)
    def roots(x):
        for _ in range(8):
            x = tf.sqrt(x + 1.0)
        return x

    said = []
    handler = logging.Handler()
    handler.emit = said.append
    tf.get_logger().addHandler(handler)
    try:
        concrete = roots.get_concrete_function(X)
        runner = graph.Replay(lambda _: None, xla=True)
        runner.run(concrete.graph, [X], compiled=True)
    finally:
        tf.get_logger().removeHandler(handler)
    assert not said


def test_a_kernel_of_xla_serves_each_shape_that_a_loop_gives_it():
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]

    @tf.function(autograph=False)
    def grown(x):
        return tf.while_loop(
            lambda i, _: i < 3,
            lambda i, y: [i + 1, tf.concat([y, tf.exp(y[-1:])], 0)],
            [tf.constant(0), x],
            shape_invariants=shapes,
        )[1]

    x = tf.constant([0.1])
    concrete = grown.get_concrete_function(x)
    runner = graph.Replay(lambda _: None, xla=True)
    (found,) = runner.run(concrete.graph, [x], compiled=True)
    assert_close(found.numpy(), concrete(x).numpy())
