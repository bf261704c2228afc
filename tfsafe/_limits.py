"""Computes the constants of the four floating dtypes from their bit layout.

Kept apart from NumPy and `ml_dtypes` so that a threshold is a Python float, can
be used in a default argument and needs no import to be read.
"""

from typing import NamedTuple


class Limits(NamedTuple):
    """The limits of a binary floating format.

    Attributes:
      eps: Machine epsilon, the gap between 1 and the next number.
      tiny: Smallest positive normal number.
      max: Largest finite number.
    """

    eps: float
    tiny: float
    max: float


def _binary(fraction_bits: int, max_exponent: int) -> Limits:
    eps = 2.0**-fraction_bits
    return Limits(eps, 2.0 ** (1 - max_exponent), (2 - eps) * 2.0**max_exponent)


LIMITS = {
    "float16": _binary(10, 15),
    "bfloat16": _binary(7, 127),
    "float32": _binary(23, 127),
    "float64": _binary(52, 1023),
}
