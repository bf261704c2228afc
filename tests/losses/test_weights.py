"""Weights, masks and ignored classes: what counts, and what may be NaN."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.losses.samples import (
    INDICES,
    INF,
    KINDS,
    LOGITS,
    NAN,
    PEERS,
    ROWS,
    WEIGHTS,
    close,
    value_and_slope,
)
from tests.support import modes
from tfsafe.losses import StableCrossEntropy

NAN_ROWS = np.array([[0, 1], [NAN, 0], [1, 0]], "float32")
NAN_TARGETS = [
    ("sparse", np.array([1, NAN, 0], "float32")),
    ("dense", NAN_ROWS),
    ("binary", NAN_ROWS),
]
PAIRS = np.array([[0.5, 1.0], [2.0, 0.0], [0.0, 1.0]], "float32")


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum", "none"])
@pytest.mark.parametrize(("labels", "y_true", "peer"), PEERS, ids=KINDS)
def test_a_keras_mask_counts_as_in_keras(labels, y_true, peer, reduction):
    mask = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]], bool)
    hidden = np.where(mask[..., None], LOGITS, -9.0).astype("float32")
    y_pred = keras.layers.Masking(-9.0)(tf.constant(hidden))
    ours = StableCrossEntropy(True, reduction=reduction, labels=labels)
    theirs = peer(from_logits=True, reduction=reduction)
    for weights in (None, WEIGHTS):
        expected = theirs(y_true, y_pred, sample_weight=weights)
        close(ours(y_true, y_pred, sample_weight=weights), expected)


def test_the_means_of_newer_keras_are_there_in_older_keras_too():
    values = StableCrossEntropy(True, reduction="none")(INDICES, LOGITS).numpy()
    close(StableCrossEntropy(True, reduction="mean")(INDICES, LOGITS), values.mean())
    weighted = StableCrossEntropy(True, reduction="mean_with_sample_weight")
    close(weighted(INDICES, LOGITS), values.mean())
    for weights in (WEIGHTS, WEIGHTS[:, :1], 3.0):
        full = np.broadcast_to(weights, [4, 3])
        close(weighted(INDICES, LOGITS, weights), np.average(values, weights=full))
    assert weighted(INDICES, LOGITS, np.zeros([4, 3])) == 0


@pytest.mark.parametrize(
    ("weights", "full"),
    [
        pytest.param(2.0, np.full([4, 3], 2.0), id="scalar"),
        pytest.param(WEIGHTS[:, 0], WEIGHTS[:, [0, 0, 0]], id="batch"),
        pytest.param(WEIGHTS[:, :1], WEIGHTS[:, [0, 0, 0]], id="batch-by-1"),
        pytest.param(WEIGHTS[..., None], WEIGHTS, id="one-axis-more"),
        pytest.param([1, 0, 2, 3], np.array([[1, 0, 2, 3]] * 3).T, id="integers"),
    ],
)
def test_weights_belong_to_the_leading_axes(weights, full):
    loss = StableCrossEntropy(True, reduction="none")
    expected = loss(INDICES, LOGITS).numpy() * full
    close(loss(INDICES, LOGITS, sample_weight=weights), expected)


def test_binary_weights_may_be_given_for_single_targets():
    weights = np.ones_like(LOGITS)
    weights[..., 1:] = 0
    loss = StableCrossEntropy(True, labels="binary", reduction="none")
    first = StableCrossEntropy(True, reduction="none")(ROWS[..., :1], LOGITS[..., :1])
    close(loss(ROWS, LOGITS, sample_weight=weights), first / 5)


@pytest.mark.parametrize(("labels", "y_true"), NAN_TARGETS, ids=KINDS)
def test_a_weight_of_0_ignores_nan_targets_and_nan_predictions(labels, y_true, mode):
    loss = StableCrossEntropy(True, labels=labels)
    y_pred = PAIRS.copy()
    y_pred[1] = [NAN, -INF]
    value, slope = value_and_slope(
        loss, y_true, y_pred, mode, sample_weight=[1.0, 0.0, 1.0]
    )
    kept = [0, 2]
    expected, expected_slope = value_and_slope(loss, y_true[kept], PAIRS[kept], "eager")
    close(value, expected * 2 / 3)
    close(slope, np.insert(expected_slope.numpy() * 2 / 3, 1, 0, axis=0))


@pytest.mark.parametrize(("labels", "y_true"), NAN_TARGETS, ids=KINDS)
def test_a_mask_ignores_nan_targets(labels, y_true, mode):
    loss = StableCrossEntropy(True, labels=labels)
    hidden = np.array(PAIRS[None])
    hidden[:, 1] = -9

    def masked(x):
        return loss(y_true[None], keras.layers.Masking(-9.0)(x))

    value, (slope,) = modes.value_and_gradients(masked, [tf.constant(hidden)], mode)
    kept = [0, 2]
    expected, expected_slope = value_and_slope(loss, y_true[kept], PAIRS[kept], "eager")
    close(value, expected)
    close(slope, np.insert(expected_slope.numpy(), 1, 0, axis=0)[None])


@pytest.mark.parametrize(("labels", "y_true"), NAN_TARGETS, ids=KINDS)
def test_a_nan_that_counts_comes_out(labels, y_true, mode):
    value, _ = value_and_slope(
        StableCrossEntropy(True, labels=labels), y_true, PAIRS, mode
    )
    assert np.isnan(value)


@pytest.mark.parametrize("ignored", [-1, 255])
def test_an_ignored_class_counts_nowhere(ignored, mode):
    y_true = np.array([2, ignored, 0], "int32")
    y_pred = np.array([[0, 1, 2], [NAN, 0, 0], [3, 2, 1]], "float32")
    loss = StableCrossEntropy(True, ignore_class=ignored)
    value, slope = value_and_slope(loss, y_true, y_pred, mode)
    expected, expected_slope = value_and_slope(
        StableCrossEntropy(True), y_true[[0, 2]], y_pred[[0, 2]], "eager"
    )
    close(value, expected)
    close(slope, np.insert(expected_slope.numpy(), 1, 0, axis=0))
    everything = np.full([3], ignored)
    value, slope = value_and_slope(loss, everything, y_pred, mode)
    assert value == 0
    close(slope, np.zeros([3, 3]))


def test_an_ignored_class_joins_the_mask_and_the_binary_targets():
    y_true = np.array([[1, -1], [0, 1]])
    y_pred = keras.layers.Masking(-9.0)(tf.constant([[[0.5], [NAN]], [[-9], [2.0]]]))
    loss = StableCrossEntropy(True, ignore_class=-1)
    close(loss(y_true, y_pred), (np.log1p(np.exp(-0.5)) + np.log1p(np.exp(-2))) / 2)


def test_ignoring_does_not_wrap_around_unsigned_labels():
    y_true = np.array([0, 255], "uint8")
    with pytest.raises(ValueError, match=r"value of 255 .* \[0, 3\), at index \[1\]"):
        StableCrossEntropy(True, ignore_class=-1)(y_true, np.zeros([2, 3], "float32"))
