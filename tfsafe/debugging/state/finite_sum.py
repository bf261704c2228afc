"""Tests whether all numbers of a structure are finite, by one sum over them."""

from typing import Any

import tensorflow as tf

from tfsafe.debugging import values
from tfsafe.graph import stacked, summed


def total(structure: Any) -> tf.Tensor:
    """Returns a sum that is finite only if every number in the structure is."""
    sums: dict[tf.DType, list[tf.Tensor]] = {}
    for each in tf.nest.flatten(structure, expand_composites=True):
        if values.is_float(each):
            part = summed(each)
            sums.setdefault(part.dtype, []).append(part)
    # In float64, the sum over many does not overflow.
    parts = [summed(tf.cast(stacked(each), tf.float64)) for each in sums.values()]
    return tf.add_n(parts) if parts else tf.constant(0.0, tf.float64)
