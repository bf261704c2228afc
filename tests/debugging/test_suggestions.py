"""Suggested code gives finite values; so does `stabilize` where it is suggested."""

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tfsafe.debugging.explain import suggestions


def softmax(s):
    e = tf.exp(s)
    return e / tf.reduce_sum(e, -1, keepdims=True)


def log_softmax(s):
    e = tf.exp(s)
    return tf.math.log(e / tf.reduce_sum(e, -1, keepdims=True))


def logsumexp(s):
    return tf.math.log(tf.reduce_sum(tf.exp(s), -1))


def log_of_softmax(s):
    return tf.math.log(tf.nn.softmax(s))


def log_of_sigmoid(s):
    return tf.math.log(tf.sigmoid(s))


def weighted_log(p, w):
    return tf.reduce_sum(w * tf.math.log(p))


def quotient(a, b):
    return a / b


def inverse(v):
    return tf.math.reciprocal(v)


def inverse_root(v):
    return tf.math.rsqrt(v)


def root(v):
    return tf.sqrt(v)


def logarithm(v):
    return tf.where(v > 0, tf.math.log(v), 0.0)


def power(v):
    return v**0.5


def standard_deviation(v):
    return tf.math.reduce_std(v, axis=-1)


def length(v):
    return tf.norm(v, axis=-1)


def direction(v):
    return tf.math.l2_normalize(v, axis=-1, epsilon=0.0)


def unit(v):
    return tf.linalg.normalize(v, axis=-1)[0]


def arc_cosine(v):
    return tf.acos(v + 1.0)


def masked(s):
    return tf.nn.softmax(tf.where(s > 1.0, s, -np.inf))


S = [[200.0, 1.0], [3.0, 4.0]]
LOW = [[-200.0, 1.0], [3.0, 4.0]]
ZEROS = [[0.0, 0.0], [1.0, 2.0]]
# Function, arguments, whether the gradient is what fails.
CASES = [
    (softmax, [S], False),
    (log_softmax, [S], False),
    (logsumexp, [S], False),
    (log_of_softmax, [S], False),
    (log_of_sigmoid, [LOW], False),
    (weighted_log, [ZEROS, ZEROS], False),
    (quotient, [ZEROS, ZEROS], False),
    (inverse, [ZEROS], False),
    (inverse_root, [ZEROS], False),
    (inverse_root, [[-1e-9, 4.0]], False),
    (root, [[-1e-9, 4.0]], False),
    (root, [ZEROS], True),
    (logarithm, [ZEROS], True),
    (power, [ZEROS], True),
    (standard_deviation, [ZEROS], True),
    (length, [ZEROS], True),
    (direction, [ZEROS], False),
    (unit, [ZEROS], False),
    (arc_cosine, [[[0.0, -1.0]]], True),
    (masked, [ZEROS], False),
]


def derived(function):
    """Returns a function of the gradient of the sum of the results."""

    def gradient(*values):
        with tf.GradientTape() as tape:
            tape.watch(values)
            total = tf.reduce_sum(function(*values))
        return tape.gradient(total, values)

    return gradient


def finding_of(function, arguments, is_gradient):
    run = derived(function) if is_gradient else function
    with pytest.raises(tfsafe.NumericsError) as caught:
        # Eagerly: the graph optimizer mends some of these by itself.
        tfsafe.checked(run)(*arguments)
    return caught.value.findings[0]


def is_finite(function, arguments, is_gradient):
    run = derived(function) if is_gradient else function
    return all(np.isfinite(each).all() for each in tf.nest.flatten(run(*arguments)))


@pytest.mark.parametrize(
    ("function", "arguments", "is_gradient"),
    CASES,
    ids=[f"{case[0].__name__}-{case[2]}" for case in CASES],
)
def test_a_suggested_line_gives_finite_values(function, arguments, is_gradient):
    arguments = [tf.constant(each) for each in arguments]
    finding = finding_of(function, arguments, is_gradient)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    # The suggested line, with the names of the user's function.
    code = compile(finding.suggested_code, "suggestion", "eval")

    def suggested(*values):
        known = {
            "np": np,
            "tf": tf,
            "tfsafe": tfsafe,
            **dict(zip(names, values, strict=True)),
        }
        return eval(code, known)

    assert is_finite(suggested, arguments, is_gradient), finding.suggested_code
    if suggestions.REWRITES in finding.suggestion:
        stable = tfsafe.stabilize(tf.function(function, autograph=False))
        assert is_finite(stable, arguments, is_gradient)


def test_every_formula_and_every_rewrite_that_is_reported_is_run():
    told = {row.op for row in suggestions.FIXES if row.is_rewritten}
    assert told == {"Exp", "Log", "Sqrt"}
    run = " ".join(name for case in CASES for name in case[0].__code__.co_names)
    assert all(name.rpartition(".")[2] in run for name in ("norm", "l2_normalize"))


def test_an_exponential_is_reported_as_the_softmax_that_it_is_part_of(mode):
    function = modes.compile_for(mode, softmax)
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(function)(tf.constant(S))
    assert caught.value.findings[0].suggested_code == "tfsafe.ops.softmax(s, axis=-1)"
