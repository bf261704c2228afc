"""Formulas with a limit, on both sides of each switch, up to second order.

In float64 and eager mode: no compiler and no rounding hides a wrong term. What a rule
makes of a program, in every mode and dtype, is tested in `tests/rewriting`.
"""

import mpmath as m
import pytest
import tensorflow as tf

from tests.ops.elementwise import NEAR_0, NEAR_1, check_derivatives
from tfsafe.ops.formulas.differences import divided_differences, tangents
from tfsafe.ops.formulas.limits import field_limits, quotients, removable
from tfsafe.ops.formulas.out_of_range import bessel

# By name: the formula, what it computes, and each argument's numbers.
FORMULAS = {}


def _add(module, formulas):
    for name, (exact, *columns) in formulas.items():
        FORMULAS[name] = getattr(module, name), exact, columns


SHAPES = [2.0**-40, 0.2, -0.2, 0.5, -0.5, 0.05]
SIZES = [3.0, 1.2, 1.2, 0.75, 0.75, 15.0]
_add(
    field_limits,
    {
        "log_of_extreme_value": (lambda k, z: -m.log(1 + k * z) / k, SHAPES, SIZES),
        "one_minus_extreme_value": (
            lambda k, z: 1 - (1 + k * z) ** (-1 / k),
            [*SHAPES, 0.7, 0.25],
            [*SIZES, 2.0**-40, 3.0],
        ),
        "extreme_density": (
            lambda k, z: (1 + k * z) ** (-1 / k - 1),
            SHAPES,
            SIZES,
        ),
    },
)
ANY = [*NEAR_0, -1.1, -3.0, 30.0, -30.0]
_add(
    quotients,
    {
        "log_over_x_minus_one": (lambda x: m.log(x) / (x - 1), NEAR_1),
        "x_minus_one_over_log": (lambda x: (x - 1) / m.log(x), NEAR_1),
        "logarithmic_mean": (
            lambda a, b: (a - b) / m.log(a / b),
            [3 + 2.0**-40, 2.5, 3.5, 2.0, 4.0, 0.5],
            [3.0, 3.0, 3.0, 3.0, 3.0, 7.0],
        ),
        "power_minus_one_over": (
            lambda x, k: (x**k - 1) / k,
            [2.0, 0.3, 2.0, 0.3, 5.0, 1.25],
            [2.0**-40, -0.3, 0.8, 2.0, -3.0, -1.5],
        ),
        "growth": (
            lambda r, n: ((1 + r) ** n - 1) / r,
            [2.0**-40, 0.2, -0.2, 0.2, 0.5, -0.5],
            [3.0, 1.5, 2.0, 9.0, 0.5, -2.0],
        ),
        "annuity": (lambda r, n: (1 - (1 + r) ** n) / r, [2.0**-40, 0.5], [3.0, -2.0]),
        "payment": (lambda r, n: r / (1 - (1 + r) ** n), [2.0**-40, 0.5], [3.0, -2.0]),
        "geometric_sum": (
            lambda q, n: (1 - q**n) / (1 - q),
            [1 + 2.0**-40, 0.8, 1.2, 0.7, 1.3, 3.0],
            [3.0, 1.5, 2.0, 9.0, 0.5, -2.0],
        ),
        "extreme_value": (
            lambda k, z: (1 + k * z) ** (-1 / k),
            [2.0**-40, 0.2, -0.2, 0.5, -0.5],
            [3.0, 1.2, 1.2, 0.75, 0.75],
        ),
        "exp_difference": (
            lambda a, b: (m.exp(a) - m.exp(b)) / (a - b),
            [1 + 2.0**-40, 1.4, 0.6, 1.6, 0.4],
            [1.0, 1.0, 1.0, 1.0, 1.0],
        ),
        "sine_ratio": (
            lambda r, x: m.sin(r * x) / m.sin(x),
            [0.3, 0.3, 0.75, 2.0],
            [2.0**-40, 0.9, -1.1, 2.5],
        ),
        "sine_ratio_of_square": (
            lambda r, s: m.sin(r * m.sqrt(s)) / m.sin(m.sqrt(s)),
            [0.3, 0.3, 0.75, 2.0],
            [2.0**-40, 0.9, 1.2, 6.0],
        ),
        "sinh_ratio": (
            lambda r, x: m.sinh(r * x) / m.sinh(x),
            [0.3, -0.3, 0.75, 2.0, 2.0, 0.3, 0.3],
            [2.0**-40, 0.4, -0.4, 0.6, -0.4, 0.75, 3.0],
        ),
        "log_sinh_over_x": (lambda x: m.log(m.sinh(x) / x), ANY),
        "log_two_sinh_over_x": (lambda x: m.log(2 * m.sinh(x) / x), [0.5, 3.0]),
        "log_expm1_over_x": (lambda x: m.log(m.expm1(x) / x), ANY),
        "expm1_ratio": (
            lambda r, x: m.expm1(r * x) / m.expm1(x),
            [0.3, -0.3, 0.75, 2.0, 2.0, 0.3, -0.3],
            [2.0**-40, 0.4, -0.4, 0.6, -0.4, 0.75, -3.0],
        ),
        "power_of_one_plus": (
            lambda k, z: (1 + k * z) ** (1 / k),
            [2.0**-40, 0.2, -0.2, 0.5, -0.5],
            [3.0, 1.2, 1.2, 0.75, 0.75],
        ),
        "compound": (
            lambda r, n: (1 + r / n) ** n,
            [2.0**-20, 0.5, -0.5, 1.0, -1.0, 0.75],
            [8.0, 3.0, 3.0, 3.0, 3.0, 0.5],
        ),
        "sabr": (
            lambda z, rho: (
                z / m.log((m.sqrt(1 - 2 * rho * z + z**2) + z - rho) / (1 - rho))
            ),
            [2.0**-40, 0.3, -0.3, 3.0, -3.0],
            [0.3, -0.4, 0.5, 0.5, -0.4],
        ),
        "einstein": (lambda x: x**2 * m.exp(x) / m.expm1(x) ** 2, ANY),
        "sqrt1pm1_over_x": (lambda x: (m.sqrt(1 + x) - 1) / x, NEAR_0),
        "spherical_bessel": (lambda x: m.sin(x) / x**2 - m.cos(x) / x, NEAR_0),
        "raised_cosine": (
            lambda x: m.cos(m.pi * x / 2) / (1 - x**2),
            [*NEAR_1[:-1], 2.5, -0.8, -1.6, -0.4],
        ),
    },
)
_add(
    tangents,
    {
        "exp_minus_tangent": (lambda x: m.expm1(x) - x, NEAR_0),
        "x_minus_log1p": (lambda x: x - m.log1p(x), NEAR_0),
        "x_minus_sin": (lambda x: x - m.sin(x), NEAR_0),
        "x_minus_tan": (lambda x: x - m.tan(x), NEAR_0),
        "x_minus_tanh": (lambda x: x - m.tanh(x), NEAR_0),
        "squared_difference_of_roots": (
            lambda a, b: a + b - 2 * m.sqrt(a * b),
            [3 + 2.0**-40, 1.0, 9.0, 0.5, 15.0],
            [3.0, 3.0, 3.0, 3.0, 3.0],
        ),
        "one_minus_power": (
            lambda x, y: 1 - x**y,
            [1 + 2.0**-40, 0.8, 1.2, 0.3, 4.0, 2.0],
            [3.0, 2.0, -2.0, 0.5, 2.0, 2.0**-40],
        ),
        "one_minus_power_of_complement": (
            lambda x, y: 1 - (1 - x) ** y,
            [2.0**-40, 0.2, -0.2, 0.7, -3.0, 2.0**-8],
            [3.0, 2.0, -2.0, 0.5, 2.0, 300.0],
        ),
        "fraction_of_powers": (
            lambda x, n, k: x**n / (k**n + x**n),
            [2.0, 3.0, 2.0, 3.0, 2.0, 3.0, 2.0, 3.0],
            [1.5, -1.5, 100.0, 90.0, -100.0, -90.0, 130.0, -130.0],
            [3.0, 2.0, 2.5, 2.5, 2.5, 2.5, 2.0625, 2.9375],
        ),
        "fraction_of_power": (
            lambda x, n: x**n / (1 + x**n),
            [2.0, 0.5, 1.01],
            [1.5, -2.0, 3.0],
        ),
        "rsqrt1pm1": (lambda x: 1 / m.sqrt(1 + x) - 1, NEAR_0),
        "elu_plus_one": (
            lambda x: x + 1 if x >= 0 else m.exp(x),
            [0.5, -0.5, 3.0, -30.0],
        ),
    },
)
_add(
    removable,
    {
        "acos_over_sine": (
            lambda c: m.acos(c) / m.sqrt(1 - c * c),
            [1 - 2.0**-40, 0.98, 0.96, -0.5],
        ),
        "squared_acos": (lambda c: m.acos(c) ** 2, [1 - 2.0**-20, 0.98, 0.96, -0.5]),
        "atan2_over_length": (
            lambda s, x: m.atan2(m.sqrt(s), x) / m.sqrt(s),
            [2.0**-40, 0.5, 0.6, 3.0, 3.0],
            [3.0, 3.0, 3.0, 2.0, -2.0],
        ),
    },
)
_add(
    bessel,
    {
        "log_bessel_i0": (lambda x: m.log(m.besseli(0, x)), [0.5, -3.0, 29.0, -31.0]),
        "log_bessel_i1": (lambda x: m.log(m.besseli(1, x)), [0.5, 3.0, 29.0, 31.0]),
        "bessel_ratio": (
            lambda x: m.besseli(1, x) / m.besseli(0, x),
            [2.0**-20, -(2.0**-20), 0.5, -3.0, 29.0, -31.0, 300.0],
        ),
    },
)
# Functions of what is known already, as functions of their arguments alone.
FORMULAS |= {
    "over_factor": (
        quotients.over_factor(removable.log1p_over_x),
        lambda k, z: m.log1p(k * z) / k,
        [[2.0**-40, 0.5, -0.3], [3.0, 0.75, 2.0]],
    ),
    "einstein_of_order": (
        lambda x: quotients.einstein_of_order(x, 4.0),
        lambda x: x**4 * m.exp(x) / m.expm1(x) ** 2,
        [NEAR_0],
    ),
    "clipped_from_0_over_x": (
        lambda x: quotients.clipped_from_0_over_x(x, 2.0),
        lambda x: min(max(x, 0), 2) / x if x else m.mpf(1),
        [[2.0**-40, 0.5, 5.0, 3.0, -1.0, -5.0]],
    ),
    "shrunk_over_x": (
        quotients.shrunk_over_x,
        lambda x, y: max(x - y, 0) / x if x else m.mpf(0),
        [[3.0, 0.5, 0.0, -1.0, -1.0, 0.25], [1.0, 2.0, 0.5, 0.5, -3.0, 0.125]],
    ),
    "clipped_over_x": (
        lambda x: quotients.clipped_over_x(x, 2.0),
        lambda x: min(x, 2) / x,
        [[0.5, 1.5, 2.5, 30.0]],
    ),
    "step_minus_log": (
        lambda x: tangents.step_minus_log(x, tf.math.log1p(x)),
        lambda x: x - m.log1p(x),
        [NEAR_0],
    ),
    "bessel_j1_over_x": (
        removable.bessel_j1_over_x,
        lambda x: m.besselj(1, x) / x,
        [NEAR_0],
    ),
    "inverse_of_sine_minus_inverse": (
        dict(removable.INVERSES)["Sin", "x"],
        lambda x: 1 / m.sin(x) - 1 / x,
        [NEAR_0],
    ),
    "difference_of_erf": (
        lambda b, d: divided_differences.DIVIDED_DIFFERENCES["Erf"].near(b, d, d),
        lambda b, d: (m.erf(b + d) - m.erf(b)) / d,
        [[0.5, 1.0, -1.5, 2.0], [2.0**-40, 0.02, -0.02, 2.0**-6]],
    ),
    "x_minus_one_minus_log": (
        lambda x: tangents.x_minus_one_minus_log(x, tf.math.log(x)),
        lambda x: x - 1 - m.log(x),
        [NEAR_1],
    ),
    "bregman_of_entropy": (
        lambda x, y: tangents.bregman_of_entropy(x, y, x - y),
        lambda x, y: x * m.log(x / y) - x + y,
        [[3 + 2.0**-40, 2.5, 3.5, 2.0, 4.0, 0.5], [3.0, 3.0, 3.0, 3.0, 3.0, 7.0]],
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_value_slopes_and_curvatures_agree_with_mpmath(name):
    check_derivatives(*FORMULAS[name])


def test_a_shrunk_nan_stays():
    nan = tf.constant(float("nan"))
    assert tf.math.is_nan(quotients.shrunk_over_x(nan, tf.constant(0.5)))
    assert tf.math.is_nan(quotients.clipped_from_0_over_x(nan, 2.0))


def test_a_function_that_is_not_used_is_computed_of_numbers_at_which_it_is_finite():
    seen = []

    def log_of_difference(x, y):
        seen.append((float(x), float(y)))
        return tf.math.log(x - y)

    x, y = tf.constant(5.0), tf.constant(3.0)
    for is_near in (True, False):
        quotients.near_or_far(
            tf.constant(is_near), log_of_difference, log_of_difference, x, y
        )
    used, unused = (5.0, 3.0), (0.5, 0.25)
    assert seen == [used, unused, unused, used]


def test_a_check_of_every_operation_finds_no_logarithm_of_0():
    tf.debugging.enable_check_numerics()
    try:
        value = tangents.one_minus_power(tf.constant([0.0, -3.0]), tf.constant(2.0))
    finally:
        tf.debugging.disable_check_numerics()
    assert value.numpy().tolist() == [1.0, -8.0]
