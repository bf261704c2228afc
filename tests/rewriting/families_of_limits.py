"""Quotients with a limit, angles and rotations, made at random."""

import numpy as np
import tensorflow as tf

from tests.rewriting.drawing import QUOTIENTS, Drawn, Function, Made


def _series(x, *terms):
    """Returns a polynomial in x ** 2."""
    total = tf.zeros_like(x)
    for term in reversed(terms):
        total = total * x * x + term
    return total


def _limit(function: Function, *terms: float) -> Function:
    """Returns an even function with a limit at 0, by its series near it."""

    def exact(x):
        is_near = tf.abs(x) < 3e-2
        far = function(tf.where(is_near, tf.ones_like(x), x))
        return tf.where(is_near, _series(x, *terms), far)

    return exact


# Numerator, denominator and the even function that is exact in float64.
LIMITS = {
    "sin(x) / x": (
        tf.sin,
        lambda x: x,
        _limit(lambda x: tf.sin(x) / x, 1, -1 / 6, 1 / 120, -1 / 5040),
    ),
    "(1 - cos(x)) / x ** 2": (
        lambda x: 1 - tf.cos(x),
        lambda x: x * x,
        _limit(lambda x: (1 - tf.cos(x)) / x**2, 1 / 2, -1 / 24, 1 / 720, -1 / 40320),
    ),
    "tanh(x) / x": (
        tf.tanh,
        lambda x: x,
        _limit(lambda x: tf.tanh(x) / x, 1, -1 / 3, 2 / 15, -17 / 315),
    ),
    "x / sin(x)": (
        lambda x: x,
        tf.sin,
        _limit(lambda x: x / tf.sin(x), 1, 1 / 6, 7 / 360, 31 / 15120),
    ),
    "sinh(x) / x": (
        tf.sinh,
        lambda x: x,
        _limit(lambda x: tf.sinh(x) / x, 1, 1 / 6, 1 / 120, 1 / 5040),
    ),
    "atan(x) / x": (
        tf.atan,
        lambda x: x,
        _limit(lambda x: tf.atan(x) / x, 1, -1 / 3, 1 / 5, -1 / 7),
    ),
    "x / tanh(x)": (
        lambda x: x,
        tf.tanh,
        _limit(lambda x: x / tf.tanh(x), 1, 1 / 3, -1 / 45, 2 / 945),
    ),
}


def quotient_with_a_limit(drawn: Drawn) -> Made:
    above, below, exact = LIMITS[drawn.name(LIMITS)]
    divide = drawn.one(QUOTIENTS)
    scale = drawn.number(1, 1e-3, 1e-6)
    factor = drawn.number(1, 3, -0.5)
    x = scale * drawn.normal(6)
    x[0] = 0
    return Made(
        lambda x: tf.reduce_sum(divide(above(x), below(x)) * factor),
        lambda x: tf.reduce_sum(exact(x) * factor),
        x,
    )


def exponential_quotient(drawn: Drawn) -> Made:
    divide = drawn.one(QUOTIENTS)
    exponential = drawn.one({
        "exp(x) - 1": lambda x: tf.exp(x) - 1,
        "expm1(x)": tf.math.expm1,
    })
    x = drawn.number(1, 1e-3, 1e-6) * drawn.normal(6)
    x[0] = 0

    def exact(x):
        # (exp(x) - 1) / x is exp(x / 2) * sinh(x / 2) / (x / 2).
        return tf.exp(x / 2) * LIMITS["sinh(x) / x"][2](x / 2)

    if drawn.name(["(exp(x) - 1) / x", "x / (exp(x) - 1)"]).startswith("x"):
        return Made(
            lambda x: tf.reduce_sum(divide(x, exponential(x))),
            lambda x: tf.reduce_sum(1 / exact(x)),
            x,
        )
    return Made(
        lambda x: tf.reduce_sum(divide(exponential(x), x)),
        lambda x: tf.reduce_sum(exact(x)),
        x,
    )


COSINES = {
    "sum(a * b) / (norm(a) * norm(b))": lambda a, b: (
        tf.reduce_sum(a * b, -1) / (tf.norm(a, axis=-1) * tf.norm(b, axis=-1))
    ),
    "sum(l2(a) * l2(b))": lambda a, b: tf.reduce_sum(
        tf.nn.l2_normalize(a, -1) * tf.nn.l2_normalize(b, -1), -1
    ),
    "sum(a / norm(a) * b / norm(b))": lambda a, b: tf.reduce_sum(
        a / tf.norm(a, axis=-1, keepdims=True) * b / tf.norm(b, axis=-1, keepdims=True),
        -1,
    ),
}


def angle(drawn: Drawn) -> Made:
    cosine = drawn.one(COSINES)
    bound = drawn.one({
        "none": lambda c: c,
        "clip(c, -1, 1)": lambda c: tf.clip_by_value(c, -1, 1),
    })
    a = drawn.normal(3, 4)
    near = drawn.number(1, 1e-2, 1e-3)
    b = drawn.number(1, -2, 0.3) * (a + near * drawn.normal(3, 4))

    def exact(z):
        a, b = (each / tf.norm(each, axis=-1, keepdims=True) for each in (z[0], z[1]))
        return tf.reduce_sum(
            2 * tf.atan2(tf.norm(a - b, axis=-1), tf.norm(a + b, axis=-1))
        )

    return Made(
        lambda z: tf.reduce_sum(tf.acos(bound(cosine(z[0], z[1])))),
        exact,
        np.stack([a, b]),
        # Unit vectors are as exact as their dtype; so is their difference.
        (max(1e-3, 1e-5 / near), 1e-6),
    )


def rotation(drawn: Drawn) -> Made:
    length = drawn.one({
        "norm(w)": lambda w: tf.norm(w, axis=-1, keepdims=True),
        "sqrt(sum(w * w))": lambda w: tf.sqrt(tf.reduce_sum(w * w, -1, keepdims=True)),
    })
    w = drawn.number(1, 1e-3, 1e-6) * drawn.normal(3, 3)
    w[0] = 0
    turned = np.float32([0.3, -0.5, 0.8])
    is_quaternion = drawn.name(["quaternion", "Rodrigues"]) == "quaternion"
    weights = np.float32([1.0, -2.0, 0.5, 0.7])

    def of(w, t, sine, versine):
        v = tf.constant(turned, w.dtype) + tf.zeros_like(w)
        if is_quaternion:
            q = tf.concat([tf.cos(t / 2), sine * w], -1)
            return tf.reduce_sum(q * tf.constant(weights, w.dtype))
        once = tf.linalg.cross(w, v)
        twice = tf.linalg.cross(w, once)
        rotated = v + sine * once + versine * twice
        return tf.reduce_sum(rotated * tf.constant(weights[:3], w.dtype))

    def naive(w):
        t = length(w)
        if is_quaternion:
            return of(w, t, tf.sin(t / 2) / t, None)
        return of(w, t, tf.sin(t) / t, (1 - tf.cos(t)) / (t * t))

    def exact(w):
        square = tf.reduce_sum(w * w, -1, keepdims=True)
        is_zero = square == 0
        root = tf.sqrt(tf.where(is_zero, tf.ones_like(square), square))
        t = tf.where(is_zero, tf.zeros_like(square), root)
        sine, versine = LIMITS["sin(x) / x"][2], LIMITS["(1 - cos(x)) / x ** 2"][2]
        return of(w, t, sine(t / 2) / 2 if is_quaternion else sine(t), versine(t))

    return Made(naive, exact, w)
