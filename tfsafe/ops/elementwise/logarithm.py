"""Logarithms of `x`, `1 + x`, odds and the sigmoid, alone and times a weight."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import logarithm, precision


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
        return precision.in_float32(logarithm.log, _args.float_tensor(x, "x"))


def log1p(x: Any, *, name: str = "log1p") -> tf.Tensor:
    """Computes `log(1 + x)` elementwise, with slope 0 at -1.

    The value is that of `tf.math.log1p`, which keeps the digits of a small `x`. The
    gradient is safe under a mask.

    Args:
      x: Floating `Tensor` of any shape, at least -1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    <= 3 ulp; float64 under XLA:CPU <= 60 ulp
      x = -1   value -inf, slope 0 (a bounded choice: the true slope is infinite)
      x = inf  value inf, slope 0
      x < -1   value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([-1.0, 1e-8])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tf.where(x > -1, tfsafe.ops.log1p(x), 0.0)
      >>> print(y.numpy(), tape.gradient(y, x).numpy())
      [0.e+00 1.e-08] [0. 1.]
    """
    with tf.name_scope(name):
        return precision.in_float32(logarithm.log1p, _args.float_tensor(x, "x"))


def logit(x: Any, *, name: str = "logit") -> tf.Tensor:
    """Computes the log-odds `log(x / (1 - x))` elementwise, the inverse of the sigmoid.

    Near 1/2, where the odds are near 1, the plain formula loses the digits of the
    value; here it keeps them. The logit of a probability that was rounded to 1 is
    infinite: if the probability is the output of a sigmoid, keep its argument instead.

    Args:
      x: Floating `Tensor` of any shape, from 0 to 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    <= 4 ulp
      x = 0    value -inf, slope 0 (a bounded choice: the true slope is infinite)
      x = 1    value inf, slope 0 (the same choice)
      x < 0    value NaN, slope NaN
      x > 1    value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.logit(tf.constant([1e-30, 0.50001, 1.0])).numpy())
      [-6.9078e+01  4.0054e-05         inf]
    """
    with tf.name_scope(name):
        return precision.in_float32(logarithm.logit, _args.float_tensor(x, "x"))


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
        return precision.in_float32(logarithm.log_sigmoid, _args.float_tensor(x, "x"))


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
