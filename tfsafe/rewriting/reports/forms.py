"""Runs the forms of one call of a function on the same state, for a comparison."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe._limits import LIMITS
from tfsafe.graph import Emission, is_call, written_inputs
from tfsafe.rewriting.engine.function import collected, stabilized
from tfsafe.rewriting.engine.planner import Rewrite
from tfsafe.rewriting.engine.rule import Rule, Value
from tfsafe.rewriting.facts.tensors import NARROW

_WIDE = tf.float64
_ENUMS = frozenset(dtype.as_datatype_enum for dtype in NARROW)
_HELD = (tf.resource, tf.variant)
# Their numbers are the same in each dtype only if drawn or read in one dtype.
_NOT_WIDENED = ("Bitcast", "Const", "Random", "Stateful", "Multinomial")


def widened(
    graph: tf.Graph, inputs: Sequence[Any], variables: Sequence[tf.Variable] = ()
) -> list[tf.Tensor]:
    """Emits a graph with its arithmetic in float64.

    Constants, random numbers and variables keep the values that they have in the dtype
    of the graph. What has no kernel in float64 is computed in its own dtype.

    Args:
      graph: Graph of a traced function.
      inputs: One tensor for each of `graph.inputs`.
      variables: Those of the function, to take gradients by.

    Returns:
      One tensor for each of `graph.outputs`, the floating ones in float64.
    """
    return Emission(plan=_plan).emit(graph, [_wide(x) for x in inputs], variables)


def _plan(graph: tf.Graph, _: Any) -> dict[str, Callable[[Value], Sequence[tf.Tensor]]]:
    return {
        op.name: _Copy(op)
        for op in graph.get_operations()
        if not is_call(op)
        and any(_is_narrow(each) for each in [*op.inputs, *op.outputs])
    }


def _is_narrow(tensor: Any) -> bool:
    return tensor.dtype in NARROW


def _wide(tensor: Any) -> Any:
    return tf.cast(tensor, _WIDE) if _is_narrow(tensor) else tensor


class _Copy:
    """Makes the outputs of one operation in float64."""

    def __init__(self, op: tf.Operation):
        self._op = op
        self._attributes = {
            name: value
            for name, value in op.node_def.attr.items()
            if not name.startswith("_")
        }

    def __call__(self, value: Value) -> Sequence[tf.Tensor]:
        op = self._op
        inputs = [value(each) for each in op.inputs]
        dtypes = [each.dtype for each in op.outputs]
        if self._can_widen():
            attributes = {name: _doubled(a) for name, a in self._attributes.items()}
            wide = [_WIDE if each in NARROW else each for each in dtypes]
            return self._made(inputs, wide, attributes)
        narrow = [
            tf.cast(each, original.dtype) if _is_narrow(original) else each
            for each, original in zip(inputs, op.inputs, strict=True)
        ]
        return [_wide(each) for each in self._made(narrow, dtypes, self._attributes)]

    def _made(
        self, inputs: Sequence[Any], dtypes: Sequence[tf.DType], attributes: Any
    ) -> Sequence[tf.Tensor]:
        op = self._op
        with tf.device(op.device):
            copy = _compat.create_op(
                op.type, list(inputs), list(dtypes), attrs=attributes, op_def=op.op_def
            )
        return copy.outputs

    def _can_widen(self) -> bool:
        op = self._op
        if any(mark in op.type for mark in _NOT_WIDENED):
            return False
        if any(each.dtype in _HELD for each in [*op.inputs, *op.outputs]):
            return False
        definition = op.op_def
        arguments = [*definition.input_arg, *definition.output_arg]
        if any(each.type in _ENUMS for each in arguments):
            return False
        double = _WIDE.as_datatype_enum
        return all(
            not each.allowed_values.list.type or double in each.allowed_values.list.type
            for each in definition.attr
            if each.name in self._attributes
            and self._attributes[each.name].type in _ENUMS
        )


def _doubled(attribute: Any) -> Any:
    """Returns an attribute with float64 in the place of narrower dtypes."""
    copy = type(attribute)()
    copy.CopyFrom(attribute)
    if copy.type in _ENUMS:
        copy.type = _WIDE.as_datatype_enum
    for index, each in enumerate(copy.list.type if copy.HasField("list") else ()):
        if each in _ENUMS:
            copy.list.type[index] = _WIDE.as_datatype_enum
    return copy


# The error of the stable form may be this many times that of the naive form.
_MARGIN = 8.0
# A value that is 0, and a slope, are noise up to this many roundings of a term.
_ROUNDINGS = 64.0
_WIDE_EPS = LIMITS["float64"].eps

# What a form returns, its gradients and what it writes, each with a label.
Outcome = Sequence[tuple[str, Any]]


@dataclasses.dataclass(frozen=True)
class Wrong:
    """An output, gradient or variable in which the stable form is wrong.

    Attributes:
      label: The output, gradient or variable.
      count: How many elements are wrong.
      size: How many elements it has.
      index: Index of the first wrong one.
      values: Values of the naive form, the stable form and the reference there.
    """

    label: str
    count: int
    size: int
    index: tuple[int, ...]
    values: tuple[float, float, float]

    def __str__(self) -> str:
        naive, stable, reference = self.values
        place = f" at {self.index}" if self.index else ""
        return (
            f"{self.label}{place}: {naive:.9g} as written, {stable:.9g} stabilised, "
            f"{reference:.9g} as written in float64 ({self.count} of {self.size} "
            "values)"
        )


class Forms:
    """The forms of one call, each run on the same state.

    Attributes:
      graph: The graph of the naive form.
      naive: Its outcome; None before `prepare`.
      reference: That of the naive form in float64.
    """

    def __init__(
        self,
        plain: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        scale: float = 1.0,
    ):
        self._plain = plain
        self._structure = tuple(args), dict(kwargs)
        leaves = tf.nest.flatten(self._structure)
        self._places = [i for i, each in enumerate(leaves) if _is_floating(each)]
        self._inputs = [
            tf.convert_to_tensor(leaves[i]) * tf.cast(scale, leaves[i].dtype)
            for i in self._places
        ]
        self._concrete = tf.function(
            lambda *inputs: self._call(plain, inputs), autograph=False
        ).get_concrete_function(*self._inputs)
        self._captured = self._concrete.captured_inputs
        self.graph = self._concrete.graph
        self._slots = [
            (self._captured[index - len(self._inputs)], dtype)
            for index, dtype in written_inputs(self.graph).items()
        ]
        self._is_scaled = scale != 1
        self._is_differentiable = True
        self.naive: Outcome = ()
        self.reference: Outcome = ()

    def prepare(self) -> None:
        """Runs the naive form, and the naive form in float64.

        Raises:
          tf.errors.OpError: If one of them does not run.
        """
        self.naive = self._outcome(lambda inputs: self._call(self._plain, inputs))
        wide = tf.function(
            lambda *inputs: widened(
                self.graph, [*inputs, *self._captured], self._concrete.variables
            ),
            autograph=False,
        )
        self.reference = self._outcome(lambda inputs: wide(*inputs))

    def wrong(
        self, rules: Sequence[Rule], skipped: Collection[tuple[str, str]]
    ) -> tuple[list[Wrong], list[Rewrite]]:
        """Runs the stable form without some rewrites.

        Returns:
          Where the form is wrong, and its rewrites.
        """
        function = stabilized(self._plain, rules, skipped=skipped)
        with collected() as found:
            stable = self._outcome(lambda inputs: self._call(function, inputs))
        return [
            wrong
            for (label, a), (_, b), (_, c) in zip(
                self.naive, stable, self.reference, strict=True
            )
            if tf.as_dtype(a.dtype).is_floating
            for wrong in self._differences(label, a, b, c)
        ], found

    def _differences(
        self, label: str, naive: Any, stable: Any, wide: Any
    ) -> list[Wrong]:
        """Compares one output, gradient or variable where both forms have a value."""
        limits = LIMITS[naive.dtype.name]
        a, b, c = (
            np.asarray(tf.cast(each, tf.float64)) for each in (naive, stable, wide)
        )
        # Elsewhere the formula is outside its domain.
        known = np.isfinite(a) & np.isfinite(c)
        size = np.abs(c[known]).max(initial=0.0)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            error = np.abs(a - c)
            if self._is_scaled and known.any():
                # The naive form may be right in one element by chance.
                lost = (error[known] / np.abs(c[known])).max(
                    where=c[known] != 0, initial=0
                )
                error = np.maximum(error, min(lost, 1.0) * np.abs(c))
            allowed = limits.eps**0.5 * size + _MARGIN * error
            allowed += _ROUNDINGS * limits.eps * self._noise(label, c)
            # False where the stable form is NaN, which is wrong too.
            fits = np.abs(b - c) <= allowed
        misses = np.argwhere(known & ~fits)
        if not len(misses):
            return []
        first = tuple(int(i) for i in misses[0])
        values = float(a[first]), float(b[first]), float(c[first])
        return [Wrong(label, len(misses), a.size, first, values)]

    def _noise(self, label: str, wide: np.ndarray) -> Any:
        """Returns the size of the terms that an element may be the rounding of."""
        sources = dict(zip(*self._sources(), strict=True))
        source = sources.get(label.removeprefix("gradient of "))
        scale = min(1.0, max(map(_largest, self._inputs), default=1.0))
        least = _ROUNDINGS * _WIDE_EPS * scale
        if not label.startswith("gradient of ") or source is None:
            return np.where(np.abs(wide) <= least, scale, 0.0)
        results = [x for key, x in self.reference if key.startswith("output")]
        size = max(map(_largest, results), default=0.0)
        return (size if size > least else scale) / (_largest(source) or 1.0)

    def _call(self, function: Any, inputs: Sequence[Any]) -> Any:
        leaves = tf.nest.flatten(self._structure)
        for place, value in zip(self._places, inputs, strict=True):
            leaves[place] = value
        args, kwargs = tf.nest.pack_sequence_as(self._structure, leaves)
        return function(*args, **kwargs)

    def _outcome(self, run: Callable[[Sequence[Any]], Any]) -> Outcome:
        """Returns what a form returns, its gradients and what it writes; undoes it."""
        before = self._read()
        try:
            with tf.GradientTape() as tape:
                tape.watch(self._inputs)
                results = [
                    each
                    for each in tf.nest.flatten(
                        run(self._inputs), expand_composites=True
                    )
                    if each is not None
                ]
            after = self._read()
            gradients = self._gradients(tape, results)
        finally:
            for (handle, _), value in zip(self._slots, before, strict=True):
                tf.raw_ops.AssignVariableOp(resource=handle, value=value)
        names = {id(each.handle): each.name for each in self._concrete.variables}
        labels = [f"output {i}" for i in range(len(results))]
        labels += [f"gradient of {name}" for name in self._sources()[0]]
        labels += [
            f"variable `{names.get(id(handle), 'of the function')}`"
            for handle, _ in self._slots
        ]
        return list(zip(labels, [*results, *gradients, *after], strict=True))

    def _sources(self) -> tuple[list[str], list[Any]]:
        if not self._is_differentiable:
            return [], []
        variables = [each for each in self._concrete.variables if each.trainable]
        labels = [f"input {i}" for i in range(len(self._inputs))]
        labels += [f"variable `{each.name}`" for each in variables]
        return labels, [*self._inputs, *variables]

    def _gradients(self, tape: tf.GradientTape, results: Sequence[Any]) -> list[Any]:
        targets = [each for each in results if tf.as_dtype(each.dtype).is_floating]
        try:
            found = tape.gradient(
                targets, self._sources()[1], unconnected_gradients="zero"
            )
        except (LookupError, ValueError, tf.errors.OpError):
            # Not everything that runs has a gradient.
            self._is_differentiable = False
            return []
        return [tf.convert_to_tensor(each) for each in found]

    def _read(self) -> list[tf.Tensor]:
        return [
            tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
            for handle, dtype in self._slots
        ]


def _is_floating(leaf: Any) -> bool:
    is_array = isinstance(leaf, tf.Tensor | np.ndarray | np.generic)
    return is_array and tf.as_dtype(leaf.dtype).is_floating


def _largest(x: Any) -> float:
    """Returns the largest finite magnitude in a tensor, 0 for other dtypes."""
    if not tf.as_dtype(x.dtype).is_floating:
        return 0.0
    sizes = np.abs(np.asarray(tf.cast(x, tf.float64)))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))
