"""LayerNormLSTM: exact against NumPy in float64, and what only the LSTM has."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers import recurrent
from tests.support.oracle import assert_close
from tfsafe import layers

FORMS = {
    "gates": {},
    "gates, stored state": {"normalize_state": "stored", "forget_bias": 0.5},
    "fused": {"fused": True},
    "fused, stored state": {"fused": True, "normalize_state": "stored"},
    "fused, no bias": {"fused": True, "use_bias": False},
    "plain": {"layer_norm": False},
    "plain, no bias": {"layer_norm": False, "use_bias": False},
}
X = np.random.default_rng(1).normal(size=(2, 3, 2))


@pytest.mark.parametrize(
    ("form", "mode"),
    [(form, mode) for form in FORMS for mode in ("eager", "graph")]
    + [(form, "xla") for form in ("gates", "fused, stored state")],
)
def test_values_and_gradients_agree_with_the_equations(form, mode):
    layer = layers.LayerNormLSTM(
        3, return_sequences=True, dtype="float64", **FORMS[form]
    )
    recurrent.agrees_with_the_equations(layer, X, mode)


def test_the_order_of_the_gates_is_that_of_keras():
    """Input, forget, candidate, output: weights can be read across."""
    ours = layers.LayerNormLSTM(3, layer_norm=False, forget_bias=0.0, dtype="float64")
    theirs = keras.layers.LSTM(3, dtype="float64")
    for layer in (ours, theirs):
        layer.build(X.shape)
    theirs.set_weights(list(recurrent.randomise(ours).values()))
    recurrent.close(ours(X), theirs(X))


def test_the_forget_bias_is_added_to_the_forget_gate():
    one, other = (
        layers.LayerNormLSTM(3, forget_bias=b, dtype="float64") for b in (1.0, 3.0)
    )
    for layer in (one, other):
        layer.build(X.shape)
        recurrent.randomise(layer)
    shift = other.cell.gate_shift
    shift.assign(shift - np.array([0.0, 2.0, 0.0, 0.0])[:, np.newaxis])
    recurrent.close(one(X), other(X))


def test_the_cell_keeps_the_normalised_state_where_it_is_configured():
    states = [tf.zeros([2, 8]), tf.random.stateless_normal([2, 8], [1, 2])]
    x = tf.random.stateless_normal([2, 4], [3, 4])
    kept = {}
    for place in ("output", "stored"):
        cell = layers.LayerNormLSTMCell(
            8, normalize_state=place, kernel_initializer=keras.initializers.Ones()
        )
        kept[place] = np.asarray(cell(x, states)[1][1])
    assert_close(kept["stored"].mean(-1), np.zeros(2), scale=1.0)
    why = "its epsilon takes up to 6e-5"
    assert_close(kept["stored"].std(-1), np.ones(2), 600, why=why)
    assert np.all(np.abs(kept["output"].mean(-1)) > 1e-3)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"normalize_state": "both"},
            ValueError,
            "`normalize_state` must be one of 'output', 'stored'. Received: .*'both'",
        ),
        ({"forget_bias": "1"}, TypeError, "`forget_bias` must be a number"),
        (
            {"unit_forget_bias": True},
            TypeError,
            "`unit_forget_bias` is not an argument of LayerNormLSTMCell. Received: "
            "unit_forget_bias=True. Leave it out, and set `forget_bias`.",
        ),
    ],
)
def test_wrong_options_are_refused(options, error, message):
    for make in (layers.LayerNormLSTMCell, layers.LayerNormLSTM):
        with pytest.raises(error, match=message):
            make(3, **options)
