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
# What is followed by a sum in a formula, and the axis of that if it is not seen.
_OF_SUMS = {"Exp", "Sub"}
_LAST_AXIS = ", axis=-1"
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
    found = _one(op_type, tree, producers)
    fields: dict[str, str] = {}
    if found is not None:
        node, arguments = found
        fields = {f"{{{i}}}": ast.unparse(each) for i, each in enumerate(arguments)}
        first = arguments[0]
        if isinstance(first, ast.Name):
            first = _assigned(first.id, *place) or first
        summed = node
        if isinstance(first, ast.Call) and first.args and _is_probability(first):
            fields["{inner}"] = ast.unparse(first.args[0])
            summed = first
        if weight := _weight(tree, {ast.unparse(node)}):
            fields["{weight}"] = weight
        if op_type in _OF_SUMS:
            fields |= _reduced(node, tree, *place)
        elif isinstance(summed, ast.Call):
            fields["{axis}"] = _keyword(summed, "axis", 1)
    return (
        _FIELD.sub(lambda field: fields[field[0]], code)
        if (set(_FIELD.findall(code)) <= set(fields))
        else ""
    )


def replaced(
    op_type: str, code: str, source: str, producers: Sequence[str], outermost: str
) -> str:
    """Returns the expression of a line that suggested code takes the place of.

    Args:
      op_type: Type of the operation to look for.
      code: The code, with its fields.
      source: The user's line.
      producers: Types of the operations that made the arguments, if known.
      outermost: Type of the last operation that is replaced with it; empty for none.

    Returns:
      The expression; empty where the line does not have all of it.
    """
    tree = parsed(source)
    found = _one(op_type, tree, producers)
    if found is None:
        return ""
    outer = "Mul" if "{weight}" in code else outermost
    around = [
        node
        for node, _ in uses(outer or op_type, tree)
        if ast.unparse(found[0]) in map(ast.unparse, _expressions(node))
    ]
    # The innermost one.
    return min(map(ast.unparse, around), key=len, default="")


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    return (each for each in ast.walk(node) if isinstance(each, ast.expr))


def _one(
    op_type: str, tree: ast.AST, producers: Sequence[str]
) -> tuple[ast.expr, list[ast.expr]] | None:
    """Returns where an operation is written, with its arguments, if that is clear."""
    found = {ast.unparse(node): (node, each) for node, each in uses(op_type, tree)}
    if len(found) > 1:
        found = {
            text: use for text, use in found.items() if _is_made_by(use[1], producers)
        }
    # Of two different ones in one line it is not known which one failed.
    return next(iter(found.values())) if len(found) == 1 else None


def _reduced(
    node: ast.expr, tree: ast.AST, path: str = "", line: int = 0
) -> dict[str, str]:
    """Returns the axis of the sum over what contains an expression, as written."""
    text = ast.unparse(node)
    scope = _scope(path, line) if path else tree
    names = {
        ast.unparse(target)
        for each in ast.walk(scope)
        if isinstance(each, ast.Assign) and each.lineno == line
        for target in each.targets
    }
    for each, (first, *_) in uses("Sum", scope):
        inside = {ast.unparse(part) for part in _expressions(first)}
        if isinstance(each, ast.Call) and (text in inside or names & inside):
            return {
                "{axis}": _keyword(each, "axis", 1) or ", axis=None",
                "{keepdims}": _keyword(each, "keepdims", 2),
            }
    return {"{axis}": _LAST_AXIS, "{keepdims}": ""}


def _keyword(call: ast.Call, name: str, position: int) -> str:
    """Returns an argument of a call as a further one; empty if it is not given."""
    given = [each.value for each in call.keywords if each.arg == name]
    given += call.args[position : position + 1]
    return f", {name}={ast.unparse(given[0])}" if given else ""


def in_words(op_type: str, code: str) -> str:
    """Puts names that say what they stand for into suggested code."""
    first, second = _ROLES.get(op_type, ("x", "y"))
    names = {"{0}": first, "{1}": second, "{inner}": "logits", "{weight}": "weight"}
    names |= {"{axis}": _LAST_AXIS if op_type in _OF_SUMS else "", "{keepdims}": ""}
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
    types = {op_type for op_type, names in _FUNCTIONS.items() if name in names}
    # Such as `tf.nn.relu`, of type `Relu`.
    return types or {name.title().replace("_", "")}


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
    values = [
        (each.lineno, each.value)
        for each in ast.walk(_scope(path, line))
        if isinstance(each, ast.Assign)
        and each.lineno < line
        and [ast.unparse(target) for target in each.targets] == [name]
    ]
    return max(values, key=lambda each: each[0])[1] if values else None


def _scope(path: str, line: int) -> ast.AST:
    """Returns the function around a line; the file outside of functions."""
    tree = parsed("".join(linecache.getlines(path)))
    around = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef)
        and each.lineno <= line <= (each.end_lineno or 0)
    ]
    return max(around, key=lambda each: each.lineno, default=tree)


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
