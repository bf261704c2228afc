"""Saved, loaded and continued: bit for bit the training without a break."""

import math
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import harness
from tfsafe.optimizers import SafeOptimizer

DATA = harness.small_data(bad_batches=[2])


def trained(optimizer, epochs: int = 1) -> keras.Model:
    model = harness.small_model(optimizer)
    harness.fit(model, *DATA, epochs=epochs)
    return model


def guarded(policy: str = "skip") -> SafeOptimizer:
    return SafeOptimizer(keras.optimizers.Adam(0.05), policy, max_consecutive=50)


def state(model: keras.Model) -> list[np.ndarray]:
    return [v.numpy() for v in [*model.trainable_variables, *model.optimizer.variables]]


def go_on(model: keras.Model) -> list[np.ndarray]:
    harness.fit(model, *DATA)
    return state(model)


@pytest.fixture(params=["replace", "skip"])
def policy(request) -> str:
    return request.param


def test_the_config_survives():
    optimizer = SafeOptimizer(
        keras.optimizers.Adam(0.25),
        "skip",
        limit=math.inf,
        max_consecutive=7,
        count_elements=True,
        name="g",
    )
    config = keras.optimizers.serialize(optimizer)
    assert config["registered_name"] == "tfsafe>SafeOptimizer"
    copy = keras.optimizers.deserialize(config)
    assert copy.get_config() == optimizer.get_config()
    assert copy.inner_optimizer.get_config() == optimizer.inner_optimizer.get_config()
    assert (copy.policy, copy.limit, copy.max_consecutive) == ("skip", math.inf, 7)


def test_counters_of_other_variables_are_not_loaded():
    """As Keras skips the variables of an optimizer whose model has adapters by now."""
    store = {}
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.1))
    optimizer.build([keras.Variable([1.0]), keras.Variable([1.0])])
    optimizer.apply([tf.constant([1.0]), tf.constant([math.nan])])
    optimizer.save_own_variables(store)
    fewer, same = (SafeOptimizer(keras.optimizers.SGD(0.1)) for _ in range(2))
    fewer.build([keras.Variable([1.0])])
    fewer.load_own_variables(store)
    assert (fewer.steps, fewer.nonfinite_steps) == (0, 0)
    same.build([keras.Variable([1.0]), keras.Variable([1.0])])
    same.load_own_variables(store)
    assert (same.steps, same.nonfinite_steps) == (1, 1)


def test_the_names_in_files_are_stable(tmp_path):
    optimizer = SafeOptimizer(
        keras.optimizers.SGD(), outlier_threshold=6.0, count_elements=True
    )
    variable = keras.Variable([1.0], dtype="bfloat16", name="kernel")
    optimizer.build([variable])
    store: dict[str, np.ndarray] = {}
    optimizer.save_own_variables(store)
    assert list(store) == [
        "steps",
        "nonfinite_steps",
        "consecutive_nonfinite_steps",
        "last_nonfinite_step",
        "outlier_steps",
        "gradient_norm_statistic",
        "last_nonfinite_variables",
        "nonfinite_steps_by_variable",
        "master_copy_0",
    ]
    checkpoint = tf.train.Checkpoint(optimizer=optimizer).write(str(tmp_path / "c"))
    keys = [key for key, _ in tf.train.list_variables(checkpoint)]
    names = {key.split("/")[1] for key in keys if key.startswith("optimizer/_")}
    # Those of Keras' own attributes differ between its versions.
    assert names - {"_iterations", "_learning_rate"} == {
        "_consecutive",
        "_flags",
        "_hits",
        "_last",
        "_nonfinite",
        "_outliers",
        "_steps",
        "_variables",
    }


def test_a_keras_file_goes_on_where_the_training_stopped(tmp_path, policy):
    model = trained(guarded(policy))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded.optimizer, SafeOptimizer)
    assert harness.same_bits(state(loaded), state(model))
    assert loaded.optimizer.nonfinite_steps == 1
    assert harness.same_bits(go_on(loaded), go_on(model))


def test_a_keras_file_with_a_loss_scale_optimizer_around_it_goes_on(tmp_path):
    scaled = keras.optimizers.LossScaleOptimizer(guarded(), initial_scale=4.0)
    model = trained(scaled)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert harness.same_bits(state(loaded), state(model))
    assert harness.same_bits(go_on(loaded), go_on(model))


def test_a_model_is_pickled_with_its_optimizer():
    model = trained(guarded())
    copy = pickle.loads(pickle.dumps(model))
    assert harness.same_bits(state(copy), state(model))


def test_a_weights_file_goes_on_where_the_training_stopped(tmp_path, policy):
    model = trained(guarded(policy))
    model.save_weights(tmp_path / "model.weights.h5")
    fresh = harness.small_model(guarded(policy))
    fresh.optimizer.build(fresh.trainable_variables)
    fresh.load_weights(tmp_path / "model.weights.h5")
    assert harness.same_bits(state(fresh), state(model))
    assert harness.same_bits(go_on(fresh), go_on(model))


def test_a_checkpoint_goes_on_where_the_training_stopped(tmp_path):
    model = trained(guarded())
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(
        tmp_path / "checkpoint"
    )
    fresh = harness.small_model(guarded())
    fresh.optimizer.build(fresh.trainable_variables)
    tf.train.Checkpoint(model=fresh, optimizer=fresh.optimizer).restore(
        path
    ).assert_existing_objects_matched()
    assert harness.same_bits(state(fresh), state(model))
    assert harness.same_bits(go_on(fresh), go_on(model))


def test_a_checkpoint_of_a_plain_optimizer_goes_into_the_inner_one(tmp_path):
    plain = harness.small_model(keras.optimizers.Adam(0.05))
    harness.fit(plain, *harness.small_data())
    path = tf.train.Checkpoint(optimizer=plain.optimizer).save(tmp_path / "checkpoint")
    optimizer = guarded()
    optimizer.build(plain.trainable_variables)
    tf.train.Checkpoint(optimizer=optimizer.inner_optimizer).restore(path)
    values = [v.numpy() for v in optimizer.inner_optimizer.variables]
    assert harness.same_bits(values, [v.numpy() for v in plain.optimizer.variables])


def test_backup_and_restore_resumes_with_the_counts(tmp_path):
    class Interrupted(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

    def backup():
        return keras.callbacks.BackupAndRestore(tmp_path)

    model = harness.small_model(guarded())
    with pytest.raises(KeyboardInterrupt):
        harness.fit(model, *DATA, epochs=2, callbacks=[backup(), Interrupted()])
    resumed = harness.small_model(guarded())
    harness.fit(resumed, *DATA, epochs=2, callbacks=[backup()])
    assert resumed.optimizer.steps == 12
    assert resumed.optimizer.nonfinite_steps == 2
    assert harness.same_bits(state(resumed), state(trained(guarded(), epochs=2)))


def test_a_trained_optimizer_is_wrapped_unchanged():
    plain = harness.small_model(keras.optimizers.Adam(0.05))
    x, y = harness.small_data()
    harness.fit(plain, x, y, epochs=2)
    model = harness.small_model(keras.optimizers.Adam(0.05))
    harness.fit(model, x, y)
    model.compile(SafeOptimizer(model.optimizer), "mse")
    harness.fit(model, x, y)
    assert harness.same_bits(model.get_weights(), plain.get_weights())
    assert int(model.optimizer.iterations.numpy()) == 12


def test_a_weights_file_of_a_plain_optimizer_is_taken(tmp_path):
    plain = harness.small_model(keras.optimizers.Adam(0.05))
    harness.fit(plain, *harness.small_data())
    plain.save_weights(tmp_path / "plain.weights.h5")
    model = harness.small_model(guarded())
    model.optimizer.build(model.trainable_variables)
    # Keras looks for a second inner optimizer in the file, and finds none.
    with pytest.warns(UserWarning, match="the saved optimizer has 0 variables"):
        model.load_weights(tmp_path / "plain.weights.h5")
    inner = model.optimizer.inner_optimizer
    values = [v.numpy() for v in inner.variables]
    assert harness.same_bits(values, [v.numpy() for v in plain.optimizer.variables])


def test_a_file_without_optimizer_leaves_the_counts_alone():
    optimizer = guarded()
    optimizer.build([keras.Variable([1.0])])
    optimizer.load_own_variables({})
    assert optimizer.steps == 0


def test_set_weights_takes_all_variables_or_those_of_the_inner_optimizer():
    model = trained(guarded())
    values = [v.numpy() for v in model.optimizer.variables]
    inner_values = [v.numpy() for v in model.optimizer.inner_optimizer.variables]
    for given in (values, inner_values):
        fresh = guarded()
        fresh.build(model.trainable_variables)
        fresh.set_weights(given)
        found = [v.numpy() for v in fresh.inner_optimizer.variables]
        assert harness.same_bits(found, inner_values)
        assert fresh.nonfinite_steps == (1 if given is values else 0)


def test_set_weights_refuses_another_number():
    optimizer = guarded()
    with pytest.raises(ValueError, match=r"`weights` must hold 6 arrays.*Received: 3"):
        optimizer.set_weights([0, 0, 0])
