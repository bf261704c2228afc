"""Files with classes of tfsafe load after `import tfsafe`, and become plain Keras."""

import json
import os
import subprocess
import sys
import zipfile

import keras
import numpy as np
import pytest

import tfsafe
from tests.support.oracle import assert_close
from tfsafe import layers, losses, metrics, optimizers

X = np.random.default_rng(0).normal(size=(8, 5, 4)).astype("float32")

LOAD = """
import sys
{prelude}
import keras, numpy as np, tensorflow as tf
path, data = sys.argv[1:]
tf.config.experimental.enable_tensor_float_32_execution(False)
model = keras.saving.load_model(path)
found = np.load(data)
found = model(found["x"]), found["y"]
assert np.abs(np.subtract(*found)).max() <= 8 * np.spacing(np.abs(found[1]).max())
print(*(type(layer).__module__ for layer in model.layers))
print(type(getattr(model, "optimizer", None)).__name__)
"""
# What an environment without tfsafe does.
WITHOUT = "sys.modules['tfsafe'] = None"


def _model():
    return keras.Sequential([
        keras.Input((5, 4)),
        layers.Normalization(mean=[0.0] * 4, variance=[2.0] * 4),
        layers.LayerNormalization(),
        layers.BatchNormalization(),
        keras.layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
        layers.TimeDistributed(layers.LayerNormalization()),
        layers.SpectralNormalization(keras.layers.Dense(4)),
        layers.MaxPooling1D(2, empty_value=1.0),
        layers.GlobalAveragePooling1D(empty_value=2.0),
        keras.layers.Dense(3, kernel_regularizer="l2"),
        layers.Softmax(),
    ])


def _load_elsewhere(folder, model, prelude):
    path, data = folder / "model.keras", folder / "data.npz"
    model.save(path)
    np.savez(data, x=X, y=model(X))
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", LOAD.format(prelude=prelude), str(path), str(data)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split("\n")


def _classes(node):
    if isinstance(node, list):
        return set().union(*map(_classes, node))
    if not isinstance(node, dict):
        return set()
    inner = set().union(*map(_classes, node.values()))
    if "class_name" in node:
        inner.add((node.get("module"), node["class_name"], node.get("registered_name")))
    return inner


def test_a_file_loads_after_the_import_of_the_package_alone(tmp_path):
    model = _model()
    optimizer = optimizers.SafeOptimizer(keras.optimizers.Adam())
    model.compile(
        optimizer,
        loss=losses.CategoricalCrossentropy(),
        metrics=[metrics.AUC()],
    )
    model.fit(X, np.eye(3, dtype="float32")[np.arange(8) % 3], verbose=0)
    modules, optimizer_name, *_ = _load_elsewhere(tmp_path, model, "import tfsafe")
    assert "tfsafe.layers" in modules
    assert optimizer_name == "SafeOptimizer"
    with zipfile.ZipFile(tmp_path / "model.keras") as file:
        classes = _classes(json.loads(file.read("config.json")))
    ours = {each for each in classes if str(each[0]).startswith("tfsafe")}
    assert {module for module, *_ in ours} == {
        "tfsafe.layers",
        "tfsafe.losses",
        "tfsafe.metrics",
        "tfsafe.optimizers",
    }
    assert ("tfsafe.layers", "Softmax", "tfsafe>Softmax") in ours


@pytest.mark.parametrize(
    "package", ["callbacks", "layers", "losses", "metrics", "optimizers"]
)
def test_classes_name_the_public_module(package):
    module = getattr(tfsafe, package)
    for name in module.__all__:
        if isinstance(getattr(module, name), type):
            assert getattr(module, name).__module__ == f"tfsafe.{package}"


def test_a_plain_model_loads_where_tfsafe_is_not_installed(tmp_path):
    model = _model()
    plain = tfsafe.to_keras(model)
    assert type(plain) is keras.Sequential
    assert_close(plain(X), model(X))
    (modules, *_) = _load_elsewhere(tmp_path, plain, WITHOUT)
    assert "tfsafe" not in modules
    with zipfile.ZipFile(tmp_path / "model.keras") as file:
        assert "tfsafe" not in file.read("config.json").decode()


@pytest.mark.parametrize(
    "layer",
    [
        layers.LogSigmoid(),
        layers.LogSoftmax(),
        layers.SafeMeanPooling(),
        layers.LayerNormalization(rms_scaling=True, epsilon=1e-6),
        layers.UnitNormalization(),
        layers.GroupNormalization(2),
        layers.GRU(3),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_each_layer_has_its_counterpart(layer):
    model = keras.Sequential([keras.Input((5, 4)), layer])
    plain = tfsafe.to_keras(model)
    assert plain.layers[0].__module__.startswith("keras.")
    assert plain.layers[0].name == layer.name
    assert_close(plain(X), model(X), 10, why="Keras adds in another order", scale=0.25)


# Keras 3.3 says so of its own MultiHeadAttention.
@pytest.mark.filterwarnings("ignore:(?s).*destroy the mask information")
def test_functional_models_with_attention_and_masks_become_plain():
    ids = keras.Input((None,), dtype="int32")
    x = layers.Embedding(7, 4, mask_zero=True)(ids)
    x = layers.MultiHeadAttention(2, 3)(x, x)
    if not keras.__version__.startswith(("3.3.", "3.10.")):
        # Theirs fails with the mask of an embedding.
        x = layers.Attention()([x, x])
    x = layers.Dropout(0.5)(layers.GlobalAveragePooling1D()(x))
    model = keras.Model(ids, x)
    plain = tfsafe.to_keras(model)
    batch = np.array([[1, 2, 3], [4, 0, 0]])
    assert_close(plain(batch), model(batch))


@pytest.mark.parametrize("masked", [False, True])
def test_pooling_is_plain_where_there_is_no_mask(masked):
    inputs = keras.Input((5, 4))
    x = layers.Masking()(inputs) if masked else inputs
    model = keras.Model(inputs, layers.GlobalMaxPooling1D(name="pool")(x))
    if masked:
        with pytest.raises(ValueError, match="GlobalMaxPooling1D named 'pool' after"):
            tfsafe.to_keras(model)
    else:
        np.testing.assert_array_equal(tfsafe.to_keras(model)(X), model(X))


def test_what_keras_lacks_is_named():
    model = keras.Sequential([keras.Input((5, 4)), layers.LayerNormLSTM(3, name="no")])
    with pytest.raises(ValueError, match=r"tfsafe\.layers\.LayerNormLSTM named 'no'"):
        tfsafe.to_keras(model)
    with pytest.raises(ValueError, match="must be built"):
        tfsafe.to_keras(keras.Sequential([layers.Softmax()]))
