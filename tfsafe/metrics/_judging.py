"""What the metrics of predictions share: weights of 0, wide sums, and NaN."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe._gradients import nan_where
from tfsafe.keras_formulas.arguments import align, widened

# Not "tfsafe": losses of the same names are saved under that.
safe = keras.saving.register_keras_serializable(package="tfsafe.metrics")


class Wide(keras.metrics.Metric):
    """A metric that sums in float64, which counts one by one up to 2^53."""

    def add_variable(
        self,
        shape: Any,
        initializer: Any,
        dtype: Any = None,  # noqa: ARG002
        **options: Any,
    ) -> Any:
        """Adds a variable of float64, whatever dtype is asked for."""
        return super().add_variable(shape, initializer, dtype="float64", **options)

    def in_own_dtype(self, value: Any) -> tf.Tensor:
        """Casts a result to the dtype of the metric, which of some is an integer."""
        is_floating = tf.as_dtype(self.dtype).is_floating
        return tf.cast(value, self.dtype if is_floating else keras.config.floatx())


class Judging(Wide):
    """A metric of labels and predictions that never counts a NaN for a number.

    To stand before a metric of Keras among the bases of a class.

    Attributes:
      formula: Takes the place of Keras' function of `y_true` and `y_pred`, with the
        same options. Keras' own where None.
      weighs_elements: Whether Keras takes weights of the shape of the predictions,
        and lays others out by their last axes.
      takes_float32: Whether Keras' function fails for predictions of another dtype.
    """

    formula: Callable[..., tf.Tensor] | None = None
    weighs_elements = False
    takes_float32 = False

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Takes a batch in.

        Args:
          y_true: Labels.
          y_pred: Predictions.
          sample_weight: Weights of the leading axes. What has a weight of 0 is left
            out, a NaN there included.

        Raises:
          ValueError: If the weights do not fit.
        """
        weight = self._weight(y_pred, sample_weight)
        y_true, y_pred = tf.convert_to_tensor(y_true), self._predictions(y_pred)
        if weight is not None:
            # A label and a prediction of 0 are harmless to every metric.
            y_true, y_pred = _kept(y_true, weight), _kept(y_pred, weight)
            if self.weighs_elements:
                weight = align(weight, y_pred, "sample_weight")
        if self.formula is not None:
            values = self.formula(y_true, y_pred, **_compat.loss_options(self))
            keras.metrics.Mean.update_state(self, values, weight)
            return
        broken = _has_nan(y_true) | _has_nan(y_pred)
        # As an integer a NaN is the index of a class that does not exist.
        super().update_state(_without_nan(y_true), y_pred, weight)
        # Kept in the state, so that nothing that follows can make it a number again.
        self.variables[0].assign_add(nan_where(broken, tf.float64))

    def _predictions(self, y_pred: Any) -> tf.Tensor:
        if self.formula is not None:
            # Its result has the dtype of the predictions.
            return widened(y_pred, self.dtype)
        tensor = tf.convert_to_tensor(y_pred)
        if tensor.dtype.is_floating and self.takes_float32:
            return tf.cast(tensor, tf.float32)
        return tensor

    def _weight(self, y_pred: Any, sample_weight: Any) -> tf.Tensor | None:
        """Joins the weights with the Keras mask, where Keras' metric obeys it."""
        mask = _compat.keras_mask(y_pred)
        if not isinstance(self, keras.metrics.MeanMetricWrapper):
            mask = None
        if mask is not None and len(mask.shape) == len(y_pred.shape):
            # Of single classes, as `Softmax` attaches it: some are there.
            mask = tf.reduce_any(tf.cast(mask, tf.bool), -1)
        if sample_weight is None:
            return None if mask is None else tf.cast(mask, tf.float32)
        weight = tf.convert_to_tensor(sample_weight)
        if weight.dtype.is_bool:
            weight = tf.cast(weight, tf.float32)
        if mask is None:
            return weight
        kept = tf.cast(mask, tf.bool)
        weight = align(weight, kept, "sample_weight")
        return tf.where(kept, weight, tf.zeros_like(weight))

    def result(self) -> Any:
        """Returns the metric: NaN if one that counts was NaN, 0 before any update."""
        if not self.variables:
            # Some metrics make theirs with the first update.
            return self.in_own_dtype(0)
        return self.nan_if_broken(self.in_own_dtype(super().result()))

    def nan_if_broken(self, value: tf.Tensor) -> tf.Tensor:
        """Returns a result, or NaN if there is one in the state."""
        broken = tf.reduce_any([_has_nan(v.value) for v in self.variables])
        return value + nan_where(broken, value.dtype)


def _kept(x: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    counts = tf.not_equal(align(weight, x, "sample_weight"), 0)
    # A constant: the cross entropies look for logits behind a mask that puts 0.
    return tf.where(counts, x, tf.zeros([], x.dtype))


def _has_nan(x: tf.Tensor) -> tf.Tensor:
    if not x.dtype.is_floating:
        return tf.constant(False)
    return tf.reduce_any(tf.math.is_nan(x))


def _without_nan(x: tf.Tensor) -> tf.Tensor:
    if not x.dtype.is_floating:
        return x
    return tf.where(tf.math.is_nan(x), tf.zeros_like(x), x)


def judged(
    name: str,
    formula: Callable[..., tf.Tensor] | None = None,
    numerics: str = "",
    **attributes: Any,
) -> Any:
    """Makes the safe form of a metric of Keras.

    Args:
      name: Name of the metric in `keras.metrics`.
      formula: Takes the place of Keras' function; Keras' own where None.
      numerics: Lines for the docstring's table.
      **attributes: Of the class.

    Returns:
      The class, with the signature of Keras'.
    """
    base = getattr(keras.metrics, name)
    if formula is not None:
        attributes["formula"] = staticmethod(formula)
    attributes["__doc__"] = _TEMPLATE.format(
        name=name, arguments=_arguments(base), numerics=numerics
    )
    attributes["__module__"] = "tfsafe.metrics"
    return safe(type(name, (Judging, base), attributes))


_TEMPLATE = """`keras.metrics.{name}` that a NaN cannot pass through unseen.

    A NaN among labels or predictions makes the result NaN until the next
    `reset_state`, unless its weight is 0. Sums are kept in float64, so that counts go
    on beyond 2^24.
{arguments}
    Numerics:
      NaN            result NaN; never counted as right, wrong or a class
      weight 0       left out, whatever stands there
      before update  result 0
{numerics}"""


def _arguments(base: Any) -> str:
    """Returns the section on arguments of a docstring of Keras, or nothing."""
    lines = (base.__doc__ or "").splitlines()
    if "    Args:" not in lines:
        return ""
    start = lines.index("    Args:")
    section = [lines[start]]
    for line in lines[start + 1 :]:
        if line.strip() and not line.startswith("     "):
            break
        section.append(line)
    return "\n" + "\n".join(section).rstrip() + "\n"
