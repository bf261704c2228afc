"""Runs the tests of a changed tree, each time in a process with TensorFlow imported."""

import contextlib
import multiprocessing
import os
import pathlib
import sys
from collections.abc import Sequence

import pytest

# Imported once, before the process of each run is forked: half of the time of a run.
# TensorFlow starts its threads at the first operation, which is in the run.
_PRELOADED = ["tensorflow", "keras", "mpmath", "pytest"]
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(_PRELOADED)
_HUNG = "(hung)"


def first_failure(words: Sequence[str], tree: pathlib.Path, limit: float) -> str:
    """Runs pytest on a tree.

    Args:
      words: Of its command line.
      tree: A copy of the repository.
      limit: Seconds after which the tests count as hung.

    Returns:
      The first test that failed; empty if none did.

    Raises:
      RuntimeError: If pytest ended with an error of its own.
    """
    log = tree / "pytest.log"
    run = _FORKS.Process(target=_run, args=(words, tree, log))
    run.start()
    run.join(limit)
    if run.is_alive():
        run.kill()
        run.join()
        return _HUNG
    if run.exitcode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return ""
    lines = log.read_text(errors="replace").splitlines()
    named = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    if not named and run.exitcode > 0:
        raise RuntimeError("\n".join(["pytest itself failed:", *lines[-20:]]))
    return named[0][:100] if named else f"(ended by signal {-run.exitcode})"


def _run(words: Sequence[str], tree: pathlib.Path, log: pathlib.Path) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    # Files of byte code are told apart by their time in seconds only.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(tree))
    os.chdir(tree)
    with log.open("w") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *words])
    os._exit(int(status))
