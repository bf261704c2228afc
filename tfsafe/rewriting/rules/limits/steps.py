"""Matches formulas that vanish at one value of an argument, over the distance from it.

The formula may be made of any sums, products, powers, exponentials and logarithms:
`log(mean(exp(a * x))) / a`, `mean(x ** p) ** (1 / p)`,
`x ** (2 - p) / ((1 - p) * (2 - p)) - x ** (1 - p) / (1 - p)`.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe._gradients import known
from tfsafe.graph import (
    ADDITIONS,
    DIVISIONS,
    RECIPROCALS,
    SUMS,
    raw_kernel,
)
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.differences import changes
from tfsafe.ops.formulas.differences.changes import Change, Form
from tfsafe.ops.formulas.differences.divided_differences import (
    DIVIDED_DIFFERENCES,
    of_power,
)
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.exponential import exp
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.layouts import reshapes
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space.logsumexp_by_hand import any_logsumexp
from tfsafe.rewriting.match.arithmetic import number, terms
from tfsafe.rewriting.match.products import Product, factored, without
from tfsafe.rewriting.rules.limits.following import (
    REDUCED,
    Follower,
    Step,
    has_curve,
    step_of,
)

_PRODUCTS = DIVISIONS | {"Mul"}
# What a formula may end in that is 0 at one point.
_ROOTS = {"Expm1", "Log", "Log1p", *SUMS}


class _Maker:
    """Makes the changes of tensors in the new graph."""

    def __init__(self, follower: Follower, value: Value):
        self._follower = follower
        self._reader = follower.reader
        self._make = value
        self._made: dict[str, Change] = {}
        self._values: dict[str, tf.Tensor] = {}
        self._leaves: dict[str, tf.Tensor] = {}

    def case(
        self, formula: Callable[["_Maker"], Change], factor: float, divisor: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns where a formula over a divisor is a limit, and the limit."""
        whole = formula(self)
        names, leaves = list(self._leaves), list(self._leaves.values())

        def start(*copies: tf.Tensor) -> tf.Tensor:
            other = _Maker(self._follower, lambda x: self._values[x.name])
            other._leaves = dict(zip(names, copies, strict=True))
            return formula(other).start

        moved = tf.zeros_like(whole.start)
        if leaves:
            moved = known(moved, start, *leaves)
        return changes.limit(whole, factor, divisor, moved)

    def _value(self, tensor: tf.Tensor) -> tf.Tensor:
        if tensor.name not in self._values:
            self._values[tensor.name] = self._make(tensor)
        return self._values[tensor.name]

    def _fixed(self, tensor: tf.Tensor) -> tf.Tensor:
        if self._reader.constant(tensor) is not None:
            return precision.wide(self._value(tensor))
        if tensor.name not in self._leaves:
            self._leaves[tensor.name] = precision.wide(self._value(tensor))
        return self._leaves[tensor.name]

    def change(self, tensor: tf.Tensor) -> Change:
        """Returns the change of a tensor."""
        tensor = self._reader.source(tensor)
        if tensor.name not in self._made:
            self._made[tensor.name] = self._change(tensor)
        return self._made[tensor.name]

    def product(self, product: Product) -> Change:
        """Returns the change of a product."""
        above, below = (
            [self.change(each) for each in side]
            for side in (product.above, product.below)
        )
        one = tf.ones([], (*above, *below)[0].start.dtype)
        whole = functools.reduce(changes.product, above or [changes.fixed(one)])
        return changes.scaled(
            functools.reduce(changes.quotient, below, whole), product.factor
        )

    def _change(self, tensor: tf.Tensor) -> Change:
        reader, op, value = self._reader, tensor.op, self._value
        if self._follower.is_argument(tensor):
            start = self._follower.step.start
            return changes.of_argument(precision.wide(value(tensor)), start)
        if not self._follower.depends(tensor):
            return changes.fixed(self._fixed(tensor))
        summed = any_logsumexp(tensor, reader)
        if summed is not None:
            shape = tf.shape(value(summed.x))
            inner = self.change(summed.x)
            return changes.log_sum_exp(inner, summed.axes, summed.keepdims, shape)
        if op.type in REDUCED:
            axes = reader.axes(op.inputs[1], op.inputs[0].shape.rank) or ()
            shape, keepdims = tf.shape(value(op.inputs[0])), op.get_attr("keep_dims")
            inner = self.change(op.inputs[0])
            return inner.reduced(op.type == "Mean", axes, keepdims, shape)
        if reshapes(reader, op):
            old, new = (tf.shape(value(each)) for each in (op.inputs[0], tensor))
            return self.change(op.inputs[0]).reshaped(old, new)
        if op.type == "Pow":
            return self._power(op)
        return self._of(op, [self.change(each) for each in op.inputs])

    def _of(self, op: tf.Operation, inputs: Sequence[Change]) -> Change:
        if op.type in ADDITIONS:
            return changes.added(*inputs)
        if op.type == "Sub":
            return changes.added(inputs[0], changes.scaled(inputs[1], -1.0))
        if op.type == "Mul":
            return changes.product(*inputs)
        if op.type in DIVISIONS:
            return changes.quotient(*inputs)
        (x,) = inputs
        if op.type == "Neg":
            return changes.scaled(x, -1.0)
        one = tf.ones([], x.start.dtype)
        if op.type in RECIPROCALS:
            return changes.quotient(changes.fixed(one), x)
        divided, kernel = DIVIDED_DIFFERENCES[op.type], raw_kernel(op)
        return changes.function(divided, lambda start: kernel([start])[0], x, one)

    def _power(self, op: tf.Operation) -> Change:
        (base, order), depends = op.inputs, self._follower.depends
        if not depends(base):
            return changes.power_of_fixed(self.change(base).start, self.change(order))
        if depends(order):
            exponent = changes.logarithm(self.change(base))
            return changes.exponential(changes.product(self.change(order), exponent))
        divided = of_power(number(self._reader, order, base))
        power = self.change(order).start
        return changes.function(
            divided, lambda start: start**power, self.change(base), power
        )


def _steps(
    reader: Reader, divisors: Sequence[tf.Tensor], formula: tf.Tensor, start: float
) -> Iterator[Follower]:
    # A base is a curve by its logarithm.
    is_base = start == 1
    for divisor in divisors:
        step = step_of(reader, divisor)
        follower = None if step is None else Follower(reader, step)
        if follower is None or not follower.can_follow(formula):
            continue
        is_curve = follower.depends(formula) and (
            is_base or follower.is_curved(formula)
        )
        if is_curve and follower.may_start_at(formula, start):
            yield follower


def match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a product, a power or a sum."""
    # No formula without a curve has a limit, and each is taken apart to be read.
    if not has_curve(reader, op):
        return None
    if op.type == "Pow":
        return _of_power(op, reader)
    return _of_sum(op, reader) if op.type in SUMS else _of_product(op, reader)


def _root(reader: Reader, tensor: tf.Tensor) -> str:
    """Returns the type of the operation that a formula ends in."""
    op = reader.op(tensor)
    while op.type in REDUCED | {"Neg"} or reshapes(reader, op):
        op = reader.op(op.inputs[0])
    return op.type


def _of_product(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches products of a formula over steps of its arguments."""
    product = factored(reader, op)
    for formula in product.above if product.below else ():
        if _root(reader, formula) in _ROOTS:
            found = list(_steps(reader, product.below, formula, 0.0))
            if found:
                return _divided(product, formula, found, op)
    return None


def _divided(
    product: Product, formula: tf.Tensor, found: Sequence[Follower], op: tf.Operation
) -> Build:
    divisors = [each.step.divisor for each in found]
    inner = _without(product, [formula], [])._replace(above=[formula], factor=1.0)
    inner = inner._replace(below=divisors)
    rest = _without(product, [formula], divisors)

    def build(value: Value) -> tf.Tensor:
        cases, steps = [], []
        for each in found:
            others = _without(inner, [formula], [each.step.divisor])
            near, form = _case(each, lambda m: m.change(formula), others, value)
            # The limit at one divisor is divided by the others.
            for other in others.below:
                near &= tf.not_equal(value(other), 0)
            cases.append((near, form))
            steps.append(tf.abs(value(each.step.divisor) / each.step.factor))
        cases = changes.nearest(cases, steps)
        made = changes.selected(cases, lambda keep: _made(inner, value, keep))
        made = tf.cast(_made(rest, value, start=made), value(op.inputs[0]).dtype)
        if len(product.below) == 1 or op.type not in DIVISIONS:
            return made
        # One divisor at a time, it may overflow on the way.
        far = unchanged_values.divide(*map(value, op.inputs))
        return tf.where(tf.math.is_finite(made), made, far)

    return build


def _case(
    follower: Follower,
    formula: Callable[[_Maker], Change],
    rest: Product,
    value: Value,
) -> tuple[tf.Tensor, Form]:
    """Returns where a formula over a step, times the rest, is a limit, and that."""
    step = follower.step
    divisor = precision.wide(value(step.divisor))
    near, over = _Maker(follower, value).case(formula, step.factor, divisor)
    return near, lambda keep: _made(rest, value, keep, start=over)


def _made(
    product: Product,
    value: Value,
    keep: Callable[[tf.Tensor], tf.Tensor] = lambda x: x,
    start: tf.Tensor | None = None,
) -> tf.Tensor:
    """Builds a product in float32 or float64, times `start`."""
    above = [precision.wide(value(each)) for each in product.above]
    below = [precision.wide(value(each)) for each in product.below]
    whole = start
    for each in above:
        kept = keep(each)
        whole = kept if whole is None else unchanged_values.multiply(whole, kept)
    if whole is None:
        whole = tf.ones([], below[0].dtype)
    if product.factor != 1:
        whole = product.factor * whole
    for each in below:
        whole = unchanged_values.divide(whole, keep(each))
    return whole


def _without(
    product: Product, above: Sequence[tf.Tensor], below: Sequence[tf.Tensor]
) -> Product:
    return product._replace(
        above=without(product.above, above) or [],
        below=without(product.below, below) or [],
    )


def _of_power(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `f(a) ** (1 / a)`, f(0) being 1."""
    base, order = op.inputs
    inverse = reader.op(order)
    if inverse.type not in _PRODUCTS | {"Neg", *RECIPROCALS}:
        return None
    product = factored(reader, inverse)
    found = next(_steps(reader, product.below, base, 1.0), None)
    if found is None:
        return None
    rest = _without(product, [], [found.step.divisor])

    def build(value: Value) -> tf.Tensor:
        near, form = _case(
            found, lambda m: changes.logarithm(m.change(base)), rest, value
        )
        made = changes.selected(
            [(near, lambda keep: exp(form(keep)))],
            lambda keep: unchanged_values.pow(
                keep(precision.wide(value(base))), _made(product, value, keep)
            ),
        )
        return tf.cast(made, op.outputs[0].dtype)

    return build


class _Group(NamedTuple):
    """Terms of a sum with a divisor that is the same step.

    Attributes:
      follower: Of the step.
      places: Of the terms.
      products: The terms without the divisor.
    """

    follower: Follower
    places: Sequence[int]
    products: Sequence[Product]

    def case(self, value: Value, products: Sequence[Product]) -> tuple[tf.Tensor, Form]:
        """Returns where the terms have a limit, and the sum of all terms there."""
        rest = [each for i, each in enumerate(products) if i not in self.places]
        step = self.follower.step
        near, over = _Maker(self.follower, value).case(
            lambda maker: changes.added(*map(maker.product, self.products)),
            1.0,
            precision.wide(value(step.divisor)) / step.factor,
        )

        def form(keep: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
            made = [_made(each, value, keep) for each in rest]
            return functools.reduce(tf.add, made, over)

        return near, form


def _of_sum(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches terms that are infinite at one point, and finite together."""
    products = []
    for term in terms(reader, op.outputs[0]):
        inner = reader.op(term.tensor)
        product = factored(reader, inner) if inner.type in _PRODUCTS else None
        if product is None:
            product = Product(1.0, [term.tensor], [], [], {})
        products.append(product._replace(factor=product.factor * term.factor))
    if sum(bool(each.below) for each in products) < 2:
        return None
    groups = list(_groups(reader, products))
    if not groups:
        return None

    def build(value: Value) -> tf.Tensor:
        cases = [each.case(value, products) for each in groups]

        def plain(keep: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
            made = [_made(each, value, keep) for each in products]
            return functools.reduce(tf.add, made)

        return tf.cast(changes.selected(cases, plain), op.outputs[0].dtype)

    return build


def _groups(reader: Reader, products: Sequence[Product]) -> Iterator[_Group]:
    steps: list[tuple[int, Step]] = []
    for place, product in enumerate(products):
        found = [step_of(reader, each) for each in product.below]
        steps += [(place, each) for each in found if each is not None]
    done: list[tuple[int, float]] = []
    for _, step in steps:
        key = (reader.number(step.argument), step.start)
        if key in done:
            continue
        done.append(key)
        alike = {
            place: each
            for place, each in steps
            if (reader.number(each.argument), each.start) == key
        }
        inner = [
            _without(products[place], [], [each.divisor])._replace(
                factor=products[place].factor / each.factor
            )
            for place, each in alike.items()
        ]
        follower = Follower(reader, step)
        factors = [x for each in inner for x in (*each.above, *each.below)]
        is_followed = len(inner) > 1 and all(map(follower.can_follow, factors))
        if is_followed and any(map(follower.is_curved, factors)):
            yield _Group(follower, list(alike), inner)
