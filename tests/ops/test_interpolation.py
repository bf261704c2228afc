"""Polynomials that continue a function to a point where its formula has no digits."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close
from tfsafe.ops.formulas.limits import interpolation

BOTH_SIDES = pytest.mark.parametrize("one_sided", [False, True])


def test_nodes_are_roots_of_chebyshev_polynomials():
    # In x on one side of the point; in x^2 between 0.3^2 and 1 on both sides of it.
    one = interpolation.nodes(one_sided=True)
    assert_close(
        np.cos(10 * np.arccos(one - 1)),
        np.zeros(10),
        40,
        why="the cosine of ten times an angle",
        scale=1.0,
    )
    both = interpolation.nodes()
    assert_close(both, -both[::-1])
    squares = (2 * both**2 - 1.09) / 0.91
    assert_close(
        np.cos(5 * np.arccos(squares)),
        np.zeros(10),
        40,
        why="the cosine of five times an angle",
        scale=1.0,
    )
    assert len(set(one)) == len(set(both)) == interpolation.NODES


@BOTH_SIDES
def test_a_polynomial_of_the_ninth_degree_is_itself(one_sided):
    factors = np.linspace(-1, 2, 10)
    nodes = interpolation.nodes(one_sided)
    series = interpolation.coefficients(one_sided) @ np.polyval(factors, nodes)
    places = np.linspace(-1, 1, 7)
    assert_close(
        interpolation.polynomial(series, places),
        np.polyval(factors, places + one_sided),
        scale=500.0,
    )


@BOTH_SIDES
def test_a_function_is_continued_where_it_has_digits_elsewhere(one_sided):
    def cubic(x):
        return tf.exp(x) - 1 - x - x**2 / 2

    offsets = np.float64([0.0, 1e-9, 1e-4, 0.2, 0.3, 2.0])
    point, width = tf.constant([0.0, 0.25], tf.float64)
    near = interpolation.is_near(tf.constant(offsets), point, width, one_sided)
    reach = 0.5 if one_sided else 0.25
    np.testing.assert_array_equal(near, np.abs(offsets) <= reach)
    found = interpolation.continued(
        cubic,
        cubic,
        tf.constant(offsets),
        point,
        width,
        near,
        order=3,
        one_sided=one_sided,
    )
    series = sum(offsets**k / np.prod(np.arange(1.0, k + 1)) for k in range(3, 25))
    # On one side some nodes are near the point, where the cubic has lost its digits.
    assert_close(
        found,
        series,
        1.4e8 if one_sided else 4500,
        why="the cubic loses its digits near the point",
    )


def test_a_function_that_is_not_smooth_is_computed_as_it_is():
    x = tf.constant([0.0, 1e-3, -0.2], tf.float64)
    point, width = tf.constant([0.0, 0.25], tf.float64)
    near = interpolation.is_near(x, point, width, False)
    found = interpolation.continued(tf.abs, tf.abs, x, point, width, near, 0, False)
    np.testing.assert_array_equal(found[1:], [1e-3, 0.2])
