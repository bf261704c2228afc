"""Maps of rotation vectors have their value and two derivatives at no rotation."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.collection.formula import as_mp
from tests.collection.rotations import FORMULAS, POINT, W
from tests.rewriting.emitting import fired
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.rewriting.rules.table import all_rules

OF_ONE_VECTOR = {
    each.name: each for each in FORMULAS if np.shape(each.bad[0])[1:] == (3,)
}
STEP = mpmath.mpf(10) ** -15


def _second(formula, v):
    """Returns the derivatives, in the elements of `v`, of the summed slope in it."""
    rest = [as_mp(np.float32(each)) for each in formula.bad[1:]]

    def total(v):
        return np.sum(np.asarray(formula.exact(v, *rest), object))

    v, found = as_mp(np.float32(v)), np.zeros(np.shape(v))
    # The slopes in all elements are the slope along a diagonal.
    diagonal = np.full(v.shape, STEP, object)
    for place in np.ndindex(v.shape):
        step = np.zeros(v.shape, object)
        step[place] = STEP
        corners = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
        found[place] = sum(
            a * b * total(v + a * diagonal + b * step) for a, b in corners
        ) / (4 * STEP**2)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_ONE_VECTOR)
@pytest.mark.parametrize("v", [[0.0, 0.0, 0.0], [3e-4, -1e-4, 2e-4]])
def test_the_second_derivative_is_right_at_and_around_no_rotation(name, v):
    formula = OF_ONE_VECTOR[name]
    rest = formula.tensors(formula.bad[1:])
    safe = stabilize(lambda v: formula.function(v, *rest))
    with mpmath.workdps(80):
        exact = _second(formula, [v])
    found = modes.second_gradient(safe, tf.constant([v]), "graph")
    assert_close(found, exact, scale=1.0)


EVEN = {
    "cos(norm(v))": (lambda v: tf.cos(tf.norm(v)), -1.0),
    "cosh(2 norm(v))": (lambda v: tf.cosh(2 * tf.norm(v)), 4.0),
    "cos(norm(v)) - 1": (lambda v: tf.cos(tf.norm(v)) - 1, -1.0),
    "norm(v)**2": (lambda v: tf.norm(v) ** 2, 2.0),
    "square(sqrt(sum(v * v)))": (lambda v: tf.sqrt(tf.reduce_sum(v * v)) ** 2, 2.0),
}


@pytest.mark.parametrize("mode", modes.MODES)
@pytest.mark.parametrize("name", EVEN)
def test_even_functions_of_a_length_have_their_curvature_at_0(name, mode):
    function, curvature = EVEN[name]
    assert "function-of-length" in fired(all_rules(), function, tf.zeros([3]))
    found = modes.second_gradient(stabilize(function), tf.zeros([3]), mode)
    assert_close(found, [curvature] * 3)


@pytest.mark.parametrize("name", EVEN)
def test_half_precision_keeps_small_lengths(name):
    v = tf.constant([1e-4, 0.0, 0.25], tf.float16)
    function = EVEN[name][0]
    _, (slope,) = modes.value_and_gradients(stabilize(function), [v], "graph")
    wide = tf.cast(v, tf.float64)
    _, (exact,) = modes.value_and_gradients(function, [wide], "graph")
    assert_close(slope, exact, 1)


def _rows(v):
    # The divisor of each row stands in a column of another one.
    angle = tf.norm(v, axis=-1)
    return tf.sin(angle)[None, :] * (v / angle[:, None])


NEAR_MISSES = {
    "the length of another row": _rows,
    "another length": lambda v: tf.sin(tf.norm(v[::-1])) * v / tf.norm(v),
    "a sum of a quotient and another": lambda v: (
        tf.sin(tf.norm(v)) * (v / tf.norm(v) + W)
    ),
    "too few zeros": lambda v: (
        tf.sin(tf.norm(v)) * tf.linalg.matmul(v / tf.norm(v), v / tf.norm(v))
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_another_product_is_left_alone(name):
    v = tf.constant(W)
    assert "removable-singularity" not in fired(all_rules(), NEAR_MISSES[name], v)


def _other_shape(v):
    length = tf.norm(v, axis=-1)
    return tf.sin(length) * v / length[:, None]


def test_a_limit_that_no_rule_knows_is_not_0():
    # The zero of the sine is that of the divisor, in a shape that no rule reads.
    v = tf.zeros([1, 3])
    assert np.isnan(stabilize(_other_shape)(v)).all()


def test_a_scalar_angle_may_have_any_shape():
    v = tf.constant([0.0, 0.0, 0.0])
    p = tf.constant(POINT)

    def rotated(v):
        angle = tf.norm(v, keepdims=True)
        return tf.linalg.cross(v / tf.norm(v), p) * tf.sin(angle)

    _, (slope,) = modes.value_and_gradients(stabilize(rotated), [v], "graph")
    # The slope of the sum of `cross(v, p)`.
    assert_close(slope, tf.linalg.cross(p, tf.ones([3])), 0.5)
