"""Square root and its reciprocal, with bounded slopes at 0."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import power, precision


def sqrt(x: Any, *, name: str = "sqrt") -> tf.Tensor:
    """Computes the square root elementwise, with slope 0 at 0.

    Use it for standard deviations and distances. The slope of `tf.sqrt` at 0 is
    infinite, so that two equal points, or a constant column, make a NaN gradient.

    Args:
      x: Floating `Tensor` of any shape, at least 0.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    value <= 1 ulp, slope <= 2 ulp
      x = 0    value 0, slope 0 (a bounded choice: the true slope is infinite)
      x = inf  value inf, slope 0
      x < 0    value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([0.0, 4.0])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.sqrt(x)
      >>> print(y.numpy(), tape.gradient(y, x).numpy())
      [0. 2.] [0.   0.25]
    """
    with tf.name_scope(name):
        return precision.in_float32(power.sqrt, _args.float_tensor(x, "x"))


def rsqrt(x: Any, *, at_zero: float = 0.0, name: str = "rsqrt") -> tf.Tensor:
    """Computes `1 / sqrt(x)` elementwise, and `at_zero` where `x` is 0.

    Use it to divide by a standard deviation or a length that may vanish:
    `(x - mean) * rsqrt(variance)` is 0 in a constant column, with gradient 0.

    Args:
      x: Floating `Tensor` of any shape, at least 0.
      at_zero: The value where `x` is 0. `tf.math.rsqrt` has infinity there.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `at_zero` is not a number.
      ValueError: If `at_zero` does not fit the dtype.

    Numerics:
      error    value <= 2 ulp, slope <= 4 ulp
      x = 0    value at_zero, slope 0 (a choice: both are infinite)
      x = inf  value 0, slope 0
      x < 0    value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.rsqrt(tf.constant([0.0, 4.0])).numpy())
      [0.  0.5]
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        at_zero = _args.number(at_zero, "at_zero", x.dtype)
        return precision.in_float32(lambda x: power.rsqrt(x, at_zero), x)
