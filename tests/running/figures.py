"""Collects what the workers measured, and prints it."""

import json
import pathlib
from typing import Any

# How many of the slowest cases and of the largest files are printed.
SHOWN = 10


class Figures:
    """Time, memory and outcomes of one run.

    Attributes:
      counts: Cases by outcome.
      cases: CPU seconds, MB and name of each case.
      files: Wall seconds and the highest memory of a worker in MB, by file.
      children: The highest memory of one process that a test started, in MB.
      workers: How many workers were started.
    """

    def __init__(self) -> None:
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.cases: list[tuple[float, float, str]] = []
        self.files: dict[str, tuple[float, float]] = {}
        self.children = 0.0
        self.workers = 0

    def add(self, file: str, answer: dict[str, Any] | None, log: str) -> None:
        """Adds the answer of a worker, and prints one line for it.

        Args:
          file: What it ran.
          answer: What it answered; None if the process died.
          log: What the worker printed; shown if a case failed.
        """
        if answer is None:
            self.counts["failed"] += 1
            print(f"{log}\n{file}: the worker died", flush=True)
            return
        for outcome, count in answer["counts"].items():
            self.counts[outcome] += count
        self.cases += map(tuple, answer["cases"])
        seconds, peak = self.files.get(file, (0.0, 0.0))
        self.files[file] = seconds + answer["seconds"], max(peak, answer["peak"])
        self.children = max(self.children, answer["children"])
        counts = ", ".join(f"{n} {how}" for how, n in answer["counts"].items() if n)
        used = sum(case[0] for case in answer["cases"])
        part = " (a part)" if answer["is_cut"] else ""
        print(
            f"{file}{part}: {counts or 'nothing to run'}; {answer['seconds']:.0f} s "
            f"({used:.0f} s CPU), {answer['peak'] / 1000:.2f} GB",
            flush=True,
        )
        if answer["counts"]["failed"]:
            print(log, flush=True)

    def report(self, tier: str, limit: float, seconds: float) -> bool:
        """Prints the figures; returns whether no case failed and memory sufficed.

        Args:
          tier: What was run.
          limit: Of the memory of one process, in GB.
          seconds: The time of the whole run.
        """
        used = sum(case[0] for case in self.cases)
        print(f"\nSlowest cases, CPU seconds (all cases: {used:.0f})")
        for cpu, _, name in sorted(self.cases, reverse=True)[:SHOWN]:
            print(f"{cpu:8.1f}  {name}")
        print("\nHighest memory of a worker by file, GB; wall seconds")
        ranked = sorted(self.files.items(), key=lambda item: -item[1][1])
        for file, (wall, peak) in ranked[:SHOWN]:
            print(f"{peak / 1000:8.2f}  {wall:6.0f}  {file}")
        highest = max([peak for _, peak in self.files.values()], default=0.0)
        highest = max(highest, self.children) / 1000
        print(
            f"\nTier {tier}: {seconds / 60:.1f} min, {self.workers} workers started, "
            f"at most {highest:.2f} GB in one process (limit {limit:.1f})."
        )
        counts = self.counts
        if highest > limit:
            counts["failed"] += 1
            print("One process held more memory than the limit.")
        if not sum(counts.values()):
            counts["failed"] += 1
            print("No test ran.")
        print(
            f"{counts['passed']} passed, {counts['failed']} failed, "
            f"{counts['skipped']} skipped"
        )
        return not counts["failed"]

    def write(self, path: pathlib.Path) -> None:
        """Writes all figures to a file, as JSON."""
        path.write_text(json.dumps(vars(self), indent=1))
