"""The distances in ulps that the tests compare with."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close, ulp_error
from tfsafe._limits import LIMITS

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("name", LIMITS)
def test_the_unit_is_that_of_the_truth_in_the_dtype_of_what_is_compared(name):
    eps, tiny, _ = LIMITS[name]
    dtype = tf.as_dtype(name)
    below_2 = 2 - eps
    for truth, unit in [
        (1.0, eps),
        (below_2, eps),
        (-2.0, 2 * eps),
        (tiny, tiny * eps),
    ]:
        moved = tf.constant(truth + 3 * unit, dtype)
        assert ulp_error(moved, truth) == 3
        assert_close(moved, truth, 3)
        with pytest.raises(AssertionError, match=f"^3 ulps of {name} apart"):
            assert_close(moved, truth, 2.9)


def test_what_is_close_is_found_where_it_is_farthest():
    got = np.array([[1.0, 2.0], [3.0, 4.5]], "float32")
    with pytest.raises(AssertionError, match=r"4.5 and not 4.0, at \(1, 1\) of"):
        assert_close(got, [[1.0, 2.0], [3.0, 4.0]])


def test_more_than_four_ulps_have_a_reason():
    with pytest.raises(AssertionError, match="give the reason in `why`"):
        assert_close(1.0, 1.0, 4.5)
    assert_close(1.0, 1.0, 4)
    far = 1 + 5 * LIMITS["float64"].eps
    assert_close(far, 1.0, 5, why="a sum of 64 terms")
    with pytest.raises(AssertionError, match="5 ulps of float64"):
        assert_close(far, 1.0)


@pytest.mark.parametrize(
    ("got", "truth"),
    [
        (NAN, 1.0),
        (1.0, NAN),
        (NAN, INF),
        (INF, NAN),
        (INF, -INF),
        (INF, 3e38),
        (3e38, INF),
        (3e38, 1e300),
        (-INF, 1e300),
        (0.0, 1e-30),
        (0.0, -(2.0**-126)),
        (1e-30, 0.0),
    ],
)
def test_these_are_infinitely_far_or_nearly(got, truth):
    got = tf.constant(got)
    assert ulp_error(got, truth) > 1e6
    with pytest.raises(AssertionError, match="apart"):
        assert_close(got, truth, 1e6, why="the test")
    with pytest.raises(AssertionError, match="apart"):
        assert_close([got], [truth], 1e6, why="the test")


@pytest.mark.parametrize(
    ("got", "truth"),
    [(NAN, NAN), (INF, INF), (-INF, -1e300), (0.0, 1e-38), (-0.0, 0.0)],
)
def test_these_are_the_same(got, truth):
    assert_close(tf.constant(got), truth, 0)
    assert ulp_error(tf.constant(got), mpmath.mpf(truth)) == 0


def test_the_largest_number_rounds_to_infinity_half_a_unit_above():
    largest = LIMITS["float32"].max
    half = largest * LIMITS["float32"].eps / 4
    assert_close(tf.constant(INF), largest + 1.01 * half, 0)
    assert_close(tf.constant(largest), largest + 0.99 * half, 0.5)
    with pytest.raises(AssertionError, match="inf ulps"):
        assert_close(tf.constant(INF), largest + 0.99 * half)


def test_the_unit_is_at_least_that_of_the_scale():
    got = tf.constant([1e-3, 1e3])
    assert_close(got, [1e-3 + 2**-23, 1e3], 1, scale=1.5)
    assert_close(got, [1e-3 + 2**-23, 1e3], 1, scale=[1.5, 0.0])
    for scale in (0.0, 0.9, [0.0, 1.5]):
        with pytest.raises(AssertionError, match="apart"):
            assert_close(got, [1e-3 + 2**-23, 1e3], 1, scale=scale)
    with pytest.raises(AssertionError, match=r"at \(1,\) of"):
        assert_close(got, [1e-3, 1e3 + 1], 4, scale=1.5)


def test_a_scale_may_be_beyond_the_largest_number():
    beyond = mpmath.mpf("2e400")
    assert_close(np.array([-2e200]), [-2e200 - 1e150], scale=[beyond])
    with pytest.raises(AssertionError):
        assert_close(np.array([-2e200]), [-2e300], 4, scale=[beyond])


def test_the_unit_is_that_of_a_dtype_that_is_named():
    assert_close(1 + 2.0**-23, 1.0, 1, dtype="float32")
    assert_close(tf.constant(1 + 2.0**-10), 1.0, 1, dtype=tf.float16)
    with pytest.raises(AssertionError, match="ulps of float64"):
        assert_close(1 + 2.0**-23, 1.0)


@pytest.mark.parametrize(
    ("got", "truth"),
    [
        (1.0, np.ones(2)),
        (np.ones([2, 1]), np.ones(2)),
        ([1.0], [1.0, 1.0]),
        ({"a": 1.0}, {"a": 1.0, "b": 1.0}),
    ],
)
def test_shapes_are_not_broadcast(got, truth):
    with pytest.raises((AssertionError, TypeError)):
        assert_close(got, truth)


def test_one_number_is_the_truth_of_each_element():
    assert_close([np.ones(2), {"a": tf.ones([2, 1])}], 1.0)
    with pytest.raises(AssertionError, match="ulps of float32"):
        assert_close([np.ones(2), {"a": tf.constant([1.0, 1.0 + 2.0**-20])}], 1.0)


def test_nests_are_compared_part_by_part_in_their_own_dtypes():
    got = [tf.constant([1.0]), (tf.constant(2.0, tf.float64), {"a": 3.0})]
    assert_close(got, [[1 + 2.0**-23], (2.0, {"a": 3.0})], 1)
    assert_close(got, [[1.0], (2.0, {"a": 3 + 2.0**-42})], 1, scale=1024)
    with pytest.raises(AssertionError, match="ulps of float64"):
        assert_close(got, [[1.0], (2 + 2.0**-23, {"a": 3.0})])
    with pytest.raises(AssertionError, match="ulps of float64"):
        assert_close(got, [[1.0], (2.0, {"a": 3 + 2.0**-23})])


def test_a_truth_of_mpmath_has_more_digits_than_float64():
    with mpmath.workdps(40):
        third = mpmath.mpf(1) / 3
    # The double next to a third is a third of an ulp below it.
    assert 0.333 < ulp_error(tf.constant(1 / 3, tf.float64), third) < 0.334
    assert ulp_error(tf.constant(1.0, tf.float64), 1.0) == 0
