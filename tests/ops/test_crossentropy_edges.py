"""The rows of the `Numerics` blocks, and what is refused."""

import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import ops

INF, NAN = float("inf"), float("nan")
dense = ops.categorical_crossentropy
sparse = ops.sparse_categorical_crossentropy
binary = ops.binary_crossentropy


@pytest.mark.parametrize(
    ("labels", "logits", "value", "slope"),
    [
        pytest.param([0, 1, 0], [-INF, 0, 1], 1.3132617, [0, -0.7310586, 0.7310586],
                     id="O180-minus-inf-beside-the-label"),
        pytest.param([1, 0, 0], [-INF, 0, 0], INF, [-1, 0.5, 0.5],
                     id="minus-inf-at-the-label"),
        pytest.param([0, 0, 0], [0, 1, 2], 0, [0, 0, 0], id="L65-no-label"),
        pytest.param([0, 0, 0], [NAN, 1, -INF], 0, [0, 0, 0], id="no-label-and-nan"),
        pytest.param([0.5, 0, 0], [0, 1, -INF], 0.6566308, [-0.3655293, 0.3655293, 0],
                     id="L65b-half-a-label"),
        pytest.param([0, 1, 0], [-INF] * 3, INF, [0, 0, 0], id="nothing-possible"),
        pytest.param([0, 1, 0], [NAN, 0, 0], NAN, [NAN] * 3, id="nan-logit"),
        pytest.param([NAN, 0, 0], [0, 0, 0], NAN, [NAN] * 3, id="nan-label"),
        pytest.param([0, 1, 0], [INF, 0, 0], NAN, [NAN] * 3, id="plus-inf"),
    ],
)  # fmt: skip
def test_rows_at_the_edges(labels, logits, value, slope, mode):
    got, (gradient,) = modes.value_and_gradients(
        lambda z: dense(tf.constant([labels], z.dtype), z, from_logits=True),
        [tf.constant([logits], tf.float32)],
        mode,
    )
    assert_close(got, [value])
    assert_close(gradient, [slope])


@pytest.mark.parametrize(
    ("label", "probs", "value", "slope"),
    [
        pytest.param(1, [0.0, 1.0, 0.0], 0, [1, 0, 1], id="certain-and-right"),
        pytest.param(0, [0.0, 1.0, 0.0], INF, [1, 1, 1], id="certain-and-wrong"),
        pytest.param(1, [1.0, 2.0, 1.0], 0.6931472, [0.25, -0.25, 0.25],
                     id="probabilities-are-normalised"),
        pytest.param(0, [0.0, 0.0, 0.0], NAN, [0, 0, 0], id="no-distribution"),
        pytest.param(1, [NAN, 1.0, 0.0], NAN, [NAN] * 3, id="nan"),
        pytest.param(3, [0.2, 0.3, 0.5], NAN, [0, 0, 0], id="L69-unknown-class"),
        pytest.param(-1, [0.2, 0.3, 0.5], NAN, [0, 0, 0], id="negative-class"),
        pytest.param(1, [1.0], NAN, [0], id="the-second-of-one-class"),
    ],
)  # fmt: skip
def test_indices_from_probabilities_at_the_edges(label, probs, value, slope, mode):
    got, (gradient,) = modes.value_and_gradients(
        lambda p: sparse([label], p), [tf.constant([probs])], mode
    )
    assert_close(got, [value])
    assert_close(gradient, [slope])


@pytest.mark.parametrize(
    ("target", "logit", "value", "slope"),
    [
        pytest.param(0, -INF, 0, 0, id="L62-impossible-and-right"),
        pytest.param(1, -INF, INF, -1, id="impossible-and-wrong"),
        pytest.param(1, INF, 0, 0, id="certain-and-right"),
        pytest.param(0, INF, INF, 1, id="certain-and-wrong"),
        pytest.param(1, -1e30, 1e30, -1, id="large"),
        pytest.param(1, NAN, NAN, NAN, id="nan"),
        pytest.param(NAN, 1, NAN, NAN, id="nan-target"),
    ],
)
def test_binary_logits_at_the_edges(target, logit, value, slope, mode):
    got, (gradient,) = modes.value_and_gradients(
        lambda z: binary([float(target)], z, from_logits=True),
        [tf.constant([logit], tf.float32)],
        mode,
    )
    assert_close(got, [value])
    assert_close(gradient, [slope])


@pytest.mark.parametrize(
    ("target", "prob", "value", "slope"),
    [
        pytest.param(0, 0, 0, 1, id="impossible-and-right"),
        pytest.param(1, 0, INF, 0, id="impossible-and-wrong"),
        pytest.param(1, 1, 0, -1, id="certain-and-right"),
        pytest.param(0, 1, INF, 0, id="certain-and-wrong"),
        pytest.param(1, 1e-30, 69.0775528, -1e30, id="no-clip"),
        pytest.param(0, NAN, NAN, NAN, id="nan"),
    ],
)
def test_binary_probabilities_at_the_edges(target, prob, value, slope, mode):
    got, (gradient,) = modes.value_and_gradients(
        lambda p: binary([float(target)], p), [tf.constant([prob], tf.float32)], mode
    )
    assert_close(got, [value])
    assert_close(gradient, [slope])


X = tf.zeros([2, 3])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: dense(X, tf.zeros([2, 4])), ValueError,
         r"`y_true` and `y_pred` must have the same shape. Received: "
         r"y_true.shape=\(2, 3\), y_pred.shape=\(2, 4\)"),
        (lambda: binary(X, tf.zeros([2, 4])), ValueError,
         r"`y_true` and `y_pred` must have the same shape"),
        (lambda: sparse([1, 1, 1], X), ValueError,
         r"the same shape but for the class axis. Received: y_true.shape=\(3,\)"),
        (lambda: sparse([1.0, 0.0], X), TypeError,
         r"`y_true` must have an integer dtype.*Received: dtype=float32.*tf.cast"),
        (lambda: dense(tf.zeros([2, 3], tf.int32), X), TypeError,
         "`y_true` must have a floating dtype"),
        (lambda: dense(tf.zeros([2, 3], tf.float16), X), TypeError,
         "`y_true` and `y_pred` must have the same dtype"),
        (lambda: dense(X, X, axis=2), ValueError, "`axis` is out of range.*axis=2"),
        (lambda: dense(X, X, axis=1.0), TypeError,
         r"`axis` must be an integer, the axis of the classes. Received: axis=1.0"),
        (lambda: dense(X, X, axis=True), TypeError, "`axis` must be an integer"),
        (lambda: sparse(0, 1.0), ValueError,
         r"`y_pred` must have a known number of axes, at least one. Received: "
         r"y_pred.shape=\(\).*tf.ensure_shape"),
        (lambda: sparse([0], tf.zeros([1, 0])), ValueError,
         r"at least one class along axis -1. Received: shape=\(1, 0\)"),
        (lambda: dense(X, X, label_smoothing=1.5), ValueError,
         "`label_smoothing` must be .* from 0 to 1. Received: label_smoothing=1.5"),
        (lambda: binary(X, X, label_smoothing=-0.1), ValueError,
         "`label_smoothing` must be a number from 0 to 1"),
        (lambda: binary(X, X, label_smoothing="some"), ValueError,
         "Received: label_smoothing='some'"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_with_a_suggestion(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "loss", [dense, sparse, binary], ids=["rows", "indices", "binary"]
)
def test_shapes_that_turn_out_not_to_fit_are_not_broadcast(loss, mode):
    # Not for the indices of a vector, whose reshape Grappler takes for redundant.
    labels = tf.constant([[1]] if loss is sparse else [[1.0]])
    x = tf.zeros([2, 2, 3] if loss is sparse else [2, 3])
    traced = tf.function(
        loss,
        input_signature=[
            tf.TensorSpec([None] * 2, labels.dtype),
            tf.TensorSpec([None] * x.shape.rank),
        ],
        autograph=False,
        jit_compile=mode == "xla",
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="reshape"):
        traced(labels, x)
