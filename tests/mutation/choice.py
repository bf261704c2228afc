"""Orders the test files of a module's package by how much they speak of it."""

import ast
import pathlib
import re

# Where a package is tested, if not only in the folder of its name.
_FOLDERS = {
    "keras_formulas": ("losses", "metrics"),
    # Some kernels are used by rewrite rules alone.
    "ops": ("ops", "rewriting"),
}


def test_files(root: pathlib.Path, module: str) -> list[str]:
    """Returns the test files for a module: first those that name most of its content.

    Args:
      root: Of the tree.
      module: Path of the module below `root`.
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
    return [*listed, "tests/test_traps.py"]
