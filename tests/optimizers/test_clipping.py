"""Clipping in the wrapper: as Keras clips, but where the squares overflow as well."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import harness
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.optimizers import SafeOptimizer

NAMES = ["clipnorm", "global_clipnorm"]
NAN, INF = float("nan"), float("inf")


def stepped(grads, mode="eager", inner=None, policy="replace", **clipping):
    """Returns minus the step of SGD(1.0) for these gradients."""
    grads = [tf.convert_to_tensor(gradient) for gradient in grads]
    variables = [keras.Variable(tf.zeros_like(g), dtype=g.dtype.name) for g in grads]
    optimizer = inner or SafeOptimizer(keras.optimizers.SGD(1.0), policy, **clipping)
    optimizer.build(variables)
    step = modes.compile_for(mode, lambda *g: optimizer.apply(list(g), variables))
    step(*grads)
    return [-v.numpy() for v in variables]


@pytest.mark.parametrize("name", NAMES)
def test_p03_a_gradient_whose_square_overflows_is_scaled_down(name, mode, dtype):
    size = {"float16": 1e4, "float64": 1e200}.get(dtype.name, 1e38)
    gradient = tf.cast(tf.constant([0.75 * size, size], tf.float64), dtype)
    (step,) = stepped([gradient], mode, **{name: 1.0})
    assert_close(step, [0.6, 0.8], 2)


@pytest.mark.parametrize(
    ("name", "keras_makes"), [("clipnorm", 0.0), ("global_clipnorm", NAN)]
)
def test_p03_plain_keras_loses_such_a_gradient(name, keras_makes):
    gradient = tf.constant([3e19, 4e19])
    inner = keras.optimizers.SGD(1.0, **{name: 1.0})
    (step,) = stepped([gradient], inner=inner)
    np.testing.assert_array_equal(np.abs(step), [keras_makes] * 2)
    assert_close(stepped([gradient], **{name: 1.0})[0], [0.6, 0.8])


@pytest.mark.parametrize("policy", ["replace", "zero_variable"])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("name", NAMES)
def test_p02_a_nonfinite_element_stays_in_its_variable(name, value, policy):
    grads = [[value, 6.0], [8.0]]
    first, second = stepped(grads, "graph", policy=policy, **{name: 1.0})
    kept = 6.0 if policy == "replace" else 0.0
    norms = (kept, 8.0) if name == "clipnorm" else (np.hypot(kept, 8.0),) * 2
    assert_close(first, [0.0, kept and kept / norms[0]])
    assert_close(second, [8.0 / norms[1]])


@pytest.mark.parametrize("value", [NAN, INF])
def test_p02_plain_keras_spreads_it_under_global_clipnorm(value):
    inner = keras.optimizers.SGD(1.0, global_clipnorm=1.0)
    _, second = stepped([[value, 6.0], [8.0]], inner=inner)
    assert np.isnan(second).all()


@pytest.mark.parametrize("name", NAMES)
def test_p14_a_gradient_of_zeros_stays_zero(name):
    for step in stepped([[0.0, 0.0], [0.0]], "graph", **{name: 1.0}):
        assert not step.any()


@pytest.mark.parametrize("name", NAMES)
def test_clipping_agrees_with_keras_where_keras_is_right(name):
    grads = [gradient for step in harness.clean_gradients(2) for gradient in step]
    ours = stepped(grads, "graph", **{name: 0.7})
    theirs = stepped(grads, "graph", inner=keras.optimizers.SGD(1.0, **{name: 0.7}))
    for step, expected in zip(ours, theirs, strict=True):
        assert_close(step, expected)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_short_enough_is_passed_on_bit_for_bit(name, mode):
    grads = [gradient for step in harness.clean_gradients(2) for gradient in step]
    steps = stepped(grads, mode, **{name: 100.0})
    assert all(
        np.array_equal(s.astype("float32"), g)
        for s, g in zip(steps, grads, strict=True)
    )


def test_the_common_norm_may_itself_be_above_the_largest_number(mode):
    steps = stepped(
        [[3e38], [3e38], [0.0], np.zeros((0, 2), "float32")], mode, global_clipnorm=1.0
    )
    assert_close(np.concatenate(steps[:3]), [0.5**0.5] * 2 + [0.0])


def test_a_gradient_of_zeros_does_not_hide_a_tiny_one(mode):
    steps = stepped([[0.0], [1e-30]], mode, global_clipnorm=1e-32)
    assert_close(np.concatenate(steps), [0.0, 1e-32])


def test_gradients_of_several_dtypes_have_one_norm():
    grads = [
        tf.constant([3.0], tf.float16),
        tf.constant([4.0]),
        tf.constant([12.0], "double"),
    ]
    steps = stepped(grads, global_clipnorm=1.0)
    assert_close(steps, [[3 / 13], [4 / 13], [12 / 13]], 1)


@pytest.mark.parametrize("has_shape", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_sparse_gradient_count_as_their_sum(name, has_shape, mode):
    table = keras.Variable(np.zeros((4, 1), "float32"))
    optimizer = SafeOptimizer(keras.optimizers.SGD(1.0), **{name: 1.0})
    optimizer.build([table])

    def step(values):
        shape = tf.constant([4, 1]) if has_shape else None
        rows = tf.IndexedSlices(values, tf.constant([2, 0, 2]), shape)
        optimizer.apply([rows], [table])

    # Row 2 sums to 4e38, above the largest number.
    modes.compile_for(mode, step)(tf.constant([[2e38], [3e38], [2e38]]))
    expected = [[-0.6], [0.0], [-0.8], [0.0]]
    assert_close(table.numpy(), expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_skipped_step_is_not_clipped_but_skipped(name):
    steps = stepped([[NAN, 6.0], [8.0]], "graph", policy="skip", **{name: 1.0})
    assert not np.concatenate(steps).any()


def test_the_norm_is_that_of_the_gradient_without_its_loss_scale():
    inner = keras.optimizers.SGD(1.0, loss_scale_factor=1024.0)
    steps = stepped([[3.0 * 1024, 4.0 * 1024]], inner=SafeOptimizer(inner, clipnorm=1))
    assert_close(steps[0], [0.6, 0.8])


def test_values_that_overwrite_their_variable_are_not_clipped():
    scale, weight = keras.Variable([1.0]), keras.Variable([0.0])
    scale.overwrite_with_gradient = True
    optimizer = SafeOptimizer(keras.optimizers.SGD(1.0), global_clipnorm=1.0)
    optimizer.apply([tf.constant([50.0]), tf.constant([2.0])], [scale, weight])
    assert [scale.numpy().tolist(), weight.numpy().tolist()] == [[50.0], [-1.0]]


# -- Limit and attributes --------------------------------------------------------------


def test_an_explicit_limit_holds_before_the_clipping():
    optimizer = SafeOptimizer(keras.optimizers.SGD(1.0), clipnorm=1.0, limit=10.0)
    steps = stepped([[11.0, 5.0]], inner=optimizer)
    assert steps[0].tolist() == [0.0, 1.0]
    assert optimizer.was_nonfinite


def test_the_attributes_are_the_wrappers_where_it_clips():
    inner = keras.optimizers.SGD(1.0)
    optimizer = SafeOptimizer(inner, clipnorm=2.0)
    assert (optimizer.clipnorm, optimizer.global_clipnorm) == (2.0, None)
    optimizer.clipnorm, optimizer.global_clipnorm = None, 1.0
    assert (inner.clipnorm, inner.global_clipnorm) == (None, None)
    (step,) = stepped([[3.0, 4.0]], inner=optimizer)
    assert_close(step, [0.6, 0.8])


def test_clipping_can_be_switched_off():
    optimizer = SafeOptimizer(keras.optimizers.SGD(1.0), clipnorm=2.0)
    optimizer.clipnorm = None
    assert stepped([[3.0, 1e20]], inner=optimizer)[0].tolist() == [3.0, 0.0]


@pytest.mark.parametrize(("norm", "step"), [(1e30, [3.0, 0.0]), (1e15, [3e-5, 1e15])])
def test_a_norm_to_clip_to_above_the_limit_leaves_the_limit(norm, step):
    steps = stepped([[3.0, 1e20]], global_clipnorm=norm)
    assert_close(steps[0], step)


def test_the_clipping_survives_in_the_config():
    optimizer = SafeOptimizer("sgd", global_clipnorm=2.0)
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert copy.get_config() == optimizer.get_config()
    assert (copy.clipnorm, copy.global_clipnorm) == (None, 2.0)
