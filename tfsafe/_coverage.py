"""Prints which names tfsafe makes safe, and which it leaves to Keras."""

import importlib
import inspect
import textwrap
from collections.abc import Callable

from tfsafe._catalogue import FIXES

# In the order of the table. `ops` has no Keras namesake: Keras' own work on symbolic
# inputs too, and are not meant to be swapped.
_NAMESAKES = (
    "losses",
    "layers",
    "metrics",
    "optimizers",
    "callbacks",
    "regularizers",
)
_OTHERS = ("ops",)
_WIDTH = 88


def coverage(print_fn: Callable[[str], object] = print) -> None:
    """Prints which public names tfsafe makes safe or adds, and the purpose of each.

    `safe` marks a name of Keras that is tfsafe's class here, `new` one that Keras does
    not have. Every other name of such a package is Keras' own object, and is counted.
    A purpose ends with the measured traps that the name repairs; `COVERAGE.md` in the
    source says what each is, and tests show that it fails in Keras and holds here.

    Args:
      print_fn: Called with each line, of at most 88 characters.

    Examples:
      >>> import tfsafe
      >>> lines = []
      >>> tfsafe.coverage(print_fn=lines.append)
      >>> print(lines[1].split()[:2])
      ['safe', 'BinaryCrossentropy']
    """
    for package in (*_NAMESAKES, *_OTHERS):
        for line in _table(package):
            print_fn(line)
    traps = sum(len(identifiers.split()) for identifiers in FIXES.values())
    print_fn(f"{traps} measured traps are fixed by {len(FIXES)} of these names.")


def _table(package: str) -> list[str]:
    module = importlib.import_module(f"tfsafe.{package}")
    own = sorted(module.__all__)
    safe: set[str] = set()
    title = f"tfsafe.{package}: {len(own)} new"
    if package in _NAMESAKES:
        theirs = set(dir(importlib.import_module(f"keras.{package}")))
        safe = theirs.intersection(own)
        passed_on = theirs.intersection(dir(module)).difference(own)
        public = [name for name in passed_on if not name.startswith("_")]
        title = (
            f"tfsafe.{package}: {len(own) - len(safe)} new, {len(safe)} made safe, "
            f"{len(public)} are Keras' own"
        )
    column = max(map(len, own)) + 2
    rows = []
    for name in own:
        mark = "safe" if name in safe else "new"
        purpose = (inspect.getdoc(getattr(module, name)) or "").partition("\n")[0]
        fixed = FIXES.get(f"{package}.{name}")
        rows += textwrap.wrap(
            f"{purpose} [{fixed}]" if fixed else purpose,
            _WIDTH,
            initial_indent=f"  {mark:<6}{name:<{column}}",
            subsequent_indent=" " * (8 + column),
        )
    return [title, *rows, ""]
