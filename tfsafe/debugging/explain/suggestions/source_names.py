"""Reads the user's expressions off a line of source, for suggested code."""

import ast
import linecache
import re
from collections.abc import Iterator, Sequence

# How Python code writes an operation: as an operator or as a function.
_OPERATORS = {
    "Div": ast.Div,
    "Mul": ast.Mult,
    "Pow": ast.Pow,
    "RealDiv": ast.Div,
    "Sub": ast.Sub,
}
_FUNCTIONS = {
    "Acos": {"acos", "arccos"},
    "Acosh": {"acosh", "arccosh"},
    "Asin": {"asin", "arcsin"},
    "Atan2": {"atan2", "arctan2"},
    "Atanh": {"atanh", "arctanh"},
    "Cholesky": {"cholesky"},
    "Cosh": {"cosh"},
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
    "Sub": {"subtract"},
    "Sum": {"reduce_sum", "sum"},
    "Xdivy": {"xdivy"},
    "Xlogy": {"xlogy"},
}

_MADE: dict[type[ast.operator], set[str]] = {
    ast.Add: {"Add", "AddV2"},
    ast.Sub: {"Sub"},
    ast.Mult: {"Mul"},
    ast.Div: {"Div", "RealDiv"},
    ast.Pow: {"Pow", "Square"},
}
# Functions whose argument are logits.
_PROBABILITIES = {"sigmoid", "softmax"}
_FIELD = re.compile(r"\{\w+\}")
# Names for the arguments where the user's own names are not known.
_ROLES = {
    **dict.fromkeys(("Div", "RealDiv", "Xdivy"), ("numerator", "denominator")),
    "Atan2": ("y", "x"),
    "Pow": ("base", "exponent"),
    "Xlogy": ("weight", "x"),
}
# Functions whose slope at 0 is infinite, or not defined, as tfsafe has them.
_SAFE = {
    "norm": "tfsafe.ops.norm",
    "reduce_std": "tfsafe.ops.std",
    "sqrt": "tfsafe.ops.sqrt",
    "std": "tfsafe.ops.std",
}


def filled(
    op_type: str,
    code: str,
    source: str,
    place: tuple[str, int] = ("", 0),
    producers: Sequence[str] = (),
) -> str:
    """Puts the user's expressions into suggested code.

    Args:
      op_type: Type of the operation to look for.
      code: The code, with fields as `suggestions.Fix` has them.
      source: The user's line.
      place: Its file and its number, to look up what it names.
      producers: Types of the operations that made the arguments, if known.

    Returns:
      The code; empty where the line does not show what a field needs.
    """
    tree = parsed(source)
    found = {ast.unparse(call): arguments for call, arguments in uses(op_type, tree)}
    fields: dict[str, str] = {}
    if len(found) > 1:
        found = {
            call: arguments
            for call, arguments in found.items()
            if _is_made_by(arguments, producers)
        }
    # Of two different ones in one line it is not known which one failed.
    if len(found) == 1:
        (arguments,) = found.values()
        fields = {f"{{{i}}}": ast.unparse(each) for i, each in enumerate(arguments)}
        first = arguments[0]
        if isinstance(first, ast.Name):
            first = _assigned(first.id, *place) or first
        if isinstance(first, ast.Call) and first.args and _is_probability(first):
            fields["{inner}"] = ast.unparse(first.args[0])
        if weight := _weight(tree, set(found)):
            fields["{weight}"] = weight
    return (
        _FIELD.sub(lambda field: fields[field[0]], code)
        if (set(_FIELD.findall(code)) <= set(fields))
        else ""
    )


def in_words(op_type: str, code: str) -> str:
    """Puts names that say what they stand for into suggested code."""
    first, second = _ROLES.get(op_type, ("x", "y"))
    names = {"{0}": first, "{1}": second, "{inner}": "logits", "{weight}": "weight"}
    return _FIELD.sub(lambda field: names[field[0]], code)


def safe_below(code: str) -> str:
    """Makes the denominator of a suggested division safe as well."""
    # Where it is 0, the division passes it a gradient of 0, which the slope of a root
    # makes NaN.
    if not code.startswith("tfsafe.ops.divide("):
        return code
    tree = ast.parse(code)
    (division,) = [each for each in tree.body if isinstance(each, ast.Expr)]
    if isinstance(division.value, ast.Call) and len(division.value.args) == 2:
        for each in ast.walk(division.value.args[1]):
            if isinstance(each, ast.Call) and _has_safe_form(each):
                name = ast.unparse(each.func).rpartition(".")[2]
                each.func = ast.parse(_SAFE[name], mode="eval").body
    return ast.unparse(tree)


def _has_safe_form(call: ast.Call) -> bool:
    library, _, name = ast.unparse(call.func).rpartition(".")
    return (
        name in _SAFE
        and library.partition(".")[0] not in {"", "math", "np", "numpy", "tfsafe"}
        and len(call.args) == 1
        and {each.arg for each in call.keywords} <= {"axis", "keepdims"}
    )


def _is_made_by(arguments: Sequence[ast.expr], producers: Sequence[str]) -> bool:
    """Returns whether arguments show some of the operations that made them."""
    shown = [
        (producer in types)
        for argument, producer in zip(arguments, producers, strict=False)
        if (types := _types_of(argument))
    ]
    return bool(shown) and all(shown)


def _types_of(node: ast.expr) -> set[str]:
    """Returns the operations that an expression may be; empty if it is not known."""
    if isinstance(node, ast.BinOp):
        return _MADE.get(type(node.op), set())
    if not isinstance(node, ast.Call):
        return set()
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return {op_type for op_type, names in _FUNCTIONS.items() if name in names}


def is_written(op_type: str, source: str) -> bool:
    """Returns whether a line writes an operation itself."""
    return any(True for _ in uses(op_type, parsed(source)))


def calls(name: str, source: str) -> bool:
    """Returns whether a line calls a function of some name."""
    return re.search(rf"\b{re.escape(name)}\(", source) is not None


def call(name: str, source: str) -> str:
    """Returns the arguments of a call on a line; empty if they are not clear."""
    found = {
        ", ".join(ast.unparse(each) for each in [*node.args, *node.keywords])
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Call)
        and f".{ast.unparse(node.func)}".endswith(f".{name}")
        and node.args
    }
    return found.pop() if len(found) == 1 else ""


def parsed(source: str) -> ast.AST:
    """Returns the syntax tree of source code; an empty one where it has none."""
    try:
        # The head of a block, `if a / b > c:`, needs something under it.
        return ast.parse(f"{source} pass" if source.endswith(":") else source)
    # A line may be a part of a statement. And Python 3.11 before 3.11.5 fails when
    # two threads parse at once (CPython issue 106905).
    except (SyntaxError, SystemError):
        return ast.Module([], [])


def _is_probability(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in _PROBABILITIES


def _assigned(name: str, path: str, line: int) -> ast.expr | None:
    """Returns what was last assigned to a name before a line, in its function."""
    tree = parsed("".join(linecache.getlines(path)))
    around = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef)
        and each.lineno <= line <= (each.end_lineno or 0)
    ]
    scope = max(around, key=lambda each: each.lineno, default=tree)
    values = [
        (each.lineno, each.value)
        for each in ast.walk(scope)
        if isinstance(each, ast.Assign)
        and each.lineno < line
        and [ast.unparse(target) for target in each.targets] == [name]
    ]
    return max(values, key=lambda each: each[0])[1] if values else None


def uses(op_type: str, tree: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yields where an operation is written, with its arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, _OPERATORS.get(op_type, ())):
                yield node, [node.left, node.right]
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _FUNCTIONS.get(op_type, ()):
                yield node, list(node.args)


def _weight(tree: ast.AST, factors: set[str]) -> str:
    """Returns the factor of an expression; empty if it has none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left, right = ast.unparse(node.left), ast.unparse(node.right)
            if right in factors:
                return left
            if left in factors:
                return right
    return ""
