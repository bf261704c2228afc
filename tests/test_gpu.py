"""The same promises on a GPU: placement, TF32 off, both compilers."""

import os
import subprocess
import sys

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


@pytest.mark.skipif(
    bool(tf.config.list_physical_devices("GPU")), reason="a GPU is visible"
)
@pytest.mark.parametrize(("required", "outcome"), [("0", "skipped"), ("1", "errors")])
def test_without_a_gpu_these_tests_skip_or_fail_as_asked(required, outcome):
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "gpu", __file__],
        env={**os.environ, "TFSAFE_REQUIRE_GPU": required},
        capture_output=True,
        text=True,
    )
    assert f"3 {outcome}" in result.stdout
    assert (result.returncode == 0) == (required == "0")
    assert ("TFSAFE_REQUIRE_GPU=1 is set" in result.stdout) == (required == "1")
