"""Tests whether all numbers of a structure are finite, by one sum over them."""

from typing import Any

import tensorflow as tf

from tfsafe.debugging.tracing import values
from tfsafe.graph import summed


def total(structure: Any) -> tf.Tensor:
    """Returns a sum that is finite only if every number in the structure is."""
    sums = [tf.constant(0.0, tf.float64)]
    for each in tf.nest.flatten(structure, expand_composites=True):
        if values.is_float(each):
            sums.append(tf.cast(summed(each), tf.float64))
    return tf.add_n(sums)
