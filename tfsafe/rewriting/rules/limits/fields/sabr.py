"""Matches `z / x(z)` of the SABR model of volatilities."""

import tensorflow as tf

from tfsafe.graph import DIVISIONS
from tfsafe.ops.formulas.limits import quotients
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import root_of, square_of
from tfsafe.rewriting.match.linear import Part, merged, minus, parts
from tfsafe.rewriting.match.products import (
    Product,
    factored,
    made,
    scaled,
    without,
)

# How far the numbers of a formula may be off: they are rounded one by one.
_CLOSE = 1e-5


def match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `z / log((sqrt(1 - 2 rho z + z^2) + z - rho) / (1 - rho))`.

    Args:
      op: The quotient; its numerator may be a product of z and others.
      reader: Reader of the graph.

    Returns:
      How to build it; None for another quotient.
    """
    log = reader.op(op.inputs[1])
    quotient = reader.op(log.inputs[0]) if log.type == "Log" else None
    if quotient is None or quotient.type not in DIVISIONS:
        return None
    above, below = (parts(reader, each) for each in quotient.inputs)
    roots = [each for each in above if _radicand(reader, each) is not None]
    if len(roots) != 1 or roots[0].factor != 1:
        return None
    radicand = _radicand(reader, roots[0])
    if radicand is None:
        return None
    polynomial = parts(reader, radicand)
    squares = [
        base
        for each in polynomial
        if each.tensor is not None
        and (base := square_of(reader, each.tensor)) is not None
    ]
    left = [each for each in above if each is not roots[0]]
    for z in (op.inputs[0], *squares):
        rho = _rho(reader, z, left, below, polynomial)
        whole = None if rho is None else _over(reader, op, z)
        if rho is not None and whole is not None:
            return _build(z, rho, whole)
    return None


def _rho(
    reader: Reader,
    z: tf.Tensor,
    left: list[Part],
    below: list[Part],
    polynomial: list[Part],
) -> Part | None:
    # What is left of the numerator without the root and z is -rho.
    rho = minus(merged(reader, [*left, *minus(parts(reader, z))]))
    if len(rho) != 1 or rho[0].axes is not None:
        return None
    wanted = [Part(1.0, None), *minus(rho)]
    if not _is_nothing(reader, [*below, *minus(wanted)]):
        return None
    return rho[0] if _is_polynomial(reader, polynomial, z, rho[0]) else None


def _over(reader: Reader, op: tf.Operation, z: tf.Tensor) -> Product | None:
    """Returns the other factors of a quotient by the logarithm."""
    product = factored(reader, op, [z])
    log = reader.source(op.inputs[1])
    found = [each for each in product.above if reader.same(each, z)]
    above = without(product.above, found[:1])
    below = without(product.below, [log])
    if not found or above is None or below is None:
        return None
    return product._replace(above=above, below=below)


def _build(z: tf.Tensor, rho: Part, rest: Product) -> Build:
    def build(value: Value) -> tf.Tensor:
        whole = quotients.sabr(value(z), _made(rho, value, z))
        if rest.above or rest.below:
            return whole * made(rest, value)
        return whole if rest.factor == 1 else rest.factor * whole

    return build


def _made(rho: Part, value: Value, z: tf.Tensor) -> tf.Tensor:
    return tf.convert_to_tensor(rho.make(value), z.dtype)


def _radicand(reader: Reader, part: Part) -> tf.Tensor | None:
    if part.tensor is None or part.axes is not None:
        return None
    return root_of(reader, part.tensor)


def _is_nothing(reader: Reader, found: list[Part]) -> bool:
    return all(abs(each.factor) < _CLOSE for each in merged(reader, found))


def _is_polynomial(reader: Reader, found: list[Part], z: tf.Tensor, rho: Part) -> bool:
    """Returns whether terms are `1 - 2 rho z + z^2`."""
    of_z = parts(reader, z)
    if len(of_z) != 1 or of_z[0].tensor is None:
        return False
    base, scale = of_z[0].tensor, of_z[0].factor
    one = square = mixed = 0.0
    for each in found:
        if each.tensor is None:
            one += each.factor
        elif _is_square(reader, each.tensor, base, z):
            square += each.factor * (
                1 if _is_square(reader, each.tensor, z, z) else 1 / scale**2
            )
        elif rho.tensor is None and reader.same(each.tensor, base):
            mixed += each.factor / scale / rho.factor if rho.factor else 0.0
        elif rho.tensor is not None:
            factor = _product(reader, each.tensor, z, rho.tensor)
            if not factor:
                return False
            mixed += each.factor * factor / rho.factor
        else:
            return False
    return max(abs(one - 1), abs(square - 1), abs(mixed + 2)) < _CLOSE


def _is_square(reader: Reader, tensor: tf.Tensor, *bases: tf.Tensor) -> bool:
    base = square_of(reader, tensor)
    return base is not None and any(reader.same(base, each) for each in bases)


def _product(reader: Reader, tensor: tf.Tensor, z: tf.Tensor, rho: tf.Tensor) -> float:
    """Returns c of `c * z * rho`, also as `(c * rho) * z`; 0 for another tensor."""
    base = scaled(reader, z)
    for pair in both_ways(reader.op(tensor), "Mul"):
        a, b = (scaled(reader, each) for each in pair)
        if reader.same(a.tensor, base.tensor) and reader.same(b.tensor, rho):
            return a.factor * b.factor / base.factor if base.factor else 0.0
    return 0.0
