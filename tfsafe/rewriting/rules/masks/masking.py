"""Rules for values that are computed everywhere and used only in some places."""

from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import ADDITIONS, DIVISIONS, OpFact, op_types, upstream
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    exp_times,
    expm1_times,
)
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import (
    is_doubtful,
    is_dropped,
    is_regular,
    is_watched,
    may_overflow,
)
from tfsafe.rewriting.facts.tensors import Reader, both_ways, is_float
from tfsafe.rewriting.match.arithmetic import square_of
from tfsafe.rewriting.match.products import factored
from tfsafe.rewriting.match.trees import Tree, Trees
from tfsafe.rewriting.rules import references
from tfsafe.rewriting.rules.masks import singular_gradients

_COMPARISONS = op_types(OpFact.COMPARES)
_LOGIC = op_types(OpFact.LOGIC)
_EXPONENTIALS = op_types(OpFact.EXPONENTIAL)
# Besides exponentials that overflow, whose inverses do.
_UNDERFLOWING = frozenset({
    *("Cumprod", "Elu", "Erfc", "Igamma", "Igammac", "Pow", "Prod", "Sigmoid"),
    *("Softmax", "Softplus"),
})
# Those with a pole have rules of their own, in `singular_gradients`.
_CURVED = op_types(OpFact.CURVED) - {
    op_type for rule in singular_gradients.RULES for op_type in rule.op_types
}
# Sums and changes of shape between a mask and a softmax.
_CARRIERS = ADDITIONS | op_types(OpFact.RESHAPES) | {"Transpose", "Cast"}
_BINARY = {
    "Mul": unchanged_values.multiply,
    "SquaredDifference": unchanged_values.squared_difference,
}
_TIMES = {"Exp": exp_times, "Expm1": expm1_times}
# A number that an exponential is multiplied by, as the current of a diode.
_SMALL = 2.0**-10


def _match_mask(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    for x, number in both_ways(op, "Mul"):
        if _is_infinite(reader, number) and _may_be_mask(reader, x):
            return _times_infinity(x, number)
    for x, mask in both_ways(op, "Mul"):
        constant = reader.constant(mask)
        if not reader.is_scaled_mask(mask) or not _may_be_infinite(reader, x):
            continue
        if constant is not None and constant.all():
            continue
        compared = _compared(reader, mask, x)
        if compared is not None:
            return lambda value: _masked(value(x), value(mask), compared, value)
    return None


def _is_infinite(reader: Reader, tensor: tf.Tensor) -> bool:
    number = reader.scalar(tensor)
    return number is not None and bool(np.isinf(number))


def _may_be_mask(reader: Reader, x: tf.Tensor) -> bool:
    is_known = reader.constant(x) is not None
    return not is_known or (x.shape.rank != 0 and reader.is_mask(x))


def _times_infinity(x: tf.Tensor, number: tf.Tensor) -> Build:
    """Builds `x * inf`, an additive mask, with 0 where `x` is 0."""

    def build(value: Value) -> tf.Tensor:
        # The slope in the mask would be infinite everywhere.
        mask = tf.stop_gradient(value(x))
        product = mask * value(number)
        return tf.where(tf.equal(mask, 0), tf.zeros_like(product), product)

    return build


def _may_be_infinite(reader: Reader, x: tf.Tensor) -> bool:
    number = reader.constant(x)
    if number is not None:
        return not bool(np.isfinite(number.astype(np.float64)).all())
    return is_doubtful(reader, x) or _is_power(reader, x)


def _is_power(reader: Reader, x: tf.Tensor) -> bool:
    """Returns whether `x` is a square or a higher power, which may overflow."""
    op = reader.op(x)
    exponent = reader.scalar(op.inputs[1]) if op.type == "Pow" else None
    return square_of(reader, x) is not None or (exponent is not None and exponent > 1)


def _match_mask_over(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a mask, or a masked product, over what is 0 where the mask is."""
    x, y = op.inputs
    if is_regular(reader, op) or is_watched(reader, op):
        return None
    if reader.scalar(x) is not None:
        return None
    factors = [x]
    if reader.op(x).type == "Mul" and not reader.is_mask(x):
        factors = factored(reader, reader.op(x)).above
    masks = [
        (mask, compared)
        for mask in factors
        if reader.is_mask(mask) and reader.scalar(mask) is None
        for compared in [_compared(reader, mask, y)]
        if compared is not None
    ]

    def build(value: Value) -> tf.Tensor:
        below = value(y)
        inverse = unchanged_values.divide(tf.ones_like(below), below)
        for mask, compared in masks:
            inverse = _masked(inverse, value(mask), compared, value)
        return inverse if factors == [x] else value(x) * inverse

    return build if masks else None


def _match_masked_softmax(op: tf.Operation, reader: Reader) -> Build | None:
    logits = op.inputs[0]
    if is_watched(reader, op):
        return None
    if not _has_closed_places(reader, logits):
        return None
    return lambda value: ops.softmax(value(logits))


def _has_closed_places(reader: Reader, logits: tf.Tensor, depth: int = 4) -> bool:
    """Returns whether a mask sets logits to -inf."""
    op = reader.op(logits)
    if op.type in {"Select", "SelectV2"}:
        branches = op.inputs[1:]
        return any(
            _is_lowest(reader, each)
            or (depth > 0 and _has_closed_places(reader, each, depth - 1))
            for each in branches
        )
    if op.type == "Mul":
        return any(
            _is_lowest(reader, x) and _may_be_mask(reader, mask)
            for x, mask in both_ways(op, "Mul")
        )
    if op.type == "Log":
        return reader.is_mask(op.inputs[0]) or _is_of_integers(reader, op.inputs[0])
    if depth and op.type in _CARRIERS:
        return any(_has_closed_places(reader, each, depth - 1) for each in op.inputs)
    return False


def _is_of_integers(reader: Reader, tensor: tf.Tensor) -> bool:
    op = reader.op(tensor)
    return op.type == "Cast" and op.inputs[0].dtype.is_integer


def _is_lowest(reader: Reader, tensor: tf.Tensor) -> bool:
    number = reader.constant(tensor)
    return (
        number is not None
        and number.dtype.kind not in "OSUbcMm"
        and bool((number.astype(np.float64) == -np.inf).any())
    )


def _masked(
    x: tf.Tensor, mask: tf.Tensor, compared: list[tf.Tensor], value: Value
) -> tf.Tensor:
    unknown = tf.constant(False)
    for each in compared:
        unknown |= tf.math.is_nan(value(each))
    return unchanged_values.masked(x, mask, unknown)


def _compared(reader: Reader, mask: tf.Tensor, x: tf.Tensor) -> list[tf.Tensor] | None:
    """Returns the floating tensors whose comparison the mask is.

    A NaN in one of them makes the mask meaningless. None if one of them also leads to
    `x`, and its elements have other places in the mask.
    """
    behind = _behind(x)
    found = []
    queue = [(mask, True)]
    seen = set()
    while queue:
        tensor, in_place = queue.pop()
        if (tensor.name, in_place) in seen:
            continue
        seen.add((tensor.name, in_place))
        op = reader.value_source(tensor).op
        if op.type in _COMPARISONS and is_float(op.inputs[0]):
            if in_place:
                found += [x for x in op.inputs if reader.constant(x) is None]
            elif any(each.op.name in behind for each in op.inputs):
                return None
        else:
            stays = in_place and op.type in _LOGIC | {"Mul", "Sub"}
            queue += [(each, stays) for each in op.inputs]
    return found


def _behind(tensor: tf.Tensor) -> set[str]:
    """Returns the names of the operations, but constants, that `tensor` depends on."""
    ops = (each.op for each in upstream([tensor], lambda op: op.inputs))
    return {op.name for op in ops if op.type != "Const"}


def _match_exp_times(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    for product, factor in both_ways(op, "Mul"):
        constant = reader.scalar(factor)
        is_open = reader.constant(factor) is None and reader.op(factor).type != "Exp"
        # Next to a larger number a few exponents more are representable.
        if not (is_open or (constant and abs(constant) < _SMALL)):
            continue
        inner = reader.op(product)
        if (
            inner.type in _TIMES
            and may_overflow(reader, inner.inputs[0])
            and not _may_underflow(reader, factor)
        ):
            return _product(_TIMES[inner.type], inner.inputs[0], factor)
    return None


def _product(
    function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], x: tf.Tensor, y: tf.Tensor
) -> Build:
    return lambda value: function(value(x), value(y))


def _may_underflow(reader: Reader, factor: tf.Tensor) -> bool:
    """Returns whether a factor may be 0 although nothing that it is made of is.

    Its product with an infinite exponential is then any number.
    """
    made_of = upstream([factor], lambda op: list(filter(is_float, op.inputs)))
    return any(
        op.type in _UNDERFLOWING
        or (op.type in _EXPONENTIALS and may_overflow(reader, op.inputs[0]))
        for op in (each.op for each in made_of)
    )


def _match_silent(op: tf.Operation, reader: Reader) -> Build | None:
    if not _needs_silence(op, reader):
        return None
    if op.type == "Pow":
        return _silent_power(op, reader)
    if op.type in _BINARY:
        return lambda value: _BINARY[op.type](*(value(each) for each in op.inputs))
    raw = getattr(tf.raw_ops, op.type)
    function = unchanged_values.elementwise(
        lambda x: raw(**{op.op_def.input_arg[0].name: x})
    )
    return lambda value: function(value(op.inputs[0]))


def _silent_power(op: tf.Operation, reader: Reader) -> Build | None:
    # Of other powers the slope has a pole, which has a rule of its own.
    if not is_regular(reader, op) or reader.constant(op.inputs[1]) is None:
        return None
    x, exponent = op.inputs

    def build(value: Value) -> tf.Tensor:
        number = value(exponent)
        return unchanged_values.elementwise(lambda x: x**number)(value(x))

    return build if exponent.shape.rank == 0 else None


def _needs_silence(op: tf.Operation, reader: Reader) -> bool:
    if not is_dropped(reader, op):
        return False
    return any(is_doubtful(reader, each) for each in _factors(op, reader))


def _factors(op: tf.Operation, reader: Reader) -> Iterable[tf.Tensor]:
    """Yields the tensors that multiply an incoming gradient."""
    if op.type == "Mul":
        # What a constant is multiplied by is never multiplied by a gradient.
        for x, other in both_ways(op, "Mul"):
            if reader.constant(other) is None:
                yield x
    else:
        yield from op.inputs


RULES = (
    Rule(
        name="mask-after",
        before="mask * f(x), (1 - mask) * -inf",
        after="where(mask, f(x), 0)",
        fails_when="f(x) is not finite where the mask is 0; -1e9 is -inf in float16",
        reference=references.ZERO_UPSTREAM,
        op_types=["Mul"],
        match=_match_mask,
    ),
    Rule(
        name="mask-over",
        before="mask / f(x)",
        after="where(mask, 1 / f(x), 0)",
        fails_when="f(x) is 0 where the mask is",
        reference=references.ZERO_UPSTREAM,
        op_types=DIVISIONS,
        match=_match_mask_over,
    ),
    Rule(
        name="softmax-of-masked",
        before="softmax(where(mask, x, -inf)), softmax(x + log(mask))",
        after="ops.softmax(where(mask, x, -inf)), ops.softmax(x + log(mask))",
        fails_when="a row is masked altogether",
        reference="tfsafe.ops.softmax",
        op_types=["Softmax"],
        match=_match_masked_softmax,
    ),
    Rule(
        name="exp-times",
        before="exp(x) * y, (exp(x) - 1) * y",
        after="exp(x / 2) * (exp(x / 2) * y) where the exponential overflows",
        fails_when="exp(x) overflows and the product does not",
        reference="exp(x) = exp(x / 2)^2",
        op_types=["Mul"],
        match=_match_exp_times,
    ),
    Rule(
        name="multiply-no-nan",
        before="multiply_no_nan(x, y)",
        after="ops.multiply_no_nan(x, y)",
        fails_when="a zero incoming gradient gives 0 times infinity",
        reference="tfsafe.ops.multiply_no_nan",
        match=Trees(Tree(("MulNoNan", "x", "y"), ops.multiply_no_nan)),
        changes="gradient",
    ),
    Rule(
        name="unused-branch",
        before="where(c, f(x), y)",
        after="the same; f's gradients are 0 for a zero incoming gradient",
        fails_when="f is not finite where it is not used",
        reference=references.ZERO_UPSTREAM,
        op_types=sorted({*_CURVED, *_BINARY, "Pow"}),
        match=_match_silent,
    ),
)
