"""Findings name layers as `model.get_layer` does, and know when they happened."""

import concurrent.futures
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tfsafe._report import explain
from tfsafe.debugging.explain.training import layers


class RowNorm(keras.layers.Layer):
    """Divides by the deviation of each row."""

    def call(self, x):
        deviation = tf.math.reduce_std(x, -1, keepdims=True)
        return x / deviation


def pricing(**options):
    block = keras.Sequential(
        [keras.layers.Dense(3, name=name) for name in ("dense", "dense_1")],
        name="block",
    )
    inputs = keras.Input([4])
    hidden = block(RowNorm(name="rownorm")(inputs))
    outputs = keras.layers.Dense(1, name="head")(hidden)
    model = keras.Model(inputs, outputs, name="pricing")
    model.compile(keras.optimizers.Adam(0.5), "mse", **options)
    return model


def failure_of(model, x, y, **options):
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(x, y, batch_size=4, shuffle=False, verbose=0, **options)
    return caught.value


@pytest.fixture(params=[False, True], ids=["graph", "eager"])
def error(request):
    x = np.random.default_rng(0).normal(size=(16, 4)).astype("float32")
    x[9] = 1.0
    model = pricing(run_eagerly=request.param)
    monitor = tfsafe.callbacks.NumericsMonitor()
    return failure_of(model, x, np.ones([16, 1]), callbacks=[monitor])


def test_layers_are_named_as_get_layer_knows_them(error):
    finding = error.findings[0]
    assert finding.layer == "pricing/rownorm"
    assert "(inside pricing/rownorm)" in str(error)


def test_the_chain_goes_from_layer_to_layer(error):
    steps = [explain.name_of(link) for link in explain.folded(error.findings[0].chain)]
    dense = ["pricing/block/dense", "pricing/block/dense_1", "pricing/head"]
    assert steps == ["RealDiv in pricing/rownorm", *dense, "loss"]
    assert ".fit(" not in error.explain(chain=True)
    assert "pricing/block/dense_1" in error.to_html()


def test_many_weights_are_counted_and_listed_on_request(error):
    assert "6 of 6 weights in all 3 layers; see `error.reached`" in str(error)
    assert "variable `block/dense/kernel`" in error.reached


def test_variables_of_one_name_in_many_layers_are_counted():
    layers = [keras.layers.BatchNormalization(name=f"bn_{i}") for i in range(6)]
    x = tf.constant([[1e30], [-1e30]])

    @tfsafe.checked
    @tf.function
    def step(x):
        for layer in layers:
            layer(x, training=True)

    for layer in layers:
        layer.build(x.shape)
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(x)
    text = "reach: `moving_variance` of 6 layers; see `error.reached`\n"
    assert text in str(caught.value)
    assert len(caught.value.reached) == 6


def test_the_health_of_each_layer_is_known(error):
    names = ("rownorm", "dense", "dense_1", "head")
    classes = ("RowNorm", "Dense", "Dense", "Dense")
    healths = ("first", "reached", "reached", "reached")
    assert error.layers == tuple(zip(names, classes, healths, strict=True))
    assert error.facts["XLA"] == "No"
    assert keras.__version__ in error.facts["versions"]


def test_a_recurrent_layer_is_one_layer_of_the_model():
    layers = [keras.Input([4, 2]), keras.layers.LSTM(2, name="reader")]
    model = keras.Sequential([*layers, RowNorm(name="rownorm")])
    model.compile("sgd", "mse", jit_compile=False)
    model.layers[0].cell.bias.assign(np.full(8, np.nan))
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(model).fit(np.ones([2, 4, 2]), np.ones([2, 2]), verbose=0)
    assert [name for name, *_ in caught.value.layers] == ["reader", "rownorm"]


def test_a_layer_that_computes_by_itself_comes_before_the_layers_in_it():
    class Block(keras.layers.Layer):
        def __init__(self, name):
            super().__init__(name=name)
            self.inner = keras.layers.Dense(3, name="inner")

        def call(self, x):
            return self.inner(x / tf.math.reduce_std(x, -1, keepdims=True))

    head = keras.layers.Dense(1, name="head")
    model = keras.Sequential([keras.Input([4]), Block("block"), head])
    model.compile("sgd", "mse", jit_compile=False)
    error = failure_of(tfsafe.checked(model), np.ones([4, 4]), np.ones([4, 1]))
    assert error.layers == (
        ("block", "Layer", "first"),
        ("inner", "Dense", "reached"),
        ("head", "Dense", "reached"),
    )


def test_step_epoch_and_batch_are_known(error):
    assert (error.step, error.epoch, error.batch) == (2, 0, 2)
    assert "  when:  step 2, epoch 0, batch 2, learning rate 0.5\n" in str(error)


def test_the_failing_batch_is_kept(error):
    assert error.inputs["x"].shape == (4, 4)
    np.testing.assert_array_equal(error.inputs["x"][1], np.ones(4))
    again = pickle.loads(pickle.dumps(error))
    assert (again.step, again.reached) == (error.step, error.reached)
    np.testing.assert_array_equal(again.inputs["x"], error.inputs["x"])


def test_arguments_of_a_checked_function_are_kept(mode):
    del mode
    checked = tfsafe.checked(tf.function(lambda x: tf.math.log(x)))
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(tf.constant([1.0, 0.0]))
    np.testing.assert_array_equal(caught.value.inputs["x"], [1.0, 0.0])
    assert caught.value.step is None
    assert "when:" not in str(caught.value)


def test_a_number_that_belongs_to_a_name_stays():
    held = [keras.layers.Dense(1, name="unit"), keras.layers.Dense(1, name="unit_1")]
    found = layers.Layers()
    assert found.path_of("unit_1_2/MatMul", is_exact=False) == "unit_1"
    assert found.path_of("unit_1/MatMul", is_exact=False) == "unit"
    assert found.path_of("unit_1/MatMul", is_exact=True) == "unit_1"
    assert found.path_of("norm/Mul", is_exact=False) == ""
    assert found.names_in(["unit_1_2/MatMul"]) == {"unit_1": "Dense"}
    del held


def test_the_lookup_leaves_other_threads_alone():
    """Python refuses to complete a tuple that somebody else holds half built."""

    def build_tuples():
        return [tuple(n for n in range(30)) for _ in range(20_000)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(build_tuples) for _ in range(2)]
        while not all(task.done() for task in tasks):
            # Two threads may fail at once.
            list(pool.map(lambda _: layers.Layers(), range(2)))
        assert all(len(task.result()) == 20_000 for task in tasks)


def test_a_layer_of_keras_is_replaced_by_its_namesake():
    inputs = keras.Input([3, 2])
    masked = keras.layers.Masking()(inputs)
    pooled = keras.layers.GlobalAveragePooling1D(name="pool")(masked)
    model = keras.Model(inputs, keras.layers.Dense(2)(pooled))
    model.compile("sgd", "mse")
    x = np.ones([4, 3, 2], "float32")
    x[2] = 0
    error = failure_of(tfsafe.checked(model), x, np.ones([4, 2]))
    finding = error.findings[0]
    assert finding.layer.endswith("pool")
    assert finding.suggested_code == "from tfsafe import layers"
    assert "layers.GlobalAveragePooling1D replaces" in finding.suggestion
    scope = {}
    exec(finding.suggested_code, scope)
    safe = scope["layers"].GlobalAveragePooling1D()
    assert np.isfinite(safe(keras.layers.Masking()(x))).all()


@pytest.mark.parametrize("wrap", [lambda model: model, tfsafe.stabilize])
def test_a_formula_within_a_layer_of_keras_is_that_of_the_layer(wrap):
    """Where it is rewritten and fails all the same, too."""
    inputs = keras.Input([3])
    normalized = keras.layers.LayerNormalization(epsilon=0.0, name="norm")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(normalized))
    model.compile("sgd", "mse")
    x = np.arange(12, dtype="float32").reshape(4, 3)
    x[2] = 1.0
    finding = failure_of(tfsafe.checked(wrap(model)), x, np.ones([4, 1])).findings[0]
    assert (finding.op_type, finding.layer.rpartition("/")[2]) == ("Rsqrt", "norm")
    assert finding.suggested_code == "from tfsafe import layers"
    assert "layers.LayerNormalization replaces" in finding.suggestion


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        ("compile_loss/mse_1/sub", "MeanSquaredError"),
        ("compile_loss/categorical_crossentropy", "CategoricalCrossentropy"),
        ("compile_loss/my_own", ""),
        ("compile_loss", ""),
        ("adam", ""),
    ],
)
def test_a_loss_of_keras_is_replaced_by_its_namesake(scope, name):
    code, words = layers.swap_of(None, scope)
    assert code == ("from tfsafe import losses" if name else "")
    assert words.startswith(f"compile(loss=losses.{name}()) replaces" if name else "")


def test_a_loss_of_the_users_is_not_taken_for_the_one_of_keras_with_its_name():
    class BCE(keras.losses.Loss):
        def call(self, y_true, y_pred):
            return tf.reduce_sum(y_true * tf.linalg.logdet(y_pred[..., None]), -1)

    def mse(y_true, y_pred):
        del y_true
        return tf.math.reduce_std(y_pred) / tf.reduce_sum(y_pred, -1)

    for loss in (BCE(), mse):
        model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
        model.compile("sgd", loss)
        y = np.ones([4, 1], "float32")
        model.layers[0].set_weights([np.array([[-1.0]]), np.zeros([1])])
        finding = failure_of(tfsafe.checked(model), y * 0, y).findings[0]
        assert finding.scope.startswith("compile_loss/")
        assert "losses" not in finding.suggested_code


def test_a_layer_without_a_safe_namesake_has_no_swap():
    assert layers.swap_of(RowNorm, "") == ("", "")
    assert layers.swap_of(tfsafe.layers.Normalization, "") == ("", "")
