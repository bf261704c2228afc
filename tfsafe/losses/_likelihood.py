"""Provides Keras' losses of probabilities and rates, except cross-entropies."""

import functools
from typing import Any

import keras

from tfsafe import _args
from tfsafe.keras_formulas import likelihood
from tfsafe.losses._reduction import Weighted, given, safe


@safe
class KLDivergence(Weighted, keras.losses.KLDivergence):
    """Kullback-Leibler divergence, `sum(y_true * log(y_true / y_pred))`.

    `keras.losses.KLDivergence` without its clip at 1e-7, and with an option for logits.
    Those of a softmax right before the loss are found without it.

    Args:
      reduction: How the losses of the samples are reduced, as in Keras.
      name: Name of the loss.
      dtype: Dtype of the result; half precision is computed in float32.
      from_logits: Whether `y_pred` holds logits, whose softmax is meant.

    Raises:
      ValueError: If `from_logits` is not a boolean.

    Numerics:
      y_true = 0        the class counts 0
      probability ~0    below the smallest normal number (1.2e-38 in float32) the
                        logarithm continues with slope 1 from its value there, -87.3
                        (a bounded choice)
      logit -inf        value inf where y_true > 0

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.KLDivergence(from_logits=True)
      >>> print(loss([[1.0, 0.0]], [[0.0, 200.0]]).numpy())
      200.
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "kl_divergence",
        dtype: Any = None,
        *,
        from_logits: bool = False,
    ):
        super().__init__(reduction=reduction, name=name, **given(dtype=dtype))
        self.from_logits = _args.one_of(from_logits, (False, True), "from_logits")
        self.formula = functools.partial(
            likelihood.kl_divergence, from_logits=from_logits
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments for `from_config`."""
        return {**super().get_config(), "from_logits": self.from_logits}


@safe
class Poisson(Weighted, keras.losses.Poisson):
    """Negative log-likelihood of counts, `mean(y_pred - y_true * log(y_pred))`.

    `keras.losses.Poisson`, finite for rates of 0 and below, and with an option for
    logarithms of rates.

    Args:
      reduction: How the losses of the samples are reduced, as in Keras.
      name: Name of the loss.
      dtype: Dtype of the result; half precision is computed in float32.
      log_input: Whether `y_pred` holds the logarithms of the rates. The model then
        needs no `exp` at its end, and no rate is rounded to 0.

    Raises:
      ValueError: If `log_input` is not a boolean.

    Numerics:
      y_true = 0        value y_pred, slope 1
      y_pred <= 0       below the smallest normal number (1.2e-38 in float32) the
                        logarithm continues with slope 1 from its value there, -87.3
                        (a bounded choice)

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.Poisson(log_input=True)([[5.0]], [[-100.0]]).numpy())
      500.
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "poisson",
        dtype: Any = None,
        *,
        log_input: bool = False,
    ):
        super().__init__(reduction=reduction, name=name, **given(dtype=dtype))
        self.log_input = _args.one_of(log_input, (False, True), "log_input")
        self.formula = functools.partial(likelihood.poisson, log_input=log_input)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments for `from_config`."""
        return {**super().get_config(), "log_input": self.log_input}
