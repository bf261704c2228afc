"""The ways in: each takes what is to be run and runs it under the checks."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras

import tfsafe
from tests.everywhere import models
from tests.everywhere.faults import Fault

Function = Callable[..., Any]


@contextlib.contextmanager
def enabled() -> Iterator[None]:
    tfsafe.debugging.enable_check_numerics()
    try:
        yield
    finally:
        tfsafe.debugging.disable_check_numerics()


def _within(switch: Callable[[], Any]) -> Callable[[Function], Function]:
    def wrap(function: Function) -> Function:
        def run(*args: Any) -> Any:
            with switch():
                return function(*args)

        return run

    return wrap


# Around a function.
FUNCTIONS = {
    "checked": tfsafe.checked,
    "check_numerics": _within(tfsafe.debugging.check_numerics),
    "enable_check_numerics": _within(enabled),
}


def _checked(model: keras.Model, place: models.Place, fault: Fault) -> None:
    models.run(tfsafe.checked(model), place, fault)


def _monitored(model: keras.Model, place: models.Place, fault: Fault) -> None:
    models.run(model, place, fault, [tfsafe.callbacks.NumericsMonitor()])


def _switched(switch: Callable[[], Any]) -> Callable[..., None]:
    def run(model: keras.Model, place: models.Place, fault: Fault) -> None:
        with switch():
            models.run(model, place, fault)

    return run


# Around the training of a model.
MODELS = {
    "checked": _checked,
    "check_numerics": _switched(tfsafe.debugging.check_numerics),
    "enable_check_numerics": _switched(enabled),
    "NumericsMonitor": _monitored,
}
