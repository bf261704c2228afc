"""Runs the programs in all ways and compares with the plain run."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.field.ways import WAYS

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
LIMIT = 1200
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def difference(plain: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Returns what differs from the plain run, or None."""
    if other["code"] != plain["code"]:
        return f"exit code {other['code']}\n{other['messages'][-4000:]}"
    if other["warnings"]:
        return "\n".join(other["warnings"])
    if NUMBER.sub("#", other["printed"]) != NUMBER.sub("#", plain["printed"]):
        return f"printed {other['printed']!r}, not {plain['printed']!r}"
    pairs = zip(
        NUMBER.findall(other["printed"]), NUMBER.findall(plain["printed"]), strict=True
    )
    for ours, theirs in pairs:
        if abs(float(ours) - float(theirs)) > 2e-4 + 2e-3 * abs(float(theirs)):
            return f"printed {other['printed']!r}, not {plain['printed']!r}"
    return None


def outcomes(program: pathlib.Path, ways: Sequence[str]) -> list[dict[str, Any]]:
    """Runs a program in these ways, in processes of its own."""
    # A second strategy of a process uses the keys of the first one's collectives.
    is_alone = "MirroredStrategy" in program.read_text()
    groups = [[way] for way in ways] if is_alone else [ways]
    return [each for group in groups for each in _in_one_process(program, group)]


def _in_one_process(program: pathlib.Path, ways: Sequence[str]) -> list[dict[str, Any]]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "0",
    }
    command = [sys.executable, "-m", "tests.field.ways", str(program), *ways]
    try:
        finished = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        text, end = finished.stdout, finished.stderr[-2000:]
    except subprocess.TimeoutExpired as error:
        text = (error.stdout or b"").decode()
        end = f"the process took more than {LIMIT} s"
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    for way in ways[len(found) :]:
        failed = {"way": way, "code": -1, "printed": "", "messages": end}
        found.append({**failed, "warnings": []})
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the programs, prints what differs, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--way", action="append", choices=[*WAYS])
    options = parser.parse_args(arguments)
    paths = sorted((HERE / "programs").glob("*.py"))
    if options.programs:
        paths = [path for path in paths if path.stem in options.programs]
    ways = ["plain", *(w for w in options.way or WAYS if w != "plain")]
    wrong = 0
    for path in paths:
        plain, *others = outcomes(path, ways)
        found = {each["way"]: difference(plain, each) for each in others}
        if plain["code"]:
            found["plain"] = plain["messages"]
        if not plain["printed"]:
            found.setdefault("plain", "printed nothing")
        bad = {way: text for way, text in found.items() if text}
        wrong += len(bad)
        print(f"{path.stem}: {'differs' if bad else 'equal'}", flush=True)
        for way, text in bad.items():
            print(f"  {way}: {text}", flush=True)
    print(f"{len(paths)} programs, {len(ways)} ways, {wrong} differences")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
