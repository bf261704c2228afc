"""Reads Python: where a line writes an operation, and what its names stand for."""

import ast
import functools
import linecache
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from tfsafe.debugging.tracing.step import OnLine

_Use = TypeVar("_Use")

# How Python code writes an operation: as an operator or as a function.
_OPERATORS = {
    "AddV2": ast.Add,
    "Div": ast.Div,
    "Mul": ast.Mult,
    "Pow": ast.Pow,
    "RealDiv": ast.Div,
    "Sub": ast.Sub,
}
FUNCTIONS = {
    "Acos": {"acos", "arccos"},
    "Acosh": {"acosh", "arccosh"},
    "AddV2": {"add"},
    "Asin": {"asin", "arcsin"},
    "Atan2": {"atan2", "arctan2"},
    "Atanh": {"atanh", "arctanh"},
    "Cholesky": {"cholesky"},
    "Cosh": {"cosh"},
    "Digamma": {"digamma"},
    "DecodeCSV": {"decode_csv"},
    "EuclideanNorm": {"norm", "reduce_euclidean_norm"},
    "Erfinv": {"erfinv"},
    "Exp": {"exp"},
    "Expm1": {"expm1"},
    "Log": {"log"},
    "Log1p": {"log1p"},
    "Lgamma": {"lgamma"},
    "LogSoftmax": {"log_softmax"},
    "Div": {"divide", "truediv", "true_divide"},
    "Inv": {"reciprocal"},
    "Ndtri": {"ndtri"},
    "Pow": {"pow", "power"},
    "RealDiv": {"divide", "truediv", "true_divide"},
    "Reciprocal": {"reciprocal"},
    "Rsqrt": {"rsqrt"},
    "Softmax": {"softmax"},
    "MatrixInverse": {"inv"},
    "MatrixSolve": {"solve"},
    "Max": {"amax", "max", "reduce_max"},
    "Mean": {"mean", "reduce_mean"},
    "Minimum": {"minimum"},
    "Mul": {"multiply"},
    "Sqrt": {"sqrt"},
    "Square": {"square"},
    "StringToNumber": {"to_number"},
    "Sub": {"subtract"},
    "Sum": {"reduce_sum", "sum"},
    "UnsortedSegmentSum": {"unsorted_segment_sum"},
    "Xdivy": {"xdivy"},
    "Xlog1py": {"xlog1py"},
    "Xlogy": {"xlogy"},
}
# Functions that compute the operation, and more: a suggestion may name their arguments,
# but not replace them.
MADE_OF = {**FUNCTIONS, "Log": {"log", "log10", "log2"}}


def names_at(scope: ast.AST, line: int) -> set[str]:
    """Returns the names that a line assigns to."""
    return {
        ast.unparse(target)
        for each in ast.walk(scope)
        if isinstance(each, ast.Assign) and each.lineno == line
        for target in each.targets
    }


def expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Yields an expression and those in it."""
    yield from (each for each in ast.walk(node) if isinstance(each, ast.expr))


def keyword(call: ast.Call, name: str, position: int) -> str:
    """Returns an argument of a call as a further one; empty if it is not given."""
    given = [each.value for each in call.keywords if each.arg == name]
    given += call.args[position : position + 1]
    return f", {name}={ast.unparse(given[0])}" if given else ""


def is_written(op_type: str, source: str) -> bool:
    """Returns whether a line writes an operation itself."""
    return any(True for _ in uses(op_type, parsed(source)))


def calls(name: str, source: str) -> bool:
    """Returns whether a line calls a function of some name."""
    return re.search(rf"\b{re.escape(name)}\(", source) is not None


def call(name: str, source: str) -> tuple[str, str]:
    """Returns the function and the arguments of a call; empty if they are not clear."""
    found = {
        (
            ast.unparse(node.func),
            ", ".join(ast.unparse(each) for each in [*node.args, *node.keywords]),
        )
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Call)
        and f".{ast.unparse(node.func)}".endswith(f".{name}")
        and node.args
    }
    return found.pop() if len(found) == 1 else ("", "")


def parsed(source: str) -> ast.AST:
    """Returns the syntax tree of source code; an empty one where it has none.

    It is that of all who ask, and must not be changed.
    """
    try:
        return _tree(source)
    # A line may be a part of a statement. And Python 3.11 before 3.11.5 fails when
    # two threads parse at once (CPython issue 106905).
    except (SyntaxError, SystemError):
        return ast.Module([], [])


# An explanation asks for the user's file more than a hundred times.
@functools.lru_cache(maxsize=32)
def _tree(source: str) -> ast.AST:
    # The head of a block, `if a / b > c:`, needs something under it.
    tree = ast.parse(f"{source} pass" if source.endswith(":") else source)
    return _Expanded().visit(tree)


def is_whole(source: str) -> bool:
    """Returns whether source code has a syntax tree of its own."""
    return bool(getattr(parsed(source), "body", ()))


class _Expanded(ast.NodeTransformer):
    """Writes `x /= y` as `x = x / y`."""

    # The name that `ast` calls.
    def visit_AugAssign(self, node: ast.AugAssign) -> ast.Assign:
        """Returns the statement as an assignment."""
        value = ast.BinOp(node.target, node.op, node.value)
        ast.copy_location(value, node)
        return ast.copy_location(ast.Assign([node.target], value), node)


def assigned(name: str, path: str, line: int) -> ast.expr | None:
    """Returns what was last assigned to a name before a line, in its function."""
    values = [
        (each.lineno, value)
        for each in ast.walk(scope_of(path, line))
        if isinstance(each, ast.Assign) and each.lineno < line
        for target, value in _pairs(each)
        if ast.unparse(target) == name
    ]
    return max(values, key=lambda each: each[0])[1] if values else None


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields targets with their values, `p` with `f(x)` of `p, q = f(x), f(y)`."""
    target, value = node.targets[0], node.value
    if len(node.targets) > 1:
        return
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


def scope_of(path: str, line: int) -> ast.AST:
    """Returns the function around a line; the file outside of functions."""
    tree = parsed("".join(linecache.getlines(path)))
    around = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef)
        and each.lineno <= line <= (each.end_lineno or 0)
    ]
    return max(around, key=lambda each: each.lineno, default=tree)


def uses(
    op_type: str, tree: ast.AST, functions: Mapping[str, set[str]] = FUNCTIONS
) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yields where an operation is written, with its arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, _OPERATORS.get(op_type, ())):
                yield node, [node.left, node.right]
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in functions.get(op_type, ()):
                yield node, list(node.args)


def nth(
    uses: Sequence[_Use], on_line: OnLine, node_of: Callable[[_Use], ast.expr]
) -> _Use | None:
    """Returns which of the places that write an operation made it, if that is known.

    Args:
      uses: All of one piece of code, which may have run several times as a whole.
      on_line: Which of the operations that this code made it is.
      node_of: Returns the expression of a place.
    """

    def end(use: _Use) -> tuple[int, int, int]:
        node = node_of(use)
        return node.end_lineno or 0, node.end_col_offset or 0, -node.col_offset

    if not on_line.total or on_line.total % len(uses):
        return None
    # Python ends the evaluation of expressions in the order of their ends.
    return sorted(uses, key=end)[on_line.position % len(uses)]
