"""Reads the user's expressions off a line of source, for suggested code."""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfsafe.debugging.explain.suggestions import formulas_by_hand as formulas, syntax
from tfsafe.debugging.tracing.step import OnLine

_MADE: dict[type[ast.operator], set[str]] = {
    ast.Add: {"Add", "AddV2"},
    ast.Sub: {"Sub"},
    ast.Mult: {"Mul"},
    ast.Div: {"Div", "RealDiv"},
    ast.Pow: {"Pow", "Square"},
}
# Functions whose argument are logits.
_WITH_INNER = {"det", "sigmoid", "softmax"}
# What is followed by a sum in a formula.
_OF_SUMS = {"Exp", "Sub"}
_FIELD = re.compile(r"\{\w+\}")
_TWICE_NEGATIVE = re.compile(r"-\(-([\w.]+)\)")
# Names for the arguments where the user's own names are not known.
_ROLES = {
    **dict.fromkeys(("Div", "RealDiv", "Xdivy"), ("numerator", "denominator")),
    "Atan2": ("y", "x"),
    "Pow": ("base", "exponent"),
    "Xlog1py": ("weight", "x"),
    "Xlogy": ("weight", "x"),
}
# Functions whose slope at 0 is infinite, or not defined, as tfsafe has them.
_SAFE = {
    "norm": "tfsafe.ops.norm",
    "reduce_std": "tfsafe.ops.std",
    "sqrt": "tfsafe.ops.sqrt",
    "std": "tfsafe.ops.std",
}


class Seen(NamedTuple):
    """What is known of the line of an operation.

    Attributes:
      source: The line.
      place: Its file and its number, to look up what it names.
      producers: Types of the operations that made the arguments, if known.
      on_line: Finds which of those on the line it is.
      functions: How Python code writes operations, see `syntax`.
    """

    source: str
    place: tuple[str, int] = ("", 0)
    producers: Sequence[str] = ()
    on_line: Callable[[], OnLine] = OnLine
    functions: Mapping[str, set[str]] = syntax.FUNCTIONS


def filled(op_type: str, code: str, seen: Seen) -> str:
    """Puts the user's expressions into suggested code.

    Args:
      op_type: Type of the operation to look for.
      code: The code, with fields as `suggestions.Fix` has them.
      seen: The user's line.

    Returns:
      The code; empty where the line does not show what a field needs.
    """
    tree, place = syntax.parsed(seen.source), seen.place
    found = _one(op_type, tree, seen)
    fields: dict[str, str] = {}
    if found is not None:
        node, arguments = found
        fields = {f"{{{i}}}": ast.unparse(each) for i, each in enumerate(arguments)}
        first = formulas.value_of(arguments[0], place)
        rest = [*arguments[1:], *getattr(node, "keywords", ())]
        fields["{rest}"] = "".join(f", {ast.unparse(each)}" for each in rest)
        summed = node
        if isinstance(first, ast.Call) and first.args and _has_inner(first):
            fields["{inner}"] = ast.unparse(first.args[0])
            summed = first
        if weight := formulas.factor_of(tree, {ast.unparse(node)}):
            fields["{weight}"] = weight
            if weight == ast.unparse(arguments[0]):
                fields["{own_weight}"] = weight
        if op_type == "Log":
            fields |= formulas.expanded(node, tree)
        fields |= formulas.complement(first, place)
        if op_type == "RealDiv":
            fields |= formulas.bound(arguments, place)
        if op_type in _OF_SUMS:
            fields |= formulas.reduced(node, tree, *place) | formulas.segments(
                node, tree, *place
            )
            fields |= formulas.added(node, first, tree, *place)
        elif isinstance(summed, ast.Call):
            fields["{axis}"] = syntax.keyword(summed, "axis", 1)
        fields |= formulas.exponents(op_type, arguments, place)
    if not set(_FIELD.findall(code)) <= set(fields):
        return ""
    return _TWICE_NEGATIVE.sub(r"\1", _FIELD.sub(lambda field: fields[field[0]], code))


def replaced(op_type: str, code: str, seen: Seen, outermost: str) -> tuple[str, int]:
    """Returns the expression that suggested code takes the place of.

    Args:
      op_type: Type of the operation to look for.
      code: The code, with its fields.
      seen: The user's line.
      outermost: Type of the last operation that is replaced with it; empty for none.

    Returns:
      The expression, empty where no line has all of it, and the number of its line if
      that is a later one than the user's; else 0.
    """
    tree, place = syntax.parsed(seen.source), seen.place
    found = _one(op_type, tree, seen)
    if found is None:
        return "", 0
    outer = "Mul" if "{weight}" in code else outermost
    names = {ast.unparse(found[0])}
    around = _around(outer or op_type, tree, names)
    if around or not outer:
        return min(around, key=len, default=""), 0
    scope, line = syntax.scope_of(*place), place[1]
    later = [
        (each, node.lineno)
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign | ast.Return) and node.lineno > line
        for each in _around(outer, node, syntax.names_at(scope, line))
    ]
    return min(later, key=lambda each: (each[1], len(each[0])), default=("", 0))


def _around(op_type: str, tree: ast.AST, texts: set[str]) -> list[str]:
    """Returns where an operation is written with one of some expressions inside."""
    return [
        ast.unparse(node)
        for node, _ in syntax.uses(op_type, tree)
        if texts & set(map(ast.unparse, syntax.expressions(node)))
    ]


def _one(
    op_type: str, tree: ast.AST, seen: Seen
) -> tuple[ast.expr, list[ast.expr]] | None:
    """Returns where an operation is written, with its arguments, if that is clear."""
    uses = list(syntax.uses(op_type, tree, seen.functions))
    found = {ast.unparse(node): (node, each) for node, each in uses}
    if len(found) > 1 and (text := seen.on_line().text):
        here = {
            ast.unparse(each)
            for each in ast.iter_child_nodes(syntax.parsed(f"({text})"))
        }
        found = {text: use for text, use in found.items() if text in here} or found
    if len(found) > 1:
        found = {
            text: use
            for text, use in found.items()
            if _is_made_by(use[1], seen.producers, seen.place)
        }
    if len(found) != 1 and len(uses) > 1:
        use = syntax.nth(uses, seen.on_line(), lambda use: use[0])
        if use is not None and (not found or ast.unparse(use[0]) in found):
            return use
    # Of two different ones in one line it is not known which one failed.
    return next(iter(found.values())) if len(found) == 1 else None


def in_words(op_type: str, code: str) -> str:
    """Puts names that say what they stand for into suggested code."""
    first, second = _ROLES.get(op_type, ("x", "y"))
    names = {"{0}": first, "{1}": second, "{inner}": "logits", "{weight}": "weight"}
    names |= {
        "{axis}": formulas.LAST_AXIS if op_type in _OF_SUMS else "",
        "{keepdims}": "",
    }
    names["{rest}"] = ""
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


def of_ragged(code: str) -> str:
    """Applies a function of tfsafe to the values of ragged arguments.

    Returns:
      The code; empty where it is not clear that all arguments have the same rows.
    """
    tree = syntax.parsed(code)
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    if len(calls) != 1 or len(set(map(ast.unparse, calls[0].args))) != 1:
        return ""
    name, arguments = ast.unparse(calls[0].func), ast.unparse(calls[0])
    return f"tf.ragged.map_flat_values({name}, {arguments[len(name) + 1 :]}"


def _has_safe_form(call: ast.Call) -> bool:
    library, _, name = ast.unparse(call.func).rpartition(".")
    return (
        name in _SAFE
        and library.partition(".")[0] not in {"", "math", "np", "numpy", "tfsafe"}
        and len(call.args) == 1
        and {each.arg for each in call.keywords} <= {"axis", "keepdims"}
    )


def _is_made_by(
    arguments: Sequence[ast.expr], producers: Sequence[str], place: tuple[str, int]
) -> bool:
    """Returns whether arguments show some of the operations that made them."""
    shown = [
        (producer in types)
        for argument, producer in zip(arguments, producers, strict=False)
        if (types := _types_of(argument, place))
    ]
    return bool(shown) and all(shown)


def _types_of(node: ast.expr, place: tuple[str, int]) -> set[str]:
    """Returns the operations that an expression may be; empty if it is not known."""
    node = formulas.value_of(node, place)
    if isinstance(node, ast.BinOp):
        return _MADE.get(type(node.op), set())
    if not isinstance(node, ast.Call):
        return set()
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    types = {op_type for op_type, names in syntax.FUNCTIONS.items() if name in names}
    # Such as `tf.nn.relu`, of type `Relu`.
    return types or {name.title().replace("_", "")}


def _has_inner(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in _WITH_INNER
