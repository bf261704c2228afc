"""The command line: `python -m tfsafe demo`, `python -m tfsafe run`."""

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
      argv: Command and its arguments; those of the process where None.
    """
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="python -m tfsafe", description=tfsafe.__doc__
    )
    parser.add_argument("--version", action="version", version=tfsafe.__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    # Each command has options of its own, which this parser leaves to it.
    for name, (_, text) in _COMMANDS.items():
        commands.add_parser(name, add_help=False, help=text)
    _COMMANDS[parser.parse_args(argv[:1]).command][0](argv[1:])


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
    # Before TensorFlow loads: its start-up log would bury the first act.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    script = _examples() / "rescue_lstm.py"
    sys.argv = [str(script), *arguments]
    runpy.run_path(str(script), run_name="__main__")


def _examples() -> pathlib.Path:
    """Finds the examples: inside an installed package, or beside it in a checkout."""
    package = pathlib.Path(tfsafe.__file__).parent
    installed = package / "examples"
    return installed if installed.is_dir() else package.parent / "examples"


_COMMANDS = {
    "demo": (
        demo,
        "an LSTM that real data kills, found out and saved three ways; `demo --help` "
        "shows its options",
    ),
    "run": (
        run,
        "a script that nobody edits, under the numeric checks; `run --help` shows its "
        "options",
    ),
}


if __name__ == "__main__":
    main()
