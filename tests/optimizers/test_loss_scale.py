"""The loss scale stays in bounds; everything else is as in Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import harness
from tests.support import modes
from tfsafe import optimizers
from tfsafe.optimizers import LossScaleOptimizer, SafeOptimizer

NAN = float("nan")


class Steps:
    """One variable and a step in one mode, of a gradient before its scaling."""

    def __init__(self, mode="eager", module=optimizers, inner=None, **arguments):
        self.variable = keras.Variable([1.0])
        inner = inner or keras.optimizers.SGD(0.5)
        self.optimizer = module.LossScaleOptimizer(inner, **arguments)
        self.optimizer.build([self.variable])

        def step(gradient):
            scaled = self.optimizer.scale_loss(gradient)
            self.optimizer.apply([scaled], [self.variable])

        self._step = modes.compile_for(mode, step)

    def take(self, *gradients):
        for gradient in gradients:
            self._step(tf.constant([gradient]))
        return self.variable.numpy().tolist(), float(self.scale.numpy())

    @property
    def scale(self):
        return self.optimizer.dynamic_scale


@pytest.mark.parametrize("compiled", ["graph", "xla"])
def test_p09_the_scale_has_a_floor_and_training_goes_on(compiled):
    steps = Steps(compiled)
    assert steps.take(*[NAN] * 200) == ([1.0], 1.0)
    assert steps.take(1.0) == ([0.5], 1.0)


def test_p09_plain_keras_halves_down_to_zero_and_then_writes_nan():
    steps = Steps("graph", keras.optimizers)
    assert steps.take(*[NAN] * 200) == ([1.0], 0.0)
    assert np.isnan(steps.take(1.0)[0]).all()


def test_the_floor_can_be_set():
    assert Steps("graph", minimum_scale=0.25).take(*[NAN] * 20)[1] == 0.25


def test_p10_the_scale_has_a_ceiling_from_which_it_comes_back(mode):
    steps = Steps(mode, dynamic_growth_steps=1, initial_scale=2.0**127)
    # 2**128 would be infinite, and half of it as well.
    assert steps.take(1e-30)[1] == 2.0**127
    weights, scale = steps.take(1.0, 1e3)
    assert np.isfinite(weights).all()
    assert scale == 2.0**126


def test_p10_the_scale_of_plain_keras_stays_infinite_for_ever():
    steps = Steps(
        "graph", keras.optimizers, dynamic_growth_steps=1, initial_scale=2.0**127
    )
    assert steps.take(1e-30, *[1.0] * 5)[1] == np.inf


@pytest.mark.parametrize("bad", [NAN, np.inf, -np.inf])
def test_p15_a_nonfinite_step_is_skipped_and_halves_the_scale(bad, mode):
    steps = Steps(mode, initial_scale=8.0)
    assert steps.take(1.0, bad) == ([0.5], 4.0)
    assert int(steps.optimizer.iterations.numpy()) == 1


def test_finite_steps_double_the_scale(mode):
    steps = Steps(mode, initial_scale=2.0, dynamic_growth_steps=2)
    assert [steps.take(0.0)[1] for _ in range(4)] == [2.0, 4.0, 4.0, 8.0]


def test_sparse_and_missing_gradients_are_looked_at():
    optimizer = LossScaleOptimizer(keras.optimizers.SGD(0.5))
    rows = tf.IndexedSlices(tf.constant([[NAN]]), tf.constant([1]), tf.constant([2, 1]))
    assert not optimizer.check_finite([None, tf.constant([1.0]), rows])
    assert optimizer.check_finite([None, tf.constant([1.0])])
    assert optimizer.check_finite([])


def test_fit_on_clean_data_is_that_of_keras_bit_for_bit():
    def fitted(module):
        model = harness.small_model(module.LossScaleOptimizer(keras.optimizers.Adam()))
        harness.fit(model, *harness.small_data(), epochs=2)
        return model.get_weights()

    assert harness.same_bits(fitted(optimizers), fitted(keras.optimizers))


def test_compile_adds_no_second_one_under_mixed_precision():
    optimizer = LossScaleOptimizer(SafeOptimizer(keras.optimizers.Adam()))
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = harness.small_model(optimizer)
        harness.fit(model, *harness.small_data(bad_batches=[2]))
    finally:
        keras.config.set_dtype_policy(before)
    assert model.optimizer is optimizer
    assert harness.all_finite(model.get_weights())
    assert float(optimizer.dynamic_scale.numpy()) == 2.0**14


def test_a_keras_file_goes_on_where_the_training_stopped(tmp_path):
    inner = SafeOptimizer(keras.optimizers.Adam(0.05))
    optimizer = LossScaleOptimizer(inner, minimum_scale=0.5, name="scale")
    model = harness.small_model(optimizer)
    data = harness.small_data(bad_batches=[2])
    harness.fit(model, *data)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer) is LossScaleOptimizer
    assert (loaded.optimizer.minimum_scale, loaded.optimizer.name) == (0.5, "scale")
    for each in (model, loaded):
        harness.fit(each, *data)
    pairs = [[v.numpy() for v in m.optimizer.variables] for m in (model, loaded)]
    assert harness.same_bits(*pairs)
    assert harness.same_bits(model.get_weights(), loaded.get_weights())


# -- What Keras does not pass on -------------------------------------------------------


def test_set_weights_takes_the_values_of_variables():
    first, second = Steps(initial_scale=8.0), Steps()
    first.take(1.0, NAN)
    values = [v.numpy() for v in first.optimizer.variables]
    second.optimizer.set_weights(values)
    assert float(second.scale.numpy()) == 4.0
    assert int(second.optimizer.iterations.numpy()) == 1


def test_set_weights_refuses_another_number():
    with pytest.raises(ValueError, match=r"`weights` must hold \d arrays.*Received: 1"):
        Steps().optimizer.set_weights([0])


def test_apply_gradients_returns_the_iterations_of_the_inner_optimizer():
    steps = Steps()
    pairs = [(tf.constant([1.0]), steps.variable)]
    for count in (1, 2):
        assert int(steps.optimizer.apply_gradients(pairs).numpy()) == count
    assert int(steps.optimizer.inner_optimizer.iterations.numpy()) == 2


def test_variables_excluded_from_weight_decay_stay_excluded():
    variable = keras.Variable([1.0], name="kernel")
    optimizer = LossScaleOptimizer(keras.optimizers.SGD(0.5, weight_decay=0.5))
    optimizer.exclude_from_weight_decay(var_names=["kernel"])
    optimizer.apply([tf.constant([0.0])], [variable])
    assert variable.numpy().tolist() == [1.0]


@pytest.mark.parametrize("floor", [0, -1.0, NAN, "1", True, 8.0])
def test_a_floor_that_is_no_number_or_above_the_first_scale_is_refused(floor):
    with pytest.raises(ValueError, match="`minimum_scale` must be a positive number"):
        LossScaleOptimizer(
            keras.optimizers.SGD(), initial_scale=4.0, minimum_scale=floor
        )


def test_wrapping_it_into_a_safe_optimizer_is_refused():
    with pytest.raises(ValueError, match=r"`LossScaleOptimizer\(SafeOptimizer\("):
        SafeOptimizer(LossScaleOptimizer(keras.optimizers.SGD()))
