"""Division with a documented answer at a zero denominator."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import chain, custom_gradient, unbroadcast
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.known import known

_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


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
      y = 0           value at_zero, slopes 0 (a choice: there is no quotient)
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
        return precision.in_float32(lambda x, y: _divide(x, y, at_zero), x, y)


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
      x = 0    value at_zero, slope 0 (a choice: there is no reciprocal)
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
        return precision.in_float32(lambda x: _reciprocal(x, at_zero), x)


def _divide(x: tf.Tensor, y: tf.Tensor, at_zero: float = 0.0) -> tf.Tensor:
    @custom_gradient
    def quotient(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
        value = _quotient(x, y, at_zero)
        return value, _vjp(x, y, value)

    return quotient(x, y)


@custom_gradient
def _over(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `x / y`, and 0 where `y` is 0, whatever `x` is."""
    value = tf.math.divide_no_nan(x, y)
    return value, _vjp(x, y, value)


def _vjp(x: tf.Tensor, y: tf.Tensor, value: tf.Tensor) -> _Gradients:
    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # Not `x / y**2`: nothing is squared.
        slope = _over(known(value, _over, x, y), y)
        in_x = chain(upstream, _reciprocal(y))
        return unbroadcast(in_x, x), -unbroadcast(chain(upstream, slope), y)

    return vjp


def _quotient(x: tf.Tensor, y: tf.Tensor, at_zero: float) -> tf.Tensor:
    # Never divides by 0, so that a check of all operations stays silent.
    value = tf.math.divide_no_nan(x, y)
    if at_zero:
        value = tf.where(tf.equal(y, 0), tf.constant(at_zero, y.dtype), value)
    return tf.where(tf.math.is_nan(x), x, value)


def _reciprocal(x: tf.Tensor, at_zero: float = 0.0) -> tf.Tensor:
    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        inverse = tf.math.reciprocal_no_nan(x)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            slope = known(inverse, _reciprocal, x)
            return chain(chain(upstream, slope), -slope)

        if not at_zero:
            return inverse, vjp
        singular = tf.constant(at_zero, x.dtype)
        return tf.where(tf.equal(x, 0), singular, inverse), vjp

    return function(x)


@custom_gradient
def ratio(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Returns `x / y`, and 0 where `x` or `y` is 0."""
    # The division for gradients, where `x` is the
    # incoming gradient. A zero one gives 0 even if `y` is NaN; a NaN in `x` stays.
    value = tf.where(tf.abs(x) > 0, tf.math.divide_no_nan(x, y), x)
    return value, _ratio_vjp(x, y, value)


@custom_gradient
def share(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Returns `ratio(x, y)` for a `y` that is 0 only where `x` is, at a lower cost."""
    value = tf.math.xdivy(x, y)
    return value, _ratio_vjp(x, y, value)


def _ratio_vjp(x: tf.Tensor, y: tf.Tensor, value: tf.Tensor) -> _Gradients:
    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        slope = ratio(known(value, ratio, x, y), y)
        slope = tf.where(tf.equal(y, 0), tf.zeros_like(slope), slope)
        in_x = chain(upstream, _reciprocal(y))
        return unbroadcast(in_x, x), -unbroadcast(chain(upstream, slope), y)

    return vjp
