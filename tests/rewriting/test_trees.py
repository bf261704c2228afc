"""Formulas written as tuples: what counts as the same formula, and what does not."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired, rewritten
from tests.rewriting.tables import LOGARITHMS, RULES
from tests.support.oracle import assert_close
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.match.trees import Tree, Trees

X = tf.constant([[0.5, 1.5], [2.5, -0.5]])
exp, log, sqrt, square = tf.exp, tf.math.log, tf.sqrt, tf.square


def _rule(pattern, replacement, where=None):
    return Rule(
        name="rule",
        before="",
        after="",
        fails_when="",
        reference="",
        match=Trees(Tree(pattern, replacement, where)),
    )


EXPM1 = ("Sub", ("Exp", "x"), 1)
SAME = {
    "in order": (EXPM1, lambda x: exp(x) - 1),
    "swapped": (EXPM1, lambda x: -1 + exp(x)),
    "a negative constant": (EXPM1, lambda x: exp(x) + (-1.0)),
    "AddN": (EXPM1, lambda x: tf.add_n([exp(x), -tf.ones_like(x)])),
    "ones like the tensor": (EXPM1, lambda x: exp(x) - tf.ones_like(x)),
    "ones of a smaller shape": (EXPM1, lambda x: exp(x) - tf.ones([2])),
    "through a copy": (EXPM1, lambda x: tf.identity(exp(tf.identity(x))) - 1),
    "a product": (("Mul", ("Exp", "x"), ("Sin", "x")), lambda x: tf.sin(x) * exp(x)),
    "a square by hand": (("Square", ("Exp", "x")), lambda x: exp(x) * exp(x)),
    "a square by a power": (("Square", ("Exp", "x")), lambda x: exp(x) ** 2),
    "a root by a power": (("Sqrt", ("Exp", "x")), lambda x: exp(x) ** 0.5),
    "a negation by a factor": (("Exp", ("Neg", "x")), lambda x: exp(-1 * x)),
    "either operation": (
        ("RealDiv|DivNoNan", ("Exp", "x"), "x"),
        lambda x: tf.math.divide_no_nan(exp(x), x),
    ),
}
OTHER = {
    "another constant": (EXPM1, lambda x: exp(x) - 1.001),
    "another sign": (EXPM1, lambda x: exp(x) + 1),
    "a factor": (EXPM1, lambda x: 2 * exp(x) - 1),
    "one more term": (EXPM1, lambda x: (exp(x) - x) - 1),
    "ones of a larger shape": (EXPM1, lambda x: exp(x) - tf.ones([3, 2, 2])),
    "a stopped gradient": (EXPM1, lambda x: tf.stop_gradient(exp(x)) - 1),
    "two tensors under one name": (
        ("Mul", ("Exp", "x"), ("Sin", "x")),
        lambda x: exp(x) * tf.sin(2 * x),
    ),
    "a square is no product": (
        ("Mul", ("Exp", "x"), ("Exp", "y")),
        lambda x: exp(x) * exp(x),
    ),
    "a difference does not commute": (
        ("Exp", ("RealDiv", "x", ("Sin", "x"))),
        lambda x: exp(tf.sin(x) / x),
    ),
    "integers": (("Mul", "x", "y"), lambda x: tf.cast(x, tf.int32) * tf.constant(3)),
}


@pytest.mark.parametrize(("pattern", "function"), SAME.values(), ids=list(SAME))
def test_the_same_formula_is_recognised(pattern, function):
    rule = _rule(pattern, lambda x: 7 + 0 * x)
    assert fired([rule], function, X) == ["rule"]
    np.testing.assert_array_equal(rewritten([rule], function)(X), np.full([2, 2], 7.0))


@pytest.mark.parametrize(("pattern", "function"), OTHER.values(), ids=list(OTHER))
def test_another_formula_is_not(pattern, function):
    assert fired([_rule(pattern, lambda *args: args[0])], function, X) == []


def test_a_sum_with_all_signs_changed_is_replaced_by_the_negative():
    rule = _rule(EXPM1, tf.math.expm1)
    assert_close(rewritten([rule], lambda x: 1 - exp(x))(X), -np.expm1(X))


def test_a_name_in_a_sum_takes_its_factor_along():
    rule = _rule(("Log", ("Add", 1, "x")), lambda x: 5 * x)
    function = lambda x: log(1 - 3 * x)  # noqa: E731
    assert_close(rewritten([rule], function)(X), -15 * X)


def test_a_number_reaches_the_replacement_and_its_condition():
    rule = _rule(("Pow", "x", "#k"), lambda x, k: k * x, where=lambda k: k < 3)
    assert_close(rewritten([rule], lambda x: x**2.5)(X), 2.5 * X, 0.5)
    assert fired([rule], lambda x: x**3.5, X) == []
    assert fired([rule], lambda x: x ** tf.ones([3, 2, 2]), X) == []


def test_names_reach_the_replacement_in_the_order_of_the_pattern():
    rule = _rule(("Mul", ("Sin", "b"), ("Exp", "a")), lambda b, a: b - 2 * a)
    function = lambda x: exp(x) * tf.sin(5 * x)  # noqa: E731
    assert_close(rewritten([rule], function)(X), 3 * X)


def test_a_rule_without_a_type_of_operation_is_an_error():
    with pytest.raises(ValueError, match="'rule' names no type of operation"):
        _rule("x", tf.identity)


ADD_N = {
    "log of a sum": (lambda x: log(tf.add_n([exp(x), exp(2 * x)])), "log-of-sum"),
    "log of three": (
        lambda x: log(tf.add_n([exp(x), exp(2 * x), exp(-x)])),
        "log-of-sum",
    ),
    "a softmax of two": (
        lambda x: exp(x) / tf.add_n([exp(x), exp(2 * x)]),
        "sigmoid-by-hand",
    ),
    "a ratio with three": (
        lambda x: exp(x) / tf.add_n([exp(2 * x), exp(3 * x), exp(-x)]),
        "ratio-of-exponentials",
    ),
}


@pytest.mark.parametrize("name", ADD_N)
def test_add_n_is_a_sum_in_the_rules_for_exponentials(name):
    function, rule = ADD_N[name]
    x = tf.constant([0.5, -2.0, 300.0])
    assert rule in fired(LOGARITHMS, function, x)
    truth = function(tf.cast(x, tf.float64))
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = rewritten(LOGARITHMS, function)(x)
    assert_close(value, truth)
    assert np.isfinite(tape.gradient(value, x)).all()


def test_add_n_is_a_sum_in_the_rules_for_squares():
    function = lambda x: sqrt(tf.add_n([square(x), square(2 * x)]))  # noqa: E731
    x = tf.constant([1e-30, 1e30])
    assert fired(RULES, function, x)[-1] == "hypot"
    assert_close(rewritten(RULES, function)(x), 5**0.5 * x)


LARGER_CONSTANTS = {
    "a sigmoid": lambda x, one: 1 / (one + exp(-x)),
    "log of a sum": lambda x, one: log(one + exp(x)),
    "log of a complement": lambda x, one: log(one - tf.sigmoid(x)),
    "a complement of a softmax": lambda x, one: one - tf.nn.softmax(x),
    "log of a clipped probability": lambda x, one: log(
        tf.maximum(tf.nn.softmax(x), one * 1e-7)
    ),
    "half a tanh": lambda x, one: 0.5 * (tf.tanh(x) + one),
    "log of odds": lambda x, one: log(tf.sigmoid(x) / (one - tf.sigmoid(x))),
}


@pytest.mark.parametrize("name", LARGER_CONSTANTS)
def test_a_constant_that_makes_the_result_larger_keeps_its_shape(name):
    function = LARGER_CONSTANTS[name]
    one = np.ones([3, 1, 1], np.float32)
    made = rewritten(LOGARITHMS, lambda x: function(x, one))(X)
    assert made.shape == [3, 2, 2]
    assert_close(made, function(X, one), 6, why="the plain logarithm of odds")
