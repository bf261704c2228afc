import mpmath
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.ops.elementwise import each_place, each_place_and_xla_float64, edges, errors
from tests.support import modes, oracle
from tfsafe import ops
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels.zeros import quotient_for_gradient


def _pairs(dtype):
    # Denominators so large and so small that their squares leave the range.
    limits = LIMITS[dtype.name]
    # Grappler turns 1 / y into a reciprocal, of which TensorFlow's float32 kernel gets
    # 13 bits right above 5e33.
    largest = 1e33 if dtype == tf.float32 else limits.max / 8
    y = oracle.grid(dtype, 8 * limits.tiny, largest, 40)
    spread = oracle.grid(dtype, limits.tiny**0.25, limits.max**0.25, 10)
    x = y * tf.tile(tf.reverse(spread, [0]) * tf.constant([1, -1] * 5, dtype), [4])
    is_normal = tf.math.is_finite(x) & (tf.abs(x) > 8 * limits.tiny)
    return tf.where(is_normal, x, tf.ones_like(x)), y


def test_divide_agrees_with_mpmath_up_to_second_order(mode, dtype):
    x, y = _pairs(dtype)
    budget = oracle.budget("divide", dtype, mode)
    got, (in_x, in_y) = modes.value_and_gradients(ops.divide, [x, y], mode)
    (in_xx, in_xy), (in_yx, in_yy) = modes.second_gradients(ops.divide, [x, y], mode)
    for result, truth in [
        (got, lambda x, y: x / y),
        (in_x, lambda x, y: 1 / y),
        (in_y, lambda x, y: -x / y**2),
        (in_xx, lambda x, y: mpmath.mpf(0)),
        (in_xy, lambda x, y: -1 / y**2),
        (in_yx, lambda x, y: -1 / y**2),
        (in_yy, lambda x, y: 2 * x / y**3),
    ]:
        assert result.dtype == dtype
        assert oracle.ulp_error(result, oracle.exact(truth, x, y)) <= budget


EDGES = {
    "y = 0": (2.0, 0.0, 7.0, 0.0, 0.0),
    "x = 0, y = 0": (0.0, 0.0, 7.0, 0.0, 0.0),
    "x = inf, y = 0": (INF, 0.0, 7.0, 0.0, 0.0),
    "x = NaN, y = 0": (NAN, 0.0, NAN, 0.0, 0.0),
    "y = inf": (2.0, INF, 0.0, 0.0, 0.0),
    "y = NaN": (2.0, NAN, NAN, NAN, NAN),
}


def test_the_edges_of_divide_are_those_of_its_docstring(mode, dtype):
    assert list(EDGES) == documented(ops.divide)

    def divide(x, y):
        return ops.divide(x, y, at_zero=7.0)

    x, y, values, *slopes = (
        tf.constant(column, dtype) for column in zip(*EDGES.values(), strict=True)
    )
    got, gradients = modes.value_and_gradients(divide, [x, y], mode)
    assert_rounded(got, values)
    assert_rounded(gradients, slopes)
    for silent in modes.silent_gradients(divide, [x, y], mode):
        assert_rounded(silent, 0.0)


def test_all_second_derivatives_of_divide_are_0_where_y_is_0(mode):
    args = [tf.constant([3.0, 0.0]), tf.constant([0.0, 0.0])]
    assert_rounded(modes.second_gradients(ops.divide, args, mode), 0.0)


@pytest.mark.parametrize("at_zero", [-1, 1.5, NAN, INF])
def test_the_value_at_a_zero_denominator_can_be_chosen(at_zero):
    quotient = ops.divide(tf.constant([1.0, 1.0]), [2.0, 0.0], at_zero=at_zero)
    assert_rounded(quotient, [0.5, at_zero])


def test_the_gradients_of_divide_have_the_shapes_of_its_arguments(mode, dtype):
    x, y = tf.ones([3, 1], dtype), tf.constant([[2.0, 4.0]], dtype)
    got, (in_x, in_y) = modes.value_and_gradients(ops.divide, [x, y], mode)
    assert got.shape == [3, 2]
    assert_rounded(in_x, [[0.75]] * 3)
    assert_rounded(in_y, [[-0.75, -3 / 16]])


def test_divide_no_nan_swallows_a_nan_and_divide_does_not():
    x, y = tf.constant(NAN), tf.constant(0.0)
    assert tf.math.divide_no_nan(x, y) == 0
    assert tf.math.is_nan(ops.divide(x, y))


def test_the_textbook_slope_overflows_where_ours_does_not(mode):
    x, y = tf.constant(1e-20), tf.constant(1e-25)
    _, (_, textbook) = modes.value_and_gradients(
        lambda x, y: x * y**-1.0, [x, y * 1e-10], mode
    )
    assert not tf.math.is_finite(textbook)
    _, (_, slope) = modes.value_and_gradients(ops.divide, [x, y], mode)
    assert_rounded(slope, -1e30)


def test_the_division_for_gradients_is_0_where_either_side_is(mode):
    x, y = tf.constant([0.0, 1.0, NAN]), tf.constant([NAN, 0.0, 0.0])
    got, gradients = modes.value_and_gradients(quotient_for_gradient, [x, y], mode)
    assert_rounded(got, [0.0, 0.0, NAN])
    assert_rounded(gradients, [[NAN, 0.0, 0.0], [0.0, 0.0, 0.0]])


RECIPROCAL_EDGES = {
    "x = 0": (0.0, 7.0, 0.0),
    "x = inf": (INF, 0.0, 0.0),
    "x = NaN": (NAN, NAN, NAN),
}


class TestReciprocal:
    @each_place_and_xla_float64
    def test_it_agrees_with_mpmath_up_to_second_order(self, mode, dtype):
        _, x = _pairs(dtype)
        x = tf.concat([x, -x], 0)
        truths = [lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3]
        assert max(errors(ops.reciprocal, [x], truths, mode)) <= oracle.budget(
            "reciprocal", dtype, mode
        )

    @each_place
    def test_its_edges_are_those_of_its_docstring(self, mode, dtype):
        assert list(RECIPROCAL_EDGES) == documented(ops.reciprocal)

        def reciprocal(x):
            return ops.reciprocal(x, at_zero=7.0)

        got, wanted, silent = edges(
            reciprocal, list(RECIPROCAL_EDGES.values()), dtype, mode
        )
        assert_rounded(got, wanted)
        for each in silent:
            assert_rounded(each, 0.0)

    def test_all_its_derivatives_are_0_at_0(self, mode):
        x = tf.constant([0.0, 2.0])
        assert_rounded(modes.second_gradient(ops.reciprocal, x, mode), [0.0, 0.25])

    def test_a_wrong_value_at_zero_is_refused(self):
        with pytest.raises(ValueError, match=r"`at_zero` must fit the dtype"):
            ops.reciprocal(tf.constant(1.0, tf.float16), at_zero=1e5)


moderate = st.floats(2.0**-60, 2.0**60, width=32, allow_subnormal=False)


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(x=moderate, y=moderate)
def test_a_quotient_times_its_denominator_is_the_numerator(x, y):
    x, y = tf.constant(x), tf.constant(y)
    assert abs(ops.divide(x, y) * y - x) <= 2e-7 * x
