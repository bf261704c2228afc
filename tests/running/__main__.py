"""Distributes the files of the suite to workers and prints what they measured."""

import argparse
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

from tests.running.figures import Figures
from tests.running.tiers import TIERS

ROOT = pathlib.Path(__file__).parent.parent.parent
# A worker of more than this fraction of the limit is replaced after a case: the next
# case needs some of the rest.
FULL = 0.8
# The files that take longest, so that no worker is left alone with them at the end.
FIRST = pathlib.Path(__file__).with_name("first.txt").read_text().split()


class Worker:
    """A process of `tests.running.worker`.

    Args:
      args: The command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        descriptor, self._log = tempfile.mkstemp(suffix=".log")
        os.close(descriptor)
        coverage = ["-m", "coverage", "run", "--parallel-mode"]
        if args.coverage is None:
            coverage = []
        self._process = subprocess.Popen(
            [sys.executable, *coverage, "-m", "tests.running.worker", self._log],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"},
        )
        self._options = [f"--tier={args.tier}", *args.pytest]
        if args.order_seed is not None:
            self._options.append(f"--order-seed={args.order_seed}")
        self._most_mb = FULL * args.limit * 1000

    def run(self, file: str, skip: list[str]) -> dict[str, Any] | None:
        """Runs a file without the cases `skip`; returns None if the process died."""
        request = {
            "paths": [file],
            "skip": skip,
            "options": self._options,
            "most_mb": self._most_mb,
        }
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def log(self) -> str:
        """Returns what the process printed while it ran the last file."""
        return pathlib.Path(self._log).read_text(errors="replace")

    def close(self) -> None:
        """Lets the process end, and waits until it has."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        os.unlink(self._log)


class Run:
    """One run of the suite.

    Args:
      args: The command line.

    Attributes:
      figures: What was measured so far.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.figures = Figures()
        self._args = args
        self._files = files(args.paths, args.order_seed)
        self._lock = threading.Lock()

    def __call__(self) -> None:
        threads = [
            threading.Thread(target=self._run_files) for _ in range(self._args.workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run_files(self) -> None:
        """Runs files, in one worker at a time, until none is left."""
        worker = None
        while (file := self._next()) is not None:
            skip: list[str] = []
            is_whole = False
            while not is_whole:
                if worker is None:
                    worker = self._start()
                answer = worker.run(file, skip)
                with self._lock:
                    self.figures.add(file, answer, worker.log())
                if answer is None or answer["is_full"] or answer["is_cut"]:
                    worker.close()
                    worker = None
                is_whole = answer is None or not answer["is_cut"]
                skip += [case[-1] for case in answer["cases"]] if answer else []
        if worker is not None:
            worker.close()

    def _next(self) -> str | None:
        with self._lock:
            return self._files.pop(0) if self._files else None

    def _start(self) -> Worker:
        with self._lock:
            self.figures.workers += 1
        return Worker(self._args)


def files(paths: list[str], seed: int | None) -> list[str]:
    """Returns what is run at a time: files of tests, and packages with doctests."""
    found = []
    for path in paths:
        folder = ROOT / path
        if folder.is_file() or path == "tfsafe":
            # The doctests of the package are few and fast.
            found.append(path)
            continue
        found += [
            str(file.relative_to(ROOT)) for file in sorted(folder.rglob("test_*.py"))
        ]
    if seed is not None:
        random.Random(seed).shuffle(found)
        return found
    place = {file: place for place, file in enumerate(FIRST)}
    return sorted(found, key=lambda file: (place.get(file, len(FIRST)), _size(file)))


def _size(file: str) -> int:
    path = ROOT / file
    return -path.stat().st_size if path.is_file() else -1_000_000


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.running",
        description="Runs the suite and prints its time and memory.",
    )
    parser.add_argument("paths", nargs="*", default=["tests", "tfsafe"])
    parser.add_argument("--tier", choices=TIERS, default="all")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--limit", type=float, default=4.0, help="GB of a process; more is a failure"
    )
    parser.add_argument("--order-seed", type=int, help="shuffle files and cases")
    parser.add_argument("--coverage", type=int, help="least percentage; 0 only counts")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all figures")
    known, rest = parser.parse_known_args(words)
    known.pytest = rest
    return known


def main() -> int:
    args = parse(sys.argv[1:])
    run = Run(args)
    started = time.monotonic()
    if args.order_seed is not None:
        print(f"order of files and cases: --order-seed {args.order_seed}", flush=True)
    run()
    if args.json:
        run.figures.write(args.json)
    status = 0
    if args.coverage:
        coverage = [sys.executable, "-m", "coverage"]
        subprocess.run([*coverage, "combine", "-q"], cwd=ROOT, check=True)
        report = [*coverage, "report", f"--fail-under={args.coverage}"]
        status = subprocess.run(report, cwd=ROOT, check=False).returncode
    is_right = run.figures.report(args.tier, args.limit, time.monotonic() - started)
    return status or int(not is_right)


if __name__ == "__main__":
    sys.exit(main())
