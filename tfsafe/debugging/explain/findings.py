"""Describes the origin of non-finite values as a finding."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe._report.records import Link, TensorStats
from tfsafe._report.text import capital
from tfsafe.debugging import values
from tfsafe.debugging.explain import causes, outside
from tfsafe.debugging.explain.evidence import Evidence
from tfsafe.debugging.explain.suggestions import (
    choice as suggestions,
    fixes,
    statements,
)
from tfsafe.debugging.explain.training import history
from tfsafe.debugging.explain.training.layers import Layers
from tfsafe.debugging.inspection import pictures
from tfsafe.debugging.tracing.lost_digits import (
    CANCELLATION,
    DRAWN,
    OVERFLOW,
    RECTIFIED,
    UNDERFLOW,
    Zero,
)
from tfsafe.debugging.tracing.origins import Origin, PathStep
from tfsafe.debugging.tracing.step import Step
from tfsafe.errors import Finding
from tfsafe.graph import OpFact, Place, locate, op_types

# Magnitude that values of a healthy training do not reach.
_EXPLODED = 1e6
# Number of steps of a long path that are kept from each of its ends.
_ENDS = 20
# A longer text is cut.
_LONGEST_TEXT = 60
_SINGULAR = op_types(OpFact.SINGULAR)
_REDUCTIONS = op_types(OpFact.REDUCES)
_SUMS = {"Add", "AddV2", "Sub"}
_APART = "tfsafe.stabilize(f) keeps the constants of a function or model f apart."
_RAN_AWAY = (
    "the loss scale ran away: it doubles after each dynamic_growth_steps finite steps, "
    "an infinite one cannot come back, and every step is skipped."
)
_GREW = (
    "values reach {:.1e} after {} iterations of the loop: bound what it carries, by "
    "tanh or a normalization, and begin with recurrent weights that keep its size, "
    "such as keras.initializers.Orthogonal(). If training has made the weights large, "
    "or is the loop, lower the learning rate or clip the gradients."
)
_LOSS_SCALE = (
    "set LossScaleOptimizer(optimizer, initial_scale=2.0**15), and more "
    "dynamic_growth_steps (2000 are usual). A scale that grows without an overflow "
    "means that the gradients are 0: look for dead units."
)

_CONSTANT = re.compile(fixes.CONSTANT)
_LOST = {
    UNDERFLOW: "underflows",
    CANCELLATION: "subtracts equal numbers",
    RECTIFIED: "is 0 for a negative input",
    OVERFLOW: "divides by infinity",
    DRAWN: "may draw it",
}
_FACTS = ("kind", "dtype", "count", "size", "index", "shape", "row")


def ordered(origins: Iterable[Origin]) -> list[Origin]:
    """Returns origins in order, first cause first.

    An infinity that the program wrote down comes after all that it computed.
    """
    return sorted(origins, key=lambda each: (each.is_intended, each.order))


def describe(
    origin: Origin,
    label: str = "",
    path: Sequence[PathStep] = (),
    met_next: Sequence[tuple[str, ...]] = (),
    layers: Layers | None = None,
) -> Finding:
    """Returns the finding for an origin."""
    layers = layers or Layers()
    value = values.numbers(origin.value)
    nonfinite = ~np.isfinite(value) if origin.births is None else origin.births
    index = values.first(nonfinite)
    facts: dict[str, Any] = {
        "kind": values.kind(value[nonfinite]),
        "dtype": values.array(origin.value).dtype.name,
        "count": int(nonfinite.sum()),
        "size": value.size,
        "index": index,
        "shape": tuple(int(size) for size in value.shape),
        "row": origin.row_of(index),
        "output": _stats(origin.holder, origin.value),
        "chain": _chain(origin, label, path, layers),
    }
    if origin.step is None:
        finding = outside.finding_of(origin, facts, label)
    else:
        finding = _from_operation(
            origin, origin.step, value, nonfinite, facts, met_next, layers
        )
    if "/dynamic_scale`" in f"{label} {finding.origin}":
        return dataclasses.replace(
            finding, cause=_RAN_AWAY, suggestion=_LOSS_SCALE, suggested_code=""
        )
    return finding


def _from_operation(
    origin: Origin,
    step: Step,
    value: np.ndarray,
    nonfinite: np.ndarray,
    facts: dict[str, Any],
    met_next: Sequence[tuple[str, ...]],
    layers: Layers,
) -> Finding:
    place = origin.place
    inputs = [values.numbers(each) for each in step.inputs if _is_numeric(each)]
    evidence = Evidence(
        inputs,
        value,
        nonfinite,
        facts["dtype"],
        place.scope,
        place.forward_op,
        _text_of(step, facts["index"]),
    )
    cause, fault = causes.cause_of(step.type, evidence)
    if step.type == "Const":
        cause, fault = "the program writes this constant.", "constant"
    is_known = fault not in {"overflow", "unknown"}
    if origin.zero and is_known and not _is_meant(origin.zero, step, place):
        cause = f"{cause} {_lost(origin.zero, layers, not step.name)}"
    if origin.absorbed_at is not None:
        cause = f"{cause} {_absorbed(*origin.absorbed_at)}"
    op_type = place.forward_op or step.type
    site, source = statements.within(place.site, op_type, origin.on_line)
    failure = suggestions.Failure(
        op_type,
        fault,
        bool(place.forward_op),
        facts["dtype"],
        origin.producers,
        source,
        place.scope,
        met_next,
        layers.class_of(place.scope, not step.name),
        facts["kind"],
        (place.site.path, place.site.line) if place.site else ("", 0),
        *(origin.zero[:2] if origin.zero else ("", "")),
        is_stable=place.is_stable,
        is_ragged=origin.is_ragged,
        is_library=place.is_library,
        above_one=any(np.any(each > 1) for each in inputs if each.dtype.kind == "f"),
        on_line=origin.on_line,
    )
    code, words, replaces, line = suggestions.fix_of(failure)
    if fault == "overflow":
        # A constant that is too large does not come from an explosion.
        computed = [
            values.numbers(each)
            for each, producer in zip(step.inputs, origin.producers, strict=False)
            if _is_numeric(each) and producer != "Const"
        ]
        is_constant = words == fixes.LOWEST or _CONSTANT.search(source)
        exploded = "" if is_constant else _exploded(computed, step.loops)
        if words == suggestions.SCALE:
            words = ""
        if exploded:
            # Begins in lower case like all fixes, unless it follows a sentence.
            words = f"{words} {capital(exploded)}" if words else exploded
        words = words or suggestions.SCALE
    return Finding(
        op_type=step.type,
        op_name=step.name,
        site=site,
        is_gradient=place.is_gradient,
        forward_op=place.forward_op,
        scope=place.scope,
        layer=layers.path_of(place.scope, not step.name),
        iteration=() if place.is_gradient else step.loops,
        cause=cause,
        suggested_code=code,
        replaces=replaces,
        replaced_line=line,
        suggestion=words,
        inputs=tuple(
            _stats(name, each)
            for name, each in _once(origin.names, _numbers_of(step))
            if _is_numeric(each)
        ),
        **facts,
    )


def _text_of(step: Step, index: tuple[int, ...]) -> str:
    """Returns the text that an operation reads a number from; empty without one."""
    if step.type not in causes.OF_TEXT:
        return ""
    text = tf.compat.as_text(values.array(step.inputs[0])[index])
    return text[:_LONGEST_TEXT]


def _is_numeric(value: Any) -> bool:
    return values.is_number(value) and value.dtype != tf.string


def _numbers_of(step: Step) -> Sequence[Any]:
    """Returns the inputs of an operation that it computes with, without the axes."""
    return step.inputs[:1] if step.type in _REDUCTIONS else step.inputs


def _once(names: Sequence[str], inputs: Sequence[Any]) -> Iterable[tuple[str, Any]]:
    """Returns inputs with their names, `x` of `x * x` once."""
    named = zip(names, inputs, strict=False)
    return {id(each): (name, each) for name, each in named}.values()


def _exploded(inputs: Sequence[np.ndarray], loops: Sequence[int]) -> str:
    """Names the learning rate, or the loop, where the inputs are unusually large."""
    floats = [np.abs(x[np.isfinite(x)]) for x in inputs if x.dtype.kind == "f"]
    largest = max((float(x.max()) for x in floats if x.size), default=0.0)
    if largest < _EXPLODED:
        return ""
    if loops and loops[-1]:
        return _GREW.format(largest, loops[-1])
    return (
        f"values of {largest:.1e} {history.EXPLODED} tfsafe.optimizers."
        "SafeOptimizer(optimizer) keeps one such step from reaching the weights."
    )


def _is_meant(zero: Zero, step: Step, place: Place) -> bool:
    """Returns whether a formula makes a zero as it should."""
    # That of a slope may subtract equal numbers itself, and `1 - mask` does; there the
    # infinity of the product is wrong.
    is_own = place.is_gradient and zero.place == place
    return is_own or (step.type == "Mul" and zero.kind == CANCELLATION)


def _lost(zero: Zero, layers: Layers, is_exact: bool) -> str:
    place = zero.place
    where = f" at {place.site.short_place}" if place.site else ""
    # The user's line only calls the model.
    layer = layers.path_of(place.scope, is_exact) if place.is_library else ""
    inside = f" inside {layer}" if layer else ""
    lost = f"overflows {zero.dtype}" if zero.dtype else _LOST[zero.kind]
    number = "number" if zero.dtype else "0"
    return f"The {number} comes from `{zero.type}`{where}{inside}, which {lost}."


def _absorbed(operation: str, place: Place) -> str:
    where = f" at {place.site.short_place}" if place.site else ""
    if operation in values.CHOICES:
        return f"`{operation}`{where} makes an integer of it, which hides it."
    return f"`{operation}`{where} turns it into 0, which is not the true quotient."


def _stats(name: str, value: Any) -> TensorStats:
    return pictures.stats_of(name, values.array(value))


def _chain(
    origin: Origin, label: str, path: Sequence[PathStep], layers: Layers
) -> tuple[Link, ...]:
    """Returns the path to a result, as plain data."""
    # A loop can make it very long: its beginning and its end say enough.
    short = [*path[:_ENDS], *path[max(_ENDS, len(path) - _ENDS) :]]
    links = [_link(each, layers) for each in short if values.is_float(each.value())]
    # The value is gone, or is a list in which a loop keeps what its gradient needs.
    if not links:
        return ()
    if origin.step is None:
        if path[0].type:
            # A variable was written in between.
            first = PathStep(None, lambda: origin.value, frozenset())
            links.insert(0, _link(first, layers))
        links[0] = dataclasses.replace(links[0], origin=origin.holder)
    end = dataclasses.replace(
        links[-1],
        op_type="",
        op_name="",
        site=None,
        scope="",
        layer="",
        origin=label,
    )
    return (*links, end)


def _link(step: PathStep, layers: Layers) -> Link:
    value = values.numbers(step.value())
    nonfinite = ~np.isfinite(value)
    place = step.place()
    return Link(
        step.type,
        step.name,
        values.kind(value[nonfinite]),
        int(nonfinite.sum()),
        value.size,
        shape=tuple(int(size) for size in value.shape),
        dtype=values.array(step.value()).dtype.name,
        site=place.site,
        scope=place.scope,
        layer=layers.path_of(place.scope, not step.name),
        is_gradient=place.is_gradient,
    )


def by_flag(
    op: tf.Operation, index: int, graphs: Sequence[tf.Graph], reason: str
) -> Finding:
    """Returns the finding for an operation whose flag is set."""
    place, layers = locate(op, graphs), Layers()
    fault = "domain" if op.type in _SINGULAR else "unknown"
    failure = suggestions.Failure(
        place.forward_op or op.type,
        fault,
        bool(place.forward_op),
        op.outputs[index].dtype.name,
        [tensor.op.type for tensor in op.inputs],
        place.site.source if place.site else "",
        place.scope,
        layer=layers.class_of(place.scope, is_exact=False),
        is_stable=place.is_stable,
        is_library=place.is_library,
    )
    code, words, replaces, line = suggestions.fix_of(failure)
    cause = f"its values are not known: {reason}"
    if constants := _merged_constants(op):
        cause = (
            "run one by one, its operations give finite values. TensorFlow's graph "
            f"optimizer or XLA adds {constants}."
        )
        words = f"{words} {_APART}".strip()
    return Finding(
        kind="NaN or Inf",
        op_type=op.type,
        op_name=op.name,
        dtype=op.outputs[index].dtype.name,
        count=0,
        size=0,
        index=(),
        site=place.site,
        is_gradient=place.is_gradient,
        forward_op=place.forward_op,
        scope=place.scope,
        layer=layers.path_of(place.scope, is_exact=False),
        cause=cause,
        suggested_code=code,
        replaces=replaces,
        replaced_line=line,
        suggestion=words,
    )


def _merged_constants(op: tf.Operation) -> str:
    """Names the constants in a nested sum that a compiler moves, and what it loses."""
    for tensor in op.inputs:
        outer = _constants(tensor.op)
        sums = [x.op for x in tensor.op.inputs if x.op.type in _SUMS]
        inner = [each for sum_ in sums for each in _constants(sum_)]
        if outer and inner:
            return (
                f"the constants {inner[0]:.4g} and {outer[0]:.4g} of its input first, "
                "which rounds the smaller one away"
            )
        if outer and sums:
            return (
                f"the constant {outer[0]:.4g} to one side of the difference in its "
                "input first, which rounds it away"
            )
    return ""


def _constants(op: tf.Operation) -> list[float]:
    """Returns the constants that an operation adds or subtracts."""
    if op.type not in _SUMS:
        return []
    known = [tf.get_static_value(each) for each in op.inputs]
    return [float(each) for each in known if each is not None and not np.ndim(each)]


def unexplained(label: str, value: Any, reason: str) -> Finding:
    """Returns the finding for a nonfinite result whose first cause was not found."""
    facts: dict[str, Any] = {"op_type": "", "op_name": "", "origin": label}
    facts["cause"] = f"the operation that made it could not be found: {reason}"
    finding = describe(Origin(0, value, holder=label))
    facts |= {name: getattr(finding, name) for name in (*_FACTS, "output")}
    return Finding(**facts)
