"""Normalizes features by the statistics of a whole dataset."""

import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import keras
import numpy as np
import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels.statistics.running_statistics import (
    Moments,
    denormalize,
    normalize,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfsafe.layers.options import LayerOptions


@keras.saving.register_keras_serializable(package="tfsafe")
class Normalization(keras.layers.Normalization):
    """Normalization of raw features: with NaN, constant, or with large means.

    With `keras.layers.Normalization` one NaN among the data makes its feature NaN, a
    constant feature of 3.3 becomes -1, time stamps lose all their digits, and a mean
    above 65504 is NaN under `mixed_float16`. Here the statistics are taken and kept in
    float64.

    Arguments, shapes and weights are those of `keras.layers.Normalization`; `mean` and
    `variance` among the weights have dtype float64.

    Call arguments:
      inputs: Numbers. Integers and float64 are centred in float64.

    Numerics:
      error         <= 3 ulp of the result, from the statistics in float64
      constant      a feature whose variance is 0 is centred and not scaled: 0 for all
                    values that `adapt` saw. No variance above 0 is replaced by a
                    larger one
      NaN, inf      `adapt` skips them, feature by feature, with a warning; the call
                    passes them on
      Computed in float32 under `mixed_float16` and `mixed_bfloat16`, and rounded once.
      There the result of `invert=True` may not fit; give the layer `dtype="float32"`.

    Examples:
      >>> import numpy as np
      >>> from tfsafe import layers
      >>> layer = layers.Normalization()
      >>> layer.adapt(np.array([[3.3, 1.7e9], [3.3, 1.7e9 + 2.0]]))
      >>> print(layer(np.array([[3.3, 1.7e9], [3.4, 1.7e9 + 3.0]])).numpy())
      [[ 0.  -1. ]
       [ 0.1  2. ]]

    References:
      Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for
      Computing Sample Variances", COMPSTAT 1982, for the sums over batches.
      Dekker, "A Floating-Point Technique for Extending the Available Precision",
      Numerische Mathematik 18, 1971, for the mean in two parts.
    """

    def __init__(
        self,
        axis: int | Sequence[int] | None = -1,
        mean: Any = None,
        variance: Any = None,
        invert: bool = False,
        **kwargs: "Unpack[LayerOptions]",
    ):
        super().__init__(axis, mean, variance, invert, **kwargs)
        # Raw features overflow in half precision.
        self.autocast = False

    def __call__(self, inputs: Any, **kwargs: Any) -> Any:
        """Calls the layer, without the cast that Keras begins with."""
        if not isinstance(inputs, keras.KerasTensor):
            inputs = tf.convert_to_tensor(inputs)
        return keras.layers.Layer.__call__(self, inputs, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Creates the weights of the statistics, for features of this shape."""
        self._built_for = tuple(input_shape)
        super().build(input_shape)
        self.finalize_state()

    def add_weight(self, *args: Any, name: str | None = None, **kwargs: Any) -> Any:
        """Adds a weight as Keras does; the statistics with dtype float64."""
        if name in ("mean", "variance"):
            kwargs |= {"dtype": "float64", "autocast": False}
        return super().add_weight(*args, name=name, **kwargs)

    def adapt(self, data: Any, *, policy: Literal["skip", "raise"] = "skip") -> None:
        """Takes mean and variance of each feature from data.

        Args:
          data: NumPy array or tensor; or batches of them: a `tf.data.Dataset`, a
            `keras.utils.PyDataset`, a list, a generator. Of a batch that is a tuple the
            first entry counts, so that `(x, y)` works.
          policy: What to do about NaN and infinity: "skip" ignores them, feature by
            feature, and warns with their number; "raise" refuses them.

        Raises:
          ValueError: If the data is empty, if a feature has no finite value, if a value
            is NaN or infinite and `policy` is "raise", or if the layer is built for
            other features.
          TypeError: If `data` is not an array, dataset or iterable of arrays.
        """
        _args.one_of(policy, ("skip", "raise"), "policy")
        if self.input_mean is not None:
            raise ValueError(
                "`adapt` cannot be called on a layer that was made with `mean` and "
                "`variance`. Omit them to take them from data."
            )
        batches = _batches(data, self.axis)
        first = next(batches, None)
        if first is None:
            raise ValueError(
                "`data` must hold at least one batch. Received: an empty iterable "
                "(no batches)."
            )
        if not self.built:
            batch_is_feature = 0 in [axis % max(first.ndim, 1) for axis in self.axis]
            free = () if batch_is_feature else (None,)[: first.ndim]
            self.build((*free, *first.shape[len(free) :]))
        moments = Moments(self._kept_axes())
        for batch in itertools.chain([first], batches):
            self._check_features(batch.shape)
            moments.update(batch)
        _check_seen(moments.count)
        if moments.skipped.any():
            _report(moments, policy)
        self.adapt_mean.assign(moments.mean)
        self.adapt_variance.assign(moments.variance)
        self.finalize_state()

    def finalize_state(self) -> None:
        """Sets the attributes `mean` and `variance` of Keras' layer."""
        if self.built:
            self.mean, self.variance = self._statistics(tf.float32)

    def call(self, inputs: Any) -> tf.Tensor:
        """Returns `(inputs - mean) / deviation`, or the inverse of it."""
        x = tf.convert_to_tensor(inputs)
        is_wide = "float64" in (x.dtype.name, self.compute_dtype)
        dtype = tf.float64 if is_wide or x.dtype.is_integer else tf.float32
        x = tf.cast(x, dtype)
        formula = denormalize if self.invert else normalize
        outputs = formula(x, *self._statistics(tf.float64))
        return tf.cast(outputs, self.compute_dtype)

    def _statistics(self, dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mean and variance, of shapes that broadcast with the inputs."""
        kept = self._kept_axes()
        shape = [n if axis in kept else 1 for axis, n in enumerate(self._built_for)]
        if self.input_mean is None:
            pair = self.adapt_mean, self.adapt_variance
            mean, variance = (tf.reshape(tf.convert_to_tensor(p), shape) for p in pair)
        else:
            pair = self.input_mean, self.input_variance
            mean, variance = (_aligned(p, shape, kept) for p in pair)
        return tf.cast(mean, dtype), tf.cast(variance, dtype)

    def _kept_axes(self) -> list[int]:
        return sorted(axis % len(self._built_for) for axis in self.axis)

    def _check_features(self, shape: tuple[int, ...]) -> None:
        built = self._built_for
        if len(shape) != len(built) or any(
            shape[axis] != built[axis] for axis in self._kept_axes()
        ):
            raise ValueError(
                "`data` must have the features that the layer is built for. Received: "
                f"an incompatible shape, a batch of shape {shape}, for a layer built "
                f"for {built} with axis={self.axis}. Make a new layer for other "
                "features."
            )


def _batches(data: Any, axis: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Yields the features of each batch, as arrays."""
    if isinstance(data, np.ndarray) or tf.is_tensor(data):
        data = [data]
    elif isinstance(data, tf.data.Dataset):
        spec = data.element_spec
        spec = spec[0] if isinstance(spec, tuple) else spec
        if axis and len(spec.shape) == 1:
            # Rows, not batches.
            data = data.batch(128)
    elif isinstance(data, keras.utils.PyDataset):
        data = map(data.__getitem__, range(len(data)))
    elif not hasattr(data, "__iter__"):
        raise TypeError(
            "`data` must be a NumPy array, a tensor, a `tf.data.Dataset`, a "
            f"`keras.utils.PyDataset` or batches. Received: {type(data).__name__}."
        )
    for batch in data:
        batch = batch[0] if isinstance(batch, tuple) else batch
        if not hasattr(batch, "shape"):
            raise TypeError(
                "`data` must yield arrays or tensors, with a `.shape`. Received: a "
                f"batch of type {type(batch).__name__}."
            )
        is_text = tf.is_tensor(batch) and batch.dtype == tf.string
        if is_text or np.asarray(batch).dtype.kind in "US":
            raise TypeError(
                f"`data` must hold numbers. Received: text, {batch[:3]!r:.80}. Convert "
                "it, for example `data.astype('float32')`, or use "
                "`keras.layers.StringLookup` for words."
            )
        yield np.asarray(batch)


def _check_seen(count: np.ndarray) -> None:
    """Refuses data in which a feature has no finite value."""
    empty = np.argwhere(np.equal(count, 0))
    if len(empty):
        features = ", ".join(str(tuple(map(int, index))) for index in empty[:3])
        raise ValueError(
            "Every feature of `data` must have a finite value. Received none in "
            f"{len(empty)} of {count.size} features, at index {features}. Drop these "
            "features."
        )


def _report(moments: Moments, policy: str) -> None:
    """Warns of values that are not finite, with their features, or refuses them."""
    skipped = moments.skipped
    order = np.argsort(-skipped, axis=None, kind="stable")[:3]
    worst = [np.unravel_index(place, skipped.shape) for place in order]
    places = [
        f"{skipped[index]} in feature {', '.join(map(str, index))}"
        for index in worst
        if index and skipped[index]
    ]
    text = (
        f"{skipped.sum()} of {skipped.sum() + moments.count.sum()} values are NaN or "
        f"infinite{': ' if places else ''}{', '.join(places)}."
    )
    if policy == "raise":
        raise ValueError(
            f"`data` must be finite under policy='raise'. Received: {text} Fill them "
            "in, or ignore them in the statistics with policy='skip'."
        )
    warnings.warn(
        f"Normalization.adapt skipped non-finite values. {text} The layer passes them "
        "on unchanged. Fill them in before the next layer.",
        stacklevel=3,
    )


def _aligned(value: Any, shape: list[int], kept: list[int]) -> np.ndarray:
    """Lays a given mean or variance along the last of the kept axes."""
    value = np.asarray(value, np.float64)
    sizes = [1] * len(shape)
    for axis, size in zip(reversed(kept), reversed(value.shape), strict=False):
        sizes[axis] = size
    return np.broadcast_to(value.reshape(sizes), shape)
