"""Everything Keras does with an optimizer works as with the inner one alone."""

import pydoc

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import harness
from tests.support.oracle import assert_close
from tfsafe import optimizers
from tfsafe.optimizers import SafeOptimizer

POLICIES = ["replace", "skip"]
NAN = float("nan")


@pytest.fixture(params=POLICIES)
def policy(request) -> str:
    return request.param


def fitted(optimizer, **arguments) -> list[np.ndarray]:
    """Returns the weights after three epochs on clean data."""
    model = harness.small_model(optimizer)
    harness.fit(model, *harness.small_data(), epochs=3, **arguments)
    return model.get_weights()


# -- Attributes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weight_decay", 0.1),
        ("clipnorm", 2.0),
        ("clipvalue", 2.0),
        ("global_clipnorm", 2.0),
        ("use_ema", True),
        ("ema_momentum", 0.5),
        ("ema_overwrite_frequency", 3),
        ("gradient_accumulation_steps", 4),
        ("loss_scale_factor", 8.0),
    ],
)
def test_attributes_are_those_of_the_inner_optimizer(name, value):
    inner = keras.optimizers.Adam(**{name: value})
    optimizer = SafeOptimizer(inner)
    assert getattr(inner, name) == value, "wrapping must not change the inner optimizer"
    assert getattr(optimizer, name) == value
    setattr(optimizer, name, None)
    assert getattr(inner, name) is None


def test_the_learning_rate_is_read_from_and_set_on_the_inner_optimizer():
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.25))
    assert float(optimizer.learning_rate.numpy()) == 0.25
    optimizer.learning_rate = 0.5
    assert float(optimizer.inner_optimizer.learning_rate.numpy()) == 0.5
    variable = keras.Variable([1.0])
    optimizer.apply([tf.constant([1.0])], [variable])
    assert variable.numpy().tolist() == [0.5]


def test_iterations_count_the_steps_of_the_inner_optimizer(policy):
    variable = keras.Variable([1.0, 1.0])
    optimizer = SafeOptimizer("sgd", policy)
    for value in (1.0, NAN, 1.0):
        returned = optimizer.apply_gradients([(tf.constant([value, 1.0]), variable)])
    expected = 3 if policy == "replace" else 2
    assert int(optimizer.iterations.numpy()) == expected
    assert int(returned.numpy()) == expected


def test_a_schedule_goes_on_when_replacing_and_waits_when_skipping(policy):
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.5, 0.25])
    variables = [keras.Variable([1.0]), keras.Variable([1.0])]
    optimizer = SafeOptimizer(keras.optimizers.SGD(schedule), policy)
    for value in (1.0, NAN):
        optimizer.apply([tf.constant([value]), tf.constant([1.0])], variables)
    rate = 0.5 if policy == "skip" else 0.25
    assert float(optimizer.learning_rate) == rate


def test_a_schedule_cannot_be_replaced_by_a_number_as_in_keras():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    optimizer = SafeOptimizer(keras.optimizers.SGD(schedule))
    with pytest.raises(TypeError, match="learning rate is not settable"):
        optimizer.learning_rate = 0.5


@pytest.mark.parametrize(
    "callback",
    [
        lambda: keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2),
        # Nothing improves by 100, so that the rate falls after every epoch.
        lambda: keras.callbacks.ReduceLROnPlateau("loss", 0.1, 1, min_delta=100),
    ],
    ids=["LearningRateScheduler", "ReduceLROnPlateau"],
)
def test_callbacks_that_set_the_learning_rate_reach_the_inner_optimizer(callback):
    plain, inner = keras.optimizers.Adam(0.1), keras.optimizers.Adam(0.1)
    expected = fitted(plain, callbacks=[callback()])
    assert harness.same_bits(
        fitted(SafeOptimizer(inner), callbacks=[callback()]), expected
    )
    assert float(inner.learning_rate.numpy()) < 0.1
    assert float(inner.learning_rate.numpy()) == float(plain.learning_rate.numpy())


def test_help_shows_what_is_passed_on():
    text = pydoc.render_doc(SafeOptimizer, renderer=pydoc.plaintext)
    assert "The inner optimizer's `learning_rate`." in text


def test_an_attribute_that_the_inner_optimizer_lacks_is_an_attribute_error():
    with pytest.raises(AttributeError, match="optimizers"):
        _ = SafeOptimizer("adam").optimizers


# -- Moving averages, weight decay, loss scale -----------------------------------------


def test_averages_of_the_weights_are_finalized_by_fit(policy):
    expected = fitted(keras.optimizers.Adam(0.1, use_ema=True))
    inner = keras.optimizers.Adam(0.1, use_ema=True)
    assert harness.same_bits(fitted(SafeOptimizer(inner, policy)), expected)
    averages = [average.numpy() for average in inner.variables[2:][:4]]
    assert harness.same_bits(averages, expected)


def wrapped(optimizer):
    return SafeOptimizer(optimizer)


def wrapped_twice(optimizer):
    guarded = SafeOptimizer(optimizer)
    return keras.optimizers.LossScaleOptimizer(guarded, initial_scale=1.0)


@pytest.mark.parametrize("wrap", [wrapped, wrapped_twice])
def test_swapping_averages_in_for_validation_works(wrap):
    data = harness.small_data()
    results = []
    for make in (lambda optimizer: optimizer, wrap):
        model = harness.small_model(make(keras.optimizers.Adam(0.1, use_ema=True)))
        history = harness.fit(
            model,
            *data,
            epochs=2,
            validation_data=data,
            callbacks=[keras.callbacks.SwapEMAWeights(swap_on_epoch=True)],
        )
        results.append((history.history["val_loss"], model.get_weights()))
    assert results[0][0] == results[1][0]
    assert harness.same_bits(results[0][1], results[1][1])


def test_variables_excluded_from_weight_decay_stay_excluded():
    variables = [keras.Variable([1.0], name="kernel"), keras.Variable([1.0], name="b")]
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.5, weight_decay=0.5))
    optimizer.exclude_from_weight_decay(var_names=["kernel"])
    optimizer.apply([tf.constant([0.0])] * 2, variables)
    assert [v.numpy().tolist() for v in variables] == [[1.0], [0.75]]


def test_a_fixed_loss_scale_is_applied_and_removed_once():
    expected = fitted(keras.optimizers.Adam(0.1))
    inner = keras.optimizers.Adam(0.1, loss_scale_factor=1024.0)
    assert harness.same_bits(fitted(SafeOptimizer(inner)), expected)


def test_averages_that_overwrite_the_weights_do_so_in_fit(policy):
    def adam():
        return keras.optimizers.Adam(0.1, use_ema=True, ema_overwrite_frequency=2)

    assert harness.same_bits(fitted(SafeOptimizer(adam(), policy)), fitted(adam()))


# -- Interfaces ------------------------------------------------------------------------


def test_keras_takes_it_as_an_optimizer():
    optimizer = SafeOptimizer("adam")
    assert keras.optimizers.get(optimizer) is optimizer
    model = harness.small_model(optimizer)
    assert model.optimizer is optimizer


def test_its_class_and_config_make_an_equal_one():
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.25), "skip")
    copy = SafeOptimizer.from_config(optimizer.get_config())
    assert copy.get_config() == optimizer.get_config()


def test_a_trained_model_is_exported(tmp_path):
    model = harness.small_model(SafeOptimizer("adam"))
    x, y = harness.small_data()
    harness.fit(model, x, y)
    model.export(str(tmp_path))
    artifact = tf.saved_model.load(str(tmp_path))
    found = artifact.serve(tf.constant(x))
    assert_close(found, model.predict(x, verbose=0))


def test_a_model_compiled_with_it_is_compiled_again_from_its_config():
    model = harness.small_model(SafeOptimizer("adam", "skip"))
    config = model.get_compile_config()
    copy = keras.models.clone_model(model)
    copy.compile_from_config(config)
    assert isinstance(copy.optimizer, SafeOptimizer)
    assert copy.optimizer.get_config() == model.optimizer.get_config()


def test_a_step_without_state_is_refused_as_by_keras_on_tensorflow():
    variable = keras.Variable([1.0])
    for optimizer in (keras.optimizers.SGD(), SafeOptimizer("sgd")):
        optimizer.build([variable])
        values = [v.value for v in optimizer.variables]
        with pytest.raises(ValueError, match="stateless_apply"):
            optimizer.stateless_apply(values, [tf.ones(1)], [variable.value])


# -- The import swap -------------------------------------------------------------------


def test_every_other_name_is_keras_own():
    assert optimizers.Adam is keras.optimizers.Adam
    assert optimizers.schedules is keras.optimizers.schedules
    assert optimizers.__all__ == ["LossScaleOptimizer", "RMSprop", "SafeOptimizer"]
    assert {"SafeOptimizer", "Adam", "get"} <= set(dir(optimizers))
    with pytest.raises(AttributeError, match="no attribute 'Adman'"):
        _ = optimizers.Adman
