"""Recognizes divisions that turn an overflow into a 0 that is wrong."""

from collections.abc import Sequence

import tensorflow as tf

# Divisions, by the index of their denominator: an infinite one makes a quotient of 0.
DENOMINATORS = {
    "Div": 1,
    "DivNoNan": 1,
    "RealDiv": 1,
    "Xdivy": 1,
    "Reciprocal": 0,
    "Inv": 0,
    "Rsqrt": 0,
}
# Their overflow is right to the last digit where a division turns it into 0.
_FAST_GROWING = frozenset({"Exp", "Expm1", "Sinh", "Cosh", "Pow"})


def is_absorbed(op_type: str, inputs: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns whether a division turns an overflow into a 0 that is wrong.

    A numerator below 4 has a quotient of 0 by any number that overflows, to the
    precision of the dtype. A root was larger than what is under it can show.
    """
    denominator = inputs[DENOMINATORS[op_type]]
    infinite = tf.math.is_inf(denominator)
    if op_type == "Rsqrt":
        return tf.reduce_any(infinite)
    if DENOMINATORS[op_type] == 0:
        return tf.constant(False)
    is_large = tf.abs(inputs[0]) > 4
    return tf.reduce_any(tf.logical_and(infinite, is_large))


def is_wrong_zero(op_type: str, inputs: Sequence[tf.Tensor], made_by: str) -> bool:
    """Returns whether a division turns the overflow of an operation into a wrong 0."""
    return made_by not in _FAST_GROWING and bool(is_absorbed(op_type, inputs))
