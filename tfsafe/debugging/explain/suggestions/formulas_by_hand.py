"""Reads formulas off source code: a softmax by hand, what a sum is over, a weight."""

import ast
from collections.abc import Iterator, Sequence

from tfsafe.debugging.explain.suggestions import syntax

# The axis of a sum that is not seen.
LAST_AXIS = ", axis=-1"


def exponents(
    op_type: str, arguments: Sequence[ast.expr], place: tuple[str, int]
) -> dict[str, str]:
    """Returns `x` of `exp(x) / sum(exp(x))` or `log(sum(exp(x)))`, and of the sum.

    Of the logarithm of a quotient, it has another name.
    """
    last = value_of(arguments[-1], place)
    for each, parts in syntax.uses("RealDiv", last) if op_type == "Log" else ():
        if each is last and (found := exponents("RealDiv", parts, place)):
            return {"{of_softmax}": found["{exponent}"], "{axis}": found["{axis}"]}
    sums = [each for each, _ in syntax.uses("Sum", last) if each is last]
    if op_type not in {"Log", "RealDiv"} or not sums:
        return {}
    (call,) = sums
    if not isinstance(call, ast.Call):
        return {}
    summed = value_of(call.args[0], place)
    if op_type == "RealDiv":
        # `e` may have been masked since; then its sum is not that of exponentials.
        above = value_of(arguments[0], place)
        if ast.unparse(above) != ast.unparse(summed):
            return {}
    for each, (x, *_) in syntax.uses("Exp", summed):
        if each is summed:
            return {"{exponent}": ast.unparse(_unshifted(x, place))} | _of_sum(call)
    return {}


def _unshifted(x: ast.expr, place: tuple[str, int]) -> ast.expr:
    """Returns `y` of `y - max(y)`."""
    for each, (y, shift) in syntax.uses("Sub", x):
        highest = value_of(shift, place)
        for maximum, (first, *_) in syntax.uses("Max", highest):
            is_of_all = each is x and maximum is highest
            if is_of_all and ast.unparse(first) == ast.unparse(y):
                return y
    return x


def _of_sum(call: ast.Call) -> dict[str, str]:
    return {
        "{axis}": syntax.keyword(call, "axis", 1) or ", axis=None",
        "{keepdims}": syntax.keyword(call, "keepdims", 2),
    }


def reduced(
    node: ast.expr, tree: ast.AST, path: str = "", line: int = 0
) -> dict[str, str]:
    """Returns the axis of the sum over what contains an expression, as written."""
    for each in _of_values("Sum", node, tree, path, line):
        return _of_sum(each)
    return {"{axis}": LAST_AXIS, "{keepdims}": ""}


def expanded(node: ast.expr, tree: ast.AST) -> dict[str, str]:
    """Returns `xlogy(w, p) - w * y` of `w * (log(p) - y)`."""
    x = ast.unparse(node.args[0]) if isinstance(node, ast.Call) else ""
    for difference, sides in syntax.uses("Sub", tree):
        texts = [*map(ast.unparse, sides)]
        weight = factor_of(tree, {ast.unparse(difference)})
        if weight and ast.unparse(node) in texts:
            terms = [
                f"tfsafe.ops.xlogy({weight}, {x})"
                if text == ast.unparse(node)
                else f"{weight} * {_in_brackets(side)}"
                for text, side in zip(texts, sides, strict=True)
            ]
            return {"{expanded}": " - ".join(terms)}
    return {}


def _in_brackets(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, ast.BinOp) else text


def segments(
    node: ast.expr, tree: ast.AST, path: str = "", line: int = 0
) -> dict[str, str]:
    """Returns the segments that an expression is summed over, and their number."""
    for each in _of_values("UnsortedSegmentSum", node, tree, path, line):
        names = ("{segments}", "segment_ids", 1), ("{count}", "num_segments", 2)
        found = {field: syntax.keyword(each, name, at) for field, name, at in names}
        return {field: text.partition("=")[2] for field, text in found.items() if text}
    return {}


def added(
    node: ast.expr, argument: ast.expr, tree: ast.AST, path: str = "", line: int = 0
) -> dict[str, str]:
    """Returns `x` of `1 + exp(x)`, or the logarithm of what else is added to it."""
    scope = syntax.scope_of(path, line) if path else tree
    names = {ast.unparse(node), *syntax.names_at(scope, line)}
    others = {
        ast.unparse(terms[1 - i]): terms[1 - i]
        for _, terms in syntax.uses("AddV2", scope)
        for i, each in enumerate(terms[:2])
        if ast.unparse(each) in names
    }
    if len(others) != 1:
        return {}
    ((text, other),) = others.items()
    if isinstance(other, ast.Constant):
        if other.value == 1:
            return {"{beside_one}": ast.unparse(argument)}
        return {"{log_added}": f"math.log({text})"}
    exponents = [each for _, (each, *_) in syntax.uses("Exp", other)]
    if not exponents:
        return {"{log_added}": f"tf.math.log({text})"}
    # Not of a sum that has another exponential in it.
    is_one = isinstance(other, ast.Call) and exponents == other.args
    return {"{log_added}": ast.unparse(exponents[0])} if is_one else {}


def _of_values(
    op_type: str, node: ast.expr, tree: ast.AST, path: str, line: int
) -> Iterator[ast.Call]:
    """Yields the calls whose first argument has an expression, or a name for it."""
    scope = syntax.scope_of(path, line) if path else tree
    names = {ast.unparse(node), *syntax.names_at(scope, line)}
    for each, (first, *_) in syntax.uses(op_type, scope):
        if isinstance(each, ast.Call) and names & set(
            map(ast.unparse, syntax.expressions(first))
        ):
            yield each


def complement(value: ast.expr, place: tuple[str, int]) -> dict[str, str]:
    """Returns `-x` of `1 - sigmoid(x)`, or `x` of `1 - exp(x)`, `1 - tanh(x)**2`."""
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)):
        return {}
    one, rest = value.left, value_of(value.right, place)
    if squared := _squared(rest):
        rest = value_of(squared, place)
    is_one = isinstance(one, ast.Constant) and one.value == 1
    if not (is_one and isinstance(rest, ast.Call) and len(rest.args) == 1):
        return {}
    name, x = ast.unparse(rest.func).rpartition(".")[2], rest.args[0]
    if (squared is None) == (name == "tanh"):
        return {}
    if name == "sigmoid":
        if isinstance(x, ast.UnaryOp) and isinstance(x.op, ast.USub):
            x = x.operand
        else:
            x = ast.UnaryOp(ast.USub(), x)
    text = ast.unparse(x)
    if name == "tanh" and isinstance(x, ast.BinOp | ast.UnaryOp):
        text = f"({text})"
    return {f"{{complement_of_{name}}}": text}


def bound(arguments: Sequence[ast.expr], place: tuple[str, int]) -> dict[str, str]:
    """Returns `c` of the quotient `minimum(x, c) / x`."""
    above, below = value_of(arguments[0], place), _in_brackets(arguments[-1])
    for each, sides in syntax.uses("Minimum", above):
        texts = [*map(_in_brackets, sides)]
        if each is above and len(texts) == 2 and below in texts:
            return {"{bound}": texts[1 - texts.index(below)]}
    return {}


def _squared(node: ast.expr) -> ast.expr | None:
    """Returns `x` of `x**2` or `tf.square(x)`."""
    for op_type in ("Square", "Pow"):
        for each, (x, *exponent) in syntax.uses(op_type, node):
            if each is node and [*map(ast.unparse, exponent)] in ([], ["2"], ["2.0"]):
                return x
    return None


def value_of(node: ast.expr, place: tuple[str, int]) -> ast.expr:
    """Returns what was assigned to a name; any other expression is returned as is."""
    if isinstance(node, ast.Name):
        return syntax.assigned(node.id, *place) or node
    return node


def factor_of(tree: ast.AST, factors: set[str]) -> str:
    """Returns the factor of an expression; empty if it has none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left, right = ast.unparse(node.left), ast.unparse(node.right)
            if right in factors:
                return left
            if left in factors:
                return right
    return ""
