"""Functions of the eigenvalues or singular values of a matrix."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._gradients import custom_gradient
from tfsafe.ops.kernels import precision
from tfsafe.ops.linalg import divided_differences, matrix

_Function = Callable[[tf.Tensor], tf.Tensor]


def spectral_function(
    a: Any, function: _Function, *, name: str = "spectral_function"
) -> tf.Tensor:
    """Computes `v @ diag(function(w)) @ v.T` of symmetric matrices `v @ diag(w) @ v.T`.

    Roots, logarithms, powers and inverse roots (whitening) of covariances. The
    gradient through the eigenvectors of `tf.linalg.eigh` loses the terms of
    eigenvalues that are equal, which no change of that function can bring back: the
    vectors have no gradient there. Their composition has one.

    Args:
      a: Floating `Tensor` of shape `[..., n, n]`, whose symmetric part counts.
      function: Elementwise and differentiable, of a tensor of any shape, such as
        `tfsafe.ops.sqrt`. It may use tensors and variables of shape `[]`.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `a`, symmetric.

    Raises:
      TypeError: If `a` does not have a floating dtype, or `function` is not callable.
      ValueError: If the matrices are not square, or if `function` changes the shape.

    Numerics:
      error             a few ulp of the largest value of `function`
      equal eigenvalues the exact gradient, and that of the gradient
      infinite slope    0 for the pairs of equal eigenvalues there (a bounded choice)
      inf               value NaN, gradient NaN
      NaN               value NaN, gradient NaN
      A matrix with a zero incoming gradient gets a zero gradient.
      The third derivative and `tf.autodiff.ForwardAccumulator` are refused with an
      error.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> covariance = tf.constant([[4.0, 0.0], [0.0, 4.0]])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(covariance)
      ...     y = tfsafe.ops.spectral_function(covariance, tfsafe.ops.rsqrt)[0, 1]
      >>> print(tape.gradient(y, covariance).numpy().tolist())
      [[0.0, -0.03125], [-0.03125, 0.0]]

    References:
      Daleckii and Krein, 1965; Higham, Functions of Matrices, 2008, theorem 3.11.
    """
    with tf.name_scope(name):
        a = matrix.square(a, "a")
        function = _callable(function)

        def value(x: tf.Tensor) -> tf.Tensor:
            symmetric = (x + tf.linalg.matrix_transpose(x)) / 2
            w, v = _eigen(tf.stop_gradient(symmetric))
            values = _checked(function, w)
            return _rebuild(symmetric, w, v, values, function, "spectral_function")

        return precision.in_float32(lambda a: matrix.over_batch(value, a), a)


def singular_value_function(
    a: Any, function: _Function, *, name: str = "singular_value_function"
) -> tf.Tensor:
    """Computes `u @ diag(function(s)) @ v.T` of matrices `u @ diag(s) @ v.T`.

    Clipping, shrinking and powers of singular values. The gradient through the vectors
    of `tf.linalg.svd` loses the terms of singular values that are equal, which no
    change of that function can bring back: the vectors have no gradient there. Their
    composition has one.

    Args:
      a: Floating `Tensor` of shape `[..., m, n]`.
      function: Elementwise and differentiable, of a tensor of any shape that is not
        negative, such as `tfsafe.ops.sqrt`. It may use tensors and variables of shape
        `[]`.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `a`.

    Raises:
      TypeError: If `a` does not have a floating dtype, or `function` is not callable.
      ValueError: If `a` has less than two axes, or if `function` changes the shape.

    Numerics:
      error          a few ulp of the largest value of `function`
      equal values   the exact gradient, and that of the gradient
      singular       the exact gradient where `function(0)` is 0; else the vectors, and
                     with them the value, are not unique
      infinite slope 0 for the pairs of equal values there (a bounded choice)
      inf            value NaN, gradient NaN
      NaN            value NaN, gradient NaN
      A matrix with a zero incoming gradient gets a zero gradient.
      The third derivative and `tf.autodiff.ForwardAccumulator` are refused with an
      error. Gradients take memory for
      matrices with `m + n` rows.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[1.0, 0.0], [0.0, 1.0]])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.singular_value_function(x, tf.square)[0, 1]
      >>> print(tape.gradient(y, x).numpy().round(3))
      [[0.  1.5] [0.5 0. ]]

    References:
      Noferini, A formula for the Frechet derivative of a generalized matrix function,
      SIAM Journal on Matrix Analysis and Applications, 2017.
    """
    with tf.name_scope(name):
        a = matrix.matrix(a, "a")
        function = _callable(function)

        def value(x: tf.Tensor) -> tf.Tensor:
            # The eigenvalues of [[0, x], [x.T, 0]] are the singular values, their
            # negatives, and zeros. An odd function of it has the result as a block.
            s, w, v = _mirrored(tf.stop_gradient(x))
            f = _checked(function, s)
            values = tf.concat([f, -f, tf.zeros_like(w[:, 2 * tf.shape(s)[1] :])], 1)
            whole = _rebuild(
                _off_diagonal(x),
                w,
                v,
                values,
                _odd(function),
                "singular_value_function",
            )
            rows = tf.shape(x)[1]
            return tf.ensure_shape(whole[:, :rows, rows:], x.shape)

        return precision.in_float32(lambda a: matrix.over_batch(value, a), a)


def _callable(function: Any) -> _Function:
    if not callable(function):
        raise TypeError(
            "`function` must be a function of a tensor, such as `tfsafe.ops.sqrt`. "
            f"Received: function={function!r}."
        )
    return _compat.as_converted(function)


def _checked(function: _Function, w: tf.Tensor) -> tf.Tensor:
    values = function(w)
    if not values.shape.is_compatible_with(w.shape) or values.dtype != w.dtype:
        raise ValueError(
            "`function` must act on each element, and keep the shape and the dtype. "
            f"Received: shape={values.shape}, dtype={values.dtype.name} for a tensor "
            f"of shape {w.shape} and dtype {w.dtype.name}."
        )
    return values


def _eigen(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    x, nans = matrix.finite(x)
    w, v = tf.linalg.eigh(x)
    return w + nans[:, 0], v + nans


def _mirrored(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns singular values, and eigenvalues and vectors of `_off_diagonal(x)`."""
    x, nans = matrix.finite(x)
    s, u, v = matrix.svd(x, full_matrices=True)
    s += nans[:, 0]
    size = tf.shape(s)[1]
    half = tf.constant(0.5**0.5, x.dtype)
    above, below = half * u[:, :, :size], half * v[:, :, :size]
    # One of these has no columns.
    left, right = u[:, :, size:], v[:, :, size:]
    upper = tf.concat([above, above, left], 2)
    upper = tf.pad(upper, [[0, 0], [0, 0], [0, tf.shape(right)[2]]])
    lower = tf.concat([below, -below], 2)
    lower = tf.pad(lower, [[0, 0], [0, 0], [0, tf.shape(left)[2]]])
    lower = tf.concat([lower, right], 2)
    w = tf.concat([s, -s], 1)
    w = tf.pad(w, [[0, 0], [0, tf.shape(left)[2] + tf.shape(right)[2]]])
    return s, w, tf.concat([upper, lower], 1) + nans


def _off_diagonal(x: tf.Tensor) -> tf.Tensor:
    rows, columns = tf.shape(x)[1], tf.shape(x)[2]
    above = tf.pad(x, [[0, 0], [0, columns], [rows, 0]])
    return above + tf.linalg.matrix_transpose(above)


def _odd(function: _Function) -> _Function:
    def odd(w: tf.Tensor) -> tf.Tensor:
        value = function(tf.where(w < 0, -w, w))
        return tf.where(w < 0, -value, value)

    return odd


def _rebuild(
    a: tf.Tensor,
    w: tf.Tensor,
    v: tf.Tensor,
    values: tf.Tensor,
    function: _Function,
    name: str,
) -> tf.Tensor:
    """Returns `v @ diag(values) @ v.T`, with its gradient in `a` and in `values`.

    Args:
      a: Symmetric matrices, shape `[batch, n, n]`.
      w: Their eigenvalues, constant.
      v: Their eigenvectors, constant.
      values: `function(w)`, which carries the gradient to what `function` uses.
      function: Elementwise.
      name: The public function, for errors.
    """
    inverse = tf.linalg.matrix_transpose(v)

    def turned(x: tf.Tensor) -> tf.Tensor:
        symmetric = (x + tf.linalg.matrix_transpose(x)) / 2
        return inverse @ symmetric @ v

    def back(x: tf.Tensor) -> tf.Tensor:
        return v @ x @ inverse

    @custom_gradient
    def rebuilt(a: tf.Tensor, values: tf.Tensor) -> Any:
        def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            table = divided_differences.first(function, w)
            of_values = tf.linalg.diag_part(turned(upstream))
            # Differentiable in the upstream, and not in `a`.
            reason = "second derivative in it and in what `function` uses"
            end = matrix.last(tf.zeros_like(of_values), name, reason, a)
            of_values = matrix.zero_unused(of_values + end, [upstream])
            return slope(upstream, a, table), of_values

        value = tf.matmul(v * values[:, tf.newaxis], inverse)
        end = matrix.last(tf.zeros_like(value), name, "forward derivative", a)
        return value + end, vjp

    @custom_gradient
    def slope(upstream: tf.Tensor, a: tf.Tensor, table: tf.Tensor) -> Any:
        inner = turned(upstream)
        value = back(tf.math.multiply_no_nan(table, inner))

        def vjp(outer: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            crossed = turned(outer)
            curved = back(
                _bilinear(
                    divided_differences.second(function, w, table), inner, crossed
                )
            )
            used = outer, upstream, a, table
            of_a, of_table = (
                matrix.last(_silenced(each, outer, upstream), name, reason, *used)
                for each in (curved, crossed * inner)
            )
            return slope(outer, a, table), of_a, of_table

        reason = "third derivative"
        return matrix.zero_unused(value, [upstream]), vjp

    return rebuilt(a, values)


def _silenced(slope: tf.Tensor, *upstreams: tf.Tensor) -> tf.Tensor:
    """Returns 0 where one of them is 0 in the whole matrix."""
    for each in upstreams:
        slope = matrix.zero_unused(slope, [each])
    return slope


def _bilinear(second: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Sums `second_ikj * (x_ik * y_kj + y_ik * x_kj)` over k."""
    left, right = x[:, :, :, tf.newaxis], y[:, tf.newaxis]
    products = left * right + y[:, :, :, tf.newaxis] * x[:, tf.newaxis]
    return tf.reduce_sum(tf.math.multiply_no_nan(second, products), 2)
