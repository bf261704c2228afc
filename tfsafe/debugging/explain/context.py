"""Describes the run of a failure: versions, device, optimizer, the layers' health."""

import datetime
import platform
import shlex
import sys
from collections.abc import Collection, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe._version import __version__
from tfsafe.debugging.checks.variables import variables_in
from tfsafe.debugging.explain.layers import alive
from tfsafe.errors import Finding, NumericsError

HEALTHS = ("finite", "first", "reached", "untouched")
# A longer command is cut.
_LONGEST = 200


def note(
    error: NumericsError, handles: Collection[Any] | None, *, is_xla: bool = False
) -> None:
    """Adds the facts of the run and the layers of the model to an error."""
    # Those of the optimizer are known before.
    error.facts = {**_facts(is_xla), **error.facts}
    if handles and error.findings:
        model = _model_of(handles)
        if model is not None:
            error.layers = _healths(model, error.findings[0], error.reached)


def _facts(is_xla: bool) -> dict[str, str]:
    devices = [each.device_type for each in tf.config.list_logical_devices()]
    command = shlex.join(sys.orig_argv)
    return {
        "tool": f"tfsafe {__version__}",
        "versions": f"TensorFlow {tf.__version__}, Keras {keras.__version__}, "
        f"Python {platform.python_version()}, {platform.system()}",
        "device": "GPU" if "GPU" in devices else ", ".join(sorted(set(devices))),
        "dtype policy": keras.config.dtype_policy().name,
        "XLA": "yes" if is_xla else "no",
        "date": datetime.datetime.now().astimezone().isoformat(" ", "seconds"),
        "command": command[:_LONGEST],
    }


def _model_of(handles: Collection[Any]) -> Any:
    """Returns the model that has most of the variables, and of those the largest."""
    ids = set(map(id, handles))
    built = [each for each in alive(keras.Model) if getattr(each, "built", False)]
    sizes = [(len(ids & _handles(each)), len(_leaves(each))) for each in built]
    best = max(sizes, default=(0, 0))
    return built[sizes.index(best)] if best[0] else None


def _handles(model: Any) -> set[int]:
    return {
        id(variable.handle)
        for each in model.variables
        for variable in variables_in(each)
    }


def _leaves(layer: Any) -> list[Any]:
    """Returns the layers that hold no others, in the order of the model."""
    if isinstance(layer, keras.layers.InputLayer):
        return []
    parts = getattr(layer, "layers", None) or _compat.sublayers(layer)
    return [leaf for each in parts for leaf in _leaves(each)] if parts else [layer]


def _healths(
    model: Any, finding: Finding, reached: Sequence[str]
) -> tuple[tuple[str, str, str], ...]:
    """Returns name, class and health of the layers that hold no others."""
    leaves = _leaves(model)
    names = [each.name for each in leaves]
    first = finding.layer.rpartition("/")[2] if not finding.is_gradient else ""
    start = names.index(first) if first in names else -1
    on_path = {each.layer.rpartition("/")[2] for each in finding.chain}
    labels = [each.removeprefix("variable ").strip("`") for each in reached]
    hit = {part for each in labels for part in each.split("/")[:-1]}

    def health(index: int, name: str) -> str:
        if index == start:
            return "first"
        if name in on_path or name in hit:
            return "reached"
        return "finite" if index < start or start < 0 else "untouched"

    found: list[tuple[str, str, str]] = []
    for i, each in enumerate(leaves):
        state = health(i, each.name)
        # A layer without weights is known by the layer before it alone.
        if state != "first" and not each.weights and found:
            state = "reached" if found[-1][2] in ("first", "reached") else state
        found.append((each.name, type(each).__name__, state))
    return tuple(found)
