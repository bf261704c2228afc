"""Logarithms: of `x`, of `1 + x`, of the odds and of the sigmoid."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import logarithm, precision


def log(x: Any, *, name: str = "log") -> tf.Tensor:
    """Computes the natural logarithm elementwise, with slope 0 at 0.

    The value is that of `tf.math.log`. The gradient is safe under a mask:
    `tf.where(x > 0, log(x), 0.0)` has slope 0 where `x` is 0, not NaN.

    Args:
      x: Floating `Tensor` of any shape, at least 0.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    <= 2 ulp
      x = 0    value -inf, slope 0 (a bounded choice: the true slope is infinite)
      x = inf  value inf, slope 0
      x < 0    value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([0.0, 2.0])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tf.where(x > 0, tfsafe.ops.log(x), 0.0)
      >>> print(tape.gradient(y, x).numpy())
      [0.  0.5]
    """
    with tf.name_scope(name):
        return precision.in_float32(logarithm.log, _args.float_tensor(x, "x"))


def log1p(x: Any, *, name: str = "log1p") -> tf.Tensor:
    """Computes `log(1 + x)` elementwise, with slope 0 at -1.

    The value is that of `tf.math.log1p`, which keeps the digits of a small `x`. The
    gradient is safe under a mask.

    Args:
      x: Floating `Tensor` of any shape, at least -1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    <= 3 ulp; float64 under XLA:CPU <= 60 ulp
      x = -1   value -inf, slope 0 (a bounded choice: the true slope is infinite)
      x = inf  value inf, slope 0
      x < -1   value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([-1.0, 1e-8])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tf.where(x > -1, tfsafe.ops.log1p(x), 0.0)
      >>> print(y.numpy(), tape.gradient(y, x).numpy())
      [0.e+00 1.e-08] [0. 1.]
    """
    with tf.name_scope(name):
        return precision.in_float32(logarithm.log1p, _args.float_tensor(x, "x"))


def logit(x: Any, *, name: str = "logit") -> tf.Tensor:
    """Computes the log-odds `log(x / (1 - x))` elementwise, the inverse of the sigmoid.

    Near 1/2, where the odds are near 1, the plain formula loses the digits of the
    value; here it keeps them. The logit of a probability that was rounded to 1 is
    infinite: if the probability is the output of a sigmoid, keep its argument instead.

    Args:
      x: Floating `Tensor` of any shape, from 0 to 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    <= 4 ulp
      x = 0    value -inf, slope 0 (a bounded choice: the true slope is infinite)
      x = 1    value inf, slope 0 (the same choice)
      x < 0    value NaN, slope NaN
      x > 1    value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.logit(tf.constant([1e-30, 0.50001, 1.0])).numpy())
      [-6.9078e+01  4.0054e-05         inf]
    """
    with tf.name_scope(name):
        return precision.in_float32(logarithm.logit, _args.float_tensor(x, "x"))


def log_sigmoid(x: Any, *, name: str = "log_sigmoid") -> tf.Tensor:
    """Computes `log(1 / (1 + exp(-x)))` elementwise.

    Use it for the log-probability of a binary outcome. `log(sigmoid(x))` is `-inf`
    with a NaN gradient once the sigmoid underflows, at -104 in float32 and at -18 in
    float16, and 0 with slope 0 once it rounds to 1.

    Args:
      x: Floating `Tensor` of any shape.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`, at most 0.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     <= 4 ulp
      x = inf   value 0, slope 0
      x = -inf  value -inf, slope 1
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.log_sigmoid(tf.constant([-200.0, 0.0, 50.0])).numpy())
      [-2.0000000e+02 -6.9314718e-01 -1.9287499e-22]

    References:
      Maechler, "Accurately Computing log(1 - exp(-|a|))", Rmpfr vignette, 2012,
      for `log(1 + exp(x))`.
    """
    with tf.name_scope(name):
        return precision.in_float32(logarithm.log_sigmoid, _args.float_tensor(x, "x"))
