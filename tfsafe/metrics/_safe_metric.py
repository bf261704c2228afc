"""Gives metrics of Keras safe weights, sums in float64, and a NaN that stays."""

from collections.abc import Callable
from typing import Any, TypeVar

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe._gradients import nan_where
from tfsafe._report import text
from tfsafe.keras_formulas.arguments import align, widened

_Metric = TypeVar("_Metric", bound=type)
# Kept, because a program may put ours in their place.
_KerasMean, _KerasWrapper = keras.metrics.Mean, keras.metrics.MeanMetricWrapper
_NUMERICS = """\
  NaN            result NaN until `reset_state`; never counted as a number
  weight 0       ignored, whatever the label and the prediction are
  before update  result 0
  Sums are kept in float64, so that counts go on beyond 2^24.
"""


def safe(metric: _Metric) -> _Metric:
    """Registers a class as a metric of `tfsafe.metrics`, and completes its docstring.

    A class without `Args` has those of Keras. The rows on NaN and weights, which are
    those of all metrics, come first in the `Numerics` block of a class that does not
    say otherwise.

    Returns:
      The class itself.
    """
    metric.__module__ = "tfsafe.metrics"
    docstring = metric.__doc__ or ""
    keras_args = f"  Those of `keras.metrics.{metric.__name__}`.\n"
    args = "" if "Args:\n" in docstring else keras_args
    metric.__doc__ = text.with_shared(docstring, args, _NUMERICS)
    # Do not use "tfsafe": losses of the same names are saved under it.
    keras.saving.register_keras_serializable(package="tfsafe.metrics")(metric)
    return metric


def result_dtype(dtype: Any) -> str:
    """Returns the name of the dtype that a dtype, a policy or None asks for."""
    dtype = getattr(dtype, "compute_dtype", dtype) or keras.config.floatx()
    return tf.as_dtype(dtype).name


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
        """Casts a result to the dtype of the metric, or to float32 if that is whole."""
        is_floating = tf.as_dtype(self.dtype).is_floating
        return tf.cast(value, self.dtype if is_floating else keras.config.floatx())


class SafeMetric(Wide):
    """A metric of labels and predictions that never counts a NaN for a number.

    Mixin; the metric of Keras comes next in the MRO.

    Attributes:
      formula: Replaces Keras' function of `y_true` and `y_pred`, and takes the same
        options. None keeps Keras' own.
      weighs_elements: Whether Keras takes weights of the shape of the predictions,
        and lays others out by their last axes.
      takes_float32: Whether Keras' function fails for predictions of another dtype.
    """

    formula: Callable[..., tf.Tensor] | None = None
    weighs_elements = False
    takes_float32 = False

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch.

        Args:
          y_true: Labels.
          y_pred: Predictions.
          sample_weight: Weights of the leading axes. Positions of weight 0 are
            ignored, a NaN there included.

        Raises:
          ValueError: If the weights do not fit.
        """
        weight = self._weight(y_pred, sample_weight)
        y_true = tf.convert_to_tensor(y_true)
        y_pred = self._predictions(y_true, y_pred)
        if weight is not None:
            # A label and a prediction of 0 are harmless to every metric.
            y_true, y_pred = _kept(y_true, weight), _kept(y_pred, weight)
            if self.weighs_elements:
                weight = align(weight, y_pred, "sample_weight")
                class_id = getattr(self, "class_id", None)
                if class_id is not None:
                    # Keras counts this class alone.
                    weight = weight[..., class_id, tf.newaxis]
        if self.formula is not None:
            values = self.formula(y_true, y_pred, **_compat.loss_options(self))
            _KerasMean.update_state(self, values, weight)
            return
        broken = _has_nan(y_true) | _has_nan(y_pred)
        # As an integer a NaN is the index of a class that does not exist.
        super().update_state(without_nan(y_true), y_pred, weight)
        # Kept in the state, so that nothing that follows can make it a number again.
        self.variables[0].assign_add(nan_where(broken, tf.float64))

    def _predictions(self, y_true: tf.Tensor, y_pred: Any) -> tf.Tensor:
        if self.formula is not None:
            # The result of the formula has the dtype of the predictions.
            is_wide = tf.float64 in {getattr(y_pred, "dtype", None), y_true.dtype}
            return widened(y_pred, "float64" if is_wide else self.dtype)
        tensor = tf.convert_to_tensor(y_pred)
        if tensor.dtype.is_floating and self.takes_float32:
            return tf.cast(tensor, tf.float32)
        return tensor

    def _weight(self, y_pred: Any, sample_weight: Any) -> tf.Tensor | None:
        """Joins the weights with the Keras mask, if Keras' metric obeys it."""
        mask = _compat.keras_mask(y_pred)
        if not isinstance(self, _KerasWrapper):
            mask = None
        if mask is not None and len(mask.shape) == len(y_pred.shape):
            # A mask of single classes, as `Softmax` attaches it.
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
        """Returns the metric: NaN if a value of weight above 0 was NaN, 0 at first."""
        if not self.variables:
            # Some metrics make their variables with the first update.
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


def is_nan(x: tf.Tensor) -> tf.Tensor:
    """Returns where a tensor is NaN.

    Without `IsNan`: `tfsafe.stabilize` rewrites no formula whose value a model asks
    about, because who asks for NaN wants to see it.
    """
    return tf.not_equal(x, x)


def _has_nan(x: tf.Tensor) -> tf.Tensor:
    if not x.dtype.is_floating:
        return tf.constant(False)
    return tf.reduce_any(is_nan(x))


def without_nan(x: tf.Tensor) -> tf.Tensor:
    """Returns a tensor with 0 in the place of NaN."""
    if not x.dtype.is_floating:
        return x
    return tf.where(is_nan(x), tf.zeros_like(x), x)
