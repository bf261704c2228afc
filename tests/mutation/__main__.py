"""Runs the tests on each of some changes drawn at random, and prints who survived."""

import argparse
import collections
import itertools
import json
import pathlib
import random
import sys

from tests.mutation.changes import Change, changes
from tests.mutation.choice import test_files
from tests.mutation.reach import reaching
from tests.mutation.runs import ROOT, first_failure
from tests.running.tiers import TIERS

# The packages whose code decides about numbers.
CHANGED = (
    "tfsafe/ops",
    "tfsafe/keras_formulas",
    "tfsafe/optimizers",
    "tfsafe/rewriting/rules",
    "tfsafe/debugging/explain",
)


def draw(seed: int, count: int, only: str = "") -> list[Change]:
    """Returns changes drawn at random, as many of each package as of the others.

    Args:
      seed: Chooses them.
      count: How many.
      only: What the path of each contains.
    """
    chance = random.Random(seed)
    drawn: list[list[Change]] = []
    for package in CHANGED:
        every = [
            change
            for path in sorted((ROOT / package).rglob("*.py"))
            if only in str(path)
            for change in changes(str(path.relative_to(ROOT)), path.read_text())
        ]
        drawn.append(chance.sample(every, min(len(every), count)))
    mixed = itertools.chain.from_iterable(itertools.zip_longest(*drawn))
    return [change for change in mixed if change is not None][:count]


def killer(change: Change, tier: str, limit: float) -> str:
    """Runs the cases that reach a change, the fastest of each process first.

    Of one test file, then of two, of four: the first of them notice most changes.

    Args:
      change: What to change.
      tier: Of the cases.
      limit: Seconds that the cases take without a change; others are left.

    Returns:
      The first test that failed; empty if none did.
    """
    files = test_files(ROOT, change.path)
    count = 1
    while files and limit > 0:
        seconds: dict[str, float] = {}
        for file in files[:count]:
            seconds |= reaching(file, tier, change.path, change.statement)
        files, count = files[count:], 2 * count
        cases = []
        for case in sorted(seconds, key=seconds.__getitem__):
            limit -= seconds[case]
            if limit > 0:
                cases.append(case)
        if cases:
            failed = first_failure(change, cases, sum(map(seconds.__getitem__, cases)))
            if failed:
                return failed
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--limit", type=float, default=60, help="seconds of a change")
    parser.add_argument("--tier", choices=TIERS, default="one", help="of the cases")
    parser.add_argument("--only", default="", help="part of the paths to be changed")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the results")
    args = parser.parse_args()
    killed: collections.Counter = collections.Counter()
    total: collections.Counter = collections.Counter()
    survivors = []
    results = []
    for change in draw(args.seed, args.count, args.only):
        failed = killer(change, args.tier, args.limit)
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
