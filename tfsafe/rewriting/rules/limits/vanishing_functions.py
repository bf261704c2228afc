"""Lists functions that are 0 at 0, and what each is over a power of its argument."""

from typing import NamedTuple

import tensorflow as tf

from tfsafe.ops.formulas.limits import removable
from tfsafe.ops.formulas.limits.removable import Removable
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.layouts import same_shape
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term
from tfsafe.rewriting.match.index import Index, Pattern
from tfsafe.rewriting.match.products import scaled
from tfsafe.rewriting.match.quotients import is_reshaped
from tfsafe.rewriting.match.reductions import is_length, reshaped, squared_length
from tfsafe.rewriting.match.trees import first_argument


class Vanishing(NamedTuple):
    """A function that is 0 at 0.

    Attributes:
      pattern: The function.
      order: Of its zero.
      over_power: The function over that power of its argument.
      inverse: 1 over that, for order 1.
    """

    pattern: Pattern
    order: int
    over_power: Removable
    inverse: Removable | None = None


VANISHING = (
    Vanishing(("Sin", "x"), 1, removable.sin_over_x, removable.x_over_sin),
    Vanishing(("Tan", "x"), 1, removable.tan_over_x, removable.x_over_tan),
    Vanishing(("Sinh", "x"), 1, removable.sinh_over_x, removable.x_over_sinh),
    Vanishing(("Tanh", "x"), 1, removable.tanh_over_x, removable.x_over_tanh),
    Vanishing(("Asin", "x"), 1, removable.asin_over_x, removable.x_over_asin),
    Vanishing(("Asinh", "x"), 1, removable.asinh_over_x, removable.x_over_asinh),
    Vanishing(("Atan", "x"), 1, removable.atan_over_x, removable.x_over_atan),
    Vanishing(("Atanh", "x"), 1, removable.atanh_over_x, removable.x_over_atanh),
    Vanishing(("Expm1", "x"), 1, removable.expm1_over_x, removable.x_over_expm1),
    Vanishing(
        ("Sub", ("Exp", "x"), 1), 1, removable.expm1_over_x, removable.x_over_expm1
    ),
    Vanishing(
        ("Sub", ("Sqrt", ("Add", 1, "x")), 1),
        1,
        removable.sqrt1pm1_over_x,
        removable.x_over_sqrt1pm1,
    ),
    Vanishing(("Log1p", "x"), 1, removable.log1p_over_x, removable.x_over_log1p),
    Vanishing(
        ("Log", ("Add", 1, "x")), 1, removable.log1p_over_x, removable.x_over_log1p
    ),
    *(
        Vanishing(each, 1, removable.two_atanh_over_x, removable.x_over_two_atanh)
        for each in (
            ("Log", ("Div", ("Add", 1, "x"), ("Sub", 1, "x"))),
            ("Sub", ("Log1p", "x"), ("Log1p", ("Neg", "x"))),
            ("Sub", ("Log", ("Add", 1, "x")), ("Log", ("Sub", 1, "x"))),
        )
    ),
    Vanishing(("Erf", "x"), 1, removable.erf_over_x, removable.x_over_erf),
    Vanishing(("BesselJ1", "x"), 1, removable.bessel_j1_over_x),
    Vanishing(("BesselI1", "x"), 1, removable.bessel_i1_over_x),
    Vanishing(("Sub", 1, ("Cos", "x")), 2, removable.one_minus_cos_over_square),
    Vanishing(("Sub", "x", ("Sin", "x")), 3, removable.x_minus_sin_over_cube),
    Vanishing(
        ("Sub", ("Sin", "x"), ("Mul", "x", ("Cos", "x"))), 3, removable.sine_moment
    ),
    Vanishing(
        ("Sub", ("Mul", "x", ("Cosh", "x")), ("Sinh", "x")), 3, removable.sinh_moment
    ),
    Vanishing(
        ("Sub", ("Log1p", "x"), ("Div", "x", ("Add", 1, "x"))),
        2,
        removable.log1p_moment,
    ),
    Vanishing(
        ("Sub", ("Log", ("Add", 1, "x")), ("Div", "x", ("Add", 1, "x"))),
        2,
        removable.log1p_moment,
    ),
    *(
        Vanishing(
            ("Sub", ("Mul", ("Add", 1, "x"), log), "x"),
            2,
            removable.entropy_over_square,
        )
        for log in (("Log1p", "x"), ("Log", ("Add", 1, "x")))
    ),
    Vanishing(
        ("Sub", ("Exp", "x"), ("Exp", ("Neg", "x"))),
        1,
        removable.two_sinh_over_x,
        removable.x_over_two_sinh,
    ),
    Vanishing(("Sub", "x", ("Tanh", "x")), 3, removable.x_minus_tanh_over_cube),
    Vanishing(
        ("Sub", 1, ("Div", ("Sin", "x"), "x")), 2, removable.x_minus_sin_over_cube
    ),
    Vanishing(
        ("Sub", ("Exp", "x"), 1, "x"), 2, removable.exp_minus_tangent_over_square
    ),
    Vanishing(("Sub", ("Expm1", "x"), "x"), 2, removable.exp_minus_tangent_over_square),
    *(
        Vanishing(("Sub", 1, each), 2, removable.one_minus_x_over_tan_over_square)
        for each in (
            ("Div", ("Mul", "x", ("Cos", "x")), ("Sin", "x")),
            ("Mul", "x", ("Div", ("Cos", "x"), ("Sin", "x"))),
            ("Div", "x", ("Tan", "x")),
        )
    ),
    *(
        Vanishing(("Sub", 1, each), 2, removable.half_angle_over_tan)
        for each in (
            ("Div", ("Mul", "x", ("Sin", "x")), ("Mul", 2, ("Sub", 1, ("Cos", "x")))),
            ("Div", ("Mul", "x", ("Add", 1, ("Cos", "x"))), ("Mul", 2, ("Sin", "x"))),
        )
    ),
    *(
        Vanishing(("Sub", ("Div", each, "x"), 1), 1, function)
        for each, function in (
            (("Expm1", "x"), removable.exp_minus_tangent_over_square),
            (("Sub", ("Exp", "x"), 1), removable.exp_minus_tangent_over_square),
        )
    ),
    *(
        Vanishing(("Sub", 1, ("Div", each, "x")), 1, removable.exp_tangent_of_minus)
        for each in (
            ("Sub", 1, ("Exp", ("Neg", "x"))),
            ("Neg", ("Expm1", ("Neg", "x"))),
        )
    ),
    Vanishing(
        ("Add", ("Div", ("Expm1", ("Neg", "x")), "x"), 1),
        1,
        removable.exp_tangent_of_minus,
    ),
    Vanishing(("Sub", "x", ("Atan", "x")), 3, removable.x_minus_atan_over_cube),
    Vanishing(("Sub", ("Asin", "x"), "x"), 3, removable.asin_minus_x_over_cube),
    Vanishing(("Sub", ("Tan", "x"), "x"), 3, removable.tan_minus_x_over_cube),
    Vanishing(("Sub", ("Sinh", "x"), "x"), 3, removable.sinh_minus_x_over_cube),
    Vanishing(("Sub", ("Cosh", "x"), 1), 2, removable.cosh_minus_one_over_square),
    Vanishing(("Log", ("Cosh", "x")), 2, removable.log_cosh_over_square),
    Vanishing(("Log", ("Cos", "x")), 2, removable.log_cos_over_square),
    Vanishing(
        ("Sub", 1, ("Mul", ("Add", 1, "x"), ("Exp", ("Neg", "x")))),
        2,
        removable.gamma_tail_over_square,
    ),
    Vanishing(("Sub", "x", ("Log1p", "x")), 2, removable.x_minus_log1p_over_square),
    Vanishing(
        ("Sub", "x", ("Log", ("Add", 1, "x"))), 2, removable.x_minus_log1p_over_square
    ),
)
_PATTERNS = [each.pattern for each in VANISHING]
_INDEX = Index(_PATTERNS)


class Limit(NamedTuple):
    """What replaces some factors of a product.

    Attributes:
      build: Builds it.
      above: The factors of the numerator that it replaces.
      below: Those of the denominator.
    """

    build: Build
    above: tuple[tf.Tensor, ...]
    below: tuple[tf.Tensor, ...]


class Zero(NamedTuple):
    """A factor of a product that is 0 where its argument is.

    Attributes:
      tensor: The factor.
      vanishing: The function.
      sign: Of the function.
      term: Its argument.
      inside: The argument, a number times a tensor.
    """

    tensor: tf.Tensor
    vanishing: Vanishing
    sign: int
    term: Term
    inside: Term

    def is_argument(self, reader: Reader, other: tf.Tensor) -> bool:
        """Returns whether a tensor is the argument, in the shape of the factor."""
        if reader.same(other, self.inside.tensor):
            return True
        if not same_shape(other, self.tensor):
            return False
        x = self.inside.tensor
        return is_reshaped(reader, other, x) or is_length(reader, other, x)

    def build(
        self, reader: Reader, function: Removable, factor: float, power: int
    ) -> Build:
        """Returns how to build `factor * function(x) * x ** power`."""
        square = squared_length(reader, self.inside)

        def build(value: Value) -> tf.Tensor:
            if square is None or not function.is_even:
                x = self.term.make(value)
                made = function(x)
                for _ in range(power):
                    made *= x
            else:
                whole = square(value)
                made = function.of_length(whole)
                for _ in range(power // 2):
                    made *= whole
                made = tf.cast(made, value(self.term.tensor).dtype)
                if power % 2:
                    made *= self.term.make(value)
            if self.inside.tensor.shape.rank != self.tensor.shape.rank:
                made = tf.reshape(made, tf.shape(value(self.tensor)))
            return made if factor == 1 else factor * made

        return build


def zero_of(reader: Reader, tensor: tf.Tensor) -> Zero | None:
    """Reads a factor that is 0 where its argument is."""
    for step in reshaped(reader, tensor):
        found = first_argument(reader, step, _PATTERNS, _INDEX)
        if found is not None:
            place, sign, term = found
            inside = scaled(reader, term.tensor, term.factor)
            return Zero(tensor, VANISHING[place], sign, term, inside)
    return None
