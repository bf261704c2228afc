"""The words of a finding: what, where, why and what to do, in a few lines of text."""

import ast
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfsafe.errors import Finding, Link, Operand

_INDENT = " " * 9
_LABEL = re.compile(r"^  [a-z]+: +")
# Of a longer chain the middle is left out.
_LINKS = 16
# A step of it takes one line, so that a long line of source is cut.
_WIDE = 100


def lines_of(finding: "Finding") -> list[str]:
    """Returns the explanation of a finding, line by line."""
    size = [f"  what:  {what(finding)}"] if finding.size else []
    lines = [headline(finding), *size, *_where(finding)]
    if finding.cause:
        lines += wrapped("  why:   ", finding.cause)
    heads = ["  input: "] + [_INDENT] * len(finding.inputs)
    for head, operand in zip(heads, finding.inputs, strict=False):
        lines += wrapped(
            head, f"{operand.name}, {kind_of(operand)}: {figures(operand)}"
        )
    return lines + _cure(finding)


def headline(finding: "Finding") -> str:
    """Says in one sentence what came from where."""
    if finding.row is None:
        return f"{_head(finding)}."
    row = f", first in row {finding.row} of the batch"
    # Of a table that comes in the column says as much.
    is_table = finding.subject and len(finding.index) == 2
    feature = f", feature {finding.index[1]}" if is_table else ""
    return f"{_head(finding)}{row}{feature}."


def first_line(finding: "Finding") -> str:
    """Returns the sentence that the text of a finding begins with, of any kind."""
    return str(finding).partition("\n")[0]


def _head(finding: "Finding") -> str:
    if finding.subject:
        return f"{finding.kind} in {finding.subject}"
    if finding.is_gradient and finding.forward_op:
        forward, own = finding.forward_op, finding.op_type
        return f"{finding.kind} in the gradient of `{forward}`, from `{own}`"
    where = " in the backward pass" if finding.is_gradient else ""
    return f"{finding.kind} from `{finding.op_type}`{where}"


def what(finding: "Finding") -> str:
    """Says how many elements are bad, of what, and where the first one is."""
    if not finding.size:
        return f"values of {finding.dtype}" if finding.dtype else ""
    if not finding.shape:
        return f"the only value, {finding.dtype}"
    first = "at" if finding.count == 1 else "the first at"
    return (
        f"{share(finding)}, {first} {finding.index}; shape {finding.shape}, "
        f"{finding.dtype}"
    )


def share(finding: "Finding") -> str:
    """Says how many of how many, by kind where there are several."""
    output = finding.output
    counts = _bad_counts(output) if output else []
    if len(counts) < 2 or sum(count for count, _ in counts) != finding.count:
        return f"{finding.count} of {finding.size} values"
    told = " and ".join(f"{count} {kind}" for count, kind in counts)
    return f"{told} of {finding.size} values"


def place_of(finding: "Finding") -> str:
    """Says what stands around the line: the layers, the loops."""
    notes = [f"inside {finding.scope}"] if finding.scope else []
    if finding.iteration:
        notes.append(f"loop iteration {', '.join(map(str, finding.iteration))}")
    if finding.is_gradient and finding.forward_op and finding.site is not None:
        notes.insert(0, "the forward operation")
    return "; ".join(notes)


def _where(finding: "Finding") -> list[str]:
    around = place_of(finding)
    note = f" ({around})" if around else ""
    site = finding.site
    if site is None:
        if finding.subject:
            return []
        operation = finding.op_name or finding.op_type
        return [f"  where: no line of yours; operation `{operation}`{note}"]
    lines = [f"  where: {site.path}:{site.line} in {site.function}{note}"]
    return lines + ([f"{_INDENT}    {site.source}"] if site.source else [])


def _cure(finding: "Finding") -> list[str]:
    if not finding.cure:
        return []
    if not finding.paste:
        return wrapped("  cure:  ", finding.cure)
    return [f"  cure:  {finding.paste}", *wrapped(_INDENT, finding.cure)]


def kind_of(tensor: "Operand | Finding | Link") -> str:
    """Says of which dtype and shape a tensor is."""
    return f"{tensor.dtype} {'x'.join(map(str, tensor.shape)) or 'scalar'}"


def figures(operand: "Operand") -> str:
    """Says what a tensor holds: its range, and what deserves a look."""
    told = []
    if operand.min is not None and operand.max is not None:
        same = operand.min == operand.max
        low, high = f"{operand.min:.4g}", f"{operand.max:.4g}"
        told.append(f"all {low}" if same and operand.shape else f"{low} to {high}")
        if same and not operand.shape:
            told = [low]
        elif not same:
            told.append(f"mean {operand.mean:.4g}")
    elif not _bad_counts(operand):
        return "no elements"
    if operand.min != operand.max:
        told += counted(operand.zeros, "zero"), counted(operand.negatives, "negative")
    told += [f"{count} {kind}" for count, kind in _bad_counts(operand)]
    return ", ".join(part for part in told if part)


def _bad_counts(operand: "Operand") -> list[tuple[int, str]]:
    kinds = (operand.nans, "NaN"), (operand.posinfs, "+Inf"), (operand.neginfs, "-Inf")
    return [(count, kind) for count, kind in kinds if count]


def counted(count: int, noun: str) -> str:
    """Counts a noun, in the plural if there are several; says nothing of none."""
    return f"{count} {noun}{'s' if count > 1 else ''}" if count else ""


def chain_lines(chain: Sequence["Link"]) -> list[str]:
    """Returns the way of the bad values as a table, one line a step."""
    rows = [
        (
            f"{number}",
            name_of(link),
            link.kind,
            share_of(link),
            short_place(link),
            link.site.source if link.site else "",
        )
        for number, link in enumerate(chain, 1)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    lines = [
        line if len(line) <= _WIDE else f"{line[: _WIDE - 3]}..." for line in lines
    ]
    kept, left_out = middle_out(lines)
    if left_out:
        kept.insert(_LINKS // 2, f"... {left_out} more ...")
    heads = ["  chain: "] + [_INDENT] * len(kept)
    return [head + line for head, line in zip(heads, kept, strict=False)]


def middle_out(steps: Sequence[Any]) -> tuple[list[Any], int]:
    """Returns both ends of a long list, and how many are left out between them."""
    if len(steps) <= _LINKS + 1:
        return list(steps), 0
    half = _LINKS // 2
    return [*steps[:half], *steps[-half:]], len(steps) - _LINKS


def name_of(link: "Link") -> str:
    """Returns what a step is called."""
    return link.subject or link.op_type or "from outside"


def share_of(link: "Link") -> str:
    """Says how many elements of a step's output are bad, if it is known."""
    return f"{link.count} of {link.size}" if link.size else ""


def short_place(link: "Link") -> str:
    """Returns file and line of a step, or the layers around it."""
    if link.site is None:
        return link.scope
    return f"{os.path.basename(link.site.path)}:{link.site.line}"


def listed(names: Iterable[str], most: int = 3) -> str:
    """Names the first few, and counts the others."""
    first, rest = list(names)[:most], list(names)[most:]
    return ", ".join(first) + (f" and {len(rest)} more" if rest else "")


def wrapped(head: str, text: str) -> list[str]:
    """Breaks a line of an explanation at 88 columns, under its heading."""
    return textwrap.wrap(
        text,
        width=88,
        initial_indent=head,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wants_color(stream: Any = None) -> bool:
    """Returns whether a stream, standard output if None, is to be written in colours.

    It is if it is a terminal, unless the environment sets `NO_COLOR`, see
    https://no-color.org.
    """
    is_terminal = getattr(sys.stdout if stream is None else stream, "isatty", bool)
    return not os.environ.get("NO_COLOR") and is_terminal()


def painted(text: str) -> str:
    """Gives a plain explanation its colours, as terminals write them."""
    lines = text.split("\n")
    lines[0] = _ink("1;31", lines[0])
    label = ""
    for number, line in enumerate(lines[1:], 1):
        found = _LABEL.match(line)
        head, rest = (found[0], line[found.end() :]) if found else ("", line)
        label, is_first = (head.strip(), True) if found else (label, False)
        if label == "where:" and not is_first:
            rest = _ink("36", rest)
        elif label == "cure:" and is_first and _is_code(rest):
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
