"""Every loss through Keras' own life: config, file, shapes, mask, dtype, fit."""

import inspect
from functools import partial

import keras
import numpy as np
import pytest

from tests.support import keras_checks
from tests.support.oracle import assert_close
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
    regression(partial(losses.Huber, delta=0.5)),
    regression(losses.KLDivergence, SHARES, PROBS, activation="softmax"),
    regression(losses.Hinge, 2 * MASKS - 1, LOGITS, activation="linear"),
    regression(losses.SquaredHinge, MASKS, LOGITS, activation="linear"),
    regression(losses.CategoricalHinge, ROWS, LOGITS, activation="linear"),
    regression(losses.Dice, MASKS, PROBS, activation="sigmoid"),
    regression(partial(losses.Tversky, alpha=0.3), MASKS, PROBS, activation="sigmoid"),
    regression(losses.CosineSimilarity, TARGETS, LOGITS, activation="linear"),
    regression(losses.BinaryCrossentropy, MASKS, PROBS, activation="sigmoid"),
    regression(losses.BinaryFocalCrossentropy, MASKS, PROBS, activation="sigmoid"),
    regression(losses.CategoricalCrossentropy, ROWS, PROBS, activation="softmax"),
    regression(losses.CategoricalFocalCrossentropy, ROWS, PROBS, activation="softmax"),
    regression(
        losses.SparseCategoricalCrossentropy, INDICES, PROBS, activation="softmax"
    ),
]
# Their labels have another layout than predictions.
EXEMPT = {"CTC": "test_ctc", "CategoricalGeneralizedCrossEntropy": "test_crossentropy"}
# All others take real numbers.
CLASSES = {name for name in losses.__all__ if name[0].isupper()}
LISTED = {type(case.make()).__name__ for case in CASES}
CASES += [
    regression(getattr(losses, name)) for name in sorted(CLASSES - LISTED - set(EXEMPT))
]
CASES += [
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


# A training step costs most, and formulas are tested in every mode and dtype elsewhere:
# each loss takes one kind of step, in turn, and `StableCrossEntropy` every kind.
LEARNS = [c for c in keras_checks.LOSS_CHECKS if "learns" in keras_checks.name(c)]
PAIRS = [
    pytest.param(case, check, id=f"{keras_checks.name(check)}-{case}")
    for index, case in enumerate(CASES)
    for check in keras_checks.LOSS_CHECKS
    if index < 4 or check not in LEARNS or check is LEARNS[index % len(LEARNS)]
]


@pytest.mark.parametrize(("case", "check"), PAIRS)
def test_every_loss_is_at_home_in_keras(case, check, tmp_path):
    check(case, tmp_path)


@pytest.mark.parametrize("name", sorted(set(losses.__all__) & set(dir(keras.losses))))
def test_it_has_keras_signature_and_name(name):
    ours, theirs = (
        inspect.signature(getattr(module, name)).parameters
        for module in (losses, keras.losses)
    )
    assert list(ours)[: len(theirs)] == list(theirs)
    for key, parameter in theirs.items():
        assert ours[key].kind == parameter.kind
        assert ours[key].default == parameter.default
    # What tfsafe adds is given by name; Keras 3.3 lacks two of newer Keras' arguments.
    for key in set(ours) - set(theirs) - {"axis", "dtype"}:
        assert ours[key].kind is inspect.Parameter.KEYWORD_ONLY
    if name[0].isupper():
        made = getattr(losses, name)
        assert issubclass(made, getattr(keras.losses, name))
        assert made().name == getattr(keras.losses, name)().name


@pytest.mark.skipif(
    not hasattr(keras.losses, "Circle"),
    reason="Keras 3.3 loads its own function of that name, registered or not",
)
@pytest.mark.parametrize("name", ["mean_squared_error", "categorical_crossentropy"])
def test_a_function_is_a_loss_that_is_saved_with_its_model(name, tmp_path):
    model = keras.Sequential([keras.Input((5, 4)), keras.layers.Softmax()])
    model.compile(loss=getattr(losses, name))
    path = str(tmp_path / "model.keras")
    model.save(path)
    again = keras.saving.load_model(path)
    assert again.loss is getattr(losses, name)
    value = again.evaluate(LOGITS, ROWS, verbose=0)
    wanted = np.mean(getattr(losses, name)(ROWS, PROBS))
    assert_close(value, float(wanted), dtype="float32")
