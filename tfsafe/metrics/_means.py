"""Provides Keras' running mean and sum, which can skip non-finite values."""

from typing import Any, Literal

import keras
import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import nan_where
from tfsafe.keras_formulas.arguments import align
from tfsafe.metrics._safe_metric import SafeMetric, Wide, safe

_POLICIES = ("propagate", "skip")
Policy = Literal["propagate", "skip"]


class _Reduction(Wide):
    """A mean or a sum of values, with a policy for those that are not finite.

    Mixin; the metric of Keras comes next in the MRO.
    """

    def __init__(self, name: str, dtype: Any, policy: str):
        super().__init__(name=name, dtype=dtype)
        self.policy = _args.one_of(policy, _POLICIES, "policy")
        self.nonfinite = self.add_variable((), "zeros", name="nonfinite")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Adds values.

        Args:
          values: Numbers of any shape.
          sample_weight: Weights of the leading axes of `values`.

        Raises:
          ValueError: If the weights do not fit.
        """
        values, weight = _kept(values, sample_weight)
        wrong = ~tf.math.is_finite(values)
        self.nonfinite.assign_add(tf.math.count_nonzero(wrong, dtype=tf.float64))
        if self.policy == "skip":
            weight = tf.ones_like(values) if weight is None else weight
            weight = tf.where(wrong, tf.zeros_like(values), weight)
            values = tf.where(wrong, tf.zeros_like(values), values)
        super().update_state(values, weight)

    def result(self) -> tf.Tensor:
        """Returns the mean or the sum."""
        return self.in_own_dtype(super().result())

    def reset_state(self) -> None:
        """Starts again."""
        super().reset_state()
        self.nonfinite.assign(0)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments for `from_config`."""
        return {**super().get_config(), "policy": self.policy}


@safe
class Mean(_Reduction, keras.metrics.Mean):
    """Weighted running mean, of the values that are finite.

    `keras.metrics.Mean`, which stays NaN after a single NaN, such as the loss of one
    faulty batch, and whose count in float32 stops at 2^24. Here non-finite values
    are skipped and counted.

    Args:
      name: Name of the metric.
      dtype: Dtype of the result. Sums are kept in float64.
      policy: `"skip"` ignores NaN and infinity. With `"propagate"` they make the
        result NaN or infinite, as in Keras.

    Attributes:
      nonfinite: How many of the values so far were not finite, a variable. Values of
        weight 0 do not count.

    Raises:
      ValueError: If `policy` is neither of the two.

    Numerics:
      NaN, inf             skipped and counted
      nothing else so far  result NaN
      weight 0             ignored, whatever the value is
      before update        result 0

    Examples:
      >>> from tfsafe import metrics
      >>> mean = metrics.Mean()
      >>> for loss in [1.0, float("nan"), 2.0]:
      ...     mean.update_state(loss)
      >>> print(float(mean.result()), int(mean.nonfinite.numpy()))
      1.5 1
    """

    def __init__(
        self, name: str = "mean", dtype: Any = None, *, policy: Policy = "skip"
    ):
        super().__init__(name, dtype, policy)

    def result(self) -> tf.Tensor:
        """Returns the mean; NaN if there were values, and none was finite."""
        value = super().result()
        nothing = tf.equal(self.count.value, 0) & (self.nonfinite.value > 0)
        return value + nan_where(nothing, value.dtype)


@safe
class Sum(_Reduction, keras.metrics.Sum):
    """Weighted running sum, in which a weight of 0 removes a NaN.

    Args:
      name: Name of the metric.
      dtype: Dtype of the result. Sums are kept in float64.
      policy: With `"propagate"` NaN and infinity make the result NaN or infinite, as
        in Keras. `"skip"` ignores them.

    Attributes:
      nonfinite: How many of the values so far were not finite, a variable. Values of
        weight 0 do not count.

    Raises:
      ValueError: If `policy` is neither of the two.

    Numerics:
      NaN            result NaN; skipped and counted under `policy="skip"`
      weight 0       ignored, whatever the value is
      before update  result 0

    Examples:
      >>> from tfsafe import metrics
      >>> total = metrics.Sum()
      >>> total.update_state([1.0, float("nan")], sample_weight=[1, 0])
      >>> print(float(total.result()))
      1.0
    """

    def __init__(
        self, name: str = "sum", dtype: Any = None, *, policy: Policy = "propagate"
    ):
        super().__init__(name, dtype, policy)


def _kept(values: Any, sample_weight: Any) -> tuple[tf.Tensor, tf.Tensor | None]:
    """Returns floats, 0 where the weight is 0, and weights of their shape."""
    values = tf.convert_to_tensor(values)
    wide = tf.float64 if values.dtype in (tf.float64, tf.int64) else tf.float32
    values = tf.cast(values, wide)
    if sample_weight is None:
        return values, None
    weight = align(tf.cast(sample_weight, wide), values, "sample_weight")
    return tf.where(tf.equal(weight, 0), tf.zeros_like(values), values), weight


@safe
class MeanMetricWrapper(SafeMetric, keras.metrics.MeanMetricWrapper):
    """Mean of a function of labels and predictions.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import metrics
      >>> metric = metrics.MeanMetricWrapper(lambda y, p: tf.abs(y - p))
      >>> metric.update_state([1.0, 2.0], [2.0, 4.0])
      >>> print(float(metric.result()))
      1.5
    """
