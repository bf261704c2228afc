"""Computes divergences and likelihoods of probabilities and rates."""

from typing import Any

import tensorflow as tf

from tfsafe.keras_formulas import arguments, logit_recovery
from tfsafe.keras_formulas.arguments import formula, saved
from tfsafe.ops.elementwise import entropy
from tfsafe.ops.kernels import zeros
from tfsafe.ops.kernels.exponential import exp


@saved
def kl_divergence(y_true: Any, y_pred: Any, *, from_logits: bool = False) -> tf.Tensor:
    """Computes the Kullback-Leibler divergence, `sum(y_true * log(y_true / y_pred))`.

    As `keras.losses.kl_divergence`, which clips both at 1e-7: 100,000 classes of equal
    probability cost 11.47 instead of 11.51, and a prediction below 1e-7 has no
    gradient.

    Args:
      y_true: Probabilities of shape `[..., classes]`, of any numeric dtype.
      y_pred: Probabilities of the same shape, or logits.
      from_logits: Whether `y_pred` holds logits, whose softmax is meant. Those of a
        softmax right before the call are found without it.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      y_true = 0                  the class counts 0
      y_true > 0, probability ~0  below the smallest normal number (1.2e-38 in float32)
                                  the logarithm continues with slope 1 from its value
                                  there, -87.3 (a bounded choice)
      y_true > 0, logit -inf      value inf
      y_true < 0                  value NaN
      NaN                         value NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.kl_divergence([[0.5, 0.5]], [[1.0, 1e-30]]).numpy())
      [33.84563]
      >>> logits = [[0.0, 200.0]]
      >>> print(losses.kl_divergence([[1, 0]], logits, from_logits=True).numpy())
      [200.]
    """
    y_pred = arguments.predictions(y_pred)
    dtype = y_pred.dtype
    if not from_logits and y_pred.shape.rank:
        logits = logit_recovery.logits_behind(y_pred, y_pred.shape.rank - 1)
        if logits is not None:
            y_pred, from_logits = logits, True

    def divergence(y: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
        if from_logits:
            return entropy.kl_divergence(y, p, from_logits=True)
        least = zeros.smallest_normal(p)
        below = zeros.weighted_unless_nan(y, tf.minimum(p - least, 0))
        above = entropy.kl_divergence(y, tf.maximum(p, least))
        return above - tf.reduce_sum(below, -1)

    values = arguments.compute(divergence, y_true, y_pred, "kl_divergence")
    return tf.cast(values, dtype)


@formula
def poisson(y_true: Any, y_pred: Any, *, log_input: bool = False) -> tf.Tensor:
    """Computes the mean of `y_pred - y_true * log(y_pred)` along the last axis.

    This is the negative log-likelihood of counts under Poisson's distribution, without
    the term of `y_true` alone. As `keras.losses.poisson`, which adds 1e-7 to the
    prediction and is NaN for a negative one.

    Args:
      y_true: Counts of shape `[..., n]`, of any numeric dtype.
      y_pred: Rates of the same shape, or their logarithms.
      log_input: Whether `y_pred` holds logarithms of rates. The loss is then exact for
        every rate, where `exp` would have rounded small ones to 0.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      y_true = 0   value y_pred, slope 1
      y_pred <= 0  below the smallest normal number (1.2e-38 in float32) the logarithm
                   continues with slope 1 from its value there, -87.3 (a bounded choice)
      NaN          value NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.poisson([[2.0, 0.0]], [[1.0, 3.0]]).numpy())
      [2.]
      >>> print(losses.poisson([[5.0]], [[-100.0]], log_input=True).numpy())
      [500.]
    """
    rate, log_rate = (
        (exp(y_pred), y_pred) if log_input else (y_pred, zeros.log_continued(y_pred))
    )
    return tf.reduce_mean(rate - zeros.weighted_unless_nan(y_true, log_rate), -1)
