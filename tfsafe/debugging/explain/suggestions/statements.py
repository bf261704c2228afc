"""Finds the line of an operation within a statement of several lines."""

import ast
import dataclasses
import linecache
import re
from collections.abc import Callable, Iterator, Sequence

from tfsafe.debugging.explain.suggestions import syntax
from tfsafe.debugging.tracing.step import OnLine
from tfsafe.errors import Site


def within(
    site: Site | None, op_type: str, on_line: Callable[[], OnLine] = OnLine
) -> tuple[Site | None, str]:
    """Finds where a statement writes an operation.

    AutoGraph knows the first line of a statement only.

    Args:
      site: The line that TensorFlow knows.
      op_type: Type of the operation.
      on_line: Finds which of those on the line it is.

    Returns:
      The line of the operation, and the text to read its arguments from: that of the
      whole statement where this writes the operation once.
    """
    if site is None:
        return None, ""
    statement = _statement(site)
    uses = [] if statement is None else list(syntax.uses(op_type, statement))
    nodes = [node for node, _ in uses]
    here = [node for node in nodes if node.lineno == site.line] or nodes
    if statement is None or not here:
        return site, site.source
    lines = {node.lineno for node in nodes}
    # For AutoGraph all of them are on one line.
    if len(lines) > 1 and not (lines - {site.line}) & (made := on_line()).lines:
        found = syntax.nth(nodes, made, lambda node: node)
        here = here if found is None else [found]
    if len(here) != 1:
        return site, _whole(site.source, statement, here)
    (node,) = here
    # The line that shows the operator, or the denominator.
    line = node.right.lineno if isinstance(node, ast.BinOp) else node.lineno
    text = linecache.getline(site.path, line).strip()
    whole = _whole(text, statement, here)
    source = ast.unparse(statement) if len(nodes) == 1 else whole
    return dataclasses.replace(site, line=line, source=text), source


def only(site: Site, op_type: str) -> Site:
    """Returns the one line of a file that writes an operation; else a line of it."""
    tree = syntax.parsed("".join(linecache.getlines(site.path)))
    lines = {node.lineno for node, _ in syntax.uses(op_type, tree)}
    if len(lines) != 1:
        return site
    (line,) = lines
    name = getattr(syntax.scope_of(site.path, line), "name", "<module>")
    return Site(site.path, line, name, linecache.getline(site.path, line).strip())


def _whole(line: str, statement: ast.stmt, uses: Sequence[ast.expr]) -> str:
    """Returns a line; if it is a part of an expression, the smallest whole one."""
    # The operator before belongs to what is on the line above.
    line = re.sub(r"^[-+] ?", "", line)
    is_on_line = all(each.lineno == each.end_lineno for each in uses)
    if is_on_line and syntax.is_whole(line):
        return line
    around = [
        each
        for each in syntax.expressions(statement)
        if set(uses) <= set(syntax.expressions(each))
    ]
    # What contains the uses is walked from the outside.
    return ast.unparse(around[-1]) if around else line


def _statement(site: Site) -> ast.stmt | None:
    """Returns the statement of several lines around a line, without a block in it."""
    tree = syntax.parsed("".join(linecache.getlines(site.path)))
    around = [each for each in _statements(tree) if _holds(each, site.line)]
    # Of lambdas and nested functions it is not known which one it is.
    return around[0] if len(around) == 1 else None


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            yield node


def _holds(statement: ast.stmt, line: int) -> bool:
    last = statement.end_lineno or statement.lineno
    return statement.lineno <= line <= last and statement.lineno < last
