"""Rules for sums and means of reciprocals, inverted."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe.graph import RECIPROCALS
from tfsafe.ops.formulas.out_of_range.harmonic import (
    harmonic_mean,
    harmonic_sum,
    parallel,
    saturation,
)
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_regular, is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import beside_number, number
from tfsafe.rewriting.match.products import factored, inverted, made
from tfsafe.rewriting.match.reductions import reduction
from tfsafe.rewriting.match.trees import Tree, Trees


def _match_harmonic(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `n / sum(1 / x)` and means; `n / (1 / x - 1 / y)` is a fixed tree."""
    if is_watched(reader, op):
        return None
    pair = _PARALLEL(op, reader) or _match_saturation(op, reader)
    if pair is not None:
        return pair
    factor = number(reader, op.inputs[0], op.inputs[-1])
    if op.type in RECIPROCALS:
        factor = 1.0
    formula, total = harmonic_sum, reduction(reader, op.inputs[-1], "Sum")
    if total is None:
        formula, total = harmonic_mean, reduction(reader, op.inputs[-1], "Mean")
    if total is None or factor is None:
        return None
    inner = inverted(reader, reader.op(total.x))
    if inner is None or inner.factor != 1:
        return None

    def build(value: Value) -> tf.Tensor:
        whole = formula(value(inner.tensor), total.axes)
        shaped = whole if total.keepdims else precision.drop(whole, total.axes)
        return shaped if factor == 1 else factor * shaped

    return build


def _match_saturation(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `a / (1 + k / x)`."""
    found = next(beside_number(reader, op.inputs[-1]), None)
    if found is None:
        return None
    rest, offset = found
    if not offset or is_regular(reader, reader.op(rest.tensor)):
        return None
    product = factored(reader, reader.op(rest.tensor))
    if len(product.below) != 1 or reader.constant(product.below[0]) is not None:
        return None
    (x,) = product.below
    above = product._replace(factor=rest.factor * product.factor, below=[])
    top = None if op.type in RECIPROCALS else op.inputs[0]
    # `(s / n) / (1 + s / n)` is infinity over infinity.
    if top is not None and factored(reader, reader.op(top)).below:
        return None

    def build(value: Value) -> tf.Tensor:
        below = value(x)
        k = made(above, value) if above.above else tf.constant(above.factor, x.dtype)
        found = saturation(k, below, offset)
        return found if top is None else value(top) * found

    return build


def _difference(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return parallel(x, -y)


def _times(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """Returns a function of a factor and of what `function` takes."""
    return lambda factor, *tensors: factor * function(*tensors)


_INVERSES = [(("Div", 1, name), ("Reciprocal", name)) for name in ("x", "y")]
_PARALLEL = Trees(
    *(
        Tree((*whole, (sign, one, other)), wrapped)
        for sign, function in (("Add", parallel), ("Sub", _difference))
        for whole, wrapped in (
            (("Div", 1), function),
            (("Reciprocal",), function),
            (("Div", "#n"), _times(function)),
        )
        for one in _INVERSES[0]
        for other in _INVERSES[1]
    )
)


RULES = (
    Rule(
        name="harmonic-sum",
        before="n / (1 / a + 1 / b), n / (1 / a - 1 / b), n / sum(1 / x), "
        "n / mean(1 / x), a / (1 + k / x)",
        after="the same with its slopes at 0",
        fails_when="one of them is 0, or its square underflows: the slope is 0 times "
        "infinity",
        reference="the limit",
        op_types=("Div", "Inv", "RealDiv", "Reciprocal"),
        match=_match_harmonic,
    ),
)
