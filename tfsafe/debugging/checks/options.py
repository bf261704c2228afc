"""Holds the options of a check: its level, strictness and exclusions."""

import fnmatch
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, get_args

from tfsafe._faults import RefusalError
from tfsafe.debugging.checks.tally import Measured
from tfsafe.errors import Site
from tfsafe.graph import UnreadableError

Level = Literal["watch", "domain", "full"]
LEVELS: tuple[Level, ...] = get_args(Level)
Note = Callable[[Measured], None]
_FORMS = (
    '"op:Log" (a type of operation), "name:*/attention/*" (a name or a layer scope), '
    '"line:train.py:33" (a line) or "line:train.py" (a file)'
)


class Excluded(NamedTuple):
    """One rule of `exclude`.

    Attributes:
      what: `"op"`, `"name"` or `"line"`.
      pattern: What follows: a pattern of `fnmatch`, or the end of a path.
      number: Of the line, with `"line"`; 0 for the whole file.
    """

    what: str
    pattern: str
    number: int = 0

    def matches(
        self, types: Iterable[str], names: Iterable[str], site: Site | None
    ) -> bool:
        """Returns whether the rule excludes an operation.

        Args:
          types: Its type, and that of the forward operation of a gradient.
          names: Its name and its scope.
          site: The user's line.
        """
        if self.what == "op":
            return any(fnmatch.fnmatchcase(each, self.pattern) for each in types)
        if self.what == "name":
            return any(fnmatch.fnmatchcase(each, self.pattern) for each in names)
        if site is None or self.number not in {0, site.line}:
            return False
        return f"/{site.path}".endswith(f"/{self.pattern.lstrip('/')}")


class Options(NamedTuple):
    """The options of a check.

    Attributes:
      checks: Its level, one of `LEVELS`.
      strict: Whether a non-finite value that reaches no result is an error too.
      exclude: The operations to ignore.
      is_for_program: Whether all that a program runs is checked, not what it named.
      has_logs: Whether the results of the call are the logs of a Keras step.
      note: Called with measures that are not finite; None where they are failures.
    """

    checks: str = "watch"
    strict: bool = False
    exclude: tuple[Excluded, ...] = ()
    is_for_program: bool = False
    has_logs: bool = False
    note: Note | None = None

    @property
    def level(self) -> str:
        """The level at which a graph is checked: `strict` needs every operation."""
        return "full" if self.strict and self.checks == "watch" else self.checks

    def excludes(
        self, types: Iterable[str], names: Iterable[str], site: Site | None
    ) -> bool:
        """Returns whether an operation is excluded; see `Excluded.matches`."""
        types, names = list(types), list(names)
        return any(each.matches(types, names, site) for each in self.exclude)

    def note_unreadable(self, error: UnreadableError) -> None:
        """Says of a function that `strict` cannot be met in it.

        Raises:
          RefusalError: If the function was named; a program goes on.
        """
        text = f"`strict=True` cannot look into this function: {error}."
        if self.strict and not self.is_for_program:
            raise RefusalError(f"{text} Use `strict=False`.") from None
        if self.strict:
            warnings.warn(f"{text} Its results are checked.", RuntimeWarning, 2)


def options_of(checks: Any, strict: Any, exclude: Any) -> Options:
    """Returns the options that a user asked for.

    Raises:
      TypeError: If `strict` is not a boolean, or `exclude` not a sequence of strings.
      ValueError: If `checks` is not a level, or a rule of `exclude` cannot be read.
    """
    if checks not in LEVELS:
        raise ValueError(
            '`checks` must be "watch", "domain" or "full". '
            f"Received: checks={checks!r}."
        )
    if not isinstance(strict, bool):
        raise TypeError(f"`strict` must be True or False. Received: strict={strict!r}.")
    if isinstance(exclude, str) or not isinstance(exclude, Iterable):
        raise TypeError(
            f"`exclude` must be a sequence of strings, such as {_FORMS}. "
            f"Received: exclude={exclude!r}."
        )
    return Options(checks, strict, tuple(map(_rule, exclude)))


def _rule(text: Any) -> Excluded:
    what, _, pattern = text.partition(":") if isinstance(text, str) else ("", "", "")
    if what not in {"op", "name", "line"} or not pattern:
        raise ValueError(
            f"A rule of `exclude` must be one of {_FORMS}. Received: {text!r}."
        )
    if what != "line":
        return Excluded(what, pattern)
    path, _, number = pattern.rpartition(":")
    if path and number.isdigit():
        return Excluded(what, path, int(number))
    return Excluded(what, pattern)
