"""Logarithms through what moves, picks, reduces and combines probabilities.

The exact answer is the formula itself in float64, where nothing fails yet.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired, rewritten
from tests.rewriting.tables import LOGARITHMS as RULES
from tests.support import contrast, modes
from tests.support.oracle import assert_close

log, exp, sigmoid, softmax = tf.math.log, tf.exp, tf.sigmoid, tf.nn.softmax
X = np.array([[0.5, -150.0, 3.0], [-200.0, 110.0, -2.5], [1.0, -120.0, 95.0]])
ONE = np.eye(3)[[1, 1, 0]]
PLAIN = np.array([[0.5, 2.0, 1.0]])


def _hot(x):
    return tf.constant(ONE, x.dtype)


def _plain(x):
    return tf.constant(PLAIN, x.dtype)


def _guard(x):
    # The exact formula has none.
    return 0.0 if x.dtype == tf.float64 else 1e-7


def _total(x, axis=-1, keepdims=False):
    return tf.reduce_sum(x, axis, keepdims=keepdims)


FORMULAS = {
    "reshape": lambda x: log(tf.reshape(sigmoid(x), [-1])),
    "transpose": lambda x: log(tf.transpose(softmax(x))),
    "reshape under a guard": lambda x: log(
        tf.reshape(exp(x) / (1 + exp(x)), [-1]) + _guard(x)
    ),
    "squeeze": lambda x: log(tf.squeeze(sigmoid(x)[:, None], [1])),
    "expand": lambda x: log(tf.expand_dims(sigmoid(x), 0)),
    "slice": lambda x: log(sigmoid(x)[1:, ::2]),
    "tf.slice": lambda x: log(tf.slice(sigmoid(x), [0, 1], [2, 1])),
    "gather": lambda x: log(tf.gather(softmax(x), [1, 0], axis=1)),
    "gather of rows": lambda x: log(tf.gather(softmax(x), [1, 0, 2], batch_dims=1)),
    "gather_nd": lambda x: log(tf.gather_nd(softmax(x), [[0, 1], [1, 0]])),
    "boolean_mask": lambda x: log(tf.boolean_mask(softmax(x), x < 2)),
    "vectorized_map": lambda x: tf.vectorized_map(lambda r: log(_total(exp(r))), x),
    "square of a root": lambda x: log(1 - tf.sqrt(sigmoid(x / 5)) ** 2),
    "tile": lambda x: log(tf.tile(sigmoid(x), [1, 2])),
    "reverse": lambda x: log(tf.reverse(sigmoid(x), [1])),
    "broadcast": lambda x: log(tf.broadcast_to(sigmoid(x), [2, 3, 3])),
    "concat": lambda x: log(tf.concat([sigmoid(x), softmax(x)], 1)),
    "concat with ones": lambda x: log(tf.concat([sigmoid(x), tf.ones_like(x)], 1)),
    "concat with a constant": lambda x: log(
        tf.concat([sigmoid(x), tf.fill([3, 1], tf.cast(0.25, x.dtype))], 1)
    ),
    "stack": lambda x: log(tf.stack([sigmoid(x), sigmoid(-x)])),
    "stack with weights": lambda x: log(
        tf.stack([_plain(x) * sigmoid(x), sigmoid(-x)])
    ),
    "where": lambda x: log(tf.where(x > -130, sigmoid(x), sigmoid(-x))),
    "where with 1": lambda x: log(tf.where(x < -130, sigmoid(x), 1)),
    "where with numbers": lambda x: log(tf.where(x < 0, sigmoid(x), 2 * tf.abs(x))),
    "stop_gradient": lambda x: x * log(tf.stop_gradient(sigmoid(x))),
    "tf.compat.v1.where": lambda x: log(
        tf.raw_ops.Select(condition=x < 0, x=sigmoid(x), y=softmax(x))
    ),
    "largest": lambda x: log(tf.reduce_max(sigmoid(-x), 1)),
    "smallest": lambda x: log(tf.reduce_min(sigmoid(x), 1, keepdims=True)),
    "the larger": lambda x: log(tf.maximum(sigmoid(x), softmax(x))),
    "the smaller": lambda x: log(tf.minimum(exp(x), 2.0 * sigmoid(x))),
    "at least a number": lambda x: log(tf.maximum(exp(x), 0.5)),
    "the larger of two with weights": lambda x: log(
        tf.maximum(_plain(x) * exp(x), tf.abs(x * exp(x / 2)))
    ),
    "a sum less its masked terms": lambda x: log(
        _total(exp(x / 9)) - _total(_hot(x) * exp(x / 9))
    ),
    "a sum less half of its terms": lambda x: log(
        _total(exp(x / 2), keepdims=True) - _total(exp(x / 2) / 2, keepdims=True)
    ),
    "product of weights": lambda x: log(_plain(x) * exp(x)),
    "product of many": lambda x: log(tf.reduce_prod(sigmoid(x), 1, keepdims=True)),
    "product of many with weights": lambda x: log(
        tf.reduce_prod((2 + tf.tanh(x)) * sigmoid(x), 1)
    ),
    "product of signed numbers": lambda x: log(tf.reduce_prod(x * exp(x), 0)[::2]),
    "cumulative product": lambda x: log(tf.math.cumprod(sigmoid(x), 1)),
    "cumulative sum": lambda x: log(tf.cumsum(exp(x), 1, reverse=True)),
    "power of weights": lambda x: log((x * exp(x / 3)) ** 2),
    "odd power of weights": lambda x: log((_plain(x) * exp(x / 3)) ** 3),
    "power of a tensor": lambda x: log(sigmoid(x) ** (_plain(x) / 2)),
    "absolute value": lambda x: log(tf.abs(x * exp(x))),
    "negative of a negative": lambda x: log(-(-2 * exp(x))),
    "ratio with weights": lambda x: log(_plain(x) * exp(x) / (3 * sigmoid(-x))),
    "a weight over an exponential": lambda x: log(_plain(x) / exp(x)),
    "reciprocal": lambda x: log(tf.math.reciprocal(_plain(x) * exp(x))),
    "rsqrt": lambda x: log(tf.math.rsqrt(sigmoid(x))),
    "sinh": lambda x: log(tf.sinh(tf.abs(x))),
    "difference with weights": lambda x: log(
        2 * exp(x) * _plain(x) - exp(x) * tf.abs(tf.sin(x))
    ),
    "exponential and a number": lambda x: log(exp(x) + tf.abs(_plain(x) - 0.25)),
    "two softmaxes": lambda x: log(0.5 * (softmax(x) + softmax(-x))),
    "two terms of weights": lambda x: log(
        _plain(x) * softmax(x) + (3 - _plain(x)) * softmax(-x)
    ),
    "sum with one-hot": lambda x: log(_total(_hot(x) * softmax(x))),
    "mean of weights": lambda x: log(tf.reduce_mean(_plain(x) * sigmoid(x - 80), 1)),
    "mean": lambda x: log(tf.reduce_mean(sigmoid(x - 150))),
    "1 + tanh": lambda x: log(1 + tf.tanh(x / 30)),
    "1 + erf": lambda x: log(1 + tf.math.erf(tf.minimum(x, 0) / 60)),
    "1 - product": lambda x: log(1 - sigmoid(x / 3) * sigmoid(-x / 9)),
    "1 - product of many": lambda x: log(1 - tf.reduce_prod(sigmoid(-x / 6), 1)),
    "1 - picked": lambda x: log(1 - _total(_hot(x) * softmax(x / 12))),
    "1 - where": lambda x: log(1 - tf.where(x < 0, sigmoid(x), 0.5)),
    "1 - reshape": lambda x: log(1 - tf.reshape(sigmoid(x / 9), [9])),
    "1 - masked": lambda x: log(1 - _hot(x) * sigmoid(x / 9)),
    "picked from a softmax": lambda x: log(exp(x[0, 1]) / _total(exp(x), [0, 1])),
    "picked before the exponential": lambda x: log(
        exp(x[:, 1] / 2) / _total(exp(x / 2))
    ),
    "picked by gather": lambda x: log(
        tf.gather(exp(x), [1, 0, 2], batch_dims=1) / _total(exp(x))
    ),
    "the diagonal": lambda x: log(tf.linalg.diag_part(exp(x)) / _total(exp(x))),
    "the diagonal, of columns": lambda x: log(
        tf.linalg.diag_part(exp(x)) / _total(exp(x), 0)
    ),
    "picked by one-hot": lambda x: log(_total(_hot(x) * exp(x)) / _total(exp(x))),
    "picked along another axis": lambda x: log(x[:, 1] ** 2 * exp(x[:, 1])),
    "of another row": lambda x: log(exp(x[0]) / _total(exp(x))),
    "by a slice of rows": lambda x: log(exp(x)[:, 1][::-1] / _total(exp(x))),
    "masked softmax": lambda x: log(
        tf.where(
            x < 90,
            exp(x)
            * tf.cast(x < 90, x.dtype)
            / _total(exp(x) * tf.cast(x < 90, x.dtype), keepdims=True),
            1,
        )
    ),
    "xlogy": lambda x: tf.math.xlogy(_plain(x), sigmoid(x)),
    "xlog1py": lambda x: tf.math.xlog1py(_plain(x), exp(x)),
    "log1p of minus": lambda x: tf.math.log1p(-1 * sigmoid(x / 9)),
    "log1p of 0 - p": lambda x: tf.math.log1p(0 - sigmoid(x / 9)),
    "guarded exp of log_softmax": lambda x: log(
        1 - tf.minimum(exp(tf.nn.log_softmax(x / 9)), 1 - _guard(x))
    ),
    "guarded exp of a log-softmax by hand": lambda x: log(
        exp(x - tf.reduce_logsumexp(x, -1, keepdims=True)) + _guard(x)
    ),
    "1 - exp(log_sigmoid)": lambda x: log(1 - exp(tf.math.log_sigmoid(x / 9))),
    "a sigmoid of two": lambda x: log(exp(x) / (exp(2 * x) + exp(x))),
    "a weighted log of a moved ratio": lambda x: (
        _plain(x) * tf.reshape(log(softmax(x) / sigmoid(x)), [3, 3])
    ),
    "a log_sigmoid": lambda x: _plain(x) * tf.math.log_sigmoid(x),
}


def _value_and_slope(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return np.asarray(value), np.asarray(tape.gradient(value, x))


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=list(FORMULAS))
def test_the_formula_is_that_of_float64(formula):
    x = tf.constant(X, tf.float32)
    assert fired(RULES, formula, x)
    got = _value_and_slope(rewritten(RULES, formula), x)
    with contrast.without_grappler():
        exact = _value_and_slope(formula, tf.constant(X))
    why = "an exponent of 22 is rounded to 16 ulps of its exponential"
    # Float64 has 0 for the logarithm of 1 - 4e-18.
    assert_close(got[0], exact[0], 32, why=why, scale=1e-9)
    why = "one formula is a difference whose terms cancel"
    assert_close(got[1], exact[1], 256, why=why, scale=1.0)


def _loss(x):
    return exp(x) - 1


# Formulas with a part that no rule can vouch for, or with two that would clash.
DOUBTFUL = {
    "product of two differences": lambda x: log(_loss(x) * _loss(x + 0.1)),
    "square of a difference": lambda x: log(_loss(x) ** 2),
    "power of a difference by a tensor": lambda x: log(tf.abs(_loss(x)) ** _plain(x)),
    "absolute difference": lambda x: log(tf.abs(_loss(x))),
    "product of differences": lambda x: log(tf.reduce_prod(_loss(x), 0) ** 2),
    "sum of differences": lambda x: log(10 + _total(_loss(x))),
    "difference and exponential": lambda x: log(_loss(x) + exp(2 * x)),
    "ratio of differences": lambda x: log(_loss(x) / _loss(2 * x)),
    "reciprocal of a difference": lambda x: log(tf.abs(tf.math.reciprocal(_loss(x)))),
    "minus a difference": lambda x: log(-(-_loss(x) - 2)),
    "minus expm1": lambda x: log(-tf.math.expm1(-tf.abs(x))),
    "largest difference": lambda x: log(2 + tf.reduce_max(_loss(x), 0)),
    "cumulative sum of differences": lambda x: log(9 + tf.cumsum(_loss(x))),
    "cumulative product of differences": lambda x: log(tf.math.cumprod(_loss(x)) ** 2),
    "a difference beside a weight": lambda x: log(
        tf.abs(tf.where(x > 0, _loss(x), x * exp(x)))
    ),
    "1 - 0.5 p": lambda x: log(1 - 0.5 * sigmoid(x)),
    "1 - w p": lambda x: log(1 - _plain(x) * 0.4 * sigmoid(x)),
    "1 - (p + eps)": lambda x: log(1 - (sigmoid(x) + 1e-6)),
    "1 - p of a plain p": lambda x: log(1 - tf.abs(tf.sin(x)) * sigmoid(x)),
    "1 - product over two axes": lambda x: log(1 - tf.reduce_prod(sigmoid(x), [0, 1])),
    "clip by raw operation": lambda x: log(
        tf.raw_ops.ClipByValue(
            t=sigmoid(x),
            clip_value_min=tf.cast(1e-7, x.dtype),
            clip_value_max=tf.cast(1, x.dtype),
        )
    ),
    "relu of a weighted sum": lambda x: log(tf.nn.relu(_total(_plain(x) * softmax(x)))),
    "sums along two axes": lambda x: log(_total(_hot(x) * exp(x), 0) / _total(exp(x))),
    "sum of a product of probabilities": lambda x: log(
        _total(softmax(x) * exp(x)) / _total(exp(x))
    ),
    "a sum over a sum": lambda x: log(_total(2 * sigmoid(x)) / _total(exp(x))),
    "a slice of a sum with kept axes": lambda x: log(
        exp(x[:, :1]) / _total(exp(x), keepdims=True)
    ),
    "a slice over a sum of two axes": lambda x: log(
        exp(x[:, 1]) / _total(exp(x[:, None, :]), [1, 2])
    ),
    "a slice with strides": lambda x: log(exp(x[::-1, 1]) / _total(exp(x))),
    "another function of a slice": lambda x: log(exp(-x[:, 1]) / _total(exp(2 * x))),
    "log of a sum of others, shifted": lambda x: log(_total(sigmoid(x))) + x[:, 0],
    "log of a sum, shifted by a column": lambda x: (
        log(_total(exp(x - x), keepdims=True)) + x
    ),
    "log of a sum, shifted by all": lambda x: log(_total(exp(x - x))) + x[:, 0],
    "half a tanh, halved": lambda x: log(tf.tanh(x) / 2 + 0.5),
    "exp(x) * exp(x)": lambda x: exp(x) * exp(x),
    "tanh of weights": lambda x: (_plain(x) * exp(x) - x) / (_plain(x) * exp(x) + x),
    "a weighted odds": lambda x: x * exp(x) / (x * exp(x) + 40),
    "a mean of unknown size": lambda x: log(
        tf.reduce_mean(tf.boolean_mask(exp(x), x > 0))
    ),
    "a mean over a mean": lambda x: exp(x) / (0.5 + tf.reduce_mean(exp(x))),
    "a repeated softmax": lambda x: log(_total(softmax(x)[:, :1] * sigmoid(x)) + 1e-7),
    "a product of two weights": lambda x: log((x * exp(x)) * (x * exp(-x / 2))),
    "1 over weights": lambda x: log(1 / (x * x * exp(x)) / (_plain(x) * exp(-x))),
    "a vector condition": lambda x: log(
        tf.raw_ops.Select(condition=x[:, 0] > 0, x=sigmoid(x), y=exp(x))
    ),
}


@pytest.mark.parametrize("formula", DOUBTFUL.values(), ids=list(DOUBTFUL))
def test_whatever_is_made_of_it_the_formula_keeps_its_value(formula):
    x = np.array([[0.5, -1.5, 3.0], [-2.0, 1.25, -0.5], [1.0, 2.0, -3.0]])
    got = _value_and_slope(rewritten(RULES, formula), tf.constant(x, tf.float32))
    with contrast.without_grappler():
        exact = _value_and_slope(formula, tf.constant(x))
    why = "the weights cancel"
    assert_close(got[0], exact[0], 16, why=why, scale=1.0)
    # Float64 has slopes of NaN of its own, and the logarithm of a negative number none.
    known = np.isfinite(got[1]) & np.isfinite(exact[1])
    assert_close(got[1][known], exact[1][known], 32, why=why, scale=1.0)
    assert np.isfinite(got[1]).all() or np.isnan(exact[0]).any()


def test_one_minus_a_softmax_along_the_first_axis_is_the_sum_of_the_others():
    z = tf.constant([[0.0, 1.0], [60.0, -2.0], [1.0, 3.0]])
    value = rewritten(RULES, lambda z: log(1 - exp(tf.nn.log_softmax(z, 0))))(z)
    assert_close(value[1, 0], np.logaddexp(0, 1) - 60)
    assert np.isfinite(value).all()


@pytest.mark.parametrize(
    "moved",
    [
        lambda log_p: log_p[:, 0],
        lambda log_p: tf.gather(log_p, [0, 0, 0], batch_dims=1),
        lambda log_p: tf.reshape(tf.transpose(log_p), [2, 3])[0],
    ],
    ids=["sliced", "gathered", "reshaped"],
)
@pytest.mark.parametrize("minus", [lambda p: log(1 - p), lambda p: tf.math.log1p(-p)])
def test_one_minus_a_chance_of_a_token_is_the_chance_of_the_others(moved, minus):
    z = tf.constant([[300.0, 0.0], [20.0, 0.0], [-3.0, 1.0]])

    def unlikelihood(z):
        return minus(exp(moved(tf.nn.log_softmax(z))))

    value, (slope,) = modes.value_and_gradients(
        rewritten(RULES, unlikelihood), [z], "graph"
    )
    assert_close(value, tf.nn.log_softmax(tf.cast(z, "double"))[:, 1])
    p = tf.nn.sigmoid(tf.constant([300.0, 20.0, -4.0], "double"))
    assert_close(slope, tf.stack([-p, p], 1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sigmoids_in_half_precision_are_joined_to_0_and_1(dtype):
    def chances(x):
        above = tf.concat([tf.ones_like(x), sigmoid(x)], -1)
        return log(above - tf.concat([sigmoid(x), tf.zeros_like(x)], -1))

    x = tf.constant([9.0, -9.0], dtype)
    exact = tf.math.log_sigmoid(tf.constant([-9.0, 9.0, 9.0, -9.0], tf.float64))
    assert_close(rewritten(RULES, chances)(x), exact)


def test_half_precision_by_hand_that_is_cast_and_clipped_is_a_probability():
    # As Keras' binary cross-entropy has it.
    def formula(x):
        p = tf.cast(exp(x) / (1 + exp(x)), tf.float32)
        return log(1 - tf.clip_by_value(p, 1e-7, 1 - 1e-7))

    x = tf.constant([20.0, 2.0], tf.bfloat16)
    value = rewritten(RULES, formula)(x)
    assert_close(value, -np.logaddexp(0, [20.0, 2.0]))


def test_a_body_of_a_loop_is_read_like_a_function():
    def formula(x):
        return tf.while_loop(
            lambda i, _: i < 2,
            lambda i, total: (i + 1, total + log(softmax(x))),
            [0, tf.zeros_like(x)],
        )[1]

    x = tf.constant(X, tf.float32)
    exact = 2 * tf.nn.log_softmax(tf.constant(X))
    assert_close(rewritten(RULES, formula)(x), exact)


def test_a_formula_deeper_than_pythons_stack_is_left_alone():
    def formula(x):
        p = sigmoid(x)
        for _ in range(1500):
            p = tf.reverse(p, [0])
        return log(p)

    assert fired(RULES, formula, tf.constant(X)) == []


def test_every_rule_says_what_it_does():
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    for rule in RULES:
        assert all([rule.before, rule.after, rule.fails_when, rule.reference])
        assert rule.op_types
