"""Division with a documented answer at a zero denominator."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import product, unbroadcast
from tfsafe.ops import _precision

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
      No intermediate result overflows or underflows where the slopes do not: y^2 is
      never formed.

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
        return _precision.in_float32(lambda x, y: _divide(x, y, at_zero), x, y)


def _divide(x: tf.Tensor, y: tf.Tensor, at_zero: float = 0.0) -> tf.Tensor:
    @tf.custom_gradient
    def quotient(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
        def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            in_x = ratio(upstream, y)
            in_y = -_product_over(upstream, _divide(x, y), y)
            return unbroadcast(in_x, x), unbroadcast(in_y, y)

        return _quotient(x, y, at_zero), vjp

    return quotient(x, y)


@tf.custom_gradient
def ratio(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    # `x / y`, and 0 where `x` or `y` is 0: the division for gradients, where `x` is the
    # incoming gradient. A zero one gives 0 even if `y` is NaN; a NaN in `x` stays.

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        in_x = ratio(upstream, y)
        in_y = -_product_over(upstream, ratio(x, y), y)
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return tf.where(tf.equal(x, 0), tf.zeros_like(x), _quotient(x, y, 0.0)), vjp


def _product_over(a: tf.Tensor, b: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns `a * b / y` in an order that stays in range; 0 where one of them is 0."""
    # A small denominator makes large: divide the smaller factor. A large one makes
    # small: divide the larger.
    a_first = tf.equal(tf.abs(a) < tf.abs(b), tf.abs(y) < 1)
    first, second = tf.where(a_first, a, b), tf.where(a_first, b, a)
    result = product(ratio(first, y), second)
    return tf.where(tf.equal(y, 0), tf.zeros_like(result), result)


def _quotient(x: tf.Tensor, y: tf.Tensor, at_zero: float) -> tf.Tensor:
    is_zero = tf.equal(y, 0)
    # No division by 0 is run, so that a check of all operations stays silent.
    regular = x / tf.where(is_zero, tf.ones_like(y), y)
    singular = tf.where(tf.math.is_nan(x), x, tf.constant(at_zero, x.dtype))
    return tf.where(is_zero, singular, regular)
