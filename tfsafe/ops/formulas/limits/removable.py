"""Computes quotients such as `sin(x) / x` through the point where both sides are 0.

Near 0 the power series is used, farther away the quotient, each for arguments for which
it is accurate. So the first two derivatives are right at 0 and on both sides.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from math import comb, factorial

import tensorflow as tf

from tfsafe import ops
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import with_slope

_Series = list[Fraction]
# A function of one tensor.
Function = Callable[[tf.Tensor], tf.Tensor]
_TERMS = 40
# Nearer to 1, an inverse cosine over its sine is a series in the squared sine.
_NEAR_ONE = 0.97


def _series(coefficient: Callable[[int], Fraction]) -> _Series:
    return [coefficient(n) for n in range(_TERMS)]


def _divided(a: _Series, b: _Series) -> _Series:
    """Returns the series of a quotient."""
    found: _Series = []
    for n in range(_TERMS):
        known = sum((found[k] * b[n - k] for k in range(n)), Fraction(0))
        found.append((a[n] - known) / b[0])
    return found


def _even(sign: int, shift: int) -> _Series:
    """Returns `sum((sign x^2)^k / (2 k + shift)!)`."""
    return _series(
        lambda n: (
            Fraction(0) if n % 2 else Fraction(sign ** (n // 2), factorial(n + shift))
        )
    )


_ONE = _series(lambda n: Fraction(n == 0))
_SINC = _even(-1, 1)
_EXPREL = _series(lambda n: Fraction(1, factorial(n + 1)))
_TANHC = _divided(_even(1, 1), _even(1, 0))


class Removable:
    """A function with a power series at 0, and another form elsewhere.

    Args:
      series: Coefficients of the power series.
      near: The series is used for `|x| < near`.
      far: The function elsewhere.

    Attributes:
      limit: The function at 0.
      is_even: Whether the function is one of `x * x`.
    """

    def __init__(self, series: _Series, near: float, far: Function):
        self._series = series
        self._near = near
        self._far = far
        self.limit = float(series[0])
        self.is_even = not any(series[1::2])

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Computes the function of one tensor."""
        return precision.in_float32(self._at, x)

    def less_limit(self, x: tf.Tensor) -> tf.Tensor:
        """Computes the function less its limit at 0."""
        return precision.in_float32(self._less_at, x)

    def of_length(self, square: tf.Tensor) -> tf.Tensor:
        """Computes an even function of the length of a vector.

        The length has no derivative at 0; the function of the squared length has.

        Returns:
          The function, of the shape and dtype of `square`.
        """
        return precision.in_float32(self._of_square, square)

    def _at(self, x: tf.Tensor) -> tf.Tensor:
        is_near = tf.abs(x) < self._near
        small = tf.where(is_near, x, tf.zeros_like(x))
        value = self._sum(tf.square(small) if self.is_even else small)
        return tf.where(is_near, value, self._far(_elsewhere(is_near, self._near, x)))

    def _less_at(self, x: tf.Tensor) -> tf.Tensor:
        is_near = tf.abs(x) < self._near
        small = tf.where(is_near, x, tf.zeros_like(x))
        argument = tf.square(small) if self.is_even else small
        value = argument * self._sum(argument, 1)
        far = self._far(_elsewhere(is_near, self._near, x)) - self.limit
        return tf.where(is_near, value, far)

    def _of_square(self, square: tf.Tensor) -> tf.Tensor:
        is_near = square < self._near**2
        value = self._sum(tf.where(is_near, square, tf.zeros_like(square)))
        other = _elsewhere(is_near, self._near**2, square)
        return tf.where(is_near, value, self._far(tf.sqrt(other)))

    def _sum(self, argument: tf.Tensor, first: int = 0) -> tf.Tensor:
        """Computes the series from a term on by Horner's rule."""
        # The terms of the second derivative are larger by n^2 / x^2.
        least = LIMITS[argument.dtype.name].eps / 8
        sizes = [
            abs(c) * n**2 * self._near ** (n - 2) for n, c in enumerate(self._series)
        ]
        count = max(n for n, size in enumerate(sizes) if n < 3 or size > least) + 1
        total = tf.zeros_like(argument)
        terms = self._series[: count : 2 if self.is_even else 1]
        for coefficient in reversed(terms[first:]):
            total = total * argument + tf.constant(float(coefficient), argument.dtype)
        return total


def _elsewhere(is_near: tf.Tensor, number: float, x: tf.Tensor) -> tf.Tensor:
    return tf.where(is_near, tf.fill(tf.shape(x), tf.cast(number, x.dtype)), x)


def _over_sinh(x: tf.Tensor) -> tf.Tensor:
    # The exponentials are those of negative numbers, which do not overflow.
    size = tf.abs(x)
    return -2 * size * ops.exp(-size) / ops.expm1(-2 * size)


def _over_expm1(x: tf.Tensor) -> tf.Tensor:
    # The exponential is that of a negative number, which does not overflow.
    negative = -tf.abs(x)
    quotient = negative / ops.expm1(negative)
    return tf.where(x > 0, quotient * ops.exp(negative), quotient)


def _coth_minus_inverse(x: tf.Tensor) -> tf.Tensor:
    return 1 / ops.tanh(x) - 1 / x


def _rest(series: _Series, order: int) -> _Series:
    """Returns the series over `x ** order` without its terms below."""
    return [*series[order:], *[Fraction(0)] * order]


def _integral(series: _Series) -> _Series:
    """Returns the series of the integral of `x f(x)`, over `x ** 2`."""
    return [c / (n + 2) for n, c in enumerate(series)]


def _arcsine(sign: int) -> _Series:
    def coefficient(n: int) -> Fraction:
        half = n // 2
        return Fraction(
            sign**half * factorial(n), 4**half * factorial(half) ** 2 * (n + 1)
        )

    return _series(lambda n: Fraction(0) if n % 2 else coefficient(n))


def _arctangent(sign: int) -> _Series:
    return _series(
        lambda n: Fraction(0) if n % 2 else Fraction(sign ** (n // 2), n + 1)
    )


def _pair(
    series: _Series, near: tuple[float, float], function: Function
) -> tuple[Removable, Removable]:
    """Returns `f(x) / x` and `x / f(x)`."""
    return (
        Removable(series, near[0], lambda x: unchanged_values.divide(function(x), x)),
        Removable(_divided(_ONE, series), near[1], lambda x: x / function(x)),
    )


def _bessel(sign: int) -> _Series:
    """Returns the series of a Bessel function of order 1 over its argument."""

    def coefficient(n: int) -> Fraction:
        half = n // 2
        below = 2 * 4**half * factorial(half) * factorial(half + 1)
        return Fraction(sign**half, below)

    return _series(lambda n: Fraction(0) if n % 2 else coefficient(n))


_TWO_OVER_ROOT_PI = Fraction(2 / math.sqrt(math.pi))
_ERF = _series(
    lambda n: (
        Fraction(0)
        if n % 2
        else _TWO_OVER_ROOT_PI * Fraction((-1) ** (n // 2), factorial(n // 2) * (n + 1))
    )
)


def _moment(sign: int) -> _Series:
    """Returns the series of `(x cosh(x) - sinh(x)) / x ** 3`."""
    return _series(
        lambda n: (
            Fraction(0)
            if n % 2
            else Fraction(sign ** (n // 2) * (n + 2), factorial(n + 3))
        )
    )


def _inverse_less(series: _Series, function: Function, near: float = 1.0) -> Removable:
    """Returns `1 / f(x) - 1 / x`, of the series of `x / f(x)`."""
    return Removable(_rest(series, 1), near, lambda x: 1 / function(x) - 1 / x)


_TANC = _divided(_SINC, _even(-1, 0))
_LOG1P = _series(lambda n: Fraction((-1) ** n, n + 1))
_X_OVER_TANH = _divided(_ONE, _TANHC)

sin_over_x, x_over_sin = _pair(_SINC, (2.0, 1.0), tf.sin)
_sinh = unchanged_values.elementwise(tf.sinh)
sinh_over_x, _ = _pair(_even(1, 1), (2.0, 1.0), _sinh)
x_over_sinh = Removable(_divided(_ONE, _even(1, 1)), 1.0, _over_sinh)
tan_over_x, x_over_tan = _pair(_TANC, (0.5, 1.0), tf.tan)
tanh_over_x, x_over_tanh = _pair(_TANHC, (0.5, 1.0), ops.tanh)
asin_over_x, x_over_asin = _pair(_arcsine(1), (0.25, 0.25), tf.asin)
asinh_over_x, x_over_asinh = _pair(_arcsine(-1), (0.25, 0.25), tf.asinh)
atan_over_x, x_over_atan = _pair(_arctangent(-1), (0.25, 0.25), tf.atan)
atanh_over_x, x_over_atanh = _pair(_arctangent(1), (0.25, 0.25), tf.atanh)
log1p_over_x, x_over_log1p = _pair(_LOG1P, (0.25, 0.25), ops.log1p)
_ROOT = _series(
    lambda n: Fraction((-1) ** n * comb(2 * n, n), (n + 1) * 2 ** (2 * n + 1))
)
sqrt1pm1_over_x = Removable(_ROOT, 0.125, lambda x: 1 / (1 + ops.sqrt(1 + x)))
x_over_sqrt1pm1 = Removable(_divided(_ONE, _ROOT), 0.125, lambda x: 1 + ops.sqrt(1 + x))
expm1_over_x = Removable(
    _EXPREL, 1.0, lambda x: unchanged_values.divide(ops.expm1(x), x)
)
x_over_expm1 = Removable(_divided(_ONE, _EXPREL), 1.0, _over_expm1)
one_minus_cos_over_square = Removable(
    _even(-1, 2), 2.0, lambda x: 2 * tf.square(tf.sin(x / 2) / x)
)
x_minus_sin_over_cube = Removable(
    _even(-1, 3), 2.0, lambda x: (1 - tf.sin(x) / x) / tf.square(x)
)
coth_minus_inverse = Removable(_rest(_X_OVER_TANH, 1), 1.0, _coth_minus_inverse)
x_minus_tanh_over_cube = Removable(
    _rest([-c for c in _TANHC], 2),
    0.75,
    lambda x: (x - ops.tanh(x)) / (x * x * x),
)
exp_minus_tangent_over_square = Removable(
    _series(lambda n: Fraction(1, factorial(n + 2))),
    1.0,
    lambda x: (ops.expm1(x) - x) / tf.square(x),
)
one_minus_x_over_tan_over_square = Removable(
    _rest([-c for c in _divided(_ONE, _TANC)], 2),
    1.0,
    lambda x: (1 - x / tf.tan(x)) / tf.square(x),
)
# `(1 - x / 2 / tan(x / 2)) / x ** 2`, in the inverse Jacobian of a rotation.
half_angle_over_tan = Removable(
    _rest([-c / 2**n for n, c in enumerate(_divided(_ONE, _TANC))], 2),
    2.0,
    lambda x: (1 - x / (2 * tf.tan(x / 2))) / tf.square(x),
)
# `(expm1(-x) / x + 1) / x`.
exp_tangent_of_minus = Removable(
    _series(lambda n: Fraction((-1) ** n, factorial(n + 2))),
    1.0,
    lambda x: (ops.expm1(-x) + x) / tf.square(x),
)
x_minus_log1p_over_square = Removable(
    _rest([-c for c in _LOG1P], 1),
    0.25,
    lambda x: (x - ops.log1p(x)) / tf.square(x),
)
x_minus_atan_over_cube = Removable(
    _rest([-c for c in _arctangent(-1)], 2),
    0.5,
    lambda x: (1 - tf.atan(x) / x) / tf.square(x),
)
asin_minus_x_over_cube = Removable(
    _rest(_arcsine(1), 2), 0.5, lambda x: (tf.asin(x) / x - 1) / tf.square(x)
)
tan_minus_x_over_cube = Removable(
    _rest(_TANC, 2), 0.9, lambda x: (tf.tan(x) / x - 1) / tf.square(x)
)
sinh_minus_x_over_cube = Removable(
    _even(1, 3), 2.0, lambda x: (tf.sinh(x) / x - 1) / tf.square(x)
)
cosh_minus_one_over_square = Removable(
    _even(1, 2), 2.0, lambda x: 2 * tf.square(tf.sinh(x / 2) / x)
)
log_cosh_over_square = Removable(
    _integral(_TANHC), 0.5, lambda x: ops.log_cosh(x) / tf.square(x)
)
log_cos_over_square = Removable(
    [-c for c in _integral(_TANC)], 0.5, lambda x: ops.log(tf.cos(x)) / tf.square(x)
)
# `(1 - (1 + x) exp(-x)) / x ** 2`.
gamma_tail_over_square = Removable(
    _series(lambda n: Fraction((-1) ** n * (n + 1), factorial(n + 2))),
    1.0,
    lambda x: (-ops.expm1(-x) / x - ops.exp(-x)) / x,
)
erf_over_x, x_over_erf = _pair(_ERF, (1.0, 0.5), tf.math.erf)
bessel_j1_over_x = Removable(
    _bessel(-1), 2.0, lambda x: tf.math.special.bessel_j1(x) / x
)
bessel_i1_over_x = Removable(_bessel(1), 2.0, lambda x: tf.math.bessel_i1(x) / x)
# `(sin(x) - x cos(x)) / x ** 3` and `(x cosh(x) - sinh(x)) / x ** 3`.
sine_moment = Removable(
    _moment(-1), 2.0, lambda x: (tf.sin(x) / x - tf.cos(x)) / tf.square(x)
)
sinh_moment = Removable(
    _moment(1), 2.0, lambda x: (tf.cosh(x) - tf.sinh(x) / x) / tf.square(x)
)
# `(log1p(x) - x / (1 + x)) / x ** 2`.
log1p_moment = Removable(
    _series(lambda n: Fraction((-1) ** n * (n + 1), n + 2)),
    0.25,
    lambda x: (ops.log1p(x) - x / (1 + x)) / tf.square(x),
)
# `((1 + x) log1p(x) - x) / x ** 2`.
entropy_over_square = Removable(
    _series(lambda n: Fraction((-1) ** n, (n + 1) * (n + 2))),
    0.3,
    lambda x: ((1 + x) * ops.log1p(x) - x) / tf.square(x),
)
two_atanh_over_x, x_over_two_atanh = _pair(
    [2 * c for c in _arctangent(1)], (0.25, 0.25), lambda x: 2 * tf.atanh(x)
)
two_sinh_over_x, x_over_two_sinh = _pair(
    [2 * c for c in _even(1, 1)], (2.0, 1.0), lambda x: 2 * _sinh(x)
)
# `1 / f(x) - 1 / x`, by the pattern of f.
INVERSES = (
    (("Sin", "x"), _inverse_less(_divided(_ONE, _SINC), tf.sin)),
    (("Tan", "x"), _inverse_less(_divided(_ONE, _TANC), tf.tan)),
    (("Sinh", "x"), _inverse_less(_divided(_ONE, _even(1, 1)), tf.sinh)),
    (("Expm1", "x"), _inverse_less(_divided(_ONE, _EXPREL), ops.expm1)),
    (("Sub", ("Exp", "x"), 1), _inverse_less(_divided(_ONE, _EXPREL), ops.expm1)),
    (("Log1p", "x"), _inverse_less(_divided(_ONE, _LOG1P), ops.log1p, 0.25)),
    (("Log", ("Add", 1, "x")), _inverse_less(_divided(_ONE, _LOG1P), ops.log1p, 0.25)),
)
cos = Removable(_even(-1, 0), 2.0, tf.cos)
cosh = Removable(_even(1, 0), 2.0, tf.cosh)


@precision.runs_in_float32
def acos_over_sine(c: tf.Tensor) -> tf.Tensor:
    """Computes `acos(c) / sqrt(1 - c * c)`, which is 1 at 1."""
    is_near = c > _NEAR_ONE
    small = tf.where(is_near, (1 - c) * (1 + c), tf.zeros_like(c))
    near = asin_over_x.of_length(small)
    other = tf.where(is_near, tf.zeros_like(c), c)
    return tf.where(
        is_near, near, tf.acos(other) * ops.rsqrt((1 - other) * (1 + other))
    )


@precision.runs_in_float32
def acosh_over_sine(c: tf.Tensor) -> tf.Tensor:
    """Computes `acosh(c) / sqrt(c * c - 1)`, which is 1 where c rounds to 1 or less."""
    least = 1 - 8 * LIMITS[c.dtype.name].eps
    is_near = (c > least) & (c < 2 - _NEAR_ONE)
    # A series in the squared hyperbolic sine.
    small = tf.where(is_near, (c - 1) * (c + 1), tf.zeros_like(c))
    near = asinh_over_x.of_length(small)
    other = tf.where(is_near, 2 * tf.ones_like(c), c)
    far = tf.acosh(other) * ops.rsqrt(other - 1) * ops.rsqrt(other + 1)
    return tf.where(is_near, near, far)


@with_slope(lambda c: -2 * acos_over_sine(c))
def squared_acos(c: tf.Tensor) -> tf.Tensor:
    """Computes `acos(c) ** 2`, which has a slope at 1."""
    return tf.square(tf.acos(c))


@precision.runs_in_float32
def atan2_over_length(square: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Computes `atan2(y, x) / y` of a length `y`, which is `1 / x` at 0 for x > 0."""
    is_near = (x > 0) & (square < tf.square(0.25 * x))
    one = tf.ones_like(x)
    below = tf.where(is_near, x, one)
    ratio = tf.where(is_near, square, tf.zeros_like(x)) / below / below
    near = atan_over_x.of_length(ratio) / below
    other = tf.sqrt(tf.where(is_near, one, square))
    return tf.where(is_near, near, tf.atan2(other, x) / other)
