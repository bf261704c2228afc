"""Writes the pages that follow from the code: one for each trap, and the API."""

import importlib
import inspect
import pathlib
import re
import shutil

import keras
import measured

import tfsafe
from tests.catalogue import every_row
from tests.catalogue.__main__ import place
from tests.catalogue.exceptions import EXCEPTIONS

_AREAS = {
    "O": "Operations",
    "S": "Operations, accuracy over the whole range",
    "L": "Losses",
    "Y": "Layers",
    "M": "Metrics",
    "T": "Training",
}
_MODES = {"eager": "eager mode", "graph": "`tf.function`", "xla": "XLA"}
_PACKAGES = (
    *("losses", "layers", "metrics", "optimizers", "callbacks", "regularizers"),
    *("ops", "debugging", "data", "rewriting"),
)


def write(docs: pathlib.Path) -> None:
    """Writes the generated pages below the folder of the documentation."""
    _write_traps(docs / "traps")
    _write_api(docs / "api")


def _write_traps(folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    rows = sorted(every_row(), key=place)
    parts = [
        "# Measured traps\n\nEach page is a test: the usual form fails there, in "
        "the modes named, and the form of tfsafe is right.\n"
    ]
    for letter, title in _AREAS.items():
        area = [row for row in rows if row.id.startswith(letter)]
        parts.append(f"## {title}\n\n| row | trap | use instead |\n|---|---|---|")
        for row in area:
            parts.append(
                f"| {{doc}}`{row.id} <{row.id}>` | {_cell(row.trap)} | {_name(row)} |"
            )
            (folder / f"{row.id}.md").write_text(_page(row))
        parts.append("")
    parts.append("## Not repairable\n\n| row | trap | reason |\n|---|---|---|")
    for each, (trap, reason) in EXCEPTIONS.items():
        parts.append(f"| {each} | {_cell(trap)} | {reason} |")
    (folder / "index.md").write_text("\n".join(parts))


def _page(row: object) -> str:
    modes = ", ".join(_MODES[mode] for mode in row.fails_in)
    found = measured.of(row)
    return "\n\n".join([
        # In no tree of contents, which would list every row beside every page.
        "---\norphan: true\n---",
        f"# {row.id}: {_cell(row.trap)}",
        f"The usual form gives a wrong value or gradient ({modes}). Use {_name(row)} "
        "instead.",
        *measured.as_text(found),
        *(
            []
            if found.ours
            else [f"The line that fixes it:\n\n```py\n{_line(row)}\n```"]
        ),
        f"Found under: {measured.symptoms(found)}",
        f"`tests/test_traps.py` holds that the usual form fails and that "
        f"`tfsafe.{row.fixed_by}` is right, row {row.id}.",
        "{doc}`All measured traps <index>`.",
    ])


def _line(row: object) -> str:
    """Returns the call of a function, or the import of a class of Keras' name."""
    package, _, name = row.fixed_by.partition(".")
    value = getattr(importlib.import_module(f"tfsafe.{package}"), name)
    if package != "ops" and hasattr(getattr(keras, package, None), name):
        return f"from tfsafe import {package}  # was: from keras import {package}"
    parameters = inspect.signature(value).parameters.values()
    given = [each.name for each in parameters if each.default is each.empty]
    return f"tfsafe.{row.fixed_by}({', '.join(given) or 'f'})"


def _name(row: object) -> str:
    return f"{{py:obj}}`{row.fixed_by} <tfsafe.{row.fixed_by}>`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def _write_api(folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for package in _PACKAGES:
        module = importlib.import_module(f"tfsafe.{package}")
        _write_package(folder / f"{package}.rst", f"tfsafe.{package}", module)
    top = [name for name in tfsafe.__all__ if name not in _PACKAGES]
    # Those that most users need come first, findings and the rest after them.
    top.sort(key=lambda name: name in ("Finding", "NumericsError", "__version__"))
    told = inspect.getdoc(tfsafe)
    lines = ["tfsafe", "=" * 6, "", told, "", ".. currentmodule:: tfsafe", ""]
    lines += [_directive("tfsafe", name, getattr(tfsafe, name)) for name in top]
    (folder / "tfsafe.rst").write_text("\n".join(lines))


def _write_package(path: pathlib.Path, name: str, module: object) -> None:
    # What a package may import concerns those who change it.
    told = re.sub(r"(?s)\s*May import.*?(?=\n\n|\Z)", "", inspect.getdoc(module) or "")
    lines = [name, "=" * len(name), "", told, ""]
    lines += [_directive(name, each, getattr(module, each)) for each in module.__all__]
    path.write_text("\n".join(lines))


def _directive(package: str, name: str, value: object) -> str:
    kind = "autoclass" if inspect.isclass(value) else "autofunction"
    if not callable(value):
        kind = "autodata"
    return f".. {kind}:: {package}.{name}\n"
