"""LayerNormGRU: exact against NumPy in float64, and what only the GRU has."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers import recurrent
from tfsafe import layers

FORMS = {
    "gates": {},
    "fused": {"fused": True},
    "fused, no bias": {"fused": True, "use_bias": False},
    "plain": {"layer_norm": False},
    "plain, no bias": {"layer_norm": False, "use_bias": False},
}
X = np.random.default_rng(1).normal(size=(2, 3, 2))


@pytest.mark.parametrize(
    ("form", "mode"),
    [(form, mode) for form in FORMS for mode in ("eager", "graph")]
    + [("gates", "xla")],
)
def test_values_and_gradients_agree_with_the_equations(form, mode):
    layer = layers.LayerNormGRU(
        3, return_sequences=True, dtype="float64", **FORMS[form]
    )
    recurrent.agrees_with_the_equations(layer, X, mode)


def test_the_order_of_the_gates_is_that_of_keras():
    """Update, reset, candidate: weights can be read across."""
    ours = layers.LayerNormGRU(3, layer_norm=False, dtype="float64")
    theirs = keras.layers.GRU(3, dtype="float64")
    for layer in (ours, theirs):
        layer.build(X.shape)
    theirs.set_weights(list(recurrent.randomise(ours).values()))
    recurrent.close(ours(X), theirs(X))


def test_the_cell_takes_its_state_with_and_without_a_list():
    cell = layers.LayerNormGRUCell(3)
    x, state = tf.ones([2, 4]), tf.ones([2, 3])
    alone, new_alone = cell(x, state)
    listed, (new_listed,) = cell(x, [state])
    np.testing.assert_array_equal(alone, listed)
    np.testing.assert_array_equal(new_alone, new_listed)


def test_the_other_gru_is_refused():
    message = (
        "`reset_after` is not an argument of LayerNormGRUCell. Received: "
        "reset_after=False. Leave it out: the reset gate acts after"
    )
    with pytest.raises(TypeError, match=message):
        layers.LayerNormGRU(3, reset_after=False)


def test_weights_of_the_other_gru_are_refused():
    theirs = keras.layers.GRU(3, reset_after=False)
    with pytest.raises(ValueError, match="`from_keras` takes a GRU with reset_after=T"):
        layers.LayerNormGRU.from_keras(theirs)
