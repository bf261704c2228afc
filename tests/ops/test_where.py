import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import assert_rounded, documented
from tests.ops.elementwise import (
    INF,
    NAN,
    derivatives,
    each_place_and_xla_float64,
    edges,
)
from tests.support import modes
from tfsafe import ops


def _log_or_0(x):
    return ops.where_apply(x > 0, tf.math.log, x, 0.0)


class TestWhere:
    def test_its_docstring_has_these_rows(self):
        assert documented(ops.where_apply) == ["condition False", "condition True"]

    @each_place_and_xla_float64
    def test_the_unselected_side_does_not_reach_any_gradient(self, mode, dtype):
        x = tf.constant([0.0, -1.0, NAN, 2.0], dtype)
        value, slope, second = derivatives(_log_or_0, [x], mode)
        assert value.dtype == slope.dtype == dtype
        assert_rounded(value, [0.0, 0.0, 0.0, np.log(2)])
        assert_rounded(slope, [0.0, 0.0, 0.0, 0.5])
        assert_rounded(second, [0.0, 0.0, 0.0, -0.25])

    def test_a_nan_that_is_selected_comes_out(self, mode):
        x = tf.constant([NAN, 2.0])
        value, (slope,) = modes.value_and_gradients(
            lambda x: ops.where_apply([True, False], tf.math.log, x, 1.0), [x], mode
        )
        assert_rounded(value, [NAN, 1.0])
        assert_rounded(slope, [NAN, 0.0])

    @pytest.mark.parametrize("safe", [None, 0.5])
    @pytest.mark.parametrize("x", [[0.25, 0.0, -1.0], [0.0, -1.0, NAN], []])
    def test_a_variable_inside_gets_its_gradient_from_what_is_selected(
        self, x, safe, mode
    ):
        x = tf.constant(x)

        def scaled(scale):
            return ops.where_apply(
                x > 0, lambda x: scale * tf.sqrt(x), x, 0.0, safe=safe
            )

        _, (slope,) = modes.value_and_gradients(scaled, [tf.constant(3.0)], mode)
        truth = np.sqrt(x.numpy()[x.numpy() > 0]).sum()
        assert_rounded(slope, truth)

    def test_the_stand_in_is_an_element_that_may_be_seen(self):
        seen = []

        def branch(x):
            seen.append(x.numpy())
            return x

        x = tf.constant([[1.0, 5.0], [7.0, 2.0]])
        ops.where_apply(x > 4, branch, x, 0.0)
        ops.where_apply(x > 9, branch, x, 0.0)
        ops.where_apply(x > 4, branch, x, 0.0, safe=6)
        assert_rounded(seen[0], [[7.0, 5.0], [7.0, 7.0]])
        assert_rounded(seen[1], 1.0)
        assert_rounded(seen[2], [[6.0, 5.0], [7.0, 6.0]])

    def test_several_tensors_get_their_stand_ins_from_one_place(self, mode):
        def share(a, b):
            return ops.where_apply(b > 0, lambda ab: ab[0] / ab[1], (a, b), -1.0)

        a, b = tf.constant([[1.0], [6.0]]), tf.constant([0.0, 2.0, 3.0])
        value, (in_a, in_b) = modes.value_and_gradients(share, [a, b], mode)
        assert_rounded(value, [[-1.0, 0.5, 1 / 3], [-1.0, 3.0, 2.0]])
        assert_rounded(in_a, [[5 / 6], [5 / 6]])
        assert_rounded(in_b, [0.0, -7 / 4, -7 / 9])

    def test_a_structure_keeps_its_names_and_its_dtypes(self):
        x = {"x": tf.constant([0.0, 2.0]), "power": tf.constant([-1, 3])}
        value = ops.where_apply(
            x["x"] > 0,
            lambda x: tf.pow(x["x"], tf.cast(x["power"], tf.float32)),
            x,
            5.0,
            safe={"x": 1.0, "power": 0},
        )
        assert_rounded(value, [5.0, 8.0])

    def test_a_single_stand_in_serves_a_whole_structure(self):
        x = (tf.constant([0.0, 2.0]), tf.constant([0.0, 4.0]))
        value = ops.where_apply(x[1] > 0, lambda x: x[0] / x[1], x, 0.0, safe=1.0)
        assert_rounded(value, [0.0, 0.5])

    def test_the_other_side_may_be_a_function_as_well(self, mode):
        x = tf.constant([-4.0, 0.0, 9.0])
        value, slope, second = derivatives(
            lambda x: ops.where_apply(x > 0, tf.sqrt, x, lambda x: -tf.sqrt(1 - x)),
            [x],
            mode,
        )
        assert_rounded(value, [-(5**0.5), -1.0, 3.0])
        assert_rounded(slope, [0.5 / 5**0.5, 0.5, 1 / 6])
        assert_rounded(second, [0.25 / 5**1.5, 0.25, -0.25 / 27])

    def test_the_condition_may_have_the_larger_shape(self, mode):
        x = tf.constant(4.0)
        value, (slope,) = modes.value_and_gradients(
            lambda x: ops.where_apply([True, False, True], tf.sqrt, x, 0.0), [x], mode
        )
        assert_rounded(value, [2.0, 0.0, 2.0])
        assert_rounded(slope, 0.5)

    def test_it_works_with_shapes_that_are_not_known(self):
        @tf.function(input_signature=[tf.TensorSpec(None)], autograph=False)
        def unknown(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = _log_or_0(x)
            return value, tape.gradient(value, x)

        for x in ([0.0, 2.0], [[0.0], [2.0]], 2.0, []):
            value, slope = unknown(tf.constant(x))
            assert_rounded(slope, np.where(np.array(x) > 0, 0.5, 0.0))
            assert value.shape == np.shape(x)

    def test_it_works_in_vectorized_map(self):
        x = tf.constant([[0.0, 2.0], [0.0, -1.0], [4.0, 1.0]])
        assert_rounded(tf.vectorized_map(_log_or_0, x), _log_or_0(x))

    def test_its_operations_are_in_a_name_scope(self):
        function = tf.function(
            lambda x: ops.where_apply(x > 0, tf.math.log, x, 0.0, name="mine"),
            autograph=False,
        )
        graph = function.get_concrete_function(tf.constant([1.0])).graph
        assert any(op.name.startswith("mine/") for op in graph.get_operations())

    @pytest.mark.parametrize(
        ("condition", "branch", "safe", "error", "message"),
        [
            ([1, 0], tf.math.log, None, TypeError, r"`condition` must be boolean. Rec"),
            ([True], 3.0, None, TypeError, r"`fn` must be a function .*fn=3.0"),
            (
                [True] * 3,
                tf.math.log,
                None,
                ValueError,
                r"`x` and `condition` must have shapes that broadcast",
            ),
            ([True], tf.math.log, [1.0, 2.0], ValueError, r"`safe` must be a single n"),
        ],
    )
    def test_a_wrong_argument_is_refused(self, condition, branch, safe, error, message):
        with pytest.raises(error, match=message):
            ops.where_apply(condition, branch, tf.constant([1.0, 2.0]), 0.0, safe=safe)

    def test_a_call_in_the_manner_of_tf_where_is_refused_with_both_ways(self):
        a, b = tf.constant([1.0]), tf.constant([2.0])
        message = (
            r"Received: fn=a tensor of shape \(1,\).*`tf.where\(condition, a, b\)`"
        )
        with pytest.raises(TypeError, match=message):
            ops.where_apply([True], a, b)

    def test_a_missing_value_elsewhere_is_refused(self):
        with pytest.raises(TypeError, match=r"`otherwise` must be a number"):
            ops.where_apply([True], tf.math.log, tf.constant([1.0]))


CLIP_EDGES = {
    "x = low": (-1.0, -1.0, 1.0),
    "x < low": (-3.0, -1.0, 0.0),
    "x = inf": (INF, 2.0, 0.0),
    "x = NaN": (NAN, NAN, 0.0),
}


class TestClip:
    @each_place_and_xla_float64
    def test_its_edges_are_those_of_its_docstring(self, mode, dtype):
        assert list(CLIP_EDGES) == documented(ops.clip)
        got, wanted, silent = edges(
            lambda x: ops.clip(x, -1.0, 2.0), list(CLIP_EDGES.values()), dtype, mode
        )
        assert_rounded(got, wanted)
        for each in silent:
            assert_rounded(each, 0.0)

    @pytest.mark.parametrize(
        ("keep", "upstream", "expected"),
        [
            (False, 1.0, [0.0, 1.0, 0.0, 0.0]),
            (True, 1.0, [1.0, 1.0, 1.0, 1.0]),
            ("inward", 1.0, [0.0, 1.0, 1.0, 1.0]),
            ("inward", -1.0, [-1.0, -1.0, 0.0, -1.0]),
        ],
    )
    def test_it_keeps_the_gradient_that_is_asked_for(
        self, keep, upstream, expected, mode
    ):
        x = tf.constant([-3.0, 0.5, 7.0, NAN])
        value, (slope,) = modes.value_and_gradients(
            lambda x: ops.clip(x, 0.0, 1.0, keep_gradient=keep),
            [x],
            mode,
            [upstream] * 4,
        )
        assert_rounded(value, [0.0, 0.5, 1.0, NAN])
        assert_rounded(slope, expected)

    def test_a_step_against_an_inward_gradient_ends_in_the_interval(self):
        x = tf.constant(5.0)
        for _ in range(40):
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = tf.square(ops.clip(x, 0.0, 1.0, keep_gradient="inward") - 0.5)
            x -= 0.25 * tape.gradient(loss, x)
        assert abs(x - 0.5) < 1e-3

    def test_the_bounds_have_their_gradients(self, mode):
        args = [tf.constant([[-3.0, 0.5, 7.0]]), tf.constant([[0.0], [1.0]])]
        value, (in_x, in_low, in_high) = modes.value_and_gradients(
            ops.clip, [*args, tf.constant(2.0)], mode
        )
        assert_rounded(value, [[0.0, 0.5, 2.0], [1.0, 1.0, 2.0]])
        assert_rounded(in_x, [[0.0, 1.0, 0.0]])
        assert_rounded(in_low, [[1.0], [2.0]])
        assert_rounded(in_high, 2.0)

    @pytest.mark.parametrize(
        ("low", "high", "keep", "error", "message"),
        [
            (2, 1, False, ValueError, r"`low` must be at most `high`. Received: low=2"),
            (NAN, 1, False, ValueError, r"`low` must be at most `high`. .*low=nan"),
            (0, 1, "yes", ValueError, r"`keep_gradient` must be one of .*'yes'"),
            ([0.0] * 3, 1, True, ValueError, r"`x` and `low` must have shapes"),
            (0, [1.0] * 3, True, ValueError, r"`x` and `high` must have shapes"),
        ],
    )
    def test_a_wrong_argument_is_refused(self, low, high, keep, error, message):
        with pytest.raises(error, match=message):
            ops.clip(tf.zeros([2]), low, high, keep_gradient=keep)


PRODUCT_EDGES = {
    "x = NaN, y = 0": (NAN, 0.0, 0.0, 0.0, NAN),
    "x = inf, y = 0": (INF, 0.0, 0.0, 0.0, INF),
    "x = NaN, y = 1": (NAN, 1.0, NAN, 1.0, NAN),
    "x = 0, y = NaN": (0.0, NAN, NAN, NAN, 0.0),
}


class TestMultiplyNoNan:
    @each_place_and_xla_float64
    def test_its_edges_are_those_of_its_docstring(self, mode, dtype):
        assert list(PRODUCT_EDGES) == documented(ops.multiply_no_nan)
        rows = list(PRODUCT_EDGES.values())
        got, wanted, silent = edges(ops.multiply_no_nan, rows, dtype, mode, 2)
        assert_rounded(got, wanted)
        for each in silent:
            assert_rounded(each, 0.0)

    def test_elsewhere_it_is_the_product(self, mode):
        args = [tf.constant([[2.0], [3.0]]), tf.constant([4.0, 5.0])]
        value, (in_x, in_y) = modes.value_and_gradients(ops.multiply_no_nan, args, mode)
        assert_rounded(value, [[8.0, 10.0], [12.0, 15.0]])
        assert_rounded(in_x, [[9.0], [9.0]])
        assert_rounded(in_y, [5.0, 5.0])
