"""Division with a documented answer at a zero denominator."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import precision, zeros


def divide(x: Any, y: Any, *, at_zero: float = 0.0, name: str = "divide") -> tf.Tensor:
    """Computes `x / y` elementwise, and `at_zero` where `y` is 0.

    Use it for a quotient whose denominator may vanish and is then meaningless: a
    rate over a count, a difference over a standard deviation. Unlike
    `tf.math.divide_no_nan` it does not turn a NaN in `x` into 0.

    Args:
      x: Floating `Tensor`, the numerator.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it.
      at_zero: The value where `y` is 0.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, if their dtypes differ, or if
        `at_zero` is not a number.
      ValueError: If the shapes do not broadcast, or if `at_zero` does not fit the
        dtype.

    Numerics:
      error           value <= 1 ulp, slopes <= 3 ulp
      y = 0           value at_zero, slopes 0 (a choice: the quotient is undefined)
      x = 0, y = 0    value at_zero, slopes 0
      x = inf, y = 0  value at_zero, slopes 0
      x = NaN, y = 0  value NaN, slopes 0
      y = inf         value 0, slopes 0
      y = NaN         value NaN, slopes NaN
      A zero incoming gradient gives zero gradients, at every x and y.
      The square of y is never formed: no intermediate result overflows where the
      slopes do not.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x, y = tf.constant([1.0, 1.0]), tf.constant([4.0, 0.0])
      >>> print(tfsafe.ops.divide(x, y).numpy())
      [0.25 0.  ]
      >>> print(tfsafe.ops.divide(x, y, at_zero=-1.0).numpy())
      [ 0.25 -1.  ]
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        at_zero = _args.number(at_zero, "at_zero", x.dtype)
        return precision.in_float32(lambda x, y: zeros.quotient(x, y, at_zero), x, y)


def reciprocal(x: Any, *, at_zero: float = 0.0, name: str = "reciprocal") -> tf.Tensor:
    """Computes `1 / x` elementwise, and `at_zero` where `x` is 0.

    This is `divide(1, x)`: for weights and rates that mean nothing at 0.

    Args:
      x: Floating `Tensor` of any shape.
      at_zero: The value where `x` is 0.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `at_zero` is not a number.
      ValueError: If `at_zero` does not fit the dtype.

    Numerics:
      error    value <= 1 ulp, slope <= 2 ulp
      x = 0    value at_zero, slope 0 (a choice: the reciprocal is undefined)
      x = inf  value 0, slope 0
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.reciprocal(tf.constant([4.0, 0.0])).numpy())
      [0.25 0.  ]
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        at_zero = _args.number(at_zero, "at_zero", x.dtype)
        return precision.in_float32(lambda x: zeros.reciprocal(x, at_zero), x)
