"""Products and quotients that are 0 where their first factor is."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import logarithm, precision


def xlogy(x: Any, y: Any, *, name: str = "xlogy") -> tf.Tensor:
    """Computes `x * log(y)` elementwise, and 0 where `x` is 0.

    Use it for entropies, cross-entropies and log-likelihoods. Unlike
    `tf.math.xlogy` it has the slope `log(y)` in `x` at `x = 0` too, and a NaN in `y`
    is not turned into 0 there.

    Args:
      x: Floating `Tensor`, the factor.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it, at
        least 0.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      error           <= 3 ulp
      x = 0, y > 0    value 0, slopes log(y) and 0
      x = 0, y = 0    value 0, slopes 0 (a bounded choice: in x it is -inf)
      x > 0, y = 0    value -inf, slopes 0 (a bounded choice: they are infinite)
      x = 0, y < 0    value 0, slopes NaN and 0
      x > 0, y < 0    value NaN, slopes NaN
      x = 0, y = inf  value 0, slopes inf and 0
      x = 0, y = NaN  value NaN, slopes NaN and 0
      x = NaN, y > 0  value NaN, slopes log(y) and NaN
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> p = tf.constant([0.0, 0.5, 0.5])
      >>> print(-tf.reduce_sum(tfsafe.ops.xlogy(p, p)).numpy())
      0.6931472
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        return precision.in_float32(logarithm.xlogy, x, y)


def xlog1py(x: Any, y: Any, *, name: str = "xlog1py") -> tf.Tensor:
    """Computes `x * log(1 + y)` elementwise, and 0 where `x` is 0.

    Use it for log-likelihoods with a complement, as `xlog1py(1 - k, -p)`. Unlike
    `tf.math.xlog1py` it has the slope `log(1 + y)` in `x` at `x = 0` too, and a NaN in
    `y` is not turned into 0 there.

    Args:
      x: Floating `Tensor`, the factor.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it, at
        least -1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      error            <= 4 ulp; float64 under XLA:CPU <= 60 ulp
      x = 0, y > -1    value 0, slopes log(1 + y) and 0
      x = 0, y = -1    value 0, slopes 0 (a bounded choice: in x it is -inf)
      x > 0, y = -1    value -inf, slopes 0 (a bounded choice: they are infinite)
      x = 0, y < -1    value 0, slopes NaN and 0
      x > 0, y < -1    value NaN, slopes NaN
      x = 0, y = NaN   value NaN, slopes NaN and 0
      x = NaN, y > -1  value NaN, slopes log(1 + y) and NaN
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x, y = tf.constant([0.0, 2.0]), tf.constant([-1.0, 1e-8])
      >>> print(tfsafe.ops.xlog1py(x, y).numpy())
      [0.e+00 2.e-08]
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        return precision.in_float32(logarithm.xlog1py, x, y)


def xdivy(x: Any, y: Any, *, name: str = "xdivy") -> tf.Tensor:
    """Computes `x / y` elementwise, and 0 where `x` is 0.

    Use it for a quotient whose numerator and denominator vanish together. Unlike
    `tf.math.xdivy` it has the slope `1 / y` in `x` at `x = 0` too, and a NaN in `y` is
    not turned into 0 there. For a quotient that means nothing where `y` is 0, use
    `divide`.

    Args:
      x: Floating `Tensor`, the numerator.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      error           value <= 1 ulp, slopes <= 3 ulp
      x = 0, y > 0    value 0, slopes 1 / y and 0
      x = 0, y = 0    value 0, slopes 0 (a choice: the quotient is undefined)
      x > 0, y = 0    value inf, slopes 0 (a bounded choice: they are infinite)
      x = 0, y = NaN  value NaN, slopes NaN
      x = NaN, y > 0  value NaN, slopes 1 / y and NaN
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x, y = tf.constant([0.0, 0.0]), tf.constant([0.0, 2.0])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     z = tfsafe.ops.xdivy(x, y)
      >>> print(z.numpy(), tape.gradient(z, x).numpy())
      [0. 0.] [0.  0.5]
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        return precision.in_float32(logarithm.xdivy, x, y)
