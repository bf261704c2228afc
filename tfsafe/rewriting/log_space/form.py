"""A tensor as a weight times an exponential, so that neither overflows."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import raw_kernel
from tfsafe.rewriting.engine.rule import Build, Value

# The rule for what is kept off 0.
GUARDED = "log-of-guarded-probability"


class Factored(NamedTuple):
    """A tensor `weight * exp(log + offset)`.

    Attributes:
      name: The rule that takes a logarithm of the tensor.
      log: Builds the exponent; None stands for 0.
      weight: Builds the factor that is no exponential; None stands for 1.
      offset: The logarithm of constant factors.
      is_nonnegative: Whether the tensor cannot be negative.
      is_partial: Whether `log` is NaN where the tensor is negative.
      is_masked: Whether the weight is 0 or 1 everywhere.
      has_exp: Whether the user took an exponential, which may overflow.
    """

    name: str
    log: Build | None
    weight: Build | None = None
    offset: float = 0.0
    is_nonnegative: bool = True
    is_partial: bool = False
    is_masked: bool = False
    has_exp: bool = False

    @property
    def is_pure(self) -> bool:
        """Whether the tensor is an exponential and nothing else."""
        return self.weight is None

    def exponent(self, value: Value) -> Any:
        """Builds `log + offset`."""
        if self.log is None:
            return self.offset
        return self.log(value) + self.offset if self.offset else self.log(value)

    def whole_log(self, value: Value) -> tf.Tensor:
        """Builds the logarithm of the tensor."""
        if self.weight is None:
            return self.exponent(value)
        return ops.log(self.weight(value)) + self.exponent(value)

    def pair(self, value: Value) -> tuple[tf.Tensor, tf.Tensor]:
        """Builds the weight and the exponent, both of the shape of the tensor."""
        exponent = self.exponent(value)
        if self.weight is None:
            return tf.ones_like(exponent), exponent
        weight = self.weight(value)
        if self.log is None:
            return weight, tf.zeros_like(weight) + self.offset
        return weight * tf.ones_like(exponent), exponent + tf.zeros_like(weight)


@dataclasses.dataclass(frozen=True)
class Widened:
    """Gives twins in a wider dtype than that of half precision.

    Attributes:
      value: Gives the twins.
      dtype: The wider dtype.
    """

    value: Value
    dtype: tf.DType

    def __call__(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the twin of `tensor`, wider if it is floating."""
        twin = self.value(tensor)
        return tf.cast(twin, self.dtype) if twin.dtype.is_floating else twin


def once(build: Build) -> Build:
    """Returns `build`, run only once for each graph that is made."""
    made: dict[Value, tf.Tensor] = {}

    def remembered(value: Value) -> tf.Tensor:
        if value not in made:
            made[value] = build(value)
        return made[value]

    return remembered


def applied(function: Callable[[tf.Tensor], tf.Tensor], build: Build) -> Build:
    """Returns what builds `function` of what `build` builds."""
    return once(lambda value: function(build(value)))


def added(a: Build | None, b: Build | None) -> Build | None:
    """Returns what builds the sum of two exponents, None being 0."""
    if a is None or b is None:
        return b if a is None else a
    return once(lambda value: a(value) + b(value))


def subtracted(a: Build | None, b: Build | None) -> Build | None:
    """Returns what builds the difference of two exponents, None being 0."""
    if b is None:
        return a
    if a is None:
        return applied(tf.negative, b)
    return once(lambda value: a(value) - b(value))


def multiplied(a: Build | None, b: Build | None) -> Build | None:
    """Returns what builds the product of two weights, None being 1."""
    if a is None or b is None:
        return b if a is None else a
    return once(lambda value: a(value) * b(value))


def divided(a: Build | None, b: Build | None) -> Build | None:
    """Returns what builds the quotient of two weights, None being 1."""
    if b is None:
        return a
    if a is None:
        return applied(tf.math.reciprocal, b)
    return once(lambda value: a(value) / b(value))


def again(op: tf.Operation, value: Value, inputs: dict[int, tf.Tensor]) -> tf.Tensor:
    """Builds an operation anew, with other tensors for some of its inputs."""
    tensors = [
        inputs[i] if i in inputs else value(each) for i, each in enumerate(op.inputs)
    ]
    return raw_kernel(op)(tensors)[0]


def shared_exponent(
    pairs: Sequence[tuple[tf.Tensor, tf.Tensor]], axes: Sequence[int] | None = ()
) -> tf.Tensor:
    """Builds the largest exponent whose weight is not 0, and 0 where there is none.

    It is a constant to the gradient: what is taken out of a sum is put back in front
    of it.

    Args:
      pairs: Weights and exponents.
      axes: Axes over which one exponent is shared; they stay, with size 1.

    Returns:
      The exponent that is shared.
    """
    largest: tf.Tensor | None = None
    for weight, exponent in pairs:
        lowest = tf.constant(-math.inf, exponent.dtype)
        counted = tf.where(tf.equal(weight, 0), lowest, exponent)
        if axes != ():
            counted = tf.reduce_max(counted, axes, keepdims=True)
        largest = counted if largest is None else tf.maximum(largest, counted)
    is_finite = tf.math.is_finite(largest)
    return tf.stop_gradient(tf.where(is_finite, largest, tf.zeros_like(largest)))


def scaled(weight: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """Builds `weight * exp(exponent)`, 0 for a weight of 0 and a finite exponent."""
    exponential = ops.exp(exponent)
    is_nothing = (
        tf.equal(weight, 0) & tf.math.is_inf(exponential) & tf.math.is_finite(exponent)
    )
    return weight * tf.where(is_nothing, tf.zeros_like(exponential), exponential)


def weighed(weight: tf.Tensor, logarithm: tf.Tensor) -> tf.Tensor:
    """Builds `weight * logarithm`, 0 for a weight of 0 and an infinite logarithm."""
    return weight * bounded(logarithm, weight)


def bounded(logarithm: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Builds `logarithm` with 0 where it is infinite and the weight is 0."""
    is_nothing = tf.equal(weight, 0) & tf.math.is_inf(logarithm)
    return tf.where(is_nothing, tf.zeros_like(logarithm), logarithm)


def log_one_minus_softmax(
    x: tf.Tensor, axis: Sequence[int] | None, mask: tf.Tensor | None
) -> tf.Tensor:
    """Builds `log(1 - softmax(x))`."""
    # For the likeliest class it is the logarithm of the sum of all others: once these
    # underflow, nothing is left of them in its own probability.
    log_probs = ops.log_softmax(x, axis, mask=mask)
    largest = tf.reduce_max(log_probs, axis, keepdims=True)
    is_top = tf.equal(log_probs, largest) & (largest > -math.log(2))
    others = ops.logsumexp(log_probs, axis, keepdims=True, mask=~is_top)
    safe = tf.where(is_top, -tf.ones_like(log_probs), log_probs)
    return tf.where(is_top, others, ops.log1mexp(safe))


def log_number(number: float) -> float:
    """Returns the logarithm of a constant, that of 1/2 being minus that of 2."""
    return -math.log(1 / number) if number < 1 else math.log(number)


def kept_off_zero(found: Factored | None, floor: float | None) -> Factored | None:
    """Factors a probability whose logarithm is to be finite where it is exactly 0."""
    if found is None or floor is None:
        return found

    return Factored(GUARDED, applied(lambda log: off_zero(log, floor), found.whole_log))


def off_zero(log: tf.Tensor, floor: float | None) -> tf.Tensor:
    """Builds a logarithm with that of `floor` where it is `-inf`."""
    if floor is None:
        return log
    lowest = tf.constant(math.log(floor), log.dtype)
    return tf.where(tf.math.is_inf(log) & (log < 0), lowest, log)


def one_minus_exp(x: tf.Tensor) -> Factored:
    """Factors `1 - exp(x)`."""
    return Factored(
        "log-of-complement",
        once(lambda value: ops.log1mexp(value(x))),
        is_nonnegative=False,
        is_partial=True,
        has_exp=True,
    )


def log_one_minus_tanh(x: tf.Tensor) -> tf.Tensor:
    """Builds `log(1 - tanh(x))`."""
    # Near 0 the two terms of the form for large x cancel.
    near = ops.log1p(-ops.tanh(tf.minimum(x, 0.5)))
    far = math.log(2) + ops.log_sigmoid(-2 * tf.maximum(x, 0.5))
    return tf.where(x > 0.5, far, near)
