"""Where the matrix trains: Keras models of one layer, and what is called on them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tests.everywhere.faults import Fault, batch

GRAPH, XLA, EAGER = {"jit_compile": False}, {"jit_compile": True}, {"run_eagerly": True}


class Formula(keras.layers.Layer):
    """Computes the core of a fault."""

    def __init__(self, core: Callable[[Any], Any], **options: Any):
        super().__init__(**options)
        self._core = core

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(3,), initializer="ones", name="scale")

    def call(self, x):
        return self._core(x * self.scale)


class Optimizer(keras.optimizers.SGD):
    """Updates as a fault does."""

    def __init__(self, update: Callable[[Any], Any]):
        super().__init__()
        self._update = update

    def update_step(self, gradient, variable, learning_rate):
        del learning_rate
        self.assign_sub(variable, self._update(tf.convert_to_tensor(gradient)))


class Place(NamedTuple):
    """A way to run a model.

    Attributes:
      method: Name of the method that is called.
      options: Of `compile`.
      policy: Of the layer's dtype.
      is_scaled: Whether a `LossScaleOptimizer` scales the loss.
    """

    method: str = "fit"
    options: Any = GRAPH
    policy: str | None = None
    is_scaled: bool = False

    @property
    def is_training(self) -> bool:
        return self.method == "fit"


PLACES = {
    "fit": Place(),
    "fit_xla": Place(options=XLA),
    "fit_eager": Place(options=EAGER),
    "fit_three_steps_a_call": Place(options={**GRAPH, "steps_per_execution": 3}),
    "fit_three_steps_a_call_xla": Place(options={**XLA, "steps_per_execution": 3}),
    "fit_bfloat16": Place(policy="mixed_bfloat16"),
    "fit_float16": Place(policy="mixed_float16", is_scaled=True),
    "evaluate": Place("evaluate"),
    "evaluate_xla": Place("evaluate", XLA),
    "predict": Place("predict"),
    "predict_xla": Place("predict", XLA),
}


def model_of(place: Place, fault: Fault) -> keras.Model:
    """Makes a compiled model that fails on `batch(fault)`."""
    layer = Formula(fault.core, dtype=place.policy, name="formula")
    model = keras.Sequential([keras.Input((3,)), layer])
    optimizer: Any = Optimizer(fault.update)
    if place.is_scaled:
        # Above 1, a gradient that is not finite is left out, and the scale is halved.
        scaled = keras.optimizers.LossScaleOptimizer
        optimizer = scaled(optimizer, initial_scale=1.0)
    model.compile(optimizer, _loss, **place.options)
    return model


def _loss(truth, prediction):
    # A truth of 0 trains nothing, and leaves the scale at 1.
    return tf.reduce_mean(prediction, -1) * tf.cast(truth[:, 0], prediction.dtype)


def run(model: keras.Model, place: Place, fault: Fault, callbacks: Any = ()) -> None:
    """Calls the method on a bad batch after a good one, of two rows each."""
    good = batch(Fault()) + 4.0
    x = tf.concat([good, batch(fault)], 0)
    y = tf.constant([[0.0], [0.0], [1.0], [1.0]])
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(2)
    # An iterator that tunes itself and is dropped after an error is waited for, without
    # work, for as long as it existed.
    untuned = tf.data.Options()
    untuned.autotune.enabled = False
    # Keras warns of a data set that it is to shuffle.
    options = {"shuffle": False} if place.is_training else {}
    getattr(model, place.method)(
        data.with_options(untuned), verbose=0, callbacks=list(callbacks), **options
    )
