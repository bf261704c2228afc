"""Products with logarithms, and the losses that are made of them."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired, rewritten, second_gradients
from tests.rewriting.tables import LOGARITHMS as RULES
from tests.support import contrast, modes
from tests.support.oracle import assert_close
from tfsafe import stabilize

log, softmax, sigmoid = tf.math.log, tf.nn.softmax, tf.sigmoid
NAN, INF = np.nan, np.inf


def _total(x):
    return tf.reduce_sum(x, -1)


def _run(function, *args, mode="graph"):
    value, slopes = modes.value_and_gradients(rewritten(RULES, function), args, mode)
    return np.asarray(value), [np.asarray(slope) for slope in slopes]


# Of weights y and probabilities p: 0 times the logarithm of 0.
WEIGHTED = {
    "y * log(p)": (lambda y, p: y * log(p), 1),
    "log(p) * y": (lambda y, p: log(p) * y, 1),
    "-y * log(p)": (lambda y, p: -y * log(p), -1),
    "y * -log(p)": (lambda y, p: y * -log(p), -1),
    "y * (log(p) / 2)": (lambda y, p: y * (log(p) / 2), 0.5),
    "y * (3 * log(p))": (lambda y, p: y * (3 * log(p)), 3),
    "y * reshape(log(p))": (lambda y, p: y * tf.reshape(log(p), [5]), 1),
    "y * log(p * p) / 2": (lambda y, p: y * log(p * p) / 2, 1),
    "matmul(y, log(p))": (
        lambda y, p: tf.reshape(y[:, None, None] @ log(p)[:, None, None], [5]),
        1,
    ),
    "einsum(log(p), y)": (
        lambda y, p: tf.einsum("ij,ij->i", log(p)[:, None], y[:, None]),
        1,
    ),
}


@pytest.mark.parametrize(("formula", "factor"), WEIGHTED.values(), ids=list(WEIGHTED))
def test_nothing_times_the_logarithm_of_nothing_is_nothing(formula, factor):
    y = tf.constant([0.0, 1.0, 0.0, 2.0, 0.5])
    p = tf.constant([0.0, 0.5, 0.25, 1.0, 0.125])
    assert "weighted-log" in fired(RULES, formula, y, p)
    value, (in_y, in_p) = _run(formula, y, p)
    assert_close(value, factor * np.array([0, np.log(0.5), 0, 0, 0.5 * np.log(0.125)]))
    assert_close(in_y, factor * np.array([0, *np.log([0.5, 0.25, 1, 0.125])]))
    assert_close(in_p, factor * np.array([0, 2, 0, 2, 4]))


@pytest.mark.parametrize(("formula", "factor"), WEIGHTED.values(), ids=list(WEIGHTED))
def test_a_nan_that_came_in_stays(formula, factor):
    y = tf.constant([0.0, NAN, 1.0, NAN, 0.0])
    p = tf.constant([NAN, 0.5, NAN, 0.0, 0.0])
    value = np.sign(factor) * rewritten(RULES, formula)(y, p)
    assert np.isnan(value[:4]).all()
    assert value[4] == 0


# Of shares p and q: 0 times the logarithm of 0 / 0.
SHARES = {
    "p * log(p / q)": lambda p, q: p * log(p / q),
    "-p * log(q / p)": lambda p, q: -p * log(q / p),
    "p * (log(p / q) / 2) * 2": lambda p, q: p * (log(p / q) / 2) * 2,
    "where(p > 0, p * log(p / q), 0)": lambda p, q: tf.where(
        (p > 0) | tf.math.is_nan(p + q), p * log(p / q), tf.zeros_like(p)
    ),
    "p * log(p / sqrt(q) / sqrt(q))": lambda p, q: p * log(p / tf.sqrt(q) / tf.sqrt(q)),
    "p * (log(p) - log(q))": lambda p, q: p * (log(p) - log(q)),
}


@pytest.mark.parametrize("name", SHARES)
def test_an_empty_share_of_an_empty_share_adds_nothing(name, mode):
    formula = SHARES[name]
    p = tf.constant([0.0, 0.5, 0.0, 0.5])
    q = tf.constant([0.0, 0.25, 0.5, 1.0])
    assert not np.isfinite(formula(p, q)).all() or "where" in name
    value, (in_p, in_q) = modes.value_and_gradients(stabilize(formula), [p, q], mode)
    assert_close(value, [0, 0.5 * np.log(2), 0, -0.5 * np.log(2)], 2)
    assert_close(in_p[1::2], [1 + np.log(2), 1 - np.log(2)], 2)
    assert_close(in_q, [0, -2, 0, -0.5], 2)
    assert np.isfinite(np.asarray(in_p)).all()


@pytest.mark.parametrize("name", SHARES)
def test_a_share_of_nothing_and_a_nan_stay(name):
    p = tf.constant([0.5, NAN, 0.0, NAN])
    q = tf.constant([0.0, 0.5, NAN, 0.0])
    value = stabilize(SHARES[name])(p, q)
    assert np.isposinf(value[0])
    assert np.isnan(value[1:]).all()


@pytest.mark.parametrize("mode", modes.MODES)
def test_an_infinite_logarithm_stays_in_a_product_of_matrices(mode):
    def total(y, p):
        return tf.tensordot(y, log(p), 1)

    p = tf.constant([0.0, 0.5, 0.0])
    for weights, right in (
        ([0.5, 1.0, 0.0], -INF),
        ([-0.5, 1.0, 0.0], INF),
        ([0.5, 1.0, -0.5], NAN),
        ([0.0, 2.0, 0.0], 2 * np.log(0.5)),
        ([0.0, NAN, 0.0], NAN),
    ):
        value, slopes = modes.value_and_gradients(
            stabilize(total), [tf.constant(weights), p], mode
        )
        assert_close(value, right)
        if np.isfinite(right):
            assert_close(slopes, [[0, np.log(0.5), 0], [0, 4, 0]])


def test_weights_of_several_logarithms_stay_a_product_of_matrices():
    y, p = tf.ones([2, 3]), tf.ones([3, 2])
    assert "weighted-log" not in fired(RULES, lambda y, p: y @ log(p), y, p)
    assert "weighted-log" not in fired(RULES, lambda y, p: y @ log(softmax(p)), y, p)


# Of weights w, predictions p and truths q: 0 times the square of the logarithm of 0.
SQUARED = {
    "w * log(p / q) ** 2": lambda w, p, q: w * log(p / q) ** 2,
    "w * square(log(p) - log(q))": lambda w, p, q: w * tf.square(log(p) - log(q)),
    "squared_difference(log(p), log(q)) * w": lambda w, p, q: (
        tf.math.squared_difference(log(p), log(q)) * w
    ),
    "abs(log(p) - log(q)) * w": lambda w, p, q: tf.abs(log(p) - log(q)) * w,
}


@pytest.mark.parametrize("name", SQUARED)
def test_nothing_times_a_squared_logarithm_of_nothing_is_nothing(name, mode):
    formula = stabilize(SQUARED[name])
    w = tf.constant([0.0, 0.0, 2.0, 0.0])
    p = tf.constant([0.0, 0.5, 0.25, 0.5])
    q = tf.constant([0.5, 0.0, 0.5, 0.25])
    value, (in_w, *slopes) = modes.value_and_gradients(formula, [w, p, q], mode)
    power = 1 if "abs" in name else 2
    gap, factor = np.log(2.0) ** power, power * np.log(2.0) ** (power - 1)
    assert_close(value, [0, 0, 2 * gap, 0])
    assert_close(in_w[2:], [gap, gap])
    assert_close(slopes[0], [0, 0, -8 * factor, 0])
    assert_close(slopes[1], [0, 0, 4 * factor, 0])


def test_a_squared_logarithm_that_counts_stays_infinite():
    formula = stabilize(SQUARED["w * log(p / q) ** 2"])
    assert np.isinf(formula(*map(tf.constant, (2.0, 0.0, 0.5))))
    others = fired(RULES, lambda w, p: w * tf.square(p), *map(tf.constant, (2.0, 0.5)))
    assert "weighted-log" not in others


# Rows of logits, with a class that has all the probability and one that has none.
Z = tf.constant([[0.0, -200.0, 3.0], [1.0, -INF, 0.0], [120.5, 0.0, 0.5]])
W = tf.constant([[1.0, 2.0, 3.0], [0.5, -INF, 0.0], [0.0, 120.0, 0.0]])


def _exact_entropy(z):
    z = np.asarray(z, np.float64)
    log_p = z - np.logaddexp.reduce(z, -1, keepdims=True)
    finite = np.where(np.isinf(log_p), 0, log_p)
    p = np.exp(log_p)
    entropy = -(p * finite).sum(-1)
    return entropy, -p * (finite + entropy[:, None])


ENTROPIES = {
    "-sum(p * log(p))": lambda z: -_total(softmax(z) * log(softmax(z))),
    "-sum(p * log(p + 1e-8))": lambda z: -_total(softmax(z) * log(softmax(z) + 1e-8)),
    "-sum(log(clip(p)) * p)": lambda z: (
        -_total(log(tf.clip_by_value(softmax(z), 1e-7, 1.0)) * softmax(z))
    ),
    "-sum(p * log_softmax(z))": lambda z: -_total(softmax(z) * tf.nn.log_softmax(z)),
    "sum(p * log(1 / p))": lambda z: _total(softmax(z) * log(1 / softmax(z))),
}


@pytest.mark.parametrize("formula", ENTROPIES.values(), ids=list(ENTROPIES))
def test_the_entropy_hides_impossible_classes(formula):
    value, (slope,) = _run(formula, Z)
    exact, slopes = _exact_entropy(Z)
    assert_close(value, exact)
    assert_close(slope, slopes, 10, why="a difference of a logarithm and the entropy")


DIVERGENCES = {
    "sum(p * (log(p) - log(q)))": lambda z, w: _total(
        softmax(z) * (log(softmax(z)) - log(softmax(w)))
    ),
    "sum(p * log(p / q))": lambda z, w: _total(
        softmax(z) * log(softmax(z) / softmax(w))
    ),
    "sum((log(p) - log(q)) * p) by log_softmax": lambda z, w: _total(
        (tf.nn.log_softmax(z) - tf.nn.log_softmax(w)) * softmax(z)
    ),
}


@pytest.mark.parametrize("formula", DIVERGENCES.values(), ids=list(DIVERGENCES))
def test_the_divergence_hides_what_both_hold_impossible(formula):
    value, slopes = _run(formula, Z, W)
    log_p, log_q = (
        np.asarray(x, np.float64)
        - np.logaddexp.reduce(np.asarray(x, np.float64), -1, keepdims=True)
        for x in (Z, W)
    )
    with np.errstate(invalid="ignore"):
        lead = np.where(np.isinf(log_p), 0, log_p - log_q)
    p = np.exp(log_p)
    exact = (p * lead).sum(-1)
    assert_close(value, exact, 19, why="terms of both signs")
    assert_close(
        slopes[0],
        p * (lead - exact[:, None]),
        11,
        why="a difference of a logarithm and the divergence",
    )
    assert_close(slopes[1], np.exp(log_q) - p, 11, why="a difference of probabilities")


def test_the_divergence_from_labels_hides_labels_of_0():
    y = tf.constant([[0.0, 1.0, 0.0]])

    def formula(y, z):
        return _total(y * log(y / softmax(z)))

    value, (in_y, in_z) = _run(formula, y, tf.constant([[0.0, -200.0, -INF]]))
    assert_close(value, [200], 0.5)
    assert_close(in_z, [[1, -1, 0]], 0.5)
    assert np.isfinite(in_y).all()


def _focal(z, y):
    p = sigmoid(z)
    p_t = tf.where(y > 0, p, 1 - p)
    return -((1 - p_t) ** 2) * log(p_t + 1e-7)


def _picked(z, y):
    return -log(_total(y * softmax(z)) + 1e-8)


def _mixed(z, y):
    p = sigmoid(z)
    return -log(tf.clip_by_value(y * p + (1 - y) * (1 - p), 1e-7, 1 - 1e-7))


def _both(z, y):
    p = tf.clip_by_value(sigmoid(z), 1e-7, 1 - 1e-7)
    return -(y * log(p) + (1 - y) * log(1 - p))


Y = tf.constant([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
LOGITS = tf.constant([[-200.0, 95.0, 1.0], [0.5, -150.0, 120.0]])


@pytest.mark.parametrize("formula", [_mixed, _both], ids=["p_t", "both terms"])
def test_a_binary_cross_entropy_is_that_of_the_logits(formula):
    value, (slope, _) = _run(formula, LOGITS, Y)
    z, y = (np.asarray(x, np.float64) for x in (LOGITS, Y))
    side = np.where(y > 0, -z, z)
    assert_close(value, np.logaddexp(0, side))
    assert_close(slope, 1 / (1 + np.exp(-z)) - y)


def test_a_focal_loss_is_that_of_the_logits():
    value, (slope, _) = _run(_focal, LOGITS, Y)
    z, y = (np.asarray(x, np.float64) for x in (LOGITS, Y))
    side = np.where(y > 0, -z, z)
    assert_close(value, np.logaddexp(0, side) / (1 + np.exp(-side)) ** 2)
    assert_close(slope[0, 0], -1)


def test_labels_that_are_no_probabilities_keep_their_formula():
    z = tf.constant([[0.0, -200.0, 3.0]] * 3)
    y = tf.constant([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [3.0, 0.0, 4.0]])
    value, (slope, _) = _run(_picked, z, y)
    with contrast.without_grappler():
        naive = _picked(z, y)
    assert_close(value[0], 203.04858735)
    assert np.isnan(value[1])
    assert_close(value[2], naive[2])
    assert_close(slope[0], [0.04742587, -1, 0.95257413])


def test_a_guard_gives_the_finite_number_that_it_is_for_where_nothing_is_left():
    z = tf.constant([[0.0, -INF]])
    value, (slope,) = _run(lambda z: log(softmax(z) + 1e-7), z)
    assert_close(value, [[0, np.log(1e-7)]])
    assert np.all(slope == 0)


MIXTURES = {
    "weights of a softmax": (
        lambda x, w: log(_total(softmax(w) * tf.exp(-0.5 * x**2) / 2.5066283)),
        lambda x, w: np.exp(w) / np.exp(w).sum(-1, keepdims=True),
    ),
    "any weights": (
        lambda x, w: log(_total(w * tf.exp(-0.5 * x**2) / 2.5066283)),
        lambda x, w: w,
    ),
    "terms one by one": (
        lambda x, w: log(
            w[:, 0] * tf.exp(-0.5 * x[:, 0] ** 2) / 2.5066283
            + w[:, 1] * tf.exp(-0.5 * x[:, 1] ** 2) / 2.5066283
        ),
        lambda x, w: w,
    ),
}


@pytest.mark.parametrize(("formula", "weights"), MIXTURES.values(), ids=list(MIXTURES))
def test_a_mixture_of_gaussians_is_finite_far_out(formula, weights):
    x = tf.constant([[20.0, 21.0], [-40.0, 0.5], [18.0, 20.0]])
    w = tf.constant([[0.3, 0.7], [0.5, 0.25], [0.0, 1.0]])
    assert fired(RULES, formula, x, w)[-1] == "log-of-sum"
    value, (in_x, in_w) = _run(formula, x, w)
    x, w = (np.asarray(a, np.float64) for a in (x, w))
    terms = weights(x, w) * np.exp(-0.5 * x**2) / 2.5066283
    assert_close(value, np.log(terms.sum(-1)))
    share = terms / terms.sum(-1, keepdims=True)
    assert_close(
        in_x,
        -x * share,
        88,
        why="the logarithms of the terms are 200, whose ulp is 1.5e-5",
    )
    # A weight of 0 has a slope too: it is not a logarithm of 0.
    if weights(x, w) is w:
        assert_close(in_w[2, 0], np.exp(38.0))
    assert np.isfinite(in_w).all()


def test_half_precision_is_computed_where_it_is_cast_to():
    z = tf.constant([[0.0, -30.0, 3.0]], tf.float16)

    def formula(z):
        return log(tf.cast(softmax(z), tf.float32) + 1e-7)

    value, (slope,) = _run(formula, z)
    assert value.dtype == np.float32
    assert slope.dtype == np.float16
    exact = tf.nn.log_softmax(tf.cast(z, tf.float64))
    assert_close(value, exact)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_the_result_has_the_dtype_of_the_formula(dtype):
    z = tf.constant([[0.0, -30.0, 3.0]], dtype)
    made = rewritten(RULES, ENTROPIES["-sum(p * log(p))"])(z)
    assert made.dtype == z.dtype
    exact, _ = _exact_entropy(tf.cast(z, tf.float64))
    assert_close(made, exact, 1)


@pytest.mark.parametrize("mode", ["graph", "xla"])
@pytest.mark.parametrize(
    ("formula", "second"),
    [
        (lambda z: log(sigmoid(z)), lambda p: -p * (1 - p)),
        (lambda z: log(1 - sigmoid(z) + 1e-7), lambda p: -p * (1 - p)),
        (lambda z: log(1 + tf.exp(z)), lambda p: p * (1 - p)),
    ],
    ids=["log(p)", "log(1 - p + eps)", "softplus"],
)
def test_the_second_slope_is_right(formula, second, mode):
    z = tf.constant([-100.0, -1.0, 0.5, 60.0])
    (got,) = second_gradients(RULES, formula, [z], mode)
    p = 1 / (1 + np.exp(-np.asarray(z, np.float64)))
    exact = second(p)
    exact[3] = np.sign(exact[1]) * np.exp(-60)
    assert_close(got, exact)


@pytest.mark.parametrize("formula", ["entropy", "divergence", "mixture"])
def test_under_xla_and_for_unknown_shapes(formula):
    function = {
        "entropy": lambda z, w: ENTROPIES["-sum(p * log(p))"](z),
        "divergence": DIVERGENCES["sum(p * (log(p) - log(q)))"],
        "mixture": lambda z, w: log(_total(softmax(w) * tf.exp(-(z**2)))),
    }[formula]
    z = tf.constant([[0.0, -200.0, 3.0], [1.0, 0.5, 12.5]])
    w = tf.constant([[1.0, 2.0, 3.0], [0.5, -7.0, 0.0]])
    spec = tf.TensorSpec([None, None])
    made = rewritten(RULES, function, spec, spec)
    compiled = tf.function(made.python_function, autograph=False, jit_compile=True)
    value = made(z, w).numpy()
    assert np.isfinite(value).all()
    assert_close(compiled(z, w), value)
    assert_close(rewritten(RULES, function)(z, w), value)
