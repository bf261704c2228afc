"""Square root with a bounded slope at 0."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops import _precision
from tfsafe.ops._division import ratio


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
        return _precision.in_float32(_sqrt, _args.float_tensor(x, "x"))


@tf.custom_gradient
def _sqrt(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return 0.5 * ratio(upstream, _sqrt(x))

    return tf.sqrt(x), vjp
