"""Finds the learning rate of an update that the program writes by hand."""

import ast
import linecache
from collections.abc import Iterator

from tfsafe.debugging.explain.suggestions import syntax
from tfsafe.debugging.explain.training.history import OVERFLOWS
from tfsafe.errors import NumericsError

_END_OF_FILE = 10**9


def note(error: NumericsError) -> None:
    """Adds the learning rate to an error without an optimizer, if it is a number.

    It is read off `w.assign_sub(0.1 * gradient)` or `w.assign(w - rate * gradient)` in
    the file of the operation that failed.
    """
    first = error.findings[0]
    is_known = error.learning_rate is not None or error.optimizers
    # What underflows need not come from large steps.
    if is_known or first.site is None or OVERFLOWS not in first.cause:
        return
    path = first.site.path
    found: dict[float, int] = {}
    for change in _changes(syntax.parsed("".join(linecache.getlines(path)))):
        for rate in _rates(change, path):
            found.setdefault(rate, change.lineno)
    if len(found) == 1:
        ((rate, line),) = found.items()
        error.learning_rate = rate
        error.add_cause(f"The learning rate of the update in line {line} is {rate:g}.")


def _changes(tree: ast.AST) -> Iterator[ast.expr]:
    """Yields what is subtracted from variables."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            name, value = each.func.attr, each.args[0] if each.args else None
            if name == "assign_sub" and value is not None:
                yield value
            elif name == "assign" and isinstance(value, ast.BinOp):
                # Not an update of another variable.
                is_own = ast.unparse(value.left) == ast.unparse(each.func.value)
                if isinstance(value.op, ast.Sub) and is_own:
                    yield value.right


def _rates(change: ast.expr, path: str) -> Iterator[float]:
    """Yields the numbers that a change is a multiple of."""
    while isinstance(change, ast.BinOp) and isinstance(change.op, ast.Div):
        change = change.left
    if not (isinstance(change, ast.BinOp) and isinstance(change.op, ast.Mult)):
        return
    sides = change.left, change.right
    # `0.01 * (slow - fast)` moves an average.
    if any(isinstance(x, ast.BinOp) and isinstance(x.op, ast.Sub) for x in sides):
        return
    for side in sides:
        value: ast.expr | None = side
        if isinstance(side, ast.Name):
            value = syntax.assigned(side.id, path, side.lineno)
            value = value or syntax.assigned(side.id, path, _END_OF_FILE)
        if isinstance(value, ast.Constant) and isinstance(value.value, float):
            yield value.value
