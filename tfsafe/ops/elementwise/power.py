"""Powers and roots, with gradients of every order at 0, and the exponential."""

import math
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import exponential, power, precision


def pow(x: Any, y: Any, *, name: str = "pow") -> tf.Tensor:
    """Computes `x ** y` elementwise, with bounded slopes at `x = 0`.

    The value is that of `tf.pow`, except that a NaN always gives NaN. The gradients of
    TensorFlow multiply 0 by infinity at `x = 0`: the slope of `x ** 0.0`, the second
    derivative of `x ** 1.0` and the third of `x ** 2.0` are NaN there.

    Args:
      x: Floating `Tensor`, the base.
      y: The exponent: a Python number, or a floating `Tensor` of the dtype of `x`, of a
        shape that broadcasts with it. A number costs less.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      error              value <= 3 ulp; slopes <= 4 ulp, and the relative change that
                         rounding `y - 1` makes
      x = 0, y = 0       value 1, slopes 0
      x = 0, y = 0.5     value 0, slopes 0 (a bounded choice: in x it is infinite)
      x = 0, y = 1       value 0, slopes 1 and 0
      x = 0, y = 2       value 0, slopes 0
      x = 0, y = -1      value inf, slopes 0 (a bounded choice)
      x = -2, y = 3      value -8, slopes 12 and 0 (a choice: none exists in y)
      x = -2, y = 0.5    value NaN, slopes NaN
      x = NaN, y = 0     value NaN, slopes NaN
      x = 1, y = NaN     value NaN, slopes NaN
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([0.0, 4.0])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.pow(x, 0.5)
      >>> print(y.numpy(), tape.gradient(y, x).numpy())
      [0. 2.] [0.   0.25]
    """
    with tf.name_scope(name):
        is_number = isinstance(y, int | float) and not isinstance(y, bool)
        if is_number and math.isfinite(y):
            x = _args.float_tensor(x, "x")
            exponent = _args.number(y, "y", x.dtype)
            return precision.in_float32(lambda x: power.constant_power(x, exponent), x)
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        return precision.in_float32(power.pow, x, y)


def exp(x: Any, *, name: str = "exp") -> tf.Tensor:
    """Computes the exponential elementwise, with gradient 0 under a mask.

    The value is that of `tf.exp`. Where that is infinite and a selection, a minimum or
    a clipping drops it, TensorFlow's gradient is 0 times infinity: a policy ratio
    `exp(log_p - old_log_p)` of one rare action makes every weight NaN.

    Args:
      x: Floating `Tensor` of any shape.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     <= 2 ulp
      x = 1000  value inf, slope inf, like every number whose exponential overflows
      x = -inf  value 0, slope 0
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([0.0, 1000.0])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tf.minimum(tfsafe.ops.exp(x), 1.2)
      >>> print(y.numpy(), tape.gradient(y, x).numpy())
      [1.  1.2] [1. 0.]
    """
    with tf.name_scope(name):
        return precision.in_float32(exponential.exp, _args.float_tensor(x, "x"))


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
