"""Where the matrix computes: the constructs of TensorFlow around a model's formula."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tests.everywhere.faults import Fault

Core = Callable[[Any], Any]


def plain(core: Core) -> Core:
    return core


def nested(core: Core) -> Core:
    inner = tf.function(core, autograph=False)
    return tf.function(lambda x: inner(x) * 2.0, autograph=False)


def while_loop(core: Core) -> Core:
    def run(x):
        return tf.while_loop(
            lambda i, _: i < 1,
            lambda i, y: [i + 1, core(y)],
            [tf.constant(0), x],
            maximum_iterations=1,
        )[1]

    return run


def cond(core: Core) -> Core:
    return lambda x: tf.cond(tf.size(x) > 0, lambda: core(x), lambda: x)


def map_fn(core: Core) -> Core:
    return lambda x: tf.map_fn(core, x)


def scan(core: Core) -> Core:
    return lambda x: tf.scan(lambda total, row: total + core(row), x, tf.zeros([3]))


def vectorized_map(core: Core) -> Core:
    return lambda x: tf.vectorized_map(core, x)


def recurrent_layer(core: Core) -> Core:
    layer = keras.layers.RNN(_Cell(core))
    return lambda x: layer(x[tf.newaxis])


class _Cell(keras.layers.Layer):
    state_size = output_size = 3

    def __init__(self, core: Core):
        super().__init__()
        self._core = core

    def call(self, x, states):
        new = states[0] + self._core(x)
        return new, [new]


def custom_gradient(core: Core) -> Core:
    @tf.custom_gradient
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = core(x)
        return y, lambda upstream: tape.gradient(y, x, upstream)

    return run


def recompute_grad(core: Core) -> Core:
    return tf.recompute_grad(core)


def gradient_of_gradient(core: Core) -> Core:
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = core(x)
        return y + tape.gradient(y, x)

    return run


PLACES = {
    place.__name__: place
    for place in (
        plain,
        nested,
        while_loop,
        cond,
        map_fn,
        scan,
        vectorized_map,
        recurrent_layer,
        custom_gradient,
        recompute_grad,
        gradient_of_gradient,
    )
}


class Program(tf.Module):
    """A training step of one weight, in a place, with a fault."""

    def __init__(self, place: Callable[[Core], Core], fault: Fault):
        super().__init__()
        self.weight = tf.Variable([1.0, 1.0, 1.0], name="weight")
        self._model = place(fault.core)
        self._update = fault.update

    def step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(self._model(x * self.weight))
        gradient = tape.gradient(loss, self.weight)
        self.weight.assign_sub(self._update(gradient))
        return loss
