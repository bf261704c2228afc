"""Whether all numbers of a structure are finite, by one sum over them."""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfsafe.debugging import _values


def total(structure: Any) -> tf.Tensor:
    """Returns a sum that is finite only if every number in the structure is."""
    sums = [tf.constant(0.0, tf.float64)]
    for each in _floats(structure):
        if each.dtype.size < 4:
            each = tf.cast(each, tf.float32)
        sums.append(tf.cast(tf.reduce_sum(each), tf.float64))
    return tf.add_n(sums)


def _floats(structure: Any) -> Iterator[tf.Tensor]:
    for each in tf.nest.flatten(structure, expand_composites=True):
        if not _values.is_float(each):
            continue
        # One sum for both parts, as for real numbers.
        complex_ = each.dtype.is_complex
        yield tf.math.real(each) + tf.math.imag(each) if complex_ else each
