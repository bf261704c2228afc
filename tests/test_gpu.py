"""The same promises on a GPU: placement, TF32 off, both compilers."""

import functools
import os

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import forks, modes
from tests.support.oracle import assert_close
from tfsafe import layers


@pytest.mark.gpu
@pytest.mark.parametrize("mode", modes.MODES)
def test_masked_elements_send_no_nan_back_on_a_gpu(mode):
    with tf.device("GPU:0"):
        x = tf.constant([0.0, 1.0, 4.0])

        def masked(x):
            return tf.where(x > 0, tfsafe.ops.log(x) + tfsafe.ops.sqrt(x), 0.0)

        value, (slope,) = modes.value_and_gradients(masked, [x], mode)
    assert "GPU" in value.device
    assert_close(value, [0.0, 1.0, np.log(4) + 2])
    assert_close(slope, [0.0, 1.5, 0.5])


MASKS = {
    "right": [[1, 1, 1, 1], [1, 1, 0, 0]],
    "left": [[0, 1, 1, 1], [0, 0, 1, 1]],
    "hole": [[1, 0, 1, 1], [1, 1, 1, 1]],
    "empty": [[0, 0, 0, 0], [1, 1, 1, 0]],
}


@pytest.mark.gpu
@pytest.mark.parametrize("layer_class", [layers.LSTM, layers.GRU])
def test_cudnn_is_used_where_the_mask_allows_it_and_the_loop_elsewhere(layer_class):
    x = tf.random.stateless_normal([2, 4, 3], [1, 2])
    fused = layer_class(5, dropout=0.0)
    looped = layer_class(5, use_cudnn=False)
    fused.build(x.shape)
    looped.build(x.shape)
    looped.set_weights(fused.get_weights())

    def run(layer, mask):
        with tf.GradientTape() as tape:
            value = layer(x, mask=mask)
            size = tf.reduce_sum(value**2)
        return value, *tape.gradient(size, layer.trainable_variables)

    traced = tf.function(functools.partial(run, fused), autograph=False)
    signature = tf.TensorSpec([2, 4], tf.bool)
    graph = traced.get_concrete_function(signature).graph.as_graph_def()
    assert "CudnnRNNV3" in str(graph)
    for mask in MASKS.values():
        mask = tf.cast(mask, tf.bool)
        wanted = run(looped, mask)
        for got in (run(fused, mask), traced(mask)):
            for one, other in zip(got, wanted, strict=True):
                why = "cuDNN adds in its own order"
                assert_close(one, other, 800, why=why, scale=0.01)


@pytest.mark.skipif(modes.HAS_GPU, reason="a GPU is visible")
@pytest.mark.parametrize(("required", "outcome"), [("0", "skipped"), ("1", "errors")])
def test_without_a_gpu_these_tests_skip_or_fail_as_asked(required, outcome):
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", __file__]
    env = {**os.environ, "TFSAFE_REQUIRE_GPU": required}
    result = forks.run(*command, env=env)
    assert f"5 {outcome}" in result.stdout
    assert (result.returncode == 0) == (required == "0")
    assert ("TFSAFE_REQUIRE_GPU=1 is set" in result.stdout) == (required == "1")
