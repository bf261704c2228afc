import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.losses.samples import (
    INDICES,
    KINDS,
    LOGITS,
    NAN,
    PEERS,
    PROBS,
    ROWS,
    WEIGHTS,
    close,
)
from tests.support import contrast, modes
from tests.support.oracle import assert_close
from tfsafe.losses import StableCrossEntropy


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum", "none", None])
@pytest.mark.parametrize("from_logits", [True, False], ids=["logits", "probabilities"])
@pytest.mark.parametrize(("labels", "y_true", "peer"), PEERS, ids=KINDS)
def test_it_is_keras_loss_where_that_is_right(
    labels, y_true, peer, from_logits, reduction
):
    y_pred = LOGITS if from_logits else PROBS
    ours = StableCrossEntropy(from_logits, reduction=reduction, labels=labels)
    theirs = peer(from_logits=from_logits, reduction=reduction)
    for weights in (None, WEIGHTS):
        expected = theirs(y_true, y_pred, sample_weight=weights)
        close(ours(y_true, y_pred, sample_weight=weights), expected)
    close(ours.call(y_true, y_pred), theirs.call(y_true, tf.constant(y_pred)))


def test_keras_spoils_the_gradient_of_a_masked_nan_target(mode):
    # L71, with a binary target in place of a regression's.
    def run(loss):
        def masked(x):
            return loss(tf.constant([[[NAN], [1.0]]]), keras.layers.Masking(-9.0)(x))

        args = [tf.constant([[[-9.0], [0.0]]])]
        return contrast.is_right(masked, args, 0.6931472, [[[[0], [-0.5]]]], mode)

    assert run(StableCrossEntropy(True))
    assert not run(keras.losses.BinaryCrossentropy(from_logits=True))


def test_an_unknown_class_is_an_error_in_eager_mode_and_nan_in_a_graph(mode):
    y_true, y_pred = np.array([[1, 3], [0, 2]]), tf.zeros([2, 2, 3])
    loss = StableCrossEntropy(True)
    weights = tf.constant([[1.0, 0.0], [1.0, 1.0]])
    close(modes.compile_for(mode, loss)(y_true, y_pred, weights), np.log(3) * 3 / 4)
    run = modes.compile_for(mode, loss)
    if mode == "eager":
        with pytest.raises(
            ValueError,
            match=r"`y_true` must hold class indices from 0 to 2. Received a label "
            r"value of 3 which is outside the valid range of \[0, 3\), at index "
            r"\[0, 1\]. .*"
            r"Give labels to be ignored a `sample_weight` of 0, or name them",
        ):
            run(y_true, y_pred)
        with pytest.raises(ValueError, match=r"value of 1.5 .* at index \[0\]"):
            run([1.5], tf.zeros([1, 3]))
    else:
        assert np.isnan(run(y_true, y_pred))
        assert np.isnan(run(tf.constant([1.5]), tf.zeros([1, 3])))


def test_the_class_axis_may_be_anywhere():
    moved = np.moveaxis(LOGITS, -1, 1)
    for labels, y_true in (("sparse", INDICES), ("dense", np.moveaxis(ROWS, -1, 1))):
        for smoothing in (0.0, 0.2):
            got = StableCrossEntropy(True, smoothing, 1, labels=labels)(y_true, moved)
            plain = StableCrossEntropy(True, smoothing, labels="dense")(ROWS, LOGITS)
            close(got, plain)
    kept = StableCrossEntropy(True, axis=1)(INDICES[:, None], moved)
    close(kept, StableCrossEntropy(True)(INDICES, LOGITS))


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
@pytest.mark.parametrize("half", ["float16", "bfloat16", "float32"])
def test_keras_activations_lose_no_digit(activation, half, mode):
    # L04 to L06: Keras casts the probabilities to float32, and their logits are gone.
    y_true = np.array([[1.0, 0.0]] if activation == "softmax" else [[1.0], [0.0]])
    far = 200.0 if activation == "softmax" else 20.0

    def predict(z):
        return getattr(keras.activations, activation)(z)

    if activation == "softmax":
        z, expected, expected_slope = [[0.0, far]], far, [[-1, 1]]
    else:
        z, expected, expected_slope = [[-far], [far]], far, [[-0.5], [0.5]]
    value, (slope,) = modes.value_and_gradients(
        lambda z: StableCrossEntropy()(y_true, predict(z)),
        [tf.constant(z, half)],
        mode,
    )
    close(value, expected)
    close(tf.cast(slope, tf.float32), expected_slope)


@pytest.mark.parametrize("half", ["float16", "bfloat16", "float32"])
def test_without_the_logits_the_loss_has_the_digits_of_the_probability(half, mode):
    # The figures of the docstring, and what the loss is bounded by beyond them.
    limits = {
        "float16": (5.5, 8, 11),
        "bfloat16": (3, 6, 87),
        "float32": (14.5, 17, 87),
    }
    for_zero, gone, for_one = limits[half]

    def run(target, z):
        y_true = np.full([2, 1], target)

        def loss(z):
            probs = tf.reshape(keras.activations.sigmoid(z), [-1, 1])
            return StableCrossEntropy(reduction="none")(y_true, probs)

        value, (slope,) = modes.value_and_gradients(loss, [tf.constant(z, half)], mode)
        return np.asarray(value), np.asarray(slope, "float32")

    for target, sign, limit in ((0.0, 1.0, for_zero), (1.0, -1.0, for_one)):
        value, slope = run(target, [sign * limit, sign])
        assert_close(
            value,
            np.logaddexp(0, [limit, 1]),
            100_000,
            why="of a probability next to 1, whose digits end here",
        )
        assert np.isfinite(slope).all()
    if mode == "eager":  # XLA may keep more digits inside of a fusion.
        value, slope = run(0.0, [gone, gone])
        assert_close(value, np.full(2, -np.log(2.0**-126)))
        assert np.array_equal(slope, [0, 0])  # of the sigmoid, which is 1 there


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_hidden_logits_never_change_the_answer(mode):
    z = tf.constant([[0.3, -1.0, 2.0], [1.0, 0.0, 0.5]])
    rows = tf.constant([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])

    def compare(labels, hidden, plain):
        loss = StableCrossEntropy(labels=labels)
        got = modes.value_and_gradients(lambda z: loss(rows, hidden(z)), [z], mode)
        expected = modes.value_and_gradients(lambda z: loss(rows, plain(z)), [z], mode)
        for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(expected), strict=True):
            close(a, b)

    compare("dense", keras.activations.softmax, tf.nn.softmax)
    compare("binary", keras.activations.sigmoid, tf.sigmoid)
    # The activation of the other kind of label, or along another axis.
    compare("dense", keras.activations.sigmoid, tf.sigmoid)
    compare("binary", keras.activations.softmax, tf.nn.softmax)
    compare(
        "dense",
        lambda z: keras.activations.softmax(z, axis=0),
        lambda z: tf.nn.softmax(z, axis=0),
    )


def test_logits_that_come_from_a_softmax_are_called_out():
    probs = keras.activations.softmax(tf.constant(LOGITS))
    with pytest.warns(
        UserWarning, match="`from_logits=True`, but `y_pred` is the output"
    ):
        got = StableCrossEntropy(from_logits=True)(INDICES, probs)
    close(got, StableCrossEntropy(from_logits=True)(INDICES, LOGITS))


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_summed_in_float32_and_rounded_once(half):
    # 90,000 steps: their number, and their sum, overflow in float16 (L75, L76).
    y_pred = tf.zeros([300, 300, 2], half)
    y_true = np.zeros([300, 300], "int32")
    value = StableCrossEntropy(True, dtype=half)(y_true, y_pred)
    assert value.dtype.name == half
    assert float(value) == float(tf.cast(np.log(2), half))
    total = StableCrossEntropy(True, reduction="sum")(y_true, y_pred)
    assert total.dtype == tf.float32
    close(total, 90_000 * np.log(2), 64, why="a sum of 90,000 numbers in float32")


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (None, "float32"),
        ("float64", "float64"),
        (tf.float16, "float16"),
        (np.float64, "float64"),
        ("mixed_bfloat16", "bfloat16"),
        (keras.DTypePolicy("mixed_float16"), "float16"),
    ],
    ids=str,
)
def test_the_result_has_the_dtype_that_was_asked_for(dtype, name):
    loss = StableCrossEntropy(True, dtype=dtype)
    assert loss(INDICES, LOGITS).dtype.name == name
    assert StableCrossEntropy.from_config(loss.get_config()).dtype == name


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum", "none"])
def test_an_empty_batch_costs_nothing(reduction, mode):
    # L77: Keras returns shape (0,) in place of a scalar.
    loss = modes.compile_for(mode, StableCrossEntropy(True, reduction=reduction))
    value = loss(np.zeros([0], "int32"), np.zeros([0, 3], "float32"))
    assert value.shape == ((0,) if reduction == "none" else ())
    assert np.sum(value) == 0


def test_the_second_gradient_passes_weights_and_reduction(mode):
    def loss(t):
        y_true = [[1.0, 0.0], [NAN, 0.0]]
        y_pred = t * tf.constant([[1.0, -1.0], [1.0, 1.0]])
        return StableCrossEntropy(True)(y_true, y_pred, sample_weight=[1.0, 0.0])

    # The mean of 2, and d2/dt2 log(1 + exp(-2 t)) = 4 s (1 - s).
    s = 1 / (1 + np.exp(-1.0))
    got = modes.second_gradient(loss, tf.constant(0.5), mode)
    close(got, 2 * s * (1 - s))


def test_config_holds_every_argument():
    options = {
        "from_logits": True,
        "label_smoothing": 0.25,
        "axis": 1,
        "reduction": "mean_with_sample_weight",
        "name": "mine",
        "dtype": "float64",
        "labels": "sparse",
        "ignore_class": -1,
    }
    assert StableCrossEntropy(**options).get_config() == options
    assert StableCrossEntropy(name=None).name
