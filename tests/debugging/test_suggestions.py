"""Suggested code gives finite values; so does `stabilize` where it is suggested."""

import inspect
import linecache
import math
import re
import sys
import textwrap
from typing import Any
from unittest import mock

import keras
import mpmath
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe._report import caller
from tfsafe._report.html import _diff
from tfsafe.debugging.explain.suggestions import (
    choice,
    fixes,
    refusal_fixes,
    source_names,
)


def softmax(s):
    e = tf.exp(s)
    return e / tf.reduce_sum(e, -1, keepdims=True)


def log_softmax(s):
    e = tf.exp(s)
    return tf.math.log(e / tf.reduce_sum(e, -1, keepdims=True))


def logsumexp(s):
    return tf.math.log(tf.reduce_sum(tf.exp(s), -1))


def cross_entropy_by_hand(y, s):
    e = tf.exp(s - tf.reduce_max(s, -1, keepdims=True))
    p = e / tf.reduce_sum(e, -1, keepdims=True)
    return -tf.reduce_sum(y * tf.math.log(p))


def log_of_softmax(s):
    return tf.math.log(tf.nn.softmax(s))


def log_of_sigmoid(s):
    return tf.math.log(tf.sigmoid(s))


def weighted_log(p, w):
    return tf.reduce_sum(w * tf.math.log(p))


def gaussian_ranks(r):
    return tf.math.erfinv(2.0 * r - 1.0)


def normal_quantiles(r):
    return tf.math.ndtri(r)


def rapidity(v):
    return tf.atanh(v)


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


def softplus(s):
    return tf.math.log(1.0 + tf.exp(s))


def inverse_softplus(s):
    return tf.math.log(tf.exp(s) - 1.0)


def inverse_softplus_by_expm1(s):
    return tf.math.log(tf.math.expm1(s))


def log_of_a_little_less(s):
    return tf.math.log(tf.exp(s) - 1.5)


def softplus_by_log1p(s):
    return tf.math.log1p(tf.exp(s))


def log_of_a_little_more(s):
    return tf.math.log(1e-6 + tf.exp(s))


def log_of_two_exponentials(a, b):
    return tf.math.log(tf.exp(a) + tf.exp(b))


def log_of_a_weight_and_an_exponential(w, s):
    grown = tf.exp(s)
    return tf.math.log(grown + w)


def chosen_power(v):
    return tf.where(v > 0, v**0.5, 0.0)


def inverse_square_root(v):
    return v**-0.5


def masked(s):
    return tf.nn.softmax(tf.where(s > 1.0, s, -np.inf))


def kept(s):
    return tf.where(s > 1.0, s, -np.inf)


def softmax_less_the_largest(s):
    e = tf.exp(kept(s) - tf.reduce_max(kept(s), -1, keepdims=True))
    return e / tf.reduce_sum(e, -1, keepdims=True)


def logsumexp_less_the_largest(s):
    e = tf.exp(kept(s) - tf.reduce_max(kept(s), -1, keepdims=True))
    return tf.math.log(tf.reduce_sum(e, -1)) + tf.reduce_max(kept(s), -1)


def picked_logarithm(s):
    e = tf.exp(s)
    return tf.math.log(tf.gather(e / tf.reduce_sum(e, -1, keepdims=True), 0, axis=-1))


def quotient_by_relu(a, b):
    return a / tf.nn.relu(b)


SCALE = tf.Variable([0.0, 1.0])


def quotient_by_variable(a):
    return a / SCALE


def weighted_quotient(w, v):
    return tf.math.xdivy(w, v)


def entropy(w, v):
    return tf.where(v > 0, tf.math.xlogy(w, v), 0.0)


def length_of_all(v):
    return tf.math.reduce_euclidean_norm(v, axis=-1)


def arc_sine(v):
    return tf.asin(v + 1.0)


def area_cosine(v):
    return tf.acosh(v + 1.0)


def area_tangent(v):
    return tf.where(v < 1, tf.atanh(v), 0.0)


def logarithm_of_one_more(v):
    return tf.where(v > -1, tf.math.log1p(v), 0.0)


def mean_of_chosen(v):
    return tf.reduce_mean(tf.boolean_mask(v, v > 2), axis=0, keepdims=True)


def angle(a, b):
    return tf.atan2(a, b)


def aspect(a, b):
    return tf.atan(a / b)


def log_cosh(s):
    return tf.math.log(tf.cosh(s))


def factor(v):
    return tf.linalg.cholesky(v)


def log_softmax_less_the_largest(s):
    shifted = kept(s) - tf.reduce_max(kept(s), -1, keepdims=True)
    return shifted - tf.math.log(tf.reduce_sum(tf.exp(shifted), -1, keepdims=True))


def masked_logarithms(s):
    return tf.nn.log_softmax(tf.where(s > 1.0, s, -np.inf))


def binary_crossentropy(y, z):
    p = tf.sigmoid(z)
    return -(y * tf.math.log(p) + (1 - y) * tf.math.log(1 - p))


def generator_and_discriminator(real, fake):
    return tf.math.log(tf.sigmoid(real)) + tf.math.log(1.0 - tf.sigmoid(fake))


def survival(v):
    return tf.math.log(1.0 - tf.exp(-v))


def softmax_over_columns(s):
    e = tf.exp(s)
    return e / tf.reduce_sum(e, axis=0, keepdims=True)


def logsumexp_with_its_axis(s):
    return s - tf.math.log(tf.reduce_sum(tf.exp(s), 1, keepdims=True))


def logsumexp_of_all(s):
    return tf.math.log(tf.reduce_sum(tf.exp(s)))


def masked_columns(s):
    return tf.nn.softmax(tf.where(s > 1.0, s, -np.inf), axis=0)


def segment_attention(s):
    e = tf.exp(s)
    return e / tf.gather(tf.math.unsorted_segment_sum(e, [0, 0], 2), [0, 0])


def cosine(a, b):
    return tf.reduce_sum(a * b, -1) / (tf.norm(a, axis=-1) * tf.norm(b, axis=-1))


def standardized(v):
    return (v - tf.reduce_mean(v)) / tf.math.reduce_std(v, axis=-1, keepdims=True)


def own_logarithm(p):
    return -tf.reduce_sum(p * tf.math.log(p), -1)


def divergence(p, log_q):
    return tf.reduce_sum(p * (tf.math.log(p) - log_q), -1)


def divergence_the_other_way(p, q):
    return tf.reduce_sum((tf.math.log(q + 1.0) - tf.math.log(p)) * p, -1)


def arc_cosine_beyond(v):
    return tf.acos(v)


def arc_sine_beyond(v):
    return tf.asin(v)


def area_cosine_below(v):
    return tf.acosh(v)


def solution(m):
    c = tf.linalg.cholesky(m)
    return tf.linalg.triangular_solve(c, tf.ones_like(m))


def log_determinant(m):
    c = tf.linalg.cholesky(m)
    return 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(c)))


def log_slope_of_a_squash(u):
    a = tf.tanh(u)
    return tf.math.log(1.0 - a**2)


def log_slope_of_a_difference(u, v):
    return tf.math.log(1.0 - tf.square(tf.tanh(u - v)))


def capped_ratio(snr):
    return tf.minimum(snr, 5.0) / snr


S = [[200.0, 1.0], [3.0, 4.0]]
# Of three classes, the last two have a probability of 0 beside S.
ONE_HOT = [[0.0, 1.0, 0.0]]
FAR = [[200.0, 1.0, -9.0]]
LOW = [[-200.0, 1.0], [3.0, 4.0]]
TINY = [[-200.0, -201.0], [3.0, 4.0]]
ZEROS = [[0.0, 0.0], [1.0, 2.0]]
# Function, arguments, whether the gradient is what fails.
CASES = [
    (gaussian_ranks, [[0.0, 0.5, 1.0]], False),
    (normal_quantiles, [[0.0, 0.5, 1.0]], False),
    (rapidity, [[-1.0, 0.5, 1.0]], False),
    (softmax, [S], False),
    (log_softmax, [S], False),
    (logsumexp, [S], False),
    (softmax, [TINY], False),
    (logsumexp, [TINY], False),
    (cross_entropy_by_hand, [ONE_HOT, FAR], False),
    (cross_entropy_by_hand, [[[0.5, 0.5]], [[200.0, 1.0]]], False),
    (log_of_softmax, [S], False),
    (log_of_sigmoid, [LOW], False),
    (weighted_log, [ZEROS, ZEROS], False),
    (quotient, [ZEROS, ZEROS], False),
    (quotient_by_relu, [ZEROS, [[-1.0, 2.0]]], False),
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
    (softplus, [S], False),
    (inverse_square_root, [ZEROS], False),
    (quotient_by_variable, [[1.0, 2.0]], False),
    (weighted_quotient, [[1.0, 2.0], [0.0, 1.0]], False),
    (entropy, [[1.0, 1.0], [0.0, 1.0]], True),
    (length_of_all, [ZEROS], True),
    (arc_sine, [[[0.0, -1.0]]], True),
    (area_cosine, [ZEROS], True),
    (area_tangent, [[[0.0, 1.0]]], True),
    (logarithm_of_one_more, [[[0.0, -1.0]]], True),
    (mean_of_chosen, [ZEROS], False),
    (angle, [ZEROS, ZEROS], True),
    (aspect, [[[1.0, 2.0]], [[0.0, 1.0]]], True),
    (log_cosh, [S], False),
    (factor, [[[1.0, 1.0], [1.0, 1.0]]], False),
    (softmax_less_the_largest, [ZEROS], False),
    (softplus_by_log1p, [S], False),
    (inverse_softplus, [S], False),
    (inverse_softplus_by_expm1, [S], False),
    (log_of_a_little_more, [S], False),
    (log_of_a_weight_and_an_exponential, [[[2.0, 1.0]], S], False),
    (picked_logarithm, [S], False),
    (own_logarithm, [[0.0, 1.0]], False),
    (divergence, [[0.0, 1.0], [-1.0, -2.0]], False),
    (divergence_the_other_way, [[0.0, 1.0], [1.0, 2.0]], False),
    (arc_cosine_beyond, [[[0.5, 1.1]]], False),
    (arc_sine_beyond, [[[0.5, -1.1]]], False),
    (area_cosine_below, [[[0.5, 2.0]]], False),
    (solution, [[[1.0, 1.0], [1.0, 1.0]]], False),
    (log_determinant, [[[1.0, 1.0], [1.0, 1.0]]], False),
    (log_slope_of_a_squash, [[[20.0, 1.0]]], False),
    (log_slope_of_a_squash, [[[20.0, 1.0]]], True),
    (log_slope_of_a_difference, [[[20.0, 1.0]], [[1.0, -30.0]]], False),
]


def old_quotient(a, b):
    return tf.raw_ops.Div(x=a, y=b)


def old_inverse(v):
    return tf.raw_ops.Inv(x=v)


def long_line(values_of_a_long_name):
    return 1.0 + values_of_a_long_name / tf.reduce_sum(
        values_of_a_long_name, axis=-1, keepdims=True
    )


def log_softmax_over_columns(v):
    return tf.math.log(tf.nn.softmax(v, axis=1))


def shares(v):
    part = v
    part /= tf.reduce_sum(v, -1, keepdims=True)
    return part


def sigmoid_by_hand(s):
    return tf.exp(s[0] * 2.0) / (1.0 + tf.exp(s[0] * 2.0))


def sigmoid_with_the_one_last(s):
    return tf.exp(s) / (tf.exp(s) + 1)


def log_of_determinant(v):
    return tf.math.log(tf.linalg.det(v))


def product_with_a_mask(v, m):
    masked_out = tf.where(v > 1.0, v, -np.inf)
    return tf.reduce_sum(masked_out * m)


def product_of_a_mask(v, m):
    masked_out = tf.where(v > 1.0, v, -np.inf)
    return tf.reduce_sum(m * masked_out)


OLD = [(old_quotient, [ZEROS, ZEROS], False), (old_inverse, [ZEROS], False)]
# A line with its suggestion in place of what it replaces, once for each finding of
# it; the largest value that it may have.
SCENES = [
    (binary_crossentropy, [[0.0, 1.0], [50.0, -120.0]], 120.0),
    (generator_and_discriminator, [[-120.0, 1.0], [50.0, 1.0]], 0.0),
    (cross_entropy_by_hand, [ONE_HOT, FAR], 199.0),
    (survival, [[1e-9, 1.0]], 0.0),
    (inverse_softplus, [[0.5, 100.0]], 100.0),
    (inverse_softplus_by_expm1, [[0.5, 100.0]], 100.0),
    (softmax_over_columns, [[[200.0, 1.0], [200.0, 4.0]]], 1.0),
    (logsumexp_with_its_axis, [[[200.0, 200.0], [3.0, 4.0]]], 0.0),
    (logsumexp_of_all, [S], 200.0),
    (softmax_over_columns, [[[-200.0, 3.0], [-201.0, 4.0]]], 1.0),
    (logsumexp_with_its_axis, [TINY], 5.0),
    (logsumexp_of_all, [[[-200.0, -201.0]]], -199.0),
    (masked_columns, [ZEROS], 1.0),
    (segment_attention, [[100.0, 99.0]], 1.0),
    (shares, [ZEROS], 1.0),
    (long_line, [ZEROS], 2.0),
    (log_softmax_over_columns, [[[[200.0], [1.0]], [[-2.0], [0.0]]]], 0.0),
    (cosine, [ZEROS, [[1.0, 2.0], [3.0, 4.0]]], 1.0),
    (standardized, [ZEROS], 3.0),
    (mean_of_chosen, [ZEROS], 0.0),
    (picked_logarithm, [S], None),
    *((each, [ZEROS], 3.0) for each in (softmax_less_the_largest, masked)),
    (own_logarithm, [[0.0, 1.0]], 0.0),
    (divergence, [[0.0, 1.0], [-1.0, -2.0]], 2.0),
    (divergence_the_other_way, [[0.0, 1.0], [0.0, 1.0]], 0.7),
    (solution, [[[1.0, 1.0], [1.0, 1.0]]], 10.0),
    (log_determinant, [[[1.0, 1.0], [1.0, 1.0]]], 0.0),
    (sigmoid_by_hand, [S], 1.0),
    (sigmoid_with_the_one_last, [S], 1.0),
    (log_of_determinant, [np.eye(12, dtype="float32") * 1e-5], 0.0),
    (product_with_a_mask, [[0.0, 2.0], [0.0, 1.0]], 2.0),
    (product_of_a_mask, [[0.0, 2.0], [0.0, 1.0]], 2.0),
    (capped_ratio, [[0.0, 7.0]], 1.0),
]
# The power of a negative number is finite only where it is not chosen.
CHOSEN = chosen_power, [[-1.0, 4.0]], True
# The logarithms are -inf, as they should be.
MASKED = [
    (masked_logarithms, [ZEROS], False),
    (logsumexp_less_the_largest, [ZEROS], False),
    (log_softmax_less_the_largest, [ZEROS], False),
]


def derived(function):
    """Returns a function of the gradient of the sum of the results."""

    def gradient(*values):
        with tf.GradientTape() as tape:
            tape.watch(values)
            total = tf.reduce_sum(function(*values))
        return tape.gradient(total, values)

    return gradient


# By function and arguments: the finding, and the rows that fit it.
_EXAMINED: dict[Any, tuple[tfsafe.Finding, list[Any]]] = {}


def finding_of(function, arguments, is_gradient):
    return examined(function, arguments, is_gradient)[0]


def examined(function, arguments, is_gradient):
    """Returns the finding and the rows of `choice.FIXES` that fit it."""
    key = function, is_gradient, *map(str, arguments)
    if key not in _EXAMINED:
        run = derived(function) if is_gradient else function
        rows, fits = [], choice._fits

        def noted(row, failure):
            is_it = fits(row, failure)
            rows.extend([row] * is_it)
            return is_it

        with (
            mock.patch.object(choice, "_fits", noted),
            pytest.raises(tfsafe.NumericsError) as caught,
        ):
            # Eagerly: the graph optimizer mends some of these by itself.
            tfsafe.checked(run)(*arguments)
        _EXAMINED[key] = caught.value.findings[0], rows
    return _EXAMINED[key]


def is_finite(function, arguments, is_gradient):
    run = derived(function) if is_gradient else function
    return all(np.isfinite(each).all() for each in tf.nest.flatten(run(*arguments)))


@pytest.mark.parametrize(
    ("function", "arguments", "is_gradient"),
    CASES,
    ids=[f"{case[0].__name__}-{case[2]}-{case[1][0][0]}" for case in CASES],
)
def test_a_suggested_line_gives_finite_values(function, arguments, is_gradient):
    arguments = [tf.constant(each) for each in arguments]
    finding = finding_of(function, arguments, is_gradient)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    # The suggested line, with the names of the user's function.
    code = compile(finding.suggested_code, "suggestion", "eval")

    def suggested(*values):
        known = {
            "SCALE": SCALE,
            "math": math,
            "np": np,
            "tf": tf,
            "tfsafe": tfsafe,
            "kept": kept,
            **dict(zip(names, values, strict=True)),
        }
        return eval(code, known)

    assert is_finite(suggested, arguments, is_gradient), finding.suggested_code
    if choice.REWRITES in finding.suggestion:
        stable = tfsafe.stabilize(tf.function(function, autograph=False))
        assert is_finite(stable, arguments, is_gradient)


def capped_by_name(snr):
    capped = tf.minimum(5.0, snr)
    return capped / snr


def capped_otherwise(snr):
    return tf.minimum(2.0 * snr, 5.0) / snr


@pytest.mark.parametrize("function", [capped_ratio, capped_by_name])
def test_a_capped_ratio_is_suggested_with_its_limit(function):
    snr = tf.constant([0.0, 2.5, 7.0])
    code = finding_of(function, [snr], False).suggested_code
    assert code == "5.0 / tf.maximum(snr, 5.0)"
    assert eval(code, {"tf": tf, "snr": snr}).numpy().tolist() == [
        1,
        1,
        np.float32(5 / 7),
    ]
    # It is 2 at 0, which is not known.
    other = finding_of(capped_otherwise, [snr], False).suggested_code
    assert other.startswith("tfsafe.ops.divide(")


@pytest.mark.parametrize(
    ("function", "arguments", "largest"),
    SCENES,
    ids=[f"{s[0].__name__}-{s[2]}" for s in SCENES],
)
def test_the_line_with_its_suggestion_mends_the_function(function, arguments, largest):
    arguments = [tf.constant(each) for each in arguments]
    lines, first = inspect.getsourcelines(function)
    source = "".join(lines)
    found = finding_of(function, arguments, False)
    if largest is None:
        # What it replaces is in several places.
        assert (found.replaces, found.replaced_line) == ("", 0)
        return
    for _ in range(3):
        line = (found.replaced_line or found.site.line) - first + 1
        code = found.suggested_code
        change = _diff.of_line(textwrap.dedent(source), code, found.replaces, line)
        assert change, code
        assert change.needs == "import tfsafe" * code.startswith("tfsafe")
        source = source.replace(change.old, change.new)
        names = {"tf": tf, "np": np, "tfsafe": tfsafe, "kept": kept}
        path = f"{function.__name__}.py"
        linecache.cache[path] = len(source), None, source.splitlines(True), path
        exec(compile(source, path, "exec"), names)
        function, lines, first = names[function.__name__], source.splitlines(True), 1
        if is_finite(function, arguments, False):
            assert np.max(function(*arguments)) <= largest + 1e-5
            return
        found = finding_of(function, arguments, False)
    pytest.fail(f"not mended: {source}")


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (arc_cosine, "the slope of acos is infinite at -1 and 1: 1 argument is there"),
        (logarithm_of_one_more, "the slope of log1p is infinite at -1: 1 argument is"),
    ],
)
def test_a_slope_at_the_end_of_a_domain_is_no_loss_of_digits(function, slope):
    """The gradient subtracts equal numbers there, as it should."""
    cause = finding_of(function, [tf.constant([[0.0, -1.0]])], True).cause
    assert cause.startswith(slope)
    assert "comes from" not in cause


@pytest.mark.parametrize("function", [inverse_softplus, inverse_softplus_by_expm1])
def test_the_suggested_inverse_of_softplus_is_it(function):
    points = [1e-6, 0.5, 3.0, 100.0, 3e4]
    code = finding_of(function, [tf.constant(points)], False).suggested_code
    values = eval(code, {"s": tf.constant(points), "tfsafe": tfsafe})
    exact = [float(mpmath.log(mpmath.expm1(np.float32(each)))) for each in points]
    assert_close(values, exact)


def test_another_number_less_than_an_exponential_is_no_inverse_of_softplus():
    finding = finding_of(log_of_a_little_less, [tf.constant(S)], False)
    assert "log1mexp" not in finding.suggested_code


def test_every_formula_and_every_rewrite_that_is_reported_is_run():
    told = {row.op for row in choice.FIXES if row.is_rewritten}
    assert told == {"BesselI0", "BesselI1", "Cosh", "Exp", "Log", "RealDiv", "Sqrt"}
    run = " ".join(name for case in CASES for name in case[0].__code__.co_names)
    assert all(name.rpartition(".")[2] in run for name in ("norm", "l2_normalize"))


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (MASKED[0], [[-np.inf] * 2, [-np.inf, 0.0]]),
        (MASKED[1], [-np.inf, 2.0]),
        (MASKED[2], [[-np.inf] * 2, [-np.inf, 0.0]]),
    ],
)
def test_a_suggested_masked_logarithm_has_no_nan(case, expected):
    function, (s,), is_gradient = case
    finding = finding_of(function, [tf.constant(s)], is_gradient)
    known = {"tf": tf, "tfsafe": tfsafe, "np": np, "kept": kept, "s": tf.constant(s)}
    suggested = eval(finding.suggested_code, known)
    assert_close(suggested, expected)


def test_of_a_row_masked_in_part_and_one_masked_as_a_whole_the_latter_is_named():
    scores = tf.constant([[2.0, 0.0], [0.0, 0.0]])
    found = finding_of(softmax_less_the_largest, [scores], False)
    assert (found.kind, found.count, found.index, found.row) == ("NaN", 2, (1, 0), 1)
    assert found.cause == "inf - inf is NaN (the first at (1, 0))."
    assert found.suggested_code == "tfsafe.ops.softmax(kept(s), axis=-1)"


def test_a_suggested_power_has_slope_zero_where_it_is_not_chosen():
    code = finding_of(CHOSEN[0], [tf.constant(CHOSEN[1][0])], True).suggested_code

    def suggested(v):
        power = eval(code, {"tfsafe": tfsafe, "v": v})
        return tf.where(v > 0, power, 0.0)

    (slope,) = derived(suggested)(tf.constant(CHOSEN[1][0]))
    assert_close(slope, [0.0, 0.25])


@pytest.mark.parametrize(
    ("function", "arguments", "code"),
    [
        (softplus, [S], "tf.nn.softplus(s)"),
        (log_of_a_little_more, [S], "tfsafe.ops.log_add_exp(s, math.log(1e-06))"),
        (log_of_two_exponentials, [S, ZEROS], "tfsafe.ops.log_add_exp(a, b)"),
        (
            log_of_a_weight_and_an_exponential,
            [[[2.0, 1.0]], S],
            "tfsafe.ops.log_add_exp(s, tf.math.log(w))",
        ),
    ],
)
def test_the_logarithm_of_an_exponential_and_more_is_suggested_with_that(
    function, arguments, code
):
    arguments = [tf.constant(each) for each in arguments]
    # XLA: the graph optimizer mends some.
    run = tf.function(function, jit_compile=True, autograph=False)
    assert finding_of(run, arguments, False).suggested_code == code
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    known = {"math": math, "tf": tf, "tfsafe": tfsafe}
    exact = function(*(tf.cast(each, tf.float64) for each in arguments))
    suggested = eval(code, known, dict(zip(names, arguments, strict=True)))
    assert_close(suggested, exact)


def test_a_root_with_the_sign_of_its_argument_is_suggested():
    v = tf.constant([-8.0, 0.0, 27.0])
    words = finding_of(lambda v: v ** (1 / 3), [v], False).suggestion
    code = words.rpartition(" is ")[2].rstrip(".")

    def root(v):
        return eval(code, {"tf": tf, "tfsafe": tfsafe, "v": v})

    assert_close(root(v), [-2.0, 0.0, 3.0])
    (slope,) = derived(root)(v)
    assert_close(slope, [1 / 12, 0.0, 1 / 27])


@pytest.mark.parametrize(
    "function",
    [lambda p: tf.math.log1p(p), lambda p: tf.math.xlog1py(tf.ones([2]), p)],
    ids=["log1p", "xlog1py"],
)
def test_a_bound_is_suggested_for_the_logarithm_of_1_and_a_prediction(function):
    p = tf.constant([-3.0, 2.0])
    words = finding_of(function, [p], False).suggestion
    assert "activation='softplus'" in words
    bound = words.rpartition(": ")[2].rstrip(".")
    np.testing.assert_array_equal(eval(bound, {"tf": tf, "p": p}), [0.0, 2.0])


def test_of_a_sum_of_more_exponentials_no_part_is_suggested():
    found = finding_of(
        lambda a, b: tf.math.log(tf.exp(a) + 2.0 * tf.exp(b)),
        [tf.constant(S), tf.constant(ZEROS)],
        False,
    )
    assert found.suggested_code == ""
    assert "tfsafe.ops.log_add_exp(a, b)" in found.suggestion


def normalized_row(s):
    return tf.linalg.normalize(s)[0]


def test_every_row_with_code_is_that_of_a_case():
    scenes = [(function, arguments, False) for function, arguments, _ in SCENES]
    # In the last, both logarithms fail.
    last = (lambda z: tf.math.log(1.0 - tf.sigmoid(z))), [[50.0]], False
    cases = [*CASES, *MASKED, *OLD, CHOSEN, *scenes, last]
    chosen = [
        row
        for function, arguments, is_gradient in cases
        for row in examined(function, [*map(tf.constant, arguments)], is_gradient)[1]
    ]
    for row in choice.FIXES:
        if row.code and row not in refusal_fixes.OF_REFUSALS:
            assert row in chosen, row


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (old_quotient, [ZEROS, ZEROS], [[0.0, 0.0], [1.0, 1.0]]),
        (old_inverse, [ZEROS], [[0.0, 0.0], [1.0, 0.5]]),
    ],
)
def test_operations_of_older_graphs_have_code_too(function, arguments, expected):
    """The line does not show them: the words have the call."""
    arguments = [tf.constant(each) for each in arguments]
    words = finding_of(function, arguments, False).suggestion
    call = words[: words.index(")") + 1]
    roles = dict(zip(("numerator", "denominator"), arguments, strict=False))
    known = {"tfsafe": tfsafe, "x": arguments[0], **roles}
    assert_close(eval(call, known), expected)


@pytest.mark.parametrize(
    "function",
    [
        # The sum is of other exponentials, or of masked ones.
        lambda s: tf.exp(s) / tf.reduce_sum(tf.exp(s - 1.0), -1, keepdims=True),
        lambda s: softmax_of_kept(s, tf.constant([[1.0, 0.0]])),
        lambda s: tf.exp(s) / tf.reduce_prod(tf.exp(s), -1, keepdims=True),
    ],
    ids=["other", "masked", "product"],
)
def test_a_quotient_of_tiny_exponentials_that_is_no_softmax_gets_none(function):
    found = finding_of(function, [tf.constant(TINY)], False)
    assert "The 0 comes from `Exp`" in found.cause
    assert "softmax" not in found.suggested_code


def softmax_of_kept(s, mask):
    e = tf.exp(s)
    e = tf.boolean_mask(e, mask[0] > 0, axis=1)
    return e / tf.reduce_sum(e, -1, keepdims=True)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (softmax, "tfsafe.ops.softmax(s, axis=-1)"),
        (logsumexp, "tfsafe.ops.logsumexp(s, axis=-1)"),
        (log_softmax, "tfsafe.ops.log_softmax(s, axis=-1)"),
        (softplus, "tf.nn.softplus(s)"),
        (sigmoid_with_the_one_last, "tf.sigmoid(s)"),
    ],
)
def test_an_eager_loop_knows_what_an_exponential_is_part_of(function, code):
    """Although nothing holds the values in between any more."""
    weight = tf.Variable(1.0)

    def slope(s):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(function(weight * s)))
        return tape.gradient(loss, weight)

    with tfsafe.check_numerics():
        slope(tf.constant([[1.0, 2.0]]))
        with pytest.raises(tfsafe.NumericsError) as caught:
            slope(tf.constant(S))
    assert caught.value.findings[0].suggested_code == code


def contrastive(s):
    likeness = tf.exp(tf.linalg.diag_part(s))
    return -tf.math.log(likeness / tf.reduce_sum(tf.exp(s), axis=1))


def odds_of_two(s):
    a, b = tf.exp(s[:, 0]), tf.exp(s[:, 1])
    return tf.math.log(a / (a + b))


def log_softmax_that_is_computed_twice(s):
    return tf.math.log(tf.exp(s) / tf.reduce_sum(tf.exp(s), axis=-1, keepdims=True))


def by_terms(s):
    return tfsafe.ops.logsumexp(s, axis=1) - tf.linalg.diag_part(s)


def by_difference(s):
    return tfsafe.ops.log_sigmoid(s[:, 0] - s[:, 1])


@pytest.mark.parametrize("mode", modes.MODES)
@pytest.mark.parametrize(
    ("function", "words", "mended"),
    [
        (contrastive, "is a - tfsafe.ops.logsumexp(b), with the axis", by_terms),
        (odds_of_two, "is tfsafe.ops.log_sigmoid(a - b)", by_difference),
        (log_softmax_that_is_computed_twice, "logarithm of this softmax", None),
    ],
)
def test_a_quotient_of_other_exponentials_is_no_softmax(function, words, mended, mode):
    s = tf.constant([[200.0, 203.0], [199.0, 198.0]])
    (found,) = [
        each
        for each in raised_by(modes.compile_for(mode, function), s)
        if each.op_type == "Exp"
    ][:1]
    assert words in found.suggestion
    assert ("log_softmax" in found.suggested_code) == (mended is None)
    if mended is not None:
        exact = function(tf.cast(s, tf.float64))
        assert_close(mended(s), exact, 32, why="numbers of 200 that differ by 3")


def raised_by(function, *arguments):
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(function)(*arguments)
    return caught.value.findings


def test_a_later_line_that_a_suggestion_replaces_is_known():
    found = finding_of(softmax_over_columns, [tf.constant(S)], False)
    later = found.site.line + 1
    assert (found.replaced_line, found.site.source) == (later, "e = tf.exp(s)")
    page = tfsafe.NumericsError("text", [found]).to_html()
    assert "<del>- return e / tf.reduce_sum(e, axis=0, keepdims=True)</del>" in page
    assert "<ins>+ return tfsafe.ops.softmax(s, axis=0)</ins>" in page


def test_of_equal_operations_on_a_line_the_one_that_failed_is_known():
    def divergence(s, t):
        p, q = tf.nn.softmax(s), tf.nn.softmax(t)
        return tf.reduce_sum(p * (tf.math.log(p) - tf.math.log(q)))

    calm, wild = [1.0, 0.0], [200.0, 0.0]
    # XLA: the graph optimizer mends it.
    run = tf.function(divergence, jit_compile=True, autograph=False)
    for s, t, meant in ((calm, wild, "q"), (wild, calm, "p")):
        found = finding_of(run, [tf.constant(s), tf.constant(t)], False)
        assert found.replaces == f"tf.math.log({meant})"


def test_of_different_operations_on_an_eager_line_the_one_that_failed_is_known():
    def quotients(x, y, z):
        return x / y + z / x + (
            x / z
        )  # fmt: skip

    one, zero = tf.constant(1.0), tf.constant(0.0)
    for arguments, meant in (
        ((one, zero, one), "x / y"),
        ((one, one, zero), "x / z"),
        ((zero, one, one), "z / x"),
    ):
        with pytest.raises(tfsafe.NumericsError) as caught:
            tfsafe.checked(quotients)(*arguments)
        (found,) = caught.value.findings
        # Python 3.10 does not know the expression.
        expected = {meant} if sys.version_info >= (3, 11) else {meant, ""}
        assert found.replaces in expected


def test_ragged_rows_take_the_code_by_their_values():
    def entropies(p):
        return -tf.reduce_sum(p * tf.math.log(p), axis=1)

    rows = tf.ragged.constant([[0.5, 0.5], [], [0.0, 1.0]])
    code = finding_of(entropies, [rows], False).suggested_code
    assert code == "tf.ragged.map_flat_values(tfsafe.ops.xlogy, p, p)"
    products = eval(code, {"tf": tf, "tfsafe": tfsafe, "p": rows})
    assert_close(-tf.reduce_sum(products, 1), [np.log(2), 0, 0])

    def shares(p):
        return p / tf.reduce_sum(p, axis=1, keepdims=True)

    found = finding_of(shares, [tf.ragged.constant([[0.0, 0.0], [1.0]])], False)
    assert found.row == 0
    assert not found.suggested_code
    assert "tf.ragged.map_flat_values(f, rows)" in found.suggestion


def test_the_mean_of_an_empty_ragged_row_is_reported_as_such():
    rows = tf.ragged.constant([[1.0, 2.0], []])
    found = finding_of(lambda rows: tf.reduce_mean(rows, axis=1), [rows], False)
    assert found.row == 1
    start, end = found.suggestion.index("tfsafe"), found.suggestion.index(" is 0")
    code = found.suggestion[start:end]
    assert_close(eval(code, {**globals(), "rows": rows}), [1.5, 0.0])


def test_an_exponential_is_reported_as_the_softmax_that_it_is_part_of(mode):
    function = modes.compile_for(mode, softmax)
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(function)(tf.constant(S))
    assert caught.value.findings[0].suggested_code == "tfsafe.ops.softmax(s, axis=-1)"


def test_a_quotient_of_different_functions_is_not_called_a_softmax():
    def density(x):
        return tf.math.log(tf.exp(x * 0.5) / tf.math.bessel_i0(x))

    finding = finding_of(density, [tf.constant([1.0, 200.0])], is_gradient=False)
    assert not finding.suggested_code


def half_of_two(a, b):
    e = tf.exp(a)
    return e / (e + tf.exp(b))


def tangent(x):
    return (tf.exp(x) - tf.exp(-x)) / (tf.exp(x) + tf.exp(-x))


def quotient_on_two_lines(x):
    e = tf.exp(x)
    return e / (1.0 + e)


def share_of_two(x):
    return tf.exp(x) / (tf.exp(x) + tf.exp(0.0 * x))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (half_of_two, [[200.0], [100.0]]),
        (tangent, [[200.0]]),
        (quotient_on_two_lines, [[200.0, 1.0]]),
        (share_of_two, [[200.0]]),
    ],
)
def test_a_quotient_by_a_sum_of_two_is_not_called_a_softmax(function, arguments):
    found = finding_of(function, [*map(tf.constant, arguments)], False)
    assert "softmax" not in f"{found.suggested_code} {found.suggestion}"
    assert "exp(a) / (exp(a) + exp(b)) is tf.sigmoid(a - b)" in found.suggestion


@pytest.mark.parametrize("shift", [100.0, -150.0])
def test_a_logarithm_of_running_sums_of_exponentials_is_named(shift):
    def partial(risk):
        return tf.math.log(tf.cumsum(tf.exp(risk), axis=0))

    risk = tf.constant([1.0, 2.0, 3.0]) + shift
    words = finding_of(partial, [risk], False).suggestion
    assert words.startswith("log(cumsum(exp(x))) is tfsafe.ops.cumulative_logsumexp(x)")
    assert np.isfinite(tfsafe.ops.cumulative_logsumexp(risk, axis=0)).all()


def test_a_mask_by_an_infinity_is_told_to_select():
    def masked_scores(s, m):
        return tf.nn.softmax(s * m + (1.0 - m) * -np.inf)

    words = finding_of(masked_scores, [tf.constant([1.0, 2.0])] * 2, False).suggestion
    assert words.startswith("0 times an infinity is NaN. Select instead")
    assert "tf.where(tf.cast(mask, bool), x, x.dtype.min)" in words


def test_a_weight_that_is_not_0_where_the_logarithm_is_infinite_is_not_suggested():
    @tf.function
    def step(y, b, u):
        with tf.GradientTape() as tape:
            tape.watch(b)
            loss = tf.reduce_sum(u * (b * tf.math.log(y)))
        return loss, tape.gradient(loss, b)

    # xlogy(b, y) is infinite there, too.
    arguments = [[0.0, 1.0], [0.5, 0.5], [0.0, 1.0]]
    found = finding_of(step, [*map(tf.constant, arguments)], False)
    assert not found.suggested_code
    assert "tf.maximum(y, 1e-6)" in found.suggestion


@pytest.mark.parametrize(
    ("function", "labels", "x"),
    [
        (cross_entropy_by_hand, ONE_HOT, FAR),
        (lambda y, p: -tf.reduce_sum(y * tf.math.log(p)), ONE_HOT, [[1.0, 0.0, 0.0]]),
    ],
    ids=["logits", "probabilities"],
)
@pytest.mark.parametrize("mode", modes.MODES)
def test_a_cross_entropy_of_a_class_of_probability_0_is_told_to_take_logits(
    function, labels, x, mode
):
    run = tfsafe.checked(modes.compile_for(mode, function))

    def reported(y):
        with pytest.raises(tfsafe.NumericsError) as caught:
            run(tf.constant(y), tf.constant(x))
        return caught.value.findings[0]

    found = reported(labels)
    assert "xlogy" not in found.suggestion + found.suggested_code
    assert "tfsafe.losses.StableCrossEntropy" in found.suggestion
    if function is cross_entropy_by_hand:
        assert found.suggested_code == "tfsafe.ops.log_softmax(s, axis=-1)"
    else:
        assert "a probability of 0 has a weight that is not 0" in found.suggestion
        assert "StableCrossEntropy(from_logits=True)(y, logits)" in found.suggestion
    # Where the weight is 0, the product is mended.
    assert reported([[1.0, 0.0, 0.0]]).suggested_code == "tfsafe.ops.xlogy(y, p)"


@pytest.mark.parametrize(("dtype", "bound"), [("float32", "1e-6"), ("float16", "1e-3")])
def test_a_quotient_by_a_tiny_number_is_told_to_bound_that(dtype, bound):
    scale = np.array([np.finfo(dtype).tiny * 2], dtype)
    found = finding_of(quotient, [tf.constant([9.0], dtype), tf.constant(scale)], False)
    assert f"tf.maximum(b, {bound})" in found.suggestion
    assert "earning rate" not in found.suggestion


def contrast(s):
    alike = tf.exp(s)
    others = tf.reduce_sum(alike, 1) - tf.linalg.diag_part(alike)
    return -tf.math.log(tf.linalg.diag_part(alike, k=1) / others[:1])


@pytest.mark.parametrize(
    ("function", "is_logarithm"),
    [
        (contrast, True),
        # Of a probability, not of the exponentials.
        (lambda s: tf.math.log(tf.sigmoid(tf.exp(s) * tf.exp(-s))), False),
        (lambda s: tf.reduce_sum(tf.exp(s)), False),
    ],
    ids=["ratio", "probability", "none"],
)
def test_exponentials_whose_logarithm_is_taken_later_are_told_to_stay_in_log_space(
    function, is_logarithm
):
    s = tf.constant([[100.0, 99.0], [99.0, 100.0]])
    words = finding_of(function, [s], False).suggestion
    assert ("its logarithm is taken later, so stay in log space" in words) == (
        is_logarithm
    )
    assert ("bound it, if it is a scale" in words) != is_logarithm


@pytest.mark.parametrize(
    ("dtype", "scale", "is_gradient"),
    [("float16", 2.0**15, True), ("bfloat16", 2.0**127, True), ("float16", 6e4, False)],
)
def test_a_gradient_beyond_float16_is_told_to_lower_the_scale_of_the_loss(
    dtype, scale, is_gradient
):
    def scaled(x):
        return tf.cast(tf.reduce_sum(x * x), "float32") * scale

    x = tf.constant([2.0 if is_gradient else 300.0], dtype)
    words = finding_of(scaled, [x], is_gradient).suggestion
    assert "compute this part in float32" in words
    is_told = dtype == "float16" and is_gradient
    assert words.startswith("if the loss is multiplied by a scale") == is_told


def test_a_softmax_of_a_transposed_tensor_is_told_to_transpose_first():
    def assigned(scores):
        q = tf.transpose(tf.exp(scores / 0.0625))
        return q / tf.reduce_sum(q)

    scores = tf.constant([[10.0, 9.0], [6.0, 9.75]])
    finding = finding_of(assigned, [scores], False)
    assert "transpose first: tfsafe.ops.softmax(tf.transpose(x))" in finding.suggestion
    expected = [mpmath.exp((each - 10) / 0.0625) for each in [10, 6, 9, 9.75]]
    expected = [float(each / sum(expected)) for each in expected]
    mended = tfsafe.ops.softmax(tf.transpose(scores / 0.0625), axis=None)
    stable = tfsafe.stabilize(tf.function(assigned, autograph=False))(scores)
    for each in (mended, stable):
        assert_close(tf.reshape(each, [-1]), expected)


@pytest.mark.parametrize("is_stable", [False, True])
def test_a_gradient_beyond_float16_is_one_in_a_model_in_its_stable_form_too(is_stable):
    dense = keras.layers.Dense(4, dtype="mixed_float16")
    model = keras.Sequential([
        keras.Input([2]),
        dense,
        keras.layers.Dense(1, dtype="float32"),
    ])
    inner = keras.optimizers.SGD()
    optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0**30)
    model.compile(optimizer, "mse", jit_compile=False)
    if is_stable:
        model = tfsafe.stabilize(model)
    checked = tfsafe.checked(model, checks="full", strict=True)
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked.fit(np.ones([4, 2]), np.ones([4, 1]), verbose=0)
    finding = caught.value.findings[0]
    assert (finding.is_gradient, finding.forward_op) == (True, "Cast")
    assert finding.suggestion.startswith("if the loss is multiplied by a scale")


@pytest.mark.parametrize("is_of_layer", [False, True])
def test_without_a_layer_half_precision_is_left_by_a_cast(is_of_layer):
    def energy(x):
        return tf.reduce_sum(x * x)

    def widened(x):
        return energy(tf.cast(x, tf.float32))

    function = keras.layers.Lambda(energy, dtype="float16") if is_of_layer else energy
    x = tf.constant([300.0, 1.0], tf.float16)
    words = finding_of(function, [x], False).suggestion
    assert words.startswith("compute this part in float32")
    assert ("dtype='float32' on its layer" in words) == is_of_layer
    assert ("from tf.cast(x, tf.float32) on" in words) != is_of_layer
    assert widened(x) == 300.0**2 + 1


def added(x, mask):
    return tf.nn.softmax(x + tf.cast((1.0 - mask) * -1e9, tf.float16)[:, None])


def selected(x, mask):
    return tf.nn.softmax(tf.where(tf.cast(mask, bool)[:, None], x, x.dtype.min))


def narrowed(x, mask):
    return tf.cast(mask[:, None] * -1e9, tf.float16) + x


def test_of_a_mask_beyond_float16_no_explosion_is_said():
    x = tf.constant([[[3.0, 1.0]], [[1.0, 2.0]]], tf.float16)
    mask = tf.constant([[1.0, 0.0], [0.0, 0.0]])
    finding = finding_of(added, [x, mask], False)
    assert finding.op_type == "Cast"
    assert finding.suggestion.startswith("float16 ends at 65504")
    assert "exploded" not in finding.suggestion
    assert is_finite(selected, [x, mask], False)
    expected = tf.nn.softmax(tf.constant([[[3.0, -np.inf]], [[0.0, 0.0]]]))
    np.testing.assert_array_equal(selected(x, mask), tf.cast(expected, tf.float16))
    # No softmax: it may be an explosion.
    assert "have exploded" in finding_of(narrowed, [x, mask], False).suggestion


SEGMENTS = [0, 0, 1, 1]
OF_NO_ROW = float("inf")


def segment_softmax(x):
    e = tf.exp(x)
    return e / tf.gather(tf.math.segment_sum(e, SEGMENTS), SEGMENTS)


def segment_logsumexp(x):
    return tf.math.log(tf.math.unsorted_segment_sum(tf.exp(x), SEGMENTS, 2))


def sine_quotient(x):
    return tf.sin(x) / x


def versed_sine(x):
    return (1 - tf.cos(x)) / (x * x)


def box_cox(x):
    return (tf.pow(3.0, x) - 1) / x


def squashed(x):
    return tf.tanh(x) * 2.0 / x


def bessel(x):
    return tf.math.log(tf.math.bessel_i0(x))


@pytest.mark.parametrize("is_stable", [False, True])
def test_what_is_on_already_is_not_suggested(is_stable):
    function = normalized_row
    if is_stable:
        function = tfsafe.stabilize(rules=["log-of-softmax"])(function)
    found = finding_of(function, [tf.constant([0.0, 0.0])], False)
    assert (found.site.function, found.op_type) == ("normalized_row", "RealDiv")
    assert found.suggested_code == "tfsafe.ops.normalize(s)"
    assert (choice.REWRITES in found.suggestion) == (not is_stable)


@pytest.mark.parametrize(
    ("function", "argument", "words"),
    [
        (segment_softmax, [1.0, 2.0, 150.0, 149.0], "this is a softmax over segments"),
        (segment_logsumexp, [1.0, 2.0, 150.0, 1.0], "this is a logsumexp over segment"),
        (sine_quotient, [0.0, 1.0], "numerator and denominator are 0 there"),
        (box_cox, [0.0, 1.0], "numerator and denominator are 0 there"),
        (squashed, [0.0, 1.0], "numerator and denominator are 0 there"),
        (versed_sine, [0.0, 1.0], "numerator and denominator are 0 there"),
        (bessel, [1.0, 1000.0], "tf.math.bessel_i0e and bessel_i1e are scaled"),
    ],
)
def test_a_formula_by_hand_is_named_and_rewritten(function, argument, words):
    x = tf.constant(argument)
    finding = finding_of(function, [x], is_gradient=False)
    assert finding.suggestion.startswith(words)
    assert choice.REWRITES in finding.suggestion
    assert np.isfinite(tfsafe.stabilize(tf.function(function))(x)).all()


@pytest.mark.parametrize(
    ("function", "dtype", "bound"),
    [
        (lambda s: tf.exp(s) * 2.0, "float32", "tf.exp(tf.minimum(s, 20.0))"),
        (lambda s: tf.exp(s) * 2.0, "float16", "tf.exp(tf.minimum(s, 10.0))"),
        (
            lambda log_p: tf.exp(log_p - tf.zeros_like(log_p)),
            "float32",
            "tf.exp(tf.clip_by_value(log_p - tf.zeros_like(log_p), -20.0, 20.0))",
        ),
    ],
)
def test_an_exponential_gets_a_bound_with_a_number(function, dtype, bound):
    x = tf.constant([200.0, 1.0], dtype)
    words = finding_of(tf.function(function, autograph=False), [x], False).suggestion
    assert f": {bound}" in words
    (name,) = function.__code__.co_varnames
    assert np.isfinite(eval(bound, {"tf": tf, name: x})).all()
    assert "softmax" not in words
    assert ("tf.exp(tf.cast(s, tf.float32))" in words) == (dtype == "float16")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x / (tf.sqrt(x) + 1e-8), "an epsilon below 3e-8 is 0 in float16"),
        (lambda x: x / tf.sqrt(x + 1e-8), "an epsilon below 3e-8 is 0 in float16"),
        (lambda x: x / tf.sqrt(x), "returns 0, with gradient 0, where"),
        (lambda x: x + (1 - x) * tf.cast(-1e9, x.dtype), "float16 ends at 65504"),
        (
            lambda x: x * tf.constant(OF_NO_ROW, x.dtype),
            "a constant is infinite where the dtype cannot hold it, or where NumPy",
        ),
        (
            lambda x: x * tf.constant(np.inf, x.dtype),
            "0 times an infinity is NaN. Select instead",
        ),
        (lambda x: tf.math.lgamma(x), "keep the argument above 0"),
    ],
)
def test_what_half_precision_and_poles_need_is_said(function, words):
    x = tf.constant([0.0, 1.0], tf.float16)
    finding = finding_of(tf.function(function, autograph=False), [x], False)
    assert finding.suggestion.startswith(words), finding


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: tf.math.lgamma(tf.nn.relu(x - 0.5)), "a ReLU is exactly 0"),
        (lambda x: tf.math.log((1 + x) / x), "tfsafe.ops.divide(1 + x, x) would be 0"),
        (lambda x: tf.math.log(3 / x), "tfsafe.ops.divide(3, x) would be 0"),
        (lambda x: tf.math.log(x / (1 - x)), "log(p / (1 - p)) is infinite at 0 and"),
        (lambda x: tf.math.log((x + 1) / (1 - x)), "the denominator is a differ"),
        (lambda x: tf.nn.softmax((x + 1) / x), "at a temperature of 0 all the"),
        (lambda x: (x + 1) / (1.0 - tf.pow(0.5, x)), "a power is 1 where the exponent"),
        (lambda t: (t + 1) / (1 - 0.5**t), "a power is 1 where the exponent is 0"),
        (
            lambda t: (t + 1) / (1.0 - 0.5 ** tf.cast(t, tf.float32)),
            "a power is 1 where the exponent is 0: count the steps from 1",
        ),
        (
            lambda t: t / (1.0 - 0.5 ** tf.cast(t, tf.float32)),
            "numerator and denominator are 0 there",
        ),
        (
            lambda t: (t + 1) / (1.0 - tf.cos(t)),
            "the denominator is a difference that the dtype cannot tell from 0",
        ),
        (
            lambda x: tf.math.log(tf.nn.relu6(3 * x - 3) / 6),
            "a ReLU6 is exactly 0 below its range, and so is a hard sigmoid",
        ),
        (
            lambda mask: tf.math.log(tf.cast(mask > 0, tf.float32)),
            "the logarithm of a mask is -inf where it is 0, and a row",
        ),
        (lambda t: 0.0 / (1 - 0.5**t), "a power is 1 where the exponent is 0"),
        (lambda t: t / (1 - tf.pow(0.5, t)), "numerator and denominator are 0 there"),
    ],
)
def test_what_a_quotient_of_0_would_not_mend_is_told_otherwise(function, words):
    x = tf.constant([0.0, 1.0])
    finding = finding_of(tf.function(function, autograph=False), [x], False)
    assert finding.suggestion.startswith(words), finding
    assert not finding.suggested_code


def test_a_statement_of_several_lines_is_read_at_the_line_of_the_operation():
    @tf.function
    def function(t):
        return tf.stack([
            3.0 * t,
            t / (t - t),
        ])

    finding = finding_of(function, [tf.constant(1.0)], is_gradient=False)
    assert finding.site.source == "t / (t - t),"
    assert finding.suggested_code == "tfsafe.ops.divide(t, t - t)"


@pytest.mark.parametrize("autograph", [True, False, None])
@pytest.mark.parametrize(
    ("y", "q", "source", "meant"),
    [
        (0.0, 1.0, "x / y", "x / y"),
        (1.0, 0.0, "- (1 - x) / q", "(1 - x) / q"),
    ],
)
def test_of_quotients_on_several_lines_the_one_that_failed_is_known(
    autograph, y, q, source, meant
):
    def function(x, y, q):
        total = 0.0
        for _ in range(2):
            # fmt: off
            total += tf.abs(
                x / y
                - (1 - x) / q
            )
            # fmt: on
        return total

    run = function
    if autograph is not None:
        run = tf.function(function, autograph=autograph)
    arguments = [*map(tf.constant, (0.5, y, q))]
    finding = finding_of(run, arguments, is_gradient=False)
    assert (finding.site.source, finding.replaces) == (source, meant)
    above, below = meant.strip().split(" / ")
    numerator = above.strip("()")
    assert finding.suggested_code == f"tfsafe.ops.divide({numerator}, {below})"


def test_a_quotient_over_several_lines_is_at_the_line_of_its_denominator():
    def function(t, u):
        # fmt: off
        mean = (
            t
            + u
        ) / (
            t - u
        )
        # fmt: on
        return tf.exp(mean)

    for each in (function, tf.function(function)):
        ones = [tf.constant(1.0), tf.constant(1.0)]
        finding = finding_of(each, ones, is_gradient=False)
        assert finding.site.source == "t - u"
        assert finding.suggested_code == "tfsafe.ops.divide(t + u, t - u)"
        assert finding.replaces == "(t + u) / (t - u)"


@pytest.mark.parametrize(
    ("bound", "start"), [("relu", "random"), ("relu", "orthogonal"), ("tanh", "random")]
)
def test_of_values_that_a_loop_multiplied_the_loop_is_told(bound, start):
    activation = {"relu": tf.nn.relu, "tanh": tf.tanh}[bound]
    w = 3.0 * tf.random.stateless_normal([8, 8], [1, 2])
    if start == "orthogonal":
        w = tf.linalg.qr(w)[0]

    @tf.function
    def state(h):
        for _ in tf.range(60):
            h = activation(h @ w)
        return h

    if bound == "relu" and start == "random":
        finding = finding_of(state, [tf.ones([1, 8])], is_gradient=False)
        assert finding.op_type == "MatMul"
        (steps,) = finding.iteration
        assert f" after {steps} iterations of the loop: bound" in finding.suggestion
        assert "by tanh" in finding.suggestion
        assert "keras.initializers.Orthogonal()" in finding.suggestion
        assert "learning rate, clip" not in finding.suggestion
    else:
        assert np.isfinite(tfsafe.checked(state)(tf.ones([1, 8]))).all()


def test_of_values_that_a_loop_raised_to_a_constant_power_the_loop_is_told():
    @tf.function
    def state(h):
        for _ in tf.range(60):
            h = h + 0.1 * h**3
        return h

    finding = finding_of(state, [tf.fill([1, 2], 4.0)], is_gradient=False)
    assert finding.op_type == "Pow"
    (steps,) = finding.iteration
    assert f" after {steps} iterations of the loop: bound" in finding.suggestion


def test_the_reciprocal_of_a_root_is_suggested_without_two_signs():
    finding = finding_of(lambda deg: deg**-0.5, [tf.constant([0.0, 4.0])], False)
    code = finding.suggested_code
    assert code == "tfsafe.ops.pow(tfsafe.ops.reciprocal(deg), 0.5)"
    deg = tf.constant([0.0, 4.0])
    assert eval(code, {"tfsafe": tfsafe, "deg": deg}).numpy().tolist() == [0.0, 0.5]


def test_the_logarithm_of_a_frequency_gets_a_count_more():
    @tf.function
    def function(counts):
        return tf.math.log(counts / tf.reduce_sum(counts))

    finding = finding_of(function, [tf.constant([2.0, 0.0])], is_gradient=False)
    assert "add 1 to each count before the division" in finding.suggestion


@pytest.mark.parametrize(
    ("amounts", "is_share"), [([0.0, 50.0], False), ([0.0, 0.5], True)]
)
def test_the_logarithm_of_an_amount_is_not_told_of_probabilities(amounts, is_share):
    @tf.function
    def function(price):
        return tf.math.log(price)

    words = finding_of(function, [tf.constant(amounts)], is_gradient=False).suggestion
    assert "tf.maximum(price, 1e-6)" in words
    assert ("probability" in words) == is_share


@pytest.mark.parametrize("probability", [tf.nn.softmax, tf.sigmoid])
def test_a_loss_of_probabilities_is_told_to_end_the_model_without_them(probability):
    dense = tf.Variable([[-200.0, 200.0]])

    def model(x):
        return probability(x @ dense)

    def loss(x):
        y_pred = model(x)
        return -tf.reduce_sum(tf.constant([1.0, 0.0]) * tf.math.log(y_pred))

    words = finding_of(loss, [tf.ones([1, 1])], is_gradient=False).suggestion
    assert words.startswith(f"tfsafe.ops.log_{probability.__name__[:7]}(logits) takes")
    assert "end the model without the activation" in words


def test_the_logarithm_of_a_prediction_below_0_names_activation_and_logits():
    @tf.function
    def function(y_pred):
        return tf.math.log(y_pred)

    finding = finding_of(function, [tf.constant([-2.0])], is_gradient=False)
    assert "activation='softplus'" in finding.suggestion
    assert "from_logits=True" in finding.suggestion
    assert "tf.maximum(y_pred, 1e-6)" in finding.suggestion


def test_a_line_that_is_a_part_of_a_statement_is_read_as_an_expression():
    @tf.function
    def function(t):
        return tf.reduce_sum(
            t / (t + 1.0) + (t - 1.0) / (t - 2.0), axis=0
        )  # fmt: skip

    finding = finding_of(function, [tf.constant([2.0])], is_gradient=False)
    assert finding.suggested_code == "tfsafe.ops.divide(t - 1.0, t - 2.0)"


@pytest.mark.parametrize(
    ("code", "safe"),
    [
        ("a, tf.norm(a, axis=-1)", "a, tfsafe.ops.norm(a, axis=-1)"),
        ("a, b * keras.ops.std(x)", "a, b * tfsafe.ops.std(x)"),
        ("tf.sqrt(x), tf.sqrt(y)", "tf.sqrt(x), tfsafe.ops.sqrt(y)"),
        ("a, tf.norm(a, 2, -1)", "a, tf.norm(a, 2, -1)"),
        ("a, math.sqrt(n)", "a, math.sqrt(n)"),
    ],
)
def test_the_root_in_a_denominator_is_made_safe_with_the_division(code, safe):
    suggested = source_names.safe_below(f"tfsafe.ops.divide({code})")
    assert suggested == f"tfsafe.ops.divide({safe})"


def test_a_vector_over_its_norm_has_a_finite_gradient_as_suggested():
    def unit(a):
        return a / tf.sqrt(tf.reduce_sum(a * a, axis=-1, keepdims=True))

    rows = tf.constant([[3.0, 4.0], [0.0, 0.0]])
    code = finding_of(unit, [rows], False).suggested_code
    slope = derived(lambda a: eval(code, {"tf": tf, "tfsafe": tfsafe, "a": a}))(rows)
    # Of x / |x|: (|x|^2 - x (x + y)) / |x|^3, and 0 where it is not defined.
    assert_close(slope, [[[0.032, -0.024], [0.0, 0.0]]])


def test_arguments_that_are_not_known_have_names_that_say_what_they_are():
    named = source_names.in_words("RealDiv", "tfsafe.ops.divide({0}, {1})")
    assert named == "tfsafe.ops.divide(numerator, denominator)"
    named = source_names.in_words("Log", "tfsafe.ops.log_softmax({inner})")
    assert named == "tfsafe.ops.log_softmax(logits)"


@pytest.mark.parametrize(
    ("arguments", "keywords", "data"),
    [
        (("a",), {}, "a"),
        ((), {"x": "a"}, "a"),
        ((), {"y": "a", "x": "b"}, "b"),
        # Which of several x is cannot be read from the call.
        (("a", "b"), {}, ""),
        (("a", "b"), {"x": "c"}, "c"),
        (("a", "b"), {"y": "c"}, ""),
    ],
)
def test_the_argument_that_failed_is_the_data_to_check(arguments, keywords, data):
    code = choice.survey("argument `x`", caller.Call("step", arguments, keywords))
    wanted = f'tfsafe.data.check_finite({data}, policy="report")' if data else ""
    assert code == wanted


def test_data_that_a_call_makes_are_made_once():
    call = caller.Call("model.fit", ("np.load('x.npy')", "y"), {})
    code = choice.survey("argument `x`", call)
    assert code == (
        "x, y = np.load('x.npy'), y\n"
        'tfsafe.data.check_finite((x, y), policy="report")'
    )


@pytest.mark.parametrize(
    ("op", "fault", "line", "bound"),
    [
        ("Log", "negative", "y = tf.math.log(1.0 - 2.0 * e)", "maximum({}, 1e-6)"),
        ("Log", "domain", "y = tf.math.log(1.0 - 2.0 * e)", "maximum({}, 1e-6)"),
        ("Log", "domain", "model.fit(x, y)", "maximum(x, 1e-6)"),
        ("Log", "domain", "db = 10 * ops.log10(1.0 - 2.0 * e)", "maximum({}, 1e-6)"),
        ("Xlogy", "negative", "tf.math.xlogy(w, 1.0 - 2.0 * e)", "maximum({}, 1e-6)"),
        ("Lgamma", "domain", "tf.math.lgamma(1.0 - 2.0 * e)", "softplus({}) + 1e-6"),
    ],
)
def test_a_suggested_bound_is_of_what_the_line_has(op, fault, line, bound):
    found = choice.fix_of(choice.Failure(op, fault, False, "float32", [], line))
    assert bound.format("1.0 - 2.0 * e") in found.words
    assert "{" not in found.words


def test_a_logarithm_of_another_base_is_not_replaced_by_a_natural_one():
    failure = choice.Failure("Log", "domain", True, "float32", [], "y = ops.log10(x)")
    assert not choice.fix_of(failure).code


def log_of_a_difference(x):
    return tf.math.log(1.0 - x)


def log_of_odds(x):
    return tf.math.log(x / (1.0 - x))


def difference_of_odds(x):
    return tf.math.log(x) - tf.math.log(1.0 - x)


def root_of_eigenvalues(x):
    return (0.4 - x) ** -0.5


def far_exponential(x):
    return tf.exp(40.0 * x)


# What is suggested, and how a program would write it.
_ENDS = [
    (rapidity, r"^(tf\.atanh\(.*\))$", "{}"),
    (gaussian_ranks, r"^(tf\.math\.erfinv\(.*\))$", "{}"),
    (normal_quantiles, r"^(tf\.math\.ndtri\(.*\))$", "{}"),
    (log_of_a_difference, r"finite: (tf\.maximum\(.*\))\.$", "tf.math.log({})"),
    (log_of_odds, r"as (tf\.clip_by_value\(p, .*?\)) does", "log_of_odds({})"),
    (
        difference_of_odds,
        r"as (tf\.clip_by_value\(p, .*?\)) does",
        "difference_of_odds({})",
    ),
    (root_of_eigenvalues, r"below: (tf\.maximum\(.*?\))\. A", "({}) ** -0.5"),
    (far_exponential, r"tf\.where: (tf\.exp\(tf\.minimum.*?\)\))", "{}"),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("function", "pattern", "written"), _ENDS, ids=[e[0].__name__ for e in _ENDS]
)
def test_a_suggested_number_is_not_rounded_away_in_the_dtype_of_the_operation(
    function, pattern, written, dtype
):
    x = tf.constant([0.5, 1.0], dtype)
    if function is far_exponential:
        x *= 20.0
    try:
        function(x)
    except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
        pytest.skip(f"TensorFlow has no kernel for {dtype}")
    finding = finding_of(function, [x], False)
    text = finding.suggested_code or finding.suggestion
    found = re.search(pattern, text)
    assert found, text
    code = written.format(found[1])
    known = {"tf": tf, **{each[0].__name__: each[0] for each in _ENDS}}

    def suggested(x):
        return eval(code, known, {"x": x, "p": x, "r": x, "v": x})

    value = suggested(x)
    assert value.dtype == dtype
    assert np.isfinite(value).all(), code
    (slope,) = derived(suggested)(x)
    assert np.isfinite(slope).all(), code


def gumbel(u):
    return -tf.math.log(-tf.math.log(u))


def test_a_suggested_draw_is_above_0_in_its_dtype():
    for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64):
        row = fixes.FIXES[0]._replace(words="{least}").in_dtype(dtype.name)
        least = float(row.words)
        draw = tf.cast(least, dtype)
        assert 0 < draw < 1e-3
        assert np.isfinite(tf.cast(gumbel(draw), tf.float64))


def crossentropy_of_a_number(y, p):
    return -tf.reduce_sum(y * tf.math.log(p) + (1 - y) * tf.math.log(1 - p))


def crossentropy_in_the_other_order(y, p):
    return -tf.reduce_sum((1.0 - y) * tf.math.log(1.0 - p) - -y * tf.math.log(p))


@pytest.mark.parametrize(
    ("function", "numbers", "above"),
    [
        (crossentropy_of_a_number, [0.0, 2.5], "p"),
        (crossentropy_of_a_number, [0.0, 0.5], ""),
        (crossentropy_in_the_other_order, [1.0, -1.5], "1.0 - p"),
        (crossentropy_in_the_other_order, [1.0, 0.5], ""),
    ],
)
def test_the_cross_entropy_of_a_number_above_one_is_told_that_of_logits(
    function, numbers, above
):
    """A weight of 0 mends one of its logarithms; the other stays NaN."""
    y, z = tf.constant([numbers[0], 1.0]), tf.constant(numbers)
    found = finding_of(function, [y, z], False)
    assert found.op_type == "Log"
    is_told = f"{above} is above 1 elsewhere, unlike" in found.suggestion
    assert is_told == bool(above)
    if is_told:
        stable = tfsafe.losses.StableCrossEntropy(from_logits=True)
        assert "tfsafe.losses.StableCrossEntropy(from_logits=True)" in found.suggestion
        assert np.isfinite(stable(y[:, None], z[:, None]))
