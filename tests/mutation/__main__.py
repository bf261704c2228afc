"""Runs the tests on each of some changes drawn at random, and prints who survived."""

import argparse
import collections
import itertools
import json
import pathlib
import random
import sys
from collections.abc import Sequence

from tests.mutation import equivalent
from tests.mutation.changes import Change, changes
from tests.mutation.choice import tables, test_files
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
# Test files of a change whose cases of both tiers are run.
MOST = 8


def every_change(only: Sequence[str] = ("",)) -> dict[str, list[Change]]:
    """Returns what can be changed, by package.

    Args:
      only: Parts of paths; each path contains one of them.
    """
    return {
        package: [
            change
            for path in sorted((ROOT / package).rglob("*.py"))
            if any(part in str(path) for part in only)
            for change in changes(str(path.relative_to(ROOT)), path.read_text())
        ]
        for package in CHANGED
    }


def draw(seed: int, count: int, only: Sequence[str]) -> list[Change]:
    """Returns changes drawn at random, as many of each package as of the others."""
    chance = random.Random(seed)
    drawn = [
        chance.sample(every, min(len(every), count))
        for every in every_change(only).values()
    ]
    mixed = itertools.chain.from_iterable(itertools.zip_longest(*drawn))
    return [change for change in mixed if change is not None][:count]


def survivors(path: pathlib.Path) -> list[Change]:
    """Returns the changes that survived in the results of an earlier run."""
    names = {each["change"] for each in json.loads(path.read_text()) if not each["end"]}
    every = itertools.chain.from_iterable(every_change().values())
    return [change for change in every if str(change) in names]


def killer(change: Change, tier: str, limit: float) -> str:
    """Runs the cases that reach a change until one fails.

    First those of tier one in all test files that reach it there, then the others in
    the files that speak most of the module.

    Args:
      change: What to change.
      tier: Of the cases.
      limit: Seconds that the cases of a tier take without a change; others are left.

    Returns:
      The first test that failed; empty if none did.
    """
    files = test_files(ROOT, change.path)
    whole = tables(change.path)
    where = change.path, change.statement
    near = [file for file in (*files, *whole) if reaching(file, "one", *where)]
    failed = _first_failure(change, near, "one", limit)
    if failed or tier == "one":
        return failed
    likely = list(dict.fromkeys([*near, *files]))[:MOST]
    likely += [file for file in whole if file not in likely]
    return _first_failure(change, likely, tier, limit)


def _first_failure(
    change: Change, files: Sequence[str], tier: str, limit: float
) -> str:
    """Runs the cases of one file, then of two, of four: the first notice most."""
    count = 1
    while files and limit > 0:
        seconds: dict[str, float] = {}
        for file in files[:count]:
            seconds |= reaching(file, tier, change.path, change.statement)
        files, count = files[count:], 2 * count
        cases = []
        for case, needed in seconds.items():
            if limit > 0:
                cases.append(case)
                limit -= needed
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
    parser.add_argument("--tier", choices=TIERS, default="all", help="of the cases")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="parts of the paths to be changed"
    )
    parser.add_argument("--json", type=pathlib.Path, help="where to write the results")
    parser.add_argument(
        "--again", type=pathlib.Path, help="results of which the survivors are run"
    )
    args = parser.parse_args()
    again = args.again
    chosen = survivors(again) if again else draw(args.seed, args.count, args.only)
    reasons = equivalent.reasons()
    table: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    survived = []
    results = []
    for change in chosen:
        reason = reasons.get(equivalent.key(change))
        end = reason or killer(change, args.tier, args.limit)
        kind = "equivalent" if reason else "killed" if end else "survived"
        table[next(name for name in CHANGED if change.path.startswith(name))][kind] += 1
        print(f"{change}\n    {end or 'SURVIVED'}", flush=True)
        survived += [] if end else [str(change)]
        results.append({"change": str(change), "end": end})
        if args.json:
            args.json.write_text(json.dumps(results, indent=1))
    kinds = ("killed", "equivalent", "survived")
    table["all"] = sum(table.values(), collections.Counter())
    print(f"\nSeed {args.seed}\n{'package':<28}", *(f"{kind:>11}" for kind in kinds))
    for package in (*CHANGED, "all"):
        print(f"{package:<28}", *(f"{table[package][kind]:>11}" for kind in kinds))
    different = table["all"]["killed"] + table["all"]["survived"]
    print(f"killed: {100 * table['all']['killed'] / max(different, 1):.0f} %")
    print("\nSurvivors", *(survived or ["none"]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
