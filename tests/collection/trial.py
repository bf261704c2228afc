"""Runs a formula of the collection and compares it with its exact value."""

import functools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import DIGITS, TOLERANCE, Formula, as_mp
from tests.support import modes

# TensorFlow has no kernel of `tf.math.segment_sum` for XLA, and no gradient of a loop
# without a limit.
NOT_COMPILED = {
    "mean over neighbours by a sparse matrix",
    "Sinkhorn iterations in a loop",
    "Sinkhorn iterations in a loop, no row near its column",
    "forward algorithm by while_loop",
    "logarithm of a softmax over sorted segments",
}
# How much further off than the value a slope may be.
SLOPES = 10
# Numbers below the normal ones may be 0.
TINY = np.finfo(np.float32).tiny


@functools.cache
def _truth(formula, is_bad):
    if not is_bad or formula.slopes == "exact":
        return formula.truth(formula.bad if is_bad else formula.ordinary)
    args = [tensor.numpy() for tensor in formula.tensors(formula.bad)]
    with mpmath.workdps(DIGITS):
        exact = [as_mp(each) if each.dtype.kind == "f" else each for each in args]
        value = np.sum(np.asarray(formula.exact(*exact), object))
    return float(value), None


def traced(form: Callable[..., tf.Tensor], mode: str) -> Callable[..., Any]:
    """Returns a function of the value and the slopes, compiled once for all inputs."""

    def run(*args):
        floats = [each for each in args if each.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            # Summed in float64: the reference has every digit.
            value = tf.reduce_sum(tf.cast(form(*args), tf.float64))
        return value, tape.gradient(value, floats, unconnected_gradients="zero")

    return modes.compile_for(mode, run)


def miss(run: Callable[..., Any], formula: Formula, *, is_bad: bool) -> str:
    """Returns what is wrong, or nothing."""
    arrays = formula.bad if is_bad else formula.ordinary
    result, slopes = run(*formula.tensors(arrays))
    value = float(result)
    slopes = [np.asarray(each, np.float64) for each in slopes]
    exact, exact_slopes = _truth(formula, is_bad)
    tolerance = TOLERANCE[formula.dtype]
    if not abs(value - exact) <= tolerance * (abs(exact) or 1) + TINY:
        return f"value {value}, not {exact}"
    if not all(np.isfinite(each).all() for each in slopes):
        return f"slopes {slopes}"
    for slope, right in zip(slopes, exact_slopes or (), strict=False):
        allowed = SLOPES * tolerance * np.abs(right).max() + TINY
        if np.abs(slope - right).max() > allowed:
            return f"slope {slope}, not {right}"
    return ""
