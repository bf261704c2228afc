"""Functions made of exponentials that neither overflow nor cancel."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import exponential, precision


def expm1(x: Any, *, name: str = "expm1") -> tf.Tensor:
    """Computes `exp(x) - 1` elementwise, with the digits that a small `x` needs.

    The value is that of `tf.math.expm1`. The gradient is safe under a mask, where the
    exponential overflows.

    Args:
      x: Floating `Tensor` of any shape.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`, at least -1.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     <= 4 ulp
      x = inf   value inf, slope inf
      x = -inf  value -1, slope 0
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([1e-8, 1000.0])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tf.where(x < 80, tfsafe.ops.expm1(x), 0.0)
      >>> print(y.numpy(), tape.gradient(y, x).numpy())
      [1.e-08 0.e+00] [1. 0.]
    """
    with tf.name_scope(name):
        return precision.in_float32(exponential.expm1, _args.float_tensor(x, "x"))


def log_cosh(x: Any, *, name: str = "log_cosh") -> tf.Tensor:
    """Computes `log(cosh(x))` elementwise.

    Use it for a smooth absolute error, and for the log-determinant of `tanh`, which
    is `-2 * log_cosh(x)`. The plain formula overflows at 89 in float32, and
    `|x| + log1p(exp(-2 * |x|)) - log(2)` loses every digit of a small `x`.

    Args:
      x: Floating `Tensor` of any shape.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`, at least 0.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     <= 8 ulp; float64 under XLA:CPU <= 60 ulp
      x = inf   value inf, slope 1
      x = -inf  value inf, slope -1
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.log_cosh(tf.constant([1e-4, 10.0, 1000.0])).numpy())
      [5.0000e-09 9.3069e+00 9.9931e+02]
    """
    with tf.name_scope(name):
        return precision.in_float32(exponential.log_cosh, _args.float_tensor(x, "x"))


def log1mexp(x: Any, *, name: str = "log1mexp") -> tf.Tensor:
    """Computes `log(1 - exp(x))` elementwise for `x <= 0`.

    Use it for the log-probability of a complement: if `x` is `log(p)`, the result is
    `log(1 - p)`. The plain formula is `-inf` once `exp(x)` rounds to 1.

    Args:
      x: Floating `Tensor` of any shape, at most 0.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`, at most 0.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     <= 5 ulp; float64 under XLA:CPU <= 60 ulp
      x = 0     value -inf, slope 0 (a bounded choice: the true slope is -inf)
      x = -inf  value 0, slope 0
      x > 0     value NaN, slope NaN
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.log1mexp(tf.constant([-1e-10, -50.0])).numpy())
      [-2.3025850e+01 -1.9287499e-22]

    References:
      Maechler, "Accurately Computing log(1 - exp(-|a|))", Rmpfr vignette, 2012.
    """
    with tf.name_scope(name):
        return precision.in_float32(exponential.log1mexp, _args.float_tensor(x, "x"))


def log_expm1(x: Any, *, name: str = "log_expm1") -> tf.Tensor:
    """Computes `log(exp(x) - 1)` elementwise for `x >= 0`, the inverse of softplus.

    Use it to start a positive parameter at a chosen value. The plain formula overflows
    at 89 in float32, and at 11 in float16.

    Args:
      x: Floating `Tensor` of any shape, at least 0.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    <= 5 ulp of the result or of 1, because it crosses 0 at log(2); float64
               under XLA:CPU <= 60 ulp
      x = 0    value -inf, slope 0 (a bounded choice: the true slope is infinite)
      x = inf  value inf, slope 1
      x < 0    value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.log_expm1(tf.constant([1e-10, 1.0, 100.0])).numpy())
      [-23.02585     0.5413248 100.       ]
    """
    with tf.name_scope(name):
        return precision.in_float32(exponential.log_expm1, _args.float_tensor(x, "x"))
