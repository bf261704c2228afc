"""Every loss through Keras' own life: config, file, shapes, mask, dtype, fit."""

from functools import partial

import numpy as np
import pytest

from tests.support import keras_checks
from tfsafe import losses

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(3, 5, 4)).astype("float32")
INDICES = RNG.integers(4, size=(3, 5))
ROWS = np.eye(4, dtype="float32")[INDICES]
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
case = partial(keras_checks.LossCase, y_pred=LOGITS)
FromLogits = partial(losses.StableCrossEntropy, from_logits=True)

CASES = [
    case(FromLogits, INDICES, name="indices"),
    case(partial(FromLogits, label_smoothing=0.1), ROWS, name="rows"),
    case(partial(FromLogits, labels="binary"), ROWS, name="binary"),
    case(
        partial(losses.StableCrossEntropy, ignore_class=9),
        np.where(INDICES == 3, 9, INDICES),
        y_pred=PROBS,
        activation="softmax",
        name="indices-from-probabilities",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("check", keras_checks.LOSS_CHECKS, ids=keras_checks.name)
def test_every_loss_is_at_home_in_keras(case, check, tmp_path):
    check(case, tmp_path)
