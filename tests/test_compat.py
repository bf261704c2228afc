"""The private names of TensorFlow and Keras still mean what `_compat` takes them for."""

import keras
import pytest
import tensorflow as tf

from tfsafe import _compat


def test_keras_optimizers_still_have_the_attributes_that_a_wrapper_passes_on():
    optimizer = keras.optimizers.Adam(use_ema=True)
    variable = keras.Variable([1.0])
    optimizer.build([variable])
    found = {name: getattr(optimizer, name) for name in _compat.OPTIMIZER_INTERNALS}
    assert found["_distribution_strategy"] is tf.distribute.get_strategy()
    assert [v.shape for v in found["_model_variables_moving_average"]] == [(1,)]
    assert found["_trainable_variables"] == [variable]


def test_keras_optimizers_still_tell_where_a_variable_stands():
    variables = [keras.Variable([1.0]), keras.Variable([2.0]), tf.Variable([3.0])]
    optimizer = keras.optimizers.Adam()
    assert _compat.built_variables(optimizer) == []
    optimizer.build(variables)
    assert all(
        found is given
        for found, given in zip(
            _compat.built_variables(optimizer), variables, strict=True
        )
    )
    assert _compat.variable_positions(optimizer, variables[::-1]) == [2, 1, 0]
    with pytest.raises(ValueError, match="Unknown variable"):
        _compat.variable_positions(optimizer, [keras.Variable([1.0])])


def test_tensorflow_still_tells_whether_a_step_must_leave_its_replica():
    assert not _compat.strategy_needs_merge_call()
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        assert _compat.strategy_needs_merge_call()


def test_keras_softmax_and_sigmoid_still_attach_their_logits():
    logits = tf.constant([[1.0, 2.0]])
    for activation in (keras.activations.softmax, keras.activations.sigmoid):
        probs = activation(logits)
        assert _compat.keras_logits(probs) is logits
        assert _compat.keras_logits(tf.identity(probs)) is None
    dense = keras.layers.Dense(2, activation="softmax")
    assert _compat.keras_logits(dense(logits)).shape == (1, 2)


def test_keras_layers_still_attach_their_mask():
    masked = keras.layers.Masking()(tf.constant([[[0.0], [1.0]]]))
    assert _compat.keras_mask(masked).numpy().tolist() == [[False, True]]
    assert _compat.keras_mask(tf.constant(1.0)) is None
