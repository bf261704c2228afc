"""Builds the models that are timed, each with a batch of noise, and training steps."""

import keras
import tensorflow as tf

from benchmarks import _sizes


def _mlp():
    hidden = [keras.layers.Dense(units, "relu") for units in _sizes.HIDDEN]
    return _chain(_sizes.SHAPES["MLP"][1:], *hidden)


def _lstm():
    return _chain(_sizes.SHAPES["LSTM"][1:], keras.layers.LSTM(_sizes.UNITS))


def _convnet():
    return _chain(
        (28, 28, 1),
        keras.layers.Conv2D(16, 3),
        keras.layers.BatchNormalization(),
        keras.layers.ReLU(),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(64, "relu"),
    )


def _transformer(width=64, heads=4, depth=2, rate=0.1):
    inputs = x = keras.Input((64, width))
    for _ in range(depth):
        attention = keras.layers.MultiHeadAttention(
            heads, width // heads, dropout=rate
        )(x, x)
        dropped = keras.layers.Dropout(rate)(attention)
        x = keras.layers.LayerNormalization()(x + dropped)
        hidden = keras.layers.Dense(4 * width, "relu")(x)
        dropped = keras.layers.Dropout(rate)(keras.layers.Dense(width)(hidden))
        x = keras.layers.LayerNormalization()(x + dropped)
    return keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(x))


def _chain(shape, *layers):
    return keras.Sequential([keras.Input(shape), *layers])


# The body that comes before the last layer, and the rows of a batch.
BODIES = {
    "MLP": (_mlp, _sizes.SHAPES["MLP"][0]),
    "LSTM": (_lstm, _sizes.SHAPES["LSTM"][0]),
    "convnet": (_convnet, 32),
    "transformer": (_transformer, 16),
}


def make(name, outputs=_sizes.CLASSES):
    """Returns a model with a linear last layer, a batch for it, and its labels."""
    body, rows = BODIES[name]
    body = body()
    model = keras.Model(body.inputs, keras.layers.Dense(outputs)(body.outputs[0]))
    return model, *_sizes.batch((rows, *body.input_shape[1:]))


def repeated(x, y):
    """Returns a pipeline that gives one batch without end.

    It is not tuned: TensorFlow would wait for the thread that does this wherever the
    pipeline ends, mostly for a multiple of 10 ms.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return tf.data.Dataset.from_tensors((x, y)).repeat().with_options(options)


def train_step(model, *, optimizer=None, loss=None, compiled=None):
    """Returns a `tf.function` that runs one training step, from batch to weights."""
    optimizer = optimizer or keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss = loss or keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(jit_compile=compiled, autograph=False)
    def step(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
            scaled = optimizer.scale_loss(value)
        gradients = tape.gradient(scaled, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return value

    return step
