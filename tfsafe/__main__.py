"""The command line: `python -m tfsafe demo`."""

import argparse
import importlib.util
import os
import pathlib
import runpy
import sys

import tfsafe

_NEEDED = {"matplotlib": "matplotlib", "sklearn": "scikit-learn"}


def main(argv: list[str] | None = None) -> None:
    """Runs one command.

    Args:
      argv: Command and its arguments; those of the process where None.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tfsafe", description=tfsafe.__doc__
    )
    parser.add_argument("--version", action="version", version=tfsafe.__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    # The example has options of its own, which this parser leaves to it.
    commands.add_parser(
        "demo",
        add_help=False,
        help="an LSTM that real data kills, found out and saved three ways; "
        "`demo --help` shows its options",
    )
    _, rest = parser.parse_known_args(argv)
    demo(rest)


def demo(arguments: list[str]) -> None:
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


if __name__ == "__main__":
    main()
