"""Logarithms: plain, of the sigmoid, and weighted."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import chain, nan_where, unbroadcast
from tfsafe.ops import _precision
from tfsafe.ops._division import _divide, ratio

_Gradient = Callable[[tf.Tensor], tf.Tensor]


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
        return _precision.in_float32(_log, _args.float_tensor(x, "x"))


@tf.custom_gradient
def _log(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        # `1 / x` is finite outside the domain, the slope of the logarithm is not.
        return ratio(chain(upstream, 1 + nan_where(x < 0, x.dtype)), x)

    return tf.math.log(x), vjp


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
        return _precision.in_float32(_log_sigmoid, _args.float_tensor(x, "x"))


@tf.custom_gradient
def _log_sigmoid(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return chain(upstream, _sigmoid(-x))

    # Two terms of one sign, neither of which can overflow.
    return tf.minimum(x, 0) - tf.math.log1p(tf.exp(-tf.abs(x))), vjp


@tf.custom_gradient
def _sigmoid(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        # Not y * (1 - y), which is 0 as soon as y rounds to 1.
        return chain(upstream, _sigmoid(x) * _sigmoid(-x))

    decay = tf.exp(-tf.abs(x))
    return tf.where(x < 0, decay, tf.ones_like(x)) / (1 + decay), vjp


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
      x = 0, y = NaN  value NaN, slopes NaN
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
        return _precision.in_float32(_xlogy, x, y)


@tf.custom_gradient
def _xlogy(
    x: tf.Tensor, y: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        at_zero = tf.equal(y, 0)
        slope = tf.where(at_zero, tf.zeros_like(y), _log(_one_where(at_zero, y)))
        outside = tf.logical_and(y < 0, tf.not_equal(x, 0))
        in_x = chain(upstream, slope)
        in_y = chain(upstream, _divide(x, y) + nan_where(outside, y.dtype))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    # `log(1)` stands in where x is 0, unless y is NaN.
    unused = tf.logical_and(tf.equal(x, 0), tf.logical_not(tf.math.is_nan(y)))
    return x * tf.math.log(_one_where(unused, y)), vjp


def _one_where(condition: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return tf.where(condition, tf.constant(1.0, y.dtype), y)
