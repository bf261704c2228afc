"""Layers over steps: pooling, masks, NaN in the padding, no step; ids and dropout."""

import functools
import warnings

import keras
import numpy as np
import tensorflow as tf

from tests.catalogue.layers_attention import built
from tests.catalogue.rows import Row, formula
from tests.support import modes
from tests.support.oracle import ulp_error
from tfsafe import layers

NAN = float("nan")


def _pooled(package, mask, dtype="float32"):
    layer = package.GlobalAveragePooling1D(dtype=dtype)
    return lambda x: layer(x, mask=tf.constant(mask))


def _masking(package):
    return package.Masking(mask_value=NAN)


def _of_nan_padding(package, name):
    """Returns a check of the output and the gradients of all weights."""
    make = built(lambda: getattr(package, name)(3), (1, 3, 2))

    def is_right(mode):
        layer = make()

        def run(x):
            with tf.GradientTape() as tape:
                y = layer(x, mask=tf.constant([[True, False, False]]))
            return [y, *tape.gradient(y, [v.value for v in layer.trainable_variables])]

        def of(padding):
            x = tf.constant([[[1.0, 2.0], [padding] * 2, [padding] * 2]])
            return modes.compile_for(mode, run)(x)

        # What stands in the padding must not matter.
        return all(
            ulp_error(got, right) <= 4
            for got, right in zip(of(NAN), of(0.0), strict=True)
        )

    return is_right


def _wrong_id(package):
    table = built(lambda: package.Embedding(3, 2), (1, 1))

    def is_right(mode):
        # NaN in every mode; an error in some of them and a number in others is wrong.
        found = modes.compile_for(mode, lambda ids: table()(ids))(tf.constant([[7]]))
        return np.isnan(found).all()

    return is_right


def _pooled_under_a_mask(package):
    """Returns a check whether three pooling layers heed a mask."""

    def is_right(mode):
        pools = package.GlobalMaxPooling1D(), package.AveragePooling1D(4)
        pools += (package.MaxPooling1D(4),)

        def run(x):
            return [pool(package.Masking()(x)) for pool in pools]

        x = tf.constant([[[0.0], [0.0], [-5.0], [-7.0]]])
        with warnings.catch_warnings():
            # Keras says that it drops the mask.
            warnings.filterwarnings("ignore", message=".*destroy the mask")
            found = modes.compile_for(mode, run)(x)
        return [float(tf.squeeze(y)) for y in found] == [-5, -6, -5]

    return is_right


def _without_a_step(package):
    """Returns a check whether layers take a sequence that has no step."""

    @functools.cache
    def made():
        wrapped = package.TimeDistributed(package.Dense(2))
        several = [
            package.LSTM(2),
            package.Bidirectional(package.GRU(1)),
            package.GlobalAveragePooling1D(),
            package.GlobalMaxPooling1D(),
        ]
        for layer in (*several, wrapped):
            layer.build((1, 0, 2))
        images = package.ConvLSTM1D(2, 3)
        images.build((1, 0, 4, 2))
        return several, wrapped, images

    def is_right(mode):
        several, wrapped, images = made()

        def run(x):
            pooled = tf.concat([layer(x) for layer in several], 0)
            return pooled, wrapped(x), images(x[:, :, tf.newaxis] + tf.zeros([4, 1]))

        pooled, steps, image = modes.compile_for(mode, run)(tf.zeros([1, 0, 2]))
        zero = not np.any(pooled) and not np.any(image)
        return zero and (steps.shape, image.shape) == ((1, 0, 2), (1, 2, 2))

    return is_right


def _drops_all(package):
    """Returns a check of dropout at a rate of 1."""

    def is_right(mode):
        for name in ("GaussianDropout", "AlphaDropout", "Dropout", "SpatialDropout1D"):
            layer = getattr(package, name)(1.0)
            found, slopes = modes.value_and_gradients(
                lambda x, layer=layer: layer(x, training=True),
                [tf.ones([1, 3, 2])],
                mode,
            )
            if np.any(found) or any(np.any(s) for s in slopes if s is not None):
                return False
        return True

    return is_right


def _text_model(package):
    """Returns a check whether a text without a word leaves the model finite."""

    def is_right(mode):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([
            keras.Input((3,), dtype="int32"),
            package.Embedding(5, 2, mask_zero=True),
            package.GlobalAveragePooling1D(),
            package.Dense(1),
        ])
        model.compile(
            "adam", "mse", run_eagerly=mode == "eager", jit_compile=mode == "xla"
        )
        texts = np.array([[1, 2, 0], [0, 0, 0], [3, 0, 0]])
        losses = model.fit(texts, np.ones((3, 1)), verbose=0).history["loss"]
        weights = [weight.numpy() for weight in model.trainable_weights]
        return all(np.isfinite(x).all() for x in (*weights, losses))

    return is_right


def _row(id, trap, fixed_by, check, *args, **options):
    ours, usual = (check(package, *args) for package in (layers, keras.layers))
    return Row(id, trap, f"layers.{fixed_by}", usual, ours, **options)


ROWS = [
    formula(
        "Y01",
        "layers.GlobalAveragePooling1D with a mask that is all False",
        "layers.GlobalAveragePooling1D",
        _pooled(keras.layers, [[False, False]]),
        _pooled(layers, [[False, False]]),
        [[[[1.0], [2.0]]]],
        0.0,
        [0.0],
    ),
    formula(
        "Y02",
        "layers.GlobalAveragePooling1D of 1000 times 100 in float16, with a mask",
        "layers.GlobalAveragePooling1D",
        _pooled(keras.layers, [[True] * 1000], "float16"),
        _pooled(layers, [[True] * 1000], "float16"),
        [np.full((1, 1000, 1), 100.0)],
        100.0,
        [1e-3],
        dtype="float16",
    ),
    formula(
        "Y04",
        "layers.Masking(mask_value=nan)",
        "layers.Masking",
        _masking(keras.layers),
        _masking(layers),
        [[[[NAN], [1.0]]]],
        [[[0.0], [1.0]]],
        [[[[0.0], [1.0]]]],
    ),
    *[
        _row(id, f"layers.{name} with NaN in its padding", name, _of_nan_padding, name)
        for id, name in (("Y50a", "LSTM"), ("Y50b", "GRU"), ("Y50c", "SimpleRNN"))
    ],
    _row(
        "Y53",
        "layers.GaussianDropout and AlphaDropout with rate=1",
        "GaussianDropout",
        _drops_all,
    ),
    _row("Y54", "layers.Embedding of an id beyond the table", "Embedding", _wrong_id),
    _row(
        "Y65",
        "layers.GlobalMaxPooling1D, AveragePooling1D and MaxPooling1D with a mask",
        "GlobalMaxPooling1D",
        _pooled_under_a_mask,
    ),
    _row(
        "Y66",
        "recurrent and pooling layers on a sequence without a step",
        "LSTM",
        _without_a_step,
    ),
    _row(
        "T10",
        "fit with Embedding(mask_zero=True), GlobalAveragePooling1D and an empty text",
        "GlobalAveragePooling1D",
        _text_model,
    ),
]
