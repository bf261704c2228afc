"""Follows what a formula changes by while one of its arguments takes a step.

`Change` is a tensor at the start of the step, its change, and the change over the step:
its divided difference. That of a formula is made of those of its operations, none of
which cancels, so that `f(x) / x` is right through `x = 0` for any f with `f(0) = 0`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe._limits import LIMITS
from tfsafe.ops.formulas.differences.divided_differences import (
    DIVIDED_DIFFERENCES,
    DividedDifference,
)
from tfsafe.ops.formulas.limits.removable import expm1_over_x

_Function = Callable[[tf.Tensor], tf.Tensor]
Form = Callable[[_Function], tf.Tensor]
# Where to use a form, and the form.
Case = tuple[tf.Tensor, Form]
# A formula is 0 at the start if it is below so many units in the last place.
_ULPS = 32
_LOGARITHMS = DIVIDED_DIFFERENCES["Log"], DIVIDED_DIFFERENCES["Log1p"]


class Change(NamedTuple):
    """A tensor while an argument takes a step.

    Attributes:
      start: The tensor before the step.
      change: What it changes by.
      slope: The change over the step; the derivative where the step is 0.
      near: Where these are right.
      size: Of the terms that `start` is the sum of.
    """

    start: tf.Tensor
    change: tf.Tensor
    slope: tf.Tensor
    near: tf.Tensor
    size: tf.Tensor

    def kept(self, near: tf.Tensor) -> "Change":
        """Returns the same, or 1 and no change where it is not near."""
        one = tf.ones([], self.start.dtype)
        start = tf.where(near, self.start, one)
        change, slope = (tf.where(near, x, 0 * one) for x in self[1:3])
        return Change(start, change, slope, near, self.size)

    def reshaped(self, old: tf.Tensor, new: tf.Tensor) -> "Change":
        """Returns the tensor of some shape in another one."""
        return Change(*(tf.reshape(tf.broadcast_to(x, old), new) for x in self))

    def reduced(
        self, mean: bool, axes: Sequence[int], keepdims: bool, shape: tf.Tensor
    ) -> "Change":
        """Returns the sum or mean over axes of a tensor of some shape."""
        reduce = tf.reduce_mean if mean else tf.reduce_sum
        whole = [tf.broadcast_to(x, shape) for x in self]
        near = tf.reduce_all(whole.pop(3), axes, keepdims=keepdims)
        start, change, slope, size = (reduce(x, axes, keepdims=keepdims) for x in whole)
        return Change(start, change, slope, near, size)


def of_argument(x: tf.Tensor, start: float) -> Change:
    """Returns the argument that takes the step, from a number."""
    one = tf.ones_like(x)
    near = tf.ones_like(x, tf.bool)
    return Change(start * one, x - start, one, near, abs(start) * one)


def fixed(x: tf.Tensor) -> Change:
    """Returns a tensor that does not change."""
    nothing = tf.zeros([], x.dtype)
    return Change(x, nothing, nothing, tf.constant(True), tf.abs(x))


def _both(a: Change, b: Change) -> tuple[Change, Change]:
    near = a.near & b.near
    return a.kept(near), b.kept(near)


def added(first: Change, *others: Change) -> Change:
    """Returns a sum."""
    whole = first
    for each in others:
        a, b = _both(whole, each)
        whole = Change(
            a.start + b.start,
            a.change + b.change,
            a.slope + b.slope,
            a.near,
            a.size + b.size,
        )
    return whole


def scaled(a: Change, factor: float) -> Change:
    """Returns a number times a tensor."""
    start, change, slope = (factor * x for x in a[:3])
    return Change(start, change, slope, a.near, abs(factor) * a.size)


def product(a: Change, b: Change) -> Change:
    """Returns a product."""
    a, b = _both(a, b)
    end = a.start + a.change
    change, slope = (x * b.start + end * y for x, y in zip(a[1:3], b[1:3], strict=True))
    return Change(a.start * b.start, change, slope, a.near, a.size * b.size)


def quotient(a: Change, b: Change) -> Change:
    """Returns a quotient."""
    near = a.near & b.near & (tf.abs(b.change) < 0.5 * tf.abs(b.start))
    a, b = a.kept(near), b.kept(near)
    first, end = a.start / b.start, b.start + b.change
    change, slope = ((x - first * y) / end for x, y in zip(a[1:3], b[1:3], strict=True))
    return Change(first, change, slope, near, a.size / tf.abs(b.start))


def function(
    divided: DividedDifference, apply: _Function, x: Change, order: tf.Tensor
) -> Change:
    """Returns a function that has a divided difference; of a power of some order."""
    near = x.near & divided.is_near(x.start, x.change, order)
    over = divided.at(near, x.start, x.change, order)
    start = apply(tf.where(near, x.start, tf.constant(divided.neutral, over.dtype)))
    x = x.kept(near)
    # The logarithm of what rounds to 1 is 0 but for that.
    size = tf.maximum(tf.abs(start), tf.ones([], over.dtype))
    size = size if divided in _LOGARITHMS else tf.abs(start)
    return Change(start, over * x.change, over * x.slope, near, size)


def exponential(x: Change) -> Change:
    """Returns `exp(x)`."""
    one = tf.ones([], x.start.dtype)
    return function(DIVIDED_DIFFERENCES["Exp"], tf.exp, x, one)


def logarithm(x: Change) -> Change:
    """Returns `log(x)`."""
    one = tf.ones([], x.start.dtype)
    return function(DIVIDED_DIFFERENCES["Log"], tf.math.log, x, one)


def power_of_fixed(base: tf.Tensor, order: Change) -> Change:
    """Returns `base ** order`, base being fixed; 0 to an order above 0 stays 0."""
    end = order.start + order.change
    is_nothing = tf.equal(base, 0) & (order.start > 0) & (end > 0)
    inside = tf.where(base > 0, base, tf.ones_like(base))
    log = tf.math.log(inside)
    is_near = DIVIDED_DIFFERENCES["Exp"].is_near
    is_near = (base > 0) & is_near(order.start * log, order.change * log, log)
    near = order.near & (is_nothing | is_near)
    order = order.kept(near)
    log = tf.where(near, log, tf.zeros_like(log))
    start = tf.pow(tf.where(near, inside, tf.ones_like(base)), order.start)
    start = tf.where(is_nothing, tf.zeros_like(start), start)
    over = start * log * expm1_over_x(order.change * log)
    return Change(start, over * order.change, over * order.slope, near, start)


def log_sum_exp(
    x: Change, axes: Sequence[int], keepdims: bool, shape: tf.Tensor
) -> Change:
    """Returns `log(sum(exp(x)))`, with the largest exponent taken out."""
    start = tf.broadcast_to(x.start, shape)
    largest = tf.stop_gradient(tf.reduce_max(start, axes, keepdims=True))
    largest = tf.where(tf.math.is_finite(largest), largest, tf.zeros_like(largest))
    shifted = exponential(x._replace(start=start - largest))
    found = logarithm(shifted.reduced(False, axes, keepdims, shape))
    if not keepdims:
        largest = tf.squeeze(largest, axes)
    return found._replace(start=found.start + largest)


def limit(
    whole: Change, factor: float, divisor: tf.Tensor, moved: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns where a formula is 0 before the step, and the formula over a divisor.

    Args:
      whole: The formula.
      factor: Of the step, in the divisor.
      divisor: `factor` times the step.
      moved: 0 with the gradients of `whole.start`: other arguments may move it.

    Returns:
      The condition and the quotient there.
    """
    least = _ULPS * LIMITS[whole.start.dtype.name].eps
    is_nothing = tf.abs(whole.start) <= least * whole.size
    near = whole.near & is_nothing & tf.math.is_finite(whole.slope)
    is_step = near & tf.not_equal(divisor, 0)
    divisor = tf.where(is_step, divisor, tf.ones_like(divisor))
    return near, whole.slope / factor + tf.where(is_step, moved, 0 * moved) / divisor


def nearest(cases: Sequence[Case], steps: Sequence[tf.Tensor]) -> list[Case]:
    """Returns cases that give way where one with a shorter step holds."""
    nearer = []
    for (near, form), step in zip(cases, steps, strict=True):
        holds = near
        for (other, _), least in zip(cases, steps, strict=True):
            holds &= tf.logical_not(other) | (step <= least)
        nearer.append((holds, form))
    return nearer


def selected(cases: Sequence[Case], otherwise: Form) -> tf.Tensor:
    """Selects between forms: that of the last case that holds.

    Args:
      cases: Conditions, and what to use where they hold.
      otherwise: What to use elsewhere.

    Returns:
      The values. Each form is a function of what keeps a tensor where it is used and
      is 1 elsewhere, for its divisors.
    """

    def keeping(condition: tf.Tensor) -> _Function:
        return lambda x: tf.where(condition, x, tf.ones([], x.dtype))

    conditions = [near for near, _ in cases]
    far = tf.logical_not(functools.reduce(tf.logical_or, conditions))
    made = otherwise(keeping(far))
    for near, form in cases:
        made = tf.where(near, form(keeping(near)), made)
    return made
