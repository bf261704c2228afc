"""Segments, masks, likelihoods, loops, epsilons and moments, made at random."""

import numpy as np
import tensorflow as tf

from tests.rewriting.drawing import (
    HALF,
    QUOTIENTS,
    SQUARES,
    Drawn,
    Function,
    Made,
)

IDS = np.array([0, 0, 2, 2, 2, 3])
SUMS: dict[str, Function] = {
    "segment_sum": lambda x: tf.math.segment_sum(x, IDS),
    "unsorted_segment_sum": lambda x: tf.math.unsorted_segment_sum(x, IDS, 5),
    "scatter_nd": lambda x: tf.scatter_nd(IDS[:, None], x, [5]),
    "tensor_scatter_nd_add": lambda x: tf.tensor_scatter_nd_add(
        tf.zeros([5], x.dtype), IDS[:, None], x
    ),
}
WEIGHTS = np.float32([0.2, 0.9, -0.4, 0.3, 0.8, 0.5])


def of_segments(drawn: Drawn) -> Made:
    add, divide = drawn.one(SUMS), drawn.one(QUOTIENTS)
    is_shifted = drawn.name(["exp(x)", "exp(x - max)"]) != "exp(x)"
    is_log = drawn.name(["softmax", "log softmax"]) != "softmax"
    x = drawn.number(1, 10, 100) * drawn.normal(6)

    def naive(x):
        if is_shifted:
            x -= tf.gather(tf.math.unsorted_segment_max(x, IDS, 5), IDS)
        e = tf.exp(x)
        made = divide(e, tf.gather(add(e), IDS))
        made = tf.math.log(made) if is_log else made
        return tf.reduce_sum(made * WEIGHTS)

    def exact(x):
        others = tf.where(IDS[:, None] == IDS, x[None, :], -np.inf)
        made = x - tf.reduce_logsumexp(others, -1)
        made = made if is_log else tf.exp(made)
        return tf.reduce_sum(made * tf.constant(WEIGHTS, tf.float64))

    return Made(naive, exact, x, (1e-4, 1e-7))


MASKED: dict[str, Function] = {
    "where(m, z, dtype.min)": lambda z, m: tf.where(m, z, z.dtype.min),
    "where(m, z, -inf)": lambda z, m: tf.where(m, z, tf.constant(-np.inf, z.dtype)),
    "z + (1 - m) * -1e4": lambda z, m: z + (1 - tf.cast(m, z.dtype)) * -1e4,
    "z + (1 - m) * -1e9": lambda z, m: z + (1 - tf.cast(m, z.dtype)) * -1e9,
    "z - 1e9 * (1 - m)": lambda z, m: z - 1e9 * (1 - tf.cast(m, z.dtype)),
    "z + where(m, 0, -1e9)": lambda z, m: z + tf.where(m, z * 0, -1e9),
}


def half_mask(drawn: Drawn) -> Made:
    hide = drawn.one(MASKED)
    m = drawn.rng.random((3, 4)) < 0.6
    m[:, 0] = True
    w = drawn.rng.random((3, 4)).astype(np.float16)
    z = drawn.number(1, 5) * drawn.normal(3, 4)

    def exact(z):
        p = tf.nn.softmax(tf.where(m, z, -np.inf))
        return tf.reduce_sum(p * tf.constant(w, tf.float64))

    def naive(z):
        # NumPy warns that -1e9 becomes -inf.
        with np.errstate(over="ignore"):
            return tf.reduce_sum(tf.nn.softmax(hide(z, m)) * w)

    return Made(naive, exact, z, HALF)


LIKELIHOODS: dict[str, Function] = {
    "negative binomial": lambda a, b: (
        tf.math.lgamma(3 + a)
        - tf.math.lgamma(a)
        + a * tf.math.log(a / (a + b))
        + 3 * tf.math.log(b / (a + b))
    ),
    "beta": lambda a, b: (
        tf.math.lgamma(a + b)
        - tf.math.lgamma(a)
        - tf.math.lgamma(b)
        + (a - 1) * tf.math.log(tf.constant(0.3, a.dtype))
    ),
    "lbeta": lambda a, b: tf.math.lbeta(tf.stack([a, b], -1)),
    "Student": lambda a, b: (
        tf.math.lgamma((a + 1) / 2)
        - tf.math.lgamma(a / 2)
        - 0.5 * tf.math.log(a)
        - (a + 1) / 2 * tf.math.log(1 + b * b / a)
    ),
    "gamma": lambda a, b: (
        a * tf.math.log(b) - tf.math.lgamma(a) + (a - 1) * 0.3 - b * 1.3
    ),
    "digammas": lambda a, b: tf.math.digamma(a + b) - tf.math.digamma(a),
}


def likelihood(drawn: Drawn) -> Made:
    density = drawn.one(LIKELIHOODS)
    scale = drawn.number(1, 30, 1e3)
    x = scale * (0.2 + drawn.rng.random((2, 4)))
    # The terms of a likelihood are far larger than their sum.
    return Made(
        lambda x: tf.reduce_mean(density(x[0], x[1])),
        lambda x: tf.reduce_mean(density(x[0], x[1])),
        x,
        (1e-4, 1e-6 * scale),
    )


def hidden_states(drawn: Drawn) -> Made:
    loop = drawn.name(["scan", "while_loop", "Python"])
    # Every row has a probability of `mix`, and more of staying.
    mix = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    z = drawn.number(1, 30) * drawn.normal(4, 3) - drawn.number(0, 40)

    def naive(z):
        def step(a, e):
            return tf.linalg.matvec(tf.constant(mix, z.dtype), a, transpose_a=True) * e

        a, e = tf.ones([3], z.dtype), tf.exp(z)
        if loop == "scan":
            a = tf.scan(step, e, a)[-1]
        elif loop == "Python":
            for i in range(4):
                a = step(a, e[i])
        else:
            _, a = tf.while_loop(
                lambda i, a: i < 4, lambda i, a: (i + 1, step(a, e[i])), (0, a)
            )
        return -tf.math.log(tf.reduce_sum(a))

    def exact(z):
        a, moves = (
            tf.zeros([3], z.dtype),
            tf.constant(np.log(mix.astype(np.float32)), z.dtype),
        )
        for i in range(4):
            a = tf.reduce_logsumexp(a[:, None] + moves, 0) + z[i]
        return -tf.reduce_logsumexp(a)

    return Made(naive, exact, z, (1e-4, 1e-6))


def running_quotient(drawn: Drawn) -> Made:
    is_scan = drawn.name(["scan", "Python"]) == "scan"
    divide = drawn.one(QUOTIENTS)
    z = drawn.number(1, 20, 60) * drawn.normal(4, 3)
    v = drawn.normal(4, 3).astype(np.float32)

    def naive(z):
        zero = tf.zeros([3], z.dtype)

        def step(state, row):
            e = tf.exp(row[0])
            return 0.9 * state[0] + e * row[1], 0.9 * state[1] + e

        if is_scan:
            above, below = (
                each[-1] for each in tf.scan(step, (z, tf.constant(v)), (zero, zero))
            )
        else:
            state = zero, zero
            for i in range(4):
                state = step(state, (z[i], tf.constant(v[i])))
            above, below = state
        return tf.reduce_sum(divide(above, below))

    def exact(z):
        decay = np.log(np.float64(np.float32(0.9))) * np.arange(3, -1, -1)[:, None]
        return tf.reduce_sum(tf.nn.softmax(z + decay, 0) * tf.constant(v, tf.float64))

    return Made(naive, exact, z, (1e-4, 1e-6))


STEPS: dict[str, Function] = {
    "m / (sqrt(v) + 1e-8)": lambda m, v: m / (tf.sqrt(v) + 1e-8),
    "m / sqrt(v + 1e-8)": lambda m, v: m / tf.sqrt(v + 1e-8),
    "m * rsqrt(v + 1e-8)": lambda m, v: m * tf.math.rsqrt(v + 1e-8),
    "m / (v + 1e-8)": lambda m, v: m / (v + 1e-8),
    "divide(m, sqrt(v) + 1e-10)": lambda m, v: tf.divide(m, tf.sqrt(v) + 1e-10),
}


def half_epsilon(drawn: Drawn) -> Made:
    step = drawn.one(STEPS)
    v = drawn.number(1, 1e-2) * (0.1 + drawn.rng.random(6))
    m = 0.1 * np.sqrt(v) * drawn.normal(6)
    return Made(
        lambda x: tf.reduce_sum(step(x[0], x[1])),
        lambda x: tf.reduce_sum(step(x[0], x[1])),
        np.stack([m, v]),
        HALF,
    )


def moment(drawn: Drawn) -> Made:
    square, kind = (
        drawn.one(SQUARES),
        drawn.name(["variance", "deviation", "covariance", "correlation"]),
    )
    mean = drawn.one({
        "reduce_mean": tf.reduce_mean,
        "reduce_sum / n": lambda x: tf.reduce_sum(x) / 6,
        "reduce_sum * (1 / n)": lambda x: tf.reduce_sum(x) * (1 / 6),
    })
    x = drawn.normal(2, 6) + drawn.number(0, 30, 3000)

    def variance(x):
        return mean(square(x)) - square(mean(x))

    def naive(x):
        x, y = x[0], x[1]
        if kind == "variance":
            return variance(x)
        if kind == "deviation":
            return tf.sqrt(variance(x) + 1e-6)
        covariance = mean(x * y) - mean(x) * mean(y)
        if kind == "covariance":
            return covariance
        return covariance / tf.sqrt(variance(x) * variance(y))

    def exact(x):
        x, y = (each - tf.reduce_mean(each) for each in (x[0], x[1]))
        a, b, c = (tf.reduce_mean(each) for each in (x * x, y * y, x * y))
        made = {
            "variance": a,
            "deviation": tf.sqrt(a + 1e-6),
            "covariance": c,
            "correlation": c / tf.sqrt(a * b),
        }
        return made[kind]

    return Made(naive, exact, x, (2e-3, 1e-5))


def overlap(drawn: Drawn) -> Made:
    square, kind = drawn.one(SQUARES), drawn.name(["Dice", "IoU", "Tversky", "squares"])
    y = (drawn.rng.random((2, 5)) < drawn.number(0, 0.5, 1)).astype(np.float32)
    epsilon = drawn.number(1, 1e-6)
    z = drawn.number(1, 10) * drawn.normal(2, 5)

    def loss(z):
        p, t = tf.sigmoid(z), tf.constant(y, z.dtype)
        both = tf.reduce_sum(p * t, -1)
        a, b = tf.reduce_sum(p, -1), tf.reduce_sum(t, -1)
        if kind == "Dice":
            made = (2 * both + epsilon) / (a + b + epsilon)
        elif kind == "IoU":
            made = (both + epsilon) / (a + b - both + epsilon)
        elif kind == "Tversky":
            made = (both + epsilon) / (0.3 * a + 0.7 * b + epsilon)
        else:
            made = (2 * both + epsilon) / (
                tf.reduce_sum(square(p), -1) + tf.reduce_sum(square(t), -1) + epsilon
            )
        return tf.reduce_mean(1 - made)

    return Made(loss, loss, z, (1e-4, 2e-7))


# As written, the function that is exact once its argument is replaced where it is not
# used, and what it is used for.
MASKABLE = {
    "log(x)": tf.math.log,
    "sqrt(x)": tf.sqrt,
    "1 / x": lambda x: 1 / x,
    "rsqrt(x)": tf.math.rsqrt,
    "x ** -0.5": lambda x: x**-0.5,
    "x ** (1 / 2.4)": lambda x: x ** (1 / 2.4),
    "x * log(x)": lambda x: x * tf.math.log(x),
    "1 / sqrt(x)": lambda x: 1 / tf.sqrt(x),
}


def mask_after(drawn: Drawn) -> Made:
    function = drawn.one(MASKABLE)
    hide = drawn.one({
        "f(x) * m": lambda f, m: f * tf.cast(m, f.dtype),
        "m * f(x)": lambda f, m: tf.cast(m, f.dtype) * f,
        "where(m, f(x), 0)": lambda f, m: tf.where(m, f, tf.zeros_like(f)),
        "where(m, f(x), -1)": lambda f, m: tf.where(m, f, -tf.ones_like(f)) + 1,
    })
    is_shifted = "where(m, f(x), -1)" in drawn.words
    is_mean = drawn.name(["sum", "mean over m"]) != "sum"
    x = 0.1 + drawn.number(1, 100) * drawn.rng.random(6)
    m = drawn.rng.random(6) < 0.6
    m[0], m[1] = True, False
    x[~m] = 0

    def reduced(total):
        return total / m.sum() if is_mean else total

    def exact(x):
        made = function(tf.where(m, x, tf.ones_like(x)))
        made = made + 1 if is_shifted else made
        return reduced(tf.reduce_sum(tf.where(m, made, tf.zeros_like(x))))

    return Made(lambda x: reduced(tf.reduce_sum(hide(function(x), m))), exact, x)
