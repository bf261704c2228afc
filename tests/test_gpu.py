"""The same promises on a GPU: placement, TF32 off, both compilers."""

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes


@pytest.mark.gpu
@pytest.mark.parametrize("mode", modes.MODES)
def test_masked_elements_send_no_nan_back_on_a_gpu(mode):
    with tf.device("GPU:0"):
        x = tf.constant([0.0, 1.0, 4.0])

        def masked(x):
            return tf.where(x > 0, tfsafe.ops.log(x) + tfsafe.ops.sqrt(x), 0.0)

        value, (slope,) = modes.value_and_gradients(masked, [x], mode)
    assert "GPU" in value.device
    np.testing.assert_allclose(value, [0.0, 1.0, np.log(4) + 2], rtol=1e-6)
    np.testing.assert_allclose(slope, [0.0, 1.5, 0.5], rtol=1e-6)
