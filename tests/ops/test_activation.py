import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import assert_rounded, documented
from tests.ops.elementwise import (
    INF,
    NAN,
    each_place,
    each_place_and_xla_float64,
    edges,
    errors,
)
from tests.support import modes, oracle
from tfsafe import ops
from tfsafe._limits import LIMITS

SCALE = mpmath.mpf("1.0507009873554804934193349852946")
ALPHA = mpmath.mpf("1.6732632423543772848170429916717")


def _sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def _gate(x):
    return mpmath.tanh(mpmath.log1p(mpmath.exp(x)))


def _gate_slope(x):
    return mpmath.sech(mpmath.log1p(mpmath.exp(x))) ** 2 * _sigmoid(x)


def _squareplus(x):
    root = mpmath.hypot(x, 2)
    return 2 / (root - x) if x < 0 else (x + root) / 2


# For each: the value, the slope and the second derivative.
TRUTHS = {
    "tanh": (
        mpmath.tanh,
        lambda x: mpmath.sech(x) ** 2,
        lambda x: -2 * mpmath.tanh(x) * mpmath.sech(x) ** 2,
    ),
    "sigmoid": (
        _sigmoid,
        lambda x: _sigmoid(x) * _sigmoid(-x),
        lambda x: -_sigmoid(x) * _sigmoid(-x) * mpmath.tanh(x / 2),
    ),
    "elu": (
        lambda x: x if x > 0 else mpmath.expm1(x),
        lambda x: mpmath.mpf(1) if x > 0 else mpmath.exp(x),
        lambda x: mpmath.mpf(0) if x > 0 else mpmath.exp(x),
    ),
    "selu": (
        lambda x: SCALE * (x if x > 0 else ALPHA * mpmath.expm1(x)),
        lambda x: SCALE * (1 if x > 0 else ALPHA * mpmath.exp(x)),
        lambda x: mpmath.mpf(0) if x > 0 else SCALE * ALPHA * mpmath.exp(x),
    ),
    "mish": (
        lambda x: x * _gate(x),
        (lambda x: _gate(x) + x * _gate_slope(x), _gate),
        (
            lambda x: (
                _gate_slope(x) * (2 + x * (_sigmoid(-x) - 2 * _gate(x) * _sigmoid(x)))
            ),
            lambda x: _gate_slope(x) * max(2, abs(x)),
        ),
    ),
    "squareplus": (
        _squareplus,
        lambda x: _squareplus(x) / mpmath.hypot(x, 2),
        lambda x: 2 / mpmath.hypot(x, 2) ** 3,
    ),
}
# Beyond it the exponentials of every dtype underflow.
LARGEST = {"squareplus": 1e30}
BUDGETS = {"float16": 0.51, "bfloat16": 0.51, "float32": 5.0, "float64": 5.0}


@each_place_and_xla_float64
@pytest.mark.parametrize("name", TRUTHS)
def test_it_agrees_with_mpmath_up_to_second_order(name, mode, dtype):
    limits = LIMITS[dtype.name]
    high = min(LARGEST.get(name, 300.0), limits.max / 4)
    x = oracle.grid(dtype, max(4 * limits.tiny, 1e-30), high, 30)
    x = tf.concat([x, -x], 0)
    worst = errors(getattr(ops, name), [x], TRUTHS[name], mode)
    assert max(worst) <= BUDGETS[dtype.name], worst


EDGES = {
    "tanh": {
        "x = inf": (INF, 1.0, 0.0),
        "x = -inf": (-INF, -1.0, 0.0),
        "x = NaN": (NAN, NAN, NAN),
    },
    "sigmoid": {
        "x = inf": (INF, 1.0, 0.0),
        "x = -inf": (-INF, 0.0, 0.0),
        "x = NaN": (NAN, NAN, NAN),
    },
    "elu": {
        "x = 0": (0.0, 0.0, 1.0),
        "x = inf": (INF, INF, 1.0),
        "x = -inf": (-INF, -1.0, 0.0),
        "x = NaN": (NAN, NAN, NAN),
    },
    "selu": {
        "x = 0": (0.0, 0.0, float(SCALE)),
        "x = inf": (INF, INF, float(SCALE)),
        "x = -inf": (-INF, float(-SCALE * ALPHA), 0.0),
        "x = NaN": (NAN, NAN, NAN),
    },
    "mish": {
        "x = inf": (INF, INF, 1.0),
        "x = -inf": (-INF, 0.0, 0.0),
        "x = NaN": (NAN, NAN, NAN),
    },
    "squareplus": {
        "x = inf": (INF, INF, NAN),
        "x = -inf": (-INF, 0.0, 0.0),
        "x = NaN": (NAN, NAN, NAN),
    },
}


@each_place
@pytest.mark.parametrize("name", EDGES)
def test_its_edges_are_those_of_its_docstring(name, mode, dtype):
    op = getattr(ops, name)
    assert list(EDGES[name]) == documented(op)
    got, wanted, silent = edges(op, list(EDGES[name].values()), dtype, mode)
    assert_rounded(got, wanted)
    for each in silent:
        assert_rounded(each, 0.0)


@pytest.mark.parametrize("name", ["elu", "selu"])
def test_the_second_derivative_at_the_kink_is_0(name, mode):
    x = tf.constant([0.0])
    assert_rounded(modes.second_gradient(getattr(ops, name), x, mode), 0.0)


@each_place
def test_the_limit_of_elu_can_be_chosen(mode, dtype):
    x = tf.constant([-INF, -1.0, 0.0, 2.0], dtype)
    value, (slope,) = modes.value_and_gradients(lambda x: ops.elu(x, 0.5), [x], mode)
    assert_rounded(value, [-0.5, 0.5 * np.expm1(-1), 0.0, 2.0])
    assert_rounded(slope, [0.0, 0.5 * np.exp(-1), 1.0, 1.0])


def test_squareplus_of_width_0_is_the_rectifier(mode):
    x = tf.constant([-2.0, 0.0, 3.0])
    value, (slope,) = modes.value_and_gradients(
        lambda x: ops.squareplus(x, 0.0), [x], mode
    )
    assert_rounded(value, [0.0, 0.0, 3.0])
    assert_rounded(slope, [0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("op", "option", "error", "message"),
    [
        (ops.elu, "1", TypeError, r"`alpha` must be a number. Received: alpha='1'"),
        (ops.squareplus, -1, ValueError, r"`b` must be at least 0. Received: b=-1"),
        (ops.squareplus, NAN, ValueError, r"`b` must be at least 0. Received: b=nan"),
        (ops.squareplus, None, TypeError, r"`b` must be a number. Received: b=None"),
    ],
)
def test_a_wrong_option_is_refused(op, option, error, message):
    with pytest.raises(error, match=message):
        op(tf.constant(1.0), option)
