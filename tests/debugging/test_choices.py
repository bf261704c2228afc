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


def found_at_0(function, checks, mode):
    """Returns the finding of a function of numbers over 0, which finds none over 2."""
    checked = tfsafe.checked(modes.compile_for(mode, function), checks=checks)
    x = tf.constant([[0.0, 1.0, 2.0]])
    checked(x, tf.constant(2.0))
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(x, tf.constant(0.0))
    return caught.value.findings[0]


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
@pytest.mark.parametrize("operation", CHOICES)
def test_nan_that_an_integer_is_made_of_is_found(operation, checks, mode):
    if mode == "xla" and operation in ON_THE_HOST:
        mode = "graph"
    finding = found_at_0(chosen(operation), checks, mode)
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


def repeated(body, *state):
    """Returns the state after three steps, each given its number."""
    count = tf.constant(0), *state
    return tf.while_loop(
        lambda i, *_: i < 3, lambda i, *old: (i + 1, *body(i, *old)), count
    )[1:]


def carried(x, total):
    return repeated(lambda *_: (tf.argmax(x / total, -1),), tf.constant([0], tf.int64))


def listed(x, total):
    def step(i, out):
        return (out.write(i, tf.argmax(x / (total + tf.cast(i, tf.float32)), -1)),)

    return repeated(step, tf.TensorArray(tf.int64, 3))[0].stack()


def delayed(x, total):
    def step(_, now, before):
        del before
        return tf.argmax(x / total, -1), now

    first = tf.constant([0], tf.int64)
    return repeated(step, first, first)[1]


def branched(x, total):
    first = tf.constant([0], tf.int64)
    return tf.cond(
        tf.reduce_sum(x) > 0, lambda: tf.argmax(x / total, -1), lambda: first
    )


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
@pytest.mark.parametrize("function", [carried, listed, delayed, branched])
def test_nan_that_an_integer_is_made_of_in_a_body_is_found(function, checks, mode):
    finding = found_at_0(function, checks, mode)
    assert finding.op_type == "RealDiv"
    assert "`ArgMax` at test_choices.py" in finding.cause


def test_a_random_choice_by_nan_is_found_when_it_is_replayed(tmp_path):
    def function(x, total):
        noise = tf.random.categorical(tf.zeros([1, 3]), 1)
        return noise, tf.random.categorical(x / total, 1)

    checked = tfsafe.checked(modes.compile_for("graph", function))
    x = tf.constant([[0.0, 1.0, 2.0]])
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(x, tf.constant(0.0))
    caught.value.save(tmp_path / "nan.zip")
    again = tfsafe.debugging.replay(tmp_path / "nan.zip")
    assert again.findings[0].op_type == "RealDiv"
    assert again.findings[0].cause == caught.value.findings[0].cause


def finished(x, total):
    """Greedy decoding: what follows the end is replaced by the padding 0."""

    def step(i, out):
        left = total - tf.cast(i, tf.float32)
        token = tf.argmax(x / left, -1)
        return (out.write(i, tf.where(left <= 0, tf.constant(0, tf.int64), token)),)

    return repeated(step, tf.TensorArray(tf.int64, 3))[0].stack()


def restricted(x, total):
    """Each step leaves classes out by a score of -inf."""

    def step(*_):
        return (tf.argmax(tf.where(x < total, x, -np.inf), -1),)

    return repeated(step, tf.constant([0], tf.int64))


def passed_over(x, total):
    """The branch that divides by 0 is not taken."""

    def step(i, token):
        del token
        left = total - tf.cast(i, tf.float32)
        first = tf.constant([0], tf.int64)
        return (tf.cond(left > 0, lambda: tf.argmax(x / left, -1), lambda: first),)

    return repeated(step, tf.constant([0], tf.int64))


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
@pytest.mark.parametrize("function", [finished, restricted, passed_over])
def test_integers_of_a_loop_that_are_replaced_are_no_finding(function, checks, mode):
    checked = tfsafe.checked(modes.compile_for(mode, function), checks=checks)
    x = tf.constant([[0.0, 1.0, 2.0]])
    expected = modes.compile_for(mode, function)(x, tf.constant(2.0))
    for _ in range(3):
        np.testing.assert_array_equal(checked(x, tf.constant(2.0)), expected)


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
