"""Keras' running mean and sum, which one bad value does not spoil."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import nan_where
from tfsafe.keras_formulas.arguments import align
from tfsafe.metrics._judging import Wide, judged, safe


@safe
class Mean(Wide, keras.metrics.Mean):
    """Weighted running mean, of the values that are finite.

    `keras.metrics.Mean`, which stays NaN after a single NaN, such as the loss of one
    bad batch, and whose count in float32 stands still at 2^24. Here the bad values are
    left out and counted.

    Args:
      name: Name of the metric.
      dtype: Dtype of the result. Sums are kept in float64.
      skip_nonfinite: Whether NaN and infinity are left out. If not, they make the
        result NaN or infinite, as in Keras.

    Attributes:
      nonfinite: How many of the values so far were not finite, a variable. Values of
        weight 0 do not count.

    Raises:
      ValueError: If `skip_nonfinite` is not a boolean.

    Numerics:
      NaN, inf             left out and counted
      nothing else so far  result NaN
      weight 0             left out, whatever stands there
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
        self, name: str = "mean", dtype: Any = None, *, skip_nonfinite: bool = True
    ):
        super().__init__(name=name, dtype=dtype)
        self.skip_nonfinite = _args.one_of(
            skip_nonfinite, (False, True), "skip_nonfinite"
        )
        self.nonfinite = self.add_variable((), "zeros", name="nonfinite")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Takes values in.

        Args:
          values: Numbers of any shape.
          sample_weight: Weights of the leading axes of `values`.

        Raises:
          ValueError: If the weights do not fit.
        """
        values, weight = _kept(values, sample_weight)
        bad = ~tf.math.is_finite(values)
        self.nonfinite.assign_add(tf.math.count_nonzero(bad, dtype=tf.float64))
        if self.skip_nonfinite:
            weight = tf.ones_like(values) if weight is None else weight
            weight = tf.where(bad, tf.zeros_like(values), weight)
            values = tf.where(bad, tf.zeros_like(values), values)
        super().update_state(values, weight)

    def result(self) -> tf.Tensor:
        """Returns the mean; NaN if there were values, and none was finite."""
        value = self.in_own_dtype(super().result())
        nothing = tf.equal(self.count.value, 0) & (self.nonfinite.value > 0)
        return value + nan_where(nothing, value.dtype)

    def reset_state(self) -> None:
        """Starts again."""
        super().reset_state()
        self.nonfinite.assign(0)

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs."""
        return {**super().get_config(), "skip_nonfinite": self.skip_nonfinite}


@safe
class Sum(Wide, keras.metrics.Sum):
    """Weighted running sum, in which a weight of 0 takes a NaN out.

    Args:
      name: Name of the metric.
      dtype: Dtype of the result. Sums are kept in float64.

    Numerics:
      NaN            result NaN
      weight 0       left out, whatever stands there
      before update  result 0

    Examples:
      >>> from tfsafe import metrics
      >>> total = metrics.Sum()
      >>> total.update_state([1.0, float("nan")], sample_weight=[1, 0])
      >>> print(float(total.result()))
      1.0
    """

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Takes values in.

        Args:
          values: Numbers of any shape.
          sample_weight: Weights of the leading axes of `values`.

        Raises:
          ValueError: If the weights do not fit.
        """
        super().update_state(*_kept(values, sample_weight))

    def result(self) -> tf.Tensor:
        """Returns the sum."""
        return self.in_own_dtype(super().result())


def _kept(values: Any, sample_weight: Any) -> tuple[tf.Tensor, tf.Tensor | None]:
    """Returns floats with 0 in place of what has weight 0, and the whole weights."""
    values = tf.convert_to_tensor(values)
    wide = tf.float64 if values.dtype in (tf.float64, tf.int64) else tf.float32
    values = tf.cast(values, wide)
    if sample_weight is None:
        return values, None
    weight = align(tf.cast(sample_weight, wide), values, "sample_weight")
    return tf.where(tf.equal(weight, 0), tf.zeros_like(values), values), weight


MeanMetricWrapper = judged("MeanMetricWrapper")
