"""Provides one cross-entropy for indices, rows and binary targets."""

from typing import Any, Literal

import keras
import tensorflow as tf

from tfsafe import _args, _calls, _compat
from tfsafe._limits import LIMITS
from tfsafe.keras_formulas import arguments, crossentropy
from tfsafe.losses import _reduction
from tfsafe.losses._reduction import Weighted
from tfsafe.ops.nn import classes


@keras.saving.register_keras_serializable(package="tfsafe")
class StableCrossEntropy(Weighted):
    """Cross-entropy of indices, rows or binary targets, with no NaN and no clip.

    One class for Keras' `SparseCategoricalCrossentropy`, `CategoricalCrossentropy` and
    `BinaryCrossentropy`, right where these give NaN or a wrong gradient: logits of
    `-inf`, labels that do not sum to 1, NaN under a mask or a weight of 0, half
    precision. The guide "Choose a cross-entropy" in the documentation says how many
    digits probabilities keep.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> loss = losses.StableCrossEntropy(from_logits=True)
      >>> logits = tf.constant([[-float("inf"), 0.0, 1.0], [2.0, 1.0, 0.0]])
      >>> print(loss(tf.constant([1, 0]), logits).numpy())
      0.8604
      >>> rows = tf.constant([[0.0, 1.0, 0.0], [float("nan"), 0.0, 0.0]])
      >>> print(loss(rows, logits, sample_weight=[1.0, 0.0]).numpy())
      0.6566

    Args:
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Fraction of the label, from 0 to 1, that is spread evenly over
        the classes; for binary targets, that is moved to 1/2.
      axis: The axis of the classes, in any place. Binary: the axis whose mean is one
        sample's loss, as in `keras.losses.BinaryCrossentropy`.
      reduction: `"sum_over_batch_size"`, `"mean"` (the same), `"sum"`,
        `"mean_with_sample_weight"`, `"none"` or None, as in Keras.
      name: Name of the loss.
      dtype: Dtype of the result, or a dtype policy; None means `keras.config.floatx()`.
      labels: The kind of `y_true`: `"sparse"` (class indices), `"dense"` (one-hot or
        soft rows), `"binary"` (targets from 0 to 1) or `"auto"`, which goes by the
        static shapes: one class along `axis` is binary; `y_true` without that axis, or
        1 long there, is sparse; `y_true` of the shape of `y_pred` is dense, so that
        several labels for a sample need `"binary"`.
      ignore_class: Sparse and binary: a label of this value is ignored, as if masked.

    Call arguments:
      y_true: Labels of any numeric dtype.
      y_pred: Floating predictions.
      sample_weight: Weights for the batch, or for the leading axes of the losses. A
        weight of 0 removes the position, a NaN there included; it still counts in the
        mean, as in Keras.

    Call returns:
      The reduced loss. Positions under the Keras mask of `y_pred`, and those of
      `ignore_class`, are removed and do not count in the mean.

    Raises:
      TypeError: If `y_pred` is not floating, or `y_true` not a dense tensor.
      ValueError: If an option is out of its range, shapes do not fit, `labels="auto"`
        cannot tell, or (in eager mode) a class index is out of range.

    Warns:
      UserWarning: If `from_logits=True` and `y_pred` comes from a softmax or sigmoid.

    Numerics:
      logit -inf          label 0: counts 0, gradient 0; label > 0: value inf
      rows of any sum     gradient p * sum(y_true) - y_true
      row of zero labels  value 0, gradient 0
      NaN ignored         weight 0, mask or `ignore_class`: value 0, gradient 0
      NaN elsewhere       value NaN
      unknown class       ValueError in eager mode; traced: value NaN, gradient 0
      nothing counted     a mean is 0
      probability < 1.2e-38 (in float32)  label 0: counts 0; label > 0: the logarithm
                          continues with slope 1 from its value there, -87.3
      outside [0, 1]      no loss is negative: as `BinaryCrossentropy` and
                          `CategoricalCrossentropy`
      half precision      computed and summed in float32, rounded once

    References:
      Goodfellow, Bengio, Courville, "Deep Learning", 2016, section 6.2.2.
    """

    @_calls.answered()
    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "stable_cross_entropy",
        dtype: Any = None,
        *,
        labels: Literal["auto", "sparse", "dense", "binary"] = "auto",
        ignore_class: int | None = None,
    ):
        super().__init__(name=name, dtype=_compute_dtype(dtype))
        # Set afterwards: Keras 3.3 does not know all of them.
        self.reduction = _args.one_of(reduction, _reduction.REDUCTIONS, "reduction")
        self.from_logits = _args.one_of(from_logits, (False, True), "from_logits")
        self.label_smoothing = classes.checked_smoothing(label_smoothing)
        self.axis = _integer(axis, "axis", "the axis of the classes")
        self.labels = _args.one_of(labels, arguments.KINDS, "labels")
        self.ignore_class = None
        if ignore_class is not None:
            what = "a label, or None"
            self.ignore_class = _integer(ignore_class, "ignore_class", what)
            self._refuse_rows(labels)

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> tf.Tensor:
        """Returns the reduced loss, see the class."""
        mask = _compat.keras_mask(y_pred)
        if mask is not None:
            mask = _reduction.position_mask(mask, y_pred, self.axis)
        with tf.name_scope(self.name):
            return self._reduced(y_true, y_pred, sample_weight, mask, self.reduction)

    def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
        """Returns one loss a sample, without weights, mask or reduction."""
        return self._reduced(y_true, y_pred, None, None, "none")

    def _reduced(
        self, y_true: Any, y_pred: Any, sample_weight: Any, mask: Any, reduction: Any
    ) -> tf.Tensor:
        y_pred = _args.float_tensor(y_pred, "y_pred", tf.float32)
        labels, x = self._tensors(y_true, y_pred)
        axis = classes.class_axis(self.axis, x.shape)
        kind = arguments.kind_of_labels(self.labels, labels.shape, x.shape, axis)
        labels = arguments.lay_out(labels, x.shape, axis, kind)
        options = {
            "from_logits": self.from_logits,
            "label_smoothing": self.label_smoothing,
        }
        if kind == "binary":
            values = crossentropy.binary(labels, x, **options)
        elif kind == "dense":
            values = crossentropy.rows(labels, x, **options, axis=axis)
        else:
            values = crossentropy.indices(labels, x, **options, axis=axis)
        if self.ignore_class is not None:
            self._refuse_rows(kind)
            counted = tf.not_equal(labels, tf.cast(self.ignore_class, labels.dtype))
            mask = _reduction.both(mask, counted)
        weights = _reduction.weights(values, sample_weight, mask)
        if kind == "sparse":
            arguments.refuse_unknown_classes(labels, weights, x, axis)
        mean_axis = axis if kind == "binary" else None
        loss = _reduction.reduce_weighted(values, weights, mask, reduction, mean_axis)
        return tf.cast(loss, self.dtype)

    def _refuse_rows(self, kind: str) -> None:
        if kind == "dense":
            raise ValueError(
                "`ignore_class` needs class indices or binary targets (labels='sparse' "
                f"or 'binary'). Received: ignore_class={self.ignore_class!r} with "
                "labels that are rows. Set `sample_weight` to 0 for rows to be ignored."
            )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments for `from_config`."""
        return {
            **super().get_config(),
            "from_logits": self.from_logits,
            "label_smoothing": self.label_smoothing,
            "axis": self.axis,
            "dtype": self.dtype,
            "labels": self.labels,
            "ignore_class": self.ignore_class,
        }


def _integer(value: Any, name: str, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(
            f"`{name}` must be an integer, {what}. Received: {name}={value!r}."
        )
    return int(value)


def _compute_dtype(dtype: Any) -> str:
    """Returns the name of the floating dtype that a dtype or a policy means."""
    if dtype is None:
        return keras.config.floatx()
    policy = dtype
    try:
        if not isinstance(policy, str | keras.DTypePolicy):
            policy = tf.as_dtype(policy).name
        if isinstance(policy, str):
            policy = keras.DTypePolicy(policy)
        name = policy.compute_dtype
    except (TypeError, ValueError):
        name = None
    if name not in LIMITS:
        raise ValueError(
            "`dtype` must be None, a floating dtype (float16, bfloat16, float32 or "
            f"float64) or a dtype policy. Received: dtype={dtype!r}."
        )
    return name
