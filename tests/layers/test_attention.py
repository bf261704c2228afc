"""Attention: queries without a key, NaN in the padding, half precision."""

import warnings
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import layers

NAN = float("nan")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 6)).astype("float32")
# The second text is padded, the third empty.
KEEP = np.array([[True] * 4, [True, True, False, False], [False] * 4])
PADDED = np.where(KEEP[..., None], X, NAN).astype("float32")
PLAIN = [
    partial(layers.Attention, use_scale=True),
    partial(layers.Attention, score_mode="concat"),
    layers.AdditiveAttention,
]
HEADS = [
    partial(layers.MultiHeadAttention, 2, 3),
    partial(layers.MultiHeadAttention, 2, 3, value_dim=5, output_shape=7),
    partial(layers.GroupQueryAttention, 3, 4, 2),
]


def _softmax(scores, allowed):
    """Returns the weights in float64; 0 where nothing is allowed."""
    scores = np.where(allowed, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


def _run(layer, x, mode, **options):
    """Returns outputs, weights, and the gradients in the inputs and the variables."""
    variables = [v.value for v in layer.trainable_variables]

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            if isinstance(layer, keras.layers.Attention):
                found = layer([x, x], return_attention_scores=True, **options)
            else:
                found = layer(x, x, return_attention_scores=True, **options)
            value = tf.reduce_sum(found[0] ** 2)
        return *found, *tape.gradient(value, [x, *variables])

    output, scores, *slopes = modes.compile_for(mode, run)(tf.constant(x))
    return output.numpy(), scores.numpy(), [slope.numpy() for slope in slopes]


@pytest.mark.parametrize("make", PLAIN)
def test_what_is_masked_does_not_matter(make, mode):
    layer = make()
    layer.build([X.shape, X.shape])
    mask = [tf.constant(KEEP)] * 2
    hidden, scores, slopes = _run(layer, PADDED, mode, mask=mask)
    zeroed = np.where(KEEP[..., None], X, 0)
    output, others, right = _run(layer, zeroed, "eager", mask=mask)
    assert_close(hidden, output, 7, why="sums of products", scale=0.2)
    assert_close(
        scores[KEEP], others[KEEP], 10, why="quotients of sums of exponentials"
    )
    for slope, expected in zip(slopes, right, strict=True):
        # That of the scale is a sum that cancels, and XLA adds in another order.
        assert_close(slope, expected, 66, why="XLA adds in another order", scale=0.2)
    assert not np.any(slopes[0][~KEEP])
    assert not np.any(scores[2])
    assert not np.any(hidden[2])


@pytest.mark.parametrize(
    ("make", "mode"),
    [*((HEADS[0], mode) for mode in modes.MODES), *((h, "graph") for h in HEADS[1:])],
)
def test_what_is_masked_does_not_matter_to_any_head(make, mode):
    layer = make()
    layer.build(X.shape, X.shape)
    masks = {"query_mask": tf.constant(KEEP), "value_mask": tf.constant(KEEP)}
    hidden, scores, slopes = _run(layer, PADDED, mode, **masks)
    zeroed = np.where(KEEP[..., None], X, 0)
    output, _, right = _run(layer, zeroed, "eager", **masks)
    assert_close(hidden, output, 7, why="sums of products", scale=0.2)
    for slope, expected in zip(slopes, right, strict=True):
        # That of the bias of the keys is 0 but for the rounding.
        assert_close(slope, expected, 8, why="sums of products", scale=1.0)
    assert not np.any(slopes[0][~KEEP])
    assert not np.any(scores[2])
    np.testing.assert_array_equal(hidden[~KEEP], 0)


def test_the_dot_product_is_the_textbooks():
    query, value, key = RNG.normal(size=(3, 2, 4, 5))
    mask = RNG.random((2, 4)) < 0.6
    layer = layers.Attention(dtype="float64")
    causal = np.tril(np.ones((4, 4), bool))
    for allowed, is_causal in ((mask[:, None], False), (mask[:, None] & causal, True)):
        weights = _softmax(query @ key.transpose(0, 2, 1), allowed)
        output, scores = layer(
            [tf.constant(x) for x in (query, value, key)],
            mask=[tf.ones([2, 4], tf.bool), tf.constant(mask)],
            return_attention_scores=True,
            use_causal_mask=is_causal,
        )
        assert_close(scores, weights, 6, why="quotients of sums of exponentials")
        assert_close(output, weights @ value, 11, why="sums of both signs")


@pytest.mark.parametrize("make", [HEADS[0], HEADS[2]])
def test_heads_are_keras_own_where_every_query_has_a_key(make):
    ours = make(dtype="float64")
    theirs = getattr(keras.layers, type(ours).__name__).from_config(ours.get_config())
    x, allowed = X.astype("float64"), RNG.random((3, 4, 4)) < 0.5
    allowed[..., 0] = True
    ours.build(x.shape, x.shape)
    theirs.build(x.shape, x.shape)
    theirs.set_weights(ours.get_weights())
    # Keras' has parts that are computed in float32 whatever the dtype.
    for options in (
        {},
        {"use_causal_mask": True},
        {"attention_mask": allowed},
        {"attention_mask": allowed, "use_causal_mask": True},
        {"key": x[::-1].copy(), "value_mask": np.arange(4) < [[4], [2], [1]]},
    ):
        both = [layer(x, x, **options) for layer in (ours, theirs)]
        assert_close(*both, 0.5, scale=1.0, dtype="float32")
        both = [
            layer(x, x, return_attention_scores=True, **options)[1]
            for layer in (ours, theirs)
        ]
        assert_close(*both, 0.5, scale=1.0, dtype="float32")


def test_the_output_is_the_same_with_and_without_the_weights(mode):
    layer = layers.MultiHeadAttention(2, 3, bias_initializer="ones")
    layer.build(X.shape, X.shape)
    mask = tf.constant(KEEP[:, None] & np.ones((3, 4, 4), bool))

    def run(x):
        output, _ = layer(x, x, attention_mask=mask, return_attention_scores=True)
        return output, layer(x, x, attention_mask=mask)

    with_weights, without = modes.compile_for(mode, run)(tf.constant(X))
    np.testing.assert_array_equal(with_weights, without)
    # Nothing but the bias behind the heads.
    np.testing.assert_array_equal(without[2], np.ones((4, 6)))


def test_a_mask_for_each_head_may_leave_one_of_them_without_a_key():
    layer = layers.MultiHeadAttention(2, 3)
    mask = np.ones((3, 2, 4, 4), bool)
    mask[:, 0] = False
    mask[:, 1, :, 3] = False
    x = X.copy()
    x[:, 3] = NAN
    output, scores = layer(X, x, attention_mask=mask, return_attention_scores=True)
    assert np.isfinite(output).all()
    assert not np.any(scores[:, 0])
    assert_close(np.sum(scores[:, 1], -1), np.ones([3, 4]), 2)


def test_attention_over_several_axes_takes_the_mask():
    images = RNG.normal(size=(2, 3, 2, 4)).astype("float32")
    mask = np.ones((2, 3, 2, 3, 2), bool)
    mask[0, 1, 1] = False
    mask[:, :, :, 2, 0] = False
    images[:, 2, 0] = NAN
    query = np.nan_to_num(images)
    layer = layers.MultiHeadAttention(2, 3, bias_initializer="zeros")
    output = layer(query, images, attention_mask=mask)
    assert np.isfinite(output).all()
    np.testing.assert_array_equal(output[0, 1, 1], 0)
    rows = layers.MultiHeadAttention(2, 3, attention_axes=(-2,))
    mask = np.ones((2, 3, 2, 2), bool)
    mask[1] = False
    found = rows(query, query, attention_mask=mask)
    assert np.any(found[0])
    np.testing.assert_array_equal(found[1], 0)


def test_nan_that_is_attended_to_comes_out(mode):
    layer = layers.MultiHeadAttention(2, 3)
    layer.build(X.shape, X.shape)
    x = X.copy()
    x[0, 1] = NAN
    run = modes.compile_for(mode, lambda x: layer(x, x, value_mask=tf.constant(KEEP)))
    found = run(tf.constant(x))
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1:]).all()


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_large_logits_of_half_precision_are_finite(half, mode):
    # Each product is 400 * 300 * 4 = 480000.
    query = tf.constant([[[300.0] * 4, [400.0] * 4]], half)
    plain = layers.Attention(dtype=half)
    heads = layers.MultiHeadAttention(
        1, 4, use_bias=False, kernel_initializer="ones", dtype=half
    )
    heads.build((1, 2, 1), (1, 2, 1))
    calls = [
        (lambda x: plain([x, x]), 400),
        (lambda x: heads(x[..., :1], x[..., :1]), 1600),
    ]
    for call, right in calls[: 1 if mode == "xla" else 2]:
        value, (slope,) = modes.value_and_gradients(call, [query], mode)
        assert np.all(tf.cast(value, tf.float32) == right)
        assert np.isfinite(tf.cast(slope, tf.float32)).all()


@pytest.mark.parametrize("make", [PLAIN[0], HEADS[0]])
def test_dropout_acts_in_training_alone(make):
    layer = make(dropout=0.5)
    arguments = ([X, X],) if isinstance(layer, keras.layers.Attention) else (X, X)
    steady = layer(*arguments)
    np.testing.assert_array_equal(layer(*arguments), steady)
    assert np.any(layer(*arguments, training=True) != steady)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_the_second_gradient_passes_a_query_without_a_key(mode):
    layer = layers.MultiHeadAttention(1, 2)
    layer.build((1, 2, 2), (1, 2, 2))
    x = tf.constant([[[1.0, 2.0], [NAN, NAN]]])
    mask = tf.constant([[True, False]])
    got = modes.second_gradient(
        lambda x: layer(x, x, query_mask=mask, value_mask=mask) ** 2, x, mode
    )
    assert np.isfinite(got).all()
    assert not np.any(got[0, 1])
    plain = layers.Attention()
    got = modes.second_gradient(
        lambda x: plain([x, x], mask=[mask, mask]) ** 3, x, mode
    )
    assert_close(got[0], [[6, 12], [0, 0]])


@pytest.mark.parametrize("make", [HEADS[0], HEADS[2]])
def test_masks_attached_to_the_inputs_are_used(make):
    x = keras.layers.Masking()(tf.constant(np.where(KEEP[..., None], X, 0)))
    layer = make()
    found = layer(x, x)
    np.testing.assert_array_equal(found, layer(X, X, query_mask=KEEP, value_mask=KEEP))
    pooled = layers.GlobalAveragePooling1D(empty_value=5)(found)
    np.testing.assert_array_equal(pooled[2], [5] * 6)


@pytest.mark.parametrize("make", [*PLAIN, *HEADS])
def test_unknown_shapes_are_taken(make):
    layer = make()
    is_plain = isinstance(layer, keras.layers.Attention)
    layer(*(([X, X],) if is_plain else (X, X)))

    def run(x, mask):
        if is_plain:
            return layer([x, x], mask=[mask, mask])
        return layer(x, x, query_mask=mask, value_mask=mask)

    specs = [tf.TensorSpec([None, None, 6]), tf.TensorSpec([None, None], tf.bool)]
    traced = tf.function(run, input_signature=specs, autograph=False)
    keep = tf.constant(KEEP)
    # Sums of terms of both signs, in another order.
    assert_close(traced(PADDED, keep), run(PADDED, keep))
    assert traced(X[:0], keep[:0]).shape[0] == 0


def test_attention_finds_the_mask_of_its_query():
    x = keras.layers.Masking()(tf.constant(np.where(KEEP[..., None], X, 0)))
    np.testing.assert_array_equal(layers.Attention().compute_mask([x, x]), KEEP)
    assert layers.Attention().compute_mask([X, X]) is None


def test_a_mask_that_is_no_list_is_refused():
    with pytest.raises(ValueError, match=r"(?s)layer mask must be a list.*\[None, m"):
        layers.Attention()([X, X], mask=tf.constant(KEEP))
    with pytest.raises(ValueError, match="must be called on a list"):
        layers.Attention()(X)
    with pytest.raises(ValueError, match="mask list of length 2 or 3"):
        layers.Attention()([X, X], mask=[tf.constant(KEEP)])


@pytest.mark.parametrize("steps", [4, 3])
def test_one_mask_of_heads_serves_the_whole_batch(steps, mode):
    # With as many steps as samples, the mask's axes could pass for others.
    layer = layers.MultiHeadAttention(num_heads=2, key_dim=3)
    x = tf.constant(X[:, :steps])
    lower = tf.linalg.band_part(tf.ones([steps, steps], tf.bool), -1, 0)
    masks = [
        lower,
        tf.broadcast_to(lower, [3, steps, steps]),
        tf.broadcast_to(lower, [3, 2, steps, steps]),
    ]
    expected = layer(x, x, use_causal_mask=True)
    for mask in masks:
        run = modes.compile_for(mode, lambda x, m=mask: layer(x, x, attention_mask=m))
        assert_close(run(x), expected, scale=1.0)


@pytest.mark.parametrize("masked", [False, True])
def test_a_subclass_may_ask_for_the_causal_mask(masked):
    layer = layers.MultiHeadAttention(num_heads=2, key_dim=4)
    layer.build((1, 5, 8), (1, 5, 8))
    query, key, value = (RNG.normal(size=(1, 5, 2, 4)).astype("float32") for _ in "abc")
    extra = np.ones([1, 5, 5], bool)
    extra[:, 3, 1] = not masked
    both = layer._compute_attention(
        query, key, value, extra if masked else None, use_causal_mask=True
    )
    merged = layer._compute_attention(query, key, value, extra & np.tri(5, dtype=bool))
    for ours, expected in zip(both, merged, strict=True):
        assert_close(ours, expected)


def test_the_masks_of_the_inputs_are_left_as_by_keras():
    """Keras' layer takes them away, and a residual sum then has none."""

    def masks(home):
        x = home.Embedding(3, 4, mask_zero=True)(tf.constant([[1, 2, 0], [1, 0, 0]]))
        y = home.MultiHeadAttention(2, 4)(x, x)
        found = (x, y, home.Add()([x, y]))
        return [getattr(each, "_keras_mask", None) is not None for each in found]

    with warnings.catch_warnings():
        # That of Keras 3.3 warns that its projections drop the masks.
        warnings.simplefilter("ignore")
        expected = masks(keras.layers)
    assert masks(layers) == expected
