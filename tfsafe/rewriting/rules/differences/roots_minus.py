"""Rules for a root less its largest part."""

import functools
from collections.abc import Callable, Iterator, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, SUMS
from tfsafe.ops.formulas.differences import tangents, uncancelled
from tfsafe.rewriting.analysis.near_one import rest_of_root
from tfsafe.rewriting.analysis.ratios import ratio_of
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, terms
from tfsafe.rewriting.match.index import Pattern
from tfsafe.rewriting.match.linear import parts
from tfsafe.rewriting.match.reductions import Norm, sum_of_squares
from tfsafe.rewriting.match.trees import Tree, Trees, at_root

_ROOT: Pattern = ("Sqrt", ("Add", ("Square", "x"), "y"))
_ROOT_LESS = ((1.0, ("Sub", _ROOT, "x")), (-1.0, ("Add", _ROOT, "x")))


def _roots_minus(inside: Pattern, function: Callable[..., tf.Tensor]) -> Sequence[Tree]:
    """Returns the trees of `sqrt(x^2 + inside) - x` and `sqrt(x^2 + inside) + x`."""
    root: Pattern = ("Sqrt", ("Add", ("Square", "x"), inside))
    return (
        Tree(("Sub", root, "x"), function),
        Tree(("Add", root, "x"), lambda x, y: function(-x, y)),
    )


def _match_root_minus(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `sqrt(x^2 + y) - x`, y being one term or several."""
    found = _length_minus(op, reader) or _ROOT_MINUS(op, reader)
    sides = [] if found is not None else terms(reader, op.outputs[0])
    for root, x in (sides, sides[::-1]) if len(sides) == 2 else ():
        rest = rest_of_root(reader, x.tensor, root.tensor)
        if rest is not None and abs(x.factor) == abs(root.factor):
            return _less_any(root, x, rest)
    return found


def _roots_less(reader: Reader, tensor: tf.Tensor) -> Iterator[tuple[int, Term, Term]]:
    """Yields the sign of `sqrt(x^2 + y) - x`, x and y."""
    for sign_of_x, pattern in _ROOT_LESS:
        for sign, found in at_root(reader, tensor, pattern):
            x, y = found["x"], found["y"]
            if isinstance(x, Term) and isinstance(y, Term):
                yield sign, x._replace(factor=sign_of_x * x.factor), y


def _length_minus(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `sqrt(x^2 + sum(y^2)) - x`, whose sum may be out of range."""
    for sign, x, y in _roots_less(reader, op.outputs[0]):
        length = sum_of_squares(reader, y.tensor)
        if length is not None and y.factor == 1:
            return _less_length(sign, x, length)
    return None


def _less_length(sign: int, x: Term, length: Norm) -> Build:
    def build(value: Value) -> tf.Tensor:
        y = ops.norm(
            length.base.make(value), axis=length.axes, keepdims=length.keepdims
        )
        return sign * uncancelled.hypot_minus(x.make(value), y)

    return build


def _less_any(
    root: Term, x: Term, rest: Callable[[Value], Sequence[tf.Tensor]]
) -> Build:
    sign = -x.factor / root.factor

    def build(value: Value) -> tf.Tensor:
        y = functools.reduce(tf.multiply, rest(value))
        return root.factor * uncancelled.root_minus(sign * value(x.tensor), y)

    return build


_ROOT_MINUS = Trees(
    *(
        tree
        for inside, function in (
            (("Square", "y"), uncancelled.hypot_minus),
            ("y", uncancelled.root_minus),
        )
        for tree in _roots_minus(inside, function)
    )
)


def _match_solution(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `(sqrt(x^2 + y) - x) / d` where d is a factor of y."""
    top, divisor = op.inputs
    if reader.op(top).type not in SUMS or is_watched(reader, op):
        return None
    if reader.constant(divisor) is not None:
        return None
    for sign, x, y in _roots_less(reader, top):
        inside = [
            each._replace(factor=y.factor * each.factor)
            for each in parts(reader, y.tensor)
        ]
        ratio = ratio_of(reader, inside, parts(reader, divisor))
        if ratio is not None:
            return _solution(sign, x, y, divisor, ratio)
    return None


def _solution(
    sign: int,
    x: Term,
    y: Term,
    divisor: tf.Tensor,
    ratio: Callable[[Value], tf.Tensor | float],
) -> Build:
    def build(value: Value) -> tf.Tensor:
        whole = ratio(value)
        return sign * uncancelled.root_minus_over(
            x.make(value),
            y.make(value),
            value(divisor),
            tf.convert_to_tensor(whole, divisor.dtype),
        )

    return build


_INVERSE_ROOTS = (
    ("Div", 1, ("Sqrt", ("Add", 1, "x"))),
    ("Reciprocal", ("Sqrt", ("Add", 1, "x"))),
    ("Rsqrt", ("Add", 1, "x")),
)
RULES = (
    Rule(
        name="root-of-quadratic",
        before="(sqrt(b ** 2 - 4 * a * c) - b) / (2 * a)",
        after="-2 * c / (sqrt(b ** 2 - 4 * a * c) + b) where b is positive",
        fails_when="a * c is much smaller than the square of b, or a is 0",
        reference="Goldberg, ACM Computing Surveys 23(1), 1991, section 1.4",
        op_types=DIVISIONS,
        match=_match_solution,
    ),
    Rule(
        name="root-minus-argument",
        before="sqrt(x * x + y) - x, sqrt(x * x + y * y) - x, also of more terms",
        after="y / (sqrt(x * x + y) + x) where x is positive",
        fails_when="x is much larger than the root of y",
        reference="multiplication by the conjugate",
        op_types=_ROOT_MINUS.op_types,
        match=_match_root_minus,
    ),
    Rule(
        name="sqrt1pm1",
        before="sqrt(1 + x) - 1, sqrt(1 + x * x) - 1, 1 / sqrt(1 + x) - 1",
        after="x / (sqrt(1 + x) + 1), -x / (1 + x + sqrt(1 + x))",
        fails_when="x is near 0; its square overflows",
        reference="multiplication by the conjugate",
        match=Trees(
            Tree(
                ("Sub", ("Sqrt", ("Add", 1, ("Square", "x"))), 1),
                uncancelled.hypot1pm1,
            ),
            Tree(("Sub", ("Sqrt", ("Add", 1, "x")), 1), uncancelled.sqrt1pm1),
            *(Tree(("Sub", each, 1), tangents.rsqrt1pm1) for each in _INVERSE_ROOTS),
        ),
    ),
)
