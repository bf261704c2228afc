"""What `labels="auto"` makes of shapes, and what it refuses."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close, ulp_error
from tfsafe import losses
from tfsafe.losses import StableCrossEntropy

X = np.zeros([2, 3], "float32")
LOSS = StableCrossEntropy(from_logits=True)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "axis", "kind"),
    [
        ([2], [2, 3], -1, "sparse"),
        ([2, 1], [2, 3], -1, "sparse"),
        ([], [3], -1, "sparse"),
        ([2, 4], [2, 4, 3], -1, "sparse"),
        ([2, 4, 1], [2, 4, 3], -1, "sparse"),
        ([2, 4], [2, 3, 4], 1, "sparse"),
        ([2, 1, 4], [2, 3, 4], 1, "sparse"),
        ([2, 3], [2, 3], -1, "dense"),
        ([2, 3], [2, 3], 0, "dense"),
        ([2, 4, 3], [2, 4, 3], -1, "dense"),
        ([2], [2, 1], -1, "binary"),
        ([2, 1], [2, 1], -1, "binary"),
        ([2, 4], [2, 4, 1], -1, "binary"),
        ([2, 4, 1], [2, 4, 1], -1, "binary"),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_auto_goes_by_the_shapes(y_true, y_pred, axis, kind, dtype):
    # Labels of 0 would make the kinds alike: a first label of 1 does not.
    y_true = np.ones(y_true, dtype)
    y_pred = np.random.default_rng(0).normal(size=y_pred).astype("float32")
    options = {"from_logits": True, "axis": axis, "reduction": "none"}
    auto = StableCrossEntropy(**options)(y_true, y_pred)
    said = StableCrossEntropy(**options, labels=kind)(y_true, y_pred)
    np.testing.assert_array_equal(auto, said)
    for other in {"sparse", "dense", "binary"} - {kind}:
        try:
            differs = StableCrossEntropy(**options, labels=other)(y_true, y_pred)
        except ValueError:
            continue
        assert differs.shape != auto.shape or ulp_error(differs, auto) > 1000


@pytest.mark.parametrize(
    ("y_true", "y_pred", "choices"),
    [
        (
            [2],
            [2],
            r"one row \('dense'\) or a binary target for each sample \('binary'\)",
        ),
        (
            [None],
            [None, None],
            r"\('sparse'\), rows \('dense'\) or targets \('binary'\)",
        ),
        ([None, None], [None, None], r"\('sparse'\), rows \('dense'\) or targets"),
        ([None, 1], [None, None], r"\('sparse'\), rows \('dense'\) or targets"),
        ([None, None], [None, 3], r"class indices \('sparse'\) or rows \('dense'\)"),
    ],
    ids=str,
)
def test_auto_refuses_what_the_shapes_leave_open(y_true, y_pred, choices):
    traced = tf.function(LOSS, autograph=False)
    message = (
        f"labels='auto' cannot tell whether `y_true` holds .*{choices}.*. Received: "
        r"y_true.shape=.*, y_pred.shape=.*, class axis \d. Set `labels` to the word"
    )
    with pytest.raises(ValueError, match=message):
        traced.get_concrete_function(
            tf.TensorSpec(y_true, tf.float32), tf.TensorSpec(y_pred, tf.float32)
        )


@pytest.mark.parametrize(
    ("y_true", "y_pred", "kind"),
    [
        ([None], [None, None], "sparse"),
        ([None, None], [None, None], "dense"),
        ([None, None], [None, None], "binary"),
        ([None, 1], [None, None], "sparse"),
        ([None, 3], [None, None], "auto"),
        ([None, None], [None, 1], "auto"),
    ],
    ids=str,
)
def test_unknown_shapes_pass_once_the_kind_is_known(y_true, y_pred, kind):
    loss = StableCrossEntropy(from_logits=True, labels=kind)
    traced = tf.function(loss, autograph=False).get_concrete_function(
        tf.TensorSpec(y_true, tf.float32), tf.TensorSpec(y_pred, tf.float32)
    )
    classes = y_pred[-1] or 3
    labels = np.ones([2, y_true[-1] or classes][: len(y_true)], "float32")
    x = np.random.default_rng(0).normal(size=[2, classes]).astype("float32")
    assert_close(traced(tf.constant(labels), tf.constant(x)), loss(labels, x))


def test_said_kinds_add_and_drop_an_axis_of_size_1():
    binary = StableCrossEntropy(from_logits=True, labels="binary")
    x = np.array([[0.5], [-2.0]], "float32")
    y = np.array([[1.0], [0.0]], "float32")
    expected = keras.losses.BinaryCrossentropy(from_logits=True)(y, x)
    for y_true, y_pred in ((y[:, 0], x), (y, x[:, 0]), (y[:, 0], x[:, 0]), (y, x)):
        assert_close(binary(y_true, y_pred), expected)


def call(y_true=0, y_pred=X, loss=LOSS, **options):
    return lambda: loss(y_true, y_pred, **options)


def make(**options):
    return lambda: StableCrossEntropy(**options)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (make(from_logits="no"), ValueError,
         "`from_logits` must be one of False, True. Received: from_logits='no'"),
        (make(label_smoothing=-0.1), ValueError,
         "`label_smoothing` must be a number from 0 to 1. .*label_smoothing=-0.1"),
        (make(label_smoothing=2), ValueError, "Received: label_smoothing=2"),
        (make(axis=None), TypeError,
         "`axis` must be an integer, the axis of the classes. Received: axis=None"),
        (make(reduction="average"), ValueError,
         "`reduction` must be one of 'sum_over_batch_size', 'mean', .*'average'"),
        (make(dtype="int32"), ValueError,
         r"`dtype` must be None, a floating dtype \(float16.*Received: dtype='int32'"),
        (make(dtype="half-ish"), ValueError, "Received: dtype='half-ish'"),
        (make(dtype=3.5), ValueError, "`dtype` must be None, a floating dtype"),
        (make(labels="one_hot"), ValueError,
         "`labels` must be one of 'auto', 'sparse', 'dense', 'binary'. .*'one_hot'"),
        (make(ignore_class=0.5), TypeError,
         "`ignore_class` must be an integer, a label, or None. .*ignore_class=0.5"),
        (make(ignore_class=1, labels="dense"), ValueError,
         "`ignore_class` needs class indices or binary targets .*`sample_weight` to 0"),
        (call(X, X, StableCrossEntropy(True, ignore_class=1)), ValueError,
         "Received: ignore_class=1 with labels that are rows"),
        (call([0, 1], np.zeros([2, 3], "int32")), TypeError,
         "`y_pred` must have a floating dtype.*dtype=int32"),
        (call([0], 1.0), ValueError,
         r"`y_pred` must have a known number of axes, at least one.*shape=\(\)"),
        (call([0, 1], X, StableCrossEntropy(True, axis=2)), ValueError,
         r"`axis` is out of range. Received: axis=2 for a tensor of shape \(2, 3\)"),
        (call(["a", "b"]), TypeError,
         "`y_true` must hold numbers: .*dtype=string.*StringLookup"),
        (call(tf.ragged.constant([[0], [1, 2]])), TypeError,
         "`y_true` must be a dense tensor. Received: RaggedTensor.*to_tensor"),
        (call(np.zeros([2, 3, 1, 1])), ValueError,
         r"`y_true` must have the axes of `y_pred`, or all of them but the class axis. "
         r"Received: y_true.shape=\(2, 3, 1, 1\), y_pred.shape=\(2, 3\), class axis 1"),
        (call(np.zeros([3], int)), ValueError,
         r"must have the shape \(2,\) for labels='sparse'. Received: "
         r"y_true.shape=\(3,\), y_pred.shape=\(2, 3\)"),
        (call(np.zeros([2, 4])), ValueError,
         r"must have the shape \(2, 3\) for labels='dense'. .*y_true.shape=\(2, 4\)"),
        (call(X, X, StableCrossEntropy(True, labels="sparse")), ValueError,
         r"must have the shape \(2,\) for labels='sparse'"),
        (call([0, 3]), ValueError,
         r"indices from 0 to 2. Received a label value of 3 .*at index \[1\]"),
        (call([0, 1], sample_weight=[1.0, 2.0, 3.0]), ValueError,
         r"`sample_weight` must be a scalar or have the leading axes of the losses, "
         r"whose shape is \(2,\). Received: sample_weight.shape=\(3,\)"),
        (call([0, 1], sample_weight=np.ones([2, 3])), ValueError,
         r"Received: sample_weight.shape=\(2, 3\)"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_with_a_suggestion(act, error, message):
    with pytest.raises(error, match=message):
        act()


def test_labels_and_weights_of_unknown_rank_are_refused():
    for true_shape, weight_shape, message in (
        (None, [None], "`y_true` must have the axes of `y_pred`"),
        ([None], None, r"`sample_weight` must be a scalar .*shape=<unknown>"),
    ):
        with pytest.raises(ValueError, match=message):
            tf.function(LOSS, autograph=False).get_concrete_function(
                tf.TensorSpec(true_shape, tf.int32),
                tf.TensorSpec([None, 3], tf.float32),
                tf.TensorSpec(weight_shape, tf.float32),
            )


def test_a_mask_that_does_not_fit_is_refused():
    y_pred = keras.layers.Masking()(tf.ones([2, 3, 4]))
    with pytest.raises(
        ValueError, match=r"`mask` must be a scalar or have the leading"
    ):
        StableCrossEntropy(True, axis=1)(np.zeros([2, 4], int), y_pred)


@pytest.mark.parametrize("run", [lambda call: call(), lambda call: tf.function(call)()])
@pytest.mark.parametrize(
    "loss",
    [
        losses.BinaryCrossentropy(),
        losses.BinaryFocalCrossentropy(),
        losses.CosineSimilarity(),
        losses.Dice(),
        losses.Hinge(),
        losses.Huber(),
        losses.KLDivergence(),
        losses.MeanSquaredError(),
        losses.Poisson(),
        losses.Tversky(),
        losses.StableCrossEntropy(labels="binary"),
    ],
    ids=lambda loss: loss.name,
)
def test_one_number_a_sample_fits_one_prediction_a_sample(loss, run):
    y_true, y_pred = tf.constant([0, 1, 1]), tf.constant([[0.2], [0.7], [0.9]])
    wanted = float(loss(y_true[:, tf.newaxis], y_pred))
    assert wanted
    assert float(run(lambda: loss(y_true, y_pred))) == wanted
    assert float(run(lambda: loss(y_true[:, tf.newaxis], y_pred[:, 0]))) == wanted
