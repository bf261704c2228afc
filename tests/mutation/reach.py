"""Records once which cases of a test file run which lines of the package.

Of each test at least one case is recorded, and others for two minutes, but none under
XLA, which takes long to compile: those are taken to run the lines, and to need the
time, of the recorded cases of the same test.
"""

import collections
import functools
import hashlib
import itertools
import json
import operator
import pathlib
import time
from typing import Any

import coverage
import pytest

from tests.mutation.runs import OPTIONS, ROOT, in_fork
from tests.running import tiers

# One file for each test file, until it or a module that is asked for changes.
KEPT = ROOT / "build" / "mutation"
LIMIT = 1800
# Seconds for the cases of one test: those of the longest tables reach all rules.
MOST = 120.0
# What coverage calls the time before the first case.
_IMPORT = ""


class _Recording:
    """A pytest plugin that notes the time of some cases, and the lines they run."""

    def __init__(self) -> None:
        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, source=[str(ROOT / "tfsafe")]
        )
        self._coverage.start()
        self._seconds: dict[str, float] = {}
        self._total: collections.Counter = collections.Counter()
        self._every: list[str] = []
        self._started = 0.0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._every = [item.nodeid for item in items]
        items.sort(key=_is_xla)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self._total[tiers.function_of(item)] > (0 if _is_xla(item) else MOST):
            pytest.skip("enough cases of this test are recorded")
        self._coverage.switch_context(item.nodeid)
        self._started = time.process_time()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        result = yield
        self._seconds[item.nodeid] = time.process_time() - self._started
        self._total[tiers.function_of(item)] += self._seconds[item.nodeid]
        return result

    def found(self) -> dict[str, Any]:
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: dict[str, Any] = collections.defaultdict(dict)
        number = {case: i for i, case in enumerate(self._every)}
        for path in data.measured_files():
            module = str(pathlib.Path(path).relative_to(ROOT))
            found = data.contexts_by_lineno(path)
            every = set(itertools.chain.from_iterable(found.values()))
            for line, cases in found.items():
                # What is run by the import of the module is seen by all its cases.
                cases = every if _IMPORT in cases else cases
                reached = [number[case] for case in cases if case in self._seconds]
                if reached:
                    lines[module][line] = reached
        digests = {str(path.relative_to(ROOT)): _digest(path) for path in _package()}
        return {
            "digests": digests,
            "every": self._every,
            "seconds": self._seconds,
            "lines": lines,
        }


def _is_xla(item: pytest.Item) -> bool:
    return "xla" in item.nodeid.partition("[")[2].lower()


def _record(file: str, tier: str, path: str) -> int:
    recording = _Recording()
    status = pytest.main([*OPTIONS, f"--tier={tier}", file], [recording])
    pathlib.Path(path).write_text(json.dumps(recording.found()))
    return status


def reaching(
    file: str, tier: str, module: str, lines: tuple[int, int]
) -> dict[str, float]:
    """Returns the cases of a test file that run one of some lines of a module.

    Args:
      file: The test file.
      tier: Of its cases.
      module: Path of the module.
      lines: The first and the last.

    Returns:
      The seconds that each case takes, in the order in which to run them: of each test
      its fastest case, the fastest of these first, then of each the next.

    Raises:
      RuntimeError: If a case fails without any change.
    """
    found = _recorded(file, tier, module)
    numbers = {
        number
        for line, each in found["lines"].get(module, {}).items()
        if lines[0] <= int(line) <= lines[1]
        for number in each
    }
    names = [found["every"][number] for number in sorted(numbers)]
    recorded = {case: found["seconds"][case] for case in names}
    by_test: dict[str, dict[str, float]] = collections.defaultdict(dict)
    for case in sorted(recorded, key=recorded.__getitem__):
        by_test[case.partition("[")[0]][case] = recorded[case]
    for case in found["every"]:
        cases = by_test.get(case.partition("[")[0])
        if cases and case not in found["seconds"]:
            cases[case] = max(cases.values())
    rounds = itertools.zip_longest(*(each.items() for each in by_test.values()))
    return dict(
        pair
        for each in rounds
        for pair in sorted(filter(None, each), key=operator.itemgetter(1))
    )


def _recorded(file: str, tier: str, module: str) -> dict[str, Any]:
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{file.replace('/', '.')}.{tier}.{_digest(ROOT / file)}.json"
    if path.exists():
        found = _read(path)
        if found["digests"].get(module) == _digest(ROOT / module):
            return found
    status, printed = in_fork(_record, LIMIT, file, tier, str(path))
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        path.unlink(missing_ok=True)
        raise RuntimeError("\n".join(["failed unchanged:", *printed[-20:]]))
    _read.cache_clear()
    return _read(path)


@functools.cache
def _read(path: pathlib.Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def _package() -> list[pathlib.Path]:
    return sorted((ROOT / "tfsafe").rglob("*.py"))


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
