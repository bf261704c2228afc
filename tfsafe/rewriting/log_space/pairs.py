"""Combines two factored tensors and takes their larger exponential out."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas.out_of_range import weighted_exponentials as weighted
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.log_space.form import Factored, at_least, once


def both(a: Factored, b: Factored, value: Value) -> list[tf.Tensor]:
    """Builds two exponents; at most one is a constant."""
    dtype = _dtype(a, b, value)
    return [tf.convert_to_tensor(each.exponent(value), dtype) for each in (a, b)]


def _dtype(a: Factored, b: Factored, value: Value) -> tf.DType:
    return next(each.log(value).dtype for each in (a, b) if each.log is not None)


def total(a: Factored, b: Factored, sign: int, least: Build | None = None) -> Factored:
    """Factors `a + sign * b` with the larger exponent taken out, `least` at least."""
    is_nonnegative = sign > 0 and a.is_nonnegative and b.is_nonnegative
    return combined(a, b, lambda x, y: x + sign * y, is_nonnegative, least)


def combined(
    a: Factored,
    b: Factored,
    function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    is_nonnegative: bool,
    least: Build | None = None,
) -> Factored:
    """Factors a function of two tensors that a common factor can be taken out of."""

    def pairs(value: Value) -> list[tuple[tf.Tensor, tf.Tensor]]:
        dtype = _dtype(a, b, value)
        weights = [
            tf.ones([], dtype) if each.weight is None else each.weight(value)
            for each in (a, b)
        ]
        return list(zip(weights, both(a, b, value), strict=True))

    def weight(value: Value) -> tf.Tensor:
        shared = log(value)
        scaled = (weighted.weighted_exp(w, e - shared) for w, e in pairs(value))
        return function(*scaled)

    log = at_least(lambda value: weighted.shared_exponent(pairs(value)), least)
    return Factored(
        "log-of-sum",
        log,
        once(weight),
        is_nonnegative=is_nonnegative,
        has_exp=a.has_exp or b.has_exp,
    )


def either(a: Factored, b: Factored) -> Factored:
    """Factors the sum of two exponentials."""
    return Factored(
        "log-of-sum",
        once(lambda value: ops.log_add_exp(*both(a, b, value))),
        has_exp=a.has_exp or b.has_exp,
    )
