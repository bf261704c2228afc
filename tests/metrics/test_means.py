"""The running mean and sum of values, and the mean of any function."""

import functools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.metrics.cases import NAN, result_of
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import metrics

INF = float("inf")
VALUES = np.array([[1.0, 3.0], [NAN, 5.0]], "float32")


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("mode", modes.MODES)
def test_a_mean_skips_nonfinite_values_and_counts_them(bad, mode):
    mean = metrics.Mean()
    batches = [(np.float32(x),) for x in (1.0, bad, 2.0, bad)]
    assert result_of(mean, *batches, mode=mode) == 1.5
    assert mean.nonfinite.numpy() == 2


def test_a_mean_skips_nonfinite_elements_of_a_batch():
    assert result_of(metrics.Mean(), (VALUES,)) == 3
    assert result_of(metrics.Mean(), (VALUES, [1.0, 2.0])) == np.float32(14 / 4)


def test_a_mean_of_nonfinite_values_alone_is_nan_until_a_finite_one_comes():
    mean = metrics.Mean()
    assert np.isnan(result_of(mean, (NAN,)))
    assert result_of(mean, (4.0,)) == 4
    mean.reset_state()
    assert mean.nonfinite.numpy() == 0
    assert mean.result() == 0


def test_a_mean_can_propagate_nonfinite_values_as_keras_does():
    mean = metrics.Mean(policy="propagate")
    assert np.isnan(result_of(mean, (1.0,), (NAN,)))
    assert mean.nonfinite.numpy() == 1
    assert result_of(metrics.Mean(policy="propagate"), (1.0,), (INF,)) == INF


@pytest.mark.parametrize("name", ["Mean", "Sum"])
def test_a_weight_of_0_takes_a_nan_out(name):
    metric = getattr(metrics, name)()
    assert result_of(metric, ([NAN, 3.0], [0.0, 1.0])) == 3
    if name == "Mean":
        assert metric.nonfinite.numpy() == 0


def test_a_sum_keeps_a_nan_that_counts_unless_its_policy_skips_it():
    assert np.isnan(result_of(metrics.Sum(), ([NAN, 3.0],)))
    total = metrics.Sum(policy="skip")
    assert result_of(total, ([NAN, 3.0],), ([INF, 1.0],)) == 4
    assert total.nonfinite.numpy() == 2
    again = keras.metrics.deserialize(keras.metrics.serialize(total))
    assert again.policy == "skip"


@pytest.mark.parametrize("name", ["Mean", "Sum"])
@pytest.mark.parametrize(
    ("values", "weights"),
    [
        (2.5, None),
        (2.5, 3.0),
        ([1, 2, 4], None),
        ([1.0, 2.0, 4.0], [1.0, 0.5, 2.0]),
        (np.arange(6.0).reshape(3, 2), None),
        (np.arange(6.0).reshape(3, 2), [1.0, 0.5, 2.0]),
        (np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(3, 2)),
        (np.arange(6.0).reshape(3, 2), [[1.0], [0.5], [2.0]]),
    ],
)
def test_it_is_keras_metric_where_that_is_right(name, values, weights):
    ours, theirs = getattr(metrics, name)(), getattr(keras.metrics, name)()
    for metric in (ours, theirs):
        metric.update_state(values, weights)
        metric.update_state(values, weights)
    if name == "Mean" or weights is None:
        assert_close(ours.result(), theirs.result())
    assert ours.result().dtype == "float32"


def test_a_sum_takes_each_value_with_its_weight():
    assert result_of(metrics.Sum(), (np.ones([3, 2]), [1.0, 0.5, 2.0])) == 7


@pytest.mark.parametrize("name", ["Mean", "Sum"])
def test_it_keeps_counting_where_float32_does_not(name):
    metric = getattr(metrics, name)(dtype="float64")
    metric.total.assign(2.0**24)
    metric.update_state(1.0)
    assert metric.total.numpy() == 2**24 + 1
    if name == "Mean":
        metric.count.assign(2.0**24)
        metric.update_state([1.0, 1.0, 1.0])
        assert metric.count.numpy() == 2**24 + 3


@pytest.mark.parametrize("options", [{}, {"policy": "propagate"}])
def test_a_mean_survives_its_config(options):
    mean = metrics.Mean(name="mine", dtype="float64", **options)
    config = json.loads(json.dumps(mean.get_config()))
    assert metrics.Mean.from_config(config).get_config() == mean.get_config()
    again = keras.metrics.deserialize(keras.metrics.serialize(mean))
    assert type(again) is metrics.Mean
    assert again.policy == options.get("policy", "skip")


def test_a_wrong_option_is_refused():
    with pytest.raises(ValueError, match="`policy` must be one of 'propagate', 'skip'"):
        metrics.Mean(policy="ignore")


@pytest.mark.parametrize("name", ["Mean", "Sum"])
def test_weights_that_do_not_fit_are_refused(name):
    message = "`sample_weight` must be a scalar or have the leading axes"
    with pytest.raises(ValueError, match=message):
        getattr(metrics, name)().update_state([1.0, 2.0], [1.0, 2.0, 3.0])


def test_any_function_can_be_wrapped():
    def distance(y_true, y_pred):
        return tf.abs(y_true - y_pred)

    metric = metrics.MeanMetricWrapper(distance, name="distance")
    assert result_of(metric, ([1.0, 2.0], [2.0, 4.0])) == 1.5
    weights = [True, False]
    metric.reset_state()
    assert result_of(metric, ([1.0, 2.0], [2.0, NAN], weights)) == 1
    assert np.isnan(result_of(metric, ([1.0, 2.0], [2.0, NAN])))


class TestR2Score:
    Y = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 20.0]], "float32")
    P = np.array([[1.0, 12.0], [2.5, 18.0], [4.0, 20.0]], "float32")

    @pytest.mark.parametrize(
        "aggregation", [None, "uniform_average", "variance_weighted_average"]
    )
    @pytest.mark.parametrize("regressors", [0, 2])
    def test_it_is_keras_score(self, aggregation, regressors):
        options = {"class_aggregation": aggregation, "num_regressors": regressors}
        ours, theirs = metrics.R2Score(**options), keras.metrics.R2Score(**options)
        expected = result_of(theirs, (self.Y, self.P))
        assert_close(result_of(ours, (self.Y, self.P)), expected)

    def test_too_few_samples_give_the_plain_score_and_a_warning(self):
        score = metrics.R2Score(num_regressors=6)
        with pytest.warns(UserWarning, match="more samples than regressors .*=6 and 6"):
            got = result_of(score, (self.Y, self.P))
        assert got == result_of(metrics.R2Score(), (self.Y, self.P))

    def test_constant_labels_do_not_spoil_the_other_outputs(self):
        y = np.array([[1.0, 0.1], [2.0, 0.1], [4.0, 0.1]], "float32")
        p = y + np.array([[0.5, 0.0], [0.0, 0.1], [0.0, 0.0]], "float32")
        alone = result_of(metrics.R2Score(), (y[:, :1], p[:, :1]))
        assert_close(
            result_of(metrics.R2Score(class_aggregation=None), (y, p)), [alone, 0], 0.5
        )
        weighted = metrics.R2Score("variance_weighted_average")
        assert result_of(weighted, (y, p)) == alone
        weighted = metrics.R2Score("variance_weighted_average")
        assert result_of(weighted, (y[:, 1:], p[:, 1:]), (y[:, 1:], p[:, 1:])) < 1

    def test_only_constant_labels_have_the_mean_of_their_scores(self):
        y = np.full([4, 2], 0.1, "float32")
        p = y + np.array([0.0, 0.1], "float32")
        for aggregation in ("uniform_average", "variance_weighted_average"):
            assert result_of(metrics.R2Score(aggregation), (y, p)) == 0.5


class TestR2ScoreFarFromZero:
    """Labels whose mean is much larger than their spread."""

    @staticmethod
    def data(mean, spread):
        rng = np.random.default_rng(5)
        y = mean + spread * rng.normal(size=(64, 2))
        return y, y + 0.1 * spread * rng.normal(size=(64, 2))

    @staticmethod
    def truth(y, p, weights=None):
        weights = np.ones([len(y), 1]) if weights is None else weights[:, None]
        exact = np.longdouble(y)
        mean = (weights * exact).sum(0) / weights.sum(0)
        error = (weights * (exact - p) ** 2).sum(0)
        return float((1 - error / (weights * (exact - mean) ** 2).sum(0)).mean())

    @pytest.mark.parametrize("mode", modes.MODES)
    @pytest.mark.parametrize(("mean", "spread"), [(1.7e9, 100), (1e6, 0.1), (-3e9, 1)])
    def test_it_has_the_digits_of_the_labels(self, mean, spread, mode):
        y, p = self.data(mean, spread)
        batches = [(y[i : i + 24], p[i : i + 24]) for i in (0, 24, 48)]
        got = result_of(metrics.R2Score(dtype="float64"), *batches, mode=mode)
        assert_close(
            got,
            self.truth(y, p),
            760_000,
            why="the spread of the labels is down to 3e-10 of their mean",
        )

    def test_weights_count_in_the_mean_and_in_the_spread(self):
        y, p = self.data(1.7e9, 100)
        weights = np.arange(64.0) % 5
        score = metrics.R2Score(dtype="float64")
        got = result_of(
            score, (y[:40], p[:40], weights[:40]), (y[40:], p[40:], weights[40:])
        )
        assert_close(
            got,
            self.truth(y, p, weights),
            830,
            why="the spread of the labels is 6e-8 of their mean",
        )

    def test_a_batch_of_weight_0_changes_nothing(self):
        y, p = self.data(1.7e9, 100)
        score = metrics.R2Score(dtype="float64")
        nothing = (y * NAN, p, np.zeros(64))
        got = result_of(score, nothing, (y, p), nothing)
        assert_close(got, self.truth(y, p))

    def test_its_state_goes_on_after_saving_and_loading(self, tmp_path):
        y, p = self.data(1.7e9, 100)
        first, second = metrics.R2Score(), metrics.R2Score()
        first.update_state(y[:32], p[:32])
        second.update_state(y[:1], p[:1])
        path = str(tmp_path / "state")
        tf.train.Checkpoint(state=[v.value for v in first.variables]).write(path)
        tf.train.Checkpoint(state=[v.value for v in second.variables]).read(path)
        for score in (first, second):
            score.update_state(y[32:], p[32:])
            assert_close(score.result(), self.truth(y, p))

    def test_constant_labels_in_several_batches_stay_constant(self):
        y = np.full([5, 1], 0.1)
        batches = [(y[:size], y[:size] + 0.1) for size in (5, 3, 1)]
        assert result_of(metrics.R2Score(), *batches) == 0
        assert result_of(metrics.R2Score(), *((y[:n], y[:n]) for n in (5, 3))) == 1


@pytest.mark.parametrize("function", ["pearson_correlation", "concordance_correlation"])
def test_correlations_keep_their_digits_far_from_0(function):
    # All are whole numbers that float32 holds.
    y = np.array([[1.0, 2.0, 4.0, 7.0]])
    p = np.array([[1.0, 3.0, 4.0, 9.0]])
    close = getattr(metrics, function)(np.float32(y + 2**22), np.float32(p + 2**22))
    assert_close(close, getattr(metrics, function)(y, p))


@pytest.mark.parametrize("axis", [0, -1])
def test_correlations_agree_with_float64(axis):
    rng = np.random.default_rng(3)
    y = rng.normal(size=(5, 6)).astype("float32")
    p = (0.5 * y + rng.normal(size=(5, 6)) + 100).astype("float32")
    a, b = y.astype("float64"), p.astype("float64")
    da, db = a - a.mean(axis, keepdims=True), b - b.mean(axis, keepdims=True)
    cov, va, vb = (da * db).mean(axis), (da**2).mean(axis), (db**2).mean(axis)
    pearson = metrics.pearson_correlation(y, p, axis)
    assert_close(pearson, cov / np.sqrt(va * vb))
    truth = 2 * cov / (va + vb + (a.mean(axis) - b.mean(axis)) ** 2)
    concordance = metrics.concordance_correlation(y, p, axis)
    assert_close(concordance, truth, 5, why="sums of products of differences")


def test_xla_correlates_a_long_row_with_a_few_large_values():
    rng = np.random.default_rng(2)
    y = rng.normal(size=(1, 300_000))
    p = 0.9 * y + 0.3 * rng.normal(size=y.shape)
    y, p = np.exp(2 * y).astype("float32"), np.exp(2 * p).astype("float32")
    got = modes.compile_for("xla", metrics.pearson_correlation)(y, p)
    truth = np.corrcoef(y.astype("float64"), p.astype("float64"))[0, 1]
    assert_close(
        got,
        [truth],
        17,
        why="XLA adds one number after the other: the mean has few digits",
    )


@pytest.mark.parametrize("scale", [1e-30, 1e-5, 1.0, 1e30])
def test_correlations_do_not_depend_on_the_scale(scale):
    y = np.array([[1.0, 2.0, 4.0]], "float32")
    p = np.array([[1.0, 3.0, 4.0]], "float32")
    for function in (metrics.pearson_correlation, metrics.concordance_correlation):
        scaled = function(y * np.float32(scale), p * np.float32(scale))
        assert_close(scaled, function(y, p))


@pytest.mark.parametrize("value", [0.0, 0.1, 3.0])
def test_correlations_with_a_constant_are_0(value):
    constant = np.full([1, 3], value, "float32")
    other = np.array([[1.0, 3.0, 4.0]], "float32")
    for function in (metrics.pearson_correlation, metrics.concordance_correlation):
        assert function(constant, other) == function(other, constant) == 0
        assert function(constant, constant) == 0
        assert np.isnan(function(constant, other * NAN))
        # A constant has no angle, but does not hide one NaN of the other.
        for y, p in ((constant, [[NAN, 3.0, 4.0]]), ([[NAN, 3.0, 4.0]], constant)):
            assert np.isnan(function(y, p))


@pytest.mark.parametrize(
    ("name", "y_true", "broken", "options"),
    [
        ("binary_accuracy", [[0, 1, 1]], [[0.0, NAN, 0.0]], {"threshold": 0.3}),
        ("categorical_accuracy", [[0, 0, 1], [1, 0, 0]], [0.0, NAN], {}),
        ("sparse_categorical_accuracy", [2, 0], [0.0, NAN], {}),
        ("sparse_categorical_accuracy", [[2], [0]], [0.0, NAN], {}),
        ("top_k_categorical_accuracy", [[0, 0, 1], [0, 0, 1]], [0.0, NAN], {"k": 2}),
        ("sparse_top_k_categorical_accuracy", [0, 2], [0.0, NAN], {"k": 2}),
    ],
)
@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_functions_of_accuracy_are_those_of_keras_and_keep_nan(
    name, y_true, broken, options, jit_compile
):
    size = np.shape(broken)[0]
    y_pred = np.array([[0.2, 0.1, 0.7], [0.5, 0.3, 0.2]], "float32")[:size]
    ours, theirs = getattr(metrics, name), getattr(keras.metrics, name)
    run = functools.partial(ours, **options)
    if jit_compile is not None:
        run = tf.function(run, jit_compile=jit_compile, autograph=False)
    labels = tf.constant(y_true, tf.float32)
    plain = np.array(theirs(labels, y_pred, **options))
    np.testing.assert_array_equal(run(labels, y_pred), plain)
    spoilt = y_pred.copy()
    spoilt[-1, 1] = NAN
    np.testing.assert_array_equal(run(labels, spoilt), plain + broken)
    nothing = run(labels[:0], y_pred[:0])
    assert nothing.shape[0] == 0


@pytest.mark.parametrize("dtype", [None, "float64"])
def test_squares_beyond_float32_leave_a_root_that_is_not(dtype):
    metric = metrics.RootMeanSquaredError(dtype=dtype)
    metric.update_state([[0.0, 0.0], [0.0, 0.0]], [[1e30, 1e30], [0.0, 0.0]])
    assert_close(metric.result(), np.float64(np.float32(1e30)) / 2**0.5)
    assert metric.result().dtype == (dtype or "float32")
    again = metrics.RootMeanSquaredError.from_config(metric.get_config())
    assert again.result().dtype == (dtype or "float32")
