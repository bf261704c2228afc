"""What looks like a logarithm or a softmax by hand and is none stays untouched."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired, rewritten
from tests.rewriting.tables import LOGARITHMS as RULES
from tests.support import contrast, modes
from tests.support.oracle import assert_close
from tfsafe import stabilize

log, exp = tf.math.log, tf.exp
softmax, sigmoid = tf.nn.softmax, tf.sigmoid
X = [[0.5, 0.25, 2.0], [0.1, 1.5, 0.75], [1.0, 3.0, 0.3]]


def _total(x, axis=-1, keepdims=True):
    return tf.reduce_sum(x, axis, keepdims=keepdims)


def _doubled(x, times):
    for _ in range(times):
        x = x + x
    return x


def _below_largest(x):
    return x - tf.reduce_max(x, -1, keepdims=True)


@tf.custom_gradient
def _own(x):
    return tf.identity(x), lambda upstream: 2 * upstream


UNTOUCHED = {
    "log(x)": log,
    "log(x + 1)": lambda x: log(x + 1),
    "log(1 - x)": lambda x: log(1 - x),
    "log(x * x)": lambda x: log(x * x),
    "log(2 * x)": lambda x: log(2 * x),
    "log(x / sum(x))": lambda x: log(x / _total(x)),
    "log(sum(x))": lambda x: log(_total(x)),
    "log(x + 1e-7)": lambda x: log(x + 1e-7),
    "log(clip(x))": lambda x: log(tf.clip_by_value(x, 1e-7, 1 - 1e-7)),
    "log(relu(x))": lambda x: log(tf.nn.relu(x)),
    "log(tanh(x))": lambda x: log(tf.tanh(x)),
    "log(softplus(x) - 0.1)": lambda x: log(tf.nn.softplus(x) - 0.1),
    "log(p + 0.1)": lambda x: log(softmax(x) + 0.1),
    "log(p + 1e-3)": lambda x: log(softmax(x) + 1e-3),
    "log(max(p, 0.1))": lambda x: log(tf.maximum(softmax(x), 0.1)),
    "log(clip(p, 0.1, 0.9))": lambda x: log(tf.clip_by_value(sigmoid(x), 0.1, 0.9)),
    "log(1.0001 - p)": lambda x: log(1.0001 - sigmoid(x)),
    "log(2 - p)": lambda x: log(2 - sigmoid(x)),
    "log(1 + p)": lambda x: log(1 + sigmoid(x)),
    "log(1 - w * p)": lambda x: log(1 - 0.3 * tf.sin(x) ** 2 * sigmoid(x)),
    "log(1 - x * y)": lambda x: log(1 - x * tf.sin(x)),
    "log(1 + x * (p - 2))": lambda x: log(1 + x * (sigmoid(x) - 2)),
    "log(0.5 - p)": lambda x: log(0.5 - sigmoid(x)),
    "log(p - 0.1)": lambda x: log(sigmoid(x) - 0.1),
    "log(p + x) of a plain x": lambda x: log(sigmoid(x) + x),
    "log of a softmax with a gradient of its own": lambda x: log(_own(softmax(x))),
    "a complex logarithm": lambda x: log(tf.complex(x, x) * tf.exp(tf.complex(x, x))),
    "a logarithm deep inside a sum": lambda x: x * _doubled(log(x), 10),
    "the logarithm of a constant": lambda x: x + log(tf.reduce_prod([2.0, 3.0])),
    "x / sum(x)": lambda x: x / _total(x),
    "p / sum(p)": lambda x: softmax(x) / _total(softmax(x)),
    "sum(exp(x))": lambda x: _total(exp(x)),
    "exp(x) / y": lambda x: exp(x) / x,
    "exp(x) ** 2": lambda x: exp(x) ** 2,
    "sqrt(1 + exp(x))": lambda x: tf.sqrt(2 + exp(x)),
    "1 - x": lambda x: 1 - x,
    "2 - softmax(x)": lambda x: 2 - softmax(x),
    "softmax(x) - 1": lambda x: softmax(x) - 1,
    "sigmoid(x)": sigmoid,
    "log_softmax(x)": tf.nn.log_softmax,
    "(tanh(x) + 2) / 2": lambda x: (tf.tanh(x) + 2) / 2,
    "(tanh(x) + 1) / 3": lambda x: (tf.tanh(x) + 1) / 3,
    "0.5 * tanh(x) + 0.25": lambda x: 0.5 * tf.tanh(x) + 0.25,
    "y * x": lambda x: x * (x + 1),
    "2 * log(x)": lambda x: 2 * log(x),
    "log(x) * log(x + 2)": lambda x: log(x) * log(x + 2),
    "x * log2 from log(x) / log(2)": lambda x: log(x) / log(tf.constant(2.0)),
    "one-hot times log(x), a mask": lambda x: tf.one_hot([0, 1, 2], 3) * log(x),
    "x - log(x)": lambda x: x - log(x),
    "max(x, y) + log1p(exp(-|x - z|))": lambda x: (
        tf.maximum(x, 2 * x) + tf.math.log1p(tf.abs(x - 3 * x))
    ),
    "lgamma(2 * x) - lgamma(sin(x))": lambda x: (
        tf.math.lgamma(2 * x) - tf.math.lgamma(tf.sin(x))
    ),
}
# Another rule may know them, but they are not what they look like.
OTHERS = {
    "exp(x) / sum(exp(y))": (lambda x: exp(x) / _total(exp(2 * x)), "softmax-by-hand"),
    "(x - max(x)) / sum(x - max(x))": (
        lambda x: _below_largest(x) / _total(_below_largest(x)),
        "softmax-by-hand",
    ),
    "the same of probabilities": (
        lambda x: _below_largest(softmax(x)) / _total(_below_largest(softmax(x))),
        "softmax-by-hand",
    ),
    "exp(x) / sum(exp(x)) along no axis": (
        lambda x: exp(x) / _total(exp(x), -1, False),
        "softmax-by-hand",
    ),
    "exp(x) / sum(exp(x)) along another one": (
        lambda x: exp(x) / tf.expand_dims(_total(exp(x), 0, False), 1),
        "softmax-by-hand",
    ),
    "exp(x) / (sum(exp(x)) + 1)": (
        lambda x: exp(x) / (_total(exp(x)) + 1),
        "softmax-by-hand",
    ),
    "exp(x) / stop_gradient(sum(exp(x)))": (
        lambda x: exp(x) / tf.stop_gradient(_total(exp(x))),
        "softmax-by-hand",
    ),
    "x - log(sum(exp(x))) along another axis": (
        lambda x: x - log(_total(exp(x), 0, False))[:, None],
        "log-softmax-by-hand",
    ),
    "x - log(sum(exp(y)))": (
        lambda x: x - log(_total(exp(2 * x))),
        "log-softmax-by-hand",
    ),
    "log(sum(exp(x - m))) + n": (
        lambda x: log(_total(exp(x - x[:, :1]))) + x[:, 1:2],
        "logsumexp-by-hand",
    ),
    "log(sum(exp(x - m))) + stop_gradient(m)": (
        lambda x: log(_total(exp(x - x[:, :1]))) + tf.stop_gradient(x[:, :1]),
        "logsumexp-by-hand",
    ),
    "1 / (2 + exp(-x))": (lambda x: 1 / (2 + exp(-x)), "sigmoid-by-hand"),
    "(exp(x) - exp(y)) / (exp(x) + exp(-x))": (
        lambda x: (exp(x) - exp(-2 * x)) / (exp(x) + exp(-x)),
        "tanh-by-hand",
    ),
    "log(exp(x) + exp(-2 * x))": (
        lambda x: log(exp(x) + exp(-2 * x)),
        "log-of-cosh",
    ),
    "log(p / (1 - q))": (
        lambda x: log(sigmoid(x) / (1 - sigmoid(2 * x))),
        "log-of-odds",
    ),
    "log(exp(x) + 0.1), the constant stays": (
        lambda x: log(exp(x) + 1e-6),
        "log-of-guarded-probability",
    ),
}


@pytest.mark.parametrize("formula", UNTOUCHED.values(), ids=list(UNTOUCHED))
def test_no_rule_fires(formula):
    assert fired(RULES, formula, tf.constant(X)) == []


def _value_and_slope(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return np.asarray(value), np.asarray(tape.gradient(value, x))


@pytest.mark.parametrize(("formula", "name"), OTHERS.values(), ids=list(OTHERS))
def test_another_formula_is_not_taken_for_the_known_one(formula, name):
    x = tf.constant(X)
    assert name not in fired(RULES, formula, x)
    with contrast.without_grappler():
        naive = _value_and_slope(tf.function(formula, autograph=False), x)
    got = _value_and_slope(rewritten(RULES, formula), x)
    for a, b in zip(got, naive, strict=True):
        assert_close(a, b, 80, why="the plain form rounds `1 - q`", scale=0.01)


def test_random_numbers_that_are_drawn_twice_are_not_the_same():
    def formula(x):
        def noisy():
            return exp(x + tf.random.normal([3, 3]))

        return noisy() / _total(noisy())

    assert "softmax-by-hand" not in fired(RULES, formula, tf.constant(X))


def test_a_variable_that_is_written_in_between_is_not_the_same():
    v = tf.Variable(X)

    def formula(x):
        top = exp(v.read_value())
        v.assign_add(x)
        return top / _total(exp(v.read_value()))

    assert "softmax-by-hand" not in fired(RULES, formula, tf.constant(X))
    v.assign(X)
    assert fired(
        RULES,
        lambda _: exp(v.read_value()) / _total(exp(v.read_value())),
        tf.constant(X),
    ) == ["softmax-by-hand"]


@pytest.mark.parametrize(
    "softplus", [tf.nn.softplus, lambda x: tf.math.log(1 + tf.exp(x))]
)
def test_what_is_added_to_a_scale_stays(softplus):
    x = tf.constant([-30.0, -12.0, 0.0, 90.0])

    def log_scale(x):
        return tf.math.log(softplus(x) + 1e-5)

    exact = np.log(np.logaddexp(0, np.asarray(x, np.float64)) + 1e-5)
    assert_close(stabilize(log_scale)(x), exact)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: tf.math.log(softmax(x) / tf.reduce_sum(w, -1, keepdims=True)),
        lambda x, w: softmax(x) / tf.reduce_sum(tf.exp(w), -1, keepdims=True),
        lambda x, w: (
            tf.reduce_sum(softmax(x) / tf.reduce_sum(w, -1, keepdims=True), -1)
            * tf.exp(w[:, 0])
        ),
    ],
)
def test_a_softmax_over_the_sum_of_another_tensor_is_no_softmax(function):
    x, w = tf.constant([[1.0, 2.0, 3.5]]), tf.constant([[0.5, 0.25, 1.0]])
    value, slopes = modes.value_and_gradients(stabilize(function), [x, w], "graph")
    wide = [tf.cast(each, tf.float64) for each in (x, w)]
    exact, right = modes.value_and_gradients(function, wide, "eager")
    assert_close(value, exact)
    for slope, wanted in zip(slopes, right, strict=True):
        # The slopes of a sum of probabilities are differences of these.
        assert_close(slope, wanted, scale=1.0)
