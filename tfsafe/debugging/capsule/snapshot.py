"""Keeps a call that failed, with its variables, until its error is saved."""

import dataclasses
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfsafe._version import __version__
from tfsafe.debugging.capsule.archive import Writer
from tfsafe.debugging.capsule.records import GraphWriter, refused_in, structure_of
from tfsafe.debugging.explain.training import bookkeeping
from tfsafe.debugging.explain.training.layers import Layers
from tfsafe.debugging.state import variables
from tfsafe.debugging.state.variables import Slot
from tfsafe.debugging.tracing.results import Labels
from tfsafe.errors import NumericsError
from tfsafe.graph import Drawing, TracedCall, UnreadableError

FORMAT = 1


class Snapshot:
    """A call and the values that its variables had before it.

    The values are shared with the variables until these change: what is kept costs no
    memory before the next step.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        names: variables.Names,
        labels: Labels,
        is_xla: bool,
        drawn: Mapping[Drawing, Any],
        used: Sequence[tf.Variable],
    ):
        self._call = function, args, kwargs
        self._labels = labels
        self._is_xla = is_xla
        self._drawn = drawn
        leaves = tf.nest.flatten((args, kwargs))
        found = [*used, *(each for each in leaves if isinstance(each, tf.Variable))]
        slots = [variables.slot_of(each, names) for each in found]
        self._held = {id(slot.handle): (slot, slot.read()) for slot in slots}

    @property
    def refusal(self) -> str:
        """Why it cannot be saved; empty if it can."""
        function, args, kwargs = self._call
        leaves = tf.nest.flatten((args, kwargs))
        if any(isinstance(each, tf.distribute.DistributedValues) for each in leaves):
            return (
                "A step on several replicas cannot be saved. Train on one device to "
                "see the failure there."
            )
        try:
            graph, _ = TracedCall(function, args, kwargs).inside()
            refused = refused_in(graph, self._names_drawn())
        except UnreadableError as reason:
            return f"The step cannot be saved: {reason}."
        return refused and (
            f"The step uses {refused}, which a capsule does not hold: it calls Python, "
            "reads files or a data set, or needs several devices. Save an error of a "
            "step without it."
        )

    def write(
        self, path: str | os.PathLike[str], error: NumericsError, max_bytes: int
    ) -> None:
        """Writes the capsule; see `NumericsError.save`."""
        if refusal := self.refusal:
            raise ValueError(refusal)
        writer = Writer(max_bytes)
        writer.json("step", self._step(writer))
        writer.json("finding", finding_record(error))
        writer.write(path)

    def _step(self, writer: Writer) -> dict[str, Any]:
        function, args, kwargs = self._call
        call = TracedCall(function, args, kwargs)
        graph, inputs = call.inside()
        graphs = GraphWriter(graph, writer)
        labels = {
            id(value): path for path, value in self._labels(function, args, kwargs)
        }
        own = {
            id(tensor): labels.get(id(given), "")
            for given, tensor in zip(call.given, call.inputs, strict=False)
        }
        slots = [slot for slot, _ in self._held.values()]
        return {
            "graphs": graphs.records(),
            "places": graphs.places(),
            "layers": Layers().names_in(graphs.scopes()),
            "bookkeeping": sorted(bookkeeping.labels(slots)),
            "inputs": [self._input(writer, each, own) for each in inputs],
            "drawn": [
                [graphs.numbers[number], name, [writer.array(each) for each in values]]
                for (number, name), values in self._drawn.items()
                if number in graphs.numbers
            ],
            "result": structure_of(call.concrete.structured_outputs),
            "is_xla": self._is_xla,
        }

    def _names_drawn(self) -> dict[int, set[str]]:
        drawn: dict[int, set[str]] = {}
        for number, name in self._drawn:
            drawn.setdefault(number, set()).add(name)
        return drawn

    def _input(
        self, writer: Writer, value: Any, own: Mapping[int, str]
    ) -> dict[str, Any]:
        if id(value) in self._held:
            slot, before = self._held[id(value)]
            return {"variable": _named(slot), "value": writer.array(before)}
        if value.dtype in (tf.resource, tf.variant):
            # Only an operation whose outputs are known may read it.
            return {"handle": True}
        kind = "argument" if id(value) in own else "constant"
        return {kind: own.get(id(value), ""), "value": writer.array(value)}


def _named(slot: Slot) -> list[Any]:
    return [slot.name, slot.is_trainable]


def finding_record(error: NumericsError) -> dict[str, Any]:
    """Returns an error as plain data, with the versions that it was met with."""
    return {
        "format": FORMAT,
        "versions": {
            "tfsafe": __version__,
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "message": str(error),
        "findings": [dataclasses.asdict(each) for each in error.findings],
        "reached": list(error.reached),
        **{name: list(getattr(error, name)) for name in PAST},
        "facts": error.facts,
        "layers": [list(each) for each in error.layers],
        **{name: getattr(error, name) for name in TIME},
    }


# The numbers of the steps before.
PAST = ("losses", "gradient_norms", "largest_updates")
# What says when a step failed.
TIME = ("step", "epoch", "batch", "learning_rate", "loss_scale", "optimizers")
