"""Runs the command line: `python -m tfsafe demo`, `python -m tfsafe run`."""

import argparse
import importlib.util
import os
import pathlib
import runpy
import sys
from collections.abc import Sequence

import tfsafe
from tfsafe._run import run

_NEEDED = {"matplotlib": "matplotlib", "sklearn": "scikit-learn"}


def main(argv: Sequence[str] | None = None) -> None:
    """Runs one command.

    Args:
      argv: Command and its arguments; None takes those of the process.
    """
    argv = sys.argv[1:] if argv is None else argv
    summary = (tfsafe.__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="tfsafe", description=summary)
    parser.add_argument("--version", action="version", version=tfsafe.__version__)
    commands = parser.add_subparsers(dest="command")
    # Each command has options of its own, which this parser leaves to it.
    for name, (_, text) in _COMMANDS.items():
        commands.add_parser(name, add_help=False, help=text)
    command = parser.parse_args(argv[:1]).command
    if command is None:
        parser.print_help()
    else:
        _COMMANDS[command][0](argv[1:])


def demo(arguments: Sequence[str]) -> None:
    """Runs the example `rescue_lstm.py`.

    Args:
      arguments: The example's own command-line arguments.

    Raises:
      SystemExit: If a package is missing that the example draws or loads with.
    """
    missing = [
        pip for name, pip in _NEEDED.items() if not importlib.util.find_spec(name)
    ]
    if missing:
        raise SystemExit(
            f"The demo needs {' and '.join(missing)}. Install with "
            "`pip install 'tfsafe[examples]'`."
        )
    # Set before TensorFlow loads: its start-up log would hide the first act.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    script = _examples() / "rescue_lstm.py"
    sys.argv = [str(script), *arguments]
    runpy.run_path(str(script), run_name="__main__")


def _examples() -> pathlib.Path:
    """Finds the examples: inside an installed package, or next to it in a checkout."""
    package = pathlib.Path(tfsafe.__file__).parent
    installed = package / "examples"
    return installed if installed.is_dir() else package.parent / "examples"


_COMMANDS = {
    "demo": (demo, "train an LSTM that fails on real data, find the cause, rescue it"),
    "run": (run, "run a script or a module under the numeric checks, unedited"),
}


if __name__ == "__main__":
    main()
