"""A tensor as a weight times an exponential, so that neither overflows."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import raw_kernel
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.differences.log_complements import log_one_minus_exp_of_exp
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import floored_log, raised
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, negated, terms

# Rules of `rules.logarithms`; the empty name is of what has no rule by itself.
LogRule = Literal[
    "",
    "log-of-softmax",
    "log-of-sigmoid",
    "log-of-complement",
    "log-of-guarded-probability",
    "log-of-exp",
    "log-of-product",
    "log-of-ratio",
    "log-of-odds",
    "log-of-power",
    "log-of-sum",
    "log-of-difference",
    "log-of-cosh",
    "log-of-erfc",
    "log-of-softplus",
    "log-of-bessel",
    "log-of-determinant",
]
# The rule for what is kept off 0.
GUARDED: LogRule = "log-of-guarded-probability"


class Factored(NamedTuple):
    """A tensor `weight * exp(log + offset)`.

    Attributes:
      name: The rule that takes a logarithm of the tensor.
      log: Builds the exponent; None for 0.
      weight: Builds the factor that is not an exponential; None for 1.
      offset: The logarithm of constant factors.
      is_nonnegative: Whether the tensor cannot be negative.
      is_partial: Whether `log` is NaN where the tensor is negative.
      is_masked: Whether the weight is 0 or 1 everywhere.
      has_exp: Whether the user took an exponential, which may overflow.
    """

    name: LogRule
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


class LogForms(Protocol):
    """What is known about the logarithms of the tensors of one graph."""

    @property
    def reader(self) -> Reader:
        """Reader of the graph."""

    def of(self, tensor: tf.Tensor) -> Factored | None:
        """Factors a tensor in which there is an exponential or a probability."""

    def complement(self, tensor: tf.Tensor) -> Factored | None:
        """Factors `1 - tensor` of such a tensor."""

    def parts(self, tensor: tf.Tensor) -> Factored:
        """Factors any tensor; one without an exponential is its own weight."""

    def plain(self, tensor: tf.Tensor) -> Factored:
        """Returns a tensor as its own weight; a positive constant as an offset."""

    def inside(self, reader: Reader, seeds: Mapping[str, Factored]) -> "LogForms":
        """Returns what is known of another graph, some of it beforehand."""


@dataclasses.dataclass(frozen=True)
class Widened:
    """Returns counterparts in a wider dtype than half precision.

    Attributes:
      value: Returns the counterparts.
      dtype: The wider dtype.
    """

    value: Value
    dtype: tf.DType

    def __call__(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the counterpart of `tensor`, wider if it is floating."""
        made = self.value(tensor)
        return tf.cast(made, self.dtype) if made.dtype.is_floating else made


def in_float32(build: Build, dtype: tf.DType) -> Build:
    """Returns what builds a tensor of half precision in float32, rounded once.

    Part of a formula in a wider dtype, it is made in that dtype and not rounded.
    """
    if dtype not in precision.HALF:
        return build

    def made(value: Value) -> tf.Tensor:
        if isinstance(value, Widened):
            return build(value)
        return tf.cast(build(Widened(value, tf.float32)), dtype)

    return made


def dtype_for(value: Value, dtype: tf.DType) -> tf.DType:
    """Returns the dtype in which a tensor of some dtype is made."""
    is_wider = isinstance(value, Widened) and dtype in precision.HALF
    return value.dtype if is_wider else dtype  # type: ignore[attr-defined]


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


def at_least(build: Build, least: Build | None, axes: Sequence[int] = ()) -> Build:
    """Returns what builds an exponent, not below another that may lack axes."""
    if least is None:
        return once(build)
    return once(lambda value: raised(build(value), least(value), axes))


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
        return applied(unchanged_values.reciprocal, b)
    return once(lambda value: unchanged_values.divide(a(value), b(value)))


def with_inputs(
    op: tf.Operation, value: Value, inputs: dict[int, tf.Tensor]
) -> tf.Tensor:
    """Builds an operation with other tensors for some of its inputs."""
    tensors = [
        inputs[i] if i in inputs else value(each) for i, each in enumerate(op.inputs)
    ]
    return raw_kernel(op)(tensors)[0]


def together(op: tf.Operation, parts: dict[int, Factored]) -> Factored | None:
    """Factors an operation that moves the elements of factored tensors."""
    found = [each for each in parts.values() if each.name]
    is_pure = all(each.is_pure for each in parts.values())
    is_partial = any(each.is_partial for each in found)
    if is_partial and not is_pure:
        return None

    def moved(value: Value, part: Callable[[Factored], tf.Tensor]) -> tf.Tensor:
        return with_inputs(op, value, {i: part(each) for i, each in parts.items()})

    def log(value: Value) -> tf.Tensor:
        if is_pure:
            return moved(value, lambda each: each.exponent(value))
        return moved(value, lambda each: each.pair(value)[1])

    def weight(value: Value) -> tf.Tensor:
        return moved(value, lambda each: each.pair(value)[0])

    return Factored(
        found[0].name,
        once(log),
        None if is_pure else once(weight),
        is_nonnegative=all(each.is_nonnegative for each in parts.values()),
        is_partial=is_partial,
        is_masked=all(each.is_pure or each.is_masked for each in parts.values()),
        has_exp=any(each.has_exp for each in found),
    )


def log_number(number: float) -> float:
    """Returns the logarithm of a constant, that of 1/2 being minus that of 2."""
    return -math.log(1 / number) if number < 1 else math.log(number)


def kept_off_zero(found: Factored | None, floor: float | None) -> Factored | None:
    """Factors a probability whose logarithm is to be finite where it is exactly 0."""
    if found is None or floor is None:
        return found

    return Factored(
        GUARDED, applied(lambda log: floored_log(log, floor), found.whole_log)
    )


def scaled(found: Factored, number: float) -> Factored:
    """Factors a tensor times a positive number."""
    return found._replace(offset=found.offset + log_number(number))


def one_minus_exp(x: tf.Tensor, logs: LogForms) -> Factored:
    """Factors `1 - exp(x)`; x may be the negative of an exponential."""
    minus = negated(logs.reader, x)
    (term, *others) = (
        [Term(-1.0, minus)] if minus is not None else terms(logs.reader, x)
    )
    a = None if others or term.factor >= 0 else logs.of(term.tensor)
    if a is not None and a.is_pure and a.has_exp and not a.is_partial:
        log = applied(log_one_minus_exp_of_exp, scaled(a, -term.factor).exponent)
        return Factored("log-of-complement", log, has_exp=True)
    return Factored(
        "log-of-complement",
        once(lambda value: ops.log1mexp(value(x))),
        is_nonnegative=False,
        is_partial=True,
        has_exp=True,
    )
