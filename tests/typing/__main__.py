"""Compares what type checkers report with the marks in the sample.

`python -m tests.typing` is a part of `make lint`; with `--write` it lists the names of
Keras, which type checkers cannot find in modules that answer by `__getattr__`.
"""

import json
import pathlib
import re
import subprocess
import sys

from tests.typing import keras_names

SAMPLE = pathlib.Path(__file__).with_name("sample.py")
ROOT = SAMPLE.parents[2]


def marked() -> set[int]:
    """Returns the lines of the sample that hold a mistake."""
    lines = SAMPLE.read_text().splitlines()
    return {n for n, line in enumerate(lines, 1) if line.endswith("# error")}


def of_mypy() -> set[int]:
    """Returns the lines of the sample in which mypy finds an error."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(SAMPLE)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    return {int(n) for n in re.findall(r"sample\.py:(\d+): error", answer)}


def of_pyright() -> set[int]:
    """Returns the lines of the sample in which pyright finds an error."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath"]
    answer = subprocess.run(
        [*command, sys.executable, str(SAMPLE)],
        cwd=ROOT, capture_output=True, text=True,
    ).stdout  # fmt: skip
    found = json.loads(answer)["generalDiagnostics"]
    return {
        each["range"]["start"]["line"] + 1
        for each in found
        if each["severity"] == "error"
    }


def main() -> None:
    """Exits with an error that lists the lines in which a checker is wrong."""
    if "--write" in sys.argv:
        keras_names.write()
        return
    wrong = []
    for name, found in (("mypy", of_mypy()), ("pyright", of_pyright())):
        missed, spurious = sorted(marked() - found), sorted(found - marked())
        count = f"{len(marked() & found)} of {len(marked())} mistakes found"
        sys.stdout.write(f"{name}: {count}\n")
        wrong += [f"{SAMPLE}:{line}: {name} reports nothing" for line in missed]
        wrong += [f"{SAMPLE}:{line}: {name} reports an error" for line in spurious]
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
