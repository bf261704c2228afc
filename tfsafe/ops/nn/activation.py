"""Activations whose gradients stay right in the tails."""

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import chain, custom_gradient, local, product
from tfsafe._limits import LIMITS
from tfsafe.ops.elementwise.division import _divide, ratio
from tfsafe.ops.elementwise.plane import _cosine, _hypot
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.known import known

_Gradient = Callable[[tf.Tensor], tf.Tensor]
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
        return precision.in_float32(_tanh, _args.float_tensor(x, "x"))


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
        return precision.in_float32(_sigmoid, _args.float_tensor(x, "x"))


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
        return precision.in_float32(lambda x: _elu(x, alpha), x)


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
            lambda x: _SELU_SCALE * _elu(x, _SELU_ALPHA), _args.float_tensor(x, "x")
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
        return precision.in_float32(_mish, _args.float_tensor(x, "x"))


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
        return precision.in_float32(lambda x: _squareplus(x, b), x)


@custom_gradient
def _tanh(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    value = tf.tanh(x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return chain(upstream, _tanh_slope(x))

    return value, vjp


@custom_gradient
def _tanh_slope(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    # Not 1 - tanh(x)^2. With p = sigmoid(-2 * |x|), the slope is 4 * p * (1 - p).
    rest = tf.sigmoid(-tf.abs(2 * x))
    slope = tf.raw_ops.SigmoidGrad(
        y=rest, dy=tf.fill(tf.shape(x), tf.constant(4, x.dtype))
    )

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return chain(chain(upstream, known(slope, _tanh_slope, x)), -2 * _tanh(x))

    return slope, vjp


@custom_gradient
def _sigmoid(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    value = tf.sigmoid(x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return chain(upstream, _sigmoid_slope(x))

    return value, vjp


@custom_gradient
def _sigmoid_slope(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    # Not y * (1 - y), which is 0 as soon as y rounds to 1.
    slope = tf.raw_ops.SoftplusGrad(gradients=tf.sigmoid(x), features=-x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return chain(chain(upstream, known(slope, _sigmoid_slope, x)), -_tanh(x / 2))

    return slope, vjp


def _elu(x: tf.Tensor, alpha: float) -> tf.Tensor:
    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            return chain(upstream, _elu_slope(x, alpha))

        # In this order a NaN comes out under XLA in every version.
        bounded = tf.minimum(x, 0)
        # This is `expm1(bounded)`, for less; and the slope needs the exponential.
        below = tf.tanh(0.5 * bounded) * (1 + tf.exp(bounded))
        if alpha == 1:
            return tf.maximum(x, below), vjp
        return tf.where(x >= 0, x, alpha * below), vjp

    return function(x)


def _elu_slope(x: tf.Tensor, alpha: float) -> tf.Tensor:
    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        slope = tf.exp(tf.minimum(x, 0))
        if alpha != 1:
            slope = tf.where(x >= 0, tf.ones_like(x), alpha * slope)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            again = _elu_slope(x, alpha)
            return chain(upstream, tf.where(x >= 0, tf.zeros_like(x), again))

        return slope, vjp

    return function(x)


@custom_gradient
def _mish(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = _gate(x) + chain(_gate_slope(x), x)
        return chain(upstream, slope)

    # 0, not NaN, at -inf.
    return tf.math.multiply_no_nan(x, _gate(x)), vjp


@custom_gradient
def _gate(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes `tanh(log(1 + exp(x)))`."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return chain(upstream, _gate_slope(x))

    # At the bound the gate has long been 1.
    power = tf.exp(tf.minimum(x, 0.5 * math.log(LIMITS[x.dtype.name].max) - 1))
    above = power * (power + 2)
    return above / (above + 2), vjp


@custom_gradient
def _gate_slope(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes the derivative of `_gate`, `(1 - gate^2) * sigmoid(x)`."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = _sigmoid(-x) - 2 * product(_gate(x), _sigmoid(x))
        return chain(chain(upstream, _gate_slope(x)), slope)

    # Of `exp(-|x|)`: the gate rounds to 1 long before its slope rounds to 0.
    decay = tf.exp(-tf.abs(x))
    factor = tf.where(x < 0, tf.ones([], x.dtype), decay)
    below = tf.square(1 + decay) + tf.square(factor)
    return 4 * (decay * factor) * ((1 + decay) / tf.square(below)), vjp


def _squareplus(x: tf.Tensor, b: float) -> tf.Tensor:
    root = tf.constant(b**0.5, x.dtype)

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            side = local(root)
            slope = ratio(_squareplus_value(x, side), _hypot(x, side))
            # The same as `(1 + x / hypot) / 2`, which loses the digits of its tail.
            return chain(upstream, known(slope, lambda x: 0.5 * _cosine(x, side), x))

        return _squareplus_value(x, root), vjp

    return function(x)


def _squareplus_value(x: tf.Tensor, root: tf.Tensor) -> tf.Tensor:
    # Halves first, because the sum may be above the largest number.
    above = 0.5 * tf.abs(x) + 0.5 * _hypot(x, root)
    below = _divide(root, above) * (0.25 * root)
    return tf.where(x < 0, below, above)
