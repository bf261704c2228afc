"""Runs the command line: `tfsafe run`, `replay`, `demo`, `coverage`, `completion`."""

import argparse
import difflib
import importlib.util
import pathlib
import runpy
import sys
from collections.abc import Sequence

import tfsafe
from tfsafe import _after_import
from tfsafe._run import OPTIONS, run

_TOO_LATE = (
    "The capsule holds the gradient of its step as operations, and --stabilize "
    "rewrites the formulas of the forward pass alone. `tfsafe run --stabilize` "
    "rewrites them before the step is differentiated."
)
_STABLE_TOO = (
    "This is the step in its stable form: no rule of --stabilize repairs this line. "
    "What it suggests is a change of the program."
)
_GIVEN = "No rule of --stabilize repairs a value that was non-finite before the step."
_NEEDED = {"matplotlib": "matplotlib", "sklearn": "scikit-learn"}


def main(argv: Sequence[str] | None = None) -> None:
    """Runs one command."""
    argv = sys.argv[1:] if argv is None else argv
    summary = (tfsafe.__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="tfsafe", description=summary)
    parser.add_argument("--version", action="version", version=tfsafe.__version__)
    commands = parser.add_subparsers(dest="command")
    # Each command has options of its own, which this parser leaves to it.
    for name, (_, text) in _COMMANDS.items():
        commands.add_parser(name, add_help=False, help=text)
    _refuse_unknown(parser, argv)
    command = parser.parse_args(argv[:1]).command
    if command is None:
        parser.print_help()
    else:
        _COMMANDS[command][0](argv[1:])


def _refuse_unknown(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Ends with an error that says what is meant by an unknown command."""
    word = next(iter(argv), "-")
    if word.startswith("-") and word in OPTIONS and "run" in argv:
        others = " ".join(each for each in argv if each != "run")
        parser.error(
            f"{word} is an option of `run`. Did you mean `tfsafe run {others}`?"
        )
    if word.startswith("-") or word in _COMMANDS:
        return
    meant = difflib.get_close_matches(word, _COMMANDS, n=1)
    if word.endswith(".py") or pathlib.Path(word).exists():
        meant = [f"run {' '.join(argv)}"]
    hint = f" Did you mean `tfsafe {meant[0]}`?" if meant else ""
    parser.error(f"{word!r} is none of {', '.join(_COMMANDS)}.{hint}")


def demo(arguments: Sequence[str]) -> None:
    """Runs the example `rescue_lstm.py`.

    Raises:
      SystemExit: If a package is missing that the example draws or loads with.
    """
    parser = argparse.ArgumentParser(
        prog="tfsafe demo", description=_COMMANDS["demo"][1]
    )
    # Those of the example, known here so that the help needs no TensorFlow.
    parser.add_argument(
        "--epochs", type=int, help="passes over the data; 15 by default"
    )
    parser.add_argument("--seeds", type=int, nargs="+", help="one run for each; 0")
    parser.add_argument("--figure", help="where to draw; rescue_lstm.png by default")
    parser.add_argument(
        "--page", help="page of the finding; rescue_lstm.html by default"
    )
    parser.parse_args(arguments)
    missing = [
        pip for name, pip in _NEEDED.items() if not importlib.util.find_spec(name)
    ]
    if missing:
        raise SystemExit(
            f"The demo needs {' and '.join(missing)}. Install with "
            "`pip install 'tfsafe[examples]'`."
        )
    # TensorFlow's start-up log would hide the first act.
    _after_import.AfterImport(("tensorflow", "keras"), lambda: None).install()
    script = _examples() / "rescue_lstm.py"
    sys.argv = [str(script), *arguments]
    runpy.run_path(str(script), run_name="__main__")


def coverage(arguments: Sequence[str]) -> None:
    """Prints what tfsafe has for some names, or for all.

    Args:
      arguments: The names.

    Raises:
      SystemExit: If neither tfsafe nor Keras has a name.
    """
    parser = argparse.ArgumentParser(
        prog="tfsafe coverage", description=_COMMANDS["coverage"][1]
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="such as Softmax or losses; all if none",
    )
    names = parser.parse_args(arguments).names
    with _after_import.quiet():
        covered = tfsafe.coverage
        import keras  # noqa: F401 (loads TensorFlow)
    for name in names or [None]:
        try:
            found = covered(name)
        except ValueError as error:
            parser.error(str(error))
        if found is not None:
            sys.stdout.write(f"{found}\n")


def replay(arguments: Sequence[str]) -> None:
    """Replays a capsule, and prints the finding.

    Args:
      arguments: The file and the options.

    Raises:
      SystemExit: With exit code 1 if a value is not finite, 2 if the file cannot be
        replayed.
    """
    parser = argparse.ArgumentParser(
        prog="tfsafe replay",
        description="Replays the failed step that `error.save`, `tfsafe run --capsule` "
        "or `NumericsMonitor(capsule=)` saved, without its script and its data.",
    )
    add = parser.add_argument
    add("path", metavar="nan.zip", help="the capsule")
    add(
        "--checks", choices=("watch", "domain", "full"), default="watch",
        help="how closely to look, as in `tfsafe run`",
    )  # fmt: skip
    add(
        "--stabilize", action="store_true",
        help="rewrite the step to its stable form first, to see whether that is finite",
    )  # fmt: skip
    add("--html", metavar="PAGE", help="write the finding as a web page to this file")
    add(
        "--max-bytes", type=int, default=2**32, metavar="N",
        help="refuse a file that is larger than this, unpacked; 4 GiB by default",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    with _after_import.quiet():
        tfsafe.debugging.replay  # noqa: B018 (loads TensorFlow)
    try:
        error = tfsafe.debugging.replay(
            options.path,
            checks=options.checks,
            transform=tfsafe.stabilize if options.stabilize else None,
            max_bytes=options.max_bytes,
        )
    except ValueError as reason:
        parser.error(str(reason))
    if error is None:
        sys.stdout.write("All values of the step are finite.\n")
        return
    sys.stdout.write(f"{error.explain()}\n")
    if options.stabilize:
        sys.stdout.write(f"{_not_repaired(error.findings[0])}\n")
    if options.html:
        error.to_html(options.html)
        sys.stdout.write(f"The page is {options.html}\n")
    raise SystemExit(1)


def _not_repaired(finding: "tfsafe.Finding") -> str:
    """Says why the stable form of a step has this finding too."""
    if finding.origin.startswith("argument "):
        return _GIVEN
    return _TOO_LATE if finding.is_gradient else _STABLE_TOO


def completion(arguments: Sequence[str]) -> None:
    """Prints a script for a shell that completes commands and options."""
    parser = argparse.ArgumentParser(
        prog="tfsafe completion",
        description='Prints a completion script: eval "$(tfsafe completion bash)"',
    )
    parser.add_argument("shell", choices=["bash", "zsh"])
    shell = parser.parse_args(arguments).shell
    # zsh runs scripts of bash by a function of its own.
    zsh = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    options = " ".join(sorted(OPTIONS))
    sys.stdout.write(zsh + _COMPLETION.format(" ".join(_COMMANDS), options))


def _examples() -> pathlib.Path:
    """Finds the examples: inside an installed package, or next to it in a checkout."""
    package = pathlib.Path(tfsafe.__file__).parent
    installed = package / "examples"
    return installed if installed.is_dir() else package.parent / "examples"


# Files are what `run` takes; the options of a script that follows are its own.
_COMPLETION = """\
_tfsafe() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{0}" -- "$word"))
  elif [ "${{COMP_WORDS[1]}}" = run ] && [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "{1}" -- "$word"))
  elif [ "${{COMP_WORDS[1]}}" = completion ]; then
    COMPREPLY=($(compgen -W "bash zsh" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _tfsafe tfsafe
"""
_COMMANDS = {
    "completion": (completion, "print a script that completes commands in a shell"),
    "coverage": (coverage, "say which names of Keras have a safe version"),
    "demo": (demo, "train an LSTM that fails on real data, find the cause, rescue it"),
    "replay": (replay, "replay a failed step from the file that `error.save` wrote"),
    "run": (run, "run a script or a module under the numeric checks, unedited"),
}


if __name__ == "__main__":
    main()
