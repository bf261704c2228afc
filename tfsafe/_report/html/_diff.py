"""Shows a suggestion as a diff of the user's own line."""

import ast
from collections.abc import Iterator


def of_line(source: str, suggested: str) -> tuple[str, str]:
    """Returns the line with the suggested call in place of what it replaces.

    Args:
      source: The user's line.
      suggested: The suggested code: one call.

    Returns:
      The new line, and the import that it needs; both empty where it is not clear what
      is replaced.
    """
    call, tree = _call(suggested), _parsed(source)
    if call is None or tree is None:
        return "", ""
    wanted = list(_operands(call))
    places = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.expr) and list(_operands(each)) == wanted
    ]
    if not wanted or len(places) != 1:
        return "", ""
    place = places[0]
    end = place.end_col_offset or 0
    line = source.encode()
    new = line[: place.col_offset] + suggested.encode() + line[end:]
    needs = "import tfsafe" if suggested.startswith("tfsafe.") else ""
    return new.decode(), needs


def _call(code: str) -> ast.Call | None:
    try:
        tree = ast.parse(code, mode="eval").body
    except SyntaxError:
        return None
    return tree if isinstance(tree, ast.Call) else None


def _parsed(source: str) -> ast.AST | None:
    """Parses a line, which may be the head of a block or the part of a statement."""
    for candidate in (source, f"{source} pass" if source.endswith(":") else ""):
        try:
            return ast.parse(candidate) if candidate else None
        except (SyntaxError, ValueError):
            continue
    return None


def _operands(node: ast.AST) -> Iterator[str]:
    """Yields the expressions that an operation or a call is applied to."""
    if isinstance(node, ast.BinOp):
        yield from map(ast.unparse, (node.left, node.right))
    elif isinstance(node, ast.Call):
        yield from map(ast.unparse, node.args)
        yield from sorted(
            f"{each.arg}={ast.unparse(each.value)}" for each in node.keywords
        )
