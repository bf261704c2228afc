"""The pseudoinverse, and the solution of least squares that it gives."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import custom_gradient, custom_gradient_in, known, local
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels import precision
from tfsafe.ops.linalg import matrix as _matrix


def pinv(a: Any, rcond: float | None = None, *, name: str = "pinv") -> tf.Tensor:
    """Computes the pseudoinverses of matrices, of whatever rank.

    The gradient through the singular vectors, as `tf.linalg.pinv` has it, loses terms
    where singular values are equal; this one is written in terms of the pseudoinverse.

    Args:
      a: Floating `Tensor` of shape `[..., m, n]`.
      rcond: Singular values up to `rcond` times the largest count as 0; if None,
        `10 * max(m, n) * eps`.
      name: Name scope of the operations created.

    Returns:
      `Tensor` of shape `[..., n, m]` with the dtype of `a`.

    Raises:
      TypeError: If `a` does not have a floating dtype, or if `rcond` is not a number.
      ValueError: If `a` has less than two axes.

    Numerics:
      error      a few ulp times the condition number of what is not 0
      not full   the gradient is that among matrices of the same rank, at every order (a
                 bounded choice: a change of the rank makes the pseudoinverse jump)
      inf        value NaN, gradient NaN
      NaN        value NaN, gradient NaN
      A matrix with a zero incoming gradient gets a zero gradient.
      `tf.autodiff.ForwardAccumulator` is refused with an error.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[2.0, 0.0], [0.0, 0.0]])
      >>> print(tfsafe.ops.pinv(x).numpy().tolist())
      [[0.5, 0.0], [0.0, 0.0]]

    References:
      Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least
      squares problems whose variables separate, SIAM Journal on Numerical Analysis,
      1973.
    """
    with tf.name_scope(name):
        a = _matrix.matrix(a, "a")
        least = None if rcond is None else _args.number(rcond, "rcond", a.dtype)
        return precision.in_float32(
            lambda a: _matrix.over_batch(lambda x: pseudoinverse(x, least), a), a
        )


def lstsq(
    matrix: Any, rhs: Any, l2_regularizer: float = 0.0, *, name: str = "lstsq"
) -> tf.Tensor:
    """Solves least squares: the shortest `x` that makes `matrix @ x - rhs` shortest.

    `tf.linalg.lstsq` is NaN for a matrix that does not have full rank, or needs
    `fast=False`, which has neither gradient nor XLA form.

    Args:
      matrix: Floating `Tensor` of shape `[..., m, n]`.
      rhs: Floating `Tensor` of shape `[..., m, k]` with the dtype of `matrix`. The
        leading axes broadcast.
      l2_regularizer: Weight, at least 0, of `||x||**2` added to the squared residual.
      name: Name scope of the operations created.

    Returns:
      `Tensor` of shape `[..., n, k]` with the dtype of `matrix`.

    Raises:
      TypeError: If a dtype is not floating, if the two differ, or if `l2_regularizer`
        is not a number.
      ValueError: If one has less than two axes, if the numbers of rows differ, or if
        `l2_regularizer` is negative.

    Numerics:
      error      a few ulp times the condition number of what is not 0, and its square
                 for a residual
      not full   the solution of the smallest norm; the gradient is that among matrices
                 of the same rank, at every order
      inf        value NaN, gradient NaN
      NaN        value NaN, gradient NaN
      A matrix with a zero incoming gradient gets a zero gradient.
      `tf.autodiff.ForwardAccumulator` is refused with an error.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> matrix = tf.constant([[1.0, 2.0], [2.0, 4.0]])
      >>> print(tfsafe.ops.lstsq(matrix, tf.constant([[1.0], [2.0]])).numpy())
      [[0.2]
       [0.4]]

    References:
      Golub and Pereyra, 1973, as for `pinv`.
    """
    with tf.name_scope(name):
        matrix, rhs = _args.float_tensors(matrix=matrix, rhs=rhs)
        matrix, rhs = _matrix.matrix(matrix, "matrix"), _matrix.matrix(rhs, "rhs")
        weight = _args.number(l2_regularizer, "l2_regularizer", matrix.dtype)
        if not weight >= 0:
            raise ValueError(
                "`l2_regularizer` must be at least 0. Received: "
                f"l2_regularizer={l2_regularizer!r}."
            )
        _check_rows(matrix, rhs)
        return precision.in_float32(
            lambda a, b: _matrix.over_batch(
                _solve, *_regularized(*_aligned(a, b), weight)
            ),
            matrix,
            rhs,
        )


def _check_rows(matrix: tf.Tensor, rhs: tf.Tensor) -> None:
    if matrix.shape.rank is None or rhs.shape.rank is None:
        return
    if not matrix.shape[-2:-1].is_compatible_with(rhs.shape[-2:-1]):
        raise ValueError(
            "`matrix` and `rhs` must have equally many rows. Received: matrix of shape "
            f"{matrix.shape}, rhs of shape {rhs.shape}. A vector needs an axis of "
            "size 1 at its end, `rhs[..., tf.newaxis]`."
        )


def _aligned(matrix: tf.Tensor, rhs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Broadcasts the leading axes."""
    ranks = matrix.shape.rank, rhs.shape.rank
    if None not in ranks and matrix.shape[:-2] == rhs.shape[:-2]:
        return matrix, rhs
    lead = tf.broadcast_dynamic_shape(tf.shape(matrix)[:-2], tf.shape(rhs)[:-2])
    matrix, rhs = (
        tf.broadcast_to(x, tf.concat([lead, tf.shape(x)[-2:]], 0))
        for x in (matrix, rhs)
    )
    return matrix, rhs


def _regularized(
    matrix: tf.Tensor, rhs: tf.Tensor, weight: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Appends the rows that say `sqrt(weight) * x = 0`."""
    if weight == 0:
        return matrix, rhs
    shape = tf.shape(matrix)
    below = tf.eye(shape[-1], batch_shape=shape[:-2], dtype=matrix.dtype)
    below *= tf.constant(weight**0.5, matrix.dtype)
    zeros = tf.zeros_like(tf.matmul(below, matrix, transpose_b=True) @ rhs)
    return tf.concat([matrix, below], -2), tf.concat([rhs, zeros], -2)


@custom_gradient_in(1)
def pseudoinverse(x: tf.Tensor, rcond: float | None = None) -> Any:
    """Computes pseudoinverses."""
    value = _by_singular_values(x, rcond)
    value += _matrix.last(tf.zeros_like(value), "pinv", "forward derivative", x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        result = local(value)

        def slope(upstreams: Any, args: Any) -> Any:
            inverse = known(result, lambda x: pseudoinverse(x, rcond), args[0])
            return [_golub_pereyra(args[0], inverse, *upstreams)]

        return _matrix.guarded(slope, [upstream], [x])[0]

    return value, vjp


def _by_singular_values(x: tf.Tensor, rcond: float | None) -> tf.Tensor:
    x, nans = _matrix.finite(x)
    s, u, v = _matrix.svd(x)
    if rcond is None:
        larger = tf.cast(tf.reduce_max(tf.shape(x)[1:]), x.dtype)
        least = 10 * larger * LIMITS[x.dtype.name].eps
    else:
        least = tf.constant(rcond, x.dtype)
    # The largest comes first. A slice, because there may be none.
    counts = s > least * s[:, :1]
    inverse = tf.where(counts, 1 / tf.where(counts, s, tf.ones_like(s)), 0)
    return tf.matmul(v * inverse[:, tf.newaxis], u, transpose_b=True) + nans


def _golub_pereyra(x: tf.Tensor, p: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    back = tf.matmul(tf.matmul(p, upstream, transpose_a=True), p, transpose_b=True)
    # The parts of the upstream outside of the row space and of the column space.
    rows = tf.linalg.matrix_transpose(upstream - upstream @ x @ p)
    columns = tf.linalg.matrix_transpose(upstream - p @ (x @ upstream))
    rows = tf.matmul(rows @ p, p, transpose_b=True)
    columns = tf.matmul(p, p @ columns, transpose_a=True)
    return rows + columns - back


@custom_gradient
def _solve(matrix: tf.Tensor, rhs: tf.Tensor) -> Any:
    inverse = pseudoinverse(matrix)

    def vjp(upstream: tf.Tensor) -> list[tf.Tensor]:
        result = local(inverse)

        def slopes(upstreams: Any, args: Any) -> Any:
            (a, b), (upstream,) = args, upstreams
            p = known(result, pseudoinverse, a)
            x = p @ b
            y = tf.matmul(p, upstream, transpose_a=True)
            residual = tf.matmul(b - a @ x, p @ y, transpose_b=True)
            dual = upstream - tf.matmul(a, y, transpose_a=True)
            outside = tf.matmul(
                tf.matmul(p, x, transpose_a=True), dual, transpose_b=True
            )
            return [residual + outside - tf.matmul(y, x, transpose_b=True), y]

        return _matrix.guarded(slopes, [upstream], [matrix, rhs])

    return inverse @ rhs, vjp
