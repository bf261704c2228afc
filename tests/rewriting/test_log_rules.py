"""Logarithms of probabilities and exponentials: rules, values, slopes, near misses."""

import mpmath as mp
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired, rewritten
from tests.rewriting.log_cases import LOGARITHMS, Case
from tests.rewriting.tables import LOGARITHMS as RULES
from tests.support import contrast, modes, oracle
from tests.support.oracle import assert_close

CASES = [pytest.param(case, id=case.text) for case in LOGARITHMS]


def _argument(case: Case, dtype=tf.float32) -> tf.Tensor:
    return tf.constant(case.points, dtype)


def _truth(case: Case, x: tf.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Returns the exact values and slopes at the rounded points."""
    values, slopes = [], []
    with mp.workdps(250):
        for point in np.asarray(tf.cast(x, tf.float64)):
            if case.is_of_rows:
                row = [mp.mpf(float(v)) for v in point]
                values.append(case.exact(row))
                slopes.append([
                    mp.diff(
                        lambda *r: case.exact(list(r)),
                        tuple(row),
                        tuple(int(i == j) for j in range(len(row))),
                    )
                    for i in range(len(row))
                ])
            else:
                values.append(case.exact(mp.mpf(float(point))))
                slopes.append(mp.diff(case.exact, mp.mpf(float(point))))
    return np.array(values, object), np.array(slopes, object)


@pytest.mark.parametrize("case", CASES)
def test_value_and_slope_are_those_of_the_formula_in_exact_arithmetic(case):
    x = _argument(case)
    assert case.rule in fired(RULES, case.naive, x)
    value, (slope,) = modes.value_and_gradients(
        rewritten(RULES, case.naive), [x], "graph"
    )
    values, slopes = _truth(case, x)
    scale = np.abs(values).max() if case.is_of_rows else 0
    assert oracle.ulp_error(value, values, 0.05 * scale) <= 16
    # A slope of a row is a difference of terms of size 1.
    assert oracle.ulp_error(slope, slopes, 0.1 if case.is_of_rows else 0) <= 24


@pytest.mark.parametrize("case", CASES)
def test_the_formula_fails_when_typed_out(case):
    x = _argument(case)
    with contrast.without_grappler():
        value, (slope,) = modes.value_and_gradients(case.naive, [x], "eager")
    values, slopes = _truth(case, x)
    errors = [oracle.ulp_error(value, values), oracle.ulp_error(slope, slopes)]
    assert max(errors) > 1e3


@pytest.mark.parametrize("case", CASES)
def test_a_nan_stays_a_nan(case):
    x = tf.constant(case.points, tf.float32)
    nan = tf.concat([tf.fill([1, *x.shape[1:]], np.nan), x[1:]], 0)
    value = rewritten(RULES, case.naive)(nan)
    assert np.isnan(value[0])
    assert not np.isnan(value[1:]).any()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_what_was_right_at_an_infinity_still_is(case, infinity):
    if case.is_of_rows:
        x = tf.constant([[infinity, *case.points[1][1:]]], tf.float32)
        x = tf.repeat(x, len(case.points), 0)
    else:
        x = tf.constant([infinity])
    with contrast.without_grappler():
        naive = case.naive(x).numpy()
    got = rewritten(RULES, case.naive)(x).numpy()
    kept = ~np.isnan(naive)
    if case.rule == "log-of-guarded-probability":
        kept &= ~np.isfinite(got)
    assert_close(got[kept], naive[kept])


def _slopes_of_a_difference(x: float, y: float) -> tuple[mp.mpf, mp.mpf]:
    """Returns those of `log(sigmoid(x) - sigmoid(y))`."""
    with mp.workdps(50):
        p, q = (1 / (1 + mp.exp(-point)) for point in (x, y))
        return p * (1 - p) / (p - q), -q * (1 - q) / (p - q)


def test_a_negative_difference_of_sigmoids_has_the_slopes_of_tensorflow(mode, dtype):
    def formula(x, y):
        return tf.math.log(tf.sigmoid(x) - tf.sigmoid(y))

    narrow = [
        tf.constant(points, dtype)
        for points in ([1.0, -3.0, 0.0, -np.inf, 2.0], [2.0, -2.5, 20.0, 1.0, np.inf])
    ]
    value, slopes = modes.value_and_gradients(rewritten(RULES, formula), narrow, mode)
    assert np.isnan(value).all()
    exact = np.array([
        _slopes_of_a_difference(*map(float, xy)) for xy in zip(*narrow, strict=True)
    ])
    one = [np.ones(5)] * 2  # A slope that is nearly 0 is a difference of such near 1.
    errors = map(oracle.ulp_error, slopes, exact.T, one)
    assert max(errors) <= 3
