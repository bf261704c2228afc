"""Adds the cell magics `%%checked` and `%%stabilize` to IPython: `%load_ext tfsafe`."""

import ast
import contextlib
from typing import TYPE_CHECKING, Any

from tfsafe.debugging import check_numerics
from tfsafe.debugging.checks.options import LEVELS
from tfsafe.rewriting import disable_stabilize, enable_stabilize
from tfsafe.rewriting.targets import switch

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: "InteractiveShell") -> None:
    """Registers the magics."""

    def checked(line: str, cell: str) -> Any:
        """Runs the cell under `tfsafe.check_numerics`.

        Args:
          line: How closely to look: nothing, `watch`, `domain` or `full`.
          cell: The cell.

        Returns:
          The value of the cell's last expression.

        Raises:
          ValueError: If the level is unknown.
        """
        __tracebackhide__ = True
        level: Any = line.strip() or "watch"
        if level not in LEVELS:
            raise ValueError(
                f"`%%checked` takes one of {', '.join(LEVELS)}. Received: {level!r}."
            )
        with check_numerics(checks=level):
            return _run(shell, cell)

    def stabilize(line: str, cell: str) -> Any:
        """Runs the cell with every function and model in its stable form.

        Args:
          line: Not used.
          cell: The cell.

        Returns:
          The value of the cell's last expression.
        """
        __tracebackhide__ = True
        del line
        with contextlib.ExitStack() as stack:
            if not switch.is_enabled():
                enable_stabilize()
                stack.callback(disable_stabilize)
            return _run(shell, cell)

    shell.register_magic_function(checked, "cell")
    shell.register_magic_function(stabilize, "cell")


def _run(shell: "InteractiveShell", cell: str) -> Any:
    """Runs the body of a cell, and returns the value of its last expression."""
    __tracebackhide__ = True
    lines = cell.splitlines(keepends=True)
    blank = next((i for i, line in enumerate(lines) if line.strip()), 0)
    # The transformation drops empty lines, but lines keep their numbers in the cell,
    # whose first line is the magic.
    source = "\n" * (1 + blank) + shell.transform_cell("".join(lines[blank:]))
    # `shell.execution_count` may be that of the next cell already.
    name = shell.compile.cache(source, len(shell.user_ns["In"]) - 1, source)
    tree = shell.compile.ast_parse(source, name)
    is_value = bool(tree.body) and isinstance(tree.body[-1], ast.Expr)
    last = tree.body.pop() if is_value else None
    exec(compile(tree, name, "exec"), shell.user_ns)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), name, "eval"), shell.user_ns)
