"""Activations whose gradients stay right in the tails."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import activation, precision

# Klambauer et al., 2017.
_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_ALPHA = 1.6732632423543772848170429916717


def tanh(x: Any, *, name: str = "tanh") -> tf.Tensor:
    """Computes the hyperbolic tangent elementwise, with the slope of its tails.

    The value is that of `tf.tanh`. TensorFlow computes the slope from the value, so
    that it is 0 as soon as the value rounds to 1: beyond 9 in float32, beyond 4.5 in
    float16. A saturated unit then never learns again.

    Args:
      x: Floating `Tensor` of any shape.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     value <= 5 ulp, slope <= 5 ulp
      x = inf   value 1, slope 0
      x = -inf  value -1, slope 0
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant(10.0)
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.tanh(x)
      >>> print(tape.gradient(y, x).numpy())
      8.2446e-09
    """
    with tf.name_scope(name):
        return precision.in_float32(activation.tanh, _args.float_tensor(x, "x"))


def sigmoid(x: Any, *, name: str = "sigmoid") -> tf.Tensor:
    """Computes `1 / (1 + exp(-x))` elementwise, with the slope of its tails.

    The value is that of `tf.sigmoid`. TensorFlow computes the slope from the value, so
    that it is 0 as soon as the value rounds to 1: beyond 17 in float32, beyond 8 in
    float16.

    Args:
      x: Floating `Tensor` of any shape.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     value <= 5 ulp, slope <= 7 ulp
      x = inf   value 1, slope 0
      x = -inf  value 0, slope 0
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant(18.0)
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.sigmoid(x)
      >>> print(tape.gradient(y, x).numpy())
      1.523e-08
    """
    with tf.name_scope(name):
        return precision.in_float32(activation.sigmoid, _args.float_tensor(x, "x"))


def elu(x: Any, alpha: float = 1.0, *, name: str = "elu") -> tf.Tensor:
    """Computes `x` where it is above 0 and `alpha * (exp(x) - 1)` elsewhere.

    `tf.nn.elu` subtracts 1 after rounding on a CPU, so that small negative numbers
    become 0.

    Args:
      x: Floating `Tensor` of any shape.
      alpha: The limit on the negative side, with the sign changed.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `alpha` is not a number.
      ValueError: If `alpha` does not fit the dtype.

    Numerics:
      error     value <= 6 ulp, slope <= 3 ulp
      x = 0     value 0, slope 1 (from the right); second derivative 0
      x = inf   value inf, slope 1
      x = -inf  value -alpha, slope 0
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.elu(tf.constant([-1e-8, 2.0])).numpy())
      [-1.e-08  2.e+00]

    References:
      Clevert, Unterthiner and Hochreiter, "Fast and Accurate Deep Network Learning by
      Exponential Linear Units", 2016.
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        alpha = _args.number(alpha, "alpha", x.dtype)
        return precision.in_float32(lambda x: activation.elu(x, alpha), x)


def selu(x: Any, *, name: str = "selu") -> tf.Tensor:
    """Computes the scaled `elu` of self-normalising networks.

    `tf.nn.selu` subtracts 1 after rounding on a CPU, so that small negative numbers
    become 0 and their slope 1.05 instead of 1.76.

    Args:
      x: Floating `Tensor` of any shape.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     value <= 6 ulp, slope <= 4 ulp
      x = 0     value 0, slope 1.0507 (from the right); second derivative 0
      x = inf   value inf, slope 1.0507
      x = -inf  value -1.7581, slope 0
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.selu(tf.constant([-1e-8, 2.0])).numpy())
      [-1.7580993e-08  2.1014020e+00]

    References:
      Klambauer, Unterthiner, Mayr and Hochreiter, "Self-Normalizing Neural Networks",
      2017.
    """
    with tf.name_scope(name):
        return precision.in_float32(
            lambda x: activation.elu(x, _SELU_ALPHA, _SELU_SCALE),
            _args.float_tensor(x, "x"),
        )


def mish(x: Any, *, name: str = "mish") -> tf.Tensor:
    """Computes `x * tanh(log(1 + exp(x)))` elementwise.

    In one formula of `exp(-|x|)`: nothing overflows, and the negative tail keeps its
    digits in half precision too.

    Args:
      x: Floating `Tensor` of any shape.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     value <= 5 ulp; slope <= 8 ulp of the larger of its two terms
      x = inf   value inf, slope 1
      x = -inf  value 0, slope 0
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.mish(tf.constant([-20.0, 1.0])).numpy())
      [-4.1223e-08  8.6510e-01]

    References:
      Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2020.
    """
    with tf.name_scope(name):
        return precision.in_float32(activation.mish, _args.float_tensor(x, "x"))


def squareplus(x: Any, b: float = 4.0, *, name: str = "squareplus") -> tf.Tensor:
    """Computes `(x + sqrt(x^2 + b)) / 2` elementwise.

    The plain formula overflows in the square, in float16 from 256 on, and subtracts
    nearly equal numbers on the negative side: it is 0 at -1e4 in float32.

    Args:
      x: Floating `Tensor` of any shape.
      b: Width of the bend at 0, at least 0; with 0 this is the rectifier.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `b` is not a number.
      ValueError: If `b` is negative or does not fit the dtype.

    Numerics:
      error     value <= 4 ulp, slope <= 5 ulp
      x = inf   value inf, slope NaN
      x = -inf  value 0, slope 0
      x = NaN   value NaN, slope NaN
      With b = 0, value 0 and slope 0 at 0.
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.squareplus(tf.constant([-1e4, 0.0])).numpy())
      [1.e-04 1.e+00]

    References:
      Barron, "Squareplus: A Softplus-Like Algebraic Rectifier", 2021.
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        b = _args.number(b, "b", x.dtype)
        if not b >= 0:
            raise ValueError(f"`b` must be at least 0. Received: b={b!r}.")
        return precision.in_float32(lambda x: activation.squareplus(x, b), x)
