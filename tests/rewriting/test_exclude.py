"""`exclude=` inside larger formulas, and the gradient of a logarithm below 0."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.rewriting import stabilize

X = tf.constant([[0.0, -40.0]])


def of_product(x):
    return tf.math.log((tf.nn.softmax(x) + 1e-7) * tf.nn.sigmoid(x))


def of_ratio(x):
    return tf.math.log((tf.nn.softmax(x) + 1e-7) / (1.0 + tf.exp(-x)))


@pytest.mark.parametrize("function", [of_product, of_ratio])
def test_an_excluded_rule_is_not_applied_within_another_formula(function, mode):
    excluded = stabilize(function, exclude="log-of-guarded-probability")
    logits = np.array([0.0, -40.0])
    guarded = np.log([1.0, np.exp(-40.0) + 1e-7]) - np.log1p(np.exp(-logits))
    assert_close(modes.compile_for(mode, excluded)(X)[0], guarded)
    # With all rules the guard goes.
    without = [0.0, -40.0] - np.log1p(np.exp(-logits))
    assert_close(stabilize(function)(X)[0], without)


def test_an_exponential_is_a_part_of_other_formulas_whatever_is_excluded():
    function = stabilize(
        lambda x: tf.math.log(tf.reduce_sum(tf.exp(x))), exclude="log-of-exp"
    )
    assert_close(function(X + 200.0), 200.0)


@pytest.mark.parametrize("formula", [tf.math.log, lambda x: tf.math.log1p(x - 1.0)])
def test_below_0_the_gradient_of_a_logarithm_is_that_of_tensorflow(formula, mode):
    def slope(function):
        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = function(x)
            return value, tape.gradient(value, x)

        return gradient

    x = tf.constant([-0.5, 2.0])
    for function in (slope(stabilize(formula)), stabilize(slope(formula))):
        value, gradient = modes.compile_for(mode, function)(x)
        np.testing.assert_array_equal(np.isnan(value), [True, False])
        assert_close(gradient, slope(formula)(x)[1])


def test_an_argument_of_the_function_may_have_any_name():
    def function(target, args, kwargs):
        return tf.math.log(tf.nn.softmax(target)) + args + kwargs

    report = stabilize.report(function, target=X, args=1.0, kwargs=2.0)
    assert [each.rule for each in report] == ["log-of-softmax"]
