"""Formulas that keep digits, on both sides of each switch, up to second order.

In float64 and eager mode: no compiler and no rounding hides a wrong term. What a rule
makes of a program, in every mode and dtype, is tested in `tests/rewriting`.
"""

import mpmath as m
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.elementwise import NEAR_0, check_derivatives
from tests.support import modes
from tfsafe.ops.formulas.differences import (
    angles,
    fraction_complements,
    log_complements,
    uncancelled,
)
from tfsafe.ops.formulas.differences.function_differences import digamma_difference
from tfsafe.ops.formulas.limits import field_limits
from tfsafe.ops.formulas.out_of_range import (
    fractions,
    harmonic,
    log_products,
    weighted_exponentials,
)

# By name: the formula, what it computes, and each argument's numbers.
FORMULAS = {}


def _add(module, formulas):
    for name, (exact, *columns) in formulas.items():
        FORMULAS[name] = getattr(module, name), exact, columns


_add(
    uncancelled,
    {
        "one_plus_tanh": (lambda x: 1 + m.tanh(x), [0.5, -0.5, -15.0]),
        "cosh_minus_one": (lambda x: m.cosh(x) - 1, NEAR_0),
        "softplus_minus": (lambda x: m.log1p(m.exp(-x)), [0.5, -0.5, 30.0]),
        "root_minus": (
            lambda x, y: m.sqrt(x**2 + y) - x,
            [3.0, 3.0, -2.0, 0.5, 1e4],
            [2.0**-40, 4.0, 1.5, -0.125, 1.0],
        ),
        "hypot_minus": (
            lambda x, y: m.sqrt(x**2 + y**2) - x,
            [3.0, 3.0, -2.0, 1e4],
            [2.0**-40, 4.0, 1.5, -1.0],
        ),
        "hypot1pm1": (lambda x: m.sqrt(1 + x**2) - 1, NEAR_0),
        "difference_of_squares": (
            lambda a, b: a**2 - b**2,
            [3 + 2.0**-40, -2.0],
            [3.0, 0.5],
        ),
    },
)
_add(
    weighted_exponentials,
    {
        "exp_times": (lambda x, y: m.exp(x) * y, [0.5, -3.0], [2.0, -0.3]),
        "expm1_times": (
            lambda x, y: m.expm1(x) * y,
            [2.0**-40, -3.0, 37.5, 39.0],
            [2.0, -0.3, 1.5, -0.7],
        ),
    },
)
_add(
    fraction_complements,
    {
        "one_minus_fraction": (
            lambda x, y: y / (x + y),
            [2.0, 1.0, 3.0, 2.0],
            [2.0**-40, 3.0, -1.0, 2.0**40],
        ),
        **{
            name: (
                lambda whole, x, y: whole * y / (x + y),
                [5.0, 0.5, -2.0, 3.0],
                [2.0, 1.0, 3.0, 2.0],
                [2.0**-40, 3.0, -1.0, 2.0**40],
            )
            for name in ("less_part_of_sum", "less_product_over_sum")
        },
    },
)
_add(
    fractions,
    {
        "part_of_sum": (
            lambda x, y: x / (x + y),
            [2.0, 1.0, 0.5, 3.0, 1e5],
            [0.5, 3.0, -2.0, 0.0, 1.0],
        ),
        "angle_of_quotient": (
            lambda y, x: m.atan(y / x),
            [2.0, -1.0, 3.0, 0.25],
            [0.5, 3.0, -1.0, -2.0],
        ),
        "square_of_quotient": (lambda a, b: (a / b) ** 2, [2.0, 3.0], [0.5, 4.0]),
    },
)
_add(
    harmonic,
    {"parallel": (lambda x, y: x * y / (x + y), [2.0, 1.0], [0.5, -3.0])},
)
_add(
    log_complements,
    {
        "log_one_minus_tanh": (
            lambda x: m.log(2) - m.log1p(m.exp(2 * x)),
            [2.0**-40, 0.4, 0.6, -0.4, -3.0, 30.0],
        ),
        "log_softplus": (
            lambda x: m.log(m.log1p(m.exp(x))),
            [-4.9, -5.1, -30.0, 0.5, 30.0],
        ),
        "log_one_minus_exp_of_exp": (
            lambda x: m.log(-m.expm1(-m.exp(x))),
            [-4.9, -5.1, -300.0, 0.5, 3.0],
        ),
        "log_half_erfc": (
            lambda x: m.log(m.erfc(x) / 2),
            [0.5, -0.5, 6.0, -4.0],
        ),
        "log_fraction": (
            lambda x, y: m.log(x / (x + y)),
            [3.0, 3.0, 3.0, 3.0, 1.0],
            [2.0**-40, 1.4, 1.6, -1.4, 30.0],
        ),
        "log_elu_plus_one": (
            lambda x: m.log1p(x) if x > 0 else x,
            [0.5, 3.0, -0.5, -30.0],
        ),
    },
)
_add(
    log_products,
    {
        "log_one_plus_power": (
            lambda x, k: m.log1p(x**k),
            [2.0, 0.5, 3.0, 2.0, 1e300],
            [3.0, -2.0, 1.5, 80.0, 3.0],
        ),
    },
)
_add(
    field_limits,
    {
        "one_plus_inverse_times_log": (
            lambda k, z: (1 + 1 / k) * m.log1p(k * z),
            [2.0**-40, 0.2, 2.0],
            [3.0, -0.75, 1.5],
        ),
        "logistic_growth": (
            lambda p, t: p * m.exp(t) / (1 + p * m.expm1(t)),
            [0.25, 0.75, 0.25, 2.0**-40],
            [2.0, -2.0, 40.0, 0.5],
        ),
        "one_plus_square_times": (
            lambda h, a: 1 + h**2 * (a - 1),
            [1 + 2.0**-40, -0.75, 1.25, 0.25, 2.0, 1.25],
            [2.0**-40, 0.3, -0.3, 0.3, 2.0, 0.75],
        ),
        "general_robust_loss": (
            lambda a, s: abs(a - 2) / a * ((s / abs(a - 2) + 1) ** (a / 2) - 1),
            [2.0**-40, 1.0, -2.0, 3.0],
            [3.0, 0.75, 0.25, 2.0],
        ),
        "weighted_lgamma": (lambda w, x: w * m.loggamma(x), [2.0, -0.5], [0.75, 3.5]),
        "van_leer": (
            lambda a, b: (a / b + abs(a / b)) / (1 + abs(a / b)),
            [2.0, -1.0, 0.25],
            [0.5, 3.0, 4.0],
        ),
    },
)
_add(
    angles,
    {
        "acosh1p": (lambda x: m.acosh(1 + x), [2.0**-40, 0.3, 3.0]),
        "great_circle": (
            lambda a, b, d: m.acos(
                m.sin(a) * m.sin(b) + m.cos(a) * m.cos(b) * m.cos(d)
            ),
            [0.5, 0.3, -1.2],
            [0.5 + 2.0**-20, -0.9, 1.0],
            [2.0**-20, 2.0, -3.0],
        ),
        "mercator": (
            lambda x: m.log(m.tan(m.pi / 4 + x)),
            [2.0**-40, 0.3, -0.3, 0.7, -0.7, 2.5],
        ),
    },
)
# Functions of what is known already, as functions of their arguments alone.
FORMULAS |= {
    "quotient_minus_one": (
        lambda a, b: uncancelled.quotient_minus_one(a / b, a - b, b),
        lambda a, b: a / b - 1,
        [[3 + 2.0**-40, 2.0, 4.0, 1.0, 6.0], [3.0, 3.0, 3.0, 3.0, 3.0]],
    ),
    "product_minus_one": (
        lambda a, b: uncancelled.product_minus_one((1 + a) * (1 + b), a, b),
        lambda a, b: (1 + a) * (1 + b) - 1,
        [[2.0**-40, 0.3, -0.3, 0.4, 0.7], [2.0**-41, -0.4, 0.4, 0.4, -0.3]],
    ),
    "root_minus_one": (
        lambda x: uncancelled.root_minus_one(tf.sqrt(1 + x), x),
        lambda x: m.sqrt(1 + x) - 1,
        [[*NEAR_0, -0.8]],
    ),
    "inverse_root_minus_one": (
        lambda x: uncancelled.inverse_root_minus_one(tf.math.rsqrt(1 + x), x),
        lambda x: 1 / m.sqrt(1 + x) - 1,
        [[*NEAR_0, -0.8]],
    ),
    "power_minus_one": (
        lambda x, y: uncancelled.power_minus_one(tf.pow(1 + x, y), x, y),
        lambda x, y: (1 + x) ** y - 1,
        [[2.0**-40, 0.3, -0.3, 0.7, 0.4], [3.0, 1.2, -1.2, 0.5, 4.0]],
    ),
    "power_of_one_minus": (
        lambda x, y: log_products.power_of_one_minus(1 - x, x, y),
        lambda x, y: (1 - x) ** y,
        [[2.0**-40, 2.0**-7, 0.25, -0.5], [3.0, 300.0, 2.5, -2.0]],
    ),
    "power_of_fraction": (
        lambda a, b, y: log_products.power_of_fraction(a / (a + b), a, b, y),
        lambda a, b, y: (a / (a + b)) ** y,
        [[3.0, 3.0, 0.5], [2.0**-40, 1.0, 2.0], [40.0, 2.5, -2.0]],
    ),
    "log_of_product": (
        lambda x, y, k: log_products.log_of_product([(x, 2.0), (y, k)], 3.0),
        lambda x, y, k: m.log(3 * x**2 * y**k),
        [[2.0, -0.5, 1e200, -1e-200], [3.0, 0.25, 2.0, 3.0], [-1.0, 1.5, 2.0, 2.5]],
    ),
    "power_of_quotient": (
        lambda a, b: fractions.power_of_quotient(a, b, 3.0),
        lambda a, b: (a / b) ** 3,
        [[2.0, -0.5], [3.0, 0.25]],
    ),
    "sqrt1pm1_minus": (
        lambda x: uncancelled.root_minus(x, 1 + 0 * x),
        lambda x: m.sqrt(1 + x**2) - x,
        [[0.5, -2.0, 40.0]],
    ),
    "lgamma_difference": (
        lambda x, y: log_complements.lgamma_difference(x, y, x + y),
        lambda x, y: m.loggamma(x + y) - m.loggamma(x),
        [[3.0, 50.0, 0.5, 2.5, 3.0], [2.0**-10, 0.5, 2.0, -1.5, -1.25]],
    ),
    "lgamma_difference of a small total": (
        lambda x, total: log_complements.lgamma_difference(x, total - x, total),
        lambda x, total: m.loggamma(total) - m.loggamma(x),
        [[3.0, 50.0, 0.5], [1e-30, 1e-12, 1e-3]],
    ),
    "digamma_difference": (
        digamma_difference,
        lambda x, y: m.digamma(x + y) - m.digamma(x),
        [[3.0, 0.5, 50.0, 2.5], [2.0**-40, 2.0, 0.5, -1.5]],
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_value_slopes_and_curvatures_agree_with_mpmath(name):
    check_derivatives(*FORMULAS[name])


def test_roots_less_one_are_infinite_at_infinity(mode):
    x = tf.constant([np.inf, -np.inf, np.nan])
    value, (slope,) = modes.value_and_gradients(uncancelled.hypot1pm1, [x], mode)
    np.testing.assert_array_equal(value, [np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(slope, [1, -1, np.nan])


def test_one_to_the_power_of_infinity_is_1(mode):
    zero, infinite = tf.zeros([2]), tf.constant([np.inf, -np.inf])
    powers = (
        lambda x, y: log_products.power_of_one_minus(1 - x, x, y),
        lambda x, y: log_products.power_of_fraction(1 / (1 + x), 1 + 0 * x, x, y),
    )
    for function in powers:
        value = modes.compile_for(mode, function)(zero, infinite)
        np.testing.assert_array_equal(value, [1, 1])
