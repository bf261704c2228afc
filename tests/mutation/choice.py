"""Orders the test files of a module's package by the words that they share with it."""

import collections
import functools
import math
import pathlib
import re
from collections.abc import Sequence

# Where a package is tested, if not only in the folder of its name; the main one first.
_FOLDERS = {
    "keras_formulas": ("losses", "metrics"),
    # Some kernels are used by rewrite rules or by losses alone.
    "ops": ("ops", "rewriting", "losses"),
    # What a finding suggests depends on where it is.
    "debugging": ("debugging", "losses", "layers", "callbacks"),
}
# Tables of whole formulas and of everything: they run what has no test of its own.
_COLLECTION, _TRAPS = "tests/rewriting/test_collection.py", "tests/test_traps.py"
# How much more a test in the main folder has to do with a module.
_MAIN = 2.0


def test_files(root: pathlib.Path, module: str) -> list[str]:
    """Returns the test files for a module: first those that speak most of the same.

    The measure is the cosine between the counts of their words, each weighed by the
    logarithms of how few test files and how few modules of the package have it.

    Args:
      root: Of the tree.
      module: Path of the module below `root`.
    """
    package = module.split("/")[1]
    folders = _FOLDERS.get(package, (package,))
    files = [
        path
        for folder in folders
        for path in sorted((root / "tests" / folder).glob("test_*.py"))
    ]
    rare = _rarity(files), _rarity(sorted((root / "tfsafe" / package).rglob("*.py")))

    def weights(path: pathlib.Path) -> dict[str, float]:
        counts = _words(path)
        weighed = {
            word: (1 + math.log(counts[word])) * rare[0][word] * rare[1][word]
            for word in counts
            if word in rare[0] and word in rare[1]
        }
        norm = math.hypot(*weighed.values()) or 1.0
        return {word: weight / norm for word, weight in weighed.items()}

    own = weights(root / module)

    def likeness(path: pathlib.Path) -> float:
        others = weights(path)
        shared = sum(own[word] * others.get(word, 0.0) for word in own)
        return shared * (_MAIN if path.parent.name == folders[0] else 1.0)

    ranked = sorted(files, key=likeness, reverse=True)
    return [str(path.relative_to(root)) for path in ranked]


def tables(module: str) -> list[str]:
    """Returns the test files whose cases may run any line of a module."""
    has_formulas = module.split("/")[1] in {"ops", "rewriting"}
    return [_COLLECTION, _TRAPS] if has_formulas else [_TRAPS]


def _rarity(files: Sequence[pathlib.Path]) -> dict[str, float]:
    having = collections.Counter(word for path in files for word in _words(path))
    return {word: math.log(len(files) / count) for word, count in having.items()}


@functools.cache
def _words(path: pathlib.Path) -> collections.Counter:
    """Counts the words of a file's names and text, without the s of a plural."""
    text = f"{path.parent.name} {path.stem} " * 2 + path.read_text()
    words = re.findall(r"[A-Za-z][a-z0-9]+", text)
    return collections.Counter(word.lower().rstrip("s") for word in words)
