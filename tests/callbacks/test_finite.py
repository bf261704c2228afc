"""What counts as broken, and how messages name it."""

import keras
import numpy as np
import pytest

from tests.callbacks import training
from tfsafe.callbacks import _finite, _training


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_check_names_the_variables_in_every_dtype(dtype, value):
    variables = [
        keras.Variable(np.ones(2), dtype=dtype, name=name) for name in ("good", "bad")
    ]
    counts = keras.Variable([1, 2], dtype="int32", name="counts")
    check = _finite.FiniteCheck(lambda: [*variables, counts])
    assert check.broken() == []
    variables[1].assign([1.0, value])
    assert check.broken() == ["bad"]
    variables[1].assign([1.0, 2.0])
    assert check.broken() == []


def test_large_finite_numbers_pass_though_their_sum_overflows(dtype):
    variable = keras.Variable([float(dtype.max)] * 2, dtype=dtype)
    assert _finite.FiniteCheck(lambda: [variable]).broken() == []


def test_infinities_that_cancel_do_not_pass():
    variable = keras.Variable([np.inf, -np.inf], name="mask")
    assert _finite.FiniteCheck(lambda: [variable]).broken() == ["mask"]


def test_a_model_without_weights_is_never_broken():
    model = keras.Sequential([keras.Input((1,)), keras.layers.ReLU()])
    assert _finite.FiniteCheck(lambda: model.weights).broken() == []


def test_losses_are_distinguished_from_other_logs():
    logs = {"loss": np.inf, "acc": np.nan, "a_loss": np.nan, "val_loss": 1.0}
    assert _finite.nonfinite_losses(logs) == ["loss is inf", "a_loss is nan"]
    assert _finite.nonfinite_losses(None) == []


def test_the_state_of_a_training_holds_seeds_and_slots_and_no_metrics():
    model = training.compiled("adam", keras.layers.Dropout(0.5), metrics=["mae"])
    training.fit(model, training.clean_data())
    paths = [v.path for v in _training.state_of_training(model)]
    assert any("seed_generator_state" in path for path in paths)
    assert any("velocity" in path for path in paths)
    assert not any("mean_absolute_error" in path or "total" in path for path in paths)
