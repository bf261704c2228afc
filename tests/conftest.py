"""Fixtures that every test may ask for: the modes, the dtypes, the switches."""

import os

# Before TensorFlow is imported: its start-up log is not about us.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# oneDNN's bfloat16 kernels die of an illegal instruction on virtual machines whose
# processor announces AMX while the hypervisor does not allow it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import pytest
import tensorflow as tf

from tests.support import contrast, modes


def pytest_configure() -> None:
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    # TF32 has 10 bits of fraction; a tolerance in float32 ulps would be meaningless.
    tf.config.experimental.enable_tensor_float_32_execution(False)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves to `make test-slow` what XLA compiles a second time for another dtype.

    XLA takes up to a second to compile a test, in each dtype again. Under XLA `make
    test` runs float16 for the narrow dtypes and float32 for the wide ones; every other
    mode runs all four.
    """
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        twice = str(params.get("dtype")) in {"bfloat16", "float64"}
        if twice and params.get("mode") == "xla":
            item.add_marker(pytest.mark.slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    wants_gpu = item.get_closest_marker("gpu") is not None
    if wants_gpu and not tf.config.list_physical_devices("GPU"):
        missing = "no GPU is visible to TensorFlow"
        if os.environ.get("TFSAFE_REQUIRE_GPU") == "1":
            pytest.fail(f"TFSAFE_REQUIRE_GPU=1 is set, but {missing}.", pytrace=False)
        pytest.skip(missing)


@pytest.fixture(params=modes.MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """How the function under test is run: eager, graph or xla."""
    return request.param


@pytest.fixture(params=["float16", "bfloat16", "float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> tf.DType:
    return tf.as_dtype(request.param)


@pytest.fixture
def grappler_off():
    """Switches off the graph rewrites that repair some textbook formulas."""
    with contrast.without_grappler():
        yield
