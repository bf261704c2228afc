"""The table of facts about operations, against TensorFlow's own registry."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close
from tfsafe.debugging.explain.causes import RULES
from tfsafe.graph import OP_FACTS, OpFact, op_types


def test_every_type_exists_in_tensorflow():
    assert {name for name in OP_FACTS if not hasattr(tf.raw_ops, name)} == set()


def test_the_table_is_sorted_and_every_row_says_something():
    assert list(OP_FACTS) == sorted(OP_FACTS)
    assert all(row.facts or row.bounds for row in OP_FACTS.values())


@pytest.mark.parametrize("fact", list(OpFact), ids=lambda fact: fact.name)
def test_every_fact_is_true_of_some_operation(fact):
    assert op_types(fact)


def test_every_domain_fault_that_is_explained_belongs_to_a_singular_type():
    # These need an infinite input, which another operation made.
    of_infinities = {"Add", "AddV2", "LogSoftmax", "Mul", "Softmax", "Sub"}
    of_infinities |= op_types(OpFact.PLAIN_CALL)
    # Of a gradient, "Log/Reciprocal" names its operation last.
    explained = {rule.op.split("/")[-1] for rule in RULES if rule.fault == "domain"}
    assert explained - of_infinities <= op_types(OpFact.SINGULAR)


def test_facts_that_imply_others_agree():
    assert op_types(OpFact.CURVED) <= op_types(OpFact.ELEMENTWISE)
    assert op_types(OpFact.CURVED) <= op_types(OpFact.KEEPS_SHAPE)
    assert op_types(OpFact.RESHAPES) <= op_types(OpFact.MOVES)
    assert op_types(OpFact.POLE) <= op_types(OpFact.ELEMENTWISE)


def _unary(name):
    """Returns a function of one floating tensor; None for other operations."""
    raw = getattr(tf.raw_ops, name)
    definition = _definition(name)
    if definition is None or len(definition.input_arg) != 1:
        return None
    return lambda x: raw(**{definition.input_arg[0].name: x})


def _definition(name):
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [3])
        try:
            raw = getattr(tf.raw_ops, name)
            output = raw(**{_FIRST.get(name, "x"): x})
        except (TypeError, ValueError):
            return None
        return output.op.op_def


_FIRST = dict.fromkeys(
    ("Elu", "LeakyRelu", "Relu", "Relu6", "Selu", "Softplus", "Softsign"), "features"
) | dict.fromkeys(("LogSoftmax", "Softmax"), "logits")
UNARY = [name for name in sorted(op_types(OpFact.KEEPS_SHAPE)) if _unary(name)]


def test_the_functions_of_one_tensor_are_found():
    assert set(UNARY) == op_types(OpFact.KEEPS_SHAPE)


@pytest.mark.parametrize("name", UNARY)
def test_bounds_and_shape_are_those_of_the_kernel(name):
    x = tf.constant(np.linspace(-90, 90, 721).reshape(7, 103), tf.float32)
    y = _unary(name)(x).numpy()
    assert y.shape == x.shape
    facts = OP_FACTS[name]
    if facts.bounds is not None:
        low, high = facts.bounds
        assert np.nanmin(y) >= low
        assert np.nanmax(y) <= high


@pytest.mark.parametrize("name", [name for name, row in OP_FACTS.items() if row.rising])
def test_a_rising_function_is_that_of_the_kernel(name):
    x = np.linspace(-5, 80, 50).astype(np.float32)
    y = _unary(name)(tf.constant(x)).numpy()
    ours = [OP_FACTS[name].rising(float(each)) for each in x]
    known = np.isfinite(y)
    assert_close(np.asarray(ours)[known], y[known], dtype="float32")


@pytest.mark.parametrize("name", sorted(op_types(OpFact.CURVED)))
def test_the_slope_of_a_curved_function_depends_on_its_argument(name):
    x = tf.constant([-0.7, -0.3, 0.2, 0.6, 1.5, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = _unary(name)(x)
    slopes = tape.gradient(y, x).numpy()
    slopes = slopes[np.isfinite(slopes)]
    assert len(set(np.round(slopes, 4))) > 1


@pytest.mark.parametrize("name", sorted(op_types(OpFact.COMMUTES)))
def test_operands_of_a_commutative_operation_may_change_places(name):
    x, y = tf.constant([1.0, -2.0]), tf.constant([3.0, 0.5])
    raw = getattr(tf.raw_ops, name)
    np.testing.assert_array_equal(raw(x=x, y=y), raw(x=y, y=x))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
@pytest.mark.parametrize("name", sorted(op_types(OpFact.STAYS_FINITE)))
def test_what_stays_finite_does_so_at_the_ends_of_its_dtype(name, dtype):
    ends = [dtype.min, -1.0, -0.0, 0.5, dtype.max]
    x, y = (tf.constant(each, dtype) for each in np.meshgrid(ends, ends))
    raw = getattr(tf.raw_ops, name)
    fields = list(inspect.signature(raw).parameters)[:-1]
    if name in {"SigmoidGrad", "TanhGrad"}:
        # The first is a value of the function.
        x = tf.clip_by_value(x, -1 if name == "TanhGrad" else 0, 1)
    given = [x, y] if len(fields) == 2 else [x]
    if name == "ClipByValue":
        given = [x, tf.constant(-1, dtype), tf.constant(1, dtype)]
    found = raw(**dict(zip(fields, given, strict=True)))
    assert np.isfinite(tf.cast(found, tf.float64)).all()
