"""Formulas in functions that a dataset calls: `for x in dataset`, `map` and others."""

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support.oracle import assert_close
from tests.support.warned import ours
from tfsafe import _faults
from tfsafe.graph import _dataset_functions, written_inputs
from tfsafe.rewriting import stabilize

ROWS = tf.constant([[0.0, 100.0, -100.0], [1.0, 2.0, 3.0], [-50.0, 60.0, 0.0]])


def rows():
    return tf.data.Dataset.from_tensor_slices(ROWS)


def log_probs(x):
    """Without a function of TensorFlow that its own optimizer knows."""
    y = tf.exp(x)
    return tf.reduce_sum(tf.math.log(y / tf.reduce_sum(y)))


def expected(x=ROWS):
    x = x.numpy().astype("float64")
    largest = x.max(-1, keepdims=True)
    total = np.log(np.exp(x - largest).sum(-1, keepdims=True)) + largest
    return (x - total).sum(-1)


def over_all(dataset):
    total = tf.constant(0.0)
    for x in dataset:
        total += log_probs(x)
    return total


def with_break(dataset):
    total = tf.constant(0.0)
    for x in dataset:
        if total < -1e30:
            break
        total += log_probs(x)
    return total


def with_a_call(dataset):
    inner = tf.function(log_probs)
    total = tf.constant(0.0)
    for x in dataset:
        total += inner(x)
    return total


def in_another_loop(dataset):
    total = tf.constant(0.0)
    for _ in tf.range(2):
        for x in dataset:
            total += log_probs(x) / 2.0
    return total


def of_a_dataset_of_its_own(dataset):
    total = tf.constant(0.0)
    for x in dataset:
        for half in tf.data.Dataset.from_tensors(x).repeat(2):
            total += log_probs(half) / 2.0
    return total


def mapped(dataset):
    parts = dataset.map(log_probs, num_parallel_calls=2)
    return parts.reduce(0.0, lambda total, x: total + x)


def in_pairs(dataset):
    total = tf.constant(0.0)
    for i, (x, other) in dataset.map(lambda x: (x, {"y": 2.0 * x})).enumerate():
        total += log_probs(x) + 0.0 * tf.cast(i, tf.float32) * other["y"][0]
    return total


FUNCTIONS = [
    *(over_all, with_break, with_a_call, in_another_loop, of_a_dataset_of_its_own),
    *(mapped, in_pairs),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_a_formula_in_a_loop_over_a_dataset_is_rewritten(function):
    assert not np.isfinite(tf.function(function)(rows()))
    assert_close(stabilize(function)(rows()), expected().sum())
    report = str(stabilize.report(function, rows()))
    assert "log-of-softmax" in report
    assert "tf.math.log(y / tf.reduce_sum(y))" in report


def updates(variable):
    def function(dataset):
        for x in dataset:
            with tf.GradientTape() as tape:
                loss = log_probs(x * variable)
            variable.assign_sub(0.001 * tape.gradient(loss, variable))
        return variable.read_value()

    return function


@pytest.mark.parametrize("verify", [False, True], ids=["", "verify"])
def test_a_step_in_the_loop_has_the_stable_gradient_and_is_made_once(verify):
    variable = tf.Variable(1.0)
    assert np.isnan(tf.function(updates(variable))(rows()))
    value = 1.0
    for x in ROWS.numpy().astype("float64"):
        p = np.exp(x * value - (x * value).max())
        value -= 0.001 * (x - (p / p.sum()) @ x).sum()
    variable.assign(1.0)
    found = stabilize(updates(variable), verify=verify)(rows())
    assert_close(found, value)


def test_what_a_loop_over_a_dataset_writes_is_known():
    read, written = tf.Variable(1.0), tf.Variable(1.0)

    @tf.function
    def function(dataset):
        for x in dataset:
            written.assign_add(read * x[0])

    concrete = function.get_concrete_function(rows())
    first = len(concrete.graph.inputs) - len(concrete.captured_inputs)
    handles = [
        concrete.captured_inputs[i - first] for i in written_inputs(concrete.graph)
    ]
    assert [each is written.handle for each in handles] == [True]


def test_a_variable_that_a_loop_over_a_dataset_made_nan_is_found_and_restored():
    variable = tf.Variable(1.0)
    with pytest.raises(tfsafe.NumericsError, match="variable"):
        tfsafe.checked(tf.function(updates(variable)))(rows())
    assert variable.numpy() == 1.0


def test_the_users_errors_in_the_loop_are_the_users(recwarn):
    count = tf.Variable(0)

    def function(dataset):
        total = tf.constant(0.0)
        for x in dataset:
            # The last row fails, after it was counted: no other is on its way.
            with tf.control_dependencies([count.assign_add(1)]):
                tf.debugging.assert_greater(x[0], -40.0)
            total += log_probs(x)
        return total

    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        tf.function(function)(rows())
    plain = count.numpy()
    count.assign(0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        stabilize(function)(rows())
    assert count.numpy() == plain
    assert not ours(recwarn)


def test_a_function_that_cannot_be_made_runs_as_written(monkeypatch):
    monkeypatch.setattr(
        _dataset_functions._compat, "captured", lambda _: 1 / 0, raising=True
    )
    weight = tf.constant(2.0)

    @tf.function
    def plain(dataset, weight):
        total = tf.constant(0.0)
        for x in dataset:
            total += log_probs(x / 100.0) * weight
        return total

    with pytest.warns(RuntimeWarning, match="ScanDataset"):
        found = stabilize(plain)(rows(), weight)
    _faults.REPORTED.clear()
    assert_close(found, plain(rows(), weight))


class Summed(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    @stabilize
    def __call__(self, x):
        total = tf.constant(0.0)
        for row in tf.data.Dataset.from_tensor_slices(x):
            total += log_probs(row)
        # Not rewritten.
        return tf.data.Dataset.from_tensors(total).reduce(0.0, lambda a, b: a + b)


def test_a_saved_model_has_the_functions_of_datasets(tmp_path):
    tf.saved_model.save(Summed(), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert_close(loaded(ROWS), expected().sum())
