"""Runs each program plainly and under `tfsafe run`, and prints a table.

python -m tests.ecosystem [PROGRAM ...]
"""

import argparse
import ast
import os
import pathlib
import re
import sys
from collections.abc import Sequence
from importlib import metadata

from tests.field.__main__ import difference, outcomes

PROGRAMS = pathlib.Path(__file__).parent / "programs"
WAYS = ("plain", "watch", "full", "stabilize")
# What deepctr prints of its newest version, at any time.
NEWER = re.compile(
    r"^(Please check the latest version|DeepCTR version).*\n?", re.MULTILINE
)
# What the names of the programs begin with.
PACKAGES = {
    "deepctr": "deepctr",
    "gpflow": "gpflow",
    "keras_hub": "keras-hub",
    "keras_rs": "keras-rs",
    "keras_tuner": "keras-tuner",
    "spektral": "spektral",
    "tf_keras": "tf_keras",
    "tfp": "tensorflow-probability",
}


def row_of(program: pathlib.Path) -> tuple[str, dict[str, str]]:
    """Returns a row of the table, and what differs in which way."""
    if "TF_USE_LEGACY_KERAS" in program.read_text():
        # Read at the import of TensorFlow, which `outcomes` imports first.
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
    try:
        plain, *others = outcomes(program, WAYS)
    finally:
        os.environ.pop("TF_USE_LEGACY_KERAS", None)
    for each in (plain, *others):
        each["printed"] = NEWER.sub("", each["printed"])
    wrong = {each["way"]: difference(plain, each) for each in others}
    wrong["plain"] = plain["messages"] if plain["code"] else None
    cells = ["failed" if wrong[way] else "equal" for way in WAYS[1:]]
    task = (ast.get_docstring(ast.parse(program.read_text())) or "").rstrip(".")
    package = next(p for name, p in PACKAGES.items() if program.stem.startswith(name))
    ran = "failed" if wrong["plain"] else "runs"
    row = [package, metadata.version(package), task, ran, *cells]
    return f"| {' | '.join(row)} |", {way: text for way, text in wrong.items() if text}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table, then what differs, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*")
    names = parser.parse_args(arguments).programs
    paths = [p for p in sorted(PROGRAMS.glob("*.py")) if not names or p.stem in names]
    print("| package | version | the program | plain | `run` | full | `stabilize` |")
    print("|---" * 7 + "|")
    wrong = {}
    for path in paths:
        row, differences = row_of(path)
        print(row, flush=True)
        wrong |= {f"{path.stem}, {way}": text for way, text in differences.items()}
    for place, text in wrong.items():
        print(f"\n{place}: {text}")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
