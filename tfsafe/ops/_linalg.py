"""Determinant, inverse and Cholesky's factor, the same at singular matrices in all modes."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import nan_where, silence
from tfsafe.ops import _matrix, _precision
from tfsafe.ops._elimination import eliminate, factorize
from tfsafe.ops._known import known
from tfsafe.ops._pseudoinverse import _pinv

_Gradient = Callable[[tf.Tensor], tf.Tensor]


def det(input: Any, *, name: str = "det") -> tf.Tensor:
    """Computes the determinants of square matrices; the gradient is the cofactors.

    The gradient of `tf.linalg.det` needs the inverse, raises an error for a singular
    matrix, and has no XLA form. The cofactors exist for every matrix.

    Args:
      input: Floating `Tensor` of shape `[..., n, n]`.
      name: Name scope of the operations created.

    Returns:
      `Tensor` of shape `[...]` with the dtype of `input`.

    Raises:
      TypeError: If `input` does not have a floating dtype.
      ValueError: If the matrices are not square.

    Numerics:
      error     a few ulp times the condition number; the product in float64
      singular  value 0, gradient the cofactors, second gradient right as well
      n = 0     value 1
      NaN       value NaN, gradient NaN
      A matrix with a zero incoming gradient gets a zero gradient.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[1.0, 2.0], [2.0, 4.0]])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.det(x)
      >>> print(y.numpy(), tape.gradient(y, x).numpy().tolist())
      0.0 [[4.0, -2.0], [-2.0, 1.0]]

    References:
      Magnus and Neudecker, Matrix Differential Calculus, 1988, section 8.3 (Jacobi's
      formula).
    """
    with tf.name_scope(name):
        return _precision.in_float32(
            lambda x: _matrix.over_batch(_det, x), _matrix.square(input, "input")
        )


def slogdet(input: Any, *, name: str = "slogdet") -> tuple[tf.Tensor, tf.Tensor]:
    """Computes sign and logarithm of the magnitude of determinants.

    `tf.linalg.slogdet` raises an error in the gradient of a singular matrix and has no
    XLA form; `tf.linalg.logdet` is NaN there. This is also the log-determinant of a
    covariance: the second result.

    Args:
      input: Floating `Tensor` of shape `[..., n, n]`.
      name: Name scope of the operations created.

    Returns:
      Two tensors of shape `[...]` with the dtype of `input`: the sign (-1, 0 or 1) and
      `log(abs(det))`.

    Raises:
      TypeError: If `input` does not have a floating dtype.
      ValueError: If the matrices are not square.

    Numerics:
      error     a few ulp times the condition number
      gradient  the transposed inverse
      singular  sign 0, logarithm -inf, gradient the transposed pseudoinverse (a bounded
                choice: the slopes along the directions that are not singular)
      NaN       NaN
      A matrix with a zero incoming gradient gets a zero gradient.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> sign, logarithm = tfsafe.ops.slogdet(tf.constant([[1.0, 1.0], [1.0, 1.0]]))
      >>> print(sign.numpy(), logarithm.numpy())
      0.0 -inf
    """
    with tf.name_scope(name):
        x = _matrix.square(input, "input")
        wide = tf.cast(x, tf.float32) if x.dtype in _precision.HALF else x
        sign, logarithm = _matrix.over_batch(_slogdet, wide)
        return tf.cast(sign, x.dtype), tf.cast(logarithm, x.dtype)


def inv(input: Any, *, name: str = "inv") -> tf.Tensor:
    """Computes the inverses of square matrices, NaN where there is none.

    `tf.linalg.inv` raises an error for a singular matrix in eager mode and in graphs,
    also if it is one of a batch that is masked later, and returns numbers of the size
    1e7 under XLA. No kernel raises under XLA, so NaN is the answer that can be the same
    everywhere; `tfsafe.checked` turns it into an error that names the line.

    Args:
      input: Floating `Tensor` of shape `[..., n, n]`.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `input`.

    Raises:
      TypeError: If `input` does not have a floating dtype.
      ValueError: If the matrices are not square.

    Numerics:
      error     a few ulp times the condition number
      singular  value NaN, gradient NaN; only this matrix of the batch
      A matrix with a zero incoming gradient gets a zero gradient.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.inv(tf.constant([[2.0, 0.0], [0.0, 4.0]])).numpy().tolist())
      [[0.5, 0.0], [0.0, 0.25]]
    """
    with tf.name_scope(name):
        return _precision.in_float32(
            lambda x: _matrix.over_batch(_inv, x), _matrix.square(input, "input")
        )


def cholesky(input: Any, *, name: str = "cholesky") -> tf.Tensor:
    """Computes Cholesky's factor of symmetric positive semidefinite matrices.

    `tf.linalg.cholesky` returns NaN beside uninitialised memory for a singular matrix,
    such as a kernel matrix with two equal points. Its factor exists.

    Args:
      input: Floating `Tensor` of shape `[..., n, n]`, of which only the lower triangle
        is read.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `input`: lower triangular `l` with
      `l @ l.T == input`.

    Raises:
      TypeError: If `input` does not have a floating dtype.
      ValueError: If the matrices are not square.

    Numerics:
      error         a few ulp times the condition number
      semidefinite  a pivot below `n * eps` of its diagonal element counts as 0 and has
                    a column of zeros, which sends no gradient (a bounded choice: the
                    true slope is infinite)
      indefinite    value NaN in the whole matrix, gradient NaN
      A matrix with a zero incoming gradient gets a zero gradient.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.cholesky(tf.ones([2, 2])).numpy().tolist())
      [[1.0, 0.0], [1.0, 0.0]]

    References:
      Murray, Differentiation of the Cholesky decomposition, 2016, arXiv:1602.07527.
    """
    with tf.name_scope(name):
        return _precision.in_float32(
            lambda x: _matrix.over_batch(_cholesky, x), _matrix.square(input, "input")
        )


@tf.custom_gradient
def _det(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    _, pivots, sign = eliminate(x, x[:, :, :0])
    value = tf.cast(
        tf.reduce_prod(tf.cast(pivots, tf.float64), 1) * tf.cast(sign, tf.float64),
        x.dtype,
    )

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        upstream = upstream[:, tf.newaxis, tf.newaxis]
        return _weigh(upstream, _cofactors(x))

    return value, vjp


def _weigh(upstream: tf.Tensor, slope: tf.Tensor) -> tf.Tensor:
    """Returns the product, and 0 for a matrix without an incoming gradient."""
    whole = tf.broadcast_to(upstream, tf.shape(slope))
    return silence(upstream * slope, whole, [1, 2])


@tf.custom_gradient
def _cofactors(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    # In the bases of the singular vectors the matrix is diagonal.
    s, u, v = tf.linalg.svd(x, full_matrices=True)
    signs = _orientation(u) * _orientation(v)
    turn = signs[:, tf.newaxis, tf.newaxis] * u
    s = tf.cast(s, tf.float64)
    others = tf.cast(_product_without_each(s), x.dtype)
    value = tf.matmul(turn * others[:, tf.newaxis], v, transpose_b=True)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        pairs = tf.cast(_product_without_pairs(s), x.dtype)
        inner = tf.matmul(tf.matmul(turn, upstream, transpose_a=True), v)
        diagonal = tf.linalg.matvec(pairs, tf.linalg.diag_part(inner))
        crossed = tf.linalg.diag(diagonal) - pairs * tf.linalg.matrix_transpose(inner)
        slope = tf.matmul(tf.matmul(u, crossed), v, transpose_b=True)
        return silence(slope, upstream, [1, 2])

    return value, vjp


def _orientation(orthogonal: tf.Tensor) -> tf.Tensor:
    """Returns the determinants, 1 or -1, of orthogonal matrices."""
    _, pivots, sign = eliminate(orthogonal, orthogonal[:, :, :0])
    return sign * tf.reduce_prod(tf.sign(pivots), 1)


def _product_without_each(s: tf.Tensor) -> tf.Tensor:
    before = tf.math.cumprod(s, 1, exclusive=True)
    return before * tf.math.cumprod(s, 1, exclusive=True, reverse=True)


def _product_without_pairs(s: tf.Tensor) -> tf.Tensor:
    """Returns products of all but two factors, shape `[batch, n, n]`, diagonal 0."""
    identity = tf.eye(tf.shape(s)[1], dtype=s.dtype)
    # For each i the factors with a 1 in the i-th place.
    rest = tf.where(identity > 0, tf.ones([], s.dtype), s[:, tf.newaxis])
    size = tf.shape(s)[1]
    pairs = _product_without_each(tf.reshape(rest, [-1, size]))
    return tf.reshape(pairs, tf.shape(rest)) * (1 - identity)


@tf.custom_gradient
def _slogdet(x: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], Any]:
    _, pivots, sign = eliminate(x, x[:, :, :0])
    signs = sign * tf.reduce_prod(tf.sign(pivots), 1)
    logarithm = tf.reduce_sum(tf.math.log(tf.abs(pivots)), 1)

    def vjp(_: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
        singular = tf.reduce_any(tf.equal(pivots, 0), 1)[:, tf.newaxis, tf.newaxis]
        regular = tf.where(singular, tf.eye(tf.shape(x)[1], dtype=x.dtype), x)
        # The singular value decomposition is made only if there is such a matrix.
        slope = tf.cond(
            tf.reduce_any(singular),
            lambda: tf.where(singular, _pinv(x), _inv(regular)),
            lambda: _inv(regular),
        )
        upstream = upstream[:, tf.newaxis, tf.newaxis]
        return _weigh(upstream, tf.linalg.matrix_transpose(slope))

    return (signs, logarithm), vjp


@tf.custom_gradient
def _inv(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    identity = tf.eye(tf.shape(x)[1], batch_shape=tf.shape(x)[:1], dtype=x.dtype)
    solution, pivots, _ = eliminate(x, identity)
    singular = tf.reduce_any(tf.equal(pivots, 0), 1)[:, tf.newaxis, tf.newaxis]
    value = solution + nan_where(singular, x.dtype)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        inverse = known(value, _inv, x)
        inner = tf.matmul(inverse, upstream, transpose_a=True)
        slope = -tf.matmul(inner, inverse, transpose_b=True)
        return silence(slope, upstream, [1, 2])

    return value, vjp


@tf.custom_gradient
def _cholesky(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    factor, valid = factorize(x)
    value = factor + nan_where(tf.logical_not(valid)[:, tf.newaxis, tf.newaxis], x.dtype)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        lower = known(value, _cholesky, x)
        pivots = tf.linalg.diag_part(lower)
        vanishes = tf.equal(pivots, 0)
        # A vanishing pivot takes no part: its column in the factor, its row in the
        # gradient.
        filled = lower + tf.linalg.diag(tf.cast(vanishes, x.dtype))
        keeps = tf.cast(tf.logical_not(vanishes), x.dtype)
        inner = tf.matmul(lower, upstream, transpose_a=True)
        half = tf.linalg.band_part(inner, -1, 0)
        half -= 0.5 * tf.linalg.diag(tf.linalg.diag_part(half))
        half *= keeps[:, tf.newaxis] * keeps[:, :, tf.newaxis]
        left = tf.linalg.triangular_solve(filled, half, adjoint=True)
        right = tf.linalg.triangular_solve(
            filled, tf.linalg.matrix_transpose(left), adjoint=True
        )
        slope = tf.linalg.matrix_transpose(right)
        # Only the lower triangle was read.
        slope = tf.linalg.band_part(slope + right, -1, 0)
        slope -= 0.5 * tf.linalg.diag(tf.linalg.diag_part(slope))
        return silence(slope, upstream, [1, 2])

    return value, vjp
