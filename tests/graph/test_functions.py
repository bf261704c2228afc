"""What a traced function writes, read in time that grows with the function."""

import gc
import threading

import tensorflow as tf

from tfsafe.graph import (
    _functions,
    _stacks,
    locate,
    locate_all,
    stacks_kept,
    written_inputs,
)


def _nested(count):
    variables = [tf.Variable(float(each)) for each in range(count)]
    table = tf.Variable([1.0, 2.0])

    @tf.function
    def inner(x):
        for each in variables[::2]:
            each.assign_add(x)
        return tf.add_n([each.read_value() for each in variables])

    @tf.function
    def step(x):
        return inner(x) + tf.reduce_sum(tf.identity(table))

    graph = step.get_concrete_function(tf.TensorSpec([])).graph
    written = {id(each.handle) for each in variables[::2]}
    captured = {id(inside): id(outside) for outside, inside in graph.captures}
    return graph, {
        index
        for index, each in enumerate(graph.inputs)
        if captured.get(id(each)) in written
    }


def test_variables_that_an_inner_function_writes_are_found():
    graph, expected = _nested(6)
    found = written_inputs(graph)
    assert set(found) == expected
    assert len(expected) == 3
    assert set(found.values()) == {tf.float32}


def test_each_body_is_read_once_for_all_variables(monkeypatch):
    graph, _ = _nested(20)
    read = []

    def counted(op, bodies=_functions.bodies):
        read.append(op.name)
        return bodies(op)

    monkeypatch.setattr(_functions, "bodies", counted)
    written_inputs(graph)
    assert len(read) == len(set(read)) == 1


def test_a_copy_of_a_handle_is_the_variable():
    variable = tf.Variable(1.0)

    @tf.function
    def step():
        handle = tf.raw_ops.Identity(input=variable.handle)
        tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(2.0))

    graph = step.get_concrete_function().graph
    assert written_inputs(graph) == {0: tf.float32}


def test_kept_stacks_give_the_same_stacks():
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sqrt(x) * tf.math.log(x))
            for _ in range(2):
                y += tf.reduce_sum(tf.exp(x))
        return tape.gradient(y, x)

    graph = step.get_concrete_function(tf.TensorSpec([3])).graph
    ops = graph.get_operations()
    alone = {each.name: locate(each, [graph]) for each in ops}
    assert locate_all(ops, [graph]) == alone
    with stacks_kept():
        assert {each.name: locate(each, [graph]) for each in ops} == alone
    lines = {each.site.line for each in alone.values() if each.site}
    assert len(lines) >= 3


def test_graphs_end_while_stacks_are_kept():
    def graph_of(count):
        @tf.function
        def step(x):
            for _ in range(count):
                x = tf.exp(x)
            return x

        return step.get_concrete_function(tf.TensorSpec([2])).graph

    # Stacks are freed with their graph, and later ones are at the same addresses.
    with stacks_kept():
        for index in range(20):
            count = index % 3 + 1
            graph = graph_of(count)
            ops = [each for each in graph.get_operations() if each.type == "Exp"]
            places = locate_all(ops, [graph]).values()
            assert len(places) == count
            assert {each.site.line for each in places} == {
                graph_of.__code__.co_firstlineno + 4
            }
            del graph, ops
            gc.collect()


def test_two_threads_keep_their_own_stacks():
    opened, closed = threading.Event(), threading.Event()

    def other():
        with stacks_kept():
            opened.set()
            closed.wait(10)

    before = _stacks._known.get()
    thread = threading.Thread(target=other)
    with stacks_kept():
        thread.start()
        opened.wait(10)
    closed.set()
    thread.join()
    assert _stacks._known.get() is before is None
