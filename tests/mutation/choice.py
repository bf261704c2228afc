"""Orders the test files of a module's package by how much they name of it."""

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
    own = _names(root / module)
    # A kernel that no test speaks of is reached by way of the modules that import it.
    stem = pathlib.Path(module).stem
    imported = re.compile(rf"^(from|import) .*\b{stem}\b", re.MULTILINE)
    others = set().union(
        *(
            _names(path)
            for path in (root / "tfsafe").rglob("*.py")
            if imported.search(path.read_text())
        )
    )

    def mentions(path: pathlib.Path) -> tuple[bool, int, int]:
        words = re.findall(r"\w+", path.read_text())
        is_namesake = stem.strip("_").rstrip("s") in path.stem
        return is_namesake, *(
            sum(map(each.__contains__, words)) for each in (own, others)
        )

    ranked = sorted(files, key=mentions, reverse=True)
    return [*(str(path.relative_to(root)) for path in ranked), "tests/test_traps.py"]


def _names(path: pathlib.Path) -> set[str]:
    """Returns the names of a module and of what it defines."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    body = ast.parse(path.read_text()).body
    names = {path.stem, *(node.name for node in body if isinstance(node, kinds))}
    return names | {name.lstrip("_") for name in names}
