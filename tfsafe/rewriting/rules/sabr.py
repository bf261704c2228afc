"""Matches `z / x(z)` of the SABR model of volatilities."""

import tensorflow as tf

from tfsafe.graph import OpFact, op_types
from tfsafe.ops.kernels import limits
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import both_ways, root_of, square_of
from tfsafe.rewriting.match.linear import Part, merged, minus, parts

_DIVISIONS = op_types(OpFact.DIVIDES)
# How far the numbers of a formula may be off: they are rounded one by one.
_CLOSE = 1e-5


def match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `z / log((sqrt(1 - 2 rho z + z^2) + z - rho) / (1 - rho))`."""
    z, log = op.inputs
    quotient = (
        reader.op(reader.op(log).inputs[0]) if reader.op(log).type == "Log" else None
    )
    if quotient is None or quotient.type not in _DIVISIONS:
        return None
    above, below = (parts(reader, each) for each in quotient.inputs)
    roots = [each for each in above if _radicand(reader, each) is not None]
    if len(roots) != 1 or roots[0].factor != 1:
        return None
    # What is left of the numerator without the root and z is -rho.
    left = [each for each in above if each is not roots[0]]
    rho = minus(merged(reader, [*left, *minus(parts(reader, z))]))
    if len(rho) != 1 or rho[0].axes is not None:
        return None
    wanted = [Part(1.0, None), *minus(rho)]
    radicand = _radicand(reader, roots[0])
    if not _is_nothing(reader, [*below, *minus(wanted)]) or radicand is None:
        return None
    if not _is_polynomial(reader, parts(reader, radicand), z, rho[0]):
        return None
    return lambda value: limits.sabr(value(z), _made(rho[0], value, z))


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
        elif rho.tensor is not None and _is_product(reader, each.tensor, z, rho.tensor):
            mixed += each.factor / rho.factor
        else:
            return False
    return max(abs(one - 1), abs(square - 1), abs(mixed + 2)) < _CLOSE


def _is_square(reader: Reader, tensor: tf.Tensor, *bases: tf.Tensor) -> bool:
    base = square_of(reader, tensor)
    return base is not None and any(reader.same(base, each) for each in bases)


def _is_product(
    reader: Reader, tensor: tf.Tensor, z: tf.Tensor, rho: tf.Tensor
) -> bool:
    """Returns whether a tensor is z times rho, a number taken out of z or not."""
    return any(
        reader.same(a, z) and reader.same(b, rho)
        for a, b in both_ways(reader.op(tensor), "Mul")
    )
