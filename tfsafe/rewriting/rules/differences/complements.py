"""Rules for 1 minus a product or a power that is near 1."""

from collections.abc import Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas.differences import tangents
from tfsafe.rewriting.analysis.near_one import FUNCTIONS, SATURATING, less_one
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space.analysis import MOVERS
from tfsafe.rewriting.log_space.form import with_inputs
from tfsafe.rewriting.match.arithmetic import is_sum, number
from tfsafe.rewriting.match.linear import Mixture, mixture_of
from tfsafe.rewriting.match.trees import Tree, Trees

# A base of these types, less 1, may be known.
_KNOWN = FUNCTIONS.keys() | SATURATING.keys() | {"Mul", "Pow", "Square"}


def _match_product(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `1 - cumprod(1 - x)`, `1 - prod(1 - x)` and `prod(1 + x) - 1`."""
    if number(reader, *op.inputs) == 1:
        return _complement(reader, op.inputs[1])
    if op.type == "Sub" and number(reader, *reversed(op.inputs)) == 1:
        found = _complement(reader, op.inputs[0])
        return None if found is None else lambda value: -found(value)
    return None


def _complement(reader: Reader, tensor: tf.Tensor) -> Build | None:
    """Returns what builds 1 minus a product, which other operations may move."""
    product = reader.op(tensor)
    if product.type in MOVERS or product.type in {"ConcatV2", "Pack", "Pad", "PadV2"}:
        return _of_moved(reader, product)
    mixture = mixture_of(reader, product)
    if mixture is not None:
        return _of_mixture(reader, mixture)
    if product.type not in {"Cumprod", "Prod"}:
        return None
    factor = reader.op(product.inputs[0])
    rank = product.inputs[0].shape.rank
    axes = reader.axes(product.inputs[1], rank)
    if not axes or rank is None:
        return None
    is_complement = factor.type == "Sub" and number(reader, *factor.inputs) == 1
    added = _added_to_one(reader, factor)
    x = factor.inputs[1] if is_complement else product.inputs[0]
    like = product.inputs[0]

    def argument(value: Value) -> tf.Tensor:
        if added is not None:
            return tf.zeros_like(value(like)) - value(added)
        if not is_complement:
            return 1 - value(x)
        return value(x) + tf.zeros_like(value(like))

    if product.type == "Prod":
        keepdims = product.get_attr("keep_dims")
        return lambda value: tangents.one_minus_prod_of_complement(
            argument(value), axes, keepdims
        )
    order = product.get_attr("exclusive"), product.get_attr("reverse")
    return lambda value: tangents.one_minus_cumprod_of_complement(
        argument(value), axes[0], *order
    )


def _of_mixture(reader: Reader, mixture: Mixture) -> Build | None:
    """Returns what builds 1 minus `c + (1 - c) * p`, which is `(1 - c) * (1 - p)`."""
    if len(mixture.above) != 1 or mixture.below:
        return None
    (p,) = mixture.above
    op, inner = reader.op(p), _complement(reader, p)

    def rest(value: Value) -> tf.Tensor:
        if inner is not None:
            return inner(value)
        if op.type == "Sigmoid":
            return ops.sigmoid(-value(op.inputs[0]))
        return 1 - value(p)

    return lambda value: value(mixture.rest) * rest(value)


def _added_to_one(reader: Reader, op: tf.Operation) -> tf.Tensor | None:
    """Recognises `1 + x`; returns `x`."""
    for x, one in both_ways(op) if is_sum(op) else ():
        if number(reader, one, x) == 1 and reader.constant(x) is None:
            return x
    return None


def _of_moved(reader: Reader, op: tf.Operation) -> Build | None:
    if op.type == "StopGradient":
        return None
    places: Sequence[int] = MOVERS.get(op.type, (0,))
    if op.type in {"ConcatV2", "Pack"}:
        places = range(len(op.inputs) - (op.type == "ConcatV2"))
    found = {i: _complement(reader, op.inputs[i]) for i in places}
    beyond = reader.scalar(op.inputs[2]) if op.type == "PadV2" else 0.0
    if not any(found.values()) or beyond is None:
        return None

    def build(value: Value) -> tf.Tensor:
        inputs = {
            i: 1 - value(op.inputs[i]) if each is None else each(value)
            for i, each in found.items()
        }
        if op.type in {"Pad", "PadV2"}:
            return tf.pad(inputs[0], value(op.inputs[1]), constant_values=1 - beyond)
        return with_inputs(op, value, inputs)

    return build


_POWERS = Trees(
    Tree(
        ("Sub", 1, ("Pow", ("Sub", 1, "x"), "y")),
        tangents.one_minus_power_of_complement,
    ),
    Tree(
        ("Sub", 1, ("Pow", ("Add", 1, "x"), "y")),
        lambda x, y: tangents.one_minus_power_of_complement(-x, y),
    ),
    Tree(
        ("Sub", 1, ("Pow", ("Div", "x", "z"), "y")),
        tangents.one_minus_power_of_quotient,
    ),
    Tree(("Sub", 1, ("Pow", "x", "y")), tangents.one_minus_power),
    Tree(
        ("Log1p", ("Neg", ("Pow", ("Sub", 1, "x"), "y"))),
        tangents.log_one_minus_power_of_complement,
    ),
    Tree(("Log1p", ("Neg", ("Pow", "x", "y"))), tangents.log_one_minus_power),
)


def _match_power(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `1 - x ** y`, but not the `1 - beta ** step` of optimizers."""
    # It is never near 0, and their steps are to be those of a plain run.
    for power in map(reader.op, op.inputs):
        if power.type != "Pow":
            continue
        base, exponent = power.inputs[0], reader.op(power.inputs[1])
        if reader.scalar(base) is not None:
            if exponent.type == "Cast" and exponent.inputs[0].dtype.is_integer:
                return None
        # Of `1 - exp(x) ** y`, the difference of the base from 1 is known.
        elif reader.op(base).type in _KNOWN and less_one(reader, base) is not None:
            return None
    return _POWERS(op, reader)


RULES = (
    Rule(
        name="complement-of-product",
        before="1 - cumprod(1 - x), 1 - prod(1 - x), prod(1 + x) - 1, "
        "1 - (c + (1 - c) * p)",
        after="-ops.expm1(cumsum(ops.log1p(-x))) where the product is near 1, "
        "(1 - c) * (1 - p)",
        fails_when="the product is near 1",
        reference="tfsafe.ops.expm1",
        op_types=("Sub",),
        match=_match_product,
    ),
    Rule(
        name="complement-of-power",
        before="1 - x ** y, 1 - (1 - x) ** y, 1 - (a / b) ** y, log1p(-x ** y)",
        after="-ops.expm1(y * log(x)) where the power is near 1",
        fails_when="the power is near 1",
        reference="tfsafe.ops.expm1",
        op_types=tuple(_POWERS.op_types),
        match=_match_power,
    ),
)
