"""Marks the faulty elements of a `tf.data` pipeline, in its graph."""

from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe.data.faults.tally import Limits
from tfsafe.data.sources.containers import take_sparse


def can_be_bad(dtype: tf.DType, path: str, limits: Limits) -> bool:
    """Returns whether a leaf of this dtype can have faulty values."""
    is_label = limits.classes is not None and path == "y"
    return dtype.is_floating or dtype.is_complex or (dtype.is_integer and is_label)


def bad_values(leaf: Any, path: str, limits: Limits) -> tf.Tensor | None:
    """Returns a mask of the faulty values of a leaf; None if no value can be faulty."""
    values = flat(leaf)
    if not can_be_bad(values.dtype, path, limits):
        return None
    if values.dtype.is_complex:
        parts = tf.math.real(values), tf.math.imag(values)
        return tf.logical_or(*(_not_finite(part, limits) for part in parts))
    if values.dtype.is_integer:
        return _no_class(values, limits)
    faulty = _not_finite(values, limits)
    is_label = limits.classes is not None and path == "y"
    return tf.logical_or(faulty, _no_class(values, limits)) if is_label else faulty


def flat(leaf: Any) -> tf.Tensor:
    """Returns the stored values of a leaf."""
    if isinstance(leaf, tf.RaggedTensor):
        return leaf.flat_values
    return leaf.values if isinstance(leaf, tf.SparseTensor) else leaf


def faulty_rows(leaf: Any, faulty: tf.Tensor) -> tf.Tensor:
    """Returns the rows of a leaf that have a faulty value."""
    if isinstance(leaf, tf.RaggedTensor):
        owners = leaf.value_rowids()
        inner = leaf.values
        if isinstance(inner, tf.RaggedTensor):
            lines = faulty_rows(inner, faulty)
        else:
            lines = _over_the_rest(faulty)
        return _owned(lines, owners, leaf.nrows(out_type=tf.int64))
    if isinstance(leaf, tf.SparseTensor):
        return _owned(faulty, leaf.indices[:, 0], leaf.dense_shape[0])
    return _over_the_rest(faulty)


def row_count(leaf: Any) -> tf.Tensor:
    """Returns the number of rows of a leaf, as int64."""
    if isinstance(leaf, tf.RaggedTensor):
        return leaf.nrows(out_type=tf.int64)
    if isinstance(leaf, tf.SparseTensor):
        return leaf.dense_shape[0]
    return tf.shape(leaf, out_type=tf.int64)[0]


def take(leaf: Any, keep: tf.Tensor) -> Any:
    """Returns the rows of a leaf where `keep` is True."""
    if isinstance(leaf, tf.RaggedTensor):
        return tf.ragged.boolean_mask(leaf, keep)
    if isinstance(leaf, tf.SparseTensor):
        return take_sparse(leaf, keep)
    return tf.boolean_mask(leaf, keep)


def fill(leaf: Any, numbers: Any, limits: Limits) -> Any:
    """Returns a leaf with its non-finite values replaced.

    Args:
      leaf: Dense, ragged or sparse tensor, floating or complex.
      numbers: One for all, or one for each position of the last axis.
      limits: The limits of the values that the model accepts.
    """
    values = flat(leaf)
    if values.dtype.is_complex:
        replaced = tf.complex(
            _filled(tf.math.real(values), numbers.real, limits),
            _filled(tf.math.imag(values), numbers.imag, limits),
        )
    else:
        replaced = _filled(values, numbers, limits)
    if isinstance(leaf, tf.RaggedTensor):
        return leaf.with_flat_values(replaced)
    return leaf.with_values(replaced) if isinstance(leaf, tf.SparseTensor) else replaced


def _filled(values: tf.Tensor, numbers: np.ndarray, limits: Limits) -> tf.Tensor:
    new = tf.cast(tf.constant(numbers, tf.float64), values.dtype)
    new = new if numbers.size > 1 else new[0]
    return tf.where(_not_finite(values, limits), new, values)


def _not_finite(values: tf.Tensor, limits: Limits) -> tf.Tensor:
    # Use the narrower dtype: a larger number becomes infinite there.
    if values.dtype.size > limits.dtype.itemsize or (
        limits.dtype.name == "float16" and values.dtype == tf.bfloat16
    ):
        values = tf.cast(values, limits.dtype)
    return tf.logical_not(tf.math.is_finite(values))


def _no_class(values: tf.Tensor, limits: Limits) -> tf.Tensor:
    labels = tf.cast(values, tf.float64)
    outside = tf.logical_or(labels < 0, labels >= limits.classes)
    return tf.logical_or(outside, tf.math.floor(labels) < labels)


def _over_the_rest(faulty: tf.Tensor) -> tf.Tensor:
    return tf.reduce_any(faulty, axis=tf.range(1, tf.rank(faulty)))


def _owned(lines: tf.Tensor, owners: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    counts = tf.math.unsorted_segment_max(
        tf.cast(lines, tf.int32), owners, tf.cast(rows, tf.int64)
    )
    # The maximum of an empty segment is the smallest integer.
    return counts > 0
