"""Runs the tests on each of some changes drawn at random, and prints who survived."""

import argparse
import collections
import json
import pathlib
import random
import shutil
import sys
import tempfile

from tests.mutation.changes import Change, changes
from tests.mutation.choice import test_files
from tests.mutation.runs import first_failure

ROOT = pathlib.Path(__file__).parent.parent.parent
# The packages whose code decides about numbers.
CHANGED = (
    "tfsafe/ops",
    "tfsafe/keras_formulas",
    "tfsafe/optimizers",
    "tfsafe/rewriting/rules",
    "tfsafe/debugging/explain",
)

# The formulas that the rules were written for.
_COLLECTION = (
    ["tests/rewriting/test_collection.py"],
    ["-k", "is_right and graph", "--tier=all"],
)


def draw(seed: int, count: int) -> list[Change]:
    """Returns changes drawn at random, as many of each package as of the others."""
    chance = random.Random(seed)
    drawn: list[list[Change]] = []
    for package in CHANGED:
        every = [
            change
            for path in sorted((ROOT / package).rglob("*.py"))
            for change in changes(str(path.relative_to(ROOT)), path.read_text())
        ]
        drawn.append(chance.sample(every, min(len(every), -(-count // len(CHANGED)))))
    mixed = [change for group in zip(*drawn, strict=False) for change in group]
    return mixed[:count]


def is_killed(change: Change, tree: pathlib.Path, limit: float) -> str:
    """Runs the tests of a changed module.

    Args:
      change: What to change.
      tree: A copy of the repository.
      limit: Seconds after which the tests count as hung.

    Returns:
      The first test that failed; empty if none did.
    """
    path = tree / change.path
    source = path.read_bytes()
    path.write_bytes(change.apply(source))
    try:
        # Without XLA first: most changes are seen in eager mode, in a fraction of it.
        first, rest = test_files(tree, change.path)
        reaches_rules = "/rewriting/" in change.path or "/kernels/" in change.path
        for files, options in [
            (first, ["-k", "not xla", "--tier=one"]),
            (first, ["--tier=all"]),
            (rest, ["--tier=one"]),
            *([_COLLECTION] if reaches_rules else []),
        ]:
            failed = first_failure([*options, *files], tree, limit)
            if failed:
                return failed
        return ""
    finally:
        path.write_bytes(source)


def _copy(folder: str) -> pathlib.Path:
    tree = pathlib.Path(folder) / "tree"
    tree.mkdir()
    for path in ROOT.iterdir():
        if path.is_dir() and path.name in ("tfsafe", "tests", "examples"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, tree / path.name, ignore=ignored)
        elif path.is_file() and path.name != ".git":
            shutil.copy(path, tree)
    return tree


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--limit", type=float, default=900, help="seconds of a run")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the results")
    args = parser.parse_args()
    killed: collections.Counter = collections.Counter()
    total: collections.Counter = collections.Counter()
    survivors = []
    results = []
    with tempfile.TemporaryDirectory() as folder:
        tree = _copy(folder)
        for change in draw(args.seed, args.count):
            failed = is_killed(change, tree, args.limit)
            package = next(name for name in CHANGED if change.path.startswith(name))
            total[package] += 1
            killed[package] += bool(failed)
            text = f"{change.path}:{change.line}: {change.before}  ->  {change.after}"
            print(f"{text}\n    {failed or 'SURVIVED'}", flush=True)
            survivors += [] if failed else [text]
            results.append({"change": text, "killed_by": failed})
            if args.json:
                args.json.write_text(json.dumps(results, indent=1))
    print(f"\nSeed {args.seed}\n{'package':<28}{'killed':>8}{'of':>6}")
    for package in CHANGED:
        print(f"{package:<28}{killed[package]:>8}{total[package]:>6}")
    fraction = 100 * killed.total() / max(total.total(), 1)
    print(f"{'all':<28}{killed.total():>8}{total.total():>6}  {fraction:.0f} %")
    print("\nSurvivors", *(survivors or ["none"]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
