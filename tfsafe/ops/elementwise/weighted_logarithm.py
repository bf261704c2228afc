"""Products and quotients that are 0 where their first factor is."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import chain, custom_gradient, nan_where, unbroadcast
from tfsafe.ops.elementwise.division import _divide, _reciprocal, ratio
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.poles import over

_Pair = tuple[tf.Tensor, tf.Tensor]
_Gradients = Callable[[tf.Tensor], _Pair]


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
        return precision.in_float32(_xlogy, x, y)


@custom_gradient
def _xlogy(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    value = or_nan(tf.math.xlogy(x, y), y)

    def vjp(upstream: tf.Tensor) -> _Pair:
        in_x = chain(upstream, bounded_log(y))
        in_y = chain(upstream, over(x, y, value))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return value, vjp


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
        return precision.in_float32(_xlog1py, x, y)


@custom_gradient
def _xlog1py(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    value = or_nan(tf.math.xlog1py(x, y), y)

    def vjp(upstream: tf.Tensor) -> _Pair:
        in_x = chain(upstream, _bounded_log1p(y))
        in_y = chain(upstream, over(x, 1 + y, value))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return value, vjp


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
      x = 0, y = 0    value 0, slopes 0 (a choice: there is no quotient)
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
        return precision.in_float32(_xdivy, x, y)


@custom_gradient
def _xdivy(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    def vjp(upstream: tf.Tensor) -> _Pair:
        in_x = chain(upstream, _reciprocal(y))
        in_y = -chain(upstream, chain(_reciprocal(y), _divide(x, y)))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return or_nan(tf.math.xdivy(x, y), y), vjp


def or_nan(value: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns `value`, and NaN where `y` is NaN."""
    return tf.where(tf.math.is_nan(y), y, value)


@custom_gradient
def bounded_log(y: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """Returns `log(y)`, and 0 where `y` is 0: the slope of `x * log(y)` in `x`."""
    # No logarithm of 0 is taken, so that a check of all operations stays silent.
    value = tf.math.log(tf.where(tf.equal(y, 0), tf.ones([], y.dtype), y))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return ratio(chain(upstream, 1 + nan_where(y < 0, y.dtype)), y)

    return value, vjp


@custom_gradient
def _bounded_log1p(y: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    value = tf.math.log1p(tf.where(tf.equal(y, -1), tf.zeros([], y.dtype), y))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return ratio(chain(upstream, 1 + nan_where(y < -1, y.dtype)), 1 + y)

    return value, vjp
