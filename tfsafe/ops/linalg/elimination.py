"""Gaussian elimination and Cholesky's factor, one pivot after another.

TensorFlow's kernels raise an error for a singular matrix in one mode, return numbers
in another, and have no XLA form for determinants. These loops are the same in every
mode and say of each matrix of a batch where it is singular.
"""

from typing import Any

import tensorflow as tf

from tfsafe._limits import LIMITS


def eliminate(
    matrix: tf.Tensor, right: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Solves `matrix @ x = right` by elimination with partial pivoting (Gauss-Jordan).

    Args:
      matrix: Square matrices, shape `[batch, n, n]`, float32 or float64.
      right: Right sides, shape `[batch, n, m]`.

    Returns:
      The solutions, meaningless where a pivot is 0; the pivots, shape `[batch, n]`;
      and the sign of the row exchanges, shape `[batch]`, as a float.
    """
    size = tf.shape(matrix)[1]
    rows = tf.range(size)
    one = tf.ones([], matrix.dtype)

    def step(k: tf.Tensor, whole: tf.Tensor, pivots: tf.Tensor, sign: tf.Tensor) -> Any:
        # The rows above k are done.
        heights = tf.where(rows >= k, tf.abs(whole[:, :, k]), -one)
        best = tf.argmax(heights, 1, tf.int32)[:, tf.newaxis]
        at_k, at_best = tf.equal(rows, k), tf.equal(rows, best)
        of_best = tf.gather(whole, best, axis=1, batch_dims=1)
        whole = tf.where(at_best[:, :, tf.newaxis], whole[:, k, tf.newaxis], whole)
        pivot = of_best[:, :, k]
        row = tf.math.divide_no_nan(of_best, pivot[:, :, tf.newaxis])
        factors = tf.where(at_k, tf.zeros([], whole.dtype), whole[:, :, k])
        reduced = whole - factors[:, :, tf.newaxis] * row
        whole = tf.where(at_k[:, tf.newaxis], row, reduced)
        pivots = tf.where(at_k, pivot, pivots)
        sign = tf.where(tf.equal(best[:, 0], k), sign, -sign)
        return k + 1, whole, pivots, sign

    _, whole, pivots, sign = tf.while_loop(
        lambda k, *_: k < size,
        step,
        (
            tf.zeros([], tf.int32),
            tf.concat([matrix, right], 2),
            tf.ones_like(matrix[:, :, 0]),
            tf.ones_like(matrix[:, 0, 0]),
        ),
        maximum_iterations=size,
    )
    return whole[:, :, size:], pivots, sign


def factorize(matrix: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes Cholesky's factor of positive semidefinite matrices.

    A pivot that is rounding error counts as 0 if its column is rounding error as well;
    its column of the factor is 0.

    Args:
      matrix: Symmetric matrices, shape `[batch, n, n]`, whose lower triangle is
        read; float32 or float64.

    Returns:
      The lower factors, meaningless where a matrix is not positive semidefinite; and
      where it is, shape `[batch]`.
    """
    size = tf.shape(matrix)[1]
    rows = tf.range(size)
    diagonal = tf.linalg.diag_part(matrix)
    eps = tf.cast(size, matrix.dtype) * LIMITS[matrix.dtype.name].eps
    zero, one = tf.zeros([], matrix.dtype), tf.ones([], matrix.dtype)

    def step(k: tf.Tensor, rest: tf.Tensor, factor: tf.Tensor, valid: tf.Tensor) -> Any:
        column = tf.where(rows >= k, rest[:, :, k], zero)
        pivot, own = column[:, k, tf.newaxis], diagonal[:, k, tf.newaxis]
        # Of a semidefinite matrix a_jk**2 <= a_jj * a_kk; a_kk is noise here.
        bound = tf.sqrt(tf.maximum(eps * diagonal * own, zero))
        others = tf.logical_or(tf.abs(column) <= bound, tf.equal(rows, k))
        still = tf.reduce_all(others, 1, keepdims=True)
        vanishes = tf.logical_and(tf.abs(pivot) <= eps * own, still)
        root = tf.sqrt(tf.where(pivot > 0, pivot, one))
        column = tf.where(vanishes, zero, column / root)
        rest -= column[:, :, tf.newaxis] * column[:, tf.newaxis]
        factor = tf.where(tf.equal(rows, k), column[:, :, tf.newaxis], factor)
        sound = tf.logical_or(vanishes, pivot > 0)[:, 0]
        return k + 1, rest, factor, tf.logical_and(valid, sound)

    _, _, factor, valid = tf.while_loop(
        lambda k, *_: k < size,
        step,
        (
            tf.zeros([], tf.int32),
            matrix,
            tf.zeros_like(matrix),
            tf.ones(tf.shape(matrix)[:1], tf.bool),
        ),
        maximum_iterations=size,
    )
    return factor, valid
