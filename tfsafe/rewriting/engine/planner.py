"""Chooses which operations of a traced function to replace."""

import dataclasses
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe._faults import warn_of_fault
from tfsafe.graph import is_optimizer_of_keras, live_operations
from tfsafe.rewriting.engine.gradient_requests import Request, inside, makers
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.engine.tape_recording import Recording
from tfsafe.rewriting.facts.forms import Forms
from tfsafe.rewriting.facts.spellings import respell
from tfsafe.rewriting.facts.tensors import Reader, is_float

# Calls: a hundred steps of a loop that a program unrolls take about 6,000.
_DEEPEST = 10_000
# No gradient goes through them.
_NO_SLOPES = frozenset({"OnesLike", "StopGradient", "ZerosLike"})


class Rewrite(NamedTuple):
    """One operation that was replaced.

    Attributes:
      rule: The rule that was applied.
      op: The replaced operation, in the graph that was read.
    """

    rule: Rule
    op: tf.Operation

    @property
    def key(self) -> tuple[str, str]:
        """What names the rewrite in another trace of the same function."""
        return self.rule.name, self.op.name


@dataclasses.dataclass(frozen=True)
class _Inside:
    """Returns counterparts as the default graph has them.

    Those of one graph are equal, so that `once` builds a part for all of its rewrites.
    """

    value: Value
    reader: Reader

    def __call__(self, tensor: tf.Tensor) -> tf.Tensor:
        return inside(self.value(self.reader.written(tensor)))


class _Fitting(NamedTuple):
    """A rule that fits an operation, as a reader sees it."""

    rule: Rule
    build: Build
    reader: Reader


class Planner:
    """Plans, graph by graph, how to replace operations."""

    def __init__(
        self,
        rules: Sequence[Rule],
        recording: Recording,
        skipped: Collection[tuple[str, str]] = (),
    ):
        self._recording = recording
        self._skipped = skipped
        self._names = {rule.name for rule in rules}
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            for op_type in rule.op_types:
                self._rules.setdefault(op_type, []).append(rule)
        self._rewrites: dict[tuple[int, str], Rewrite] = {}

    def rewrites(self, graphs: Iterable[tf.Graph]) -> list[Rewrite]:
        """Returns the rewrites so far.

        Args:
          graphs: The graphs that were emitted, in the order to list them in; others,
            such as those of gradients, come after them.
        """
        rest = dict(self._rewrites)
        keys = [(id(each), op.name) for each in graphs for op in each.get_operations()]
        listed = [rest.pop(key) for key in keys if key in rest]
        return [*listed, *rest.values()]

    def plan(
        self, graph: tf.Graph, wanted: Collection[int] | None = None
    ) -> dict[str, Callable[[Value], Any]]:
        """Returns makers for the operations to replace in a graph, by name.

        Args:
          graph: The graph.
          wanted: Positions of its outputs that are wanted; None for all.
        """
        requests = self._recording.requests(graph)
        answers = makers(requests, lambda request, value: request.answer(value))
        operations, read = live_operations(
            graph,
            {mark.op.name: r.reads() for r in requests for mark in r.marks},
            wanted,
        )
        kept = {name for request in requests for name in request.kept()}
        facts = graph, operations, self._names, kept, read
        reader, usual = Reader(*facts), Reader(*facts)
        respelled = respell(reader, usual)
        differentiable = _differentiable(graph, requests)
        plan: dict[str, Callable[[Value], Any]] = {}
        forms, plain = Forms(reader), set()
        for op in operations:
            is_respelled = op.name in respelled
            if not is_respelled and op.type not in self._rules:
                continue
            if not any(map(is_float, op.outputs)):
                continue
            # By names go what a rewrite must keep and which rewrites are not wanted.
            form = None if kept or self._skipped else forms.of(op)
            key = op.name in differentiable, form
            if form is not None and key in plain:
                continue
            found = self._first(op, reader, key[0])
            if is_respelled:
                found = self._better(found, self._first(op, usual, key[0]), op)
            if found is None:
                plain.add(key)
            elif not is_optimizer_of_keras(op):
                plan[op.name] = self._maker(op, found)
        return plan | answers

    def _better(
        self, written: _Fitting | None, usual: _Fitting | None, op: tf.Operation
    ) -> _Fitting | None:
        """Returns the rule to apply, of those for both spellings."""
        if usual is None or usual.rule.changes == "gradient":
            # The bits of the value stay.
            return written
        if written is None or usual.reader.usual(op) is not op:
            return usual
        order = self._rules[op.type].index
        return usual if order(usual.rule) <= order(written.rule) else written

    def _first(
        self, op: tf.Operation, reader: Reader, differentiable: bool
    ) -> _Fitting | None:
        """Returns the first rule that fits an operation."""
        seen = reader.usual(op)
        for rule in self._rules.get(seen.type, ()):
            if rule.changes == "gradient" and not differentiable:
                continue
            if self._skipped and Rewrite(rule, op).key in self._skipped:
                continue
            build = self._matched(rule, seen, reader)
            if build is not None:
                return _Fitting(rule, build, reader)
        return None

    def _matched(self, rule: Rule, op: tf.Operation, reader: Reader) -> Build | None:
        try:
            build = rule.match(op, reader)
            kept = reader.kept
            is_allowed = build is None or not kept or _keeps(op, build, reader)
        except Exception as error:
            warn_of_fault(f"the rule {rule.name!r}", error)
            return None
        return build if is_allowed else None

    def _maker(self, op: tf.Operation, found: _Fitting) -> Any:
        rule, build, reader = found

        def make(value: Value) -> Sequence[tf.Tensor]:
            # A branch captures what it reads from outside, because gradient functions
            # in the branch hold its own tensor. The result is a copy, so that it is
            # distinct from the tensors that it is made of.
            built = _deeply(build, _Inside(value, reader))
            outputs = built if isinstance(built, list) else [built]
            made = [tf.identity(each) for each in outputs]
            for each, like in zip(made, op.outputs, strict=False):
                each.set_shape(like.shape)
                if each.dtype != like.dtype:
                    raise TypeError(f"{each.dtype.name} in place of {like.dtype.name}")
            self._rewrites[id(op.graph), op.name] = Rewrite(rule, op)
            return made

        if rule.changes == "gradient":
            make.reads = op.inputs  # type: ignore[attr-defined]
        return make


def _deeply(build: Build, value: Value) -> Any:
    """Builds a formula of any length: each of its parts builds those before it."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEEPEST))
    try:
        return build(value)
    finally:
        sys.setrecursionlimit(limit)


def _differentiable(graph: tf.Graph, requests: Sequence[Request]) -> set[str]:
    """Returns the names of the operations that may be differentiated.

    They lead to a target of a tape or to a result of the function; the arithmetic of an
    optimizer does not.
    """
    queue = [*graph.outputs, *(each for r in requests for each in r.asked.targets)]
    found = {mark.op.name for request in requests for mark in request.marks}
    while queue:
        op = queue.pop().op
        if op.name not in found:
            found.add(op.name)
            queue.extend(op.inputs)
    return found


def _keeps(op: tf.Operation, build: Build, reader: Reader) -> bool:
    """Returns whether a rewrite drops none of the tensors to keep.

    The rewrite is built once in the graph that is read, without effect, to find what it
    differentiates.
    """
    with op.graph.as_default():
        made = tf.nest.flatten(build(reader.written))
    used = _reached(made, lambda x: x.op.name in reader.names or not _has_slope(x))
    dropped = _reached(op.inputs, lambda x: x.name in used) - used
    return dropped.isdisjoint(reader.kept)


def _has_slope(tensor: tf.Tensor) -> bool:
    is_number = tensor.dtype.is_floating or tensor.dtype.is_complex
    return is_number and tensor.op.type not in _NO_SLOPES


def _reached(
    tensors: Iterable[tf.Tensor], is_end: Callable[[tf.Tensor], bool]
) -> set[str]:
    """Returns the names of some tensors and of what they depend on, up to ends."""
    queue, seen = list(tensors), set()
    while queue:
        tensor = queue.pop()
        if tensor.name not in seen:
            seen.add(tensor.name)
            queue += () if is_end(tensor) else tensor.op.inputs
    return seen
