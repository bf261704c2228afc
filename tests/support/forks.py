"""Runs Python programs in forks of a process that has imported TensorFlow and Keras.

A program that is started anew spends four CPU seconds on these imports. TensorFlow
starts its threads at the first operation, which is in the fork; of `tfsafe` nothing is
imported before.
"""

import atexit
import contextlib
import functools
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

_ROOT = pathlib.Path(__file__).parent.parent.parent
_LIMIT = 300
# CPU seconds of the programs that ended, and the highest memory of one in kB, on Linux:
# the system counts them as children of the process that forks.
spent = {"seconds": 0.0, "kilobytes": 0}


class Program:
    """One program that runs.

    Args:
      command: What follows `python` in a command line.
      cwd: Its working directory.
      env: All of its environment. What TensorFlow reads when it is imported has no
        effect.
    """

    def __init__(
        self,
        command: Sequence[Any],
        cwd: Any = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [str(word) for word in command]
        self._folder = tempfile.TemporaryDirectory()
        self._files = [os.path.join(self._folder.name, name) for name in "12"]
        self.pid = _server()(
            command=self._command,
            cwd=str(cwd or os.getcwd()),
            env=dict(env or os.environ),
            files=self._files,
        )

    def wait(self, limit: float = _LIMIT) -> subprocess.CompletedProcess[str]:
        """Returns its exit status and what it printed; ends it after `limit` s."""
        timer = threading.Timer(limit, self.kill)
        timer.start()
        status, seconds, kilobytes = _server()(pid=self.pid)
        timer.cancel()
        spent["seconds"] += seconds
        spent["kilobytes"] = max(spent["kilobytes"], kilobytes)
        out, err = (pathlib.Path(file).read_text() for file in self._files)
        self._folder.cleanup()
        return subprocess.CompletedProcess(self._command, status, out, err)

    def kill(self) -> None:
        """Ends it. It has to be waited for all the same."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)


def run(*command: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs `python *command` and returns its exit status and what it printed."""
    return Program(command, **options).wait()


@functools.cache
def _server() -> Any:
    """Starts the process that forks; returns a function that asks it."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(**request: Any) -> Any:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def end() -> None:
        process.communicate()

    atexit.register(end)
    return ask


def _serve() -> None:
    import keras  # noqa: F401

    from tests.support import pipelines

    pipelines.switch_autotuning_off()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        if "command" in request:
            answer: Any = os.fork()
            if not answer:
                _become(**request)
        else:
            _, status, usage = os.wait4(request["pid"], 0)
            seconds = usage.ru_utime + usage.ru_stime
            answer = os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss
        print(json.dumps(answer), file=answers, flush=True)


def _become(
    command: list[str], cwd: str, env: dict[str, str], files: list[str]
) -> NoReturn:
    """Runs a program as Python would, and ends this process."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), stream)
    # Then the interpreter ends as usual: workers of a cluster wait for each other.
    try:
        _execute(command)
    except SystemExit:
        raise
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)
    sys.exit()


def _execute(command: list[str]) -> None:
    first, *rest = command
    if first == "-m":
        sys.argv = rest
        sys.path[0] = os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = command
        sys.path[0] = str(pathlib.Path(first).resolve().parent)
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    _serve()
