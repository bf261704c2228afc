"""NaN that an operation makes an integer of is found where the integer is a result."""

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes

WORDS = tf.constant(["red", "green", "blue"])
EDGES = tf.constant([0.0, 1.0, 2.0])
CHOICES = {
    "ArgMax": lambda x: tf.argmax(x, -1),
    "ArgMin": lambda x: tf.expand_dims(tf.argmin(x, -1), 1),
    "Bucketize": lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[0.0, 1.0]),
    "Cast": lambda x: tf.cast(tf.round(x), tf.int32),
    "InTopKV2": lambda x: tf.math.in_top_k(tf.constant([1]), x, 1),
    "Multinomial": lambda x: tf.random.categorical(x, 1)[:, 0],
    "StatelessMultinomial": lambda x: {
        "action": tf.random.stateless_categorical(x, 1, [1, 2])[0, 0]
    },
    "TopKV2": lambda x: tf.argsort(x),
    "UpperBound": lambda x: tf.searchsorted(EDGES, x[0], side="right"),
}
# What XLA has no kernel for.
ON_THE_HOST = {"Bucketize", "InTopKV2", "UpperBound"}


def chosen(operation):
    def function(x, total):
        return CHOICES[operation](x / total)

    return function


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
@pytest.mark.parametrize("operation", CHOICES)
def test_nan_that_an_integer_is_made_of_is_found(operation, checks, mode):
    if mode == "xla" and operation in ON_THE_HOST:
        mode = "graph"
    function = chosen(operation)
    checked = tfsafe.checked(modes.compile_for(mode, function), checks=checks)
    x = tf.constant([[0.0, 1.0, 2.0]])
    checked(x, tf.constant(2.0))
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(x, tf.constant(0.0))
    finding = caught.value.findings[0]
    assert finding.op_type == "RealDiv"
    assert f"`{operation}` at test_choices.py" in finding.cause
    assert finding.cause.endswith("makes an integer of it, which hides it.")


def test_a_word_that_nan_chose_is_found_and_the_state_restored(mode):
    if mode == "xla":
        mode = "graph"
    count = tf.Variable(0.0)

    def function(x, total):
        count.assign_add(1.0)
        return tf.gather(WORDS, tf.argmax(x / total, -1))

    checked = tfsafe.checked(modes.compile_for(mode, function))
    x = tf.constant([[0.0, 1.0, 2.0]])
    assert checked(x, tf.constant(1.0)).numpy().tolist() == [b"blue"]
    with pytest.raises(tfsafe.NumericsError, match="ArgMax"):
        checked(x, tf.constant(0.0))
    assert count == 1


def masked(x, valid):
    p = x / tf.reduce_sum(x, -1, keepdims=True)
    return tf.where(valid, tf.argmax(p, -1), -1)


def weighted(x, valid):
    p = x / tf.reduce_sum(x, -1, keepdims=True)
    hits = tf.cast(tf.argmax(p, -1) == 1, tf.float32) * tf.cast(valid, tf.float32)
    return tf.reduce_sum(hits), tf.cast(tf.reduce_sum(hits), tf.int32)


def sliced(x, valid):
    del valid
    return tf.argmax(x / tf.reduce_sum(x, -1, keepdims=True), -1)[:1]


def imputed(x, valid):
    del valid
    share = x[:, 0] / tf.reduce_sum(x, -1)
    return tf.where(tf.math.is_nan(share), -1, tf.cast(10 * share, tf.int32))


def known(x, valid):
    del valid
    share = x / tf.reduce_sum(x, -1, keepdims=True)
    return share == share, share > 0.5


def legal(x, valid):
    scores = tf.where(valid[:, None], tf.math.log(x), -np.inf)
    seed = [1, 2]
    top = tf.math.top_k(scores, 2).indices
    return tf.argmax(scores, -1), top, tf.random.stateless_categorical(scores, 1, seed)


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
@pytest.mark.parametrize("function", [masked, weighted, sliced, imputed, known, legal])
def test_integers_that_are_masked_or_dropped_are_no_finding(function, checks, mode):
    # The second row is padding: 0 / 0.
    x = tf.constant([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    valid = tf.constant([True, False])
    checked = tfsafe.checked(modes.compile_for(mode, function), checks=checks)
    expected = modes.compile_for(mode, function)(x, valid)
    for _ in range(3):
        tf.nest.map_structure(
            np.testing.assert_array_equal, checked(x, valid), expected
        )


def test_choices_of_rows_that_are_selected_later_are_no_finding():
    @tfsafe.checked
    @tf.function
    def function(x, valid):
        p = x / tf.reduce_sum(x, -1, keepdims=True)
        return tf.boolean_mask(tf.argmax(p, -1), valid)

    x = tf.constant([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    assert function(x, tf.constant([True, False])).numpy().tolist() == [2]
