"""Softmax, sigmoid, tanh and quotients of exponentials that are written by hand."""

import mpmath as mp
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired, rewritten
from tests.rewriting.log_cases import BOTH, HANDS, ROWS, SIGMOIDS, USUAL, sig, soft
from tests.rewriting.tables import LOGARITHMS as RULES
from tests.support import contrast, modes, oracle
from tests.support.oracle import assert_close
from tfsafe import stabilize

exp = tf.exp
X = tf.constant(ROWS)


def _exact(function, x):
    with mp.workdps(250):
        points = [mp.mpf(float(v)) for v in x.numpy()]
        return (
            np.array([function(v) for v in points], object),
            np.array([mp.diff(function, v) for v in points], object),
        )


def _tanh(x):
    return mp.tanh(x)


ELEMENTWISE = {
    **{
        text: ("sigmoid-by-hand", formula, sig, BOTH)
        for text, formula in SIGMOIDS.items()
        if text != "sigmoid(x)"
    },
    "(1 + exp(-x)) ** -1": (
        "sigmoid-by-hand",
        lambda x: (1 + exp(-x)) ** -1.0,
        sig,
        BOTH,
    ),
    "(exp(x) - exp(-x)) / (exp(x) + exp(-x))": (
        "tanh-by-hand",
        lambda x: (exp(x) - exp(-x)) / (exp(x) + exp(-x)),
        _tanh,
        BOTH,
    ),
    "(exp(2x) - 1) / (exp(2x) + 1)": (
        "tanh-by-hand",
        lambda x: (exp(2 * x) - 1) / (exp(2 * x) + 1),
        _tanh,
        BOTH,
    ),
    "(1 - exp(-2x)) / (1 + exp(-2x))": (
        "tanh-by-hand",
        lambda x: (1 - exp(-2 * x)) / (1 + exp(-2 * x)),
        _tanh,
        BOTH,
    ),
    "sinh(x) / cosh(x)": (
        "tanh-by-hand",
        lambda x: tf.sinh(x) / tf.cosh(x),
        _tanh,
        BOTH,
    ),
    "cosh(x) / cosh(x + 1)": (
        "ratio-of-exponentials",
        lambda x: tf.cosh(x) / tf.cosh(x + 1),
        lambda x: mp.cosh(x) / mp.cosh(x + 1),
        (*USUAL, 120.0),
    ),
    "x / (1 + exp(-x))": (
        "ratio-of-exponentials",
        lambda x: x / (1 + exp(-x)),
        lambda x: x * sig(x),
        BOTH,
    ),
    "exp(x) / exp(x - 1)": (
        "ratio-of-exponentials",
        lambda x: exp(x) / exp(x - 1),
        lambda x: mp.exp(1) + 0 * x,
        (1.0, -2.0, 128.0, -256.0),
    ),
    "exp(x) / exp(x / 2)": (
        "ratio-of-exponentials",
        lambda x: exp(x) / exp(x / 2),
        lambda x: mp.exp(x / 2),
        BOTH,
    ),
    "1 / exp(x)": (
        "ratio-of-exponentials",
        lambda x: 1 / exp(x),
        lambda x: mp.exp(-x),
        (*USUAL, 20.0, -80.0, 95.0),
    ),
    "exp(x) * exp(-x / 2)": (
        "product-of-exponentials",
        lambda x: exp(x) * exp(-x / 2),
        lambda x: mp.exp(x / 2),
        BOTH,
    ),
    "sqrt(exp(x))": (
        "root-of-exponential",
        lambda x: tf.sqrt(exp(x)),
        lambda x: mp.exp(x / 2),
        BOTH,
    ),
    "rsqrt(exp(x))": (
        "root-of-exponential",
        lambda x: tf.math.rsqrt(exp(x)),
        lambda x: mp.exp(-x / 2),
        BOTH,
    ),
    "exp(x) ** 0.25": (
        "root-of-exponential",
        lambda x: exp(x) ** 0.25,
        lambda x: mp.exp(x / 4),
        BOTH,
    ),
    "sqrt(sigmoid(x))": (
        "root-of-probability",
        lambda x: tf.sqrt(tf.sigmoid(x)),
        lambda x: mp.sqrt(sig(x)),
        BOTH,
    ),
    "rsqrt(1 - sigmoid(x))": (
        "root-of-probability",
        lambda x: tf.math.rsqrt(1 - tf.sigmoid(x)),
        lambda x: 1 / mp.sqrt(sig(-x)),
        BOTH,
    ),
    "sigmoid(x) ** -0.25": (
        "root-of-probability",
        lambda x: tf.sigmoid(x) ** -0.25,
        lambda x: sig(x) ** -0.25,
        BOTH,
    ),
    "sqrt(softplus(x))": (
        "root-of-probability",
        lambda x: tf.sqrt(tf.nn.softplus(x)),
        lambda x: mp.sqrt(mp.log1p(mp.exp(x))),
        BOTH,
    ),
}


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (
            lambda x: exp(x * x) * tf.math.erfc(x),
            lambda x: mp.exp(x * x) * mp.erfc(x),
        ),
        (lambda x: exp(x) * tf.sigmoid(-x), lambda x: mp.exp(x) / (1 + mp.exp(x))),
    ],
)
def test_a_tail_times_the_inverse_of_its_decay_is_right_where_both_leave_the_range(
    function, exact
):
    x = tf.constant([1.5, 15.0, 120.0])
    assert np.isnan(function(x)[2])
    value, (slope,) = modes.value_and_gradients(stabilize(function), [x], "graph")
    points = [1.5, 15.0, 120.0]
    assert_close(
        value,
        [float(exact(p)) for p in points],
        6200,
        why="the exponents are up to 14400, whose ulp is 1e-3",
    )
    right = [float(mp.diff(exact, p)) for p in points]
    # The difference of two numbers of size 1.
    assert_close(slope[:2], right[:2], 2, scale=1.0)


def test_slopes_of_products_that_cancel_in_range_are_as_exact_as_they_are_written():
    # The price of an option at the money, by its moneyness and its deviation.
    def price(k, deviation):
        d = -k / deviation + deviation / 2
        below = 1 + tf.math.erf((d - deviation) / np.sqrt(2.0))
        return 0.5 * (1 + tf.math.erf(d / np.sqrt(2.0))) - exp(k) * (0.5 * below)

    args = [tf.zeros([2]), tf.constant([1e-6, 1e-4])]
    assert "product-of-exponentials" in fired(RULES, price, *args)
    _, slopes = modes.value_and_gradients(stabilize(price), args, "graph")
    halves = [float(each) / 2 for each in args[1]]
    # The first is a difference of two numbers of 4e5 and of 4e3.
    assert_close(slopes[0], [-mp.ncdf(-each) for each in halves])
    assert_close(slopes[1], [mp.npdf(each) for each in halves])


@pytest.mark.parametrize("row", ELEMENTWISE.values(), ids=list(ELEMENTWISE))
def test_what_is_written_by_hand_is_right_everywhere(row):
    name, formula, exact, points = row
    x = tf.constant(points)
    assert name in fired(RULES, formula, x)
    value, (slope,) = modes.value_and_gradients(rewritten(RULES, formula), [x], "graph")
    values, slopes = _exact(exact, x)
    assert oracle.ulp_error(value, values) <= 6
    # The slope of a constant quotient is the difference of two equal terms.
    scale = 1 if name.startswith("ratio") else 0
    assert oracle.ulp_error(slope, slopes, scale) <= 12


@pytest.mark.parametrize("row", ELEMENTWISE.values(), ids=list(ELEMENTWISE))
def test_without_a_fix_it_fails(row):
    _, formula, exact, points = row
    x = tf.constant(points)
    with contrast.without_grappler():
        value, (slope,) = modes.value_and_gradients(formula, [x], "eager")
    values, slopes = _exact(exact, x)
    errors = [oracle.ulp_error(value, values), oracle.ulp_error(slope, slopes)]
    assert max(errors) > 1e3


def _masked(x):
    e = exp(x) * tf.constant([1.0, 0.0, 1.0])
    return e / (tf.reduce_sum(e, -1, keepdims=True) + 1e-9)


SOFTMAXES = {
    **{text: HANDS[text] for text in ("exp(x) / sum(exp(x))",)},
    "exp(x) / expand_dims(sum(exp(x)))": lambda x: (
        exp(x) / tf.expand_dims(tf.reduce_sum(exp(x), 1), -1)
    ),
    "exp(x) / sum(exp(x))[:, None]": lambda x: (
        exp(x) / tf.reduce_sum(exp(x), 1)[:, None]
    ),
    "exp(x) / reshape(sum(exp(x)), [-1, 1])": lambda x: (
        exp(x) / tf.reshape(tf.reduce_sum(exp(x), 1), [-1, 1])
    ),
    "exp(x) / max(sum(exp(x)), 1e-9)": lambda x: (
        exp(x) / tf.maximum(tf.reduce_sum(exp(x), 1, keepdims=True), 1e-9)
    ),
    "divide_no_nan": lambda x: tf.math.divide_no_nan(
        exp(x), tf.reduce_sum(exp(x), 1, keepdims=True)
    ),
}


@pytest.mark.parametrize("formula", SOFTMAXES.values(), ids=list(SOFTMAXES))
def test_a_softmax_by_hand_is_a_softmax(formula):
    assert fired(RULES, formula, X) == ["softmax-by-hand"]
    truth = np.array([soft([mp.mpf(v) for v in row]) for row in ROWS], object)
    assert oracle.ulp_error(rewritten(RULES, formula)(X), truth) <= 8
    with contrast.without_grappler():
        assert np.isnan(formula(X)).any()


def test_a_softmax_under_a_mask_is_one_of_what_is_left():
    assert fired(RULES, _masked, X) == ["softmax-by-hand"]
    got = rewritten(RULES, _masked)(X)
    truth = np.array([soft([mp.mpf(row[0]), mp.mpf(row[2])]) for row in ROWS], object)
    assert oracle.ulp_error(got[:, ::2], truth) <= 8
    assert np.all(got[:, 1] == 0)


def test_a_softmax_of_everything_divides_by_one_number():
    x = tf.constant([100.0, 99.0, -100.0])

    def formula(x):
        return exp(x) / tf.reduce_sum(exp(x))

    assert fired(RULES, formula, x) == ["softmax-by-hand"]
    truth = np.array(soft([mp.mpf(100), mp.mpf(99), mp.mpf(-100)]), object)
    assert oracle.ulp_error(rewritten(RULES, formula)(x), truth) <= 8


def test_a_mean_weighted_by_exponentials_survives_their_underflow():
    x = tf.constant([[200.0, 201.0, 300.0]])
    y = tf.constant([[1.0, -2.0, 5.0]])

    def formula(x, y):
        kernel = exp(-x)
        return tf.reduce_sum(kernel * y, -1) / tf.reduce_sum(kernel, -1)

    assert fired(RULES, formula, x, y) == ["ratio-of-exponentials"]
    value, slopes = modes.value_and_gradients(
        rewritten(RULES, formula), [x, y], "graph"
    )
    p = float(sig(mp.mpf(1)))
    assert_close(value, [p - 2 * (1 - p)])
    assert_close(slopes[1], [[p, 1 - p, 0]])
    assert_close(slopes[0], [[-3 * p * (1 - p), 3 * p * (1 - p), 0]])


@pytest.mark.parametrize(
    ("formula", "place"),
    [
        (lambda x: 1 - tf.nn.softmax(x), np.s_[:]),
        (lambda x: 1 - tf.nn.softmax(x)[:, 0], np.s_[:, 0]),
        (lambda x: 1 - tf.reduce_sum(tf.nn.softmax(x) * [1.0, 0, 0], -1), np.s_[:, 0]),
        (lambda x: 1 - tf.reduce_max(tf.nn.softmax(x), -1), np.s_[:, 0]),
    ],
    ids=["each", "of one class", "of the class of a label", "of the likeliest class"],
)
def test_the_complement_of_a_softmax_keeps_the_digits_of_the_others(formula, place):
    x = tf.constant([[20.0, 0.0, -1.0]])
    assert fired(RULES, formula, x)[-1] == "complement-of-softmax"
    p = soft([mp.mpf(20), mp.mpf(0), mp.mpf(-1)])
    truth = np.array([[1 - v for v in p]], object)[place]
    assert oracle.ulp_error(rewritten(RULES, formula)(x), truth) <= 8


def _left(x, y, axis=-1):
    return 1 - tf.reduce_sum(y * tf.nn.softmax(x), axis)


def test_1_minus_a_weighted_sum_of_a_softmax_keeps_its_digits(mode):
    y = np.array([[1, 0, 0], [1, 0.5, 3], [0.75, 0, -1], [0, 1, 0], [0, 0, 0]])
    x = np.array([[20.0, 0.0, -1.0]])
    args = [tf.constant(np.tile(x, [5, 1]), tf.float32), tf.constant(y, tf.float32)]
    assert "complement-of-softmax" in fired(RULES, _left, *args)
    value, slopes = modes.value_and_gradients(rewritten(RULES, _left), args, mode)
    p = np.exp(x) / np.exp(x).sum()
    right = ((1 - y) * p).sum(-1, keepdims=True)
    assert_close(value, right[:, 0])
    # Elsewhere the terms of the slopes cancel as those of the softmax do.
    exact = p * (1 - y - right)
    assert_close(slopes[0][:2], exact[:2])
    assert_close(slopes[0], exact, 0.05, scale=1.0)
    assert_close(slopes[1], np.tile(-p, [5, 1]))


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, y: _left(x, y, 0),
        lambda x, y: _left(x[:, :1], y),
        lambda x, y: 1.5 - tf.reduce_sum(y * tf.nn.softmax(x), -1),
        lambda x, y: 1 - 2 * tf.reduce_sum(y * tf.nn.softmax(x), -1),
        lambda x, y: 1 - tf.nn.softmax(x, 0) @ y,
        lambda x, y: 1 - y @ tf.nn.softmax(x),
        lambda x, y: 1 - tf.matmul(tf.nn.softmax(x), y, transpose_a=True),
        lambda x, y: 1 - tf.einsum("ij,j->i", tf.nn.softmax(x, 0), y[0]),
        lambda x, y: 2 - tf.nn.softmax(x) @ y,
    ],
    ids=[
        *("along another axis", "repeated", "1.5 minus it", "twice"),
        *("of columns", "on the left", "turned", "einsum", "2 minus a product"),
    ],
)
def test_other_sums_are_no_weighted_sum_of_a_softmax(formula):
    args = [
        tf.constant([[5.0, 0.0], [1.0, 3.0]]),
        tf.constant([[1.0, 0.3], [0.0, 2.0]]),
    ]
    assert_close(rewritten(RULES, formula)(*args), formula(*args))
    assert fired(RULES, formula, *args) == []


MATRICES = {
    "matvec": lambda x, y: 1 - tf.linalg.matvec(y, tf.nn.softmax(x)),
    "tensordot": lambda x, y: 1 - tf.tensordot(y, tf.nn.softmax(x), 1),
    "einsum": lambda x, y: 1 - tf.einsum("ij,j->i", y, tf.nn.softmax(x)),
    "of a column": lambda x, y: (1 - y @ tf.nn.softmax(x[:, None], 0))[:, 0],
    "of a row": lambda x, y: (
        1 - tf.matmul(tf.nn.softmax(x[None]), y, transpose_b=True)
    )[0],
    "of a row, last": lambda x, y: (
        1 - tf.matmul(y, tf.nn.softmax(x[None]), transpose_b=True)
    )[:, 0],
    "of a column, transposed": lambda x, y: (
        1 - tf.matmul(tf.nn.softmax(x[:, None], 0), y, True, True)
    )[0],
}


@pytest.mark.parametrize("name", MATRICES)
def test_1_minus_a_softmax_times_a_matrix_keeps_its_digits(name, mode):
    x = np.float64([20.0, 0.0, -1.0])
    y = np.float64([[1, 0, 0], [1, 0.5, 3], [0, 1, 0]])
    args = [tf.constant(x, tf.float32), tf.constant(y, tf.float32)]
    assert "complement-of-softmax" in fired(RULES, MATRICES[name], *args)
    value, slopes = modes.value_and_gradients(
        rewritten(RULES, MATRICES[name]), args, mode, [1.0, 1.0, 0.0]
    )
    p = np.exp(x) / np.exp(x).sum()
    right = (1 - y) @ p
    assert_close(value, right)
    assert_close(slopes[0], (p * (1 - y - right[:, None]))[:2].sum(0))
    assert_close(slopes[1], -np.outer([1, 1, 0], p))


@pytest.mark.parametrize("high", [5.0, 20.0, 60.0])
def test_the_impurity_of_a_softmax_keeps_its_digits(high, mode):
    def formula(x):
        return 1 - tf.reduce_sum(tf.nn.softmax(x) ** 2, -1)

    x = tf.constant([[high, 0.0, -1.0]])
    assert "complement-of-softmax" in fired(RULES, formula, x)
    value, (slope,) = modes.value_and_gradients(rewritten(RULES, formula), [x], mode)
    with mp.workdps(60):
        p = soft([mp.mpf(high), mp.mpf(0), mp.mpf(-1)])
        whole = sum(v * (1 - v) for v in p)
        right = [[2 * v * (1 - v - whole) for v in p]]
    assert_close(value, [float(whole)])
    assert_close(slope, np.float64(right))


@pytest.mark.parametrize("axis", [-1, 0, None])
def test_the_sum_of_all_other_exponentials_keeps_its_digits(axis, mode):
    def odds(x):
        e = exp(x)
        return e / (tf.reduce_sum(e, axis, keepdims=True) - e)

    x = tf.constant([[60.0, 0.0, -1.0], [-3.0, 20.0, 21.0], [1.0, 100.0, 2.0]])
    wide = np.float64(x)
    others = np.zeros_like(wide)
    for place in np.ndindex(3, 3):
        rest = np.exp(wide)
        rest[place] = 0
        total = rest.sum() if axis is None else rest.sum(axis)
        others[place] = total if axis is None else total[place[1 + axis]]
    value, _ = modes.value_and_gradients(rewritten(RULES, odds), [x], mode)
    right = np.exp(wide) / others
    in_range = right < 3e38
    assert_close(
        value[in_range],
        right[in_range],
        15,
        why="an exponential of up to 80, whose ulp is 7.6e-6",
    )
    log = modes.compile_for(mode, rewritten(RULES, lambda x: tf.math.log(odds(x))))
    assert_close(log(x), np.log(right))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes_stay_as_they_are(dtype):
    x = tf.constant([[0.0, 5.0, -3.0]], dtype)
    got = rewritten(RULES, HANDS["exp(x) / sum(exp(x))"])(x)
    assert got.dtype == x.dtype
    exact = tf.nn.softmax(tf.cast(x, tf.float64))
    assert_close(got, exact, 1)


@pytest.mark.parametrize(
    "formula",
    [HANDS["exp(x) / sum(exp(x))"], lambda x: exp(x) / exp(2 * x)],
    ids=["softmax", "ratio"],
)
def test_it_is_right_under_xla_and_for_any_shape(formula):
    made = rewritten(RULES, formula, tf.TensorSpec(None))
    compiled = tf.function(made.python_function, autograph=False, jit_compile=True)
    assert np.isfinite(made(X)).sum() >= 7
    assert_close(made(X), compiled(X))
    assert np.isnan(made(tf.fill([1, 3], np.nan))).all()


def test_keras_logaddexp_has_equal_slopes_at_a_tie():
    import keras

    x, y = tf.constant([1.0, -np.inf, 3.0]), tf.constant([1.0, -np.inf, np.inf])
    assert fired(RULES, keras.ops.logaddexp, x, y)[-1] == "log-add-exp-by-hand"
    value, (in_x, in_y) = modes.value_and_gradients(
        rewritten(RULES, keras.ops.logaddexp), [x, y], "graph"
    )
    assert_close(value, [1 + np.log(2), -np.inf, np.inf])
    assert_close(in_x, [0.5, 0, 0], 0.5)
    assert_close(in_y, [0.5, 0, 1], 0.5)


def test_the_difference_of_two_lgammas_keeps_its_digits_and_its_domain():
    def formula(x, y):
        return tf.math.lgamma(y + x) - tf.math.lgamma(x)

    x = tf.constant([1e8, 2.5, -0.5, -0.5, np.nan, 3.0])
    y = tf.constant([3.0, 0.5, 2.0, -2.0, 1.0, -3.5])
    assert fired(RULES, formula, x, y) == ["log-pochhammer"]
    value, slopes = modes.value_and_gradients(
        rewritten(RULES, formula), [x, y], "graph"
    )
    exact = [
        float(
            mp.loggamma(mp.mpf(float(a + b))).real - mp.loggamma(mp.mpf(float(a))).real
        )
        for a, b in zip(x.numpy()[1:4].astype(float), y.numpy()[1:4], strict=True)
    ]
    assert_close(value[:4], [55.262042, *exact])
    assert np.isnan(value[4])
    assert_close(value[5], float(mp.loggamma(-0.5).real - mp.log(2)))
    assert np.isfinite(np.array(slopes)[:, [0, 1, 2, 3, 5]]).all()


def test_two_differences_of_lgammas_in_one_sum_both_keep_their_digits(mode):
    def formula(x, y):
        rise = tf.math.lgamma(x + 3) - tf.math.lgamma(x)
        return rise + tf.math.lgamma(y + 2) - tf.math.lgamma(y)

    value = modes.compile_for(mode, rewritten(RULES, formula))(*tf.constant([1e8, 1e7]))
    assert_close(value, 3 * np.log(1e8) + 2 * np.log(1e7))


LOG_SUMS = {
    "log(sum(exp(x - max(x)))) + max(x)": lambda x: (
        tf.math.log(tf.reduce_sum(exp(x - tf.reduce_max(x, -1, keepdims=True)), -1))
        + tf.reduce_max(x, -1)
    ),
    "tf.reduce_logsumexp(x)": lambda x: tf.reduce_logsumexp(x, -1),
    "log(sum(exp(x - 3))) + 3": lambda x: tf.math.log(tf.reduce_sum(exp(x - 3), 1)) + 3,
}


@pytest.mark.parametrize("formula", LOG_SUMS.values(), ids=list(LOG_SUMS))
def test_a_logsumexp_by_hand_is_right_for_a_row_of_impossible_classes(formula):
    x = tf.constant([[-np.inf] * 3, [1.0, 1.0, 1.0], [100.0, -np.inf, 99.0]])
    assert "logsumexp-by-hand" in fired(RULES, formula, x)
    value, (slope,) = modes.value_and_gradients(rewritten(RULES, formula), [x], "graph")
    p = float(sig(mp.mpf(1)))
    assert_close(value, [-np.inf, 1 + np.log(3), 100 - np.log(p)])
    assert_close(slope, [[0, 0, 0], [1 / 3] * 3, [p, 0, 1 - p]])


LOG_SOFTMAXES = {
    "x - log(sum(exp(x)))": lambda x: (
        x - tf.math.log(tf.reduce_sum(exp(x), -1, keepdims=True))
    ),
    "x - log(sum(exp(x)))[:, None]": lambda x: (
        x - tf.math.log(tf.reduce_sum(exp(x), -1))[:, None]
    ),
    "x - reduce_logsumexp(x)": lambda x: (
        x - tf.reduce_logsumexp(x, axis=-1, keepdims=True)
    ),
}


@pytest.mark.parametrize("formula", LOG_SOFTMAXES.values(), ids=list(LOG_SOFTMAXES))
def test_a_log_softmax_by_hand_keeps_the_digits_of_the_likeliest(formula):
    x = tf.constant([[20.0, 0.0], [120.0, 0.0], [1.0, 1.0]])
    assert "log-softmax-by-hand" in fired(RULES, formula, x)
    truth = np.array(
        [
            [mp.log(v) for v in soft([mp.mpf(a) for a in row])]
            for row in x.numpy().tolist()
        ],
        object,
    )
    assert oracle.ulp_error(rewritten(RULES, formula)(x), truth) <= 8


def _matrix(w, x):
    return tf.matmul(exp(x[None]), w[:, None])[0, 0] / tf.reduce_sum(exp(x))


def _einsum(w, x):
    return tf.einsum("i,i->", exp(x), w) / tf.einsum("i->", exp(x))


def _segments(w, x):
    ids = tf.constant([0, 0])
    total = tf.math.unsorted_segment_sum(exp(x), ids, 1)
    return (tf.math.unsorted_segment_sum(w * exp(x), ids, 1) / total)[0]


def _two_terms(w, x):
    e = exp(x)
    return (e[0] * w[0] + e[1] * w[1]) / (e[0] + e[1])


WEIGHTED = {
    "sum(w * exp(x)) / sum(exp(x))": lambda w, x: (
        tf.reduce_sum(w * exp(x)) / tf.reduce_sum(exp(x))
    ),
    "mean(w * exp(x), 0) / mean(exp(x), 0)": lambda w, x: (
        tf.reduce_mean(w * exp(x), 0) / tf.reduce_mean(exp(x), 0)
    ),
    "columns": lambda w, x: (
        tf.reduce_sum(w[:, None] * exp(x)[:, None], 0)
        / tf.reduce_sum(exp(x)[:, None], 0)
    )[0],
    "matmul": _matrix,
    "tensordot": lambda w, x: tf.tensordot(exp(x), w, 1) / tf.reduce_sum(exp(x)),
    "einsum": _einsum,
    "segment_sum": _segments,
    "two terms": _two_terms,
}


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("x", [[100.0, 0.0], [-100.0, -200.0], [1.0, 2.0]], ids=str)
def test_a_weight_of_exactly_0_has_its_slope(name, x, mode):
    w = tf.constant([0.0, 1.0])
    function = rewritten(RULES, WEIGHTED[name])
    value, slopes = modes.value_and_gradients(function, [w, tf.constant(x)], mode)
    p, q = soft([mp.mpf(v) for v in x])
    assert oracle.ulp_error(value, np.array(q, object)) <= 4
    assert oracle.ulp_error(slopes[0], np.array([p, q], object)) <= 4
    assert_close(slopes[1], [float(-p * q), float(p * q)])


HITS = {
    "log(1 - exp(-sum(exp(x))))": lambda x: tf.math.log(
        1 - exp(-tf.reduce_sum(exp(x), -1))
    ),
    "log(-expm1(-exp(x) - exp(y)))": lambda x: tf.math.log(
        -tf.math.expm1(-(exp(x[:, 0]) + exp(x[:, 1])))
    ),
    "log1p(-exp(-sum(exp(x))))": lambda x: tf.math.log1p(
        -exp(-tf.reduce_sum(exp(x), -1))
    ),
}


@pytest.mark.parametrize("name", HITS)
def test_the_chance_of_any_hit_is_right_where_every_rate_underflows(name, mode):
    x = tf.constant([[-110.0, -112.0], [-9.0, -200.0], [0.5, -1.0]])
    function = rewritten(RULES, HITS[name])
    value, (slope,) = modes.value_and_gradients(function, [x], mode)
    rates = [[mp.exp(v) for v in row] for row in x.numpy().tolist()]
    exact = np.array([mp.log(-mp.expm1(-sum(row))) for row in rates], object)
    slopes = np.array(
        [[r / mp.expm1(sum(row)) for r in row] for row in rates], object
    ).astype(float)
    assert oracle.ulp_error(value, exact) <= 4
    assert_close(slope, slopes)
