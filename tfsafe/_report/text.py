"""Builds lines of text: lists of names, counts, wrapped lines, colours of terminals."""

import ast
import inspect
import math
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

# Width of the labels of an explanation, "  where: ".
INDENT = " " * 9
# Number of steps that are shown of a longer path.
STEPS = 16
_LABEL = re.compile(r"^  [a-z]+: +")
_WORD = re.compile(r"[a-z]+(?=[ ,;]|$)")


def listed(names: Iterable[str], most: int = 3) -> str:
    """Names the first few, and counts the others."""
    first, rest = list(names)[:most], list(names)[most:]
    return ", ".join(first) + (f" and {len(rest)} more" if rest else "")


def counted(count: int | None, noun: str) -> str:
    """Returns a number with its noun, in the plural from 2 on; empty for 0 or None."""
    return f"{count} {noun}{'s' if count > 1 else ''}" if count else ""


def capital(words: str) -> str:
    """Returns words with a capital unless they begin with code."""
    is_word = _WORD.match(words) is not None
    return words[:1].upper() + words[1:] if is_word else words


def with_shared(docstring: str, args: str, numerics: str) -> str:
    """Completes the docstring of a class by what all classes of its family have.

    Args:
      docstring: Its sections are `Args`, `Numerics` and `Examples`, in this order.
      args: Lines that end `Args`.
      numerics: Rows that come first in `Numerics`, unless it has one on weights.

    Returns:
      The docstring, without the indentation of the source.
    """
    head, title, examples = inspect.cleandoc(docstring).partition("Examples:\n")
    head, _, rows = head.partition("Numerics:\n")
    if args:
        head = head.rstrip("\n") + ("\n" if "\nArgs:\n" in head else "\n\nArgs:\n")
        head += f"{args}\n"
    if "weight 0" not in rows:
        rows = numerics + (rows or "\n")
    return f"{head}Numerics:\n{rows}{title}{examples}\n"


_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


def sparkline(values: Sequence[float]) -> str:
    """Draws numbers as a line of bars, by their logarithms where they differ a lot."""
    if min(values) > 0 and max(values) > 100 * min(values):
        values = [math.log(each) for each in values]
    low, high = min(values), max(values)
    # What differs by rounding alone is flat.
    is_flat = high - low <= 1e-5 * max(map(abs, values))
    width = math.inf if is_flat else high - low
    top = len(_BARS) - 1
    return "".join(_BARS[round((each - low) / width * top)] for each in values)


def wrapped(head: str, text: str) -> list[str]:
    """Breaks a line of an explanation at 88 columns, under its heading."""
    return textwrap.wrap(
        text,
        width=88,
        initial_indent=head,
        subsequent_indent=INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def with_line(text: str, head: str, words: str, before: str) -> str:
    """Puts a line into an explanation, in place of an earlier one with its heading.

    Args:
      text: The explanation.
      head: The heading of the line.
      words: The rest of the line.
      before: Heading of the line that it comes before; the end if there is none.

    Returns:
      The explanation with the line.
    """
    kept: list[str] = []
    is_old = False
    for line in text.split("\n"):
        is_old = line.startswith(head) or (is_old and line.startswith(INDENT))
        if not is_old:
            kept.append(line)
    ends = (i for i, line in enumerate(kept) if line.startswith(before))
    place = next(ends, len(kept))
    kept[place:place] = wrapped(head, words)
    return "\n".join(kept)


def middle_out(steps: Sequence[Any]) -> tuple[list[Any], int]:
    """Returns both ends of a long list, and how many items between them it omits."""
    if len(steps) <= STEPS + 1:
        return list(steps), 0
    half = STEPS // 2
    return [*steps[:half], *steps[-half:]], len(steps) - STEPS


def wants_color(stream: Any = None) -> bool:
    """Returns whether to write to a stream, standard output if None, in colours.

    Colours are for terminals, unless the environment sets `NO_COLOR`, see
    https://no-color.org.
    """
    is_terminal = getattr(sys.stdout if stream is None else stream, "isatty", bool)
    return not os.environ.get("NO_COLOR") and is_terminal()


def painted(text: str) -> str:
    """Adds the colours of a terminal to a plain explanation."""
    lines = text.split("\n")
    lines[0] = _ink("1;31", lines[0])
    label = ""
    for number, line in enumerate(lines[1:], 1):
        found = _LABEL.match(line)
        head, rest = (found[0], line[found.end() :]) if found else ("", line)
        label, is_first = (head.strip(), True) if found else (label, False)
        if label == "where:" and not is_first:
            rest = _ink("36", rest)
        elif label == "fix:" and is_first and _is_code(rest):
            rest = _ink("32", rest)
        lines[number] = (_ink("2", head) if head else "") + rest
    return "\n".join(lines)


def _is_code(line: str) -> bool:
    """Returns whether a line is Python rather than English."""
    try:
        ast.parse(line)
    except (SyntaxError, ValueError, SystemError):
        return False
    return True


def _ink(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"
