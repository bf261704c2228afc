"""Finds, explains and prevents numerical failures of TensorFlow and Keras training.

Which of these do I need?

- The loss is NaN and I do not know why: `tfsafe run train.py` in a terminal; in code
  `callbacks=[tfsafe.NumericsMonitor()]` of `fit`, `@tfsafe.checked` on a function or
  a custom loop, `with tfsafe.check_numerics():` around anything.
- The data may hold NaN: `tfsafe.check_finite((x, y))`.
- One batch must not ruin a long training:
  `tfsafe.SafeOptimizer(keras.optimizers.Adam())`.
- The model uses Keras' losses, layers and metrics: `from tfsafe import losses, layers,
  metrics` in place of `from keras import ...`; `tfsafe.keras_scope()` or
  `tfsafe.install()` for strings such as `loss="mse"`; `tfsafe.coverage(model)` says
  what has a safe version.
- A loss or formula is written by hand: `@tfsafe.stabilize`, unedited; or the functions
  of `tfsafe.ops`, whose gradients are right under masks and at singular points.
- A file is to load without tfsafe: `tfsafe.to_keras(model).save("plain.keras")`.

`import tfsafe` loads nothing heavy: `tfsafe.losses`, `tfsafe.ops` and the rest load
TensorFlow when they are first used; `tfsafe.__version__` and `tfsafe.NumericsError`
never do.
"""

import difflib
import importlib
import sys
import types
from typing import TYPE_CHECKING

from tfsafe import _saving
from tfsafe._version import __version__
from tfsafe.errors import Finding, NumericsError, last_error

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

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
        rewriting,
    )
    from tfsafe._coverage import coverage
    from tfsafe._keras_scope import install, keras_scope, uninstall
    from tfsafe._saving import to_keras
    from tfsafe.callbacks import NumericsMonitor
    from tfsafe.data import check_finite
    from tfsafe.debugging import (
        check_numerics,
        checked,
        disable_check_numerics,
        enable_check_numerics,
    )
    from tfsafe.losses import StableCrossEntropy
    from tfsafe.optimizers import SafeOptimizer
    from tfsafe.rewriting import disable_stabilize, enable_stabilize, stabilize

__all__ = [
    "Finding",
    "NumericsError",
    "NumericsMonitor",
    "SafeOptimizer",
    "StableCrossEntropy",
    "__version__",
    "callbacks",
    "check_finite",
    "check_numerics",
    "checked",
    "coverage",
    "data",
    "debugging",
    "disable_check_numerics",
    "disable_stabilize",
    "enable_check_numerics",
    "enable_stabilize",
    "install",
    "keras_scope",
    "last_error",
    "layers",
    "losses",
    "metrics",
    "ops",
    "optimizers",
    "regularizers",
    "rewriting",
    "stabilize",
    "to_keras",
    "uninstall",
]

# Names that are loaded when they are first used, by their module.
_HOMES = {
    "NumericsMonitor": "callbacks",
    "SafeOptimizer": "optimizers",
    "StableCrossEntropy": "losses",
    "check_finite": "data",
    "check_numerics": "debugging",
    "checked": "debugging",
    "coverage": "_coverage",
    "disable_check_numerics": "debugging",
    "disable_stabilize": "rewriting",
    "enable_check_numerics": "debugging",
    "enable_stabilize": "rewriting",
    "install": "_keras_scope",
    "keras_scope": "_keras_scope",
    "stabilize": "rewriting",
    "to_keras": "_saving",
    "uninstall": "_keras_scope",
}
_PACKAGES = (
    "callbacks",
    "data",
    "debugging",
    "layers",
    "losses",
    "metrics",
    "ops",
    "optimizers",
    "regularizers",
    "rewriting",
)

# So that Keras loads a file with classes of tfsafe after `import tfsafe` alone.
_saving.register_on_demand()


# Hidden from type checkers, which report unknown names themselves.
if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _PACKAGES:
            return _load(name)
        if name in _HOMES:
            return getattr(_load(_HOMES[name]), name)
        raise AttributeError(
            f"module 'tfsafe' has no attribute {name!r}.{_hint(name)}",
            name=name,
        )


def _load(module: str) -> types.ModuleType:
    try:
        return importlib.import_module(f"tfsafe.{module}")
    except ModuleNotFoundError as error:
        if error.name not in ("tensorflow", "keras"):
            raise
        raise ModuleNotFoundError(
            f"`tfsafe.{module}` needs {error.name}, which {sys.executable} does not "
            "have. Install both with `pip install tensorflow keras`.",
            name=error.name,
        ) from error


def _hint(name: str) -> str:
    """Says where a name is, or which one is meant; empty for special names."""
    if name.startswith("_"):
        return ""
    owners = [
        package
        for package in _PACKAGES
        if name in importlib.import_module(f"tfsafe.{package}").__all__
    ] or [
        # Keras' own names.
        package
        for package in ("losses", "layers", "metrics", "optimizers", "callbacks")
        if name in dir(importlib.import_module(f"tfsafe.{package}"))
    ]
    if owners:
        return f" It is `tfsafe.{owners[0]}.{name}`."
    close = difflib.get_close_matches(name, __all__, n=3)
    return f" Did you mean {' or '.join(f'`tfsafe.{n}`' for n in close)}?" * bool(close)


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Adds `%%checked` and `%%stabilize` to a notebook: `%load_ext tfsafe`."""
    from tfsafe import _notebook

    _notebook.load(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
