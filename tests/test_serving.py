"""Exported models of every layer run in plain TensorFlow, and in TensorFlow Lite."""

import os
import pathlib
import re
import subprocess
import sys
import zipfile
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support.oracle import assert_close
from tfsafe import layers

pytestmark = pytest.mark.slow

X = np.random.default_rng(0).normal(size=(1, 5, 4)).astype("float32")
X[0, 1] = 0.0
IMAGE, VIDEO, VOLUME = (
    np.random.default_rng(1).normal(size=(1,) + (3,) * rank + (2,)).astype("float32")
    for rank in (2, 3, 4)
)
IDS = np.array([[1, 2, 0, 0, 0]], "int32")

# The layers of one input: how each is made, and its input.
MADE = {
    "AdditiveAttention": (lambda: _listed(layers.AdditiveAttention()), X),
    "AlphaDropout": (partial(layers.AlphaDropout, 0.5), X),
    "Attention": (lambda: _listed(layers.Attention()), X),
    "AveragePooling1D": (partial(layers.AveragePooling1D, 2), X),
    "BatchNormalization": (layers.BatchNormalization, X),
    "CategoryEncoding": (partial(layers.CategoryEncoding, 5), IDS),
    "ConvLSTM1D": (partial(layers.ConvLSTM1D, 2, 2), IMAGE),
    "ConvLSTM2D": (partial(layers.ConvLSTM2D, 2, 2), VIDEO),
    "ConvLSTM3D": (partial(layers.ConvLSTM3D, 2, 2), VOLUME),
    "Discretization": (partial(layers.Discretization, [-1.0, 0.0, 1.0]), X),
    "Dot": (lambda: _listed(layers.Dot(2, normalize=True)), X),
    "Dropout": (partial(layers.Dropout, 0.5), X),
    "Embedding": (partial(layers.Embedding, 5, 2), IDS),
    "GRU": (partial(layers.GRU, 3), X),
    "GaussianDropout": (partial(layers.GaussianDropout, 0.5), X),
    "GlobalAveragePooling1D": (layers.GlobalAveragePooling1D, X),
    "GlobalMaxPooling1D": (layers.GlobalMaxPooling1D, X),
    "GroupNormalization": (partial(layers.GroupNormalization, 2), X),
    "GroupQueryAttention": (lambda: _twice(layers.GroupQueryAttention(2, 2, 1)), X),
    "Hashing": (partial(layers.Hashing, 7), IDS),
    "LSTM": (partial(layers.LSTM, 3), X),
    "LayerNormGRU": (partial(layers.LayerNormGRU, 3), X),
    "LayerNormLSTM": (partial(layers.LayerNormLSTM, 3), X),
    "LayerNormalization": (layers.LayerNormalization, X),
    "LogSigmoid": (layers.LogSigmoid, X),
    "LogSoftmax": (layers.LogSoftmax, X),
    "Masking": (layers.Masking, X),
    "MaxPooling1D": (partial(layers.MaxPooling1D, 2), X),
    "MultiHeadAttention": (lambda: _twice(layers.MultiHeadAttention(2, 2)), X),
    "Normalization": (
        partial(layers.Normalization, mean=[0.0] * 4, variance=[2.0] * 4),
        X,
    ),
    "RMSNormalization": (layers.RMSNormalization, X),
    "RNN": (lambda: layers.RNN(layers.LayerNormGRUCell(3)), X),
    "STFTSpectrogram": (
        partial(layers.STFTSpectrogram, "log", 4, 2, 4),
        np.sin(np.arange(8.0, dtype="float32"))[None, :, None],
    ),
    "SafeMeanPooling": (layers.SafeMeanPooling, X),
    "SimpleRNN": (partial(layers.SimpleRNN, 3), X),
    "Softmax": (layers.Softmax, X),
    "SpatialDropout1D": (partial(layers.SpatialDropout1D, 0.5), X),
    "SpatialDropout2D": (partial(layers.SpatialDropout2D, 0.5), IMAGE),
    "SpatialDropout3D": (partial(layers.SpatialDropout3D, 0.5), VIDEO),
    "SpectralNormalization": (
        lambda: layers.SpectralNormalization(keras.layers.Dense(4)),
        X,
    ),
    "TimeDistributed": (
        lambda: layers.TimeDistributed(layers.UnitNormalization()),
        X,
    ),
    "UnitNormalization": (layers.UnitNormalization, X),
}
# TensorFlow Lite lacks lists of tensors, in which a loop over steps keeps them, hashes,
# buckets and counts: such layers, and recurrent ones of Keras, need `SELECT_TF_OPS`.
NOT_IN_LITE = ("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "GRU", "LSTM", "LayerNormGRU")
NOT_IN_LITE += ("LayerNormLSTM", "RNN", "SimpleRNN", "Hashing", "Discretization")
NOT_IN_LITE += ("CategoryEncoding",)
# tf2onnx 1.17 has no `Bitcast`, by which ours see the bits of a number, no `Log1p`, and
# no `einsum` with a repeated index. `tests/ecosystem/onnx.py` holds these lists.
NEEDS_TO_KERAS = ("Dot", "GroupNormalization", "GroupQueryAttention", "LogSoftmax")
NEEDS_TO_KERAS += ("LayerNormalization", "MultiHeadAttention", "RMSNormalization")
NEEDS_TO_KERAS += ("TimeDistributed", "UnitNormalization")
# Nor buckets and hashes, for Keras' own layers either.
NOT_IN_ONNX = ("Discretization", "Hashing")

SERVE = """
import sys
sys.modules["tfsafe"] = sys.modules["keras"] = None
import numpy as np, tensorflow as tf
model, data = tf.saved_model.load(sys.argv[1]), np.load(sys.argv[2])
for name in {data.rpartition("/")[0] for data in data.files}:
    got = getattr(model, name)(data[name + "/x"])
    y = data[name + "/y"]
    ulp = np.spacing(np.abs(y).max(initial=1))
    assert np.abs(got - y).max(initial=0) <= 8 * ulp, name
"""


def _listed(layer):
    return lambda x: layer([x, x])


def _twice(layer):
    return lambda x: layer(x, x)


def model_of(name):
    """Returns a model of one layer."""
    make, x = MADE[name]
    inputs = keras.Input(x.shape[1:], dtype=x.dtype)
    return keras.Model(inputs, make()(inputs))


def _names_of_layers():
    aliases = {"GlobalAvgPool1D", "GlobalMaxPool1D", "MaxPool1D", "AvgPool1D"}
    return {n for n in layers.__all__ if not n.endswith("Cell")} - aliases


def test_every_layer_is_served_by_plain_tensorflow(tmp_path):
    assert set(MADE) == _names_of_layers()
    archive, data = keras.export.ExportArchive(), {}
    for name, (_, x) in MADE.items():
        model = model_of(name)
        archive.track(model)
        archive.add_endpoint(
            name,
            partial(model.call, training=False),
            input_signature=[tf.TensorSpec((None, *x.shape[1:]), x.dtype)],
        )
        data |= {f"{name}/x": x, f"{name}/y": model(x)}
    archive.write_out(tmp_path / "served", verbose=False)
    np.savez(tmp_path / "data.npz", **data)
    done = subprocess.run(
        [sys.executable, "-c", SERVE, tmp_path / "served", tmp_path / "data.npz"],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
@pytest.mark.parametrize("name", sorted(set(MADE) - set(NOT_IN_LITE)))
def test_tensorflow_lite_converts_the_layer(name, tmp_path):
    model, x = model_of(name), MADE[name][1]
    model.export(tmp_path, verbose=False)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path))
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    (source,), (result,) = (
        interpreter.get_input_details(),
        interpreter.get_output_details(),
    )
    interpreter.resize_tensor_input(source["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(source["index"], x)
    interpreter.invoke()
    got = interpreter.get_tensor(result["index"])
    assert_close(got, model(x), scale=np.abs(model(x)).max())


# Layers, and a cell, that Keras has not.
NOT_IN_KERAS = ("LayerNormGRU", "LayerNormLSTM", "RNN")


def test_every_layer_becomes_keras_own(tmp_path):
    for name in sorted(set(MADE) - set(NOT_IN_KERAS)):
        model, x = model_of(name), MADE[name][1]
        plain = tfsafe.to_keras(model)
        path = tmp_path / "plain.keras"
        plain.save(path)
        with zipfile.ZipFile(path) as file:
            assert "tfsafe" not in file.read("config.json").decode(), name
        got = keras.models.load_model(path)(x)
        # Keras' epsilons differ from ours where a row is 0.
        assert_close(got, model(x), scale=1.0)


@pytest.mark.parametrize("name", NOT_IN_KERAS)
def test_a_layer_that_keras_lacks_is_named(name):
    with pytest.raises(ValueError, match="must have a counterpart in Keras"):
        tfsafe.to_keras(model_of(name))


def test_the_guide_lists_what_onnx_lacks():
    guide = pathlib.Path(__file__).parent.parent / "docs/guides/save-load-serve.md"
    rows = [line.split("|") for line in guide.read_text().splitlines()]
    listed = {
        each[2].strip(): set(re.findall(r"`(\w+)`", each[1]))
        for each in rows
        if len(each) == 4
    }
    assert listed["after `to_keras`"] == set(NEEDS_TO_KERAS)
    assert listed["not, as Keras' own"] == set(NOT_IN_ONNX)
