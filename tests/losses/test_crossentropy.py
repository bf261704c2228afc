"""Keras' cross entropies under their own names: the same where Keras is right."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.losses.samples import (
    INDICES,
    INF,
    LOGITS,
    NAN,
    PROBS,
    ROWS,
    WEIGHTS,
    close,
    value_and_slope,
)
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import losses

SIGMOIDS = 1 / (1 + np.exp(-LOGITS))
SOFT = np.random.default_rng(1).dirichlet(np.ones(5), size=(4, 3)).astype("float32")
# Name of the class, labels, probabilities, options.
CASES = [
    ("BinaryCrossentropy", ROWS, SIGMOIDS, {}),
    ("BinaryCrossentropy", SOFT, SIGMOIDS, {"label_smoothing": 0.2, "axis": 1}),
    ("BinaryFocalCrossentropy", ROWS, SIGMOIDS, {}),
    ("BinaryFocalCrossentropy", SOFT, SIGMOIDS,
     {"apply_class_balancing": True, "alpha": 0.3, "gamma": 1.5}),
    ("BinaryFocalCrossentropy", ROWS, SIGMOIDS, {"gamma": 0, "label_smoothing": 0.1}),
    ("CategoricalCrossentropy", ROWS, PROBS, {}),
    ("CategoricalCrossentropy", SOFT, PROBS, {"label_smoothing": 0.2}),
    ("CategoricalFocalCrossentropy", ROWS, PROBS, {}),
    ("CategoricalFocalCrossentropy", SOFT, PROBS,
     {"alpha": [0.1, 0.2, 0.3, 0.4, 0.5], "gamma": 0.5, "label_smoothing": 0.1}),
    ("SparseCategoricalCrossentropy", INDICES, PROBS, {}),
    ("SparseCategoricalCrossentropy", INDICES, PROBS, {"ignore_class": 2}),
]  # fmt: skip
IDS = [f"{name}-{'-'.join(options)}" for name, _, _, options in CASES]
every_case = pytest.mark.parametrize(
    ("name", "y_true", "probs", "options"), CASES, ids=IDS
)
NAMES = sorted({name for name, *_ in CASES})
FUNCTIONS = {
    "BinaryCrossentropy": "binary_crossentropy",
    "BinaryFocalCrossentropy": "binary_focal_crossentropy",
    "CategoricalCrossentropy": "categorical_crossentropy",
    "CategoricalFocalCrossentropy": "categorical_focal_crossentropy",
    "CategoricalGeneralizedCrossEntropy": "categorical_generalized_cross_entropy",
    "SparseCategoricalCrossentropy": "sparse_categorical_crossentropy",
}
TAKE_INDICES = {
    "SparseCategoricalCrossentropy": losses.SparseCategoricalCrossentropy,
    "CategoricalGeneralizedCrossEntropy": losses.CategoricalGeneralizedCrossEntropy,
    "StableCrossEntropy": losses.StableCrossEntropy,
}
EXTRA = {"CategoricalGeneralizedCrossEntropy": {"q": 0.5}}
HAS_GENERALIZED = hasattr(keras.losses, "CategoricalGeneralizedCrossEntropy")


def both(name, y_true, y_pred, options, **call):
    return (
        value_and_slope(
            getattr(module, name)(**options), y_true, y_pred, "graph", **call
        )
        for module in (losses, keras.losses)
    )


@every_case
@pytest.mark.parametrize("from_logits", [True, False], ids=["logits", "probabilities"])
def test_it_is_keras_loss_where_that_is_right(
    name, y_true, probs, options, from_logits
):
    y_pred = LOGITS if from_logits else probs
    options = {**options, "from_logits": from_logits}
    for weights in (None, WEIGHTS[:, :1], WEIGHTS):
        if weights is WEIGHTS and options.get("axis") == 1:
            continue
        ours, theirs = both(name, y_true, y_pred, options, sample_weight=weights)
        close(ours[0], theirs[0])
        assert_close(
            ours[1], theirs[1], 5, why="both are sums of products", scale=0.125
        )


@every_case
def test_its_function_is_keras_function(name, y_true, probs, options):
    ours, theirs = (
        getattr(module, FUNCTIONS[name])(
            tf.constant(y_true), tf.constant(probs), **options
        )
        for module in (losses, keras.losses)
    )
    close(ours, theirs)


@every_case
def test_it_survives_its_config(name, y_true, probs, options):
    loss = getattr(losses, name)(**options, reduction="sum", name="mine")
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()
    close(again(y_true, probs), loss(y_true, probs))


def test_generalized_cross_entropy_is_one_minus_a_power(mode):
    loss = losses.CategoricalGeneralizedCrossEntropy(q=0.7, reduction="none")
    own = np.take_along_axis(PROBS, INDICES[..., None], -1)
    for y_true in (INDICES, INDICES[..., None]):
        value, slope = value_and_slope(loss, y_true, PROBS, mode)
        close(value, (1 - own[..., 0] ** 0.7) / 0.7)
        close(slope, np.where(ROWS > 0, -(own**-0.3), 0))
    if HAS_GENERALIZED:
        theirs = keras.losses.CategoricalGeneralizedCrossEntropy(0.7)
        close(theirs(INDICES[:, 0], PROBS[:, 0]), tf.reduce_mean(value[:, 0]))
    for q in (0, 1, 1.5, True, "q"):
        with pytest.raises(ValueError, match="`q` must be between 0 and 1, both excl"):
            losses.CategoricalGeneralizedCrossEntropy(q=q)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert again.get_config() == loss.get_config()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(name, half):
    y_true, probs, options = next(case[1:] for case in CASES if case[0] == name)
    y_pred = tf.cast(probs, half)
    loss = getattr(losses, name)(**options)
    value = loss(y_true, y_pred)
    assert value.dtype == tf.float32
    assert_close(value, loss(y_true, tf.cast(y_pred, tf.float32)))
    result = getattr(losses, FUNCTIONS[name])(y_true, y_pred, **options)
    exact = getattr(losses, FUNCTIONS[name])(
        y_true, tf.cast(y_pred, tf.float32), **options
    )
    assert result.dtype.name == half
    np.testing.assert_array_equal(
        tf.cast(result, tf.float32), tf.cast(tf.cast(exact, half), tf.float32)
    )


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_weight_of_0_ignores_nan(name, mode):
    is_sparse = "Sparse" in name or "Generalized" in name
    y_true = (
        np.array([1.0, NAN, 0.0]) if is_sparse else np.array([[0, 1], [NAN, 0], [1, 0]])
    )
    y_pred = np.array([[0.5, 0.5], [NAN, INF], [0.25, 0.75]], "float32")
    loss = getattr(losses, name)()
    value, slope = value_and_slope(
        loss, y_true, y_pred, mode, sample_weight=[1.0, 0.0, 1.0]
    )
    kept = [0, 2]
    expected, expected_slope = value_and_slope(
        loss, y_true[kept], y_pred[kept], "eager"
    )
    close(value, expected * 2 / 3)
    close(slope, np.insert(expected_slope.numpy() * 2 / 3, 1, 0, axis=0))


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_no_probability_costs_infinity_or_nan(name, mode):
    # Certain and wrong, certain and right, no distribution, and no probabilities.
    y_pred = [[0, 1], [1, 0], [0, 0], [1e4, -1e4], [-0.5, 0.5], [-1, 1]]
    is_sparse = "Sparse" in name or "Generalized" in name
    y_true = [0] * 6 if is_sparse else [[1.0, 0.0]] * 6
    loss = getattr(losses, name)(reduction="none")
    value, slope = value_and_slope(loss, y_true, np.array(y_pred, "float32"), mode)
    assert np.isfinite(value).all()
    assert np.all(value >= 0)
    assert np.isfinite(slope).all()
    assert np.abs(slope).max() <= 3e4


# As of a head without activation: labels, predictions, values and slopes.
TOP = 126 * np.log(2)
OUTSIDE = {
    "SparseCategoricalCrossentropy": (
        [0, 1, 2], [[2.0, 0.5, -1.0]] * 3,
        [np.log(3.5 / 2), np.log(3.5 / 0.5), np.log(3.5) + TOP + 1],
        [[1 / 3.5 - 1 / 2, 1 / 3.5, -1 / 3.5], [1 / 3.5, 1 / 3.5 - 2, -1 / 3.5],
         [1 / 3.5, 1 / 3.5, -1 / 3.5 - 1]],
    ),
    "CategoricalCrossentropy": (
        [[0.5, 0.5, 0.0]], [[2.0, 0.5, -1.0]],
        [np.log(3.5)], [[1 / 3.5 - 0.25, 1 / 3.5 - 1, -1 / 3.5]],
    ),
    "BinaryCrossentropy": (
        [[1.0], [0.0], [1.0], [0.0], [1.0]],
        [[1.26], [1.26], [-0.5], [-0.5], [1 + 2.0**-23]],
        [np.log(1.26), TOP + 0.26, TOP + 0.5, np.log(1.5), 2.0**-23],
        [[1 / 1.26], [1.0], [-1.0], [-1 / 1.5], [1.0]],
    ),
    "BinaryFocalCrossentropy": (
        [[1.0], [0.0]], [[1.26], [-0.5]],
        [0.26**2 * np.log(1.26), 0.5**2 * np.log(1.5)],
        [[2 * 0.26 * np.log(1.26) + 0.26**2 / 1.26],
         [-2 * 0.5 * np.log(1.5) - 0.5**2 / 1.5]],
    ),
    "CategoricalGeneralizedCrossEntropy": (
        [0, 1], [[4.0, 0.25], [0.25, 4.0]],
        [2 * (1 - 4**-0.5)] * 2, [[4**-1.5, 0.0], [0.0, 4**-1.5]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(OUTSIDE))
def test_no_prediction_outside_of_0_and_1_costs_less_than_nothing(name, mode):
    y_true, y_pred, expected, expected_slope = OUTSIDE[name]
    loss = getattr(losses, name)(reduction="none")
    value, slope = value_and_slope(loss, y_true, np.array(y_pred, "float32"), mode)
    assert_close(value, expected)
    assert_close(slope, expected_slope)


def test_an_ignored_class_counts_nowhere_and_may_be_nan(mode):
    y_true = np.array([2, 255, 0], "int32")
    y_pred = np.array([[0, 1, 2], [NAN, 0, 0], [3, 2, 1]], "float32")
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=255)
    value, slope = value_and_slope(loss, y_true, y_pred, mode)
    expected, expected_slope = value_and_slope(
        losses.SparseCategoricalCrossentropy(from_logits=True),
        y_true[[0, 2]],
        y_pred[[0, 2]],
        "eager",
    )
    close(value, expected)
    close(slope, np.insert(expected_slope.numpy(), 1, 0, axis=0))
    value, slope = value_and_slope(loss, np.full([3], 255), y_pred, mode)
    assert value == 0
    close(slope, np.zeros([3, 3]))


@pytest.mark.parametrize("name", list(TAKE_INDICES))
def test_an_unknown_class_is_refused_in_eager_mode_and_nan_in_a_graph(name, mode):
    loss = TAKE_INDICES[name](reduction="none")
    y_pred = np.full([4, 2], 0.5, "float32")
    y_true = np.array([0, 2, -1, 0.5], "float32")
    if mode == "eager":
        for wrong in y_true[1:]:
            with pytest.raises(ValueError, match=r"valid range of \[0, 2\),"):
                loss(np.float32([0, 0, wrong]), y_pred[:3])
            if name not in FUNCTIONS:
                continue
            function = getattr(losses, FUNCTIONS[name])
            with pytest.raises(ValueError, match="outside the valid range"):
                function(np.float32([0, 0, wrong]), y_pred[:3], **EXTRA.get(name, {}))
        # Unless its weight is 0.
        value = loss(y_true, y_pred, sample_weight=[1.0, 0.0, 0.0, 0.0])
        close(value, [loss([0], y_pred[:1])[0], 0, 0, 0])
        return
    value, slope = value_and_slope(loss, y_true, y_pred, mode)
    assert np.isfinite(value[0])
    assert np.isnan(value[1:]).all()
    assert np.array_equal(slope[1:], np.zeros([3, 2]))


def test_the_message_on_classes_that_are_numbered_from_1_says_what_to_write():
    loss = losses.SparseCategoricalCrossentropy()
    with pytest.raises(
        ValueError,
        match=r"label value of 10 which is outside the valid range of \[0, 10\), at "
        r"index \[9\]. .* numbered from 1: pass `y_true - 1`, or end the model in 11",
    ):
        loss(np.arange(1, 11), np.full([10, 10], 0.1, "float32"))
    for labels, count in (([0, 10], 11), ([1, 12], 13)):
        with pytest.raises(ValueError, match=f"End the model in {count} or more class"):
            loss(labels, np.full([2, 10], 0.1, "float32"))


def test_an_ignored_class_may_lie_outside_of_the_classes():
    function = losses.sparse_categorical_crossentropy
    y_pred = np.full([2, 2], 0.5, "float32")
    close(function([255, 1], y_pred, ignore_class=255), [0, np.log(2)])
    with pytest.raises(ValueError, match="label value of 255"):
        function([255, -1], y_pred, ignore_class=-1)


@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_a_large_index_is_not_rounded(mode):
    # float32 would make 16777217 of it, the neighbour.
    y_true = np.array([2**24 + 1])
    loss = losses.SparseCategoricalCrossentropy(ignore_class=2**24)
    value = modes.compile_for(mode, loss)(y_true, np.array([[0.5, 0.5]], "float32"))
    assert np.isnan(value)


# Label, probabilities, and the loss of each kind of label.
ONE_ANSWER = {
    "probability 0": ([[0.0, 1.0]], -np.log(2.0**-126)),
    "all 0": ([[0.0, 0.0]], 0.0),
    "certain": ([[1.0, 0.0]], 0.0),
}


@pytest.mark.parametrize("edge", list(ONE_ANSWER))
def test_the_stable_loss_gives_the_answer_of_the_named_ones(edge, mode):
    probs, expected = ONE_ANSWER[edge]
    y_pred = np.array(probs, "float32")
    for named, y_true, labels in (
        (losses.SparseCategoricalCrossentropy, np.array([0]), "sparse"),
        (losses.CategoricalCrossentropy, np.array([[1.0, 0.0]], "float32"), "dense"),
        (losses.BinaryCrossentropy, np.array([[1.0, 0.0]], "float32"), "binary"),
    ):
        stable = value_and_slope(
            losses.StableCrossEntropy(labels=labels), y_true, y_pred, mode
        )
        theirs = value_and_slope(named(), y_true, y_pred, mode)
        close(stable[0], theirs[0])
        close(stable[1], theirs[1])
        if labels != "binary":
            assert_close(stable[0], expected)
        if edge == "probability 0":
            assert np.abs(stable[1]).max() >= 0.5


def test_the_stable_loss_takes_the_logits_that_the_named_ones_take():
    z = tf.constant([[1.0, 2.0, 0.5]])
    logits = [losses.StableCrossEntropy, losses.SparseCategoricalCrossentropy]
    for loss in logits:
        with pytest.warns(UserWarning, match="`from_logits=True`, but `y_pred` is"):
            value = loss(from_logits=True)([0], keras.activations.softmax(z))
        close(value, tf.reduce_logsumexp(z) - 1)


@pytest.mark.skipif(
    "axis"
    not in inspect.signature(keras.losses.SparseCategoricalCrossentropy).parameters,
    reason="this Keras has no such argument",
)
def test_the_classes_may_lie_along_any_axis(mode):
    moved = np.moveaxis(LOGITS, -1, 1)
    run = modes.compile_for(
        mode, losses.SparseCategoricalCrossentropy(from_logits=True, axis=1)
    )
    close(
        run(INDICES, moved),
        losses.SparseCategoricalCrossentropy(from_logits=True)(INDICES, LOGITS),
    )
    config = losses.SparseCategoricalCrossentropy(axis=1).get_config()
    assert config["axis"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_costs_nothing(name, mode):
    y_true = np.zeros([0] if "Sparse" in name else [0, 3], "float32")
    loss = modes.compile_for(mode, getattr(losses, name)())
    value = loss(y_true, np.zeros([0, 3], "float32"))
    assert value.shape == ()
    assert value == 0


@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_it_trains_a_model_under_every_policy(name, policy, tmp_path):
    activation = "sigmoid" if "Binary" in name else "softmax"
    dense = keras.layers.Dense(3, activation, dtype=policy)
    model = keras.Sequential([keras.Input((4,)), dense])
    loss = getattr(losses, name)()
    model.compile(keras.optimizers.SGD(0.1), loss)
    x = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
    y = np.array([0, 1, 2, 0, 1, 2])
    if "Sparse" not in name and "Generalized" not in name:
        y = np.eye(3)[y]
    before = dense.get_weights()
    history = model.fit(x, y, batch_size=6, verbose=0).history["loss"]
    assert np.isfinite(history).all()
    assert not np.array_equal(before[0], dense.get_weights()[0])
    path = str(tmp_path / "model.keras")
    model.save(path)
    assert keras.saving.load_model(path).loss.get_config() == loss.get_config()
