import mpmath
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.ops.elementwise import each_place, each_place_and_xla_float64, edges, errors
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import ops
from tfsafe._limits import LIMITS


def test_sqrt_agrees_with_mpmath_up_to_second_order(mode, dtype):
    limits = LIMITS[dtype.name]
    x = oracle.grid(dtype, 4 * limits.tiny, limits.max / 4, 40)
    budget = oracle.budget("sqrt", dtype, mode)
    got, (slope,) = modes.value_and_gradients(ops.sqrt, [x], mode)
    second = modes.second_gradient(ops.sqrt, x, mode)
    assert got.dtype == slope.dtype == dtype
    for result, truth in [
        (got, mpmath.sqrt),
        (slope, lambda x: 0.5 / mpmath.sqrt(x)),
        (second, lambda x: -0.25 / (x * mpmath.sqrt(x))),
    ]:
        assert oracle.ulp_error(result, oracle.exact(truth, x)) <= budget


EDGES = {
    "x = 0": (0.0, 0.0, 0.0),
    "x = inf": (INF, INF, 0.0),
    "x < 0": (-2.0, NAN, NAN),
    "x = NaN": (NAN, NAN, NAN),
}


def test_the_edges_of_sqrt_are_those_of_its_docstring(mode, dtype):
    assert list(EDGES) == documented(ops.sqrt)
    x, values, slopes = (
        tf.constant(column, dtype) for column in zip(*EDGES.values(), strict=True)
    )
    got, (gradient,) = modes.value_and_gradients(ops.sqrt, [x], mode)
    assert_rounded(got, values)
    assert_rounded(gradient, slopes)
    for silent in modes.silent_gradients(ops.sqrt, [x], mode):
        assert_rounded(silent, 0.0)


def test_the_second_derivative_of_sqrt_is_0_at_0(mode):
    x = tf.constant([0.0, 1.0])
    assert_rounded(modes.second_gradient(ops.sqrt, x, mode), [0.0, -0.25])


RSQRT_EDGES = {
    "x = 0": (0.0, 7.0, 0.0),
    "x = inf": (INF, 0.0, 0.0),
    "x < 0": (-2.0, NAN, NAN),
    "x = NaN": (NAN, NAN, NAN),
}


class TestRsqrt:
    @each_place_and_xla_float64
    def test_it_agrees_with_mpmath_up_to_second_order(self, mode, dtype):
        limits = LIMITS[dtype.name]
        low, high = limits.tiny**0.75, limits.max**0.75
        x = oracle.grid(dtype, low if dtype != tf.float16 else 1e-4, high, 40)
        truths = [
            lambda x: 1 / mpmath.sqrt(x),
            lambda x: -0.5 / (x * mpmath.sqrt(x)),
            lambda x: 0.75 / (x * x * mpmath.sqrt(x)),
        ]
        # Second derivatives below the smallest normal number are none of ours.
        x = tf.boolean_mask(x, (x < 1e12) & (x > 1e-12))
        assert max(errors(ops.rsqrt, [x], truths, mode)) <= oracle.budget(
            "rsqrt", dtype, mode
        )

    @each_place
    def test_its_edges_are_those_of_its_docstring(self, mode, dtype):
        assert list(RSQRT_EDGES) == documented(ops.rsqrt)

        def rsqrt(x):
            return ops.rsqrt(x, at_zero=7.0)

        got, wanted, silent = edges(rsqrt, list(RSQRT_EDGES.values()), dtype, mode)
        assert_rounded(got, wanted)
        for each in silent:
            assert_rounded(each, 0.0)

    def test_it_is_0_at_0_unless_another_value_is_chosen(self, mode):
        x = tf.constant([0.0, 4.0])
        assert_rounded(modes.compile_for(mode, ops.rsqrt)(x), [0.0, 0.5])
        assert_rounded(ops.rsqrt(x, at_zero=INF), [INF, 0.5])

    def test_a_wrong_value_at_zero_is_refused(self):
        with pytest.raises(TypeError, match=r"`at_zero` must be a number. Received"):
            ops.rsqrt(tf.constant(1.0), at_zero="0")


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(x=st.floats(2.0**-60, 2.0**60, width=32, allow_subnormal=False))
def test_the_root_of_a_square_is_the_number_itself(x):
    x = tf.constant(x)
    assert abs(ops.sqrt(x * x) - x) <= 1.2e-7 * x
    assert_close(float(ops.sqrt(x)) ** 2, x, dtype="float32")
