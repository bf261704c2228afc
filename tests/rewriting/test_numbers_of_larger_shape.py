"""A number of a formula may be an array, larger than what it is combined with."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.test_near_misses import PAIRS, X
from tests.support.oracle import assert_close
from tfsafe import stabilize


@pytest.fixture
def unoptimized():
    """Without TensorFlow's graph optimizer, which takes `x ** [2, 2]` for `x * x`."""
    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    yield
    tf.config.optimizer.set_experimental_options({
        "disable_meta_optimizer": False,
        **before,
    })


def _with_larger_numbers(formula, x):
    """Yields the formula with one of its numbers as an array, for each of them."""
    graph = tf.function(formula).get_concrete_function(tf.TensorSpec(x.shape, name="x"))
    whole = graph.graph.as_graph_def()
    for place, node in enumerate(whole.node):
        if node.op != "Const" or node.attr["dtype"].type != tf.float32.as_datatype_enum:
            continue
        number = tf.make_ndarray(node.attr["value"].tensor)
        if number.ndim == 0:
            made = type(whole).FromString(whole.SerializeToString())
            array = tf.make_tensor_proto(np.full([2, 1, 1, 1], number))
            made.node[place].attr["value"].tensor.CopyFrom(array)
            yield _function_of(made, graph.outputs[0].name)


def _function_of(graph, output):
    return lambda x: tf.graph_util.import_graph_def(graph, {"x": x}, [output])[0]


@pytest.mark.parametrize("name", PAIRS)
def test_an_array_of_one_number_gives_the_result_its_shape(name, unoptimized):
    x = tf.constant(X)
    for formula in _with_larger_numbers(PAIRS[name][0], x):
        try:
            plain = tf.function(formula)(x)
        except (ValueError, tf.errors.InvalidArgumentError):
            continue  # TensorFlow takes no array there.
        for shape in (x.shape, [None, None]):
            spec = tf.TensorSpec(shape)
            stable = tf.function(stabilize(formula), input_signature=[spec])(x)
            assert stable.shape == plain.shape
            assert_close(stable, plain, 8000, why="the plain form cancels", scale=0.01)
