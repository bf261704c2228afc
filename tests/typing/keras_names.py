"""Lists the names that the packages of tfsafe take over from Keras, for checkers."""

import importlib
import pathlib

import tfsafe

PACKAGES = ("callbacks", "layers", "losses", "metrics", "optimizers", "regularizers")
_HEAD = ("# ruff: noqa", "# Written by `python -m tests.typing --write`.")
ROOT = pathlib.Path(tfsafe.__file__).parent


def names(package: str) -> list[str]:
    """Returns the public names that are Keras' own objects in a package."""
    module = importlib.import_module(f"tfsafe.{package}")
    theirs = importlib.import_module(f"keras.{package}")
    public = {name for name in dir(theirs) if not name.startswith("_")}
    return sorted(public.difference(module.__all__))


def path(package: str) -> pathlib.Path:
    """Returns the file that lists them."""
    return ROOT / package / "_keras_names.pyi"


def text(package: str) -> str:
    """Returns the contents of the file."""
    lines = [f"    {name} as {name}," for name in names(package)]
    return "\n".join([*_HEAD, f"from keras.{package} import (", *lines, ")", ""])


def write() -> None:
    """Writes the file of each package."""
    for package in PACKAGES:
        path(package).write_text(text(package))
