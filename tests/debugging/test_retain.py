"""The gradients of intermediate tensors and of layer outputs, against closed forms."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.debugging import retain, retain_gradients, summarize

X = np.array([[1.0, -2.0], [3.0, 0.5]], "float32")


def cube(x):
    """Returns the sum of cubes, by way of named squares."""
    squares = retain(x * x, "squares")
    return tf.reduce_sum(retain(squares * x, "cubes"))


def two_layers(**kwargs):
    return keras.Sequential(
        [
            keras.Input([2]),
            keras.layers.Dense(2, kernel_initializer="ones", name="hidden"),
            keras.layers.Dense(1, kernel_initializer="ones", name="top", **kwargs),
        ],
        name="net",
    )


def test_a_named_tensor_has_its_gradient_in_every_mode(mode):
    def step(x):
        with retain_gradients() as gradients, tf.GradientTape() as tape:
            tape.watch(x)
            loss = cube(x)
            slope = tape.gradient(loss, x)
        return slope, dict(gradients), dict(gradients.outputs)

    slope, gradients, outputs = modes.compile_for(mode, step)(tf.constant(X))
    assert_close(slope, 3 * X**2)
    assert list(gradients) == ["squares", "cubes"]
    np.testing.assert_array_equal(gradients["squares"], X)
    np.testing.assert_array_equal(gradients["cubes"], np.ones_like(X))
    assert_close(outputs["squares"], X**2)


def test_retain_is_nothing_outside_of_a_block():
    x = tf.constant(X)
    assert retain(x, "x") is x


def test_every_layer_of_a_model_leaves_its_gradient():
    model = two_layers()
    with retain_gradients(model) as gradients, tf.GradientTape() as tape:
        tape.gradient(tf.reduce_sum(model(X) * [[2.0], [5.0]]), model.weights)
    assert list(gradients) == ["hidden", "top", "net"]
    np.testing.assert_array_equal(gradients["hidden"], [[2.0, 2.0], [5.0, 5.0]])
    np.testing.assert_array_equal(gradients["top"], [[2.0], [5.0]])
    np.testing.assert_array_equal(gradients["net"], gradients["top"])
    np.testing.assert_array_equal(
        gradients.outputs["hidden"], np.tile(X.sum(1), (2, 1)).T
    )


def test_the_layers_are_hooked_inside_the_block_only():
    model = two_layers()
    before = model(X)
    with retain_gradients(model) as outer:
        with retain_gradients(model, "top") as inner:
            model(X)
        model(X)
    after = model(X)
    assert all("call" not in vars(layer) for layer in [model, *model.layers])
    assert list(inner) == ["top"]
    assert list(outer) == ["hidden", "top", "net", "hidden:1", "top:1", "net:1"]
    np.testing.assert_array_equal(before, after)


def test_an_error_in_the_block_leaves_nothing_behind():
    model = two_layers()
    with pytest.raises(KeyError), retain_gradients(model):
        raise KeyError
    x = tf.constant(X)
    assert "call" not in vars(model)
    assert retain(x, "x") is x
    assert not tf.config.functions_run_eagerly()


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}, {"run_eagerly": True}])
def test_a_step_of_a_compiled_model_is_seen(options):
    model = two_layers()
    model.compile("sgd", "mean_squared_error", **options)
    twin = keras.models.clone_model(model)
    twin.compile("sgd", "mean_squared_error", **options)
    y = np.array([[4.0], [5.0]])
    with retain_gradients(model) as gradients:
        model.train_on_batch(X, y)
    prediction = 2 * X.sum(1, keepdims=True)
    assert_close(gradients["top"], prediction - y)
    # The step did to the weights what it does without.
    twin.train_on_batch(X, y)
    for one, other in zip(model.weights, twin.weights, strict=True):
        assert_close(one, other)
    # And the next one is compiled as if nothing had been.
    assert np.isfinite(model.train_on_batch(X, y))
    assert len(gradients) == 3


def test_each_batch_of_fit_counts():
    model = two_layers()
    model.compile("sgd", "mean_squared_error")
    with retain_gradients(model, ["top"]) as gradients:
        model.fit(X, np.ones([2, 1]), batch_size=1, shuffle=False, verbose=0)
    assert [g.shape for g in gradients.values()] == [(1, 1), (1, 1)]
    assert_close(gradients["top"], [[2 * (2 * X[0].sum() - 1)]], 0.5)


def test_a_function_that_is_compiled_already_is_looked_into():
    @tf.function(jit_compile=True)
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = cube(x)
        return tape.gradient(loss, x)

    slope(tf.constant(X))
    with retain_gradients() as gradients:
        slope(tf.constant(X))
    np.testing.assert_array_equal(gradients["squares"], X)


def test_a_tensor_in_a_loop_leaves_one_gradient_for_each_turn():
    @tf.function
    def power(x):
        y = x
        for _ in tf.range(3):
            y = retain(2.0 * y, "double")
        return y

    x = tf.constant(1.0)
    with retain_gradients() as gradients, tf.GradientTape() as tape:
        tape.watch(x)
        slope = tape.gradient(power(x), x)
    assert float(slope) == 8.0
    assert {name: float(g) for name, g in gradients.items()} == {
        "double": 4.0,
        "double:1": 2.0,
        "double:2": 1.0,
    }


def test_a_loop_that_is_being_traced_is_skipped_and_stays_right():
    @tf.function
    def power(x):
        with retain_gradients() as gradients, tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(
                lambda i, y: i < 3,
                lambda i, y: (i + 1, retain(2.0 * y, "double")),
                [0, x],
            )[1]
            slope = tape.gradient(retain(3.0 * y, "end"), x)
        return slope, dict(gradients)

    slope, gradients = power(tf.constant(1.0))
    assert float(slope) == 24.0
    assert {name: float(g) for name, g in gradients.items()} == {"end": 1.0}


def test_a_backward_pass_from_outside_of_the_trace_is_right_and_leaves_nothing():
    kept = []

    @tf.function(autograph=False)
    def square(x):
        with retain_gradients() as gradients:
            kept.append(gradients)
            return retain(x * x, "square")

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = square(x)
    assert float(tape.gradient(y, x)) == 6.0
    assert kept == [{"square": None}]


def test_the_backward_pass_may_come_after_the_block():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with retain_gradients() as gradients:
            y = 2.0 * retain(x * x, "square")
    tape.gradient(y, x)
    assert float(gradients["square"]) == 2.0


def test_mixed_precision_keeps_the_scaled_gradients_in_half_precision():
    dense = keras.layers.Dense(1, dtype="mixed_float16", name="dense")
    model = keras.Sequential([keras.Input([2]), dense])
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(), initial_scale=8.0
    )
    model.compile(optimizer, "mean_absolute_error")
    with retain_gradients(model, "dense") as gradients:
        model.train_on_batch(X, np.full([2, 1], 50.0))
    assert gradients["dense"].dtype == tf.float16
    np.testing.assert_array_equal(gradients["dense"], [[-4.0], [-4.0]])


def test_a_recurrent_cell_leaves_one_gradient_for_each_time_step():
    cell = keras.layers.SimpleRNNCell(
        1, activation=None, use_bias=False, kernel_initializer="ones", name="cell"
    )
    model = keras.Sequential([keras.Input([3, 1]), keras.layers.RNN(cell, name="rnn")])
    model(np.ones([1, 3, 1]))
    cell.recurrent_kernel.assign([[0.5]])
    with retain_gradients(model, ["rnn", "cell"]) as gradients:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(np.ones([1, 3, 1])))
        tape.gradient(loss, model.trainable_variables)
    # Keras calls the cell once more, before the first step, to learn its shapes.
    assert list(gradients) == [*(f"rnn/cell{k}" for k in ("", ":1", ":2", ":3")), "rnn"]
    assert gradients.pop("rnn/cell") is None
    # The last step's output is the layer's; each step back halves its gradient.
    assert [float(g[0, 0]) for g in gradients.values()] == [0.25, 0.5, 1.0, 1.0]


def test_a_cell_with_two_states_has_both_by_number():
    layer = keras.layers.LSTM(2, name="lstm", use_cudnn=False)
    with retain_gradients(layer) as gradients, tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.ones([1, 2, 3], "float32")))
        tape.gradient(loss, layer.trainable_variables)
    reached = [name for name, gradient in gradients.items() if gradient is not None]
    # Nothing comes after the last state of the cell.
    assert reached == ["lstm_cell[0]:1", "lstm_cell[1]:1", "lstm_cell[0]:2", "lstm"]


class Pair(keras.layers.Layer):
    """Has two outputs, and a layer within, which it calls twice."""

    def __init__(self):
        super().__init__(name="pair")
        self.inner = keras.layers.Dense(2, kernel_initializer="ones", name="inner")

    def call(self, x):
        once = self.inner(x)
        return {"once": once, "twice": self.inner(once), "rows": tf.shape(x)[0]}


def test_nested_layers_repeated_calls_and_several_outputs_have_names():
    layer = Pair()
    with retain_gradients(layer) as gradients, tf.GradientTape() as tape:
        out = layer(tf.constant(X))
        tape.gradient(tf.reduce_sum(out["twice"]), layer.inner.kernel)
    # tf.nest counts the entries of a dict in the order of their keys.
    assert list(gradients) == ["inner", "inner:1", "pair[0]", "pair[1]"]
    assert gradients["pair[0]"] is None
    np.testing.assert_array_equal(gradients["inner"], np.full([2, 2], 2.0))
    np.testing.assert_array_equal(gradients["inner:1"], np.ones([2, 2]))


def test_a_layer_in_two_places_goes_by_its_first_name():
    shared = keras.layers.Dense(2, name="shared")
    first = keras.Sequential([shared], name="first")
    model = keras.Sequential([keras.Input([2]), first, shared], name="model")
    with retain_gradients(model, [shared]) as gradients:
        model(X)
    assert list(gradients) == ["first/shared", "first/shared:1"]


def test_the_mask_and_the_loss_by_logits_survive():
    model = keras.Sequential([
        keras.Input([3]),
        keras.layers.Embedding(4, 2, mask_zero=True, name="embedding"),
        keras.layers.GlobalAveragePooling1D(name="pool"),
        keras.layers.Dense(2, activation="softmax", name="top"),
    ])
    model.compile("sgd", "sparse_categorical_crossentropy")
    x, y = np.array([[1, 2, 0], [3, 0, 0]]), np.array([0, 1])
    right = model.evaluate(x, y, verbose=0)
    probabilities = model.predict(x, verbose=0)
    with retain_gradients(model) as gradients:
        assert_close(model.train_on_batch(x, y), right, dtype="float32")
    # What is padding does not count, and so has no gradient.
    zero = np.all(np.asarray(gradients["embedding"]) == 0, axis=-1)
    np.testing.assert_array_equal(zero, x == 0)
    assert gradients["top"] is None
    wrong = (probabilities - np.eye(2)[y]) / 2
    assert_close(gradients["top/logits"], wrong)


def test_a_gather_leaves_its_gradient_as_slices_and_the_table_is_right():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with retain_gradients() as gradients, tf.GradientTape() as tape:
        tape.watch(x)
        picked = tf.gather(retain(2.0 * x, "table"), [2, 2])
        slope = tape.gradient(tf.reduce_sum(picked), x)
    np.testing.assert_array_equal(tf.convert_to_tensor(slope)[2], [4.0, 4.0])
    dense = tf.convert_to_tensor(gradients["table"])
    np.testing.assert_array_equal(dense, [[0, 0], [0, 0], [2, 2]])
    assert summarize(gradients)[0].name == "table"


def test_the_second_gradient_goes_through():
    x = tf.constant(3.0)
    with retain_gradients() as gradients, tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = retain(x * x, "square") * x
        slope = inner.gradient(y, x)
        curvature = outer.gradient(slope, x)
    assert (float(slope), float(curvature)) == (27.0, 18.0)
    assert gradients["square"] is not None


def test_none_marks_what_no_backward_pass_has_reached():
    with retain_gradients() as gradients, tf.GradientTape() as tape:
        x = tf.constant(1.0)
        tape.watch(x)
        retain(x + 1.0, "aside")
        tape.gradient(x * 2.0, x)
    assert gradients == {"aside": None}
    assert float(gradients.outputs["aside"]) == 2.0
    assert len(summarize(gradients)) == 0


def test_clear_forgets_gradients_tensors_and_numbers():
    with retain_gradients() as gradients:
        retain(tf.constant(1.0), "x")
        gradients.clear()
        retain(tf.constant(2.0), "x")
    assert gradients == {"x": None}
    assert float(gradients.outputs["x"]) == 2.0


def test_integers_and_strings_are_let_through():
    with retain_gradients() as gradients:
        assert retain(tf.constant(1), "integer").dtype == tf.int32
        assert retain("text", "text") == "text"
    assert not gradients


def test_every_dtype_keeps_its_own(dtype):
    x = tf.constant([1.0, 2.0], dtype)
    with retain_gradients() as gradients, tf.GradientTape() as tape:
        tape.watch(x)
        tape.gradient(tf.reduce_sum(retain(x, "x") * 3), x)
    assert gradients["x"].dtype == dtype
    np.testing.assert_array_equal(tf.cast(gradients["x"], tf.float32), [3.0, 3.0])


def test_a_model_that_is_built_in_the_block_is_no_harm():
    dense = keras.layers.Dense(1, name="dense")
    with retain_gradients(dense) as gradients:
        model = keras.Sequential([keras.Input([2]), dense])
        model(X)
    assert list(gradients) == ["dense"]


def test_a_function_in_place_of_a_model_is_reported_of_retain():
    with (
        pytest.raises(TypeError, match=r"`model` must be a Keras model or layer\. Rec"),
        retain_gradients(cube),
    ):
        pass


def test_an_unknown_layer_is_reported_which_there_are():
    with (
        pytest.raises(
            ValueError, match=r"'tip'\. The model has 'net', 'hidden', 'top'"
        ),
        retain_gradients(two_layers(), ["top", "tip"]),
    ):
        pass
