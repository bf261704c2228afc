"""The rule for quotients that have a limit where both sides are 0."""

import tensorflow as tf

from tfsafe.ops.kernels import removable
from tfsafe.rewriting.engine.rule import Build, Rule
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.trees import Tree, Trees

_EXPM1 = ("Sub", ("Exp", "x"), 1)
_VERSINE = ("Sub", 1, ("Cos", "x"))
_X_MINUS_SIN = ("Sub", "x", ("Sin", "x"))
_DECAY = ("Sub", 1, ("Exp", ("Neg", "x")))


def _times(function: removable.Function) -> removable.Function:
    return lambda x: x * function(x)


def _of_minus(function: removable.Function) -> removable.Function:
    return lambda x: function(-x)


def _minus(function: removable.Function) -> removable.Function:
    return lambda x: -function(x)


_TREES = Trees(
    Tree(("Div", ("Sin", "x"), "x"), removable.sin_over_x),
    Tree(("Div", "x", ("Sin", "x")), removable.x_over_sin),
    Tree(("Div", ("Sinh", "x"), "x"), removable.sinh_over_x),
    Tree(("Div", ("Tanh", "x"), "x"), removable.tanh_over_x),
    Tree(("Div", "x", ("Tanh", "x")), removable.x_over_tanh),
    Tree(("Div", ("Atan", "x"), "x"), removable.atan_over_x),
    Tree(("Div", _VERSINE, ("Square", "x")), removable.one_minus_cos_over_square),
    Tree(
        ("Div", ("Sub", ("Cos", "x"), 1), ("Square", "x")),
        _minus(removable.one_minus_cos_over_square),
    ),
    Tree(("Div", _VERSINE, "x"), _times(removable.one_minus_cos_over_square)),
    Tree(("Div", _X_MINUS_SIN, ("Pow", "x", 3)), removable.x_minus_sin_over_cube),
    Tree(
        ("Div", _X_MINUS_SIN, ("Mul", ("Square", "x"), "x")),
        removable.x_minus_sin_over_cube,
    ),
    Tree(("Div", ("Expm1", "x"), "x"), removable.expm1_over_x),
    Tree(("Div", _EXPM1, "x"), removable.expm1_over_x),
    Tree(("Div", "x", ("Expm1", "x")), removable.x_over_expm1),
    Tree(("Div", "x", _EXPM1), removable.x_over_expm1),
    Tree(("Div", _DECAY, "x"), _of_minus(removable.expm1_over_x)),
    Tree(("Div", "x", _DECAY), _of_minus(removable.x_over_expm1)),
    Tree(("Div", ("Log1p", "x"), "x"), removable.log1p_over_x),
    Tree(("Div", ("Log", ("Add", 1, "x")), "x"), removable.log1p_over_x),
)


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    return None if is_watched(reader, op) else _TREES(op, reader)


RULES = (
    Rule(
        name="removable-singularity",
        before="sin(x) / x, (1 - cos(x)) / x ** 2, tanh(x) / x, x / expm1(x), ...",
        after="the same; near 0 the power series",
        fails_when="x = 0: the value is 0 / 0; x is near 0: the derivatives cancel",
        reference="Taylor series of the quotient",
        op_types=_TREES.op_types,
        match=_match,
    ),
)
