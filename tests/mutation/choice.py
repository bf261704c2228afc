"""Chooses the test files for a module: first those that speak of it most."""

import ast
import pathlib
import re

# Where a package is tested, if not only in the folder of its name.
_FOLDERS = {
    "keras_formulas": ("losses", "metrics"),
    # Some kernels are used by rewrite rules alone.
    "ops": ("ops", "rewriting"),
}
# How many files are run before all others of the folder.
FIRST = 4


def test_files(root: pathlib.Path, module: str) -> list[list[str]]:
    """Returns the test files for a module, in two stages.

    Args:
      root: Of the tree.
      module: Path of the module below `root`.

    Returns:
      The files that name most of what the module defines; then the others of its
      package.
    """
    package = module.split("/")[1]
    files = [
        path
        for folder in _FOLDERS.get(package, (package,))
        for path in sorted((root / "tests" / folder).glob("test_*.py"))
    ]
    tree = ast.parse((root / module).read_text())
    stem = pathlib.Path(module).stem.lstrip("_")
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = {node.name for node in tree.body if isinstance(node, kinds)} | {stem}
    names |= {name.lstrip("_") for name in names}
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")

    def mentions(path: pathlib.Path) -> tuple[bool, int]:
        return stem.rstrip("s") in path.stem, len(pattern.findall(path.read_text()))

    ranked = sorted(files, key=mentions, reverse=True)
    listed = [str(path.relative_to(root)) for path in ranked]
    return [listed[:FIRST], [*listed[FIRST:], "tests/test_traps.py"]]
