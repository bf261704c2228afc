"""Every layer through Keras' own life: config, file, shapes, mask, policy, fit."""

from functools import partial

import numpy as np
import pytest

from tests.support import keras_checks
from tfsafe import layers

INPUTS = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float32")
MASK = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
case = partial(keras_checks.LayerCase, inputs=INPUTS, mask=MASK)

CASES = [
    case(layers.LogSigmoid, name="log-sigmoid"),
    case(layers.SafeMeanPooling, name="mean-over-steps"),
    case(
        partial(layers.SafeMeanPooling, axis=(1, 2), keepdims=True, empty_value=0.5),
        name="mean-over-all-keepdims",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("check", keras_checks.LAYER_CHECKS, ids=keras_checks.name)
def test_every_layer_is_at_home_in_keras(case, check, tmp_path):
    check(case, tmp_path)
