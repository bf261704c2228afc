"""Small programs that fail, each on a line that ends in a comment `# <name>`."""

import keras
import tensorflow as tf

from tfsafe.errors import Site


def line_of(mark: str) -> int:
    """Returns the number of the line marked with `# <mark>`."""
    with open(__file__, encoding="utf-8") as file:
        numbers = [
            number
            for number, line in enumerate(file, 1)
            if line.rstrip().endswith(f"  # {mark}")
        ]
    (number,) = numbers
    return number


def is_at(site: Site | None, mark: str) -> bool:
    """Returns whether a site is the marked line of this file."""
    return site is not None and (site.path, site.line) == (__file__, line_of(mark))


X = tf.constant([[1.0, 2.0, 3.0], [4.0, 0.0, 1.0]])


def forward_nan(x):
    centred = x - tf.reduce_mean(x, keepdims=True)
    return tf.sqrt(centred) * 2.0  # forward_nan


def forward_inf(x):
    doubled = x * 2.0
    return tf.math.log(doubled)  # forward_inf


def backward_nan(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        distance = tf.sqrt(x - x)  # backward_nan
        loss = tf.reduce_sum(distance)
    return tape.gradient(loss, x)


def backward_masked(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = tf.math.log(x)  # backward_masked
        loss = tf.reduce_sum(tf.where(x > 0, value, tf.zeros_like(x)))
    return tape.gradient(loss, x)


def passes_on(x):
    return x * 2.0 + 1.0


def _shrink(i, y):
    y = tf.sqrt(y - 0.5)  # in_loop
    return [i + 1, y]


def in_loop(x):
    count = tf.constant(0)
    return tf.while_loop(
        lambda i, _: i < 3, _shrink, [count, x + 0.5], maximum_iterations=3
    )[1]


def _halve(i, y):
    y = tf.sqrt(y) * 0.5  # in_loop_gradient
    return [i + 1, y]


def in_loop_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(
            lambda i, _: i < 2, _halve, [tf.constant(0), x], maximum_iterations=2
        )[1]
        loss = tf.reduce_sum(y)
    return tape.gradient(loss, x)


@tf.function(autograph=False)
def _inner(x):
    return 1.0 / x  # in_nested


def in_nested(x):
    return _inner(x) + 1.0


@tf.function(autograph=False)
def _inner_root(x):
    return tf.sqrt(x) + 1.0  # in_nested_gradient


def in_nested_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = _inner_root(x)
    return tape.gradient(y, x)


def _log(x):
    return tf.math.log(x)  # in_branch


def in_branch(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: _log(x), lambda: x)


def in_branch_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: _root(x), lambda: x * x)
    return tape.gradient(y, x)


def _root(x):
    return tf.sqrt(x) * 2.0  # in_branch_gradient


def _invert(row):
    return tf.math.reciprocal(row)  # in_map


def in_map(x):
    return tf.map_fn(_invert, x)


@tf.custom_gradient
def _cube(x):
    def gradient(upstream):
        return upstream * x / x  # in_custom_gradient

    return x**3, gradient


def in_custom_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = _cube(x)
    return tape.gradient(y, x)


@keras.saving.register_keras_serializable("tests")
class Cell(keras.layers.Layer):
    """A recurrent cell that takes the logarithm of its state."""

    state_size = output_size = 3

    def call(self, x, states):
        new = tf.math.log(x * states[0])  # in_cell
        return new, [new]


class Standardise(keras.layers.Layer):
    """Standardises each step of a sequence, as people do."""

    def call(self, x):
        mean = tf.reduce_mean(x, -1, keepdims=True)
        std = tf.math.reduce_std(x, -1, keepdims=True)
        return (x - mean) / std  # standardise


class Norm(keras.layers.Layer):
    """Has a finite value and an infinite gradient at 0."""

    def build(self, shape):
        self.scale = self.add_weight(shape=(1,), initializer="ones", name="scale")

    def call(self, x):
        return tf.sqrt(tf.reduce_sum(x * self.scale, -1, keepdims=True))  # norm
