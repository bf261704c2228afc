"""Softmax and its logarithm, under a mask and at any temperature."""

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.probability import exponential_sums, probabilities


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
    gradient 0, where `tf.nn.softmax` has NaN. Masked elements do not
    matter, NaN included.

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
      all -inf       value 0, gradient 0 (a choice), also where all is masked
      +inf           value NaN, gradient NaN, in the whole row
      NaN            value NaN, gradient NaN, in the whole row
      temperature 0  value 1 / k at the k largest, else 0; gradients 0 (a choice at
                     ties)
      temperature < 0  value NaN
      A row of zero incoming gradients gets zero gradients, whatever it holds.

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
            x = probabilities.hide(x, keep)
            if temperature is not None:
                x = probabilities.temper(x, temperature, along)
            return probabilities.softmax(x, along, keep)

        return _at_temperature(function, logits, temperature)


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
            if keep is not None:
                x = exponential_sums.exclude(probabilities.hide(x, keep), ~keep)
            if temperature is not None:
                x = probabilities.temper(x, temperature, along)
                x = exponential_sums.exclude(x, tf.equal(x, -LIMITS[x.dtype.name].max))
            return exponential_sums.log_softmax(x, along)

        return _at_temperature(function, logits, temperature)


def _at_temperature(
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
