"""Pytest plugin: puts the classes of tfsafe in the place of Keras'.

The names are replaced in the namespaces that Keras' tests read, `keras.src.layers` and
the test modules themselves, not in the modules that define the classes: those belong
to Keras, whose classes ours are made from. `TFSAFE_SWAP` chooses what is replaced:
`classes` for the namesakes, `optimizers` for a `SafeOptimizer` around the optimizer of
every `compile`, or both with a comma between.

The outcome of each test is written to the file that `TFSAFE_OUTCOMES` names, one JSON
record a line, so that the tests before a crash are not lost.
"""

import functools
import importlib
import importlib.util
import json
import os
import pathlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import pipelines

_NAMESPACES = {
    "losses": ("keras.src.losses", "keras.src.losses.losses", "keras.losses"),
    "layers": ("keras.src.layers", "keras.layers"),
    "metrics": ("keras.src.metrics", "keras.metrics"),
    "callbacks": ("keras.src.callbacks", "keras.callbacks"),
    "regularizers": ("keras.src.regularizers", "keras.regularizers"),
}
_swapped: dict[int, Any] = {}


def pytest_configure() -> None:
    pipelines.switch_autotuning_off()
    parts = os.environ.get("TFSAFE_SWAP", "").split(",")
    if "classes" in parts:
        _keep_trackers()
        for package in _NAMESPACES:
            _swap_package(package)
    if "optimizers" in parts:
        _guard_compile()


def _keep_trackers() -> None:
    """Has Keras' trainer keep its own `Mean` of the loss, as in a user's program."""
    metrics = importlib.import_module("keras.src.metrics")

    class Kept(types.ModuleType):
        Mean = metrics.Mean

        def __getattr__(self, name: str) -> Any:
            return getattr(metrics, name)

    for home in ("trainer", "compile_utils"):
        module = importlib.import_module(f"keras.src.trainers.{home}")
        module.metrics_module = Kept("metrics")  # type: ignore[attr-defined]


def _swap_package(package: str) -> None:
    theirs = importlib.import_module(f"keras.{package}")
    ours = importlib.import_module(f"tfsafe.{package}")
    for name in set(ours.__all__) & set(dir(theirs)):
        old, new = getattr(theirs, name), getattr(ours, name)
        if isinstance(old, type):
            _swapped[id(old)] = new
            for module in map(importlib.import_module, _NAMESPACES[package]):
                if getattr(module, name, None) is old:
                    setattr(module, name, new)


def _guard_compile() -> None:
    import keras

    import tfsafe

    # Where it is defined: Keras asks whether a model has overridden it.
    home = next(cls for cls in keras.Model.__mro__ if "compile" in vars(cls))
    plain = home.compile

    @functools.wraps(plain)
    def compile_guarded(
        model: Any, optimizer: Any = "rmsprop", *args: Any, **kwargs: Any
    ) -> None:
        outer = keras.optimizers.get(optimizer)
        if isinstance(outer, keras.optimizers.LossScaleOptimizer):
            outer.inner_optimizer = guarded(outer.inner_optimizer)
        elif outer is not None:
            outer = guarded(outer)
        plain(model, outer, *args, **kwargs)

    def guarded(inner: Any) -> Any:
        is_safe = isinstance(inner, tfsafe.optimizers.SafeOptimizer)
        return inner if is_safe else tfsafe.optimizers.SafeOptimizer(inner)

    home.compile = compile_guarded


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Lets files be collected that import what the wheel or the environment lacks.

    JAX, which few of their tests use, and the helper in Keras' `conftest.py`.
    """
    # Before an empty JAX is there, which Keras would use.
    importlib.import_module("keras")
    absent = {"conftest": _conftest()}
    if importlib.util.find_spec("jax") is None:
        absent["jax"] = types.ModuleType("jax")
    sys.modules.update(absent)
    try:
        return (yield)
    finally:
        for name in absent:
            del sys.modules[name]


def _conftest() -> types.ModuleType:
    module = types.ModuleType("conftest")

    def skip_if_backend(backend: str, reason: str) -> pytest.MarkDecorator:
        return pytest.mark.skipif(backend == "tensorflow", reason=reason)

    vars(module)["skip_if_backend"] = skip_if_backend
    return module


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replaces what the test modules imported by name."""
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        for name, value in list(vars(module).items()):
            if isinstance(value, type) and id(value) in _swapped:
                setattr(module, name, _swapped[id(value)])


def pytest_runtest_logstart(nodeid: str) -> None:
    _write({"test": nodeid, "outcome": "crashed"})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        message = report.longreprtext.strip().splitlines()[-1:] if report.failed else []
        _write({
            "test": report.nodeid,
            "outcome": report.outcome,
            "message": "".join(message),
        })


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write({"test": report.nodeid, "outcome": "failed", "message": "collection"})


def _write(record: dict[str, str]) -> None:
    # Without the path of the wheel, which differs from machine to machine.
    record["test"] = record["test"].rpartition("keras/src/")[2]
    with pathlib.Path(os.environ["TFSAFE_OUTCOMES"]).open("a") as file:
        file.write(json.dumps(record) + "\n")
