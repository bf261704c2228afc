"""Singular matrices, and the pseudoinverse of matrices of any shape and rank."""

import numpy as np
import pytest
import tensorflow as tf

from tests.ops import matrices
from tests.ops.edges import INF, NAN, assert_rounded
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import ops


@pytest.fixture(params=matrices.MODES)
def mode(request):
    return request.param


class TestSingularMatrices:
    @pytest.mark.parametrize(
        ("batch", "cofactors"),
        [
            (
                [[[1, 2], [2, 4]], [[0, 0], [0, 0]]],
                [[[4, -2], [-2, 1]], [[0, 0], [0, 0]]],
            ),
            (
                [np.diag([2, 0, 3]), np.ones([3, 3])],
                [np.diag([0, 6, 0]), np.zeros([3, 3])],
            ),
        ],
        ids=["2x2", "3x3"],
    )
    def test_the_gradient_of_the_determinant_is_the_cofactors(
        self, batch, cofactors, mode
    ):
        x = tf.constant(np.stack(batch), tf.float32)
        value, (slope,) = modes.value_and_gradients(ops.det, [x], mode)
        assert_rounded(value, 0.0)
        assert_close(slope, cofactors, scale=6.0)

    def test_the_second_gradient_of_the_determinant_is_that_of_the_minors(self, mode):
        x = tf.constant([[1.0, 2.0], [2.0, 4.0]])
        # Of the summed cofactors d - b - c + a.
        assert_rounded(modes.second_gradient(ops.det, x, mode), [[1, -1], [-1, 1]])

    def test_the_product_of_pivots_does_not_overflow(self, mode):
        x = tf.linalg.diag([1e30, 1e30, 1e-30, 1e-30])
        assert_rounded(modes.compile_for(mode, ops.det)(x), 1.0)

    def test_the_third_derivative_of_the_determinant_is_refused(self):
        def second(x):
            return modes.second_gradient(ops.det, x, "eager")

        message = r"`tfsafe.ops.det` has no third derivative.*stop_gradient"
        with pytest.raises(LookupError, match=message):
            modes.second_gradient(second, tf.eye(3), "eager")

    def test_the_logarithm_of_the_determinant_is_that_of_0(self, mode):
        x = tf.constant([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 2.0], [1.0, 0.0]]])

        def logarithm(x):
            return ops.slogdet(x)[1]

        sign, value = modes.compile_for(mode, ops.slogdet)(x)
        assert_rounded(sign, [0, -1])
        assert_rounded(value, [-INF, np.log(2)])
        _, (slope,) = modes.value_and_gradients(logarithm, [x], mode)
        # The transposed pseudoinverse, and the transposed inverse.
        assert_rounded(slope[0], [[0.04, 0.08], [0.08, 0.16]])
        assert_rounded(slope[1], [[0, 0.5], [1, 0]])

    def test_the_inverse_of_the_one_singular_matrix_is_nan(self, mode):
        x = tf.constant([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 2.0], [1.0, 0.0]]])
        value, (slope,) = modes.value_and_gradients(ops.inv, [x], mode)
        assert np.isnan(value[0]).all()
        assert np.isnan(slope[0]).all()
        assert_rounded(value[1], [[0, 1], [0.5, 0]])
        assert_rounded(slope[1], [[-0.5, -0.25], [-1, -0.5]])

    def test_the_inverse_can_be_transposed(self):
        x = tf.constant([[1.0, 2.0], [0.0, 4.0]])
        assert_rounded(ops.inv(x, adjoint=True), tf.transpose(ops.inv(x)))

    def test_a_semidefinite_matrix_has_columns_of_zeros(self, mode):
        x = tf.constant(np.stack([np.ones([3, 3]), np.diag([4, 0, 9])]), tf.float32)
        value, (slope,) = modes.value_and_gradients(ops.cholesky, [x], mode)
        assert_rounded(value[0], [[1, 0, 0]] * 3)
        assert_rounded(value[1], np.diag([2, 0, 3]))
        # Of sqrt(a) + b / sqrt(a) + c / sqrt(a), halved off the diagonal.
        assert_rounded(slope[0], [[-0.5, 0.5, 0.5], [0.5, 0, 0], [0.5, 0, 0]])

    def test_equal_points_of_a_kernel_matrix_are_no_harm(self, dtype):
        points = tf.constant(np.linspace(0, 3, 12)[[0, 3, 3, 7, 7, 7, 11]], dtype)
        squares = tf.square(points[:, tf.newaxis] - points)
        kernel = tf.exp(-squares)
        factor = tf.cast(ops.cholesky(kernel), tf.float64)
        again = tf.matmul(factor, factor, transpose_b=True)
        matrices.assert_agree(again, kernel, dtype=dtype)

    def test_an_indefinite_matrix_is_nan(self, mode):
        x = tf.constant([-np.eye(2), [[0, 1], [1, 0]], [[1, 2], [2, 1]]], tf.float32)
        value, (slope,) = modes.value_and_gradients(ops.cholesky, [x], mode)
        assert np.isnan(value).all()
        assert np.isnan(slope).all()

    def test_what_is_above_the_diagonal_is_not_read(self):
        x = tf.constant([[4.0, NAN], [2.0, 5.0]])
        assert_rounded(ops.cholesky(x), [[2, 0], [1, 2]])


class TestPseudoinverse:
    LOW_RANK = np.outer([1.0, 2.0, -1.0], [2.0, 1.0]).reshape(1, 3, 2)

    @pytest.mark.parametrize("transposed", [False, True])
    def test_it_agrees_with_numpy_for_every_shape_and_rank(self, transposed, mode):
        tall = np.concatenate([self.LOW_RANK, self.LOW_RANK, self.LOW_RANK])
        tall[1] += np.eye(3, 2)
        tall[2] = 0
        x = np.swapaxes(tall, 1, 2) if transposed else tall
        value = modes.compile_for(mode, ops.pinv)(tf.constant(x, tf.float32))
        matrices.assert_agree(
            value, np.linalg.pinv(x, rcond=1e-6), 8, why="a product of three matrices"
        )

    def test_small_singular_values_count_as_0_on_demand(self):
        x = tf.constant([[1.0, 0.0], [0.0, 0.01]])
        assert_rounded(ops.pinv(x), [[1, 0], [0, 100]])
        assert_rounded(ops.pinv(x, rcond=0.1), [[1, 0], [0, 0]])
        with pytest.raises(TypeError, match=r"`rcond` must be a number.*='small'"):
            ops.pinv(x, rcond="small")

    @pytest.mark.parametrize("function", [ops.pinv, "lstsq"], ids=["pinv", "lstsq"])
    def test_its_derivatives_are_those_at_constant_rank(self, function):
        if function == "lstsq":
            rhs = tf.constant([[1.0], [3.0], [-2.0]], tf.float64)
            function = lambda x: ops.lstsq(x, rhs)  # noqa: E731
        left = tf.constant([[1.0], [2.0], [-1.0]], tf.float64)
        right = tf.constant([[2.0, 1.0]], tf.float64)

        def of_left(left):
            value = function(left @ right)
            return matrices.weights(value) * value

        matrices.assert_slope_is_difference(of_left, left, 1e6)
        slope = matrices.weighted_slope(of_left)
        matrices.assert_slope_is_difference(slope, left, 1e6)

    def test_least_squares_have_the_smallest_norm(self, mode, dtype):
        matrix = tf.constant([[1.0, 2.0], [2.0, 4.0]], dtype)
        rhs = tf.constant([[1.0], [2.0]], dtype)
        value, slopes = modes.value_and_gradients(ops.lstsq, [matrix, rhs], mode)
        assert_rounded(value, [[0.2], [0.4]])
        assert value.dtype == slopes[0].dtype == slopes[1].dtype == dtype
        assert_rounded(slopes[1], [[0.12], [0.24]])

    def test_leading_axes_broadcast(self):
        matrix, rhs = matrices.example(), tf.ones([4, 1, 3, 2], tf.float64)
        value = ops.lstsq(matrix, rhs)
        matrices.assert_agree(value, tf.linalg.inv(matrix) @ rhs)

    def test_it_can_be_regularized(self):
        matrix = tf.constant(self.LOW_RANK[0])
        rhs = tf.constant([[1.0], [0.0], [2.0]], tf.float64)
        truth = tf.linalg.lstsq(matrix, rhs, l2_regularizer=0.3)
        value = ops.lstsq(matrix, rhs, l2_regularizer=0.3)
        matrices.assert_agree(
            value, truth, 160, why="TensorFlow solves the normal equations"
        )

    @pytest.mark.parametrize(
        ("weight", "error", "message"),
        [
            (-1, ValueError, r"`l2_regularizer` must be at least 0. Received: .*=-1"),
            (NAN, ValueError, r"`l2_regularizer` must be at least 0. Received: .*=nan"),
            ("1", TypeError, r"`l2_regularizer` must be a number"),
        ],
    )
    def test_a_wrong_weight_is_refused(self, weight, error, message):
        with pytest.raises(error, match=message):
            ops.lstsq(tf.eye(2), tf.eye(2), weight)

    def test_a_right_side_of_another_height_is_refused(self):
        message = r"equally many rows. Received: .*\(3, 2\), rhs of shape \(2, 2\)"
        with pytest.raises(ValueError, match=message):
            ops.lstsq(tf.ones([3, 2]), tf.ones([2, 2]))
