"""The losses that are not cross entropies: formulas, edges, promises."""

import itertools

import keras
import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.losses.samples import INF, NAN, close, value_and_slope
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import losses

RNG = np.random.default_rng(4)
REAL = RNG.normal(size=(4, 3, 5)).astype("float32")
POSITIVE = RNG.uniform(0.5, 2.0, size=(4, 3, 5)).astype("float32")
OTHERS = RNG.uniform(0.5, 2.0, size=(4, 3, 5)).astype("float32")
ROWS = np.eye(5, dtype="float32")[RNG.integers(5, size=(4, 3))]
SHARES = (POSITIVE / POSITIVE.sum(-1, keepdims=True)).astype("float32")
MORE_SHARES = (OTHERS / OTHERS.sum(-1, keepdims=True)).astype("float32")

# Name of the class, name of the function, labels, predictions, options.
LOSSES = [
    ("MeanSquaredError", "mean_squared_error", REAL, OTHERS, {}),
    ("MeanAbsoluteError", "mean_absolute_error", REAL, OTHERS, {}),
    ("MeanAbsolutePercentageError", "mean_absolute_percentage_error",
     POSITIVE, OTHERS, {}),
    ("MeanSquaredLogarithmicError", "mean_squared_logarithmic_error",
     POSITIVE, OTHERS, {}),
    ("Huber", "huber", REAL, OTHERS, {"delta": 0.7}),
    ("LogCosh", "log_cosh", REAL, OTHERS, {}),
    ("Poisson", "poisson", POSITIVE, OTHERS, {}),
    ("KLDivergence", "kl_divergence", SHARES, MORE_SHARES, {}),
    ("CosineSimilarity", "cosine_similarity", REAL, OTHERS, {"axis": -1}),
    ("Hinge", "hinge", 2 * ROWS - 1, REAL, {}),
    ("SquaredHinge", "squared_hinge", ROWS, REAL, {}),
    ("CategoricalHinge", "categorical_hinge", ROWS, REAL, {}),
]  # fmt: skip
OVERLAPS = [
    ("Dice", "dice", ROWS, SHARES, {}),
    ("Tversky", "tversky", ROWS, SHARES, {"alpha": 0.3, "beta": 0.7}),
]
every_loss = pytest.mark.parametrize(
    ("name", "function", "y_true", "y_pred", "options"),
    LOSSES,
    ids=[row[0] for row in LOSSES],
)
with_overlaps = pytest.mark.parametrize(
    ("name", "function", "y_true", "y_pred", "options"),
    LOSSES + OVERLAPS,
    ids=[row[0] for row in LOSSES + OVERLAPS],
)


@with_overlaps
def test_it_is_keras_loss_where_that_is_right(
    name, function, y_true, y_pred, options, mode
):
    ours, theirs = getattr(losses, name)(**options), getattr(keras.losses, name)
    got, slope = value_and_slope(ours, y_true, y_pred, mode)
    expected, expected_slope = value_and_slope(
        theirs(**options), y_true, y_pred, "eager"
    )
    assert_close(got, expected)
    # A sum that cancels has the rounding of its terms, of size 1.
    assert_close(slope, expected_slope, scale=1.0)
    assert isinstance(ours, theirs)
    got = getattr(losses, function)(y_true, y_pred, **options)
    expected = getattr(keras.losses, function)(y_true, y_pred, **options)
    assert_close(got, expected, scale=0.25)


@with_overlaps
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(
    name, function, y_true, y_pred, options, dtype
):
    half = tf.cast(y_pred, dtype)
    got = getattr(losses, function)(y_true, half, **options)
    assert got.dtype == dtype
    # The labels are rounded too, to the dtype of the predictions.
    labels = tf.cast(tf.cast(y_true, dtype), "float64")
    wide = getattr(losses, function)(labels, tf.cast(half, "float64"), **options)
    assert wide.dtype == "float64"
    assert oracle.ulp_error(got, wide.numpy()) <= 0.51


@pytest.mark.parametrize("mode", ["eager", "graph"])
@every_loss
def test_a_weight_of_0_ignores_nan_and_overflow(
    name, function, y_true, y_pred, options, mode
):
    loss = getattr(losses, name)(**options)
    bad_true, bad_pred = y_true.copy(), y_pred.copy()
    bad_true[1], bad_pred[2] = NAN, INF
    weights = np.array([1, 0, 0, 2], "float32")
    value, slope = value_and_slope(
        loss, bad_true, bad_pred, mode, sample_weight=weights
    )
    expected, expected_slope = value_and_slope(
        loss, y_true, y_pred, "eager", sample_weight=weights
    )
    close(value, expected)
    close(slope, expected_slope, 32, why="sums in another order")
    assert not np.asarray(slope)[1:3].any()


@every_loss
def test_a_zero_upstream_gives_zero_gradients(
    name, function, y_true, y_pred, options, mode
):
    bad = np.array(y_pred)
    bad[0, 0, 0], bad[1, 0, :], bad[2, 0, 1] = NAN, INF, -INF

    def summed(p):
        return getattr(losses, function)(tf.constant(y_true), p, **options)

    silent = modes.silent_gradients(summed, [tf.constant(bad)], mode)
    assert not np.asarray(silent[0]).any()
    assert not any(np.isnan(gradient).any() for gradient in silent)


@with_overlaps
def test_a_nan_that_counts_comes_out(name, function, y_true, y_pred, options):
    loss = getattr(losses, name)(**options)
    bad = np.array(y_pred)
    bad[1, 1, 1] = NAN
    assert np.isnan(loss(y_true, bad))
    bad = np.array(y_true)
    bad[1, 1, 1] = NAN
    assert np.isnan(loss(bad, y_pred))


@with_overlaps
def test_the_gradient_of_the_gradient_is_that_of_float64(
    name, function, y_true, y_pred, options
):
    weights = RNG.normal(size=y_pred.shape)

    def slope(dtype):
        p = tf.constant(y_pred, dtype)
        with tf.GradientTape() as outer:
            outer.watch(p)
            with tf.GradientTape() as inner:
                inner.watch(p)
                value = getattr(losses, function)(y_true, p, **options)
            first = inner.gradient(value, p) * tf.constant(weights, dtype)
        return outer.gradient(first, p, unconnected_gradients="zero"), p, weights

    got = slope("float32")[0]
    truth = np.asarray(slope("float64")[0])
    # Terms cancel: in units of the largest slope.
    assert_close(got, truth, scale=np.abs(truth).max())


@pytest.mark.parametrize("mode", ["eager", "graph"])
@with_overlaps
def test_an_empty_batch_costs_nothing(name, function, y_true, y_pred, options, mode):
    if name in ("Dice", "Tversky"):
        options = options | {"axis": -1} if hasattr(keras.losses, "Circle") else options
    loss = getattr(losses, name)(**options)
    value, slope = value_and_slope(loss, y_true[:0], y_pred[:0], mode)
    assert value.shape == ()
    assert value == 0
    assert slope.shape == (0, 3, 5)


@with_overlaps
def test_it_survives_its_config(name, function, y_true, y_pred, options):
    made = getattr(losses, name)(**options, reduction="sum")
    config = keras.losses.serialize(made)
    again = keras.losses.deserialize(config)
    assert type(again) is type(made)
    # Keras drops the delta of Huber and the axis of the cosine.
    assert options.items() <= again.get_config().items()
    close(again(y_true, y_pred), made(y_true, y_pred))


@every_loss
def test_predictions_with_a_last_axis_of_1_meet_labels_without(
    name, function, y_true, y_pred, options
):
    flat = getattr(losses, function)(y_true[:, 0, 0], y_pred[:, 0, :1], **options)
    assert flat.shape == (4,)
    kept = getattr(losses, function)(y_true[:, 0, :1], y_pred[:, 0, 0], **options)
    close(flat, kept)
    squeezed = getattr(losses, function)(y_true[..., None], y_pred, **options)
    close(squeezed, getattr(losses, function)(y_true, y_pred, **options))


@pytest.mark.parametrize("function", [row[1] for row in LOSSES + OVERLAPS])
def test_integers_and_lists_are_taken(function):
    call = getattr(losses, function)
    expected = call(tf.constant([[0.0, 1.0]]), tf.constant([[1.0, 1.0]]))
    for y_pred in ([[1, 1]], np.ones([1, 2], int), [[1.0, 1.0]]):
        got = call([[0, 1]], y_pred)
        assert got.dtype == "float32"
        close(got, expected)


@with_overlaps
def test_what_is_not_dense_or_no_number_is_refused(
    name, function, y_true, y_pred, options
):
    ragged = tf.ragged.constant([[1.0], [1.0, 2.0]])
    for call in (getattr(losses, function), getattr(losses, name)()):
        with pytest.raises(TypeError, match="`y_pred` must be a dense tensor"):
            call(tf.ones([2, 2]), ragged)
        with pytest.raises(TypeError, match="`y_true` must be a dense tensor"):
            call(ragged, tf.ones([2, 2]))
        with pytest.raises(TypeError, match=r"`y_true` must hold numbers: .*=string"):
            call([["a", "b"]], tf.ones([1, 2]))


@with_overlaps
def test_an_unknown_number_of_axes_is_refused(name, function, y_true, y_pred, options):
    shape = tf.TensorSpec(None, tf.float32)
    traced = tf.function(getattr(losses, name)(**options), autograph=False)
    with pytest.raises(ValueError, match="`y_pred` must have a known number of axes"):
        traced.get_concrete_function(shape, shape)


# Function, label, prediction, options, value, slope.
EDGES = [
    ("mean_absolute_error", 1.0, 1.0, {}, 0, 0),
    ("mean_absolute_percentage_error", 0.0, 0.0, {}, 0, 0),
    ("mean_absolute_percentage_error", 0.0, -3.0, {}, 100, 0),
    ("mean_absolute_percentage_error", 1e-30, 2e-30, {}, 100, 1e32),
    ("mean_squared_logarithmic_error", 0.0, -2.0, {}, (16.635532 + 1) ** 2, -35.271065),
    ("mean_squared_logarithmic_error", -1.0, 1.0, {}, 0.48045301, 0.69314718),
    ("mean_squared_logarithmic_error", -5.0, 1.0, {}, 0.48045301, 0.69314718),
    ("huber", 0.0, 1e30, {}, 1e30, 1),
    ("huber", 0.0, -1e30, {}, 1e30, -1),
    ("log_cosh", 0.0, 1e30, {}, 1e30, 1),
    ("poisson", 0.0, 0.0, {}, 0, 1),
    ("poisson", 1.0, 0.0, {}, 87.33655, 0),
    ("poisson", 2.0, -3.0, {}, 2 * 87.33655 + 6 - 3, -1),
    ("poisson", 0.0, -3.0, {}, -3, 1),
    ("poisson", 3.0, -INF, {"log_input": True}, INF, -3),
    ("poisson", 0.0, -INF, {"log_input": True}, 0, 0),
    ("poisson", 1.0, 200.0, {"log_input": True}, INF, INF),
    ("kl_divergence", 1.0, 0.0, {}, 87.33655, -1),
    ("kl_divergence", 1.0, -0.5, {}, 87.33655 + 0.5, -1),
    ("kl_divergence", 0.0, 0.0, {}, 0, 0),
    ("hinge", 1.0, 1e30, {}, 0, 0),
    ("cosine_similarity", 1.0, 0.0, {}, 0, 0),
    ("cosine_similarity", 1.0, -1e-30, {}, 1, 0),
    ("dice", 0.0, 0.0, {"axis": -1}, 0, 0.5),
    ("dice", 1.0, 0.0, {"axis": -1}, 1, -2),
    ("dice", 1.0, -1.0, {"axis": -1}, 2, -0.5),
    ("tversky", 1.0, 0.0, {"alpha": 0.0, "beta": 0.0, "axis": -1}, 1, 0),
]  # fmt: skip


@pytest.mark.parametrize(
    "edges",
    # Those of one function are rows of one batch.
    [list(rows) for _, rows in itertools.groupby(EDGES, lambda row: (row[0], row[3]))],
    ids=lambda rows: "-".join([rows[0][0], *rows[0][3]]),
)
def test_edges_are_as_the_docstrings_say(edges, mode):
    function, _, _, options, *_ = edges[0]
    y, p, value, slope = (np.float32([row[i] for row in edges]) for i in (1, 2, 4, 5))
    got, got_slope = value_and_slope(
        getattr(losses, function), y[:, None], p[:, None], mode, **options
    )
    assert_close(got, value)
    assert_close(got_slope[:, 0], slope)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_logarithmic_error_keeps_its_digits(dtype):
    y = tf.constant([1e-30, 1e-8, 0.5, 1e3, 1e20], dtype)
    p = y * tf.constant([2, 1 + 1e-5, 1 - 1e-5, 1 + 1e-5, 3], dtype)
    got = losses.mean_squared_logarithmic_error(y[:, None], p[:, None])
    truth = oracle.exact(lambda a, b: (mpmath.log1p(a) - mpmath.log1p(b)) ** 2, p, y)
    assert oracle.ulp_error(got, truth) <= 6


def test_a_logarithmic_error_has_the_slope_of_the_logarithm(mode):
    y, p = np.float32([[0.0, 3.0, -0.5]]), np.float32([[-0.999, 5.0, -0.5]])
    _, slope = value_and_slope(losses.mean_squared_logarithmic_error, y, p, mode)
    gap = np.log1p(p.astype("float64")) - np.log1p(y.astype("float64"))
    close(slope, 2 / 3 * gap / (1 + p.astype("float64")))


def test_nan_labels_do_not_change_how_a_hinge_reads_the_others():
    loss = losses.Hinge()
    y_true = np.float32([[0.0], [NAN], [1.0]])
    y_pred = np.float32([[0.5], [0.5], [0.5]])
    close(loss(y_true, y_pred, sample_weight=[1, 0, 1]), (1.5 + 0.5) / 3)


def test_the_largest_wrong_class_splits_its_slope_with_its_equals(mode):
    y_true, y_pred = np.float32([[1, 0, 0]]), np.float32([[0.0, 2.0, 2.0]])
    _, slope = value_and_slope(losses.CategoricalHinge(), y_true, y_pred, mode)
    close(slope, [[-1, 0.5, 0.5]])


class TestKLDivergence:
    def test_the_logits_of_a_softmax_are_found(self, mode):
        logits = tf.constant([[0.0, 200.0]])
        loss = losses.KLDivergence()

        def found(x):
            return loss([[1.0, 0.0]], keras.activations.softmax(x))

        value, (slope,) = modes.value_and_gradients(found, [logits], mode)
        close(value, 200)
        close(slope, [[-1, 1]])
        same = losses.KLDivergence(from_logits=True)([[1.0, 0.0]], logits)
        close(same, 200)

    def test_an_argument_says_that_it_gets_logits(self):
        loss = losses.KLDivergence(from_logits=True)
        expected = losses.KLDivergence()(SHARES, tf.nn.softmax(REAL).numpy())
        close(loss(SHARES, REAL), expected)
        again = keras.losses.deserialize(keras.losses.serialize(loss))
        assert again.from_logits is True

    def test_a_wrong_option_is_refused(self):
        with pytest.raises(ValueError, match="`from_logits` must be one of False, T"):
            losses.KLDivergence(from_logits="no")


class TestPoisson:
    def test_an_argument_says_that_it_gets_logarithms(self):
        loss = losses.Poisson(log_input=True)
        close(loss(POSITIVE, REAL), losses.Poisson()(POSITIVE, np.exp(REAL)))
        again = keras.losses.deserialize(keras.losses.serialize(loss))
        assert again.log_input is True

    def test_a_wrong_option_is_refused(self):
        with pytest.raises(ValueError, match="`log_input` must be one of False, True"):
            losses.Poisson(log_input="no")


class TestOverlaps:
    Y = np.float32([[[1, 0], [1, 1]], [[0, 1], [0, 0]]])
    P = np.float32([[[0.5, 0.2], [0.9, 0.1]], [[0.3, 0.4], [0.6, 0.7]]])

    @pytest.mark.parametrize("make", [losses.Dice, losses.Tversky])
    def test_a_weight_of_0_takes_a_sample_out_of_the_sums(self, make, mode):
        bad = np.array(self.P)
        bad[1] = NAN
        value, slope = value_and_slope(
            make(), self.Y, bad, mode, sample_weight=[1.0, 0.0]
        )
        # Keras' mean of the weights is a factor.
        close(value, make()(self.Y[:1], self.P[:1]) / 2)
        assert np.isfinite(slope).all()
        assert not np.asarray(slope)[1].any()

    @pytest.mark.parametrize("make", [losses.Dice, losses.Tversky])
    def test_a_mask_takes_steps_out_of_the_sums(self, make):
        hidden = np.array(self.P)
        hidden[0, 1] = -9
        masked = keras.layers.Masking(-9.0)(hidden)
        kept = np.array([[True, False], [True, True]])
        close(make()(self.Y, masked), make()(self.Y[kept], self.P[kept]))

    def test_weights_count_as_in_keras(self):
        expected = keras.losses.Dice()(self.Y, self.P, sample_weight=[1.0, 2.0])
        close(losses.Dice()(self.Y, self.P, sample_weight=[1.0, 2.0]), expected)

    def test_labels_may_lack_the_last_axis(self):
        y, p = self.Y[..., 0], self.P[..., :1]
        weighted = losses.Dice()(y, p, sample_weight=[1.0, 1.0])
        close(weighted, losses.Dice()(y[..., None], p))


def test_a_loss_says_what_mask_it_adds_itself():
    class Late(losses.MeanSquaredError):
        def call(self, y_true, y_pred):
            values = super().call(y_true, y_pred)
            values._keras_mask = y_pred[:, 0] > 0
            return values

    y_pred = np.float32([[2.0], [-3.0]])
    close(Late()(np.zeros([2, 1]), y_pred), 4)


def test_a_dtype_survives_the_config():
    try:
        loss = losses.MeanSquaredError(dtype="float64")
    except TypeError:
        pytest.skip("this Keras has no dtype of a loss")
    again = losses.MeanSquaredError.from_config(loss.get_config())
    assert again(REAL, OTHERS).dtype == "float64"
    truth = ((REAL.astype("float64") - OTHERS) ** 2).mean()
    assert_close(again(REAL, OTHERS), truth)


def test_losses_and_metrics_have_the_same_functions():
    from tfsafe import metrics

    functions = {name for name in losses.__all__ if name.islower()}
    shared = functions & set(metrics.__all__)
    assert {name for name in functions if hasattr(keras.metrics, name)} <= shared
    for name in shared:
        assert getattr(metrics, name) is getattr(losses, name)
