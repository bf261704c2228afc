"""Takes tensors apart into numbers times tensors, through sums over axes."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import is_sum, terms
from tfsafe.rewriting.match.products import factored


class Part(NamedTuple):
    """A number times a tensor, or times its sum over axes counted from the end.

    `tensor` is None for a number alone; `axes` is None where nothing is summed.
    """

    factor: float
    tensor: tf.Tensor | None
    axes: tuple[int, ...] | None = None
    keepdims: bool = False

    def make(self, value: Value) -> tf.Tensor | float:
        """Returns the part in the graph that is made."""
        if self.tensor is None:
            return self.factor
        return self.scaled(value(self.tensor))

    def scaled(self, x: tf.Tensor) -> tf.Tensor:
        """Sums and scales a counterpart of the tensor."""
        if self.axes is not None:
            x = tf.reduce_sum(x, self.axes, keepdims=self.keepdims)
        return x if self.factor == 1 else self.factor * x


class Group(NamedTuple):
    """Terms that cancel, and what they are together.

    Attributes:
      parts: The terms.
      part: The first, with its factor and the axes along which it is summed.
      build: Builds the sum of the terms before it is scaled and summed over axes.
    """

    parts: Sequence[Part]
    part: Part
    build: Build

    def make(self, value: Value) -> tf.Tensor:
        """Builds the sum of the terms."""
        return self.part.scaled(self.build(value))


class _Known(dict[str, Sequence[Part]]):
    """The parts of the tensors of a graph, by their names."""


def parts(reader: Reader, tensor: tf.Tensor) -> list[Part]:
    """Takes a tensor apart; equal parts are one, and numbers are one part."""
    known = reader.memory.setdefault(_Known, _Known())
    if tensor.name not in known:
        known[tensor.name] = merged(reader, _parts(reader, tensor))
    return list(known[tensor.name])


def _parts(reader: Reader, tensor: tf.Tensor) -> list[Part]:
    found: list[Part] = []
    for term in terms(reader, tensor):
        number = reader.scalar(term.tensor)
        if number is not None and term.tensor.shape.rank == 0:
            found.append(Part(term.factor * number, None))
        else:
            summed = _summed(reader, term.tensor)
            found += [
                each._replace(factor=term.factor * each.factor) for each in summed
            ]
    return found


def _summed(reader: Reader, tensor: tf.Tensor) -> list[Part]:
    op = reader.op(tensor)
    whole = [Part(1.0, tensor)]
    if op.type != "Sum":
        return whole
    x, rank = op.inputs[0], op.inputs[0].shape.rank
    axes = reader.axes(op.inputs[1], rank)
    if not axes or rank is None:
        return whole
    from_end = tuple(axis - rank for axis in axes)
    found = terms(reader, x)
    inner = [Part(each.factor, each.tensor) for each in found]
    if not all(same_sizes(each.tensor.shape, x.shape, from_end) for each in found):
        inner = [Part(1.0, x)]
    keepdims = op.get_attr("keep_dims")
    # A term of lower rank would keep or lose other axes.
    is_whole = len(from_end) == rank and not keepdims
    if not is_whole and any(each.tensor.shape.rank != rank for each in found):
        inner = [Part(1.0, x)]
    return [each._replace(axes=from_end, keepdims=keepdims) for each in inner]


def same_sizes(a: tf.TensorShape, b: tf.TensorShape, axes: Sequence[int]) -> bool:
    """Returns whether two shapes have the same sizes along axes from the end."""
    if a.rank is None or b.rank is None or min(a.rank, b.rank) < -min(axes):
        return False
    return all(a[axis] is not None and a[axis] == b[axis] for axis in axes)


def merged(reader: Reader, found: Iterable[Part]) -> list[Part]:
    """Adds the factors of equal parts and drops those that cancel."""
    total: dict[Hashable, Part] = {}
    for part in found:
        key = _key(reader, part)
        known = total.get(key, part._replace(factor=0.0))
        total[key] = known._replace(factor=known.factor + part.factor)
    return [each for each in total.values() if abs(each.factor) > 1e-12]


def alike(reader: Reader, a: Part, b: Part) -> bool:
    """Returns whether two parts differ by their factors at most."""
    return _key(reader, a) == _key(reader, b)


def _key(reader: Reader, part: Part) -> Hashable:
    """Returns what parts have in common that differ by their factors at most."""
    if part.tensor is None:
        return None
    number = reader.number(part.tensor)
    return number, part.tensor.dtype, part.axes, part.keepdims


def minus(found: Iterable[Part]) -> list[Part]:
    """Returns the parts with all signs changed."""
    return [each._replace(factor=-each.factor) for each in found]


def total(found: Sequence[Part], value: Value, like: tf.Tensor) -> tf.Tensor:
    """Builds the sum of parts, at least of the dtype of `like`."""
    tensors = [each.make(value) for each in found if each.tensor is not None]
    numbers = sum(each.factor for each in found if each.tensor is None)
    if not tensors:
        return tf.constant(numbers, like.dtype)
    whole = tensors[0]
    for each in tensors[1:]:
        whole = whole + each
    return whole + numbers if numbers else whole


def where_they_cancel(found: Sequence[Part], near: Build) -> Build:
    """Returns how to build the sum of parts, over the factor of the first.

    Args:
      found: The parts.
      near: Builds it where they cancel. Elsewhere other sums would: the slope in `s` of
        `s * f(x / s)`, for one.
    """
    first, *rest = found
    others = [each._replace(factor=each.factor / first.factor) for each in rest]
    one = first._replace(factor=1.0)

    def build(value: Value) -> tf.Tensor:
        made = near(value)
        whole = total([one, *others], value, made)
        return tf.where(tf.abs(made) < 0.5 * tf.abs(one.make(value)), made, whole)

    return build


class Mixture(NamedTuple):
    """The sum `c + (1 - c) * p`; `rest` is `1 - c`, and p a quotient of products."""

    rest: tf.Tensor
    above: Sequence[tf.Tensor]
    below: Sequence[tf.Tensor]


def mixture_of(reader: Reader, op: tf.Operation) -> Mixture | None:
    """Recognises `c + (1 - c) * p` and `c + (1 - c) * a / b`."""
    for c, product in both_ways(op) if is_sum(op) else ():
        for mixture in _mixtures(reader, reader.op(product)):
            rest = parts(reader, mixture.rest)
            if not merged(reader, [*rest, *parts(reader, c), Part(-1.0, None)]):
                return mixture
    return None


def _mixtures(reader: Reader, op: tf.Operation) -> Iterator[Mixture]:
    """Yields each factor of a product with what is left of it."""
    for rest, p in both_ways(op, "Mul"):
        yield Mixture(rest, [p], [])
    whole = factored(reader, op)
    for place, rest in enumerate(whole.above if whole.factor == 1 else ()):
        above = [*whole.above[:place], *whole.above[place + 1 :]]
        yield Mixture(rest, above, whole.below)
