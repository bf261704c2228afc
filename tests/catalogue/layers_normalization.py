"""Normalising layers, and what divides by a norm."""

import warnings

import keras
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import FINITE, Row, formula
from tests.support import modes
from tests.support.oracle import ulp_error
from tfsafe import layers, ops, regularizers

_LARGE_MEAN = np.array([[1e4, 1e4 + 0.01, 1e4 + 0.02, 1e4 + 0.03]], "float32")
_CENTRED = _LARGE_MEAN.astype("float64") - _LARGE_MEAN.astype("float64").mean()
_STANDARD = _CENTRED / np.sqrt((_CENTRED**2).mean() + 1e-6)


def _built(layer, shape, **options):
    layer.build(shape)
    return lambda x: layer(x, **options)


def _layer_normalization(package):
    return _built(package.LayerNormalization(epsilon=1e-6), (1, 4))


def _group_normalization(package):
    return _built(package.GroupNormalization(groups=1, epsilon=1e-6), (1, 4))


def _batch_normalization(package):
    return _built(package.BatchNormalization(epsilon=1e-6), (4, 1), training=True)


def _rms_scaling(package):
    with warnings.catch_warnings():
        # Keras 3.15 warns that it divides by something else.
        warnings.simplefilter("ignore")
        return _built(
            package.LayerNormalization(rms_scaling=True, epsilon=1e-6), (1, 3)
        )


def _unit_normalization(package, dtype):
    layer = package.UnitNormalization(dtype=dtype)
    return lambda x: layer(x) * tf.constant([1.0, 0.0], dtype)


def _cosine(package):
    layer = package.Dot(axes=1, normalize=True)
    return lambda x: layer([x, tf.constant([[1.0, 0.0]])])


def _recovers_from_one_bad_batch(package):
    def is_right(mode):
        clean = np.random.default_rng(0).normal(size=(8, 2)).astype("float32")
        for bad in (np.nan, np.inf):
            layer = package.BatchNormalization(momentum=0.5)
            layer.build((8, 2))
            train = modes.compile_for(
                mode, lambda x, layer=layer: layer(x, training=True)
            )
            train(tf.constant(clean))
            before = layer.moving_mean.numpy(), layer.moving_variance.numpy()
            train(tf.constant(np.where(clean == clean[0, 0], bad, clean)))
            after = layer.moving_mean.numpy(), layer.moving_variance.numpy()
            if not all(map(np.array_equal, before, after)):
                return False
            if not np.isfinite(layer(tf.constant(clean), training=False)).all():
                return False
        return True

    return is_right


def _ignores_a_masked_batch(package):
    def is_right(mode):
        layer = package.BatchNormalization(momentum=0.5)
        layer.build((2, 4, 3))
        x = tf.constant(np.random.default_rng(0).normal(10, 3, (2, 4, 3)), tf.float32)
        train = modes.compile_for(
            mode, lambda x, mask: layer(x, training=True, mask=mask)
        )
        train(x, tf.fill([2, 4], True))
        before = layer.moving_mean.numpy()
        outputs = train(x, tf.fill([2, 4], False))
        unchanged = np.array_equal(before, layer.moving_mean.numpy())
        return unchanged and np.abs(outputs).max() < 100

    return is_right


def _normalizes_a_tiny_kernel(package):
    def is_right(mode):
        tiny = keras.initializers.Constant(1e-25)
        layer = package.SpectralNormalization(
            keras.layers.Dense(2, kernel_initializer=tiny)
        )
        layer.build((1, 2))
        call = modes.compile_for(mode, lambda x: layer(x, training=True))
        call(tf.ones([1, 2]))
        return ulp_error(call(tf.ones([1, 2])), np.ones([1, 2])) <= 4

    return is_right


def _differentiates_the_spectral_norm(package):
    x = np.array([[1.0, 2.0]])

    def quotient(kernel):
        return (x @ (kernel / np.linalg.norm(kernel, 2))).sum()

    def is_right(mode):
        dense = keras.layers.Dense(2, use_bias=False)
        layer = package.SpectralNormalization(dense, power_iterations=30)
        layer.build((1, 2))
        kernel = np.array([[0.3, -0.5], [0.9, -0.4]])
        dense.kernel.assign(kernel)

        def slope():
            with tf.GradientTape() as tape:
                value = tf.reduce_sum(layer(tf.constant(x, tf.float32), training=True))
            return tape.gradient(value, dense.kernel.value)

        got = modes.compile_for(mode, slope)()
        kernel = dense.kernel.numpy().astype("float64")
        step = 1e-6 * np.eye(4).reshape(4, 2, 2)
        true = [quotient(kernel + d) - quotient(kernel - d) for d in step]
        return ulp_error(tf.reshape(got, [4]), np.array(true) / 2e-6) <= 4

    return is_right


def _slope(f):
    """Returns the derivative of the first result in the first argument."""

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reshape(f(x), [-1])[0]
        return tf.reshape(tape.gradient(y, x), [-1])[0]

    return first


def _second_gradient(id, name, shape, **options):
    """Returns the row of a layer whose variance stops the gradient of its mean."""
    call = {"training": True} if name == "BatchNormalization" else {}

    def slope(package):
        layer = getattr(package, name)(epsilon=1.0, **options)
        return _slope(_built(layer, shape, **call))

    # y = d / sqrt(d ** 2 + 1) of d = (a - b) / 2, here 1.
    second = -0.75 * 2**-2.5
    return formula(
        id,
        f"the second gradient of `{name}`, as in a gradient penalty",
        f"layers.{name}",
        slope(keras.layers),
        slope(layers),
        [np.reshape([3.0, 1.0], shape)],
        0.5 * 2**-1.5,
        [np.reshape([second, -second], shape)],
    )


ROWS = [
    _second_gradient("Y67", "LayerNormalization", (1, 2)),
    _second_gradient("Y68", "GroupNormalization", (1, 2), groups=1),
    _second_gradient("Y69", "BatchNormalization", (2, 1)),
    formula(
        "Y70",
        "the second gradient of the variance of `tf.nn.moments`",
        "ops.moments",
        _slope(lambda x: tf.nn.moments(x, [0])[1]),
        _slope(lambda x: ops.moments(x, [0])[1]),
        [[1.0, 2.0, 3.0]],
        -2 / 3,
        [[4 / 9, -2 / 9, -2 / 9]],
    ),
    formula(
        "Y20",
        "`LayerNormalization` of 1e4 + [0, 0.01, 0.02, 0.03]",
        "layers.LayerNormalization",
        _layer_normalization(keras.layers),
        _layer_normalization(layers),
        [_LARGE_MEAN],
        _STANDARD,
        [FINITE],
    ),
    formula(
        "Y22",
        "`GroupNormalization` of 1e4 + [0, 0.01, 0.02, 0.03]",
        "layers.GroupNormalization",
        _group_normalization(keras.layers),
        _group_normalization(layers),
        [_LARGE_MEAN],
        _STANDARD,
        [FINITE],
    ),
    formula(
        "Y23",
        "`BatchNormalization` in training, of 1e4 + [0, 0.01, 0.02, 0.03]",
        "layers.BatchNormalization",
        _batch_normalization(keras.layers),
        _batch_normalization(layers),
        [_LARGE_MEAN.T],
        _STANDARD.T,
        [FINITE],
    ),
    formula(
        "Y26",
        "`LayerNormalization(rms_scaling=True)` of [5, 5, 5]",
        "layers.LayerNormalization",
        _rms_scaling(keras.layers),
        _rms_scaling(layers),
        [[[5.0, 5.0, 5.0]]],
        5 / np.sqrt(25 + 1e-6),
        [FINITE],
    ),
    formula(
        "Y29",
        "`UnitNormalization` of a row of zeros",
        "layers.UnitNormalization",
        _unit_normalization(keras.layers, "float32"),
        _unit_normalization(layers, "float32"),
        [[[0.0, 0.0]]],
        0,
        [0],
    ),
    formula(
        "Y30",
        "`UnitNormalization` of a row of zeros in float16",
        "layers.UnitNormalization",
        _unit_normalization(keras.layers, "float16"),
        _unit_normalization(layers, "float16"),
        [[[0.0, 0.0]]],
        0,
        [0],
        dtype="float16",
    ),
    formula(
        "Y31",
        "`Dot(normalize=True)` with a vector of zeros",
        "layers.Dot",
        _cosine(keras.layers),
        _cosine(layers),
        [[[0.0, 0.0]]],
        0,
        [0],
    ),
    formula(
        "Y33",
        "`OrthogonalRegularizer` of a kernel with a row of zeros",
        "regularizers.OrthogonalRegularizer",
        keras.regularizers.OrthogonalRegularizer(0.1),
        regularizers.OrthogonalRegularizer(0.1),
        [[[0.0, 0.0], [1.0, 0.0]]],
        0,
        [FINITE],
        fails_in=["xla"],
    ),
    formula(
        "Y34",
        "`keras.ops.normalize` of zeros, as in the power iteration",
        "ops.l2_normalize",
        lambda x: keras.ops.normalize(x, axis=None),
        lambda x: ops.l2_normalize(x, axis=None),
        [[[0.0, 0.0]]],
        0,
        [0],
    ),
    Row(
        "Y57",
        "one NaN in one batch of `BatchNormalization`, then inference",
        "layers.BatchNormalization",
        _recovers_from_one_bad_batch(keras.layers),
        _recovers_from_one_bad_batch(layers),
    ),
    Row(
        "Y58",
        "`BatchNormalization` of a batch that is masked as a whole",
        "layers.BatchNormalization",
        _ignores_a_masked_batch(keras.layers),
        _ignores_a_masked_batch(layers),
    ),
    formula(
        "Y59",
        "the variance of `keras.ops.moments` of [0, 2000] in bfloat16",
        "ops.moments",
        lambda x: keras.ops.moments(x, [0])[1],
        lambda x: ops.moments(x, [0])[1],
        [[0.0, 2e3]],
        1e6,
        [FINITE],
        dtype="bfloat16",
    ),
    Row(
        "Y60",
        "`SpectralNormalization` of a kernel of 1e-25",
        "layers.SpectralNormalization",
        _normalizes_a_tiny_kernel(keras.layers),
        _normalizes_a_tiny_kernel(layers),
    ),
    Row(
        "Y61",
        "the gradient in the kernel of a `SpectralNormalization`",
        "layers.SpectralNormalization",
        _differentiates_the_spectral_norm(keras.layers),
        _differentiates_the_spectral_norm(layers),
    ),
]

# Keras 3.3 does not have the layer.
if hasattr(keras.layers, "RMSNormalization"):
    ROWS.append(
        formula(
            "Y27",
            "`RMSNormalization` of [1e20, 1e20]",
            "layers.RMSNormalization",
            _built(keras.layers.RMSNormalization(), (1, 2)),
            _built(layers.RMSNormalization(), (1, 2)),
            [[[1e20, 1e20]]],
            1,
            [FINITE],
        )
    )
