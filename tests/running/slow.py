"""Writes `slow.txt`, the test functions that tier one leaves to tier two.

Writes `first.txt` as well, the files that take longest, in the order of their time.

python -m tests.running --json F      # on an idle machine
python -m tests.running.slow F        # several files add up
"""

import collections
import json
import pathlib
import sys

# CPU seconds of the mean case of a function.
LIMIT = 0.5
# How many files are in `first.txt`.
COUNT = 40
FOLDER = pathlib.Path(__file__).parent


def by_name(paths: list[str], end: str) -> dict[str, list[float]]:
    """Returns the CPU seconds of the cases, by their names up to `end`."""
    seconds = collections.defaultdict(list)
    for path in paths:
        for cpu, _, name in json.loads(pathlib.Path(path).read_text())["cases"]:
            seconds[name.partition(end)[0]].append(cpu)
    return seconds


def slow(paths: list[str]) -> list[str]:
    """Returns the functions whose cases take longer than `LIMIT` on average."""
    seconds = by_name(paths, "[")
    return sorted(
        name
        for name, each in seconds.items()
        # Doctests stay in tier one.
        if name.startswith("tests/") and sum(each) / len(each) > LIMIT
    )


def first(paths: list[str]) -> list[str]:
    """Returns the files that take longest."""
    seconds = by_name(paths, "::")
    return sorted(seconds, key=lambda file: -sum(seconds[file]))[:COUNT]


if __name__ == "__main__":
    for file, names in ("slow.txt", slow), ("first.txt", first):
        (FOLDER / file).write_text("\n".join(names(sys.argv[1:])) + "\n")
