"""Length and angle of a point of the plane, given by its two coordinates."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import lengths, precision


def hypot(x: Any, y: Any, *, name: str = "hypot") -> tf.Tensor:
    """Computes `sqrt(x^2 + y^2)` elementwise, with slopes 0 at 0.

    No square overflows or underflows. `keras.ops.hypot` has the slopes 1.4 and 0 where
    `x` and `y` are equal, the formula by hand NaN where both are 0.

    Args:
      x: Floating `Tensor`.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      error            value <= 3 ulp, slopes <= 3 ulp
      x = 0, y = 0     value 0, slopes 0 (the subgradient of least norm)
      x = inf, y = 1   value inf, slopes NaN and 0
      x = NaN, y = 1   value NaN, slopes NaN
      A zero incoming gradient gives zero gradients, at every x and y.
      The slopes are right even where the value overflows.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.hypot(tf.constant([3e20, 0.0]), [4e20, 0.0]).numpy())
      [5.e+20 0.e+00]
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        return precision.in_float32(lengths.hypot, x, y)


def atan2(y: Any, x: Any, *, name: str = "atan2") -> tf.Tensor:
    """Computes the angle of the point `(x, y)`, with slopes 0 at the origin.

    The value is that of `tf.math.atan2`, whose slopes are NaN at the origin and where
    the squares of `x` and `y` leave the range.

    Args:
      y: Floating `Tensor`.
      x: Floating `Tensor` of the dtype of `y`, of a shape that broadcasts with it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape, from -pi to pi.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      error           value <= 3 ulp, slopes <= 5 ulp
      y = 0, x = 0    value 0, slopes 0 (a choice: the angle is undefined)
      y = 1, x = inf  value 0, slopes 0
      y = NaN, x = 1  value NaN, slopes NaN
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> y, x = tf.constant([0.0, 1.0]), tf.constant([0.0, 1.0])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(y)
      ...     angle = tfsafe.ops.atan2(y, x)
      >>> print(angle.numpy(), tape.gradient(angle, y).numpy())
      [0.        0.7853982] [0.  0.5]
    """
    with tf.name_scope(name):
        y, x = _args.float_tensors(y=y, x=x)
        _args.check_broadcast(y=y, x=x)
        return precision.in_float32(lengths.atan2, y, x)


def angle(x: Any, *, name: str = "angle") -> tf.Tensor:
    """Computes the angle of complex numbers, with gradient 0 at 0.

    The value is that of `tf.math.angle`, whose gradient is infinite or NaN at 0: the
    phase of an all-zero spectrum.

    Args:
      x: `Tensor` of dtype complex64 or complex128.
      name: Name scope of the operations created.

    Returns:
      `Tensor` of float32 or float64 with the shape of `x`, from -pi to pi.

    Raises:
      TypeError: If `x` does not have a complex dtype.

    Numerics:
      error    value <= 3 ulp, slopes <= 5 ulp
      x = 0    value 0, gradient 0 (a choice: the angle is undefined)
      x = NaN  value NaN, gradient NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([0j, 1 + 1j])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.angle(x)
      >>> print(tape.gradient(y, x).numpy())
      [ 0. +0.j  -0.5+0.5j]
    """
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x)
        if not x.dtype.is_complex:
            raise TypeError(
                "`x` must have a complex dtype (complex64 or complex128). Received: "
                f"dtype={x.dtype.name}, shape={x.shape}. For the angle of a point use "
                "`atan2(y, x)`."
            )
        return lengths.atan2(tf.math.imag(x), tf.math.real(x))
