"""Penalties on directions that are not orthogonal, and the import-swap."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import regularizers

KERNEL = np.random.default_rng(0).normal(size=(4, 3))


@pytest.mark.parametrize("direction", ["rows", "columns"])
def test_ordinary_penalties_and_gradients_are_those_of_keras(direction, mode):
    x = tf.constant(KERNEL, tf.float32)
    (ours, (our_slope,)), (theirs, (their_slope,)) = (
        modes.value_and_gradients(
            package.OrthogonalRegularizer(0.3, direction), [x], mode
        )
        for package in (regularizers, keras.regularizers)
    )
    assert_close(ours, theirs)
    assert_close(our_slope, their_slope, scale=0.1)


@pytest.mark.parametrize("direction", ["rows", "columns"])
def test_zeros_are_orthogonal_with_gradient_0(direction, mode, dtype):
    kernel = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    x = tf.cast(kernel if direction == "rows" else kernel.T, dtype)
    value, (slope,) = modes.value_and_gradients(
        regularizers.OrthogonalRegularizer(3.0, direction), [x], mode
    )
    assert value.dtype == dtype
    assert oracle.ulp_error(value, 0.5**0.5) <= 4
    slope = np.asarray(tf.cast(slope, tf.float64))
    slope = slope if direction == "rows" else slope.T
    np.testing.assert_array_equal(slope[0], [0, 0, 0])
    assert np.abs(slope[1:]).max() > 0.1


def test_one_row_has_no_pair_and_nan_stays(mode):
    regularizer = modes.compile_for(mode, regularizers.OrthogonalRegularizer())
    assert regularizer(tf.constant([[1.0, 2.0]])) == 0
    assert np.isnan(regularizer(tf.constant([[1.0, np.nan], [1.0, 2.0]])))


def test_another_rank_is_refused():
    with pytest.raises(ValueError, match="OrthogonalRegularizer must have rank 2"):
        regularizers.OrthogonalRegularizer()(tf.ones([2, 2, 2]))


@pytest.mark.parametrize("mode", modes.MODES)
def test_a_pruned_kernel_trains_and_is_saved(mode, tmp_path):
    model = keras.Sequential([
        keras.Input((3,)),
        keras.layers.Dense(
            2, kernel_regularizer=regularizers.OrthogonalRegularizer(0.1)
        ),
    ])
    model.layers[0].kernel.assign([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    model.compile(
        keras.optimizers.SGD(0.1),
        "mse",
        run_eagerly=mode == "eager",
        jit_compile=mode == "xla",
    )
    model.fit(KERNEL, KERNEL[:, :2], verbose=0)
    assert np.isfinite(model.layers[0].kernel.numpy()).all()
    path = str(tmp_path / "model.keras")
    model.save(path)
    again = keras.saving.load_model(path).layers[0].kernel_regularizer
    assert type(again) is regularizers.OrthogonalRegularizer
    assert again.get_config() == model.layers[0].kernel_regularizer.get_config()


def test_every_other_name_is_that_of_keras():
    assert regularizers.L2 is keras.regularizers.L2
    assert set(dir(regularizers)) >= {"L1", "OrthogonalRegularizer"}
    with pytest.raises(AttributeError, match="Did you mean 'OrthogonalRegularizer'"):
        _ = regularizers.OrthogonalRegulariser
