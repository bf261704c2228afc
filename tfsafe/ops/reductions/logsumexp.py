"""Logarithm of a sum of exponentials.

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
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.probability import exponential_sums


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
