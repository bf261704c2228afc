"""What the facts about one tensor may ask about others."""

from typing import NamedTuple, Protocol

import numpy as np
import tensorflow as tf


class Bounds(NamedTuple):
    """No element is below `low` or above `high`, unless it is NaN."""

    low: float
    high: float


class GraphFacts(Protocol):
    """What `Reader` knows about the tensors of one graph."""

    def op(self, tensor: tf.Tensor) -> tf.Operation:
        """Returns the operation that computes `tensor`, behind its copies."""

    def value_source(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns what `tensor` has the values of, through `tf.stop_gradient` too."""

    def constant(self, tensor: tf.Tensor) -> np.ndarray | None:
        """Returns the value of a small tensor that is the same in every call."""

    def scalar(self, tensor: tf.Tensor) -> float | None:
        """Returns the number that all elements of a constant are."""

    def is_number(self, tensor: tf.Tensor, number: float) -> bool:
        """Returns whether all of `tensor` is `number`, rounded to its dtype."""

    def same(self, a: tf.Tensor, b: tf.Tensor) -> bool:
        """Returns whether two tensors are computed alike, from the same inputs."""

    def bounds(self, tensor: tf.Tensor) -> Bounds:
        """Returns numbers that no element of `tensor` lies beyond, unless it is NaN."""

    def is_nonnegative(self, tensor: tf.Tensor) -> bool:
        """Returns whether no element can be negative."""

    def is_probability(self, tensor: tf.Tensor) -> bool:
        """Returns whether no element can be below 0 or above 1."""

    def is_mask(self, tensor: tf.Tensor) -> bool:
        """Returns whether every element is 0 or 1."""

    def axes(self, tensor: tf.Tensor, rank: int | None) -> tuple[int, ...] | None:
        """Returns the constant axes of a reduction, in order, or None if unknown."""
