"""Shows a suggestion as a diff of the user's own line."""

import ast


def of_line(source: str, suggested: str, replaced: str) -> tuple[str, str]:
    """Returns the line with the suggested code in place of what it replaces.

    Args:
      source: The user's line.
      suggested: The suggested code: an expression.
      replaced: The expression of the line that it takes the place of.

    Returns:
      The new line, and the import that it needs; both empty where the expression is
      not once in the line.
    """
    tree = _parsed(source) if replaced else None
    needs = "import tfsafe" if suggested.startswith("tfsafe.") else ""
    for each in ast.walk(tree) if tree else ():
        if isinstance(each, ast.AugAssign):
            # Such as `x /= y`, which is `x = x / y`.
            value = ast.BinOp(each.target, each.op, each.value)
            if ast.unparse(value) == replaced:
                return f"{ast.unparse(each.target)} = {suggested}", needs
    places = [
        each
        for each in (ast.walk(tree) if tree else ())
        if isinstance(each, ast.expr) and ast.unparse(each) == replaced
    ]
    if len(places) != 1:
        return "", ""
    place = places[0]
    end = place.end_col_offset or 0
    line = source.encode()
    new = line[: place.col_offset] + suggested.encode() + line[end:]
    return new.decode(), needs


def _parsed(source: str) -> ast.AST | None:
    """Parses a line, which may be the head of a block or the part of a statement."""
    for candidate in (source, f"{source} pass" if source.endswith(":") else ""):
        try:
            return ast.parse(candidate) if candidate else None
        except (SyntaxError, ValueError):
            continue
    return None
