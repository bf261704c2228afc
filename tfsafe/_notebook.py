"""Adds the cell magics `%%checked` and `%%stabilize` to IPython: `%load_ext tfsafe`."""

import ast
import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfsafe.debugging.checks.options import LEVELS, options_of
from tfsafe.debugging.entry.switch import block
from tfsafe.debugging.values import leaves, name_in
from tfsafe.rewriting import disable_stabilize, enable_stabilize, stabilize
from tfsafe.rewriting.targets import switch

_LAST = "the value of the cell"
_NOTHING = (
    "%%stabilize: the cell called no tf.function and no model, so nothing was "
    "rewritten. For a Python function f of tensors, write %%stabilize f.\n"
)

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: "InteractiveShell") -> None:
    """Registers the magics."""
    # Loaded only in a notebook.
    from IPython.core.magic import output_can_be_silenced

    @output_can_be_silenced
    def checked(line: str, cell: str) -> Any:
        """Runs the cell under `tfsafe.check_numerics`, as if it were one function.

        Its results are checked too: the tensors that it assigns, the value of its last
        expression, and what its operations compute and no operation uses, such as what
        it prints.

        Args:
          line: How closely to look: nothing, `watch`, `domain` or `full`.
          cell: The cell.

        Returns:
          The value of the cell's last expression.

        Raises:
          NumericsError: If one of these is not finite.
          ValueError: If the level is unknown.
        """
        __tracebackhide__ = True
        level: Any = line.strip() or "watch"
        if level not in LEVELS:
            raise ValueError(
                f"`%%checked` takes one of {', '.join(LEVELS)}. Received: {level!r}."
            )
        before = dict(shell.user_ns)
        names = shell.user_ns
        with contextlib.ExitStack() as stack:
            session = stack.enter_context(block(options_of(level, False, ())))
            stack.enter_context(session.collecting(lambda each: name_in(names, each)))
            value = _run(shell, cell)
            session.check_results([*_assigned(names, before), *leaves(value, _LAST)])
            return value

    @output_can_be_silenced
    def stable(line: str, cell: str) -> Any:
        """Runs the cell with every `tf.function` and model in its stable form.

        A Python function may do more than compute, so it is rewritten where it is
        named: `%%stabilize f g`.

        Args:
          line: Names of Python functions of tensors, of this cell or an earlier one.
          cell: The cell.

        Returns:
          The value of the cell's last expression.

        Raises:
          ValueError: If no function has one of the names.
        """
        __tracebackhide__ = True
        names = line.replace(",", " ").split()
        for name in names:
            is_here = re.search(rf"\bdef {re.escape(name)}\(", cell) is not None
            if not (is_here or callable(shell.user_ns.get(name))):
                raise ValueError(
                    "`%%stabilize` takes nothing, or names of functions of this cell "
                    f"or an earlier one. Received: {name!r}."
                )
        with contextlib.ExitStack() as stack:
            if not switch.is_enabled():
                enable_stabilize()
                stack.callback(disable_stabilize)
                if not names:
                    stack.callback(_say_if_nothing)
            stable_ones = stack.enter_context(_stable_in(shell.user_ns, names))
            return _run(shell, cell, stable_ones)

    shell.register_magic_function(checked, "cell")
    shell.register_magic_function(stable, "cell", "stabilize")


def _say_if_nothing() -> None:
    if not switch.has_rewritten():
        sys.stdout.write(_NOTHING)


def _assigned(
    names: Mapping[str, Any], before: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yields the tensors that a cell assigned to names, and in structures of these."""
    for name, value in names.items():
        if not name.startswith("_") and value is not before.get(name, names):
            yield from ((f"`{path}`", leaf) for path, leaf in leaves(value, name))


@contextlib.contextmanager
def _stable_in(
    namespace: dict[str, Any], names: Sequence[str]
) -> Iterator[Callable[[], None]]:
    """Puts stable forms in place of named functions, for the time of a cell.

    Yields:
      A function that does so for those that were defined since.
    """
    plain: dict[str, tuple[Any, Any]] = {}

    def replace() -> None:
        for name in names:
            found = namespace.get(name)
            if found is not None and found is not plain.get(name, ("", ""))[1]:
                namespace[name] = stabilize(found)
                plain[name] = found, namespace[name]

    replace()
    try:
        yield replace
    finally:
        for name, (found, stable) in plain.items():
            if namespace.get(name) is stable:
                namespace[name] = found


def _run(
    shell: "InteractiveShell", cell: str, after: Callable[[], None] = lambda: None
) -> Any:
    """Runs the body of a cell, and `after` behind each of its statements.

    Returns:
      The value of its last expression.
    """
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
    # That of the shell keeps `from __future__ import` for what follows.
    compiled = shell.compile
    for statement in tree.body:
        exec(compiled(ast.Module([statement], []), name, "exec"), shell.user_ns)
        after()
    if last is None:
        return None
    return eval(compiled(ast.Expression(last.value), name, "eval"), shell.user_ns)
