"""Which gradients are bad, and what becomes of gradients of every kind."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe.optimizers import SafeOptimizer

NAN = float("nan")


@pytest.fixture(params=["replace", "zero_variable", "skip"])
def policy(request) -> str:
    return request.param


@pytest.mark.parametrize("indices", [[0, 2], [2, 2]], ids=["distinct", "repeated"])
def test_sparse_gradients_stay_sparse(indices, policy, mode):
    def table_after(wrap) -> np.ndarray:
        table = keras.Variable(np.ones((4, 3), "float32"))
        optimizer = wrap(keras.optimizers.Adam(0.1))
        optimizer.build([table])

        def step(values):
            rows = tf.IndexedSlices(values, tf.constant(indices), tf.constant([4, 3]))
            optimizer.apply([rows], [table])

        step = modes.compile_for(mode, step)
        for _ in range(3):
            step(tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
        return table.numpy()

    expected = table_after(lambda optimizer: optimizer)
    guarded = table_after(lambda optimizer: SafeOptimizer(optimizer, policy))
    assert np.array_equal(guarded, expected)


def test_a_nonfinite_slice_of_an_embedding_leaves_the_other_rows_alone(policy):
    table = keras.Variable(np.ones((4, 2), "float32"))
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.5), policy)
    values = tf.constant([[1.0, NAN], [1.0, 1.0]])
    rows = tf.IndexedSlices(values, tf.constant([0, 2]), tf.constant([4, 2]))
    optimizer.apply([rows], [table])
    one = [1.0, 1.0]
    replaced = [[0.5, 1.0], one, [0.5, 0.5], one]
    expected = replaced if policy == "replace" else [one] * 4
    assert table.numpy().tolist() == expected


def test_a_variable_without_gradient_is_skipped(policy, mode):
    variables = [keras.Variable([1.0], name=name) for name in ("used", "unused")]
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.5), policy)
    optimizer.build(variables)
    step = modes.compile_for(mode, lambda g: optimizer.apply([g, None], variables))

    def steps():
        step(tf.constant([1.0]))
        step(tf.constant([NAN]))

    # Keras says it whenever the step runs as Python.
    with pytest.warns(UserWarning, match="Gradients do not exist for"):
        steps()
    assert [v.numpy().tolist() for v in variables] == [[0.5], [1.0]]
    assert optimizer.last_nonfinite_variables == (variables[0].path,)


def test_no_gradient_at_all_is_keras_own_error(policy, mode):
    variable = keras.Variable([1.0])
    optimizer = SafeOptimizer("sgd", policy)
    step = modes.compile_for(mode, lambda: optimizer.apply([None], [variable]))
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        step()


def test_an_empty_list_of_gradients_does_nothing_as_in_keras():
    optimizer = SafeOptimizer("sgd")
    optimizer.apply([])
    assert optimizer.steps == 0


def test_variables_may_be_excluded_once_the_optimizer_is_built(policy):
    variable = keras.Variable([1.0])
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.5), policy)
    with pytest.raises(ValueError, match="must already be built"):
        optimizer.apply([tf.constant([1.0])])
    optimizer.build([variable])
    optimizer.apply([tf.constant([1.0])])
    assert variable.numpy().tolist() == [0.5]


def test_an_optimizer_that_was_built_before_needs_no_variables(policy):
    variable = keras.Variable([1.0])
    inner = keras.optimizers.SGD(0.5)
    inner.build([variable])
    optimizer = SafeOptimizer(inner, policy)
    optimizer.apply([tf.constant([1.0])])
    assert variable.numpy().tolist() == [0.5]


def test_a_part_of_the_variables_may_be_trained(policy):
    first, second = keras.Variable([1.0], name="a"), keras.Variable([1.0], name="b")
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.5), policy)
    optimizer.build([first, second])
    optimizer.apply([tf.constant([1.0])], [second])
    optimizer.apply([tf.constant([NAN])], [second])
    assert [first.numpy().tolist(), second.numpy().tolist()] == [[1.0], [0.5]]
    assert optimizer.last_nonfinite_variables == (second.path,)


def test_an_unknown_variable_is_keras_own_error():
    optimizer = SafeOptimizer("sgd")
    optimizer.build([keras.Variable([1.0])])
    with pytest.raises(ValueError, match="Unknown variable"):
        optimizer.apply([tf.constant([1.0])], [keras.Variable([1.0])])


def test_a_gradient_too_many_is_refused():
    optimizer = SafeOptimizer("sgd")
    with pytest.raises(ValueError, match=r"Received: 2 gradients and 1 variables"):
        optimizer.apply([tf.constant([1.0])] * 2, [keras.Variable([1.0])])


def test_tensorflow_variables_and_numpy_gradients_are_taken(policy):
    variable = tf.Variable([1.0, 1.0], name="weights")
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.5), policy)
    optimizer.apply([np.array([1.0, np.nan], "float32")], [variable])
    assert optimizer.last_nonfinite_variables == ("weights:0",)
    assert bool(tf.reduce_all(tf.math.is_finite(variable)))


@pytest.mark.skipif(
    modes.HAS_GPU,
    reason="a plain SGD of a complex variable ends the process there",
)
def test_complex_gradients_are_tested_by_their_magnitude(policy):
    variable = tf.Variable([0j, 0j], dtype=tf.complex64)
    gradient = tf.constant([1 + 1j, complex(0, 1e20)], tf.complex64)
    optimizer = SafeOptimizer(keras.optimizers.SGD(1.0), policy)
    try:
        keras.optimizers.SGD().apply([tf.zeros_like(variable)], [variable])
    except ValueError:
        pytest.skip("This Keras does not train complex variables.")
    optimizer.apply([gradient], [variable])
    expected = [-1 - 1j, 0j] if policy == "replace" else [0j, 0j]
    assert variable.numpy().tolist() == expected


def test_an_empty_variable_is_never_nonfinite(policy):
    variable = keras.Variable(np.zeros((0, 3), "float32"))
    optimizer = SafeOptimizer("sgd", policy)
    optimizer.apply([tf.zeros((0, 3))], [variable])
    assert optimizer.nonfinite_steps == 0


def test_overwritten_variables_keep_their_value_for_a_nonfinite_one(policy):
    scale = keras.Variable([3.0, 4.0])
    scale.overwrite_with_gradient = True
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.5), policy)
    weight = keras.Variable([1.0])
    # 1e16 is a value here, not a gradient: no limit holds for it.
    optimizer.apply([tf.constant([1e16, 2.0]), tf.constant([1.0])], [scale, weight])
    optimizer.apply([tf.constant([NAN, 5.0]), tf.constant([1.0])], [scale, weight])
    second = 5.0 if policy == "replace" else 2.0
    assert scale.numpy().tolist() == [np.float32(1e16), second]
    assert optimizer.nonfinite_steps == 1


def test_zero_variable_leaves_the_other_variables_their_step(mode):
    first, second = keras.Variable([1.0, 1.0]), keras.Variable([1.0])
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.5), "zero_variable")
    optimizer.build([first, second])
    grads = [tf.constant([NAN, 1.0]), tf.constant([1.0])]
    modes.compile_for(mode, lambda *g: optimizer.apply(list(g), [first, second]))(
        *grads
    )
    assert [v.numpy().tolist() for v in (first, second)] == [[1.0, 1.0], [0.5]]
    assert int(optimizer.iterations.numpy()) == 1


# -- The limit -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        ("float16", 60000.0, np.inf),
        ("bfloat16", 9e14, 1.1e15),
        ("float32", 9.9e14, 1.01e15),
        ("float64", 9.9e149, 1.01e150),
    ],
)
def test_the_default_limit_is_that_of_the_dtype(dtype, good, bad, mode):
    variable = keras.Variable([0.0, 0.0, 0.0], dtype=dtype)
    optimizer = SafeOptimizer(keras.optimizers.SGD(1.0))
    optimizer.build([variable])
    gradient = tf.constant([good, bad, -bad], dtype)
    step = modes.compile_for(mode, lambda g: optimizer.apply([g], [variable]))
    step(gradient)
    expected = [-float(tf.cast(gradient[0], tf.float64)), 0.0, 0.0]
    assert tf.cast(variable.value, tf.float64).numpy().tolist() == expected
    assert optimizer.was_nonfinite


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_squares_at_the_limit_leave_room_for_a_hundred_million_elements(dtype):
    limit = {"float32": 1e15, "float64": 1e150}[dtype]
    assert limit**2 * 1e8 < np.finfo(dtype).max


def test_the_dtype_of_the_variable_decides_not_that_of_the_gradient():
    variable = keras.Variable([0.0])
    optimizer = SafeOptimizer("adam")
    optimizer.apply([tf.constant([1e100], tf.float64)], [variable])
    assert optimizer.was_nonfinite


@pytest.mark.parametrize(
    ("limit", "good", "bad"), [(2.0, 2.0, 2.5), (np.inf, 3e38, np.inf)]
)
def test_the_limit_can_be_set(limit, good, bad):
    variable = keras.Variable([0.0, 0.0])
    optimizer = SafeOptimizer(keras.optimizers.SGD(1.0), limit=limit)
    optimizer.apply([tf.constant([good, bad])], [variable])
    assert variable.numpy().tolist() == [-np.float32(good), 0.0]


def test_the_limit_holds_for_the_gradient_without_its_loss_scale():
    inner = keras.optimizers.SGD(0.5, loss_scale_factor=1024.0)
    optimizer = SafeOptimizer(inner, limit=10.0)
    variable = keras.Variable([0.0, 0.0])
    optimizer.apply([tf.constant([10.0, 10.5]) * 1024], [variable])
    assert variable.numpy().tolist() == [-5.0, 0.0]


def test_a_loss_scale_cannot_lift_the_limit_above_infinity():
    inner = keras.optimizers.SGD(0.5, loss_scale_factor=1e30)
    optimizer = SafeOptimizer(inner)
    optimizer.apply([tf.constant([np.inf])], [keras.Variable([0.0])])
    assert optimizer.was_nonfinite


@pytest.mark.parametrize(
    "clipping", [{"clipnorm": 1.0}, {"global_clipnorm": 1.0}, {"clipvalue": 1.0}]
)
@pytest.mark.parametrize("value", [NAN, np.inf, 1e20])
def test_the_test_comes_before_the_inner_clipping(clipping, value):
    variables = [keras.Variable([1.0, 1.0]), keras.Variable([1.0])]
    optimizer = SafeOptimizer(keras.optimizers.SGD(1.0, **clipping))
    grads = [tf.constant([value, 0.5]), tf.constant([0.5])]
    optimizer.apply(grads, variables)
    assert [v.numpy().tolist() for v in variables] == [[1.0, 0.5], [0.5]]
