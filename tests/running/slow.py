"""Writes `slow.txt`, the test functions that tier one leaves to tier two.

python -m tests.running --json F      # on an idle machine
python -m tests.running.slow F        # several files add up
"""

import collections
import json
import pathlib
import sys

# CPU seconds of the mean case of a function.
LIMIT = 0.5
LIST = pathlib.Path(__file__).with_name("slow.txt")


def slow(paths: list[str]) -> list[str]:
    """Returns the functions whose cases take longer than `LIMIT` on average."""
    seconds = collections.defaultdict(list)
    for path in paths:
        for cpu, _, name in json.loads(pathlib.Path(path).read_text())["cases"]:
            seconds[name.partition("[")[0]].append(cpu)
    return sorted(
        name
        for name, each in seconds.items()
        # Doctests stay in tier one.
        if name.startswith("tests/") and sum(each) / len(each) > LIMIT
    )


if __name__ == "__main__":
    LIST.write_text("\n".join(slow(sys.argv[1:])) + "\n")
