"""Fixtures that every test may ask for: the modes, the dtypes, the switches."""

import os
import sys
import textwrap

import pytest
import tensorflow as tf

from tests.support import contrast, modes, pipelines, recomputation
from tfsafe import __main__ as cli, _faults, debugging

pipelines.switch_autotuning_off()
pytest_plugins = ["tests.running.tiers", "tests.running.order"]


for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
# TF32 has 10 bits of fraction; a tolerance in float32 ulps would be meaningless.
tf.config.experimental.enable_tensor_float_32_execution(False)


def pytest_runtest_setup(item: pytest.Item) -> None:
    wants_gpu = item.get_closest_marker("gpu") is not None
    if wants_gpu and not modes.HAS_GPU:
        missing = "no GPU is visible to TensorFlow"
        if os.environ.get("TFSAFE_REQUIRE_GPU") == "1":
            pytest.fail(f"TFSAFE_REQUIRE_GPU=1 is set, but {missing}.", pytrace=False)
        pytest.skip(missing)


@pytest.fixture(autouse=True)
def no_faults():
    """Fails the test if an error of our own was turned into a warning."""
    yield
    faults = set(_faults.REPORTED)
    _faults.REPORTED.clear()
    assert not faults


@pytest.fixture(params=modes.MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """How the function under test is run: eager, graph or xla."""
    return request.param


@pytest.fixture(params=["float16", "bfloat16", "float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> tf.DType:
    return tf.as_dtype(request.param)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Runs a script under the checks, in this process."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])

    def run(source, *options):
        path = tmp_path / "script.py"
        source = textwrap.dedent(source)
        path.write_text(f"import tensorflow as tf\nimport tfsafe\n{source}")
        cli.main(["run", *options, str(path)])

    yield run
    debugging.disable_check_numerics()


@pytest.fixture
def grappler_off():
    """Switches off the graph rewrites that repair some textbook formulas."""
    with contrast.without_grappler():
        yield


@pytest.fixture(scope="session", autouse=True)
def _recomputations_are_checked():
    """Compares each value that a gradient keeps with the formula that replaces it."""
    with recomputation.check_recomputations():
        yield
