"""Describes the run of a failure: versions, device, optimizer, the layers' health."""

import collections
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
from tfsafe.debugging.explain.training.layers import alive
from tfsafe.debugging.state.variables import variables_in
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
        "XLA": "Yes" if is_xla else "No",
        "date": datetime.datetime.now().astimezone().isoformat(" ", "seconds"),
        "command": command[:_LONGEST],
    }


def _model_of(handles: Collection[Any]) -> Any:
    """Returns the model that has most of the variables, and of those the largest."""
    ids = set(map(id, handles))
    # One with a `train_step` of its own may never be built.
    models = alive(keras.Model)
    sizes = [(len(ids & _handles(each)), len(_leaves(each))) for each in models]
    best = max(sizes, default=(0, 0))
    return models[sizes.index(best)] if best[0] else None


def _handles(model: Any) -> set[int]:
    return {
        id(variable.handle)
        for each in model.variables
        for variable in variables_in(each)
    }


def _leaves(layer: Any, path: str = "") -> list[tuple[str, Any]]:
    """Returns the layers of the user's model, each with its path, in their order.

    Those within a model or a layer of the user's own count; not the cell of an LSTM.
    """
    if isinstance(layer, keras.layers.InputLayer):
        return []
    parts = getattr(layer, "layers", None)
    if not parts and not type(layer).__module__.startswith(("keras.", "tfsafe.")):
        parts = _compat.sublayers(layer)
    if not parts:
        return [(path, layer)]
    head = f"{path}/" if path else ""
    return [leaf for each in parts for leaf in _leaves(each, f"{head}{each.name}")]


def _is_at(path: str, full: str) -> bool:
    """Returns whether a path with the model is that of a layer or goes into it."""
    return bool(path) and f"/{path}/" in f"/{full}/"


def _with_first(
    leaves: Sequence[tuple[str, Any]], first: str
) -> tuple[list[tuple[str, Any]], int]:
    """Returns the layers, and the position of the one in which the values began.

    A layer with others in it is added before these if it is the one.
    """
    for i, (path, _) in enumerate(leaves):
        if _is_at(path, first):
            return list(leaves), i
    for i, (path, _) in enumerate(leaves):
        around = path.rpartition("/")[0]
        if _is_at(around, first):
            return [*leaves[:i], (around, None), *leaves[i:]], i
    return list(leaves), -1


def _healths(
    model: Any, finding: Finding, reached: Sequence[str]
) -> tuple[tuple[str, str, str], ...]:
    """Returns name, class and health of the layers that hold no others."""
    first = "" if finding.is_gradient else finding.layer
    leaves, start = _with_first(_leaves(model), first)
    on_path = {each.layer for each in finding.chain}
    names = collections.Counter(path.rpartition("/")[2] for path, _ in leaves)
    found: list[tuple[str, str, str]] = []
    for i, (path, layer) in enumerate(leaves):
        weights = [] if layer is None else layer.weights
        is_hit = any(f"variable `{each.path}`" in reached for each in weights)
        # A layer without weights is known by the layer before it alone.
        follows = not weights and found and found[-1][2] in ("first", "reached")
        if i == start:
            state = "first"
        elif is_hit or follows or any(_is_at(path, each) for each in on_path):
            state = "reached"
        else:
            state = "finite" if i < start or start < 0 else "untouched"
        name = path.rpartition("/")[2]
        kind = "Layer" if layer is None else type(layer).__name__
        found.append((name if names[name] == 1 else path, kind, state))
    return tuple(found)
