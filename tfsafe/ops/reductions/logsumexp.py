"""Logarithm of the softmax and of a sum of exponentials.

With m the largest element of a row, k how often it occurs and

    others = (k - 1) + sum of exp(x_i - m) over the elements below m,

the row's sum of exponentials is `exp(m) * (1 + others)`. Nothing in it overflows, and
`log1p(others)` keeps the digits that `log(1 + others)` loses when one element
dominates the row.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.probability import exponential_sums
from tfsafe.ops.kernels.probability.probabilities import hide, temper
from tfsafe.ops.nn.softmax import at_temperature


def log_softmax(
    logits: Any,
    axis: int | Sequence[int] | None = -1,
    *,
    mask: Any = None,
    temperature: Any = 1.0,
    name: str = "log_softmax",
) -> tf.Tensor:
    """Computes the logarithm of the softmax, `x - logsumexp(x)`.

    An entry may be `-inf`: the class is impossible, as under a mask. A row in which
    every class is impossible has value `-inf` and gradient 0, where
    `tf.nn.log_softmax` has NaN. The entry of a dominating class keeps its digits,
    in the value (-2e-9 for a lead of 20 in float32, not 0) and in the gradient.

    Args:
      logits: Floating `Tensor` of at least one axis.
      axis: Axis along which the probabilities sum to 1, or several, or None for all.
      mask: None to keep everything, or booleans, True where a class is possible;
        numbers keep what is not 0. Of a shape that broadcasts to that of `logits`.
      temperature: At least 0: a number, or a floating `Tensor` of the dtype of
        `logits` that broadcasts to them with size 1 along `axis`. At 0 the classes
        with the largest logit have equal probabilities.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `logits`, at most 0.

    Raises:
      TypeError: If `logits`, `mask` or `temperature` has a wrong dtype, or if `axis` is
        not an integer.
      ValueError: If `axis` is out of range or names an axis twice, if `mask` does not
        broadcast to `logits`, or if `temperature` is a negative number.

    Numerics:
      error     <= 4 ulp, and 1 more for each unit of the distance to the largest
                logit, because that distance is rounded
      one -inf  value -inf there, gradient that of a class of probability 0
      all -inf  value -inf, gradient 0 (a choice)
      +inf      value NaN, gradient NaN, in the whole row
      NaN       value NaN, gradient NaN, in the whole row
      masked    as -inf, gradient 0
      T = 0     value -log(k) at the k largest, else -inf; gradient 0 (a choice at ties)
      T < 0     value NaN; T is the temperature
      A row of zero incoming gradients gets zero gradients, whatever it holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[0.0, -20.0], [-float("inf"), 0.0]])
      >>> print(tfsafe.ops.log_softmax(x).numpy())
      [[-2.0611537e-09 -2.0000000e+01]
       [          -inf  0.0000000e+00]]

    References:
      Blanchard, Higham and Higham, "Accurately computing the log-sum-exp and softmax
      functions", IMA Journal of Numerical Analysis 41(4), 2021.
    """
    with tf.name_scope(name):
        logits = _args.float_tensor(logits, "logits")
        along = _args.axes(axis, logits.shape)
        keep = None if mask is None else _args.keeps(mask, logits)

        def function(x: tf.Tensor, temperature: tf.Tensor | None) -> tf.Tensor:
            x = x if keep is None else exponential_sums.exclude(hide(x, keep), ~keep)
            if temperature is not None:
                x = temper(x, temperature, along)
                x = exponential_sums.exclude(x, tf.equal(x, -LIMITS[x.dtype.name].max))
            return exponential_sums.log_softmax(x, along)

        return at_temperature(function, logits, temperature)


def logsumexp(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    mask: Any = None,
    name: str = "logsumexp",
) -> tf.Tensor:
    """Computes `log(sum(exp(x)))` without overflow.

    Entries may be `-inf`. A sum of nothing but `-inf` has gradient 0, where
    `tf.reduce_logsumexp` has NaN.

    Args:
      x: Floating `Tensor`.
      axis: Axis or axes to sum over; by default all of them.
      keepdims: Whether the reduced axes stay, with size 1.
      mask: None to sum everything, or booleans, True where an entry counts; numbers
        keep what is not 0. Of a shape that broadcasts to that of `x`.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and its shape without the reduced axes.

    Raises:
      TypeError: If `x` or `mask` has a wrong dtype, or if `axis` is not an integer.
      ValueError: If `axis` is out of range or names an axis twice, or if `mask` does
        not broadcast to `x`.

    Numerics:
      error     value <= 3 ulp of the largest entry or of the result, gradient as that
                of `log_softmax`
      one -inf  as if it were not there, gradient 0
      all -inf  value -inf, gradient 0 (a choice), also where all is masked
      +inf      value inf, gradient shared by the infinite entries
      NaN       value NaN, gradient NaN
      masked    as if it were not there, gradient 0
      no entry  value -inf
      A zero incoming gradient gives zero gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.logsumexp(tf.constant([1000.0, 1000.0])).numpy())
      1000.693

    References:
      Blanchard, Higham and Higham, "Accurately computing the log-sum-exp and softmax
      functions", IMA Journal of Numerical Analysis 41(4), 2021.
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        along = _args.axes(axis, x.shape)
        keep = None if mask is None else _args.keeps(mask, x)
        value = precision.in_float32(
            lambda x: exponential_sums.masked_logsumexp(x, keep, along), x
        )
        return value if keepdims else precision.drop(value, along)
