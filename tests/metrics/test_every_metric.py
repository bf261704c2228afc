"""What holds for every metric of labels and predictions."""

import inspect
import json
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.metrics.cases import CASES, CHOSEN, CLASSES, NAN, SIZE, WHOLE, result_of
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import metrics

WEIGHTS = np.random.default_rng(1).integers(1, 4, size=SIZE).astype("float32")
KNOWN = [case for case in CASES + WHOLE if hasattr(keras.metrics, case.name)]

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def close(got, expected):
    got = np.float32(got)
    expected = np.broadcast_to(expected, got.shape)
    assert_close(got, expected, scale=1.0)


def weights_for(case):
    # Of the others Keras makes whole numbers, with a warning.
    return WEIGHTS.astype("int64" if "IoU" in case.name else "float32")


def arguments(metric):
    parameters = inspect.signature(type(metric)).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


def spoiled(x, row):
    """Returns `x` with a NaN in one row."""
    result = np.array(x, "float32")
    result[row] = NAN
    return result


def test_every_class_of_the_package_is_tested_here():
    # The three of values, and of any function, have a file of their own.
    tested = {case.name for case in CASES + WHOLE} | {
        "Mean",
        "Sum",
        "MeanMetricWrapper",
    }
    assert tested == {name for name in metrics.__all__ if name[0].isupper()}


@pytest.mark.parametrize("case", KNOWN, ids=str)
def test_it_is_keras_metric_where_that_is_right(case):
    ours, theirs = case.ours(), case.theirs()
    assert isinstance(ours, type(theirs))
    assert arguments(ours) == arguments(theirs)
    assert ours.name.rstrip("_0123456789") == theirs.name.rstrip("_0123456789")
    # Twice, and once with weights: sums go on from batch to batch.
    batches = [(case.y_true, case.y_pred), (case.y_true[:3], case.y_pred[:3])]
    if case not in WHOLE and case.name != "Accuracy":
        batches.append((case.y_true, case.y_pred, weights_for(case)))
    close(result_of(ours, *batches), result_of(theirs, *batches))
    assert ours.result().dtype == "float32"
    ours.reset_state()
    theirs.reset_state()
    close(result_of(ours, batches[0]), result_of(theirs, batches[0]))


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize(
    "case", CHOSEN, ids=lambda case: f"{case}-{list(case.options.items())[-1]}"
)
def test_every_option_is_that_of_keras(case, mode):
    batches = [(case.y_true, case.y_pred)]
    if case.y_true is not CLASSES:
        # Of these, with an axis more, Keras takes no weights of rows.
        batches.append((case.y_true, case.y_pred, weights_for(case)))
    theirs = result_of(case.theirs(), *batches)
    close(result_of(case.ours(), *batches, mode=mode), theirs)


@pytest.mark.parametrize("case", CASES[::5], ids=str)
@pytest.mark.parametrize("mode", modes.MODES)
def test_it_is_the_same_in_every_mode(case, mode):
    batch = (case.y_true, case.y_pred, weights_for(case))
    close(
        result_of(case.ours(), batch, batch, mode=mode), result_of(case.ours(), batch)
    )


@every_case
def test_a_nan_prediction_makes_the_result_nan_until_the_next_reset(case):
    metric = case.ours()
    batch = (case.y_true, case.y_pred)
    assert np.isnan(result_of(metric, (case.y_true, spoiled(case.y_pred, 1)))).all()
    assert np.isnan(result_of(metric, batch)).all()
    metric.reset_state()
    close(result_of(metric, batch), result_of(case.ours(), batch))


@every_case
def test_a_nan_label_makes_the_result_nan(case):
    if case.y_true.dtype.kind == "i":
        return
    metric = case.ours()
    assert np.isnan(result_of(metric, (spoiled(case.y_true, 1), case.y_pred))).all()


@pytest.mark.parametrize("spoil", ["prediction", "label"])
@every_case
def test_a_weight_of_0_ignores_a_nan(case, spoil):
    y_true, y_pred = case.y_true, case.y_pred
    if spoil == "label":
        y_true = spoiled(y_true, 1) if y_true.dtype.kind == "f" else y_true
    else:
        y_pred = spoiled(y_pred, 1)
    weights = weights_for(case).copy()
    weights[1] = 0
    kept = [i for i in range(SIZE) if i != 1]
    got = result_of(case.ours(), (y_true, y_pred, weights))
    rest = (case.y_true[kept], case.y_pred[kept], weights[kept])
    close(got, result_of(case.ours(), rest))


@every_case
def test_it_is_0_before_the_first_update_and_after_a_reset(case):
    metric = case.ours()
    assert np.all(np.asarray(metric.result()) == 0)
    metric.update_state(case.y_true, case.y_pred)
    metric.reset_state()
    assert np.all(np.asarray(metric.result()) == 0)


@every_case
def test_it_survives_its_config(case):
    metric = case.ours(dtype="float64")
    config = json.loads(json.dumps(metric.get_config()))
    again = type(metric).from_config(config)
    assert again.get_config() == metric.get_config()
    registered = keras.saving.get_registered_name(type(metric))
    assert registered == f"tfsafe.metrics>{case.name}"
    loaded = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert type(loaded) is type(metric)
    batch = (case.y_true, case.y_pred)
    close(result_of(loaded, batch), result_of(case.ours(), batch))
    assert loaded.result().dtype == "float64"


@every_case
def test_its_sums_keep_counting_where_float32_does_not(case):
    metric = case.ours()
    metric.update_state(case.y_true, case.y_pred)
    for variable in metric.variables:
        assert variable.dtype == "float64"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_says_what_it_does_with_nan(case):
    text = inspect.getdoc(type(case.ours()))
    assert "Args:" in text
    assert "Numerics:" in text
    assert ">>> metric" in text or ">>> m" in text or ">>> p" in text


@pytest.mark.parametrize("name", ["AUC", "BinaryAccuracy", "R2Score"])
def test_it_works_in_a_compiled_model(name, tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, "sigmoid")])
    model.compile("sgd", "mse", metrics=[getattr(metrics, name)(name="judge")])
    x = np.random.default_rng(2).normal(size=(8, 2)).astype("float32")
    y = (x[:, :1] > 0).astype("float32")
    history = model.fit(x, y, batch_size=4, verbose=0, validation_data=(x, y))
    assert np.isfinite(history.history["val_judge"]).all()
    x[3] = NAN
    assert np.isnan(model.evaluate(x, y, verbose=0, return_dict=True)["judge"])
    path = str(tmp_path / "model.keras")
    model.save(path)
    assert keras.saving.load_model(path).evaluate(y.repeat(2, 1), y, verbose=0)


@pytest.mark.parametrize("mode", ["graph", "eager"])
@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 3.0]], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("name", "y_true"),
    [
        ("CategoricalCrossentropy", [[1.0, 0.0], [NAN, 0.0], [0.0, 1.0]]),
        ("SparseCategoricalCrossentropy", [0.0, NAN, 1.0]),
        ("KLDivergence", [[1.0, 0.0], [NAN, 0.0], [0.0, 1.0]]),
    ],
)
def test_the_logits_of_a_softmax_are_found(name, y_true, weights, mode):
    metric = getattr(metrics, name)()
    logits = np.float32([[0.0, 200.0], [5.0, 1.0], [0.0, 1.0]])
    kept = slice(None) if weights else slice(None, None, 2)

    def update(z):
        probs = keras.activations.softmax(z)
        if weights and mode == "eager":
            # A mask hides the logits that Keras attached.
            probs = tf.nn.softmax(tf.minimum(z, 20.0))
        metric.update_state(np.float32(y_true)[kept], probs, weights)

    metric.update_state(np.float32(y_true)[:1], [[0.5, 0.5]])
    metric.reset_state()
    modes.compile_for(mode, update)(tf.constant(logits[kept]))
    far = 20 if weights and mode == "eager" else 200
    rest = np.log1p(np.exp(-1.0)) * (3 if weights else 1)
    close(metric.result(), (far + rest) / (4 if weights else 2))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(dtype):
    metric = metrics.MeanSquaredError()
    metric.update_state([[0.0]], tf.constant([[512.0]], dtype))
    assert metric.result() == 2**18


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize(
    "name", ["TopKCategoricalAccuracy", "SparseTopKCategoricalAccuracy"]
)
def test_top_k_takes_every_dtype(name, dtype):
    metric = getattr(metrics, name)(k=1)
    y_true = np.float32([[0, 1], [0, 1]]) if name[0] == "T" else np.float32([1, 1])
    metric.update_state(y_true, tf.constant([[0.2, 0.8], [0.7, 0.3]], dtype))
    assert metric.result() == 0.5


def test_a_nan_of_an_ignored_class_does_not_count():
    options = inspect.signature(keras.metrics.SparseCategoricalCrossentropy).parameters
    if "ignore_class" not in options:
        pytest.skip("this Keras has no such argument")
    metric = metrics.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    metric.update_state([0, -1], [[0.0, 0.0], [NAN, 0.0]], [1.0, 1.0])
    close(metric.result(), np.log(2))


def test_weights_that_do_not_fit_are_refused():
    metric = metrics.AUC()
    with pytest.raises(ValueError, match="`sample_weight` must be a scalar or have"):
        metric.update_state([[0.0], [1.0]], [[0.5], [0.5]], [1.0, 2.0, 3.0])


def test_weights_of_the_samples_reach_every_element():
    y_true = np.array([[0, 1], [1, 1]], "float32")
    y_pred = np.array([[0.9, 0.9], [0.9, 0.1]], "float32")
    metric = metrics.Precision()
    close(result_of(metric, (y_true, y_pred, [3.0, 1.0])), 4 / 7)


def test_a_keras_mask_takes_a_nan_out():
    x = np.array([[[1.0], [-9.0]], [[2.0], [3.0]]], "float32")
    y = np.array([[[2.0], [NAN]], [[2.0], [3.0]]], "float32")
    masked = keras.layers.Masking(-9.0)(x)
    metric = metrics.MeanSquaredError()
    metric.update_state(y, masked)
    assert_close(metric.result(), 1 / 3)
    metric.reset_state()
    metric.update_state(y, masked, [3.0, 1.0])
    assert_close(metric.result(), 3 / 5)


def test_a_mask_of_classes_is_no_mask_of_samples():
    mask = np.array([[True, True, False], [False, True, True]])
    probs = keras.layers.Softmax()(np.float32([[0, 1, 2], [0, 1, 2]]), mask)
    metric = metrics.SparseCategoricalAccuracy()
    metric.update_state([1, 1], probs)
    assert metric.result() == 0.5


@pytest.mark.parametrize("name", ["AUC", "MeanSquaredError", "R2Score", "Mean"])
def test_it_survives_a_pickle(name):
    metric = getattr(metrics, name)
    assert pickle.loads(pickle.dumps(metric)) is metric
    assert metric.__module__ == "tfsafe.metrics"


def test_float64_is_not_rounded_to_float32():
    # float32 has steps of 128 at 1.7e9.
    y = 1.7e9 + np.array([[0.0, 100.0, 200.0]])
    p = y + np.array([[1.0, -2.0, 3.0]])
    expected = {
        "MeanSquaredError": 14 / 3,
        "MeanAbsoluteError": 2,
        "RootMeanSquaredError": np.sqrt(14 / 3),
        "PearsonCorrelation": np.corrcoef(y - 1.7e9, p - 1.7e9)[0, 1],
    }
    for name, value in expected.items():
        if hasattr(metrics, name):
            close(result_of(getattr(metrics, name)(), (y, p)), value)


# Predictions of float32 that a threshold or a constraint meets exactly.
TIES = np.array([0.0, 0.1, 0.2, 0.5, 0.6, 0.2, 0.5, 0.6, 0.8, 0.9], "float32")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Precision", {"thresholds": 0.6}),
        ("TruePositives", {"thresholds": [0.1, 0.9]}),
        ("PrecisionAtRecall", {"recall": 0.8}),
        ("SpecificityAtSensitivity", {"sensitivity": 0.4}),
    ],
)
def test_ties_are_decided_as_in_keras(name, options):
    labels = np.repeat([0, 1], 5)
    ours = getattr(metrics, name)(**options)
    theirs = getattr(keras.metrics, name)(**options)
    close(ours(labels, TIES), theirs(labels, TIES))
    assert ours.get_config().get("thresholds") == options.get("thresholds")


def test_a_metric_may_take_the_place_of_kerass(monkeypatch):
    monkeypatch.setattr(keras.metrics, "Mean", metrics.Mean)
    metric = metrics.MeanSquaredError()
    metric.update_state([1.0, 2.0], [2.0, 2.0])
    assert float(metric.result()) == 0.5
