"""Takes 1 from a tensor without loss of digits, by what the tensor is made of."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, RECIPROCALS, SUMS, OpFact, op_types, raw_kernel
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.differences import uncancelled
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader, both_ways, is_float
from tfsafe.rewriting.match.arithmetic import root_of, square_of
from tfsafe.rewriting.match.linear import Part, merged, minus, parts, total
from tfsafe.rewriting.match.products import Product, factored, made
from tfsafe.rewriting.match.reductions import norm

# Functions that are 1 at 0: each less 1.
FUNCTIONS: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "Cos": lambda x: -uncancelled.one_minus_cos(x),
    "Cosh": uncancelled.cosh_minus_one,
    "Exp": ops.expm1,
}
# Functions that are 1 at infinity: each less 1.
SATURATING: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "Sigmoid": lambda x: -ops.sigmoid(-x),
    "Softmax": lambda x: ops.expm1(ops.log_softmax(x)),
}
_PRODUCTS = DIVISIONS | {"Mul"}
_MOVES = op_types(OpFact.MOVES)
# Deeper formulas are left as they are written.
_DEPTH = 4


def less_one(reader: Reader, tensor: tf.Tensor, depth: int = _DEPTH) -> Build | None:
    """Returns how to build a tensor less 1; None where nothing is won.

    Args:
      reader: Reader of the graph.
      tensor: The tensor.
      depth: How many operations deep to look.
    """
    op = reader.op(tensor)
    if not depth or not is_float(tensor) or reader.constant(tensor) is not None:
        return None
    if op.type in FUNCTIONS:
        return _of_function(reader, tensor)
    if op.type in SATURATING:
        return lambda value: SATURATING[op.type](value(op.inputs[0]))
    if op.type in SUMS:
        return _of_sum(reader, tensor)
    if op.type in DIVISIONS:
        a, b = op.inputs
        return _of_quotient(reader, tensor, a, b, depth)
    if op.type in _MOVES:
        return _of_moved(reader, op, depth)
    return _of_power(reader, tensor, depth) or _of_product(reader, tensor, depth)


def _of_moved(reader: Reader, op: tf.Operation, depth: int) -> Build | None:
    inner = less_one(reader, op.inputs[0], depth - 1)
    if inner is None:
        return None
    kernel = raw_kernel(op)
    return lambda value: kernel([inner(value), *map(value, op.inputs[1:])])[0]


def root_less_one(reader: Reader, tensor: tf.Tensor) -> Build | None:
    """Returns how to build the square root of any tensor but a norm, less 1."""
    x = root_of(reader, tensor)
    if x is None or norm(reader, tensor) is not None:
        return None
    return lambda value: uncancelled.sqrt_minus_one(value(x))


def _of_sum(reader: Reader, tensor: tf.Tensor) -> Build | None:
    found = parts(reader, tensor)
    rest = [each for each in found if each.tensor is not None]
    if not rest or Part(1.0, None) not in found:
        return None
    return difference(reader, rest, tensor)


def difference(reader: Reader, found: Sequence[Part], like: tf.Tensor) -> Build:
    """Returns how to build a sum; of `a * f - a` as a times f less 1."""
    for part, other in (found, found[::-1]) if len(found) == 2 else ():
        build = common_factor(reader, part, other)
        if build is not None:
            factor = part.factor
            return lambda value: factor * build(value)
    return lambda value: total(found, value, like)


def common_factor(reader: Reader, part: Part, other: Part) -> Build | None:
    """Reads `c * a * f - c * a` of a function f that is 1 at 0.

    Returns:
      How to build `a * (f - 1)`; None for other parts.
    """
    if part.tensor is None or part.axes is not None:
        return None
    for function, rest in products(reader, reader.op(part.tensor)):
        if is_opposite(reader, other, part, rest):
            return times(rest, function)
    return None


def products(reader: Reader, op: tf.Operation) -> Iterator[tuple[Build, Product]]:
    """Yields how to build a factor less 1, and the product without the factor."""
    product = numbered(reader, op) if op.type in _PRODUCTS else None
    for place, each in enumerate(product.above if product is not None else ()):
        function = FUNCTIONS.get(reader.op(each).type)
        if product is not None and function is not None:
            above = [*product.above[:place], *product.above[place + 1 :]]
            yield _of_function(reader, each), product._replace(above=above)


def by_change(reader: Reader, tensor: tf.Tensor) -> Build | None:
    """Returns how to build `a - b * f(x)` from `a - b` where f is near 1.

    With a near b each digit of x would be lost.
    """
    found = parts(reader, tensor)
    for place, part in enumerate(found if len(found) > 1 else ()):
        others = [*found[:place], *found[place + 1 :]]
        if part.tensor is None or any(each.axes is not None for each in found):
            continue
        op = reader.op(part.tensor)
        if op.type in FUNCTIONS:
            alone = Product(1.0, [], [], [], {})
            return _changed(
                tensor, part, others, _of_function(reader, part.tensor), alone
            )
        for function, rest in products(reader, op):
            return _changed(tensor, part, others, function, rest)
    return None


def _changed(
    tensor: tf.Tensor,
    part: Part,
    others: Sequence[Part],
    of_function: Build,
    rest: Product,
) -> Build:
    def build(value: Value) -> tf.Tensor:
        plain, less_one = value(tensor), of_function(value)
        is_near = tf.abs(tf.stop_gradient(less_one)) < 0.5
        less_one = tf.where(is_near, less_one, tf.zeros_like(less_one))
        is_number = not rest.above and not rest.below
        scale = rest.factor if is_number else made(rest, value)
        start = total(others, value, tensor) + part.factor * scale
        change = part.factor * scale * less_one
        return tf.where(is_near, unchanged_values.held(start) + change, plain)

    return build


def numbered(
    reader: Reader, op: tf.Operation, wholes: Sequence[tf.Tensor] = ()
) -> Product:
    """Takes a product apart, but not `wholes`, and the numbers in it out."""
    product = factored(reader, op, wholes)
    factor, sides = product.factor, []
    for side, sign in ((product.above, 1), (product.below, -1)):
        numbers = [reader.scalar(x) if x.shape.rank == 0 else None for x in side]
        sides.append([x for x, n in zip(side, numbers, strict=True) if not n])
        factor *= math.prod(n**sign for n in numbers if n)
    return product._replace(factor=factor, above=sides[0], below=sides[1])


def product_of(reader: Reader, tensor: tf.Tensor) -> Product:
    """Reads any tensor as a product of a number and other tensors."""
    found = numbered(reader, reader.op(tensor))
    is_product = found.above or found.below
    return found if is_product else found._replace(above=[tensor])


def _of_function(reader: Reader, tensor: tf.Tensor) -> Build:
    op = reader.op(tensor)
    return lambda value: FUNCTIONS[op.type](value(op.inputs[0]))


def times(rest: Product, less_one: Build) -> Build:
    """Returns how to build a product times a factor less 1."""
    if not rest.above and not rest.below:
        return lambda value: rest.factor * less_one(value)
    return lambda value: made(rest, value) * less_one(value)


def is_opposite(reader: Reader, other: Part, part: Part, rest: Product) -> bool:
    """Returns whether a part is the negative of a product times a part's factor."""
    if other.tensor is None or other.axes is not None:
        return False
    found = product_of(reader, other.tensor)
    size = other.factor * found.factor + part.factor * rest.factor
    cancels = abs(size) <= 1e-6 * abs(other.factor * found.factor)
    return cancels and are_alike(reader, found, rest)


def are_alike(reader: Reader, a: Product, b: Product) -> bool:
    """Returns whether two products differ by their numbers at most."""
    return all(
        sorted(map(reader.number, first)) == sorted(map(reader.number, second))
        for first, second in ((a.above, b.above), (a.below, b.below))
    )


def _of_quotient(
    reader: Reader, tensor: tf.Tensor, a: tf.Tensor, b: tf.Tensor, depth: int
) -> Build | None:
    above, below = parts(reader, a), parts(reader, b)
    left = merged(reader, [*above, *minus(below)])
    if not left:
        return None
    of_a, of_b = (_known_less_one(reader, each, depth - 1) for each in (a, b))

    rest = rest_of_root(reader, a, b)
    is_merged = len(left) < len(above) + len(below)
    is_merged &= not any(_cancels_root(reader, each) for each in (above, below))

    def top(value: Value) -> tf.Tensor:
        if rest is not None:
            return uncancelled.less_root(value(a), value(b), *rest(value))
        if is_merged:
            return difference(reader, left, tensor)(value)
        if of_a is not None and of_b is not None:
            return of_a(value) - of_b(value)
        return value(a) - value(b)

    return lambda value: uncancelled.quotient_minus_one(
        value(tensor), top(value), value(b)
    )


def _cancels_root(reader: Reader, found: Sequence[Part]) -> bool:
    """Returns whether a sum is a tensor less a root, which cancel."""
    tensors = [(each.factor, each.tensor) for each in found if each.tensor is not None]
    return any(
        factor * other < 0 and root_of(reader, tensor) is not None
        for factor, tensor in tensors
        for other, _ in tensors
    )


def rest_of_root(
    reader: Reader, x: tf.Tensor, root: tf.Tensor
) -> Callable[[Value], Sequence[tf.Tensor]] | None:
    """Returns how to build factors of y, of any tensor `sqrt(x * x + y)`."""
    inside = root_of(reader, root)
    found = [] if inside is None else parts(reader, inside)
    bases = [
        square_of(reader, each.tensor)
        if each.tensor is not None and each.factor == 1 and each.axes is None
        else None
        for each in found
    ]
    places = [i for i, base in enumerate(bases) if base is not None]
    own = next((i for i in places if reader.same(bases[i], x)), None)
    if own is None or len(found) < 2:
        return None
    rest = [*found[:own], *found[own + 1 :]]
    y = bases[1 - own] if len(found) == 2 else None
    if y is not None:
        base = y
        return lambda value: [value(base)] * 2
    return lambda value: [tf.cast(total(rest, value, value(x)), x.dtype)]


def _known_less_one(reader: Reader, tensor: tf.Tensor, depth: int) -> Build | None:
    """Returns how to build a tensor less 1, also of a number."""
    number = reader.scalar(tensor)
    # Less 1, two that are near 0 lose what they differ by.
    if reader.op(tensor).type in SATURATING:
        return None
    if number is None:
        return less_one(reader, tensor, depth)
    return lambda value: tf.constant(number - 1, value(tensor).dtype)


def _of_power(reader: Reader, tensor: tf.Tensor, depth: int) -> Build | None:
    op = reader.op(tensor)
    root, square = root_of(reader, tensor), square_of(reader, tensor)
    base = op.inputs[0] if op.type in {"Pow", "Rsqrt", *RECIPROCALS} else None
    base = root if root is not None else square if square is not None else base
    inner = None if base is None else less_one(reader, base, depth - 1)
    if base is None or inner is None:
        return None

    def build(value: Value) -> tf.Tensor:
        x, whole = inner(value), value(tensor)
        if root is not None:
            return uncancelled.root_minus_one(whole, x)
        if square is not None:
            return uncancelled.square_minus_one(whole, x)
        if op.type == "Rsqrt":
            return uncancelled.inverse_root_minus_one(whole, x)
        if op.type in RECIPROCALS:
            return uncancelled.quotient_minus_one(whole, -x, value(base))
        return uncancelled.power_minus_one(whole, x, value(op.inputs[1]))

    return build


def _of_product(reader: Reader, tensor: tf.Tensor, depth: int) -> Build | None:
    op = reader.op(tensor)
    if op.type != "Mul":
        return None
    a, b = (_factor_less_one(reader, *each, depth) for each in both_ways(op, "Mul"))
    if a is None or b is None:
        return None
    return lambda value: uncancelled.product_minus_one(
        value(tensor), a(value), b(value)
    )


def _factor_less_one(
    reader: Reader, factor: tf.Tensor, other: tf.Tensor, depth: int
) -> Build | None:
    """Returns how to build a factor less 1; any factor of a product with `1 + x`."""
    found = less_one(reader, factor, depth - 1)
    if found is not None or reader.constant(factor) is not None:
        return found
    is_sum = reader.op(other).type in SUMS
    if not is_sum or less_one(reader, other, depth - 1) is None:
        return None
    return lambda value: value(factor) - 1
