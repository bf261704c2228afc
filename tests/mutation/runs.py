"""Runs cases in a process of their own, where a module of the package is changed."""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.mutation.changes import Change

ROOT = pathlib.Path(__file__).parent.parent.parent
OPTIONS = [
    *("-q", "-x", "-p", "no:cacheprovider"),
    # That of a plugin of the suite which the harness uses itself.
    *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
]
# Imported once, before the process of each run is forked: half of the time of a run.
# TensorFlow starts its threads at the first operation, which is in the run.
_PRELOADED = ["tensorflow", "keras", "mpmath", "coverage", "pytest"]
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(_PRELOADED)
_HUNG = "(hung)"


class Changed(importlib.machinery.SourceFileLoader, importlib.abc.MetaPathFinder):
    """Imports one module as if its file were changed.

    Args:
      change: Of the module.
    """

    def __init__(self, change: Change) -> None:
        name = ".".join(pathlib.Path(change.path).with_suffix("").parts)
        super().__init__(name.removesuffix(".__init__"), str(ROOT / change.path))
        self._change = change

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_code(self, fullname: str) -> Any:
        source = self._change.apply(pathlib.Path(self.path).read_bytes())
        return compile(source, self.path, "exec", dont_inherit=True)


class _Chosen:
    """A pytest plugin that runs some cases alone, in the order given."""

    def __init__(self, cases: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(cases)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        kept = [item for item in items if item.nodeid in self._places]
        items[:] = sorted(kept, key=lambda item: self._places[item.nodeid])


def first_failure(change: Change, cases: Sequence[str], seconds: float) -> str:
    """Runs cases on a changed module until one fails.

    Args:
      change: Of the module.
      cases: Node ids, in their order.
      seconds: What they take without the change. They hang if they take much longer.

    Returns:
      The first test that failed; empty if none did.

    Raises:
      RuntimeError: If pytest ended with an error of its own.
    """
    status, lines = in_fork(_run, 120 + 20 * seconds, change, list(cases))
    if status is None:
        return _HUNG
    if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return ""
    named = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    if not named and status > 0:
        raise RuntimeError("\n".join(["pytest itself failed:", *lines[-20:]]))
    return named[0][:100] if named else f"(ended by signal {-status})"


def _run(change: Change, cases: list[str]) -> int:
    sys.meta_path.insert(0, Changed(change))
    files = dict.fromkeys(name.partition("::")[0] for name in cases)
    return pytest.main([*OPTIONS, "--tier=all", *files], [_Chosen(cases)])


def in_fork(
    function: Callable[..., int], limit: float, *arguments: Any
) -> tuple[int | None, list[str]]:
    """Calls a function in a process with TensorFlow imported, and not the package.

    Returns:
      What it returned, or None if it took longer than `limit` seconds, and the lines
      that it printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        process = _FORKS.Process(target=_call, args=(log, function, arguments))
        process.start()
        process.join(limit)
        if process.is_alive():
            process.kill()
            process.join()
            return None, []
        return process.exitcode, log.read_text(errors="replace").splitlines()


def _call(log: pathlib.Path, function: Callable[..., int], arguments: Any) -> None:
    os.chdir(ROOT)
    with log.open("w") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = function(*arguments)
    os._exit(int(status))
