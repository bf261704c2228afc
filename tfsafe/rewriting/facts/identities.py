"""Lists formulas with the spelling that is usual for them.

`("Div", 1, ("Sqrt", "x"))` is `1 / sqrt(x)`: a tuple is an operation and its inputs, a
string any tensor, the same one where it is repeated, and a number itself. `Div` is also
a reciprocal, `Add` every addition of two, `Above` and `Below` are with or without
equality. The inputs of commutative operations may change places.
"""

import math
from collections.abc import Sequence
from typing import Any

Tree = tuple[Any, ...]
# A name, a number, or the type of an operation and its inputs.
Formula = str | float | Tree

_EXP_MINUS = ("Exp", ("Neg", "x"))
_EXP_TWICE = ("Exp", ("Mul", 2, "x"))
_DIFFERENCE_OF_EXP = ("Sub", ("Exp", "x"), _EXP_MINUS)
_SUM_OF_EXP = ("Add", ("Exp", "x"), _EXP_MINUS)
_SQUARES = (("Square", "x"), ("Mul", "x", "x"), ("Pow", "x", 2))
_SMALL_PART = ("Softplus", ("Neg", ("Abs", "x")))
# The first formula that fits counts; None for one that has its usual spelling. What is
# within a formula is seen in its own usual spelling.
ROWS: Sequence[tuple[Tree, Formula | None]] = (
    # Signs.
    (("Mul", "x", -1), ("Neg", "x")),
    (("Sub", 0, "x"), ("Neg", "x")),
    (("Neg", ("Neg", "x")), "x"),
    (("Neg", ("Sub", "x", "y")), ("Sub", "y", "x")),
    (("Sub", ("Neg", "x"), ("Neg", "y")), ("Sub", "y", "x")),
    (("Sub", ("Neg", "x"), "y"), ("Neg", ("Add", "x", "y"))),
    (("Sub", "x", ("Neg", "y")), ("Add", "x", "y")),
    (("Add", ("Neg", "x"), ("Neg", "y")), ("Neg", ("Add", "x", "y"))),
    (("Add", "x", ("Neg", "y")), ("Sub", "x", "y")),
    (("Mul", ("Neg", "x"), ("Neg", "y")), ("Mul", "x", "y")),
    (("Neg", ("Mul", "x", ("Neg", "y"))), ("Mul", "x", "y")),
    (("Div", ("Neg", "x"), ("Neg", "y")), ("Div", "x", "y")),
    (("Neg", ("Div", "x", ("Neg", "y"))), ("Div", "x", "y")),
    (("Neg", ("Div", ("Neg", "x"), "y")), ("Div", "x", "y")),
    (("Neg", ("Maximum", ("Neg", "x"), ("Neg", "y"))), ("Minimum", "x", "y")),
    (("Neg", ("Minimum", ("Neg", "x"), ("Neg", "y"))), ("Maximum", "x", "y")),
    # The amount.
    (("Mul", "x", ("Sign", "x")), ("Abs", "x")),
    (("Maximum", "x", ("Neg", "x")), ("Abs", "x")),
    (("SelectV2", ("Below", "x", 0), ("Neg", "x"), "x"), ("Abs", "x")),
    (("SelectV2", ("Above", "x", 0), "x", ("Neg", "x")), ("Abs", "x")),
    *((("Sqrt", square), ("Abs", "x")) for square in _SQUARES),
    (("Mul", ("Abs", "x"), ("Abs", "x")), ("Square", "x")),
    (("Pow", ("Abs", "x"), 2), ("Square", "x")),
    (("Square", ("Abs", "x")), ("Square", "x")),
    (("SelectV2", ("LogicalNot", "c"), "x", "y"), ("SelectV2", "c", "y", "x")),
    # Quotients and roots.
    (("Mul", ("Div", 1, "x"), ("Div", 1, "y")), None),
    (("Mul", "x", ("Div", 1, "y")), ("Div", "x", "y")),
    (("Div", "x", ("Div", 1, "y")), ("Mul", "x", "y")),
    (("Div", 1, ("Div", "y", "x")), ("Div", "x", "y")),
    (("Div", 1, ("Sqrt", "x")), ("Rsqrt", "x")),
    (("Sqrt", ("Div", 1, "x")), ("Rsqrt", "x")),
    (("Div", 1, ("Rsqrt", "x")), ("Sqrt", "x")),
    (("Mul", "x", ("Rsqrt", "x")), ("Sqrt", "x")),
    (("Div", "x", ("Sqrt", "x")), ("Sqrt", "x")),
    (("Pow", "x", -1), ("Reciprocal", "x")),
    (("Pow", "x", -0.5), ("Rsqrt", "x")),
    (("Pow", "x", 0.5), ("Sqrt", "x")),
    # Exponentials and logarithms.
    (("Div", 1, ("Pow", "x", "y")), ("Pow", "x", ("Neg", "y"))),
    (("Pow", math.e, "x"), ("Exp", "x")),
    (("Div", 1, _EXP_MINUS), ("Exp", "x")),
    (("Div", 1, ("Exp", "x")), _EXP_MINUS),
    (("Add", ("Expm1", "x"), 1), ("Exp", "x")),
    (("Exp", ("Neg", ("Log", "x"))), ("Reciprocal", "x")),
    (("Sub", ("Exp", "x"), 1), ("Expm1", "x")),
    (("Add", ("Exp", "x"), -1), ("Expm1", "x")),
    (("Log1p", ("Sub", "x", 1)), ("Log", "x")),
    # Within another operation, a logarithm would not be seen by its own rules.
    (("Neg", ("Log", ("Div", 1, "x"))), ("Log", "x")),
    (("Mul", 2, ("Log", ("Sqrt", "x"))), ("Log", "x")),
    *((("Mul", 0.5, ("Log", s)), ("Log", ("Abs", "x"))) for s in _SQUARES),
    # Sigmoids and what belongs to them.
    (("Div", 1, ("Add", 1, _EXP_MINUS)), ("Sigmoid", "x")),
    (("Div", 1, ("Add", 1, ("Exp", "x"))), ("Sigmoid", ("Neg", "x"))),
    (("Div", ("Exp", "x"), ("Add", 1, ("Exp", "x"))), ("Sigmoid", "x")),
    (("Sub", 1, ("Sigmoid", ("Neg", "x"))), ("Sigmoid", "x")),
    (("Exp", ("Neg", ("Softplus", ("Neg", "x")))), ("Sigmoid", "x")),
    (("Exp", ("Neg", ("Softplus", "x"))), ("Sigmoid", ("Neg", "x"))),
    (("Log1p", ("Exp", "x")), ("Softplus", "x")),
    (("Log", ("Add", 1, ("Exp", "x"))), ("Softplus", "x")),
    (("Add", ("Relu", "x"), _SMALL_PART), ("Softplus", "x")),
    (("Add", ("Maximum", "x", 0), _SMALL_PART), ("Softplus", "x")),
    (("Add", "x", ("Softplus", ("Neg", "x"))), ("Softplus", "x")),
    # Hyperbolic functions and the tangent.
    (("Mul", 0.5, _DIFFERENCE_OF_EXP), ("Sinh", "x")),
    (("Div", _DIFFERENCE_OF_EXP, 2), ("Sinh", "x")),
    (("Mul", 0.5, _SUM_OF_EXP), ("Cosh", "x")),
    (("Div", _SUM_OF_EXP, 2), ("Cosh", "x")),
    (("Div", ("Sinh", "x"), ("Cosh", "x")), ("Tanh", "x")),
    (("Div", ("Expm1", ("Mul", 2, "x")), ("Add", 1, _EXP_TWICE)), ("Tanh", "x")),
    (("Sub", 1, ("Div", 2, ("Add", 1, _EXP_TWICE))), ("Tanh", "x")),
    (("Sub", ("Mul", 2, ("Sigmoid", ("Mul", 2, "x"))), 1), ("Tanh", "x")),
    (("Div", ("Sin", "x"), ("Cos", "x")), ("Tan", "x")),
)
