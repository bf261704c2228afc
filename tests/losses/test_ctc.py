"""CTC: alignments that are impossible, unlikely, or there at all."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.losses.samples import INF, NAN, close
from tests.support import modes
from tfsafe import losses

RNG = np.random.default_rng(5)
LABELS = np.array([[1, 2, 3], [1, 1, 0], [3, 0, 0], [0, 0, 0]])
LOGITS = RNG.normal(size=(4, 5, 4))
FORWARD = "a forward difference, by 1e-6"
TOO_LONG = [[1, 1], [1, 0]], np.zeros([2, 2, 3], "float32")


def value_and_slope(y_true, y_pred, mode, **options):
    return modes.value_and_gradients(
        lambda x: losses.ctc(tf.constant(y_true), x, **options),
        [tf.constant(y_pred)],
        mode,
    )


def probability(labels, probs):
    """Sums over every path of classes that collapses to the labels."""
    frames, classes = probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=frames):
        collapsed = [c for c, _ in itertools.groupby(path) if c != 0]
        if collapsed == [label for label in labels if label != 0]:
            total += np.prod(probs[range(frames), path])
    return total


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_is_the_sum_over_all_paths(mode, dtype):
    value, (slope,) = value_and_slope(LABELS, LOGITS.astype(dtype), mode)
    truth = [
        -np.log(probability(a, b)) for a, b in zip(LABELS, softmax(LOGITS), strict=True)
    ]
    close(value, truth)
    step = 1e-6
    for index in [(0, 0, 1), (1, 2, 1), (2, 4, 0), (3, 1, 2)]:
        moved = LOGITS.copy()
        moved[index] += step
        row = index[0]
        above = -np.log(probability(LABELS[row], softmax(moved[row])))
        difference = (above - truth[row]) / step
        close(slope[index], difference, 40, why=FORWARD, dtype="float32")


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_its_gradient_of_the_gradient_is_that_of_differences(mode):
    weights = RNG.normal(size=LOGITS.shape)

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = losses.ctc(tf.constant(LABELS), x)
        return tf.reduce_sum(tape.gradient(value, x) * weights)

    x = tf.constant(LOGITS)
    _, (second,) = modes.value_and_gradients(slope, [x], mode)
    for index in [(0, 0, 1), (1, 2, 1), (3, 1, 2)]:
        moved = LOGITS.copy()
        moved[index] += 1e-6
        difference = slope(tf.constant(moved)) - slope(x)
        close(second[index], difference / 1e-6, 40, why=FORWARD, dtype="float32")


def test_labels_that_do_not_fit_cost_nothing(mode):
    value, (slope,) = value_and_slope(*TOO_LONG, mode)
    close(value, [0, np.log(3)])
    assert not np.asarray(slope[0]).any()
    expected = [[0, -1 / 3, 1 / 3]] * 2
    close(slope[1], expected, scale=0.25)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_labels_that_do_not_fit_may_cost_infinity(mode):
    value, (slope,) = value_and_slope(*TOO_LONG, mode, zero_infinity=False)
    close(value, [INF, np.log(3)])
    assert not np.asarray(slope[0]).any()


def test_a_class_may_be_impossible(mode):
    y_pred = np.zeros([2, 3, 3], "float32")
    y_pred[..., 2] = -INF
    value, (slope,) = value_and_slope([[1, 0], [2, 0]], y_pred, mode)
    close(value, [np.log(8 / 6), 0])
    assert np.isfinite(slope).all()
    assert not np.asarray(slope[1]).any()


def test_unlikely_alignments_are_still_distinguished():
    # Where a forbidden step costs 707, as in TensorFlow, it is the cheapest way.
    y_pred = np.full([1, 2, 3], [1e4, 0, 0], "float32")
    close(losses.ctc([[1, 2]], y_pred), [2e4])
    close(losses.ctc([[1, 1]], y_pred, zero_infinity=False), [INF])


def test_nan_and_unknown_labels_stay_in_their_sample(mode):
    y_true = [[1, 0], [1, 0], [3, 0], [-1, 0], [2, 0]]
    y_pred = np.zeros([5, 3, 3], "float32")
    y_pred[0, 1, 1] = NAN
    value, _ = value_and_slope(y_true, y_pred, mode)
    assert np.isnan(value).tolist() == [True, False, True, True, False]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_a_weight_of_0_ignores_a_sample(mode):
    y_pred = LOGITS.astype("float32")
    y_pred[1] = NAN
    weights = np.array([1, 0, 2, 1], "float32")

    def loss(x):
        return losses.CTC()(LABELS, x, sample_weight=weights)

    value, (slope,) = modes.value_and_gradients(loss, [tf.constant(y_pred)], mode)
    kept = [0, 2, 3]
    close(value, losses.CTC(reduction="sum")(LABELS[kept], y_pred[kept], [1, 2, 1]) / 4)
    assert np.isfinite(slope).all()
    assert not np.asarray(slope[1]).any()


def test_it_is_keras_loss_where_that_is_right():
    y_pred = LOGITS.astype("float32")
    lengths = tf.constant([3, 2, 1, 0])
    expected = keras.ops.ctc_loss(LABELS, y_pred, lengths, [5] * 4, mask_index=0)
    close(losses.CTC(reduction=None)(LABELS, y_pred), expected)
    assert isinstance(losses.CTC(), keras.losses.CTC)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(dtype):
    half = tf.cast(LOGITS, dtype)
    got = losses.ctc(LABELS, half)
    assert got.dtype == dtype
    np.testing.assert_array_equal(
        got, tf.cast(losses.ctc(LABELS, tf.cast(half, tf.float32)), dtype)
    )


def test_one_frame_lists_integers_and_an_empty_batch_are_taken():
    close(losses.ctc([[1]], [[[0.0, 0.0]]]), [np.log(2)])
    close(losses.ctc([[1.0]], np.zeros([1, 1, 2], int)), [np.log(2)])
    assert losses.CTC()(np.zeros([0, 2]), np.zeros([0, 3, 4])) == 0


@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_unknown_shapes_are_taken(mode):
    traced = tf.function(
        losses.CTC(),
        input_signature=[
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None, None], tf.float32),
        ],
        autograph=False,
        jit_compile=mode == "xla",
    )
    y_true, y_pred = tf.constant(LABELS, tf.int32), tf.constant(LOGITS, tf.float32)
    close(traced(y_true, y_pred), losses.CTC()(y_true, y_pred))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: losses.ctc([1], np.zeros([1, 2, 3])),
         r"`y_true` must have the shape \[batch, labels\]. Received: .*shape=\(1,\)"),
        (lambda: losses.ctc([[1]], np.zeros([2, 3])),
         r"`y_pred` must have the shape \[batch, frames, classes\]. .*\(2, 3\)"),
        (lambda: losses.CTC(zero_infinity="no"),
         "`zero_infinity` must be one of False, True. Received: zero_infinity='no'"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_it_survives_its_config_and_one_step_of_a_model(tmp_path):
    loss = losses.CTC(zero_infinity=False)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(again) is losses.CTC
    assert again.zero_infinity is False
    model = keras.Sequential([keras.Input((4, 5)), keras.layers.Dense(3)])
    model.compile("sgd", losses.CTC())
    x = RNG.normal(size=(4, 4, 5)).astype("float32")
    y = np.array([[1, 1, 1, 1], [1, 2, 0, 0], [2, 0, 0, 0], [1, 0, 0, 0]])
    assert np.isfinite(model.fit(x, y, verbose=0).history["loss"]).all()
    assert np.isfinite(model.get_weights()[0]).all()
