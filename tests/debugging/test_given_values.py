"""Values that a program reads: weights of a file, features without a mean."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe


def model_of(kernel):
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1, name="head")])
    model.set_weights([np.array(kernel, "float32"), np.zeros(1, "float32")])
    return model


def caught_in(run):
    with pytest.raises(tfsafe.NumericsError) as caught:
        run()
    return caught.value.findings[0]


@pytest.mark.parametrize("name", ["w.weights.h5", "m.keras"])
def test_weights_of_a_file_are_found_where_they_are_used(name, tmp_path):
    path = str(tmp_path / name)
    model_of([[1.0], [np.nan]]).save_weights(path) if "weights" in name else model_of([
        [1.0],
        [np.nan],
    ]).save(path)

    with tfsafe.debugging.check_numerics():
        if "weights" in name:
            model = model_of([[1.0], [1.0]])
            model.load_weights(path)
        else:
            model = keras.models.load_model(path)
        model.compile("sgd", "mse")
        finding = caught_in(lambda: model.fit(np.ones([2, 2]), np.ones(2), verbose=0))
    assert finding.origin.startswith("variable `")
    assert "the checkpoint" in finding.suggestion


def test_weights_of_a_file_that_nothing_uses_are_left_alone(tmp_path):
    path = str(tmp_path / "w.weights.h5")
    model_of([[1.0], [np.nan]]).save_weights(path)
    with tfsafe.debugging.check_numerics():
        model = model_of([[1.0], [1.0]])
        model.load_weights(path)
        model.set_weights([np.ones([2, 1]), np.zeros(1)])
        assert np.isfinite(model.predict(np.ones([2, 2]), verbose=0)).all()


def test_a_value_that_the_program_sets_itself_is_found_there():
    model = model_of([[1.0], [1.0]])
    with tfsafe.debugging.check_numerics():
        weights = [np.array([[np.nan], [1.0]]), np.zeros(1)]
        finding = caught_in(lambda: model.set_weights(weights))
    assert finding.site.path == __file__


def test_a_checkpoint_of_tensorflow_is_said_to_hold_the_nan(tmp_path):
    weights = tf.Variable([1.0, np.nan])
    path = tf.train.Checkpoint(weights=weights).save(str(tmp_path / "c"))
    with tfsafe.debugging.check_numerics():
        restored = tf.train.Checkpoint(weights=tf.Variable([1.0, 1.0]))
        finding = caught_in(lambda: restored.restore(path))
    assert finding.op_type == "RestoreV2"
    assert finding.cause == "the checkpoint that it reads holds it."
    assert finding.suggestion.startswith("read an earlier checkpoint")


def _found_in_fit(x):
    model = model_of([[1.0], [1.0]])
    model.compile("sgd", "mse")
    with tfsafe.debugging.check_numerics():
        return caught_in(lambda: model.fit(x, np.ones(3), verbose=0))


@pytest.mark.parametrize("has_gap", [True, False], ids=["missing", "constant"])
def test_a_feature_without_a_mean_is_told_from_a_constant_one(has_gap):
    raw = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    if has_gap:
        raw[1, 1] = np.nan
    with np.errstate(invalid="ignore"):
        x = (raw - raw.mean(0)) / raw.std(0)
    finding = _found_in_fit(x)
    assert "feature 1 is NaN in each row" in finding.suggestion
    assert ("np.nanmean(x, axis=0)" in finding.suggestion) == has_gap
    assert ("np.where(std > 0, std, 1)" in finding.suggestion) != has_gap


@pytest.mark.parametrize("has_gap", [True, False], ids=["missing", "constant"])
def test_of_a_feature_whose_first_values_are_gone_both_causes_are_named(has_gap):
    x = np.array([[1.0, 5.0], [2.0, np.nan if has_gap else 5.0], [4.0, 5.0]])
    with np.errstate(invalid="ignore"):
        x = (x - x.mean(0)) / x.std(0)
    finding = _found_in_fit(x)
    for words in ("a missing number", "np.where(std > 0, std, 1)", "np.nanmean(x"):
        assert words in finding.suggestion


@pytest.mark.parametrize("missing", [(), (1,)], ids=["constant", "missing"])
def test_a_target_that_is_nan_throughout_is_told_its_causes(missing):
    raw = np.array([3.0, 3.0, 3.0])
    raw[list(missing)] = np.nan
    with np.errstate(invalid="ignore"):
        y = (raw - raw.mean()) / raw.std()
    model = model_of([[1.0], [1.0]])
    model.compile("sgd", "mse")
    with tfsafe.debugging.check_numerics():
        finding = caught_in(lambda: model.fit(np.ones([3, 2]), y, verbose=0))
    mean, std = np.nanmean(raw), np.nanstd(raw)
    for words in ("np.nanmean(y)", "np.nanstd(y)", "text was read as numbers"):
        assert words in finding.suggestion
    divisor = "np.where(std > 0, std, 1)"
    assert f"divide by {divisor}." in finding.suggestion
    scaled = (raw - mean) / eval(divisor, {"np": np, "std": std})
    np.testing.assert_array_equal(scaled, raw - 3)


@pytest.mark.parametrize("weight", [np.inf, np.nan])
def test_weights_of_classes_are_told_from_those_of_samples(weight):
    x, y = np.ones([3, 2]), np.array([0, 1, 0])
    model = model_of([[1.0], [1.0]])
    model.compile("sgd", "binary_crossentropy")
    weights = {0: 1.0, 1: weight}
    each = np.array([1.0, weight, 1.0])
    with tfsafe.debugging.check_numerics():
        by_class = caught_in(lambda: model.fit(x, y, class_weight=weights, verbose=0))
        by_row = caught_in(lambda: model.fit(x, y, sample_weight=each, verbose=0))
    assert by_class.suggestion.startswith("`class_weight` holds it")
    # The arrays of the data do not.
    assert by_class.suggested_code == ""
    assert "class_weight" not in by_row.suggestion
    assert "check_finite((x, y, each)" in by_row.suggested_code


def test_the_fix_of_a_missing_number_has_finite_features():
    x = np.array([[1.0, 5.0], [2.0, np.nan], [4.0, 6.0]])
    mean, std = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    assert np.isfinite(np.nan_to_num((x - mean) / std)).all()


def test_before_the_first_update_its_rate_is_not_named():
    tfsafe.debugging.checks.tally.TALLY.begin()
    w = tf.Variable([300.0])

    def train():
        with tfsafe.debugging.check_numerics():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.exp(w))
            w.assign_sub(0.25 * tape.gradient(loss, w))

    assert "learning rate" not in caught_in(train).cause


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_constant_beyond_float16_is_told_from_an_infinite_weight():
    @tfsafe.checked
    @tf.function
    def scores(x, mask):
        return x + (1.0 - mask) * -1e9

    half = tf.constant([1.0, 2.0], tf.float16)
    finding = caught_in(lambda: scores(half, tf.constant([1.0, 0.0], tf.float16)))
    assert finding.suggestion.startswith("float16 ends at 65504")
    assert "tf.where(mask, x, x.dtype.min)" in finding.suggestion


@pytest.mark.parametrize(
    ("epsilon", "variance", "words"),
    [
        (0.0, [1.0, 0.0], "give the layer an epsilon, such as BatchNormalization(epsi"),
        (1e-3, [1.0, -1.0], "layers.BatchNormalization replaces"),
    ],
)
def test_a_moving_variance_of_0_needs_an_epsilon(epsilon, variance, words):
    name = f"norm{epsilon > 0}"
    layer = keras.layers.BatchNormalization(epsilon=epsilon, name=name)
    model = keras.Sequential([keras.Input([2]), layer])
    layer.moving_variance.assign(variance)
    run = tfsafe.checked(tf.function(lambda x: model(x, training=False)))
    finding = caught_in(lambda: run(tf.ones([3, 2])))
    assert finding.op_type == "Rsqrt"
    assert finding.suggestion.startswith(words), layer


def test_the_default_epsilon_divides_by_no_moving_variance_of_0():
    layer = keras.layers.BatchNormalization(epsilon=1e-3)
    layer.build([None, 2])
    layer.moving_variance.assign([1.0, 0.0])
    assert np.isfinite(layer(tf.ones([3, 2]), training=False)).all()
