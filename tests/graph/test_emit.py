"""A graph that is emitted again does what it did, and can be differentiated."""

import math
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import _compat
from tfsafe.graph import Emission


def again(function, *args, emission=None, **options):
    """Traces a function and gives the twin of the trace."""
    concrete = tf.function(function, autograph=True, **options).get_concrete_function(
        *args
    )
    emission = emission or Emission()

    @tf.function(autograph=False, **options)
    def twin(*given):
        inputs = [*given, *concrete.captured_inputs]
        outputs = emission.emit(concrete.graph, inputs, concrete.variables)
        flat = concrete.structured_outputs
        return tf.nest.pack_sequence_as(flat, outputs, expand_composites=True)

    return twin


def straight(x):
    y = tf.nn.softmax(tf.reshape(x, [2, 2]), axis=0)
    parts = tf.split(y, 2)
    return {"a": tf.concat(parts, 1), "b": (tf.reduce_sum(x), tf.sort(x))}


def loop(x):
    i = tf.constant(0)
    while i < 3:
        x = x * tf.sin(x) + tf.cast(i, x.dtype)
        i += 1
    return x


def bounded(x):
    return tf.while_loop(
        lambda i, _: i < 5,
        lambda i, y: (i + 1, y * tf.cos(y)),
        (0, x),
        maximum_iterations=3,
    )[1]


def bounded_by_a_tensor(x):
    # As Keras bounds its recurrent layers.
    longest = tf.reduce_max(tf.stack([tf.shape(x)[0] - 2, 1]))
    return tf.while_loop(
        lambda i, _: i < longest,
        lambda i, y: (i + 1, y * tf.cos(y)),
        (0, x),
        maximum_iterations=longest,
    )[1]


def branch(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x), lambda: tf.exp(x)) * x


def nested(x):
    for _ in tf.range(2):
        if x[0] > 0.5:
            x = tf.sin(x) * x
        else:
            for _ in tf.range(3):
                x = x + 0.25
    return x


def case(x):
    return tf.switch_case(
        tf.cast(x[0] * 4, tf.int32), [lambda: x, lambda: x * x, lambda: tf.exp(x)]
    )


def mapped(x):
    return tf.map_fn(lambda each: tf.exp(-each) * x[0], x)


def scanned(x):
    return tf.scan(lambda a, b: tf.tanh(a * b) + b, x)


def vectorized(x):
    return tf.vectorized_map(lambda each: tf.exp(each) * x, x)


@tf.function
def inner(x):
    return tf.tanh(x) * x


@tf.function(jit_compile=True)
def compiled(x):
    return tf.exp(x) * x


def calling(x):
    return inner(x) + compiled(inner(x))


@tf.custom_gradient
def doubled(x):
    y = tf.exp(x)

    def grad(upstream):
        return 2 * y * upstream

    return x * x, grad


def custom(x):
    return doubled(tf.sin(x)) * x


def custom_in_a_loop(x):
    for _ in tf.range(3):
        x = doubled(tf.sin(x)) * x
    return x


def sine(x):
    @tf.custom_gradient
    def function(x):
        # TensorFlow's own gradient of a branch needs it captured, as stable forms do.
        return tf.sin(x), lambda upstream: tf.cos(x) * upstream

    return function(_compat.captured(x))


def custom_in_a_branch(x):
    y = tf.exp(x)
    return tf.cond(x[0] > 0, lambda: sine(y), lambda: -y)


def custom_in_nested_branches(x):
    y = tf.exp(x)
    return tf.cond(
        x[0] > 0,
        lambda: tf.cond(x[1] > 0, lambda: -y, lambda: sine(y) * y),
        lambda: y,
    )


def custom_in_a_case(x):
    return tf.switch_case(
        tf.cast(x[0] * 4, tf.int32), [lambda: x, lambda: sine(x), lambda: -x]
    )


def custom_of_what_a_loop_keeps(x):
    y = x
    for _ in tf.range(3):
        y += tf.cond(y[0] < 1.0, lambda: sine(x), lambda: x)
    return y


def recomputed(x):
    return tf.recompute_grad(lambda y: tf.exp(tf.sin(y)))(x) * x


def gradient_inside(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loop(x)
    return tape.gradient(y, x)


PROGRAMS = [
    bounded,
    bounded_by_a_tensor,
    branch,
    calling,
    case,
    custom,
    custom_in_a_branch,
    custom_in_a_case,
    custom_in_a_loop,
    custom_in_nested_branches,
    custom_of_what_a_loop_keeps,
    gradient_inside,
    loop,
    mapped,
    nested,
    recomputed,
    scanned,
    vectorized,
]
X = np.array([0.3, -0.7, 1.1, 0.6], np.float32)


def derivatives(function, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        first = tape.gradient(y, x)
    return y, first, outer.gradient(first, x)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_value_and_gradient_are_those_of_the_program(program):
    x = tf.constant(X)
    y, first = twice(tf.function(program), x)
    y2, first2 = twice(again(program, x), x)
    np.testing.assert_array_equal(y, y2)
    assert_close(first, first2)


def twice(function, x):
    return modes.value_and_gradients(function, [x], "eager")


@pytest.mark.parametrize(
    "program",
    [branch, custom, bounded, calling],
    ids=lambda each: each.__name__,
)
def test_the_gradient_of_the_gradient_is_that_of_the_program(program):
    x = tf.constant(X)
    expected = tf.function(lambda x: derivatives(program, x), autograph=True)(x)
    twin = again(program, x)
    given = tf.function(lambda x: derivatives(twin, x))(x)
    for one, other in zip(expected, given, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize(
    "program",
    [bounded, bounded_by_a_tensor, branch, calling, custom],
    ids=lambda each: each.__name__,
)
def test_under_xla_too(program):
    x = tf.constant(X)
    expected = tf.function(lambda x: twice(program, x), jit_compile=True)(x)
    twin = again(program, x)
    given = tf.function(lambda x: twice(twin, x), jit_compile=True)(x)
    for one, other in zip(expected, given, strict=True):
        assert_close(one, other)


def test_structures_come_back():
    x = tf.constant(X)
    expected, given = straight(x), again(straight, x)(x)
    tf.nest.map_structure(np.testing.assert_array_equal, expected, given)


def test_a_training_step_is_repeated_bit_for_bit():
    def build():
        keras.utils.set_random_seed(3)
        model = keras.Sequential([
            keras.Input((5, 3)),
            keras.layers.LSTM(4, recurrent_dropout=0.3),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.4),
            keras.layers.Dense(2),
        ])
        model.compile(keras.optimizers.Adam(0.1), "mse")
        model.optimizer.build(model.trainable_variables)
        return model

    def step(model):
        def run(x, y):
            model.train_step((x, y))
            return x

        return run

    rng = np.random.default_rng(0)
    x = tf.constant(rng.normal(size=(8, 5, 3)), tf.float32)
    y = tf.constant(rng.normal(size=(8, 2)), tf.float32)
    one, other = build(), build()
    plain = tf.function(step(one))
    twin = again(step(other), x, y)
    for _ in range(3):
        plain(x, y)
        twin(x, y)
    for a, b in zip(one.variables, other.variables, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(one.optimizer.variables, other.optimizer.variables, strict=True):
        np.testing.assert_array_equal(a, b)


def test_writes_and_reads_keep_their_order():
    v = tf.Variable(1.0)

    def program(x):
        before = v.read_value()
        v.assign_add(x)
        middle = v.read_value()
        v.assign(v * 2)
        return before, middle, v.read_value()

    given = again(program, tf.constant(2.0))(tf.constant(2.0))
    assert [float(each) for each in given] == [1.0, 3.0, 6.0]


def test_variables_are_captured_and_can_be_differentiated():
    v = tf.Variable([2.0, 3.0])
    assert v.trainable
    twin = again(lambda x: v * tf.sin(x), tf.constant([1.0, 2.0]))
    with tf.GradientTape() as tape:
        y = twin(tf.constant([1.0, 2.0]))
    assert_close(tape.gradient(y, v), np.sin([1.0, 2.0]))


def test_a_plan_takes_the_place_of_operations_in_bodies_too():
    def plan(graph, _):
        return {
            op.name: lambda value, op=op: [value(op.inputs[0]) * 10.0]
            for op in graph.get_operations()
            if op.type == "Sin"
        }

    x = tf.constant([0.3])
    twin = again(loop, x, emission=Emission(plan=plan))
    expected = 0.3
    for i in range(3):
        expected = expected * 10 * expected + i
    assert_close(twin(x), [expected])


def test_a_plan_can_read_what_the_program_did_not_need():
    def program(x):
        unused = tf.exp(x)
        del unused
        return tf.sin(x)

    def plan(graph, _):
        exp = next(op for op in graph.get_operations() if op.type == "Exp")
        sin = next(op for op in graph.get_operations() if op.type == "Sin")
        return {sin.name: lambda value: [value(exp.outputs[0])]}

    x = tf.constant([0.3])
    twin = again(program, x, emission=Emission(plan=plan))
    assert_close(twin(x), np.exp(x))


def logarithms(op):
    return [0] if op.type in {"Log", "Sqrt"} else []


def flagged(program, *args):
    emission = Emission(checks=logarithms)
    concrete = tf.function(program).get_concrete_function(*args)

    @tf.function(autograph=False)
    def twin(*given):
        emission.emit(concrete.graph, [*given, *concrete.captured_inputs])
        return emission.flags

    flags = twin(*args)
    assert len(flags) == len(emission.flagged)
    pairs = zip(emission.flagged, flags, strict=True)
    return [op.type for (op, _), bad in pairs if bad]


def test_flags_say_which_outputs_are_not_finite():
    def program(x):
        return tf.sqrt(x) + tf.math.log(x) * tf.sqrt(-x)

    assert flagged(program, tf.constant([1.0, 0.0])) == ["Log", "Sqrt"]


def test_flags_reach_into_loops_branches_and_calls():
    @tf.function(jit_compile=True)
    def inside(x):
        return tf.math.log(x)

    def program(x):
        for i in tf.range(4):
            x = tf.math.log(x - tf.cast(i, tf.float32)) if i == 2 else tf.sqrt(x)
        return inside(x)

    assert sorted(flagged(program, tf.constant(1.0))) == ["Log", "Log", "Sqrt"]
    assert not flagged(lambda x: tf.sqrt(x), tf.constant(1e38))


def test_a_large_float64_is_finite():
    assert not flagged(tf.sqrt, tf.constant([1e300, 4.0], tf.float64))


def test_a_deep_graph_needs_no_recursion():
    def program(x):
        for _ in range(2000):
            x = tf.sin(x)
        return x

    x = tf.constant(0.5)
    assert float(again(program, x)(x)) == float(tf.function(program)(x))


def test_a_tape_in_the_trace_that_is_made_sees_the_counterpart(mode):
    v = tf.Variable([2.0, 3.0])

    @tf.custom_gradient
    def doubled(x):
        return tf.sin(x), lambda upstream: 2 * upstream * tf.cos(x)

    def program(x):
        return v * doubled(x) + tf.gather(x, [1, 0])

    x = tf.constant([1.0, 2.0])
    concrete = tf.function(program).get_concrete_function(x)

    def differentiated(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            inputs = [x, *concrete.captured_inputs]
            (y,) = Emission().emit(concrete.graph, inputs, concrete.variables)
        return tape.gradient(y, [x, v])

    differentiated = tf.function(differentiated, jit_compile=mode == "xla")
    if mode == "eager":
        differentiated = differentiated.get_concrete_function(x)
    in_x, in_v = differentiated(x)
    assert_close(in_x, 2 * np.cos([1.0, 2.0]) * [2, 3] + 1)
    assert_close(in_v, np.sin([1.0, 2.0]))


def chain(length, x):
    for _ in range(length):
        x = tf.sin(tf.exp(x))
    return x


def test_what_a_maker_does_not_ask_for_is_not_made():
    seen = []

    def plan(graph, _):
        # Around the exponential that the sine is taken of.
        return {
            op.name: lambda value, op=op: [tf.cos(value(op.inputs[0].op.inputs[0]))]
            for op in graph.get_operations()
            if op.type == "Sin"
        }

    emission = Emission(plan=plan, observe=lambda op, *_: seen.append(op.type))
    x = tf.constant([0.3])
    twin = again(lambda x: (chain(2, x), tf.exp(x + 1)), x, emission=emission)
    assert_close(twin(x)[0], np.cos(np.cos([0.3])))
    assert seen.count("Exp") == 1


def test_makers_that_ask_for_what_others_make_may_be_many():
    asked = []

    def plan(graph, _):
        def maker(op):
            def make(value):
                asked.append(op.name)
                return [value(op.inputs[0].op.inputs[0]) + 1.0]

            return make

        sines = [op for op in graph.get_operations() if op.type == "Sin"]
        return {op.name: maker(op) for op in sines}

    x = tf.constant(0.0)
    twin = again(lambda x: chain(300, x), x, emission=Emission(plan=plan))
    assert float(twin(x)) == 300
    # Some are asked again after what they need was made.
    assert len(set(asked)) == 300
    assert len(asked) < 900


def test_a_maker_that_asks_late_reads_what_was_there_before_a_write():
    v = tf.Variable([1.0, 2.0])

    def program(i):
        before = tf.raw_ops.ResourceGather(resource=v.handle, indices=i, dtype=v.dtype)
        v.assign([10.0, 20.0])
        return tf.sin(before)

    def plan(graph, _):
        return {
            op.name: lambda value, op=op: [value(op.inputs[0])]
            for op in graph.get_operations()
            if op.type == "Sin"
        }

    i = tf.constant([1])
    twin = again(program, i, emission=Emission(plan=plan))
    assert list(twin(i).numpy()) == [2.0]
    assert list(v.numpy()) == [10.0, 20.0]


def test_a_graph_is_listed_as_often_however_many_operations_are_replaced(monkeypatch):
    listed = []

    def count(function, *args, emission):
        kind = type(function.get_concrete_function(*args).graph)
        plain = kind.get_operations

        def get_operations(graph):
            listed.append(graph)
            return plain(graph)

        monkeypatch.setattr(kind, "get_operations", get_operations)
        listed.clear()
        again(function, *args, emission=emission).get_concrete_function(*args)
        monkeypatch.undo()
        return len(listed)

    def sines(graph, _):
        return {
            op.name: lambda value, op=op: [tf.cos(value(op.inputs[0]))]
            for op in graph.get_operations()
            if op.type == "Sin"
        }

    def chain(length):
        def run(x):
            for _ in range(length):
                x = tf.sin(x)
            return x

        return tf.function(run, autograph=False)

    counts = [
        count(chain(length), tf.constant(1.0), emission=Emission(plan=sines))
        for length in (3, 30)
    ]
    assert counts[0] == counts[1]


def test_the_flags_of_many_operations_are_no_inputs_of_one():
    def run(x):
        for _ in range(600):
            x = tf.sin(x)
        return x

    emission = Emission(checks=lambda op: [0] if op.type == "Sin" else [])
    concrete = tf.function(run, autograph=False).get_concrete_function(tf.zeros([2]))

    @tf.function(autograph=False)
    def flagged(x):
        emission.emit(concrete.graph, [x])
        return emission.flags

    x = tf.constant([1.0, math.nan])
    assert flagged(x).numpy().tolist() == [True] * 600
    operations = flagged.get_concrete_function(x).graph.get_operations()
    assert max(len(op.inputs) for op in operations) <= 256
    # One constant for the axes of all.
    assert sum(op.type == "Const" for op in operations) < 10


def test_a_recomputed_part_reads_a_variable_under_an_eager_tape():
    weight = tf.Variable([0.5, 2.0])
    part = tf.recompute_grad(lambda y: tf.exp(weight * y))

    def gradients(function):
        x = tf.constant([0.25, -1.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, [x, weight])

    expected = gradients(part)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for wrapped in (
            tfsafe.checked(tf.function(part), checks="full"),
            tfsafe.stabilize(tf.function(part)),
        ):
            for ours, theirs in zip(gradients(wrapped), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_equal_constants_are_emitted_once_and_others_each():
    def function(x):
        numbers = [1.0, 1.0, 0.0, -0.0, [1.0], [1.0]]
        parts = [x / tf.constant(each) for each in numbers]
        whole = tf.constant(1) + tf.constant(1)
        return [*parts, x * tf.cast(whole, x.dtype)]

    x = tf.constant([3.0])
    twin = again(function, x).get_concrete_function(x)
    values = [float(each[0]) for each in twin(x)]
    assert values == [3.0, 3.0, math.inf, -math.inf, 3.0, 3.0, 6.0]
    made = [op for op in twin.graph.get_operations() if op.type == "Const"]
    # 1, 0, -0, [1] and the whole number; not what the flags of the emission take.
    used = {tensor.name for op in twin.graph.get_operations() for tensor in op.inputs}
    assert sum(op.outputs[0].name in used for op in made) == 5


def test_a_placeholder_that_is_not_fed_raises_as_it_does():
    def function(x):
        return x + tf.compat.v1.placeholder(tf.float32, [], name="unfed")

    wanted = "You must feed a value for placeholder tensor '.*unfed'"
    for made in (tf.function(function), again(function, tf.constant(1.0))):
        with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
            made(tf.constant(1.0))
