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

TARGETS = RNG.uniform(0.5, 2.0, size=LOGITS.shape).astype("float32")
RATES = RNG.uniform(0.5, 2.0, size=LOGITS.shape).astype("float32")
SHARES = PROBS[::-1].copy()
MASKS = (RNG.uniform(size=LOGITS.shape) < 0.5).astype("float32")


def with_dtype(make):
    """Gives losses of Keras 3.3, which do not take one, a dtype as newer ones have."""

    def made(dtype=None):
        loss = make()
        if dtype is None or loss.dtype == dtype:
            return loss
        try:
            return make(dtype=dtype)
        except TypeError:
            loss.dtype = dtype
            return loss

    return made


def regression(make, y_true=TARGETS, y_pred=RATES, **options):
    shown = getattr(make, "func", make).__name__
    options.setdefault("activation", "softplus")
    return case(with_dtype(make), y_true, y_pred=y_pred, name=shown, **options)


CASES += [
    regression(losses.MeanSquaredError),
    regression(losses.MeanAbsoluteError),
    regression(losses.MeanAbsolutePercentageError),
    regression(losses.MeanSquaredLogarithmicError),
    regression(partial(losses.Huber, delta=0.5)),
    regression(losses.LogCosh),
    regression(losses.Poisson),
    regression(losses.KLDivergence, SHARES, PROBS, activation="softmax"),
    regression(losses.Hinge, 2 * MASKS - 1, LOGITS, activation="linear"),
    regression(losses.SquaredHinge, MASKS, LOGITS, activation="linear"),
    regression(losses.CategoricalHinge, ROWS, LOGITS, activation="linear"),
    regression(losses.Dice, MASKS, PROBS, activation="sigmoid"),
    regression(partial(losses.Tversky, alpha=0.3), MASKS, PROBS, activation="sigmoid"),
    case(
        with_dtype(partial(losses.KLDivergence, from_logits=True)),
        SHARES,
        name="KLDivergence-from-logits",
    ),
    case(
        with_dtype(partial(losses.Poisson, log_input=True)),
        RATES,
        name="Poisson-of-logarithms",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("check", keras_checks.LOSS_CHECKS, ids=keras_checks.name)
def test_every_loss_is_at_home_in_keras(case, check, tmp_path):
    check(case, tmp_path)
