"""Quotients whose numerator vanishes with the denominator."""

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

ZEROS = [[0.0, 1e-4, 1.5]]
ORDINARY = [[0.3, 1.1, 2.0]]


def _of(name, function, exact, **options):
    return Formula(
        name,
        function,
        lambda x: exact(off_zero(x)),
        options.pop("bad", ZEROS),
        options.pop("ordinary", ORDINARY),
        **options,
    )


def _even_series(order):
    """Returns the power series in the curvature of `f(sqrt(k) * d) / sqrt(k)`."""
    series = np.frompyfunc(lambda z: mpmath.hyp0f1(order, z), 1, 1)
    return lambda k, d: d * series(-k * d * d / 4)


def _quaternion(v):
    angle = tf.sqrt(tf.reduce_sum(v * v, -1, keepdims=True))
    return tf.concat([tf.cos(angle / 2), tf.sin(angle / 2) * v / angle], -1)


def _exact_quaternion(v):
    v = off_zero(v)
    angle = m.sqrt((v * v).sum(-1))
    return m.cos(angle / 2).sum() + (m.sin(angle / 2) / angle * v.sum(-1)).sum()


def _rodrigues(v, p):
    angle = tf.norm(v)
    axis = v / angle
    cross = tf.linalg.cross(axis, p)
    along = axis * tf.reduce_sum(axis * p)
    return p * tf.cos(angle) + cross * tf.sin(angle) + along * (1 - tf.cos(angle))


def _exact_rodrigues(v, p):
    v = off_zero(v)
    angle = m.sqrt((v * v).sum())
    a = v / angle
    cross = (a[1] * p[2] - a[2] * p[1]) + (a[2] * p[0] - a[0] * p[2])
    cross += a[0] * p[1] - a[1] * p[0]
    along = a.sum() * (a * p).sum()
    return p.sum() * m.cos(angle) + cross * m.sin(angle) + along * (1 - m.cos(angle))


def _squash(v):
    squared = tf.reduce_sum(v * v, -1, keepdims=True)
    return squared / (1 + squared) * v / tf.sqrt(squared)


def _exact_squash(v):
    v = off_zero(v)
    squared = (v * v).sum(-1)
    return (squared / (1 + squared) * v.sum(-1) / m.sqrt(squared)).sum()


def _sabr(f, k):
    z = tf.math.log(f / k)
    x = tf.math.log((tf.sqrt(1 - 0.6 * z + z * z) + z - 0.3) / 0.7)
    return z / x


def _exact_sabr_of(z, rho):
    z = off_zero(z)
    return z / m.log((m.sqrt(1 - 2 * rho * z + z * z) + z - rho) / (1 - rho))


def _exact_sabr(f, k):
    z, rho = off_zero(m.log(f / k)), mpmath.mpf("0.3")
    return z / m.log((m.sqrt(1 - 2 * rho * z + z * z) + z - rho) / (1 - rho))


FORMULAS = [
    _of("sine over its argument", lambda t: tf.sin(t) / t, lambda t: m.sin(t) / t),
    _of(
        "sine over its argument behind where",
        lambda t: tf.where(tf.abs(t) < 1e-7, tf.ones_like(t), tf.sin(t) / t),
        lambda t: m.sin(t) / t,
    ),
    _of(
        "versine over the square",
        lambda t: (1 - tf.cos(t)) / (t * t),
        lambda t: (1 - m.cos(t)) / t**2,
    ),
    _of(
        "versine over the square behind where",
        lambda t: tf.where(
            tf.equal(t, 0), 0.5 * tf.ones_like(t), (1 - tf.cos(t)) / t**2
        ),
        lambda t: (1 - m.cos(t)) / t**2,
    ),
    _of(
        "versine over its argument",
        lambda t: (1 - tf.cos(t)) / t,
        lambda t: (1 - m.cos(t)) / t,
    ),
    _of(
        "third coefficient of the exponential map",
        lambda t: (t - tf.sin(t)) / (t * t * t),
        lambda t: (t - m.sin(t)) / t**3,
        bad=[[0.0, 1e-3, 1.5]],
    ),
    _of("tanh over its argument", lambda x: tf.tanh(x) / x, lambda x: m.tanh(x) / x),
    *(
        Formula(
            name,
            function,
            lambda d, a: m.expm1(d * off_zero(a)) / off_zero(a),
            [[0.5, 0.5, 1e-3], [0.0, 1e-6, 0.0]],
            [[0.5, 0.1], [-1.0, -3.0]],
        )
        for name, function in {
            "zero-order hold of a state space": lambda d, a: (
                (tf.exp(d * a) - 1) / (d * a) * d
            ),
            "zero-order hold by an inverse": lambda d, a: (
                1 / (d * a) * (tf.exp(d * a) - 1) * d
            ),
        }.items()
    ),
    _of("argument over sine", lambda t: t / tf.sin(t), lambda t: t / m.sin(t)),
    _of("argument over tanh", lambda t: t / tf.tanh(t), lambda t: t / m.tanh(t)),
    _of("sinh over its argument", lambda t: tf.sinh(t) / t, lambda t: m.sinh(t) / t),
    _of(
        "Bernoulli function x/(exp(x) - 1)",
        lambda x: x / (tf.exp(x) - 1),
        lambda x: x / m.expm1(x),
    ),
    _of(
        "Bernoulli function with expm1",
        lambda x: x / tf.math.expm1(x),
        lambda x: x / m.expm1(x),
    ),
    _of(
        "exprel (exp(x) - 1)/x",
        lambda x: (tf.exp(x) - 1) / x,
        lambda x: m.expm1(x) / x,
    ),
    _of(
        "phi function (1 - exp(-x))/x",
        lambda x: (1 - tf.exp(-x)) / x,
        lambda x: -m.expm1(-x) / x,
    ),
    _of(
        "log1p over its argument",
        lambda x: tf.math.log1p(x) / x,
        lambda x: m.log1p(x) / x,
    ),
    _of("atan over its argument", lambda x: tf.atan(x) / x, lambda x: m.atan(x) / x),
    _of(
        "asin over its argument",
        lambda x: tf.asin(x) / x,
        lambda x: m.asin(x) / x,
        bad=[[0.0, 1e-4, 0.5]],
        ordinary=[[0.3, 0.6]],
    ),
    _of(
        "Langevin function coth(x) - 1/x",
        lambda x: 1 / tf.tanh(x) - 1 / x,
        lambda x: m.coth(x) - 1 / x,
        bad=[[0.0, 1e-3, 1.5]],
    ),
    Formula(
        "quaternion of an axis-angle vector",
        _quaternion,
        _exact_quaternion,
        [[[0.0, 0.0, 0.0], [0.1, -0.2, 0.3]]],
        [[[0.4, 0.1, 0.2], [0.1, -0.2, 0.3]]],
    ),
    Formula(
        "Rodrigues' rotation by a zero angle",
        _rodrigues,
        _exact_rodrigues,
        [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]],
        [[0.3, -0.5, 0.2], [1.0, 2.0, 3.0]],
    ),
    Formula(
        "squashing of capsules",
        _squash,
        _exact_squash,
        [[[0.0, 0.0], [0.3, 0.4]]],
        [[[1.0, -2.0], [0.3, 0.4]]],
    ),
    Formula(
        "SABR's z over x(z) of a correlation that is learned",
        lambda z, rho: (
            z / tf.math.log((tf.sqrt(1 - 2 * rho * z + z * z) + z - rho) / (1 - rho))
        ),
        _exact_sabr_of,
        [[0.0, 0.0625], [0.25, -0.5]],
        [[0.5, -0.25], [0.25, -0.5]],
    ),
    Formula(
        "SABR's z over x(z) at the money",
        _sabr,
        _exact_sabr,
        [[1.0, 1.1], [1.0, 1.0]],
        [[1.2, 0.9], [1.0, 1.0]],
    ),
    _of(
        "density of a screened charge in a shell",
        lambda r: r**2 * (tf.exp(-2 * r) / r),
        lambda r: (r * m.exp(-2 * r)).sum(),
    ),
    _of(
        "screened charge of a potential",
        lambda r: tf.exp(-r) / r * r,
        lambda r: m.exp(-r).sum(),
    ),
    Formula(
        "circle on a surface whose curvature vanishes",
        lambda k, d: tf.sin(tf.sqrt(k) * d) / tf.sqrt(k),
        _even_series(1.5),
        [[0.0, 1e-6, 0.5], [1.0, 2.0, 1.0]],
        [[0.25, 1.0, 0.5], [1.0, 2.0, 1.0]],
    ),
    Formula(
        "circle on a surface of negative curvature that vanishes",
        lambda k, d: tf.sinh(tf.sqrt(-k) * d) / tf.sqrt(-k),
        _even_series(1.5),
        [[0.0, -1e-6, -0.5], [1.0, 2.0, 1.0]],
        [[-0.25, -1.0, -0.5], [1.0, 2.0, 1.0]],
    ),
]
