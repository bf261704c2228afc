import inspect
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe import layers

NAN = float("nan")


def _table(**options):
    table = layers.Embedding(3, 2, **options)
    table.build((None,))
    table.set_weights([np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])])
    return table


@pytest.mark.parametrize("kind", ["int32", "int64", "uint8", "float32"])
def test_ids_beyond_the_table_have_rows_of_nan(kind, mode):
    table = _table()
    wrong = [3, 200] if kind == "uint8" else [3, -1]
    ids = tf.constant([[0, 2], wrong], kind)

    def run(ids):
        with tf.GradientTape() as tape:
            rows = table(ids)
        slope = tape.gradient(rows, table.trainable_variables[0].value)
        return rows, tf.convert_to_tensor(slope)

    rows, slope = modes.compile_for(mode, run)(ids)
    np.testing.assert_array_equal(rows, [[[1, 2], [5, 6]], [[NAN, NAN]] * 2])
    np.testing.assert_array_equal(slope, [[1, 1], [0, 0], [1, 1]])


def test_nan_is_no_id(mode):
    run = modes.compile_for(mode, _table())
    found = run(tf.constant([NAN, np.inf, -0.5, 1.9]))
    np.testing.assert_array_equal(found, [[NAN] * 2] * 3 + [[3, 4]])


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_mixed_precision_gives_half_precision(half, mode):
    run = modes.compile_for(mode, _table(dtype=f"mixed_{half}"))
    found = run(tf.constant([2, 7]))
    assert found.dtype.name == half
    np.testing.assert_array_equal(tf.cast(found, tf.float32), [[5, 6], [NAN, NAN]])


def test_it_is_keras_own_for_the_ids_of_the_table(tmp_path):
    inputs = keras.Input((None,), dtype="int32")
    table = layers.Embedding(5, 4, mask_zero=True, name="table")
    x = layers.GlobalAveragePooling1D()(table(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(x))
    model.compile("sgd", "mse")
    ids = np.array([[1, 4, 0], [0, 0, 0]])
    model.fit(ids, np.ones(2), verbose=0)
    assert all(np.isfinite(weight.numpy()).all() for weight in model.weights)
    theirs = keras.layers.Embedding(5, 4, weights=table.get_weights())
    np.testing.assert_array_equal(table(ids), theirs(ids))
    assert table.compute_output_shape((2, 3)) == (2, 3, 4)
    np.testing.assert_array_equal(table.compute_mask(ids), ids != 0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(ids), model(ids))
    model.export(tmp_path / "exported")
    served = tf.saved_model.load(tmp_path / "exported")
    # The graph adds the bias within the product, with one rounding less.
    np.testing.assert_array_max_ulp(
        served.serve(ids.astype("int32")).numpy(), model(ids).numpy(), maxulp=4
    )
    config = json.loads(json.dumps(table.get_config()))
    assert layers.Embedding.from_config(config).get_config() == table.get_config()


def test_a_table_beyond_the_ids_dtype_is_whole():
    # 300 is no uint8.
    table = layers.Embedding(300, 1, embeddings_initializer="ones")
    np.testing.assert_array_equal(table(tf.constant([255], tf.uint8)), [[1]])


@pytest.mark.skipif(
    "type_check" not in inspect.signature(keras.layers.Embedding.quantize).parameters,
    reason="this Keras does not quantize embeddings",
)
@pytest.mark.parametrize("bits", ["int8", "int4"])
def test_a_quantized_table_answers_as_keras_does_and_nan_for_a_wrong_id(bits, mode):
    theirs = keras.layers.Embedding(3, 2)
    theirs.build((None,))
    ours = _table()
    theirs.set_weights(ours.get_weights())
    for layer in (ours, theirs):
        layer.quantize(bits)
        assert layer.quantization_mode == bits
    rows = modes.compile_for(mode, ours)(tf.constant([0, 2, 3, -1]))
    np.testing.assert_array_equal(rows[:2], theirs(tf.constant([0, 2])))
    assert np.isnan(rows[2:]).all()


def test_a_subclass_is_not_quantized():
    class Own(layers.Embedding):
        pass

    table = Own(3, 2)
    table.build((None,))
    with pytest.raises(NotImplementedError, match=r"Own.*quantize"):
        table.quantize("int8")


# XLA does not compile the conversion of a sparse tensor.
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_a_sparse_tensor_has_the_first_id_where_it_holds_nothing(mode):
    ids = tf.SparseTensor([[0, 0], [1, 2]], [2, 1], (2, 3))
    rows = modes.compile_for(mode, _table())(ids)
    expected = [[[5, 6], [1, 2], [1, 2]], [[1, 2], [1, 2], [3, 4]]]
    np.testing.assert_array_equal(rows, expected)
