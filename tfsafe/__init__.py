"""Numerical failures of TensorFlow and Keras training: found, explained, ended.

Nothing heavy is imported here. `tfsafe.losses`, `tfsafe.ops` and the rest load
TensorFlow when they are first used; `tfsafe.__version__` and `tfsafe.NumericsError`
never do.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tfsafe import _saving
from tfsafe._version import __version__
from tfsafe.errors import Finding, NumericsError

if TYPE_CHECKING:
    from tfsafe import (
        callbacks,
        data,
        debugging,
        layers,
        losses,
        metrics,
        ops,
        optimizers,
        regularizers,
    )
    from tfsafe._coverage import coverage
    from tfsafe._saving import to_keras
    from tfsafe.debugging import checked
    from tfsafe.rewriting import stabilize

__all__ = [
    "Finding",
    "NumericsError",
    "__version__",
    "callbacks",
    "checked",
    "coverage",
    "data",
    "debugging",
    "layers",
    "losses",
    "metrics",
    "ops",
    "optimizers",
    "regularizers",
    "stabilize",
    "to_keras",
]

_PACKAGES = {
    "callbacks",
    "data",
    "debugging",
    "layers",
    "losses",
    "metrics",
    "ops",
    "optimizers",
    "regularizers",
}
_HOMES = {
    "checked": "tfsafe.debugging",
    "coverage": "tfsafe._coverage",
    "stabilize": "tfsafe.rewriting",
    "to_keras": "tfsafe._saving",
}

# So that Keras loads a file with classes of tfsafe after `import tfsafe` alone.
_saving.register_on_demand()


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"tfsafe.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tfsafe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
