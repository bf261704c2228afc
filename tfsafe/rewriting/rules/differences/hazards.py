"""Recognises the hazard of a normal distribution less its asymptote."""

import math
from collections.abc import Iterator

import tensorflow as tf

from tfsafe.ops.formulas.limits.normal_hazards import hazard_less_asymptote
from tfsafe.rewriting.analysis.near_one import numbered
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term
from tfsafe.rewriting.match.linear import Group, Part, parts
from tfsafe.rewriting.match.products import scaled

# How far a quotient of rounded numbers may be off.
ROUNDED = 1e-6


def of_quotient(reader: Reader, part: Part, op: tf.Operation) -> Iterator[Group]:
    """Yields `pdf(x) / cdf(x) + x` and `pdf(x) / (1 - cdf(x)) - x`, of any scale.

    Args:
      reader: Reader of the graph.
      part: A part of a sum.
      op: The division that it is.
    """
    quotient = numbered(reader, op)
    if len(quotient.above) != 1 or len(quotient.below) != 1 or part.axes is not None:
        return
    below = _erfc_of(reader, quotient.below[0])
    if below is None or not is_density(reader, quotient.above[0], below[1]):
        return
    factor, x = below
    made = part._replace(factor=part.factor * quotient.factor / factor)
    slope = math.sqrt(math.pi) * x.factor * made.factor
    wanted = [
        each._replace(factor=-slope * each.factor) for each in parts(reader, x.tensor)
    ]
    yield Group(
        [part, *wanted], made, lambda value: hazard_less_asymptote(x.make(value))
    )


def is_density(reader: Reader, tensor: tf.Tensor | None, x: Term) -> bool:
    """Returns whether a tensor is `exp(-x * x)`."""
    op = None if tensor is None else reader.op(tensor)
    if op is None or op.type != "Exp":
        return False
    square = numbered(reader, reader.op(op.inputs[0]), [x.tensor])
    is_square = not square.below and len(square.above) == 2
    if not is_square or not all(reader.same(x.tensor, t) for t in square.above):
        return False
    return abs(square.factor + x.factor**2) <= ROUNDED * x.factor**2


def _erfc_of(reader: Reader, tensor: tf.Tensor) -> tuple[float, Term] | None:
    """Reads `c * erfc(x)` and `c + c * erf(x)` as the number and the argument."""
    found = parts(reader, tensor)
    functions = [each for each in found if each.tensor is not None]
    numbers = [each.factor for each in found if each.tensor is None]
    if len(functions) != 1 or functions[0].tensor is None or functions[0].axes:
        return None
    factor, op = functions[0].factor, reader.op(functions[0].tensor)
    if op.type == "Erfc" and not numbers:
        return factor, scaled(reader, op.inputs[0])
    if op.type != "Erf" or len(numbers) != 1 or abs(factor) != abs(numbers[0]):
        return None
    return numbers[0], scaled(reader, op.inputs[0], -factor / numbers[0])
