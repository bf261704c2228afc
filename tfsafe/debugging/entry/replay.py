"""Replays a capsule: the step that failed, without its script and its data."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe.debugging import values
from tfsafe.debugging.capsule.archive import Reader
from tfsafe.debugging.capsule.records import graphs_of, structured
from tfsafe.debugging.capsule.snapshot import FORMAT, PAST, TIME
from tfsafe.debugging.checks.options import Level, options_of
from tfsafe.debugging.checks.traced.compiled import CompiledCheck
from tfsafe.debugging.explain.training import bookkeeping, history, layers
from tfsafe.debugging.explain.training.context import HEALTHS
from tfsafe.debugging.state import variables
from tfsafe.errors import NumericsError
from tfsafe.graph import Emission, Plan, Value, raw_kernel

_LARGEST = 2**32
# Facts that differ from those of the run.
_OWN = ("versions", "device")


def replay(
    path: str | os.PathLike[str],
    *,
    checks: Level = "watch",
    transform: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    max_bytes: int = _LARGEST,
) -> NumericsError | None:
    """Runs the step of a capsule under the checks, from its own state and batch.

    A capsule is what `NumericsError.save` writes. It needs neither the script nor the
    data, and executes no Python of the program: its graphs hold operations of
    TensorFlow that compute, draw random numbers and change variables, others are
    refused, and nothing in it is a pickle.

    Args:
      path: The file.
      checks: As in `tfsafe.checked`.
      transform: Changes the step before it runs. `tfsafe.stabilize` shows whether the
        stable form of the step is finite.
      max_bytes: Largest size of what the file holds, unpacked.

    Returns:
      The error with its findings; None if all values are finite.

    Raises:
      ValueError: If the file is not a capsule, is too large, or holds what a capsule
        may not hold.

    Examples:
      >>> import tempfile
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> path = tempfile.mkdtemp() + "/nan.zip"
      >>> normalize = tf.function(lambda x: x / tf.reduce_sum(x))
      >>> try:
      ...     tfsafe.checked(normalize)(tf.constant([0.0, 0.0]))
      ... except tfsafe.NumericsError as error:
      ...     error.save(path)
      >>> tfsafe.debugging.replay(path).findings[0].op_type
      'RealDiv'
      >>> print(tfsafe.debugging.replay(path, transform=tfsafe.stabilize))
      None
    """
    reader = Reader(path, max_bytes)
    before = reader.json("finding")
    if not isinstance(before, dict) or before.get("format") != FORMAT:
        raise ValueError(
            f"This version of tfsafe replays capsules of format {FORMAT}. Received: "
            f"{os.fspath(path)!r}."
        )
    try:
        step = _Step(reader, reader.json("step"))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} is not a whole capsule: {error!r}."
        ) from None
    options = options_of(checks, False, ())
    function: Any = tf.function(step, autograph=False, jit_compile=step.is_xla or None)
    if transform is not None:
        stable = transform(function)
        function = tf.function(
            lambda *args: stable(*args),
            autograph=False,
            jit_compile=step.is_xla or None,
        )
    check = CompiledCheck(
        function, options=options, names=step.names, labels=step.labels
    )
    try:
        with layers.remembered(step.layers), bookkeeping.remembered(step.repeats):
            check(*step.arguments)
    except NumericsError as error:
        error.hide_capsule()
        _take_suggestion(error, before["findings"], is_same=transform is None)
        for name in TIME:
            setattr(error, name, before.get(name))
        error.optimizers = tuple(
            (str(name), int(step), float(rate))
            for name, step, rate in before.get("optimizers") or ()
        )
        error.layers = tuple(
            (str(name), str(kind), str(health))
            for name, kind, health in before.get("layers", ())
            if health in HEALTHS
        )
        error.add_time()
        numbers = ([float(each) for each in before.get(name, ())] for name in PAST)
        history.note(error, history.Past(*numbers))
        # Those of the run that failed, and how it is seen here.
        kept = {str(name): str(words) for name, words in before["facts"].items()}
        here = {f"{name} of the replay": error.facts.get(name, "") for name in _OWN}
        error.facts = {**kept, **here}
        return error
    return None


def _take_suggestion(
    error: NumericsError, findings: Sequence[Any], *, is_same: bool
) -> None:
    """Takes over what was suggested where the optimizer of the run was known.

    Args:
      error: The error of the replay.
      findings: Those of the run.
      is_same: Whether the step is that of the run; a transformed one has numbers of its
        own.
    """
    first = error.findings[0]
    for before in findings[:1]:
        if before.get("op_type") == first.op_type and before.get("cause"):
            kept = ("suggestion", "suggested_code")
            same = ("cause", *kept) if is_same else kept
            error.change_first(**{name: str(before.get(name, "")) for name in same})


class _Step:
    """The step of a capsule, as a Python function that can be traced.

    Attributes:
      arguments: The arguments of the call.
      is_xla: Whether XLA compiles the step.
      layers: Classes of the layers in the step, by their names.
      repeats: Labels of the variables of metrics and optimizers.
    """

    # For the signature that TensorFlow shows.
    __name__ = "step"

    def __init__(self, reader: Reader, record: Any):
        graphs = graphs_of(reader, record)
        self._graph = graphs[0]
        self._result = record["result"]
        self.is_xla = bool(record["is_xla"])
        self.layers: dict[str, str] = dict(record["layers"])
        self.repeats = [str(each) for each in record.get("bookkeeping", ())]
        self.arguments: list[tf.Tensor] = []
        self._labels: list[str] = []
        self._names: variables.Names = {}
        self._variables: list[tf.Variable] = []
        self._inputs = [
            self._input(reader, each, tensor)
            for each, tensor in zip(record["inputs"], self._graph.inputs, strict=True)
        ]
        self._drawn: dict[tuple[int, str], list[Any]] = {
            (id(graphs[int(number)]), name): [
                tf.constant(reader.array(each)) for each in outputs
            ]
            for number, name, outputs in record["drawn"]
        }

    def _input(self, reader: Reader, record: Any, like: tf.Tensor) -> Any:
        """Returns the value of an input of the graph; None for an argument."""
        if "handle" in record:
            # Only operations read it whose outputs are known.
            return tf.zeros([])
        value = reader.array(record["value"])
        if "argument" in record:
            self.arguments.append(tf.constant(value, like.dtype))
            self._labels.append(str(record["argument"]))
            return None
        if "constant" in record:
            return tf.constant(value, like.dtype)
        name, is_trainable = record["variable"]
        variable = tf.Variable(value, trainable=bool(is_trainable))
        self._variables.append(variable)
        self._names[id(variable.handle)] = str(name)
        return variable.handle

    def names(self) -> variables.Names:
        """Returns the names of the variables, by `id` of the handle."""
        return self._names

    def labels(
        self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Yields the arguments, each with its name."""
        del function, kwargs
        yield from zip(self._labels, args, strict=True)

    def __call__(self, *args: Any) -> Any:
        """Takes the step."""
        given = iter(args)
        inputs = [next(given) if each is None else each for each in self._inputs]
        emission = Emission(plan=self._plan)
        outputs = emission.emit(self._graph, inputs, self._variables)
        return structured(self._result, outputs)

    def _plan(self, graph: tf.Graph, _: Any) -> Plan:
        return {
            name: _Known(graph.get_operation_by_name(name), outputs)
            for (number, name), outputs in self._drawn.items()
            if number == id(graph)
        }


class _Known:
    """Gives the outputs that an operation had.

    What NaN chose is drawn again: that it did so is to be seen.
    """

    def __init__(self, op: tf.Operation, outputs: Sequence[Any]):
        self._op, self._outputs = op, outputs
        self._numbers = values.chosen_by(op.type, op.inputs, op.outputs[0])
        self.reads = () if self._numbers is None else tuple(op.inputs)

    def __call__(self, value: Value) -> Sequence[Any]:
        if self._numbers is None:
            return self._known()
        inputs = [value(each) for each in self.reads]
        is_lost = tf.reduce_any(tf.math.is_nan(value(self._numbers)))
        return tf.cond(is_lost, lambda: self._drawn(inputs), self._known)

    def _known(self) -> list[tf.Tensor]:
        return [tf.identity(each) for each in self._outputs]

    def _drawn(self, inputs: Sequence[Any]) -> list[tf.Tensor]:
        return list(raw_kernel(self._op)(inputs))
