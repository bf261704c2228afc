"""`stabilize` on functions: what it rewrites, and what it leaves as it is."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.formula import (
    GRADIENT,
    LOGITS,
    VALUE,
    log_softmax,
    logits,
    second,
    with_own_tape,
)
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import _compat
from tfsafe.rewriting import stabilize

FIXED = tf.constant([[0.5, -2.0]])
Pair = collections.namedtuple("Pair", ["value", "nothing"])


@pytest.mark.usefixtures("grappler_off")
def test_the_plain_formula_fails_here():
    with tf.GradientTape() as tape:
        x = logits()
        tape.watch(x)
        value = second(x)
    assert np.isneginf(value)
    assert np.isnan(tape.gradient(value, x)[0]).all()


@pytest.mark.parametrize("inner", [None, False, True], ids=["python", "graph", "xla"])
def test_value_and_gradient_are_right_in_every_mode(mode, inner):
    plain = log_softmax
    if inner is not None:
        plain = tf.function(log_softmax, jit_compile=inner)
    function = modes.compile_for(mode, stabilize(plain))
    x = logits()
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
        column = tf.reduce_sum(value[:, 1])
    assert_close(value, VALUE)
    assert_close(tape.gradient(column, x), GRADIENT)


def test_a_tape_inside_the_function_gives_the_stable_gradient(mode):
    value, gradient = modes.compile_for(mode, stabilize(with_own_tape))(logits())
    assert_close(value, -200.3132617)
    assert_close(gradient, GRADIENT)


def test_loops_and_branches_are_rewritten_and_differentiated(mode):
    def function(x):
        def body(i, total):
            picked = tf.switch_case(i, [lambda: second(x), lambda: -second(x)])
            total += tf.cond(i > 0, lambda: picked, lambda: second(x) * 0.5)
            return i + 1, total

        with tf.GradientTape() as tape:
            tape.watch(x)
            _, total = tf.while_loop(
                lambda i, _: i < 3, body, (0, 0.0), maximum_iterations=4
            )
        return total, tape.gradient(total, x)

    total, gradient = modes.compile_for(mode, stabilize(function))(logits())
    # Half of it, and twice with the other sign.
    assert_close(total, 1.5 * 200.3132617)
    assert_close(gradient, -1.5 * np.array(GRADIENT))


def test_autograph_turns_python_loops_and_branches_into_graphs():
    @stabilize
    def function(x, steps):
        total = tf.zeros([])
        for _ in tf.range(steps):
            if tf.reduce_sum(x) < 0:
                total += with_own_tape(x)[0]
        return total

    for steps in (1, 3):
        assert_close(function(logits(), tf.constant(steps)), -200.3132617 * steps)
    assert function.experimental_get_tracing_count() == 1


def test_formulas_meet_across_the_functions_that_are_called():
    @tf.function
    def softmax(x):
        return tf.nn.softmax(x)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.reduce_sum(tf.math.log(softmax(x))[:, 1])
        return value, tape.gradient(value, x)

    # What they were traced to before is not what is rewritten.
    assert np.isnan(step(logits())[1][0, 0])
    value, gradient = stabilize(lambda x: step(x))(logits())
    assert_close(value, -200.3132617)
    assert_close(gradient, GRADIENT)
    assert np.isnan(step(logits())[1][0, 0])


def test_a_function_that_xla_compiles_is_rewritten_within():
    inner = tf.function(with_own_tape, jit_compile=True)
    value, gradient = stabilize(lambda x: inner(x * 1.0))(logits())
    assert_close(value, -200.3132617)
    assert_close(gradient, GRADIENT)


def test_the_outermost_of_nested_stable_functions_rewrites_all():
    inner = stabilize(tf.math.log)

    def outer(x):
        return inner(tf.nn.softmax(x))

    assert np.isneginf(outer(logits())[0, 1])
    assert_close(stabilize(outer)(logits()), VALUE)


class Counter(tf.Module):
    """A train step of one's own, with state."""

    def __init__(self):
        super().__init__()
        self.weights = None
        self.calls = tf.Variable(0)

    def step(self, x):
        if self.weights is None:
            self.weights = tf.Variable(tf.zeros([2, 2]))
        self.calls.assign_add(1)
        seen = self.calls.read_value()
        with tf.GradientTape() as tape:
            loss = -second(x @ self.weights + x)
        gradient = tape.gradient(loss, self.weights)
        self.weights.assign_sub(0.5 * gradient)
        self.calls.assign(self.calls * 10)
        return {"loss": loss, "seen": seen, "after": self.calls.read_value()}


def test_variables_are_captured_and_written_once_and_in_order():
    module = Counter()
    step = stabilize(module.step)
    first = step(logits())
    assert [int(first["seen"]), int(first["after"])] == [1, 10]
    assert_close(first["loss"], 200.3132617)
    weights = module.weights.numpy()
    assert np.isfinite(weights).all()
    assert weights.any()
    again = step(logits())
    assert [int(again["seen"]), int(again["after"])] == [11, 110]
    assert step.experimental_get_tracing_count() == 1


def test_python_effects_happen_in_order_and_once_a_call():
    events = []

    def function(x):
        tf.py_function(lambda: events.append("before"), [], [])
        y = log_softmax(x)
        tf.py_function(lambda v: events.append(float(v)), [y[0, 1]], [])
        return y

    stable = stabilize(function)
    for _ in range(2):
        stable(logits())
    assert events == ["before", -200.0] * 2


def test_the_random_stream_stays_as_it_was():
    def function(x):
        noise = tf.random.uniform([2, 2], seed=1) + tf.nn.dropout(x, 0.5, seed=2)
        noise += tf.random.stateless_normal([2, 2], seed=[3, 4])
        return noise, second(x)

    def drawn(wrapped):
        tf.random.set_seed(7)
        return [wrapped(logits())[0].numpy() for _ in range(3)]

    plain = drawn(tf.function(function))
    np.testing.assert_array_equal(drawn(stabilize(function)), plain)
    assert not np.array_equal(plain[0], plain[1])


def test_a_generator_is_advanced_as_often_as_it_was():
    def drawn(wrap):
        generator = tf.random.Generator.from_seed(5)
        function = wrap(lambda x: second(x) + generator.normal([3]))
        function(logits())
        function(logits())
        return generator.state.numpy()

    np.testing.assert_array_equal(drawn(stabilize), drawn(tf.function))


def test_a_variable_is_read_as_often_as_it_was():
    variable = tf.Variable(2.0)

    def function(x):
        return log_softmax(x * variable) + variable

    def reads(wrap):
        graph = wrap(function).get_concrete_function(logits()).graph
        return [op.type for op in graph.get_operations()].count("ReadVariableOp")

    assert reads(stabilize) == reads(tf.function)


def test_what_no_rule_fits_is_bit_for_bit_the_same():
    def function(x):
        return tf.tanh(x @ tf.transpose(x)) * 0.3 + tf.sin(x[0, 0])

    np.testing.assert_array_equal(
        stabilize(function)(logits()), tf.function(function)(logits())
    )


def test_a_nan_from_outside_stays():
    value = stabilize(log_softmax)(tf.constant([[float("nan"), 0.0], [0.0, 0.0]]))
    assert np.isnan(value[0]).all()
    assert np.isfinite(value[1]).all()


def test_shapes_and_dtypes_stay(dtype):
    function = stabilize(log_softmax)
    spec = tf.TensorSpec([None, 3], dtype)
    concrete = function.get_concrete_function(spec)
    assert concrete.structured_outputs.shape.as_list() == [None, 3]
    assert concrete.structured_outputs.dtype == dtype
    value = function(tf.zeros([4, 3], dtype))
    assert value.dtype == dtype
    unknown = function.get_concrete_function(tf.TensorSpec(None, dtype))
    assert unknown.structured_outputs.shape.rank is None
    assert unknown(tf.zeros([1, 2, 3], dtype)).shape == [1, 2, 3]


def test_retracing_and_caching_are_those_of_a_tf_function():
    traced = []

    @functools.partial(tf.function, reduce_retracing=True)
    def function(x, flag=True, *, scale=1.0):
        traced.append(x.shape)
        return log_softmax(x) * scale if flag else x

    stable = stabilize(function)
    for rows in (1, 2, 3, 4):
        stable(tf.zeros([rows, 2]))
    # The third shape is traced for any number of rows.
    assert len(traced) == 2
    assert traced[-1].as_list() == [None, 2]
    # Defaults are the same call, by position, by name or left out.
    stable(tf.zeros([4, 2]), True, scale=1.0)
    stable(x=tf.zeros([4, 2]))
    assert stable.experimental_get_tracing_count() == 2
    stable(tf.zeros([4, 2]), flag=False)
    assert stable.experimental_get_tracing_count() == 3


def test_an_input_signature_holds():
    spec = tf.TensorSpec([None, 2], tf.float32)
    function = stabilize(tf.function(log_softmax, input_signature=[spec]))
    assert function.input_signature == (spec,)
    for rows in (1, 2):
        assert function(np.zeros([rows, 2])).shape == [rows, 2]
    assert function.experimental_get_tracing_count() == 1


def test_nested_structures_go_in_and_come_out():
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])

    @stabilize
    def function(batch, training, *, extra=None):
        x = log_softmax(batch["x"]) if training else batch["x"]
        return Pair({"log": x, "same": batch["ragged"], "number": 3}, extra)

    result = function({"x": logits(), "ragged": ragged}, training=True)
    assert isinstance(result, Pair)
    assert result.nothing is None
    assert_close(result.value["log"], VALUE)
    assert result.value["same"].to_list() == ragged.to_list()
    assert int(result.value["number"]) == 3
    plain = function({"x": logits(), "ragged": ragged}, training=False)
    assert_close(plain.value["log"], LOGITS)


def test_arrays_lists_and_variables_are_arguments_as_for_a_tf_function():
    variable = tf.Variable(LOGITS)
    function = stabilize(lambda x: log_softmax(tf.convert_to_tensor(x)))
    for argument in (np.array(LOGITS, np.float32), LOGITS, variable):
        assert_close(function(argument), VALUE)
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(function(variable)[:, 1])
    assert_close(tape.gradient(value, variable), GRADIENT)


class Head:
    """Owns methods of all kinds."""

    def __init__(self, scale):
        self.scale = scale

    @stabilize
    def decorated(self, x):
        """Takes logits."""
        return log_softmax(x * self.scale)

    @stabilize(exclude="log-of-softmax")
    def excluded(self, x):
        return log_softmax(x * self.scale)

    def plain(self, x):
        return log_softmax(x * self.scale)


def test_methods_are_bound_to_their_object():
    one, half = Head(1.0), Head(0.5)
    assert_close(one.decorated(logits()), VALUE)
    assert_close(half.decorated(2 * logits()), VALUE)
    assert_close(stabilize(half.plain)(2 * logits()), VALUE)
    assert one.decorated.__name__ == "decorated"
    assert one.decorated.__doc__ == "Takes logits."


def test_a_model_exported_as_a_saved_model_stays_stable(tmp_path):
    class Served(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale = tf.Variable(1.0)
            spec = tf.TensorSpec([None, 2], tf.float32)
            self.with_signature = stabilize(tf.function(log_softmax, (spec,)))

        @stabilize
        def __call__(self, x):
            return log_softmax(x * self.scale)

    module = Served()
    module(logits())
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert_close(loaded(logits()), VALUE)
    assert_close(loaded.with_signature(logits()), VALUE)
    loaded.scale.assign(0.5)
    assert_close(loaded(2 * logits()), VALUE)


def test_functions_that_run_eagerly_are_rewritten_all_the_same():
    function = stabilize(log_softmax)
    tf.config.run_functions_eagerly(True)
    try:
        assert_close(function(logits()), VALUE)
    finally:
        tf.config.run_functions_eagerly(False)


def test_tapes_and_functions_are_as_they_were_after_tracing():
    methods = ("__enter__", "__exit__", "gradient", "reset", "stop_recording")
    before = [getattr(tf.GradientTape, name) for name in methods]

    @stabilize
    def refuses(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        refuses(logits())
    stabilize(with_own_tape)(logits())
    assert [getattr(tf.GradientTape, name) for name in methods] == before
    assert np.isneginf(with_own_tape(logits())[0])


def test_a_function_that_was_loaded_is_called_unchanged(tmp_path):
    module = tf.Module()
    module.f = tf.function(log_softmax, (tf.TensorSpec([2, 2], tf.float32),))
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert_close(stabilize(lambda x: loaded.f(x))(logits()), VALUE)


def test_what_cannot_be_read_is_left_unchanged_and_reported(monkeypatch):
    monkeypatch.setattr(_compat, "function_graph", lambda *_: None)
    inner = tf.function(lambda x: x * 2.0)

    def outer(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = inner(x)
        return {"y": y, "none": None, "slope": tape.gradient(y, x)}

    with pytest.warns(
        RuntimeWarning, match="`outer` is not rewritten because its opera"
    ):
        result = stabilize(outer)(FIXED)
    assert result["none"] is None
    assert_close(result["y"], 2 * FIXED)
    assert_close(result["slope"], tf.fill([1, 2], 2.0))


def test_a_variable_that_is_returned_becomes_a_tensor():
    variable = tf.Variable(3.0)
    result = stabilize(lambda: {"v": variable})()["v"]
    assert isinstance(result, tf.Tensor)
    assert float(result) == 3.0


def test_a_class_is_refused():
    with pytest.raises(TypeError, match=r"not a class. Received: target=Head\."):
        stabilize(Head)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"Received: target=3 of type int\."):
        stabilize(3)


@pytest.mark.usefixtures("grappler_off")
def test_rules_are_chosen_by_name():
    only = stabilize(log_softmax, rules=["log-of-softmax"])
    assert_close(only(logits()), VALUE)
    other = stabilize(log_softmax, rules="log-of-sigmoid")
    assert np.isneginf(other(logits())[0, 1])
    without = stabilize(exclude=["log-of-softmax"])(log_softmax)
    assert np.isneginf(without(logits())[0, 1])
    head = Head(1.0)
    assert np.isneginf(head.excluded(logits())[0, 1])


@pytest.mark.parametrize("argument", ["rules", "exclude"])
def test_a_rule_that_does_not_exist_is_refused(argument):
    with pytest.raises(ValueError, match=rf"`{argument}` names no rule.*'log-of-soft"):
        stabilize(log_softmax, **{argument: ["log-of-softmx"]})
    with pytest.raises(ValueError, match=r"no rule 'qqqq'\. `tfsafe.stabilize.rules"):
        stabilize(log_softmax, **{argument: "qqqq"})
    with pytest.raises(TypeError, match=rf"Received: {argument}=3\."):
        stabilize(log_softmax, **{argument: 3})


def test_the_rules_have_names_of_their_own():
    names = stabilize.rules()
    assert len(set(names)) == len(names)
    assert "log-of-softmax" in names
