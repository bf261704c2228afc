"""Logarithms of a sum, of a difference and of cumulative sums of exponentials."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import custom_gradient, unbroadcast, zero_unused_rows
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.activation import sigmoid
from tfsafe.ops.kernels.exponential import certainty, log1mexp_value, odds
from tfsafe.ops.kernels.probability import exponential_sums
from tfsafe.ops.kernels.zeros import times_upstream, times_where_nonzero

_Pair = tuple[tf.Tensor, tf.Tensor]
_Gradients = Callable[[tf.Tensor], _Pair]
_Sum = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]

# In place of the logarithm of 0, so that no operation inside makes an infinity.
_LOG_0 = -1e30


def log_add_exp(x: Any, y: Any, *, name: str = "log_add_exp") -> tf.Tensor:
    """Computes `log(exp(x) + exp(y))` elementwise without overflow.

    Use it to add probabilities that are known by their logarithms. The gradient of
    equal arguments is 1/2 for each; that of two impossible events, `-inf` both, is 0.

    Args:
      x: Floating `Tensor`.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      error            value <= 4 ulp of the result or of the larger argument, slopes
                       <= 5 ulp
      x = -inf         value y, slopes 0 and 1
      x = -inf = y     value -inf, slopes 0 (a choice)
      x = inf          value inf, slopes 1 and 0
      x = inf = y      value inf, slopes 1/2 (a choice)
      x = NaN          value NaN, slopes NaN
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([100.0, -float("inf")])
      >>> print(tfsafe.ops.log_add_exp(x, x).numpy())
      [100.69315      -inf]
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        return precision.in_float32(_log_add_exp, x, y)


@custom_gradient
def _log_add_exp(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    distance = tf.abs(_difference(x, y))
    value = tf.maximum(x, y) + tf.math.log1p(tf.exp(-distance))

    def vjp(upstream: tf.Tensor) -> _Pair:
        lead = _difference(x, y)
        is_impossible = value < value.dtype.min
        upstream = tf.where(is_impossible, tf.zeros_like(upstream), upstream)
        in_x = times_upstream(upstream, sigmoid(lead))
        in_y = times_upstream(upstream, sigmoid(-lead))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return value, vjp


@custom_gradient
def _difference(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    # `x - y`, and 0 for two equal infinities.
    is_tie = tf.equal(x, y)

    def vjp(upstream: tf.Tensor) -> _Pair:
        return unbroadcast(upstream, x), -unbroadcast(upstream, y)

    zero = tf.zeros([], x.dtype)
    return tf.where(is_tie, zero, x) - tf.where(is_tie, zero, y), vjp


def log_sub_exp(x: Any, y: Any, *, name: str = "log_sub_exp") -> tf.Tensor:
    """Computes `log(exp(x) - exp(y))` elementwise for `x >= y`, without overflow.

    Use it for the log-probability of an interval, from the logarithms of a cumulative
    distribution at its ends.

    Args:
      x: Floating `Tensor`.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it, at
        most `x`.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      error         value <= 5 ulp of the result or of `x`; float64 under XLA:CPU <= 60
                    ulp. The difference `x - y` is rounded once
      y = x         value -inf, slopes 0 (a bounded choice: they are infinite)
      y = x = -inf  value -inf, slopes 0 (a choice)
      y = -inf      value x, slopes 1 and 0
      y > x         value NaN, slopes NaN
      y = NaN       value NaN, slopes NaN
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x, y = tf.constant([100.5, 1.0]), tf.constant([100.0, 1.0])
      >>> print(tfsafe.ops.log_sub_exp(x, y).numpy())
      [99.567245      -inf]
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        return precision.in_float32(_log_sub_exp, x, y)


@custom_gradient
def _log_sub_exp(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    def vjp(upstream: tf.Tensor) -> _Pair:
        lead = _difference(x, y)
        in_x = times_upstream(upstream, certainty(lead))
        in_y = -times_upstream(upstream, odds(lead))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return x + log1mexp_value(-_difference(x, y)), vjp


def cumulative_logsumexp(
    x: Any,
    axis: int = 0,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = "cumulative_logsumexp",
) -> tf.Tensor:
    """Computes the logarithms of the cumulative sums of `exp(x)` without overflow.

    The value is that of `tf.math.cumulative_logsumexp`, whose gradient is NaN where an
    entry is `-inf`, and which takes a NaN for `-inf`. Here an impossible entry has
    gradient 0, and a NaN stays one.

    Args:
      x: Floating `Tensor` of at least one axis.
      axis: Axis to sum along.
      exclusive: Whether a sum leaves out the entry at its own place. An empty sum is
        `-inf`.
      reverse: Whether the sums run from the end.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `axis` is not an
        integer.
      ValueError: If `axis` is out of range.

    Numerics:
      error     value <= 4 ulp of the result or of the largest entry; gradients lose 2
                ulp for each unit of the largest entry, because they are computed by
                their logarithms
      x = -inf  as if it were not there, gradient 0
      x = inf   value inf from there on, gradient NaN
      x = NaN   value NaN from there on, gradient NaN
      Where all incoming gradients along the axis are 0, so are the gradients.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([-float("inf"), 0.0, 1.0])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.cumulative_logsumexp(x)[2]
      >>> print(y.numpy(), tape.gradient(y, x).numpy())
      1.31326 [0.      0.26894 0.73106]
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        (along,) = _args.axes([axis], x.shape) or [axis]

        def formula(x: tf.Tensor) -> tf.Tensor:
            return _cumulative(x, along, exclusive, reverse)

        return precision.in_float32(formula, x)


def _cumulative(x: tf.Tensor, axis: int, exclusive: bool, reverse: bool) -> tf.Tensor:
    """Returns the cumulative sums, with `spread` and `gather` as their linear maps.

    With w[i, j] = exp(x[i] - sum[j]) for the entries i of the sum j, a gradient u of
    the sums spreads to the entries as w u, and a change v of the entries gathers to a
    change of the sums as v w. The gradient of either is made of both.
    """

    def total(x: tf.Tensor, reverse: bool) -> tf.Tensor:
        value = tf.math.cumulative_logsumexp(x, axis, exclusive, reverse)
        # TensorFlow's turns a NaN into -inf.
        nan = tf.where(tf.math.is_nan(x), x, tf.zeros_like(x))
        return value + tf.cumsum(nan, axis, exclusive, reverse)

    def signed(
        u: tf.Tensor, before: tf.Tensor, after: tf.Tensor, reverse: bool
    ) -> tf.Tensor:
        def part(u: tf.Tensor) -> tf.Tensor:
            is_missing = u <= 0
            logs = tf.math.log(tf.where(is_missing, tf.ones_like(u), u)) + before
            logs = tf.where(is_missing, tf.constant(_LOG_0, u.dtype), logs)
            return tf.exp(_finite(total(logs, reverse)) + after)

        return zero_unused_rows(part(u) - part(-u), u, [axis])

    @custom_gradient
    def spread(u: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
        def vjp(v: tf.Tensor) -> _Pair:
            return gather(v, x), in_x(u, v, x)

        return signed(u, _less(total(x, reverse)), _finite(x), not reverse), vjp

    @custom_gradient
    def gather(v: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
        def vjp(u: tf.Tensor) -> _Pair:
            return spread(u, x), in_x(u, v, x)

        return signed(v, _finite(x), _less(total(x, reverse)), reverse), vjp

    def in_x(u: tf.Tensor, v: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        return times_where_nonzero(v, spread(u, x)) - spread(
            times_where_nonzero(u, gather(v, x)), x
        )

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            # Only differences count; near 0 they are rounded least.
            largest = tf.reduce_max(_finite(x), axis, keepdims=True)
            return spread(upstream, x - tf.stop_gradient(largest))

        value = total(x, reverse)
        # On a GPU, TensorFlow's logarithm of an empty sum is the lowest number; twice
        # that is -inf.
        nothing = tf.zeros_like(value)
        return value + tf.where(value > value.dtype.min, nothing, value), vjp

    return function(x)


def _less(x: tf.Tensor) -> tf.Tensor:
    """Returns `-x`, with a low finite number where `x` is -inf."""
    return tf.where(x < _LOG_0, tf.constant(_LOG_0, x.dtype), -x)


def _finite(x: tf.Tensor) -> tf.Tensor:
    """Returns `x` with a low finite number in place of -inf."""
    return tf.where(x < _LOG_0, tf.constant(_LOG_0, x.dtype), x)


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
