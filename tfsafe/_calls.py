"""Answers calls that do not fit a signature with what does."""

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, get_args

_P = ParamSpec("_P")
_R = TypeVar("_R")


def answered(advice: str = "") -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Returns a decorator: a call that does not fit is refused with what to write.

    Python's own error names neither the value nor the arguments that there are.

    Args:
      advice: A sentence for the end of the error.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                # An error of the call itself, not of the body, has no frame below.
                if error.__traceback__ is None or error.__traceback__.tb_next:
                    raise
                text = _mismatch(function, args, kwargs) or str(error)
                # A misspelled name needs no more.
                more = "" if text.endswith("?") or not advice else f" {advice}"
                raise TypeError(f"{text}{more}") from None

        return call

    return decorate


def _mismatch(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    """Says which argument does not fit; empty if Python's own error is as good."""
    name = function.__name__
    parameters = [*inspect.signature(function).parameters.values()]
    if name == "__init__":
        name, args, parameters = type(args[0]).__name__, args[1:], parameters[1:]
    known = [each.name for each in parameters]
    takes = f"It takes {', '.join(known)}." if known else "It takes no arguments."
    for key, value in kwargs.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            return (
                f"`{name}` has no argument `{key}`. Received: {key}={value!r:.80}. "
                + (f"Did you mean `{close[0]}`?" if close else takes)
            )
    places = [each for each in parameters if each.kind != each.KEYWORD_ONLY]
    if len(args) > len(places):
        extra = args[len(places)]
        others = parameters[len(places) :]
        first = next((f"{x.name}={extra!r}" for x in others if _admits(x, extra)), "")
        return (
            f"`{name}` takes {len(places) or 'no'} positional "
            f"argument{'s' * (len(places) != 1)}. Received: {extra!r:.80}. "
            + (f"Write `{name}({first})`." if first or not known else takes)
        )
    missing = [each.name for each in places[len(args) :] if each.default is each.empty]
    return f"`{name}` needs `{missing[0]}`. Received: none. {takes}" if missing else ""


def _admits(parameter: inspect.Parameter, value: Any) -> bool:
    """Returns whether the value is one of those that the annotation lists."""
    kinds = [parameter.annotation, *get_args(parameter.annotation)]
    listed = [each for kind in kinds for each in get_args(kind)]
    return isinstance(value, str) and value in listed
