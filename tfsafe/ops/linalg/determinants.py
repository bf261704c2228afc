"""Determinant, inverse and Cholesky's factor, also of singular matrices."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe._gradients import custom_gradient, known, local, nan_where
from tfsafe.ops.kernels import precision
from tfsafe.ops.linalg import matrix
from tfsafe.ops.linalg.elimination import eliminate, factorize
from tfsafe.ops.linalg.pseudoinverse import pseudoinverse

_Gradient = Callable[[tf.Tensor], tf.Tensor]
_Tensors = Sequence[tf.Tensor]


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
      inf       value NaN, gradient NaN
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
        return precision.in_float32(
            lambda x: matrix.over_squares(_det, x), matrix.square(input, "input")
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
      inf       values NaN, gradient NaN
      NaN       values NaN, gradient NaN
      A matrix with a zero incoming gradient gets a zero gradient.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> sign, logarithm = tfsafe.ops.slogdet(tf.constant([[1.0, 1.0], [1.0, 1.0]]))
      >>> print(sign.numpy(), logarithm.numpy())
      0.0 -inf
    """
    with tf.name_scope(name):
        x = matrix.square(input, "input")
        wide = tf.cast(x, tf.float32) if x.dtype in precision.HALF else x
        sign, logarithm = matrix.over_squares(_slogdet, wide)
        return tf.cast(sign, x.dtype), tf.cast(logarithm, x.dtype)


def inv(input: Any, adjoint: bool = False, *, name: str = "inv") -> tf.Tensor:
    """Computes the inverses of square matrices, NaN where there is none.

    `tf.linalg.inv` raises an error for a singular matrix in eager mode and in graphs,
    also if it is one of a batch that is masked later, and returns numbers of the size
    1e7 under XLA. No kernel raises under XLA, so NaN is the answer that can be the same
    everywhere; `tfsafe.checked` turns it into an error that names the line.

    Args:
      input: Floating `Tensor` of shape `[..., n, n]`.
      adjoint: Whether to return the transposed inverses.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `input`.

    Raises:
      TypeError: If `input` does not have a floating dtype.
      ValueError: If the matrices are not square.

    Numerics:
      error     a few ulp times the condition number
      singular  value NaN, gradient NaN; only this matrix of the batch
      inf       value NaN, gradient NaN
      NaN       value NaN, gradient NaN
      A matrix with a zero incoming gradient gets a zero gradient.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.inv(tf.constant([[2.0, 0.0], [0.0, 4.0]])).numpy().tolist())
      [[0.5, 0.0], [0.0, 0.25]]
    """
    with tf.name_scope(name):
        value = precision.in_float32(
            lambda x: matrix.over_squares(_inv, x), matrix.square(input, "input")
        )
        return tf.linalg.matrix_transpose(value) if adjoint else value


def cholesky(input: Any, *, name: str = "cholesky") -> tf.Tensor:
    """Computes Cholesky's factor of symmetric positive semidefinite matrices.

    `tf.linalg.cholesky` returns NaN and uninitialised memory for a singular matrix,
    such as a kernel matrix with two equal points. Its factor exists.

    Args:
      input: Floating `Tensor` of shape `[..., n, n]`, whose lower triangle only
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
      inf           value NaN, gradient NaN
      NaN           value NaN, gradient NaN
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
        return precision.in_float32(
            lambda x: matrix.over_squares(_cholesky, x), matrix.square(input, "input")
        )


@custom_gradient
def _det(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    clean, nans = matrix.finite(x)
    _, pivots, sign = eliminate(clean, clean[:, :, :0])
    # In float64 the product does not overflow on the way.
    product = tf.reduce_prod(tf.cast(pivots, tf.float64), 1)
    value = tf.cast(product * tf.cast(sign, tf.float64), x.dtype) + nans[:, 0, 0]

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        def slope(upstreams: _Tensors, args: _Tensors) -> list[tf.Tensor]:
            return [_each(*upstreams) * _cofactors(*args)]

        return matrix.guarded(slope, [upstream], [x])[0]

    return value, vjp


def _each(x: tf.Tensor) -> tf.Tensor:
    return x[:, tf.newaxis, tf.newaxis]


@custom_gradient
def _cofactors(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    # In the bases of the singular vectors the matrix is diagonal.
    clean, nans = matrix.finite(x)
    s, u, v = tf.linalg.svd(clean, full_matrices=True)
    turn = _each(_orientation(u) * _orientation(v)) * u
    s = tf.cast(s, tf.float64)
    others = tf.cast(_product_without_each(s), x.dtype)
    value = tf.matmul(turn * others[:, tf.newaxis], v, transpose_b=True)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        pairs = tf.cast(_product_without_pairs(s), x.dtype)
        inner = tf.matmul(tf.matmul(turn, upstream, transpose_a=True), v)
        diagonal = tf.linalg.matvec(pairs, tf.linalg.diag_part(inner))
        crossed = tf.linalg.diag(diagonal) - pairs * tf.linalg.matrix_transpose(inner)
        slope = tf.matmul(tf.matmul(u, crossed), v, transpose_b=True)
        return matrix.last(slope + nans, "det", "third derivative", upstream, x)

    return value + nans, vjp


def _orientation(orthogonal: tf.Tensor) -> tf.Tensor:
    """Returns the determinants, 1 or -1, of orthogonal matrices."""
    _, pivots, sign = eliminate(orthogonal, orthogonal[:, :, :0])
    return sign * tf.reduce_prod(tf.sign(pivots), 1)


def _product_without_each(s: tf.Tensor) -> tf.Tensor:
    before = tf.math.cumprod(s, 1, exclusive=True)
    return before * tf.math.cumprod(s, 1, exclusive=True, reverse=True)


def _product_without_pairs(s: tf.Tensor) -> tf.Tensor:
    """Returns products of all but two factors, shape `[batch, n, n]`, diagonal 0."""
    size = tf.shape(s)[1]
    identity = tf.eye(size, dtype=s.dtype)
    # For each i the factors with a 1 in the i-th place.
    rest = tf.where(identity > 0, tf.ones([], s.dtype), s[:, tf.newaxis])
    pairs = _product_without_each(tf.reshape(rest, [-1, size]))
    return tf.reshape(pairs, tf.shape(rest)) * (1 - identity)


@custom_gradient
def _slogdet(x: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], Any]:
    clean, nans = matrix.finite(x)
    _, pivots, sign = eliminate(clean, clean[:, :, :0])
    signs = sign * tf.reduce_prod(tf.sign(pivots), 1) + nans[:, 0, 0]
    logarithm = tf.reduce_sum(tf.math.log(tf.abs(pivots)), 1) + nans[:, 0, 0]
    singular = _each(tf.reduce_any(tf.equal(pivots, 0), 1))

    def vjp(_: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
        is_singular = local(singular)

        def slope(upstreams: _Tensors, args: _Tensors) -> list[tf.Tensor]:
            inverse = _inverse_or_pseudoinverse(args[0], is_singular)
            return [_each(*upstreams) * tf.linalg.matrix_transpose(inverse)]

        return matrix.guarded(slope, [upstream], [x])[0]

    return (signs, logarithm), vjp


def _inverse_or_pseudoinverse(x: tf.Tensor, singular: tf.Tensor) -> tf.Tensor:
    # Each takes only the matrices that it is for. Not in a `tf.cond`, whose second
    # gradient fails in a graph.
    regular = tf.where(singular, tf.eye(tf.shape(x)[1], dtype=x.dtype), x)
    others = tf.where(singular, x, tf.zeros([], x.dtype))
    return tf.where(singular, pseudoinverse(others), _inv(regular))


@custom_gradient
def _inv(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    clean, nans = matrix.finite(x)
    identity = tf.eye(tf.shape(x)[1], batch_shape=tf.shape(x)[:1], dtype=x.dtype)
    solution, pivots, _ = eliminate(clean, identity)
    singular = _each(tf.reduce_any(tf.equal(pivots, 0), 1))
    value = solution + nan_where(singular, x.dtype) + nans

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        result = local(value)

        def slope(upstreams: _Tensors, args: _Tensors) -> list[tf.Tensor]:
            inverse = known(result, _inv, *args)
            inner = tf.matmul(inverse, *upstreams, transpose_a=True)
            return [-tf.matmul(inner, inverse, transpose_b=True)]

        return matrix.guarded(slope, [upstream], [x])[0]

    return value, vjp


@custom_gradient
def _cholesky(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    clean, nans = matrix.finite(tf.linalg.band_part(x, -1, 0))
    factor, valid = factorize(clean)
    value = factor + nan_where(_each(tf.logical_not(valid)), x.dtype) + nans

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        result = local(value)

        def slope(upstreams: _Tensors, args: _Tensors) -> list[tf.Tensor]:
            return [_through_factor(known(result, _cholesky, *args), *upstreams)]

        return matrix.guarded(slope, [upstream], [x])[0]

    return value, vjp


def _through_factor(lower: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    vanishes = tf.equal(tf.linalg.diag_part(lower), 0)
    # With 1 in place of the vanishing pivots it is the factor of another matrix, whose
    # other columns move as ours do.
    filled = lower + tf.linalg.diag(tf.cast(vanishes, lower.dtype))
    keeps = tf.cast(tf.logical_not(vanishes), lower.dtype)
    half = _lower_half(
        tf.matmul(filled, upstream * keeps[:, tf.newaxis], transpose_a=True)
    )
    left = tf.linalg.triangular_solve(filled, half, adjoint=True)
    right = tf.linalg.triangular_solve(
        filled, tf.linalg.matrix_transpose(left), adjoint=True
    )
    # Symmetric, as that of `tf.linalg.cholesky`.
    return (right + tf.linalg.matrix_transpose(right)) / 2


def _lower_half(x: tf.Tensor) -> tf.Tensor:
    """Returns the lower triangle with half of the diagonal."""
    return tf.linalg.band_part(x, -1, 0) - tf.linalg.diag(tf.linalg.diag_part(x)) / 2
