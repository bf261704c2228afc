"""Strings and configs of Keras find tfsafe's classes in a scope, and only there."""

import subprocess
import sys
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support.oracle import assert_close
from tfsafe import layers, losses, metrics

X = np.ones((4, 3), "float32")
LABELS = np.array([[np.nan], [1.0], [2.0], [3.0]], "float32")
WEIGHTS = np.array([0.0, 1.0, 1.0, 1.0], "float32")


@pytest.fixture
def installed():
    tfsafe.install()
    yield
    tfsafe.uninstall()


def lookups():
    """What Keras finds for names and configs."""
    softmax = keras.layers.serialize(keras.layers.Softmax(axis=1))
    return {
        "function": keras.losses.get("mse"),
        "class": type(keras.losses.get("Huber")),
        "tf.keras": type(tf.keras.losses.get("Huber")),
        "swapped": type(losses.get("Huber")),
        "loss": type(
            keras.losses.deserialize({"class_name": "Huber", "config": {"delta": 2.0}})
        ),
        "metric": type(keras.metrics.get("mse")),
        "layer": type(keras.layers.deserialize(softmax)),
        "regularizer": type(
            keras.regularizers.deserialize(
                keras.regularizers.serialize(keras.regularizers.OrthogonalRegularizer())
            )
        ),
        "optimizer": type(keras.optimizers.get("rmsprop")),
        "activation": keras.layers.Dense(2, activation="softmax").activation,
    }


PLAIN = {
    "function": keras.losses.mean_squared_error,
    "class": keras.losses.Huber,
    "tf.keras": keras.losses.Huber,
    "swapped": keras.losses.Huber,
    "loss": keras.losses.Huber,
    "metric": keras.metrics.MeanSquaredError,
    "layer": keras.layers.Softmax,
    "regularizer": keras.regularizers.OrthogonalRegularizer,
    "optimizer": keras.optimizers.RMSprop,
    "activation": keras.activations.softmax,
}


def is_ours(found):
    return found.__module__.startswith("tfsafe.")


def test_strings_and_configs_find_the_safe_classes_in_the_scope_alone():
    assert lookups() == PLAIN
    get = keras.losses.get
    with tfsafe.keras_scope():
        found = lookups()
        assert all(map(is_ours, found.values())), found
        with tfsafe.keras_scope():
            pass
        assert type(keras.losses.get("Huber")) is losses.Huber
        # What the program names itself, and what tfsafe does not have, is unchanged.
        assert keras.losses.get(keras.losses.huber) is keras.losses.huber
        if hasattr(keras.losses, "circle"):
            assert keras.losses.get("circle") is keras.losses.circle
        assert keras.losses.get(None) is None
        assert type(keras.optimizers.get("adam")) is keras.optimizers.Adam
        with pytest.raises(ValueError, match="Could not interpret loss"):
            keras.losses.get("nonsense")
    assert lookups() == PLAIN
    assert keras.losses.get is get


def test_the_scope_ends_with_an_error_and_decorates():
    @tfsafe.keras_scope()
    def fail():
        assert type(keras.losses.get("Huber")) is losses.Huber
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fail()
        assert type(keras.losses.get("Huber")) is keras.losses.Huber


def test_a_scope_holds_for_its_thread_and_an_installation_for_all():
    def elsewhere():
        found = []
        thread = threading.Thread(
            target=lambda: found.append(type(keras.losses.get("Huber")))
        )
        thread.start()
        thread.join()
        return found[0]

    with tfsafe.keras_scope():
        assert elsewhere() is keras.losses.Huber
        tfsafe.install()
        tfsafe.install()
        assert elsewhere() is losses.Huber
    assert elsewhere() is losses.Huber
    with tfsafe.keras_scope():
        tfsafe.uninstall()
        assert type(keras.losses.get("Huber")) is losses.Huber
    tfsafe.uninstall()
    assert lookups() == PLAIN


def regression(loss, **options):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss=loss, **options)
    return model


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_a_model_compiled_in_the_scope_ignores_labels_of_weight_0(jit_compile):
    with tfsafe.keras_scope():
        model = regression("mse", jit_compile=jit_compile, weighted_metrics=["mae"])
    plain = regression("mse", jit_compile=jit_compile)
    # After the scope: Keras makes the loss of the string at the first batch.
    history = model.fit(X, LABELS, sample_weight=WEIGHTS, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert np.isfinite(history["mae"]).all()
    assert np.isfinite(model.get_weights()[0]).all()
    plain.fit(X, LABELS, sample_weight=WEIGHTS, verbose=0)
    assert np.isnan(plain.get_weights()[0]).all()


def compiled_losses(model):
    compiled = model._compile_loss
    if hasattr(compiled, "flat_losses"):  # Keras 3.3
        return compiled.flat_losses
    return [each.loss for each in compiled._flat_losses]


@pytest.mark.parametrize(
    ("labels", "units", "loss", "safe"),
    [
        (X[:, :1], 1, "BinaryCrossentropy", "BinaryAccuracy"),
        ([0, 1, 2, 0], 3, "SparseCategoricalCrossentropy", "SparseCategoricalAccuracy"),
        (np.eye(4)[:, :3], 3, "CategoricalCrossentropy", "CategoricalAccuracy"),
    ],
)
def test_accuracy_and_crossentropy_fit_the_labels(labels, units, loss, safe, installed):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(units, "softmax")])
    model.compile(loss="crossentropy", metrics=["accuracy"])
    found = model.evaluate(X, np.array(labels), verbose=0, return_dict=True)
    # The names of Keras' logs.
    assert set(found) == {"loss", "accuracy"}
    assert [type(each) for each in compiled_losses(model)] == [getattr(losses, loss)]
    assert type(model._compile_metrics.metrics[0]) is getattr(metrics, safe)


def test_several_outputs_take_strings():
    inputs = keras.Input((3,))
    outputs = {name: keras.layers.Dense(1, name=name)(inputs) for name in "ab"}
    model = keras.Model(inputs, outputs)
    with tfsafe.keras_scope():
        model.compile("sgd", loss={"a": "mse", "b": keras.losses.Huber()})
    model.evaluate(X, {"a": X[:, :1], "b": X[:, :1]}, verbose=0)
    found = [type(each) for each in compiled_losses(model)]
    assert found == [losses.MeanSquaredError, keras.losses.Huber]


def test_values_are_those_of_keras_where_keras_is_right():
    def numbers():
        keras.utils.set_random_seed(0)
        model = keras.Sequential([
            keras.Input((3,)), keras.layers.Dense(4, "relu"),
            keras.layers.Dense(3, activation="softmax"),
        ])  # fmt: skip
        model.compile("adam", "categorical_crossentropy", metrics=["accuracy", "mae"])
        x = np.random.default_rng(0).normal(size=(8, 3))
        history = model.fit(x, np.eye(3)[[0, 1, 2, 0] * 2], epochs=2, verbose=0).history
        return [history[name] for name in ("loss", "accuracy", "mae")]

    plain = numbers()
    with tfsafe.keras_scope():
        assert_close(numbers(), plain, dtype="float32")


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
def test_the_softmax_of_a_string_has_the_gradient_of_its_logits(mode):
    with tfsafe.keras_scope():
        dense = keras.layers.Dense(2, "softmax", kernel_initializer="identity")
    loss = losses.CategoricalCrossentropy()

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss([[1.0, 0.0]], dense(x))
        return value, tape.gradient(value, x)

    if mode != "eager":
        run = tf.function(run, jit_compile=mode == "xla", autograph=False)
    value, slope = run(tf.constant([[0.0, 200.0]]))
    assert_close(value, 200.0)
    assert_close(slope, [[-1.0, 1.0]])
    np.testing.assert_array_equal(
        dense.activation(tf.fill([1, 2], -np.inf)), [[0.0, 0.0]]
    )


def test_files_keep_the_strings_and_to_keras_makes_keras_classes(tmp_path, installed):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, "softmax")])
    model.add(keras.layers.deserialize({
        "module": "keras.layers", "class_name": "LayerNormalization", "config": {},
        "registered_name": None,
    }))  # fmt: skip
    model.compile("adam", loss="mse", metrics=["accuracy"])
    model.fit(X, X[:, :2], verbose=0)
    assert type(model.layers[1]) is layers.LayerNormalization
    path = str(tmp_path / "model.keras")
    model.save(path)
    assert keras.saving.load_model(path).get_compile_config()["loss"] == "mse"
    plain = tfsafe.to_keras(model)
    assert type(plain.layers[1]) is keras.layers.LayerNormalization
    assert plain.layers[0].activation is keras.activations.softmax
    tfsafe.uninstall()
    loaded = keras.saving.load_model(path)
    assert type(loaded.layers[1]) is layers.LayerNormalization
    assert_close(loaded(X), model(X))


def test_the_command_line_swaps_the_strings_of_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import keras\n"
        "print(type(keras.losses.get('Huber')).__module__)\n"
        "print(keras.layers.Dense(1, 'softmax').activation.__module__)\n"
    )
    command = [sys.executable, "-m", "tfsafe", "run", "--checks", "none", "--swap"]
    done = subprocess.run(
        [*command, str(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [
        "tfsafe.losses",
        "tfsafe.keras_formulas.logit_recovery",
    ]
