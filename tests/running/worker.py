"""Runs one file of tests after another in one process, and measures each.

Reads requests from standard input and answers each on standard output, one JSON object
a line. What pytest and TensorFlow print goes to the file that the command line names.
"""

import gc
import json
import os
import sys
import time

import keras  # noqa: F401
import mpmath  # noqa: F401
import pytest
import tensorflow as tf  # noqa: F401

import tfsafe  # noqa: F401
from tests.running import memory
from tests.support import forks

OPTIONS = [
    *("-q", "--no-header", "-p", "no:cacheprovider"),
    # The doctests of the package have no `conftest.py`.
    *("-p", "tests.running.tiers", "-p", "tests.running.order"),
]


class Measuring:
    """A pytest plugin that times the cases, and stops where memory runs short.

    Attributes:
      counts: How many cases had each outcome.
      cases: CPU seconds, MB at the end and name of each case that ran.
      is_cut: Whether cases are left because the process holds too much memory.
    """

    def __init__(self, skip: list[str], most_mb: float) -> None:
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.cases: list[tuple[float, float, str]] = []
        self.is_cut = False
        self._skip = set(skip)
        self._most_mb = most_mb

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid not in self._skip]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        started = _cpu_seconds()
        result = yield
        seconds = _cpu_seconds() - started
        self.cases.append((seconds, memory.held(), item.nodeid))
        if memory.held() > self._most_mb and nextitem is not None:
            self.is_cut = True
            item.session.shouldstop = "this process is to be replaced"
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self.counts[report.outcome] += 1


def _cpu_seconds() -> float:
    """Returns the CPU time of this process and of those that it waited for."""
    return sum(os.times()[:4]) + forks.spent["seconds"]


def forget() -> None:
    """Collects garbage, and takes what is left from what is looked through for more.

    pytest collects garbage three times a file. What imports made and what caches hold
    stays: to look through it each time takes longer than the tests of most files.
    """
    gc.collect()
    gc.freeze()


def run(paths: list[str], skip: list[str], options: list[str], most_mb: float) -> dict:
    """Runs the tests of some files and returns the answer to the request."""
    plugin = Measuring(skip, most_mb)
    memory.forget_peak()
    started = time.monotonic()
    status = pytest.main([*OPTIONS, *options, *paths], [plugin])
    highest = memory.peak()
    if status in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
        plugin.counts["failed"] += 1
    sys.stdout.flush()
    forget()
    memory.trim()
    return {
        "counts": plugin.counts,
        "cases": plugin.cases,
        "is_cut": plugin.is_cut,
        "seconds": time.monotonic() - started,
        "peak": highest,
        "children": max(memory.children(), forks.spent["kilobytes"] / 1024),
        "is_full": memory.held() > most_mb,
    }


def main() -> None:
    forget()
    # Tracing makes many objects: to collect them seldom saves two per cent of the time.
    gc.set_threshold(20_000, 10, 10)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    log = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR | os.O_APPEND)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    for line in sys.stdin:
        os.truncate(log, 0)
        print(json.dumps(run(**json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
