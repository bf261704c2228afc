"""Runs an unmodified script under the numeric checks: `python -m tfsafe run`."""

import argparse
import contextlib
import os
import pkgutil
import runpy
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfsafe import _after_import, _compat, _faults, _uncaught

if TYPE_CHECKING:
    from tfsafe.debugging.entry.script import Results
    from tfsafe.rewriting.engine.planner import Rewrite

_LEVELS = ("watch", "domain", "full", "none")
_PACKAGES = ("tensorflow", "keras")


def run(arguments: Sequence[str]) -> None:
    """Runs a script or a module as `python` does, with the checks switched on.

    The checks begin when the script has imported TensorFlow, so that what it puts into
    `os.environ` before that has its effect. Arguments, exit code, standard streams and
    errors are the script's own. A `NumericsError` that nothing catches is shown as the
    lines of the user's that led to it and the explanation of the finding.

    Args:
      arguments: Options, then the script and its arguments.

    Raises:
      SystemExit: If the arguments are wrong, with exit code 2; if the script raises it.
    """
    options = _options(arguments)
    sys.argv = [options.program, *options.arguments]
    conditions, usual = _Conditions(options), sys.excepthook
    with _faults.contained("watching imports"):
        conditions.watch.install()
    try:
        ended = _ended(options)
        if not getattr(ended, "code", None):
            conditions.look_at_what_is_left()
        if ended:
            raise ended
    except SystemExit:
        conditions.conclude()
        raise
    except BaseException as error:
        with _faults.contained("preparing the end of the run"):
            _uncaught.show_at_exit(error, options, usual)
        raise
    else:
        conditions.conclude()
    finally:
        conditions.end()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tfsafe run",
        usage="%(prog)s [options] script.py [arguments]\n"
        "       %(prog)s [options] -m package.module [arguments]",
        description="Runs a script as `python` does, under the numeric checks.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--checks", choices=_LEVELS, default="watch",
        help="watch (the default): loss, gradients, variables; domain: also the "
        "operations that can make NaN or Inf; full: every operation",
    )  # fmt: skip
    add(
        "--strict", action="store_true",
        help="report values that are not finite even where they reach no result",
    )  # fmt: skip
    add(
        "--exclude", action="append", default=[], metavar="RULE",
        help="exclude operations: op:Log, name:*/attention/*, line:train.py:33; may "
        "be given several times",
    )  # fmt: skip
    add(
        "--stabilize", action="store_true",
        help="rewrite every tf.function and Keras training step to its stable form",
    )  # fmt: skip
    add(
        "--swap", action="store_true",
        help='let strings such as loss="mse" mean the losses, layers and metrics of '
        "tfsafe",
    )  # fmt: skip
    add(
        "--report", metavar="PATH",
        help="write the finding as a web page to this file",
    )  # fmt: skip
    add(
        "--capsule", metavar="PATH",
        help="save the failed step to this zip file, for `tfsafe replay`",
    )  # fmt: skip
    add(
        "-m", dest="is_module", action="store_true",
        help="run a module, as `python -m` does",
    )  # fmt: skip
    add("program", metavar="script.py", help="what to run")
    rest = add(
        "arguments", nargs=argparse.REMAINDER, help="what it finds in `sys.argv`"
    )
    # It may be empty; argparse would ask for it where the script is missing.
    rest.required = False
    return parser


OPTIONS = [each for action in _parser()._actions for each in action.option_strings]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns what is asked for.

    Raises:
      SystemExit: If it cannot be done.
    """
    parser = _parser()
    if arguments[:1] == ["-c"]:
        parser.error(
            f"findings name lines of files. Received: {' '.join(arguments)}. Write the "
            "program to a file, as in `tfsafe run script.py`."
        )
    options = parser.parse_args(arguments)
    if not options.is_module and not os.path.exists(options.program):
        parser.error(f"cannot find the file {os.path.abspath(options.program)}")
    for name in ("report", "capsule"):
        folder = os.path.dirname(os.path.abspath(getattr(options, name) or "file"))
        if not os.path.isdir(folder):
            parser.error(f"argument --{name}: cannot find the folder {folder}")
    return options


def _ended(options: argparse.Namespace) -> SystemExit | None:
    """Runs the program; returns with what it ended itself, as by `sys.exit(main())`."""
    try:
        if options.is_module:
            runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        else:
            _run_script(options.program)
    except SystemExit as ended:
        return ended
    return None


def _run_script(program: str) -> None:
    path = os.path.abspath(program)
    is_source = pkgutil.get_importer(path) is None and not path.endswith(".pyc")
    # `python -m` has put the working directory there; `python script.py` puts the
    # script's, and `runpy` that of a folder or an archive. `python -P` puts nothing.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0:1] = [os.path.dirname(os.path.realpath(path))] if is_source else []
    if not is_source:
        runpy.run_path(path, run_name="__main__")
        return
    # By hand, because `runpy` changes `sys.argv[0]` and `__package__`.
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    module = types.ModuleType("__main__")
    vars(module).update(__file__=path, __cached__=None)
    sys.modules["__main__"] = module
    exec(code, vars(module))


class _Conditions:
    """Switches checks and rewrites on for a script, and reports on them at its end."""

    def __init__(self, options: argparse.Namespace):
        self.watch = _after_import.AfterImport(_PACKAGES, self._switch_on)
        self._options = options
        self._is_on = False
        self._results: Results | None = None
        self._rewrites: list[Rewrite] = []
        self._open = contextlib.ExitStack()

    def _switch_on(self) -> None:
        with _faults.contained("switching tfsafe on"):
            try:
                _compat.require_tensorflow_backend()
            except ImportError as error:
                _uncaught.say(f"nothing is checked. {error}")
                return
            self._is_on = True
            self._switch_each_on()

    def _switch_each_on(self) -> None:
        if self._options.swap:
            from tfsafe import _keras_scope

            with _faults.contained("switching the safe classes on"):
                _keras_scope.install()
        if self._options.stabilize:
            from tfsafe.rewriting.engine import function
            from tfsafe.rewriting.targets import switch

            with _faults.contained("switching the stable forms on"):
                switch.enable_stabilize()
                self._rewrites = self._open.enter_context(function.collected())
        if self._options.checks != "none":
            from tfsafe import debugging
            from tfsafe.debugging.entry import script

            with _faults.contained("switching the checks on"):
                try:
                    debugging.enable_check_numerics(
                        checks=self._options.checks,
                        strict=self._options.strict,
                        exclude=self._options.exclude,
                    )
                except ValueError as error:
                    _parser().error(f"argument --exclude: {error}")
                self._results = script.Results(self._open)

    def look_at_what_is_left(self) -> None:
        """Raises for what is checked when a script has ended.

        Raises:
          NumericsError: If a late step or, without steps, a result is not finite.
        """
        if late := sys.modules.get("tfsafe.debugging.checks.traced.late"):
            late.look_at_all()
        if self._results is not None:
            with _faults.contained("the check of the results"):
                self._results.look()

    def end(self) -> None:
        """Ends the watch and the collecting; the checks go on for what atexit runs."""
        with _faults.contained("ending the run"):
            self.watch.remove()
            # Raised where the script imported TensorFlow in a context of asyncio's.
            with contextlib.suppress(ValueError):
                self._open.close()

    def conclude(self) -> None:
        """Reports what was not checked or rewritten in a script that has ended."""
        with _faults.contained("the report at the end"):
            self._say_what_was_done()

    def _say_what_was_done(self) -> None:
        if not self.watch.is_done:
            _uncaught.say(
                "nothing was checked: the script imported neither TensorFlow nor "
                "Keras. What it starts as another process has to be run this way too."
            )
        elif self._is_on and _is_without_eager():
            _uncaught.say(
                "nothing was checked: the script switched eager execution off."
            )
        else:
            for path in (self._options.report, self._options.capsule):
                if path is not None:
                    _uncaught.say(f"no finding, so that {path} was not written.")
            with _faults.contained("the number of steps"):
                for line in self._results.summary() if self._results else ():
                    _uncaught.say(line)
        if self._is_on and self._options.stabilize:
            from tfsafe.rewriting.reports import lines

            with _faults.contained("the list of rewritten formulas"):
                is_checked = self._options.checks != "none"
                _uncaught.say(
                    "\n  ".join(lines.rewrites_by_line(self._rewrites, is_checked))
                )


def _is_without_eager() -> bool:
    import tensorflow as tf

    return not tf.compat.v1.executing_eagerly_outside_functions()
