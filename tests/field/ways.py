"""Runs one program in every way, each with TensorFlow and Keras reset before it.

    python -m tests.field.ways PROGRAM.py WAY ...

One process runs all ways of a program, because importing TensorFlow takes longer than
a program. Prints a line of JSON for each way: exit code, printed text, errors.
"""

import contextlib
import io
import json
import os
import pathlib
import re
import runpy
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Sequence
from typing import Any

SWAP = "swap"
SAFE = "SafeOptimizer"
# Options of `tfsafe run`, and which imports are replaced.
WAYS: dict[str, tuple[list[str] | None, tuple[str, ...]]] = {
    "plain": (None, ()),
    "watch": ([], ()),
    "domain": (["--checks", "domain"], ()),
    "full": (["--checks", "full"], ()),
    "strict": (["--checks", "full", "--strict"], ()),
    "stabilize": (["--checks", "none", "--stabilize"], ()),
    "swap": (None, (SWAP,)),
    "SafeOptimizer": (None, (SAFE,)),
    "all": (["--checks", "full", "--stabilize"], (SWAP, SAFE)),
}
_NAMESAKES = ("callbacks", "layers", "losses", "metrics", "regularizers")


def source_for(text: str, replaced: Sequence[str]) -> str:
    """Returns the program with its imports replaced, on the same lines."""

    def line(match: re.Match[str]) -> str:
        homes = (_import_of(name, replaced) for name in match[1].split(", "))
        return "; ".join(homes)

    return re.sub(r"^from keras import (.*)$", line, text, flags=re.MULTILINE)


def _import_of(name: str, replaced: Sequence[str]) -> str:
    if name == "optimizers" and SAFE in replaced:
        return "from tests.field import safe_optimizers as optimizers"
    package = "tfsafe" if name in _NAMESAKES and SWAP in replaced else "keras"
    return f"from {package} import {name}"


def run(program: pathlib.Path, way: str) -> dict[str, Any]:
    """Runs a program in one way, and returns what it printed and how it ended."""
    options, replaced = WAYS[way]
    printed, messages = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as open_:
        script = pathlib.Path(folder) / program.name
        script.write_text(source_for(program.read_text(), replaced))
        open_.enter_context(_clean_process(folder))
        caught = open_.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        open_.enter_context(contextlib.redirect_stdout(printed))
        open_.enter_context(contextlib.redirect_stderr(messages))
        code = _exit_code(str(script), options)
    ours = [str(w.message) for w in caught if "tfsafe" in str(w.message)]
    return {
        "way": way,
        "code": code,
        "printed": printed.getvalue(),
        "messages": messages.getvalue(),
        "warnings": ours,
    }


def _exit_code(script: str, options: list[str] | None) -> int:
    from tfsafe import __main__ as command_line

    try:
        if options is None:
            sys.argv = [script]
            runpy.run_path(script, run_name="__main__")
        else:
            command_line.main(["run", *options, script])
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException as error:
        # What Python does in the end, with the excepthook that `run` has set.
        if options is None:
            traceback.print_exc()
        else:
            sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


@contextlib.contextmanager
def _clean_process(folder: str) -> Any:
    """Restores what a program or `run` changes in the process."""
    import keras
    import tensorflow as tf

    from tfsafe import _faults, debugging
    from tfsafe.rewriting import disable_stabilize

    before = os.getcwd()
    argv, path, hook = sys.argv, list(sys.path), sys.excepthook
    main: types.ModuleType = sys.modules["__main__"]
    _faults.REPORTED.clear()
    try:
        os.chdir(folder)
        yield
    finally:
        os.chdir(before)
        debugging.disable_check_numerics()
        disable_stabilize()
        sys.argv, sys.path[:], sys.excepthook = argv, path, hook
        sys.modules["__main__"] = main
        tf.config.run_functions_eagerly(False)
        keras.config.set_dtype_policy("float32")
        keras.utils.clear_session()


def main(arguments: Sequence[str]) -> None:
    """Runs the ways that are named."""
    for way in arguments[1:]:
        print(json.dumps(run(pathlib.Path(arguments[0]), way)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
