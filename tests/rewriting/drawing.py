"""Draws the parts of a formula, by its number."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

Function = Callable[..., tf.Tensor]
EXACT = (2e-5, 1e-9)
# A number near 1 is as exact as float16, 1e-3.
HALF = (4e-3, 1e-3)
QUOTIENTS: dict[str, Function] = {
    "a / b": lambda a, b: a / b,
    "tf.divide(a, b)": tf.divide,
    "a * (1 / b)": lambda a, b: a * (1.0 / b),
    "a * reciprocal(b)": lambda a, b: a * tf.math.reciprocal(b),
    "a * b ** -1": lambda a, b: a * b**-1.0,
}
SQUARES: dict[str, Function] = {
    "x * x": lambda x: x * x,
    "x ** 2": lambda x: x**2,
    "tf.square(x)": tf.square,
    "tf.pow(x, 2.0)": lambda x: tf.pow(x, 2.0),
}


class Drawn:
    """What is drawn for a formula, by its number."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng([seed, 17])
        self.words = [f"#{seed}"]

    def name(self, table) -> str:
        """Returns one of some names, and writes it down."""
        found = str(self.rng.choice(list(table)))
        self.words.append(found)
        return found

    def one(self, table: dict[str, Function]) -> Function:
        """Returns one of some functions, and writes its name down."""
        return table[self.name(table)]

    def number(self, *choices: float) -> float:
        """Returns one of some numbers, and writes it down."""
        return float(self.name(choices))

    def normal(self, *shape: int) -> np.ndarray:
        """Returns normal numbers."""
        return self.rng.normal(size=shape)


class Made(NamedTuple):
    """A formula before it has a text."""

    naive: Function
    exact: Function
    inputs: np.ndarray
    tolerance: tuple[float, float] = EXACT
