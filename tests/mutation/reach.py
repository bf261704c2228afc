"""Records once which cases of a test file run which lines of the package."""

import collections
import hashlib
import json
import pathlib
import time
from typing import Any

import coverage
import pytest

from tests.mutation.runs import OPTIONS, ROOT, in_fork

# One file for each test file, until it or the package changes.
KEPT = ROOT / "build" / "mutation"
LIMIT = 900


class _Recording:
    """A pytest plugin that notes the time of each case, and the lines that it runs."""

    def __init__(self) -> None:
        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, source=[str(ROOT / "tfsafe")]
        )
        self._seconds: dict[str, float] = {}

    def pytest_sessionstart(self) -> None:
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._coverage.switch_context(item.nodeid)
        started = time.process_time()
        result = yield
        self._seconds[item.nodeid] = time.process_time() - started
        return result

    def found(self) -> dict[str, Any]:
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: dict[str, Any] = collections.defaultdict(dict)
        for path in data.measured_files():
            module = str(pathlib.Path(path).relative_to(ROOT))
            for line, cases in data.contexts_by_lineno(path).items():
                lines[module][line] = [case for case in cases if case in self._seconds]
        return {"seconds": self._seconds, "lines": lines}


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
      The seconds that each case takes.

    Raises:
      RuntimeError: If a case fails without any change.
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{file.replace('/', '.')}.{tier}.{_digest(file)}.json"
    if not path.exists():
        status, printed = in_fork(_record, LIMIT, file, tier, str(path))
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            path.unlink(missing_ok=True)
            raise RuntimeError("\n".join(["failed unchanged:", *printed[-20:]]))
    found = json.loads(path.read_text())
    cases = [
        case
        for line, each in found["lines"].get(module, {}).items()
        if lines[0] <= int(line) <= lines[1]
        for case in each
    ]
    return {case: found["seconds"][case] for case in cases}


def _digest(file: str) -> str:
    digest = hashlib.sha256()
    for path in [ROOT / file, *sorted((ROOT / "tfsafe").rglob("*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
