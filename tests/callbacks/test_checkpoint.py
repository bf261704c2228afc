"""Saving a training and going on with it: rows T08 and T13 of the catalogue."""

import keras
import numpy as np
import pytest

import tfsafe
from tests.callbacks import training
from tests.callbacks.training import BreakWeights, Script, eager, fit, warns
from tests.support.oracle import assert_close
from tests.support.warned import ours
from tfsafe import callbacks

NAN = float("nan")
BROKEN = "does not save a broken model: .*head/kernel, .*head/bias hold NaN"


class Interrupt(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def saved(path):
    model = eager()
    model.load_weights(path)
    return model


def checkpoint(path, package=callbacks, **options):
    return package.ModelCheckpoint(str(path), save_weights_only=True, **options)


def test_t08_the_last_finite_model_stays_on_the_disk(tmp_path):
    data = training.clean_data()
    path = str(tmp_path / "last.weights.h5")
    fit(eager(), data, BreakWeights(1), checkpoint(path, keras.callbacks), epochs=2)
    assert not training.is_finite(saved(path))

    with warns(f"ModelCheckpoint {BROKEN}") as caught:
        fit(eager(), data, BreakWeights(1), checkpoint(path), epochs=2)
    assert len(ours(caught)) == 1
    once = eager()
    fit(once, data)
    for mine, theirs in zip(saved(path).weights, once.weights, strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


def test_t08_a_nan_loss_writes_no_best_model(tmp_path):
    data, path = training.data_with_a_bad_batch(), tmp_path / "best.weights.h5"
    options = {"monitor": "loss", "save_best_only": True}
    keras_own = checkpoint(path, keras.callbacks, **options)
    fit(eager(), data, keras_own, epochs=2)
    # Older Keras starts from infinity instead, which is right.
    assert path.exists() == np.isnan(keras_own.best)
    path.unlink(missing_ok=True)
    fit(eager(), data, checkpoint(path, **options), epochs=2)
    assert not path.exists()


@pytest.mark.parametrize("first", [NAN, float("-inf")])
def test_t13_the_best_value_is_finite(tmp_path, first):
    script = Script([first, 3.0, 2.0, 1.0])
    best = checkpoint(tmp_path / "a.weights.h5", save_best_only=True, mode="min")
    fit(eager(), training.clean_data(), script, best, epochs=4)
    assert best.best == 1.0


def test_a_best_value_that_is_missing_is_left_to_keras(tmp_path):
    best = checkpoint(tmp_path / "a.weights.h5", save_best_only=True)
    with warns("Can save best model only with val_loss", UserWarning):
        fit(eager(), training.clean_data(), best)


def test_a_save_after_so_many_batches_waits_for_a_finite_one(tmp_path):
    path = str(tmp_path / "{batch}.weights.h5")
    with warns(BROKEN), warns("goes back"):
        fit(
            eager(),
            training.data_with_a_bad_batch(),
            checkpoint(path, save_freq=2),
            callbacks.RollbackOnNonFinite(save_freq=1),
        )
    # Batch 2 of 5 is bad, and mended by the callback that comes after.
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "2.weights.h5",
        "4.weights.h5",
    ]


def test_a_best_model_after_so_many_batches(tmp_path):
    path = str(tmp_path / "best.weights.h5")
    best = checkpoint(path, save_freq=5, save_best_only=True, monitor="loss")
    history = fit(eager(), training.clean_data(), best, epochs=3)
    assert_close(float(best.best), min(history["loss"]), dtype="float32")


def test_a_whole_model_is_saved_and_trains_on(tmp_path):
    path = str(tmp_path / "model.keras")
    data = training.clean_data()
    fit(eager("adam"), data, callbacks.ModelCheckpoint(path), epochs=2)
    assert np.isfinite(fit(keras.saving.load_model(path), data)["loss"]).all()


def backup(path, package=callbacks, **options):
    return package.BackupAndRestore(str(path), **options)


def interrupted(path, *others, package=callbacks, **options):
    model = eager("adam")
    with pytest.raises(KeyboardInterrupt):
        fit(
            model,
            training.clean_data(),
            *others,
            backup(path, package, **options),
            Interrupt(),
            epochs=4,
        )
    return model


def resumed(path, package=callbacks):
    model = eager("adam")
    history = fit(model, training.clean_data(), backup(path, package), epochs=4)
    return model, history


def test_t08_an_interrupted_training_resumes_from_the_last_finite_state(tmp_path):
    interrupted(tmp_path, BreakWeights(1), package=keras.callbacks)
    model, _ = resumed(tmp_path, keras.callbacks)
    assert not training.is_finite(model)

    with warns(f"BackupAndRestore {BROKEN}"):
        interrupted(tmp_path, BreakWeights(1))
    model, history = resumed(tmp_path)
    assert training.is_finite(model)
    # The broken epoch is done again.
    assert len(history["loss"]) == 3


def test_a_backup_that_is_broken_already_is_refused_with_a_suggestion(tmp_path):
    interrupted(tmp_path, BreakWeights(1), package=keras.callbacks)
    with pytest.raises(tfsafe.NumericsError, match=r"head/kernel.*delete it to start"):
        resumed(tmp_path)


def test_a_finite_training_resumes_where_it_was(tmp_path):
    interrupted(tmp_path)
    _, history = resumed(tmp_path)
    whole = eager("adam")
    expected = fit(whole, training.clean_data(), epochs=4)
    assert history["loss"] == expected["loss"][2:]
    assert not tmp_path.exists()


def test_a_backup_after_so_many_batches_leaves_the_broken_ones_out(tmp_path):
    class NaNSlots(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                slot = self.model.optimizer.variables[-1]
                slot.assign(slot + np.nan)

    with warns("velocity"):
        interrupted(tmp_path, NaNSlots(), save_freq=2)
    model = eager("adam")
    fit(model, training.clean_data(), backup(tmp_path, delete_checkpoint=False))
    assert model.optimizer.iterations.numpy() == 7
