"""Five ways in which real models fail, each found, explained and fixed.

Each story is a small model as people write it. It runs under a check, which prints
what it finds; then the example uses the suggested line, and the training continues.

    python examples/find_the_nan.py
    python examples/find_the_nan.py --only 3
"""

import argparse
import io
import warnings

import keras
import numpy as np
import tensorflow as tf

import tfsafe

EPOCHS = 3


# 1. The data --------------------------------------------------------------------------

CSV = "age,income,bought\n" + "\n".join(
    f"{20 + row % 50},{'n/a' if row == 187 else 1000 + 37 * (row % 90)},{row % 2}"
    for row in range(256)
)


def read(**options):
    """Returns inputs and labels out of a file, as `np.genfromtxt` reads them."""
    table = np.genfromtxt(io.StringIO(CSV), delimiter=",", **options)
    return table[:, :2] / [50, 4000], table[:, 2]


def classifier():
    model = keras.Sequential([
        keras.Input((2,)),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dense(1),
    ])
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    return model


def data():
    """A file whose header is read as a row, and one cell that is empty."""
    x, y = read()
    monitor = tfsafe.callbacks.NumericsMonitor()
    print("`fit` with a NumericsMonitor stops at the first non-finite batch:\n")
    found(lambda: classifier().fit(x, y, verbose=0, shuffle=False, callbacks=[monitor]))

    print("\n`check_finite` looks at all the data at once:\n")
    print(tfsafe.data.check_finite((x, y), policy="report"))

    print("\nWith `skip_header=1`, and without the row that is left:")
    x, y = read(skip_header=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, y = tfsafe.data.check_finite((x, y), policy="drop")
    train(classifier(), x, y)


# 2. The loss --------------------------------------------------------------------------


def cross_entropy(y_true, y_pred):
    """The formula of the textbook."""
    return -tf.reduce_sum(y_true * tf.math.log(y_pred), axis=-1)


def images():
    """Returns dark and bright images, with pixels from 0 to 255 and a black corner."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 512)
    x = random.integers(0, 128, (512, 32)) + 127 * labels[:, np.newaxis]
    x[:, 0] = 0
    return x.astype("float32"), keras.utils.to_categorical(labels, 2)


def softmax_model(loss):
    model = keras.Sequential([
        keras.Input((32,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(2, activation="softmax"),
    ])
    model.compile(keras.optimizers.Adam(0.03), loss)
    return model


def loss():
    """A cross-entropy by hand: 0 * log(0) as soon as the model is sure."""
    x, y = images()
    monitor = tfsafe.callbacks.NumericsMonitor()
    model = softmax_model(cross_entropy)
    found(lambda: model.fit(x, y, epochs=EPOCHS, verbose=0, callbacks=[monitor]))

    print("\nWith `tfsafe.losses.StableCrossEntropy` in its place:")
    train(softmax_model(tfsafe.losses.StableCrossEntropy()), x, y, epochs=10)


# 3. The backward pass -----------------------------------------------------------------


def standardized(h):
    """A small epsilon against a deviation of 0, as one finds it in many a script."""
    mean = tf.reduce_mean(h, axis=0)
    return (h - mean) / (tf.math.reduce_std(h, axis=0) + 1e-6)


def safely_standardized(h):
    mean = tf.reduce_mean(h, axis=0)
    return (h - mean) / (tfsafe.ops.std(h, axis=0) + 1e-6)


def make_step(standardize):
    """Returns a training step, compiled by XLA: a weight for each pixel, and a sum."""
    importance = keras.Variable(np.ones(32, "float32"))
    output = keras.layers.Dense(1)
    output.build((None, 32))
    weights = [importance, *output.trainable_variables]
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(weights)

    @tf.function(jit_compile=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            logits = output(standardize(x * importance.value))
            loss = tf.reduce_mean(tf.square(logits - y))
        gradients = tape.gradient(loss, [each.value for each in weights])
        optimizer.apply(gradients, weights)
        return loss

    return step


def backward():
    """The loss is finite, and the gradient of a standard deviation of 0 is not.

    The pixel in the corner is black in every image.
    """
    x, y = images()
    y = y[:, :1].astype("float32")
    step = tfsafe.checked(make_step(standardized))
    found(lambda: step(x, y))

    print("\nWith `tfsafe.ops.std` in its place:")
    step = tfsafe.checked(make_step(safely_standardized))
    losses = [float(step(x, y)) for _ in range(20)]
    print(f"loss {losses[0]:.3g} -> {losses[-1]:.3g}")


# 4. Half precision --------------------------------------------------------------------


class Attention(keras.layers.Layer):
    """Attention of each step to all others, in float16."""

    def __init__(self, softmax):
        super().__init__(dtype="float16")
        self.softmax = softmax
        self.query, self.key, self.value = (
            keras.layers.Dense(16, dtype="float16") for _ in range(3)
        )

    def call(self, x):
        scores = tf.matmul(self.query(x), self.key(x), transpose_b=True)
        return tf.matmul(self.softmax(scores), self.value(x))

    def compute_output_shape(self, shape):
        return (*shape[:-1], 16)


def softmax_by_hand(scores):
    weights = tf.exp(scores)
    return weights / tf.reduce_sum(weights, axis=-1, keepdims=True)


def attention_model(softmax):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((12, 8)),
        Attention(softmax),
        keras.layers.GlobalAveragePooling1D(dtype="float32"),
        keras.layers.Dense(1, dtype="float32"),
    ])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model


def half():
    """An `exp` that overflows float16 above 11.09."""
    random = np.random.default_rng(0)
    x = 2.0 * random.normal(size=(256, 12, 8)).astype("float32")
    y = x.mean(axis=(1, 2))
    with tfsafe.debugging.check_numerics():
        model = attention_model(softmax_by_hand)
        found(lambda: model.fit(x, y, verbose=0))

    print("\nWith `tfsafe.ops.softmax` in its place:")
    train(attention_model(tfsafe.ops.softmax), x, y)


# 5. The update ------------------------------------------------------------------------


def recurrent_model(optimizer):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([
        keras.Input((100, 1)),
        keras.layers.SimpleRNN(
            16,
            activation="linear",
            recurrent_initializer=keras.initializers.Orthogonal(gain=1.6),
        ),
        keras.layers.Dense(1),
    ])
    model.compile(optimizer, "mae")
    return model


def update():
    """Gradients that explode over 100 steps; Adam squares them to infinity.

    The model itself is still finite: its loss and its weights are.
    The second moment is not, and from then on these weights never move again.
    """
    random = np.random.default_rng(0)
    x = random.normal(size=(256, 100, 1)).astype("float32")
    y = x[:, -1]
    monitor = tfsafe.callbacks.NumericsMonitor()
    model = recurrent_model(keras.optimizers.Adam(0.01))
    found(lambda: model.fit(x, y, verbose=0, callbacks=[monitor]))

    print("\nWith the optimizer wrapped, and the gradients clipped before it:")
    wrapped = tfsafe.optimizers.SafeOptimizer(
        keras.optimizers.Adam(0.01), global_clipnorm=1.0
    )
    train(recurrent_model(wrapped), x, y, epochs=20)


# --------------------------------------------------------------------------------------


def found(run):
    """Runs what fails, and prints what the check says."""
    try:
        run()
    except tfsafe.NumericsError as error:
        print(f"NumericsError: {error.explain()}")
    else:
        raise AssertionError("The checks found nothing.")


def train(model, x, y, epochs=EPOCHS):
    """Trains under the same check, and prints the loss."""
    monitor = tfsafe.callbacks.NumericsMonitor()
    history = model.fit(x, y, epochs=epochs, verbose=0, callbacks=[monitor]).history
    finite = all(np.isfinite(weight).all() for weight in model.get_weights())
    print(
        f"loss {history['loss'][0]:.3g} -> {history['loss'][-1]:.3g}, "
        f"weights {'finite' if finite else 'NaN'}"
    )


STORIES = [data, loss, backward, half, update]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    numbers = range(1, len(STORIES) + 1)
    parser.add_argument("--only", type=int, choices=numbers, nargs="+", default=numbers)
    for number in parser.parse_args().only:
        story = STORIES[number - 1]
        keras.utils.set_random_seed(0)
        print(f"\n=== {number}. {story.__doc__.splitlines()[0][:-1]} ===\n")
        story()


if __name__ == "__main__":
    main()
