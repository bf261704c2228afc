"""Every optimizer of the installed Keras, and a small training that starts anew."""

from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from tests.support import modes

_WRAPPERS = {"Optimizer", "LossScaleOptimizer", "MultiOptimizer"}


def _runs(optimizer: type[keras.optimizers.Optimizer]) -> bool:
    # Muon of Keras 3.12 fails on the TensorFlow backend, with or without a wrapper:
    # it asks TensorFlow's variables for their Keras path.
    weights = keras.Variable(np.ones((2, 2), "float32"))
    try:
        optimizer(learning_rate=0.1).apply([tf.ones((2, 2))], [weights])
    except AttributeError as error:
        return "has no attribute 'path'" not in str(error)
    return True


CLASSES = sorted(
    name
    for name, value in vars(keras.optimizers).items()
    if isinstance(value, type)
    and issubclass(value, keras.optimizers.Optimizer)
    and name not in _WRAPPERS
    and _runs(value)
)

# What a class does differently with its other arguments.
VARIANTS: dict[str, tuple[str, dict]] = {
    **{name: (name, {}) for name in CLASSES},
    "SGD-momentum": ("SGD", {"momentum": 0.9}),
    "SGD-nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "Adam-amsgrad": ("Adam", {"amsgrad": True}),
    "Adam-decay": ("Adam", {"weight_decay": 0.1}),
    "Adam-ema": ("Adam", {"use_ema": True, "ema_momentum": 0.5}),
    "Adam-ema-overwrite": ("Adam", {"use_ema": True, "ema_overwrite_frequency": 2}),
    "Adam-accumulation": ("Adam", {"gradient_accumulation_steps": 2}),
    "Adam-clipnorm": ("Adam", {"clipnorm": 0.5}),
    "Adam-clipvalue": ("Adam", {"clipvalue": 0.5}),
    "Adam-global-clipnorm": ("Adam", {"global_clipnorm": 0.5}),
    "RMSprop-centered": ("RMSprop", {"centered": True, "momentum": 0.9}),
}

# Each class, and the three whose arguments change what a bad gradient does to them: 17
# with Keras 3.15.
SEVENTEEN = [*CLASSES, "SGD-momentum", "Adam-amsgrad", "RMSprop-centered"]


def make(variant: str) -> keras.optimizers.Optimizer:
    name, arguments = VARIANTS[variant]
    return getattr(keras.optimizers, name)(learning_rate=0.1, **arguments)


Gradients = tuple[np.ndarray, np.ndarray]


def clean_gradients(count: int, seed: int = 0) -> list[Gradients]:
    rng = np.random.default_rng(seed)
    return [
        (
            rng.normal(size=(3, 2)).astype("float32"),
            rng.normal(size=2).astype("float32"),
        )
        for _ in range(count)
    ]


def spoiled(gradients: Gradients, value: float) -> Gradients:
    """Returns the gradients with `value` in one element of the first."""
    kernel, bias = gradients
    kernel = kernel.copy()
    kernel[1, 0] = value
    return kernel, bias


class Training:
    """A matrix and a vector under an optimizer; every run begins at the same state."""

    def __init__(self, optimizer: keras.optimizers.Optimizer, mode: str):
        self.optimizer = optimizer
        self.variables = [
            keras.Variable(np.linspace(-1, 1, 6, dtype="float32").reshape(3, 2)),
            keras.Variable(np.ones(2, "float32")),
        ]
        optimizer.build(self.variables)
        self._step: Callable = modes.compile_for(
            mode, lambda *grads: optimizer.apply(list(grads), self.variables)
        )
        self._resettable = self.variables + optimizer.variables
        self._start = [variable.numpy() for variable in self._resettable]

    def run(self, gradients: Sequence[Gradients]) -> list[np.ndarray]:
        """Returns weights and inner optimizer's variables after these steps."""
        for variable, value in zip(self._resettable, self._start, strict=True):
            variable.assign(value)
        for step in gradients:
            self._step(*map(tf.constant, step))
        inner = getattr(self.optimizer, "inner_optimizer", self.optimizer)
        return [variable.numpy() for variable in self.variables + inner.variables]


class Descent:
    """A noisy descent into a bowl, in one call for all of its steps."""

    def __init__(self, optimizer: keras.optimizers.Optimizer, mode: str):
        self.optimizer = optimizer
        self.weights = keras.Variable(np.zeros((3, 2), "float32"))
        self._target = tf.constant([[1.0, -2.0], [0.5, 3.0], [-1.0, 2.0]])
        optimizer.build([self.weights])
        self._run = modes.compile_for(mode, self._loop)

    def loss(self) -> float:
        return float(tf.reduce_sum((self.weights.value - self._target) ** 2))

    def run(self, noise: np.ndarray, spoilt: np.ndarray) -> list[np.ndarray]:
        """Takes one step for each `noise`; `spoilt` replaces the gradient if not 0."""
        self._run(tf.constant(noise), tf.constant(spoilt))
        inner = getattr(self.optimizer, "inner_optimizer", self.optimizer)
        return [variable.numpy() for variable in [self.weights, *inner.variables]]

    def _loop(self, noise: tf.Tensor, spoilt: tf.Tensor) -> None:
        def step(index: tf.Tensor) -> tf.Tensor:
            gradient = self.weights.value - self._target + noise[index]
            gradient = tf.where(spoilt[index] == 0, gradient, spoilt[index])
            self.optimizer.apply([gradient], [self.weights])
            return index + 1

        count = noise.shape[0]
        tf.while_loop(lambda index: index < count, step, [tf.constant(0)])


def same_bits(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> bool:
    """Returns whether the arrays are equal one by one, the sign of 0 included."""
    pairs = zip(first, second, strict=True)
    return all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


def all_finite(arrays: Sequence[np.ndarray]) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays)


def small_model(optimizer, **compile_arguments) -> keras.Model:
    """Returns a compiled model that starts the same every time."""
    model = keras.Sequential([
        keras.Input((2,)),
        keras.layers.Dense(3, "tanh"),
        keras.layers.Dense(1),
    ])
    shapes = [weight.shape for weight in model.get_weights()]
    model.set_weights([
        np.linspace(-0.5, 0.7, int(np.prod(shape)), dtype="float32").reshape(shape)
        for shape in shapes
    ])
    model.compile(optimizer, "mse", **compile_arguments)
    return model


def small_data(bad_batches: Sequence[int] = (), count: int = 6):
    """Returns `x` and `y` of `count` batches of 4, with a NaN in each bad one."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4 * count, 2)).astype("float32")
    for batch in bad_batches:
        x[4 * batch + 1, 0] = np.nan
    return x, rng.normal(size=(4 * count, 1)).astype("float32")


def fit(model: keras.Model, x, y, **arguments):
    return model.fit(x, y, batch_size=4, shuffle=False, verbose=0, **arguments)
