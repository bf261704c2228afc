"""Shows a suggestion as a diff of the user's own lines."""

import ast
from collections.abc import Iterator
from typing import NamedTuple


class Change(NamedTuple):
    """Lines of the user's, and what to write instead.

    Attributes:
      old: The lines of the expression that is replaced, with their indentation.
      new: The line with the suggested code in place of it.
      needs: The import that this needs; empty for none.
    """

    old: str
    new: str
    needs: str


def of_line(
    source: str, suggested: str, replaced: str, number: int = 1
) -> Change | None:
    """Puts suggested code in the place of what it replaces.

    Args:
      source: The user's file, or a line of it.
      suggested: The suggested code: an expression.
      replaced: The expression that it takes the place of.
      number: Number of the line in `source` that the expression begins on or goes
        through.

    Returns:
      The change; None where the expression is not once at that line.
    """
    tree = _parsed(source) if replaced else None
    places = list(_places(tree, replaced, number)) if tree else []
    if len(places) != 1:
        return None
    ((place, head),) = places
    first, last = place.lineno - 1, place.end_lineno or place.lineno
    old = source.splitlines()[first:last]
    before = old[0].encode()[: place.col_offset].decode()
    after = old[-1].encode()[place.end_col_offset or 0 :].decode()
    needs = "import tfsafe" if suggested.startswith("tfsafe.") else ""
    return Change("\n".join(old), f"{before}{head}{suggested}{after}", needs)


def _places(
    tree: ast.AST, replaced: str, number: int
) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yields what has to go at a line, and what to write before the suggestion."""
    for each in ast.walk(tree):
        if not isinstance(each, ast.expr | ast.AugAssign):
            continue
        if not each.lineno <= number <= (each.end_lineno or each.lineno):
            continue
        if isinstance(each, ast.expr):
            if ast.unparse(each) == replaced:
                yield each, ""
            continue
        # Such as `x /= y`, which is `x = x / y`.
        value = ast.BinOp(each.target, each.op, each.value)
        if ast.unparse(value) == replaced:
            yield each, f"{ast.unparse(each.target)} = "


def _parsed(source: str) -> ast.AST | None:
    """Parses a file, or a line, which may be the head of a block or a part."""
    for candidate in (source, f"{source} pass" if source.endswith(":") else ""):
        try:
            return ast.parse(candidate) if candidate else None
        # Python 3.11 before 3.11.5 may fail when two threads parse (CPython 106905).
        except (SyntaxError, SystemError, ValueError):
            continue
    return None
