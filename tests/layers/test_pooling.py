import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.layers import SafeMeanPooling

NAN = float("nan")
X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
MASK = np.array([[True, False, True], [False, False, False]])


def test_the_mean_is_that_of_the_kept_steps(mode, dtype):
    layer = SafeMeanPooling(dtype=dtype.name)
    x = tf.cast(X, dtype)
    value, (slope,) = modes.value_and_gradients(
        lambda x: layer(x, mask=tf.constant(MASK)), [x], mode
    )
    wide = np.asarray(tf.cast(x, tf.float64))
    truth = np.stack([wide[0, [0, 2]].mean(0), np.zeros(4)])
    assert_close(value, truth, 1 if dtype.size == 2 else 4)
    expected = np.zeros([2, 3, 4])
    expected[0, [0, 2]] = 0.5
    np.testing.assert_array_equal(tf.cast(slope, tf.float64), expected)
    assert value.dtype == dtype


def test_nothing_under_the_mask_matters(mode):
    layer = SafeMeanPooling(empty_value=7.0)
    x = X.copy()
    x[~MASK] = NAN
    value, (slope,) = modes.value_and_gradients(
        lambda x: layer(x, mask=tf.constant(MASK)), [tf.constant(x)], mode
    )
    assert_close(value[0], X[0, [0, 2]].mean(0))
    np.testing.assert_array_equal(value[1], [7.0] * 4)
    assert not np.isnan(slope).any()
    assert np.isnan(layer(tf.constant(x))).any(), "without the mask the NaN counts"


def test_the_second_gradient_passes_an_empty_sequence(mode):
    layer = SafeMeanPooling()
    x = tf.constant([[[3.0], [NAN]], [[NAN], [NAN]]])
    mask = tf.constant([[True, False], [False, False]])
    got = modes.second_gradient(lambda x: layer(x, mask=mask) ** 2, x, mode)
    np.testing.assert_array_equal(got[..., 0], [[2, 0], [0, 0]])


@pytest.mark.parametrize(
    ("axis", "mask_shape", "keepdims", "shape"),
    [
        (1, (2, 3), False, (2, 4)),
        (1, (2, 3), True, (2, 1, 4)),
        (-1, (2, 3), False, (2, 3)),
        (2, (2, 1, 4), False, (2, 3)),
        ((1, 2), (2, 3, 4), False, (2,)),
        ([-1, 1], (2, 3), True, (2, 1, 1)),
        (1, (1, 3), False, (2, 4)),
        (1, (2, 3, 1), False, (2, 4)),
        (1, (2,), False, (2, 4)),
        (1, (), False, (2, 4)),
    ],
    ids=str,
)
def test_masks_of_any_broadcastable_shape(axis, mask_shape, keepdims, shape):
    mask = np.random.default_rng(1).random(mask_shape) < 0.7
    full = mask.reshape(mask.shape + (1,) * (3 - mask.ndim))
    layer = SafeMeanPooling(axis=axis, keepdims=keepdims, empty_value=-1)
    got = layer(tf.constant(X), mask=tf.constant(mask))
    weights = np.broadcast_to(full, X.shape).astype("float64")
    along = tuple(axis) if isinstance(axis, list) else axis
    count = weights.sum(along, keepdims=keepdims)
    total = (X * weights).sum(along, keepdims=keepdims)
    assert_close(got, np.where(count, total / np.maximum(count, 1), -1))
    assert got.shape == shape == layer.compute_output_shape((2, 3, 4))


def test_weights_may_stand_in_for_the_mask():
    weights = np.array([[1, 3, 0], [0, 0, 2]])
    got = SafeMeanPooling()(tf.constant(X), mask=tf.constant(weights))
    expected = [np.average(x, 0, w) for x, w in zip(X, weights, strict=True)]
    assert_close(got, expected)


@pytest.mark.parametrize(
    ("axis", "keepdims", "shape", "mask_shape", "expected"),
    [
        (1, False, (2, 3, 4), (2, 3), None),
        (1, True, (2, 3, 4), (2, 3), [[True], [False]]),
        (2, False, (2, 3, 4), (2, 3), MASK),
        (3, False, (2, 3, 4, 5), (2, 3), MASK),
        (1, False, (2, 3, 4, 5), (2, 3, 4), [[True] * 4, [False] * 4]),
        (2, False, (2, 3, 4), (2, 3, 4), None),
    ],
    ids=str,
)
def test_the_mask_that_is_left_is_passed_on(
    axis, keepdims, shape, mask_shape, expected
):
    mask = np.broadcast_to(MASK.reshape(2, 3, *[1] * (len(mask_shape) - 2)), mask_shape)
    layer = SafeMeanPooling(axis=axis, keepdims=keepdims)
    got = layer.compute_mask(np.zeros(shape), mask)
    assert (got is None) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal(got, expected)


def test_rows_of_a_ragged_tensor_end_where_they_end():
    rows = [[[1.0], [3.0]], [], [[NAN]]]
    x = tf.ragged.constant(rows, ragged_rank=1, inner_shape=(1,))
    layer = SafeMeanPooling(empty_value=-1.0)
    np.testing.assert_array_equal(layer(x), [[2.0], [-1.0], [NAN]])
    for mask in ([[True, False], [], [False]], [[1, 0], [], [0]]):
        for form in (tf.ragged.constant, lambda m: tf.ragged.constant(m).to_tensor()):
            np.testing.assert_array_equal(layer(x, mask=form(mask)), [[1], [-1], [-1]])
    everything = SafeMeanPooling(axis=(1, 2))(tf.ragged.constant([[[1.0, 3.0], [5.0]]]))
    np.testing.assert_array_equal(everything, [3.0])


def test_an_empty_batch_and_no_steps_pass():
    layer = SafeMeanPooling(empty_value=2.0)
    assert layer(tf.zeros([0, 3, 4])).shape == (0, 4)
    np.testing.assert_array_equal(layer(tf.zeros([1, 0, 2])), [[2, 2]])


def test_config_holds_every_argument():
    layer = SafeMeanPooling((1, -1), True, 0.5, name="mine", dtype="float16")
    config = SafeMeanPooling.from_config(layer.get_config()).get_config()
    assert config == layer.get_config()
    assert (config["axis"], config["keepdims"]) == ([1, -1], True)
    assert (config["empty_value"], config["name"]) == (0.5, "mine")


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: SafeMeanPooling(axis=None), TypeError,
         r"`axis` must be an integer or a sequence of integers. .*axis=None.*\(1, 2\)"),
        (lambda: SafeMeanPooling(axis=1.5), TypeError, "`axis` must be .*axis=1.5"),
        (lambda: SafeMeanPooling(keepdims="yes"), ValueError,
         "`keepdims` must be one of False, True. Received: keepdims='yes'"),
        (lambda: SafeMeanPooling(empty_value="0"), TypeError,
         "`empty_value` must be a number. Received: empty_value='0'"),
        (lambda: SafeMeanPooling(axis=3)(X), ValueError,
         r"`axis` is out of range. Received: axis=3 for a tensor of shape \(2, 3, 4\)"),
        (lambda: SafeMeanPooling(axis=(1, -2))(X), ValueError, "names an axis twice"),
        (lambda: SafeMeanPooling(axis=0)(X), ValueError,
         r"`axis` must name at least one axis, and not the batch axis. .*axis=0 "
         r"for inputs of shape \(2, 3, 4\)"),
        (lambda: SafeMeanPooling(axis=-3)(X), ValueError, "not the batch .*axis=-3"),
        (lambda: SafeMeanPooling(axis=[])(X), ValueError, r"at least one .*axis=\[\]"),
        (lambda: SafeMeanPooling()(X, mask=np.ones([2, 4], bool)), ValueError,
         r"`mask` must have the leading axes of `inputs`, or all of them, each of its "
         r"size or 1. Received: mask.shape=\(2, 4\), inputs.shape=\(2, 3, 4\)"),
        (lambda: SafeMeanPooling()(X, mask=np.ones([2, 3, 4, 1], bool)), ValueError,
         r"Received: mask.shape=\(2, 3, 4, 1\)"),
        (lambda: SafeMeanPooling()(tf.zeros([2, 3, 4], tf.int32)), TypeError,
         "`x` must have a floating dtype"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_with_a_suggestion(act, error, message):
    with pytest.raises(error, match=message):
        act()


def test_a_mask_of_unknown_rank_is_refused():
    def call(mask):
        return SafeMeanPooling()(tf.constant(X), mask=mask)

    with pytest.raises(ValueError, match=r"`mask` must have .*shape=<unknown>"):
        tf.function(call, autograph=False).get_concrete_function(
            tf.TensorSpec(None, tf.bool)
        )
