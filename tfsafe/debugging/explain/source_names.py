"""The user's own names, read off a line of source, for the line to write instead."""

import ast
import re
from collections.abc import Iterator

# How the operations are written in Python: as an operator or as a function.
_OPERATORS = {"Div": ast.Div, "Mul": ast.Mult, "Pow": ast.Pow, "RealDiv": ast.Div}
_FUNCTIONS = {
    "Acos": {"acos", "arccos"},
    "Acosh": {"acosh", "arccosh"},
    "Asin": {"asin", "arcsin"},
    "Atan2": {"atan2", "arctan2"},
    "Atanh": {"atanh", "arctanh"},
    "Cholesky": {"cholesky"},
    "EuclideanNorm": {"norm", "reduce_euclidean_norm"},
    "Exp": {"exp"},
    "Log": {"log"},
    "LogSoftmax": {"log_softmax"},
    "Div": {"divide", "truediv", "true_divide"},
    "Inv": {"reciprocal"},
    "Pow": {"pow", "power"},
    "RealDiv": {"divide", "truediv", "true_divide"},
    "Reciprocal": {"reciprocal"},
    "Rsqrt": {"rsqrt"},
    "Softmax": {"softmax"},
    "Mean": {"mean", "reduce_mean"},
    "Mul": {"multiply"},
    "Sqrt": {"sqrt"},
    "Square": {"square"},
    "Sum": {"reduce_sum", "sum"},
    "Xdivy": {"xdivy"},
    "Xlogy": {"xlogy"},
}


def filled(op_type: str, code: str, source: str) -> str:
    """Puts the user's expressions into a line to code, where they can be read off.

    Args:
      op_type: Type of the operation to look for.
      code: The line, with fields as `suggestions.Fix` has them.
      source: The user's line.

    Returns:
      The line, with plain names for what cannot be read off.
    """
    if "{" not in code:
        return code
    tree = _parsed(source)
    found = {ast.unparse(call): arguments for call, arguments in _uses(op_type, tree)}
    # Two different ones in one line: which of them it was is not known.
    (arguments,) = found.values() if len(found) == 1 else [_UNKNOWN]
    texts = [ast.unparse(each) for each in arguments]
    texts += ["x", "y"][len(texts) :]
    first = arguments[0]
    inner = first.args[0] if isinstance(first, ast.Call) and first.args else None
    return code.format(
        *texts,
        inner=ast.unparse(inner) if inner else "logits",
        weight=_weight(tree, set(found)) if len(found) == 1 else "weight",
    )


def is_written(op_type: str, source: str) -> bool:
    """Returns whether an operation stands on a line itself, not within a function."""
    return any(True for _ in _uses(op_type, _parsed(source)))


def calls(name: str, source: str) -> bool:
    """Returns whether a line calls a function of some name."""
    return re.search(rf"\b{re.escape(name)}\(", source) is not None


def call(name: str, source: str) -> str:
    """Returns the arguments of the call of a function on a line, as text."""
    found = {
        ", ".join(ast.unparse(each) for each in [*node.args, *node.keywords])
        for node in ast.walk(_parsed(source))
        if isinstance(node, ast.Call)
        and f".{ast.unparse(node.func)}".endswith(f".{name}")
        and node.args
    }
    return found.pop() if len(found) == 1 else "x, axis=-1"


_UNKNOWN: list[ast.expr] = [ast.Name("x"), ast.Name("y")]


def _parsed(source: str) -> ast.AST:
    try:
        # The head of a block, `if a / b > c:`, needs something under it.
        return ast.parse(f"{source} pass" if source.endswith(":") else source)
    # A line may be a part of a statement. And Python 3.11 before 3.11.5 fails when
    # two threads parse at once (CPython issue 106905).
    except (SyntaxError, SystemError):
        return ast.Module([], [])


def _uses(op_type: str, tree: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yields where an operation is written, with its arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, _OPERATORS.get(op_type, ast.MatMult)):
                yield node, [node.left, node.right]
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _FUNCTIONS.get(op_type, ()):
                yield node, list(node.args)


def _weight(tree: ast.AST, factors: set[str]) -> str:
    """Returns what an expression is multiplied by."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left, right = ast.unparse(node.left), ast.unparse(node.right)
            if right in factors:
                return left
            if left in factors:
                return right
    return "weight"
