"""Logarithm of the softmax and of a sum of exponentials.

With m the largest element of a row, k how often it occurs and

    others = (k - 1) + sum of exp(x_i - m) over the elements below m,

the row's sum of exponentials is `exp(m) * (1 + others)`. Nothing in it overflows, and
`log1p(others)` keeps the digits that `log(1 + others)` loses when one element
dominates the row.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import chain, custom_gradient, local, nan_where, silence
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels import precision
from tfsafe.ops.nn.softmax import at_temperature, hide, is_minus_inf, temper

_Axis = Sequence[int] | None
_Gradient = Callable[[tf.Tensor], tf.Tensor]


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
        with the largest logit share the probability.
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
      A row of zero incoming gradients gets zero gradients, whatever stands in it.

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
            x = x if keep is None else _exclude(hide(x, keep), ~keep)
            if temperature is not None:
                x = temper(x, temperature, along)
                x = _exclude(x, tf.equal(x, -LIMITS[x.dtype.name].max))
            return _log_softmax(x, along)

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
      axis: Axis or axes to sum over; all of them where None.
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
      all -inf  value -inf, gradient 0 (a choice), all masked likewise
      +inf      value inf, gradient shared by the infinite entries
      NaN       value NaN, gradient NaN
      masked    as if it were not there, gradient 0
      no entry  value -inf
      A zero incoming gradient gives zero gradients, whatever stands in the row.

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
        value = precision.in_float32(lambda x: _masked_logsumexp(x, keep, along), x)
        return value if keepdims else precision.drop(value, along)


def _exclude(x: tf.Tensor, condition: tf.Tensor) -> tf.Tensor:
    """Returns `-inf` where `condition` holds, out of a logarithm as in `nan_where`."""
    return x + tf.math.log(1 - tf.cast(condition, x.dtype))


def _masked_logsumexp(x: tf.Tensor, keep: tf.Tensor | None, axis: _Axis) -> tf.Tensor:
    if keep is None:
        return _logsumexp(x, axis)
    is_empty = tf.reduce_all(~keep | is_minus_inf(x), axis, keepdims=True)
    return _exclude(_logsumexp(hide(x, keep), axis), is_empty)


class _Row(NamedTuple):
    """What the functions share; all but the exponentials have size 1 along `axis`."""

    largest: tf.Tensor
    is_largest: tf.Tensor
    ties: tf.Tensor
    exponentials: tf.Tensor
    others: tf.Tensor
    has_inf: tf.Tensor
    is_empty: tf.Tensor


def _row(x: tf.Tensor, axis: _Axis) -> _Row:
    # `reduce_max` may pass over a NaN, which then reaches `others` by its exponential.
    largest = tf.reduce_max(x, axis, keepdims=True)
    is_largest = tf.equal(x, largest)
    ties = tf.reduce_sum(tf.cast(is_largest, x.dtype), axis, keepdims=True)
    # Without the `where`, inf - inf is NaN.
    exponentials = tf.exp(tf.where(is_largest, tf.zeros_like(x), x - largest))
    others = (ties - 1) + _sum_below(exponentials, is_largest, axis)
    is_inf = tf.math.is_inf(largest)
    has_inf = tf.logical_and(is_inf, largest > 0)
    is_empty = tf.logical_and(is_inf, largest < 0)
    return _Row(largest, is_largest, ties, exponentials, others, has_inf, is_empty)


def _sum_below(x: tf.Tensor, is_largest: tf.Tensor, axis: _Axis) -> tf.Tensor:
    kept = tf.where(is_largest, tf.zeros_like(x), x)
    return tf.reduce_sum(kept, axis, keepdims=True)


def _mean_at_largest(x: tf.Tensor, row: _Row, axis: _Axis) -> tf.Tensor:
    kept = tf.where(row.is_largest, x, tf.zeros_like(x))
    return tf.math.divide_no_nan(tf.reduce_sum(kept, axis, keepdims=True), row.ties)


def _log_softmax(x: tf.Tensor, axis: _Axis) -> tf.Tensor:
    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        row = _row(x, axis)
        # A row of nothing but -inf stays as it is; a +inf makes all of its row NaN.
        largest = tf.where(row.is_empty, tf.zeros_like(row.largest), row.largest)
        nan = nan_where(row.has_inf, x.dtype)
        value = (x - largest) - (tf.math.log1p(row.others) + nan)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            return _log_softmax_vjp(x, row, axis, upstream)

        return value, vjp

    return function(x)


def _log_softmax_vjp(
    x: tf.Tensor, row: _Row, axis: _Axis, upstream: tf.Tensor
) -> tf.Tensor:
    """Returns `u - p * sum(u)` without the `1 - p` of a class that dominates its row.

    The mean of `u - p * sum(u)` over the k largest elements is equal to

        (sum(u) * (sum of p below them) - (sum of u below them)) / k

    which has no difference of nearly equal numbers. It takes the mean's place.
    """
    is_nan = tf.logical_or(tf.math.is_nan(row.others), row.has_inf)
    # A row of NaN gets a stand-in here and NaN at the end, so that it does not spread
    # to the gradient of this gradient.
    probs = tf.where(is_nan, tf.zeros_like(x), _softmax(x, row, axis))
    total = tf.reduce_sum(upstream, axis, keepdims=True)
    plain = upstream - probs * total
    mean = tf.math.divide_no_nan(
        total * _sum_below(probs, row.is_largest, axis)
        - _sum_below(upstream, row.is_largest, axis),
        row.ties,
    )
    at_largest = (plain - _mean_at_largest(plain, row, axis)) + mean
    slopes = tf.where(row.is_largest, at_largest, plain)
    is_live = tf.reduce_any(tf.not_equal(upstream, 0), axis, keepdims=True)
    nan = nan_where(tf.logical_and(is_nan, is_live), x.dtype)
    return tf.where(row.is_empty, tf.zeros_like(slopes), slopes) + nan


def _logsumexp(x: tf.Tensor, axis: _Axis) -> tf.Tensor:
    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        row = _row(x, axis)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            return chain(upstream, _softmax(x, row, axis))

        return row.largest + tf.math.log1p(row.others), vjp

    return function(x)


def _softmax(x: tf.Tensor, row: _Row, axis: _Axis) -> tf.Tensor:
    """Computes the softmax; 0 in a row of nothing but `-inf`, NaN in a row with NaN."""
    row = _Row(*map(local, row))

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            # p * (u - sum(p * u)) is the same for u and u - constant. The constant
            # that makes u vanish at the largest element avoids 1 - p there.
            probs = silence(_softmax(x, row, axis), upstream, axis)
            centred = upstream - _mean_at_largest(upstream, row, axis)
            mean = tf.reduce_sum(probs * centred, axis, keepdims=True)
            return probs * (centred - mean)

        # A product and not a choice, so that NaN stays NaN.
        exists = 1 - tf.cast(row.is_empty, x.dtype)
        return exists * row.exponentials / (1 + row.others), vjp

    return function(x)
