"""Softmax under a mask, at any temperature, and of rows where nothing is possible."""

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import chain, custom_gradient, local, nan_where, unbroadcast
from tfsafe._limits import LIMITS
from tfsafe.ops.elementwise.division import ratio
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.known import known

_Axis = Sequence[int] | None
_Gradient = Callable[[tf.Tensor], tf.Tensor]


def softmax(
    logits: Any,
    axis: int | Sequence[int] | None = -1,
    *,
    mask: Any = None,
    temperature: Any = 1.0,
    name: str = "softmax",
) -> tf.Tensor:
    """Computes `exp(logits / temperature)`, divided by its sum along `axis`.

    A row in which nothing is possible, because all of it is masked or `-inf`, is 0 with
    gradient 0, where `tf.nn.softmax` has NaN. What stands under the mask does not
    matter, NaN included.

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
      `Tensor` with the shape and dtype of `logits`, from 0 to 1. float16 and bfloat16
      are computed in float32.

    Raises:
      TypeError: If `logits`, `mask` or `temperature` has a wrong dtype, or if `axis` is
        not an integer.
      ValueError: If `axis` is out of range or names an axis twice, if `mask` does not
        broadcast to `logits`, or if `temperature` is a negative number.

    Numerics:
      error          <= 4 ulp, and 1 more for each unit of the distance to the largest
                     logit, because that distance is rounded; gradient in units of its
                     largest term
      masked         value 0, gradient 0
      one -inf       value 0, gradient 0
      all -inf       value 0, gradient 0 (a choice), all masked likewise
      +inf           value NaN, gradient NaN, in the whole row
      NaN            value NaN, gradient NaN, in the whole row
      temperature 0  value 1 / k at the k largest, else 0; gradients 0 (a choice at
                     ties)
      temperature < 0  value NaN
      A row of zero incoming gradients gets zero gradients, whatever stands in it.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[1.0, 1.0, float("nan")], [1.0, 2.0, 3.0]])
      >>> mask = tf.constant([[True, True, False], [False, False, False]])
      >>> print(tfsafe.ops.softmax(x, mask=mask).numpy())
      [[0.5 0.5 0. ]
       [0.  0.  0. ]]
      >>> print(tfsafe.ops.softmax(tf.constant([1.0, 3.0, 3.0]), temperature=0).numpy())
      [0.  0.5 0.5]

    References:
      Blanchard, Higham and Higham, "Accurately computing the log-sum-exp and softmax
      functions", IMA Journal of Numerical Analysis 41(4), 2021.
    """
    with tf.name_scope(name):
        logits = _args.float_tensor(logits, "logits")
        along = _args.axes(axis, logits.shape)
        keep = None if mask is None else _args.keeps(mask, logits)

        def function(x: tf.Tensor, temperature: tf.Tensor | None) -> tf.Tensor:
            x = hide(x, keep)
            if temperature is not None:
                x = temper(x, temperature, along)
            return softmax_of(x, along, keep)

        return at_temperature(function, logits, temperature)


def at_temperature(
    function: Callable[[tf.Tensor, tf.Tensor | None], tf.Tensor],
    logits: tf.Tensor,
    temperature: Any,
) -> tf.Tensor:
    """Runs `function(logits, temperature)` in float32.

    Args:
      function: Its second argument is None for a temperature of 1.
      logits: Floating `Tensor`.
      temperature: Number, or `Tensor` of the dtype of `logits`.

    Returns:
      The result, in the dtype of `logits`.

    Raises:
      TypeError: If `temperature` is not a number and not of the dtype of `logits`.
      ValueError: If it is a negative number, or too large for the dtype.
    """
    if hasattr(temperature, "dtype") and not isinstance(temperature, numbers.Real):
        _args.float_tensors(logits=logits, temperature=temperature)
        divisor = tf.convert_to_tensor(temperature)
        return precision.in_float32(function, logits, divisor)
    value = _args.number(temperature, "temperature", logits.dtype)
    if value < 0:
        raise ValueError(
            "`temperature` must be at least 0. Received: "
            f"temperature={temperature!r}. At 0 the largest logit takes all."
        )
    if value == 1:
        return precision.in_float32(lambda x: function(x, None), logits)
    return precision.in_float32(
        lambda x: function(x, tf.constant(value, x.dtype)), logits
    )


def hide(x: tf.Tensor, keep: tf.Tensor | None) -> tf.Tensor:
    """Puts the lowest finite number where `keep` is False."""
    # Not `-inf`: a check of all operations must not find what nobody computed.
    lowest = tf.constant(-LIMITS[x.dtype.name].max, x.dtype)
    return x if keep is None else tf.where(keep, x, lowest)


def is_minus_inf(x: tf.Tensor) -> tf.Tensor:
    """Returns whether `x` is `-inf`, without a `-inf` to compare with."""
    return x < tf.constant(-LIMITS[x.dtype.name].max, x.dtype)


def _largest(x: tf.Tensor, axis: _Axis) -> tf.Tensor:
    """Returns the largest of each row, and 0 for a row of nothing but `-inf`."""
    largest = tf.reduce_max(x, axis, keepdims=True)
    return tf.where(is_minus_inf(largest), tf.zeros_like(largest), largest)


def temper(x: tf.Tensor, temperature: tf.Tensor, axis: _Axis) -> tf.Tensor:
    """Returns `(x - max(x)) / temperature`; the lowest finite number where it is lower.

    What is `-inf` stays so. The gradient leaves out what comes through the maximum: it
    is for functions whose gradients along `axis` sum to 0.
    """

    @custom_gradient
    def function(
        x: tf.Tensor, temperature: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
        inputs = x, temperature
        below = x - _largest(x, axis)
        is_zero = tf.equal(temperature, 0)
        quotient = below / tf.where(is_zero, tf.ones_like(temperature), temperature)
        is_lowest = (is_zero & (below < 0)) | is_minus_inf(quotient)
        # No `~is_lowest`: a graph makes `x >= y` of `not x < y`, and a NaN is lost.
        lowest = tf.constant(-LIMITS[x.dtype.name].max, x.dtype)
        value = tf.where(is_lowest, lowest, quotient)
        value = tf.where(is_minus_inf(x), x, value)

        def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            in_x = ratio(upstream, temperature)
            again = known(value, lambda x, t: temper(x, t, axis), *inputs)
            in_temperature = -chain(in_x, again)
            return in_x, unbroadcast(in_temperature, temperature)

        return value + nan_where(temperature < 0, x.dtype), vjp

    return function(x, temperature)


def softmax_of(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None = None) -> tf.Tensor:
    """Computes the softmax of what `keep` keeps; all else must be finite, and is 0."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        # Not `tf.nn.softmax`, which on a CPU gives 0 beside a NaN or an infinity.
        exponentials = tf.exp(x - _largest(x, axis))
        if keep is not None:
            exponentials = tf.where(keep, exponentials, tf.zeros_like(x))
        total = tf.reduce_sum(exponentials, axis, keepdims=True)
        value = exponentials / tf.where(tf.equal(total, 0), tf.ones_like(total), total)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            mask = local(keep)
            if mask is not None:
                upstream = tf.where(mask, upstream, tf.zeros_like(upstream))
            probs = known(value, lambda x: softmax_of(x, axis, mask), x)
            return softmax_vjp(probs, upstream, axis)

        return value, vjp

    return function(x)


def softmax_vjp(probs: tf.Tensor, upstream: tf.Tensor, axis: _Axis) -> tf.Tensor:
    """Returns `p * (u - sum(p * u))` without the `1 - p` of a dominating class.

    The bracket is the same for `u` and for `u` minus a constant. With the mean taken
    off, the entry of a dominating class is all but 0, and the second mean exact.
    """
    for _ in range(2):
        upstream -= tf.reduce_sum(chain(upstream, probs), axis, keepdims=True)
    return chain(upstream, probs)
