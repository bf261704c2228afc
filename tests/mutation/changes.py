"""Finds what can be changed in a module: numbers, signs, comparisons, masks."""

import ast
import collections
import copy
import dataclasses
from collections.abc import Iterator

_BINARY = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_CALLS = {
    "maximum": "minimum",
    "minimum": "maximum",
    "reduce_max": "reduce_min",
    "reduce_min": "reduce_max",
    "reduce_all": "reduce_any",
    "reduce_any": "reduce_all",
    "logical_and": "logical_or",
    "logical_or": "logical_and",
    "is_finite": "is_inf",
    "is_nan": "is_inf",
    "zeros_like": "ones_like",
    "ones_like": "zeros_like",
}
# Their contents are names and text, not decisions, as is the `strict=` of a `zip`.
_SKIPPED = (ast.JoinedStr, ast.arg, ast.Import, ast.ImportFrom)


@dataclasses.dataclass(frozen=True)
class Change:
    """One change of one module.

    Attributes:
      path: Of the module.
      line: Where the change is.
      before: The expression that is there.
      after: What replaces it.
      start: Its first byte in the file.
      end: The byte behind its last.
      statement: The first line and the last of what is run when the change is run.
      text: The line, without its indentation.
      number: Which of the equal changes of equal lines it is, from 1.
    """

    path: str
    line: int
    before: str
    after: str
    start: int
    end: int
    statement: tuple[int, int]
    text: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words}"

    @property
    def words(self) -> str:
        """Says what is changed, and after the first which of several it is."""
        which = f"  ({self.number})" if self.number > 1 else ""
        return f"{self.before}  ->  {self.after}{which}"

    def apply(self, source: bytes) -> bytes:
        """Returns the changed module; no other line moves."""
        breaks = source[self.start : self.end].count(b"\n")
        after = f"({self.after}" + "\n" * breaks + ")"
        return source[: self.start] + after.encode() + source[self.end :]


def changes(path: str, source: str) -> list[Change]:
    """Returns every change that can be made in a module."""
    lines = source.splitlines(keepends=True)
    lengths = [0]
    for line in lines:
        lengths.append(lengths[-1] + len(line.encode()))
    found = []
    counts: collections.Counter = collections.Counter()
    for node, statement in _decisions(ast.parse(source)):
        for changed in _changed(node):
            what = ast.unparse(node), ast.unparse(changed)
            text = lines[node.lineno - 1].strip()
            counts[text, what] += 1
            found.append(
                Change(
                    path,
                    node.lineno,
                    *what,
                    lengths[node.lineno - 1] + node.col_offset,
                    lengths[node.end_lineno - 1] + node.end_col_offset,
                    _lines(statement),
                    text,
                    counts[text, what],
                )
            )
    return found


def _lines(statement: ast.stmt) -> tuple[int, int]:
    """Returns the first and last line of a statement, without those inside it."""
    inside = [
        each.lineno
        for each in ast.walk(statement)
        if isinstance(each, ast.stmt) and each is not statement
    ]
    return statement.lineno, min([*inside, statement.end_lineno + 1]) - 1


def _decisions(
    node: ast.AST, statement: ast.stmt | None = None
) -> Iterator[tuple[ast.expr, ast.stmt]]:
    """Yields the expressions inside functions, each with its statement.

    From the outermost to the innermost. Module and classes are not inside a function.
    """
    for child in ast.iter_child_nodes(node):
        is_strict = isinstance(child, ast.keyword) and child.arg == "strict"
        # Python evaluates no annotation in a function.
        is_annotation = isinstance(node, ast.AnnAssign) and child is node.annotation
        if isinstance(child, _SKIPPED) or is_strict or is_annotation:
            continue
        if isinstance(child, ast.FunctionDef):
            for each in child.body:
                yield from _decisions(each, each)
        elif isinstance(node, (ast.Module, ast.ClassDef)):
            if isinstance(child, ast.ClassDef):
                yield from _decisions(child)
        else:
            if isinstance(child, ast.expr):
                yield child, statement
            inner = child if isinstance(child, ast.stmt) else statement
            yield from _decisions(child, inner)


def _changed(node: ast.expr) -> Iterator[ast.expr]:
    # Not a deep copy: IPython makes nodes of other trees attributes of shared ones.
    new = copy.copy(node)
    if isinstance(new, ast.Constant):
        if type(new.value) in (int, float):
            new.value = new.value * 2 if new.value not in (0, 1) else 1 - new.value
            yield new
        elif isinstance(new.value, bool):
            new.value = not new.value
            yield new
    elif isinstance(new, ast.BinOp) and type(new.op) in _BINARY:
        new.op = _BINARY[type(new.op)]()
        yield new
    elif isinstance(new, ast.Compare) and type(new.ops[0]) in _COMPARISONS:
        new.ops = [_COMPARISONS[type(new.ops[0])](), *new.ops[1:]]
        yield new
    elif isinstance(new, ast.BoolOp):
        new.op = ast.And() if isinstance(new.op, ast.Or) else ast.Or()
        yield new
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, (ast.USub, ast.Not)):
        # The axes -1 and 1 of a matrix are the same; the number itself is changed too.
        if not isinstance(new.operand, ast.Constant):
            yield new.operand
    elif isinstance(new, ast.Call) and isinstance(new.func, ast.Attribute):
        new.func = copy.copy(new.func)
        yield from _changed_call(new, new.func)


def _changed_call(new: ast.Call, function: ast.Attribute) -> Iterator[ast.expr]:
    if function.attr == "where" and len(new.args) == 3:
        new.args = [new.args[0], *reversed(new.args[1:])]
        yield new
    elif function.attr in _CALLS:
        function.attr = _CALLS[function.attr]
        yield new
