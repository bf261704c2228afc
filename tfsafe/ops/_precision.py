"""What keeps intermediate results in range: float32 inside, scaling by powers of 2."""

from collections.abc import Callable, Sequence

import tensorflow as tf

_HALF = (tf.float16, tf.bfloat16)
# The bits of the exponent: all others 0 makes a float the power of 2 below it.
_EXPONENT_BITS = {
    tf.float32: (tf.int32, 0x7F80_0000),
    tf.float64: (tf.int64, 0x7FF0_0000_0000_0000),
}


def in_float32(function: Callable[..., tf.Tensor], *args: tf.Tensor) -> tf.Tensor:
    """Returns `function(*args)`, computed in float32 where `args` have half precision.

    The casts stand outside of the function's own gradient, so that this runs in
    float32 as well and is rounded once.
    """
    dtype = args[0].dtype
    if dtype not in _HALF:
        return function(*args)
    return tf.cast(function(*(tf.cast(arg, tf.float32) for arg in args)), dtype)


def scale_of(x: tf.Tensor, axis: Sequence[int] | None) -> tf.Tensor:
    """Returns the power of 2 just below the largest magnitude along `axis`.

    Dividing by it is exact and leaves the largest element between 1 and 2. It is 1
    where the largest magnitude is 0, infinite or NaN, and where there is no element.

    Args:
      x: Tensor of float32 or float64.
      axis: Axes that are reduced to size 1; all of them where None.
    """
    largest = tf.reduce_max(tf.abs(x), axis, keepdims=True)
    integer, mask = _EXPONENT_BITS[x.dtype]
    bits = tf.bitwise.bitwise_and(
        tf.bitcast(largest, integer), tf.constant(mask, integer)
    )
    usable = tf.logical_and(largest > 0, tf.math.is_finite(largest))
    return tf.where(usable, tf.bitcast(bits, x.dtype), tf.ones_like(largest))


def drop(value: tf.Tensor, axis: Sequence[int] | None) -> tf.Tensor:
    """Removes the axes that a reduction over `axis` left with size 1."""
    # `tf.squeeze` takes an empty list for "every axis of size 1".
    return value if axis == [] else tf.squeeze(value, axis)
