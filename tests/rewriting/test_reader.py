"""What a reader says of the tensors of a graph."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close
from tfsafe.rewriting.facts.forms import Forms
from tfsafe.rewriting.facts.tensors import Reader

X = tf.TensorSpec([2, 3])


def _read(function, *specs):
    """Returns a reader of the function's graph, and the tensors that it returns."""
    traced = tf.function(function, autograph=False)
    graph = traced.get_concrete_function(*(specs or [X])).graph
    return Reader(graph), graph.outputs


def _bounds(function, *specs):
    reader, outputs = _read(function, *specs)
    return reader.bounds(outputs[0])


def _squared_often(x):
    mask = tf.cast(x > 0, tf.float32)
    for _ in range(40):
        mask *= mask
    return mask


CONSTANTS = {
    "a number": (lambda x: tf.constant(3.0), 3),
    "arithmetic": (lambda x: tf.constant(2.0) * 3.0 + 1 - 4 / tf.constant(2.0), 5),
    "a cast": (lambda x: tf.cast(tf.constant([1, 2]), tf.float32), [1, 2]),
    "a shape": (lambda x: tf.shape(x)[1] * 2, 6),
    "a rank": (lambda x: tf.rank(x) - 1, 1),
    "a size": (lambda x: tf.cast(tf.size(x), tf.float32), 6),
    "a fill": (lambda x: tf.fill([2], 0.5), [0.5, 0.5]),
    "a broadcast": (lambda x: tf.broadcast_to(tf.constant(1.5), [2]), [1.5, 1.5]),
    "a stack": (lambda x: tf.stack([tf.constant(1), tf.constant(2)]), [1, 2]),
    "a concatenation": (lambda x: tf.concat([[1], tf.range(2)], 0), [1, 0, 1]),
    "a sum": (lambda x: tf.reduce_sum(tf.constant([1.0, 2.0])), 3),
    "a root": (lambda x: tf.sqrt(tf.constant(4.0)), 2),
    "a root in bfloat16": (lambda x: tf.sqrt(tf.constant(4.0, tf.bfloat16)), 2),
    "a squeeze": (lambda x: tf.squeeze(tf.constant([4.0]), [0]), 4),
    "ones like something": (lambda x: tf.ones([2]) * tf.stop_gradient(2.0), [2, 2]),
}


@pytest.mark.parametrize(("function", "value"), CONSTANTS.values(), ids=list(CONSTANTS))
def test_a_constant_is_folded(function, value):
    reader, (tensor,) = _read(function)
    np.testing.assert_array_equal(reader.constant(tensor), value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: x * 2,
        lambda x: tf.zeros([100, 100]) + 1,
        lambda x: tf.random.uniform([2]),
        lambda x: tf.strings.join(["a", "b"]),
        lambda x: tf.reduce_max(tf.constant([1.0])),
    ],
    ids=["input", "product", "large", "random", "text", "an operation not folded"],
)
def test_what_is_no_small_constant_is_unknown(function):
    reader, (tensor,) = _read(function)
    assert reader.constant(tensor) is None
    assert reader.scalar(tensor) is None


def test_a_shape_that_can_change_is_no_constant():
    reader, (tensor,) = _read(lambda x: tf.shape(x)[0], tf.TensorSpec([None]))
    assert reader.constant(tensor) is None


def test_a_scalar_is_the_number_that_all_elements_are():
    reader, (a, b, c, d) = _read(
        lambda x: [tf.fill([3], 2.0), tf.constant([1.0, 2.0]), tf.zeros([0]), True]
    )
    assert reader.scalar(a) == 2
    assert [reader.scalar(each) for each in (b, c, d)] == [None] * 3


def test_a_number_is_compared_in_the_dtype_of_the_tensor():
    reader, (half, single) = _read(
        lambda x: [tf.constant(0.1, tf.float16), tf.constant(0.1)]
    )
    assert reader.is_number(half, 0.1)
    assert reader.is_number(single, 0.1)
    assert not reader.is_number(single, 0.1 + 1e-8)
    assert not reader.is_number(half, 0.2)


def test_a_source_is_found_through_copies_but_not_through_stop_gradient():
    reader, (a, b, c) = _read(
        lambda x: [
            tf.identity(tf.identity_n([x, 2 * x])[1]),
            tf.stop_gradient(x),
            tf.ensure_shape(x, [2, 3]),
        ]
    )
    assert reader.op(a).type == "Mul"
    assert reader.op(b).type == "StopGradient"
    assert reader.value_source(b).op.type == "Placeholder"
    assert reader.op(c).type == "Placeholder"


def test_a_gradient_of_ones_own_hides_what_is_behind_it():
    @tf.custom_gradient
    def own(x):
        return tf.exp(x), lambda upstream: upstream

    reader, (tensor,) = _read(own)
    assert reader.op(tensor).type == "IdentityN"


def test_what_is_computed_alike_is_the_same():
    def function(x):
        y = tf.identity(x)
        return [
            tf.exp(x + 1.0),
            tf.exp(1.0 + y),
            tf.exp(x + 2.0),
            tf.exp(x - 1.0),
            tf.exp(1.0 - x),
            tf.nn.log_softmax(x),
            tf.reduce_sum(x, 0),
            tf.reduce_sum(x, 1),
            tf.stop_gradient(x),
            x,
        ]

    reader, tensors = _read(function)
    assert reader.same(tensors[0], tensors[1])
    others = tensors[1:]
    for i, a in enumerate(others):
        for b in others[i + 1 :]:
            assert not reader.same(a, b)


@pytest.mark.parametrize("sizes", [[None, 3], [2, 3]])
def test_what_is_reshaped_alike_is_the_same(sizes):
    def function(x):
        return [
            x[:, None],
            tf.expand_dims(x, -2),
            tf.reshape(x, [-1, 1, 3]),
            tf.reshape(x[..., None], [-1, 1, 3]),
            tf.expand_dims(x, -1),
            x[None],
            tf.transpose(x),
            tf.reshape(x, [3, -1]),
            x[:1, None],
            x,
        ]

    reader, tensors = _read(function, tf.TensorSpec(sizes))
    assert all(reader.same(tensors[0], each) for each in tensors[1:4])
    others = tensors[3:]
    for i, a in enumerate(others):
        for b in others[i + 1 :]:
            assert not reader.same(a, b)


def test_a_random_number_is_the_same_only_as_itself():
    reader, (a, b) = _read(lambda x: [tf.random.normal([2]), tf.random.normal([2])])
    assert reader.same(a, a)
    assert not reader.same(a, b)


def test_two_inputs_are_not_the_same():
    reader, (a, b) = _read(lambda x, y: [x + 1, y + 1], X, X)
    assert not reader.same(a, b)


def test_the_same_is_found_in_a_graph_deeper_than_pythons_stack():
    def function(x):
        a = b = x
        for _ in range(1500):
            a, b = a + 1, b + 1
        return a, b

    reader, (a, b) = _read(function)
    assert reader.same(a, b)
    assert reader.bounds(a) == (-math.inf, math.inf)
    assert reader.constant(a) is None


PROBABILITIES = {
    "softmax": tf.nn.softmax,
    "softmax along another axis": lambda x: tf.nn.softmax(x, axis=0),
    "sigmoid": tf.sigmoid,
    "1 - sigmoid": lambda x: 1 - tf.sigmoid(x),
    "a product": lambda x: tf.sigmoid(x) * tf.nn.softmax(x),
    "a power": lambda x: tf.sigmoid(x) ** 2.5,
    "an even power of a tanh": lambda x: 1 - tf.tanh(x) ** 2,
    "a square": lambda x: tf.tanh(x) * tf.tanh(x),
    "clipped": lambda x: tf.clip_by_value(x, 0.0, 1.0),
    "a share": lambda x: tf.exp(x) / tf.reduce_sum(tf.exp(x), -1, keepdims=True),
    "half a tanh": lambda x: 0.5 * tf.tanh(x) + 0.5,
    "a comparison": lambda x: tf.cast(x > 0, tf.float32),
    "a choice": lambda x: tf.where(x > 0, tf.sigmoid(x), 1.0),
    "put together": lambda x: tf.concat([tf.sigmoid(x), tf.ones([2, 1])], 1),
    "stacked": lambda x: tf.stack([tf.sigmoid(x), tf.zeros([2, 3])]),
    "a mean": lambda x: tf.reduce_mean(tf.sigmoid(x)),
    "a product of many": lambda x: tf.reduce_prod(tf.sigmoid(x), 1),
    "one of a softmax": lambda x: tf.reduce_sum(
        tf.nn.softmax(x) * tf.one_hot([0, 2], 3), -1
    ),
    "one of many by a one-hot": lambda x: tf.reduce_sum(
        tf.sigmoid(x) * tf.one_hot([0, 2], 3), -1
    ),
    "one of a softmax along another axis": lambda x: tf.reduce_sum(
        tf.nn.softmax(x, 0) * tf.sigmoid(x), 0
    ),
    "an exponential of a negative": lambda x: tf.exp(-tf.square(x)),
    "a reciprocal": lambda x: 1 / (1 + tf.square(x)),
    "random": lambda x: tf.random.uniform([2]),
}
OTHERS = {
    "an input": lambda x: x,
    "an exponential": tf.exp,
    "a sum of a softmax": lambda x: 2 * tf.nn.softmax(x),
    "a sum of sigmoids": lambda x: tf.reduce_sum(tf.sigmoid(x), -1),
    "a sum along another axis": lambda x: tf.reduce_sum(tf.nn.softmax(x), 0),
    "a sum of a softmax that is repeated": lambda x: tf.reduce_sum(
        tf.nn.softmax(x[:, :1]) * tf.sigmoid(x), -1
    ),
    "a share of other numbers": lambda x: x / tf.reduce_sum(x, -1, keepdims=True),
    "a tanh": tf.tanh,
    "an odd power": lambda x: tf.tanh(x) ** 3,
    "p + 0.1": lambda x: tf.sigmoid(x) + 0.1,
    "p - 0.1": lambda x: tf.sigmoid(x) - 0.1,
    "2 - p": lambda x: 2 - tf.sigmoid(x),
    "-p": lambda x: -tf.sigmoid(x),
    "1 / p": lambda x: 1 / tf.sigmoid(x),
    "a choice": lambda x: tf.where(x > 0, tf.sigmoid(x), x),
    "a constant": lambda x: tf.constant([0.5, 2.0]),
    "a constant NaN": lambda x: tf.constant(math.nan),
    "a narrowed integer": lambda x: tf.cast(
        tf.cast(tf.square(tf.cast(x, tf.int32)), tf.int8), tf.float32
    ),
}


@pytest.mark.parametrize("function", PROBABILITIES.values(), ids=list(PROBABILITIES))
def test_a_probability_is_known_by_its_structure(function):
    reader, (tensor,) = _read(function)
    assert reader.is_probability(tensor)
    assert reader.is_nonnegative(tensor)


@pytest.mark.parametrize("function", OTHERS.values(), ids=list(OTHERS))
def test_what_can_be_something_else_is_no_probability(function):
    reader, (tensor,) = _read(function)
    assert not reader.is_probability(tensor)


BOUNDS = {
    "abs": (tf.abs, (0, math.inf)),
    "relu": (tf.nn.relu, (0, math.inf)),
    "square of a bounded number": (lambda x: tf.square(3 * tf.tanh(x)), (0, 9)),
    "root": (lambda x: tf.sqrt(4 * tf.sigmoid(x)), (0, 2)),
    "exp": (lambda x: tf.exp(tf.tanh(x)), (math.exp(-1), math.e)),
    "huge exp": (lambda x: tf.exp(tf.square(x)), (1, math.inf)),
    "negative": (lambda x: -tf.square(x), (-math.inf, 0)),
    "sum of negatives": (lambda x: tf.reduce_sum(-tf.square(x)), (-math.inf, 0)),
    "maximum": (lambda x: tf.maximum(x, 2.0), (2, math.inf)),
    "minimum": (lambda x: tf.minimum(x, 2.0), (-math.inf, 2)),
    "product of signs": (lambda x: tf.tanh(x) * tf.sigmoid(x), (-1, 1)),
    "quotient": (lambda x: tf.sigmoid(x) / (tf.sigmoid(x) + 2), (0, 0.5)),
    "quotient by nothing": (
        lambda x: tf.square(x) / tf.nn.relu(-tf.square(x)),
        (0, math.inf),
    ),
    "reciprocal": (lambda x: tf.math.reciprocal(2 + tf.sigmoid(x)), (1 / 3, 1 / 2)),
    "reciprocal of anything": (tf.math.reciprocal, (-math.inf, math.inf)),
    "reciprocal of a square": (
        lambda x: tf.math.reciprocal(tf.square(x)),
        (0, math.inf),
    ),
    "power of a positive": (lambda x: tf.square(x) ** x, (0, math.inf)),
    "even power": (lambda x: x**4.0, (0, math.inf)),
    "one-hot": (lambda x: tf.one_hot([1, 0], 3, 2.0, -1.0), (-1, 2)),
    "fill": (lambda x: tf.fill([tf.cast(x[0, 0], tf.int32)], 2.0), (2, 2)),
    "product of many": (lambda x: tf.reduce_prod(tf.square(x)), (0, math.inf)),
    "product of anything": (tf.reduce_prod, (-math.inf, math.inf)),
    "unsigned": (lambda x: tf.cast(tf.cast(x, tf.uint8), tf.float32), (0, math.inf)),
    "empty": (lambda x: tf.zeros([0]), (-math.inf, math.inf)),
}


@pytest.mark.parametrize(("function", "bounds"), BOUNDS.values(), ids=list(BOUNDS))
def test_bounds_follow_from_bounds(function, bounds):
    assert_close(list(_bounds(function)), bounds, dtype="float32")


def test_a_sum_of_products_of_unknown_sizes_may_be_above_1():
    def overlap(x, y):
        return tf.reduce_sum(tf.sigmoid(x) * tf.sigmoid(y), -1)

    rows = tf.TensorSpec([None, None])
    assert _bounds(overlap, rows, rows) == (0, math.inf)


MASKS = {
    "a comparison": (lambda x: tf.cast(x > 0, tf.float32), True),
    "a cast mask": (lambda x: tf.cast(tf.cast(x > 0, tf.int32), tf.float32), True),
    "one-hot": (lambda x: tf.one_hot([1], 3), True),
    "a smoothed one-hot": (lambda x: tf.one_hot([1], 3, 0.9, 0.1), False),
    "a product": (lambda x: tf.cast(x > 0, tf.float32) * tf.one_hot([1], 3), True),
    "a long product": (_squared_often, True),
    "the rest": (lambda x: 1 - tf.cast(x > 0, tf.float32), True),
    "moved": (lambda x: tf.cast(x > 0, tf.float32)[:, None], True),
    "a constant": (lambda x: tf.constant([0.0, 1.0, 1.0]), True),
    "another constant": (lambda x: tf.constant([0.0, 2.0]), False),
    "a sigmoid": (tf.sigmoid, False),
    "an input": (lambda x: x, False),
}


@pytest.mark.parametrize(("function", "expected"), MASKS.values(), ids=list(MASKS))
def test_a_mask_is_known_by_its_structure(function, expected):
    reader, (tensor,) = _read(function)
    assert reader.is_mask(tensor) is expected


def test_axes_are_counted_from_the_front_where_the_rank_is_known():
    reader, (known, unknown, dynamic) = _read(
        lambda x, y, k: [
            tf.reduce_sum(x, [-1, 0]),
            tf.reduce_sum(y, -1),
            tf.reduce_sum(x, k),
        ],
        X,
        tf.TensorSpec(None),
        tf.TensorSpec([], tf.int32),
    )
    assert reader.axes(reader.op(known).inputs[1], 2) == (0, 1)
    assert reader.axes(reader.op(unknown).inputs[1], None) == (-1,)
    assert reader.axes(reader.op(known).inputs[1], None) is None
    assert reader.axes(reader.op(dynamic).inputs[1], 2) is None


def test_the_inputs_of_a_loop_can_be_anything():
    graphs = []

    def body(i, p):
        graphs.append(tf.compat.v1.get_default_graph())
        return i + 1, tf.math.log(p)

    def function(x):
        return tf.while_loop(lambda i, _: i < 2, body, [0, tf.sigmoid(x)])[1]

    _read(function)
    reader = Reader(graphs[0])
    log = next(op for op in graphs[0].get_operations() if op.type == "Log")
    assert not reader.is_probability(log.inputs[0])


FORMS = {
    "other inputs": (lambda x, y: (x - 2.0 * x, y - 2.0 * y), True),
    "longer": (lambda x, y: (x - 2.0, y - 2.0 - 2.0), False),
    "another number": (lambda x, y: (x - 2.0, y - 3.0), False),
    "one input twice": (lambda x, y: (x / x, x / y), False),
    "one formula twice": (
        lambda x, y: (tf.exp(x) / tf.exp(x), tf.exp(x) / tf.exp(y)),
        False,
    ),
    "another order": (lambda x, y: (x - 2.0, 2.0 - y), False),
    "what is dropped": (
        lambda x, y: (s := tf.sqrt(x), tf.sqrt(y), tf.where(x > 0, s, 0.0)),
        False,
    ),
    "another shape": (lambda x, y: (x - 2.0, y[0] - 2.0), False),
}


@pytest.mark.parametrize(("function", "is_same"), FORMS.values(), ids=list(FORMS))
def test_formulas_that_no_rule_tells_apart_have_one_form(function, is_same):
    reader, outputs = _read(function, X, X)
    forms = Forms(reader)
    one, other = (forms.of(reader.op(each)) for each in outputs[:2])
    assert one is not None
    assert (one == other) == is_same


def test_only_short_elementwise_formulas_have_a_form():
    def function(x):
        long = x
        for _ in range(80):
            long = tf.tanh(long)
        return tf.linalg.matmul(x, x, transpose_b=True) + 1.0, long, tf.tanh(x)

    reader, outputs = _read(function)
    forms = Forms(reader)
    found = [forms.of(reader.op(each)) is None for each in outputs]
    assert found == [True, True, False]
