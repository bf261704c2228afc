"""Records the gradients that a function asks of its tapes while it is traced.

The trace of a train step contains the gradient of the formulas as written. So each
result of `tape.gradient` is marked in the graph and the request is recorded. When the
graph is emitted again, the gradient is recomputed from the rewritten formulas, and the
first gradient disappears with the operations that only it used.
"""

import contextlib
import inspect
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import contained
from tfsafe._patching import Patch
from tfsafe.rewriting.engine.derivatives import (
    Asked,
    Derivative,
    as_asked,
    batch_jacobians,
    gradients,
    is_unseen,
    jacobians,
    tangents,
    with_zeros,
)
from tfsafe.rewriting.engine.gradient_requests import (
    Mark,
    Request,
    frontier,
    inside,
    opaque_copy,
    superseded,
)
from tfsafe.rewriting.engine.spans import Spans


class Recording:
    """The gradients that were asked of tapes while one function was traced."""

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._spans: dict[int, Spans] = {}
        self._fresh: dict[int, tuple[Any, Any]] = {}

    def requests(self, graph: tf.Graph) -> list[Request]:
        """Returns the requests made in one graph; the body of a loop is another."""
        return [each for each in self._requests if each.graph is graph]

    def superseded(self, graph: tf.Graph) -> set[str]:
        """Returns the names of the operations of the gradients that are recomputed."""
        return superseded(graph, self.requests(graph))

    def add(self, request: Request) -> None:
        """Notes a request."""
        self._requests.append(request)

    def starts(self, tape: Any, restart: bool = False) -> None:
        """Notes that a tape or accumulator records from here on.

        Args:
          tape: The tape or accumulator.
          restart: Whether it forgot what it had recorded before.
        """
        if restart or id(tape) not in self._spans:
            self._spans[id(tape)] = Spans(tape)
        self._spans[id(tape)].begin()

    def stops(self, tape: Any) -> None:
        """Notes that a tape or accumulator records no more."""
        if id(tape) in self._spans:
            self._spans[id(tape)].end()

    def answered(
        self,
        recorder: Any,
        derivative: Derivative,
        asked: Sequence[Any],
        results: Any,
        made: Collection[str],
    ) -> Any:
        """Notes a request that a tape or an accumulator has answered.

        Args:
          recorder: The tape or accumulator; None for `tf.gradients`, which sees all.
          derivative: Computes the answer.
          asked: Targets, sources, what comes in (or None) and stops, as in `Asked`.
          results: The answer.
          made: Names of the operations made for it.

        Returns:
          The answer with marks, or unchanged where it cannot be recomputed.
        """
        graph = tf.compat.v1.get_default_graph()
        spans = self._spans.get(id(recorder))
        if recorder is not None and (spans is None or spans.graph is not graph):
            return results
        flat = tf.nest.flatten(results)
        known = [i for i, each in enumerate(flat) if each is not None]
        given, wanted, upstream, stops = (tf.nest.flatten(each) for each in asked)
        wanted = [getattr(each, "handle", each) for each in wanted]
        if derivative is tangents:
            given = [given[i] for i in known]
        else:
            wanted = [wanted[i] for i in known]
        if not known or not all(isinstance(x, tf.Tensor) for x in [*given, *wanted]):
            return results
        targets, sources = [inside(x) for x in given], [inside(x) for x in wanted]
        if spans is not None:
            stops = frontier(targets, sources, spans.names())
        incoming = [None if x is None else _tensor(x) for x in upstream]
        if asked[2] is None:
            incoming = [None] * len(given)
        marks: list[Mark] = []
        for place, index in enumerate(known):
            flat[index] = _marked(flat[index], place, marks, self._copies())
        tensors = Asked(targets, sources, incoming, [_tensor(x) for x in stops])
        self.add(Request(graph, derivative, tensors, marks, made))
        return tf.nest.pack_sequence_as(results, flat)

    def _copies(self) -> Callable[[Any], Any]:
        tapes = [each.tape for each in self._spans.values()]
        if any(isinstance(each, tf.autodiff.ForwardAccumulator) for each in tapes):
            return _copy_for_accumulators
        return opaque_copy

    def fresh(self, function: Any) -> Any:
        """Returns a `tf.function` like this one that was not traced before.

        Earlier traces have no marks.
        """
        known = self._fresh.get(id(function))
        if known is None:
            known = function, _compat.with_body(function)
            self._fresh[id(function)] = self._fresh[id(known[1])] = known
        return known[1]


def _tensor(value: Any) -> tf.Tensor:
    return inside(tf.convert_to_tensor(value))


def _marked(
    derivative: Any, position: int, marks: list[Mark], copy: Callable[[Any], Any]
) -> Any:
    def mark(tensor: tf.Tensor, part: str) -> tf.Tensor:
        made = copy(tensor)
        marks.append(Mark(made.op, position, part))
        return made

    if not isinstance(derivative, tf.IndexedSlices):
        return mark(derivative, "dense")
    return tf.IndexedSlices(
        mark(derivative.values, "values"),
        mark(derivative.indices, "indices"),
        derivative.dense_shape,
    )


@tf.custom_gradient
def _copy_for_accumulators(tensor: tf.Tensor) -> Any:
    """Copies a tensor as `opaque_copy`, with a derivative that accumulators know."""
    return tf.identity(tensor), lambda upstream: upstream


_RECORDINGS: dict[int, Recording] = {}
_TASK = "following the tapes of a function"
# Attribute of an accumulator: its primals and tangents.
_SEEDS = "_tfsafe_seeds"
# The argument that says what to return for what is not differentiated by.
_UNCONNECTED = "unconnected_gradients"
_ZEROS = (tf.UnconnectedGradients.ZERO, tf.UnconnectedGradients.ZERO.value)
_LOCK = threading.Lock()
FUNCTION: Any = type(tf.function(lambda: None))


class _Pause(threading.local):
    """Whether this thread is within a request, whose parts are not requests."""

    is_on = False


_PAUSE = _Pause()


def active() -> Recording | None:
    """Returns the recording of the function that is being traced, or None."""
    is_off = not _RECORDINGS or _PAUSE.is_on
    graph = None if is_off else tf.compat.v1.get_default_graph()
    while graph is not None:
        found = _RECORDINGS.get(id(graph))
        if found is not None:
            return found
        graph = getattr(graph, "outer_graph", None)
    return None


@contextlib.contextmanager
def recorded(recording: Recording) -> Iterator[None]:
    """Records what is asked of tapes in the default graph and its inner graphs."""
    key = id(tf.compat.v1.get_default_graph())
    with _LOCK:
        if not _RECORDINGS:
            for patch in _PATCHES:
                patch.install()
        _RECORDINGS[key] = recording
    try:
        yield
    finally:
        with _LOCK:
            del _RECORDINGS[key]
            if not _RECORDINGS:
                for patch in _PATCHES:
                    patch.remove()


def _active() -> Recording | None:
    with contained(_TASK):
        return active()
    return None


@contextlib.contextmanager
def _noting() -> Iterator[Recording | None]:
    """Gives the recording to a block of ours in the trace of a user's function.

    An error of the block would pass for one of the user's.
    """
    recording = _active()
    with contained(_TASK):
        yield recording


def _enter(original: Callable[..., Any]) -> Callable[..., Any]:
    def enter(tape: tf.GradientTape) -> Any:
        result = original(tape)
        with _noting() as recording:
            if recording is not None:
                recording.starts(tape)
        return result

    return enter


def _exit(original: Callable[..., Any]) -> Callable[..., Any]:
    def leave(tape: tf.GradientTape, *error: Any) -> Any:
        with _noting() as recording:
            if recording is not None:
                recording.stops(tape)
        return original(tape, *error)

    return leave


def _reset(original: Callable[..., Any]) -> Callable[..., Any]:
    def reset(tape: tf.GradientTape) -> None:
        original(tape)
        with _noting() as recording:
            if recording is not None:
                recording.starts(tape, restart=True)

    return reset


def _stop_recording(original: Callable[..., Any]) -> Callable[..., Any]:
    @contextlib.contextmanager
    def recorded_pause(tape: tf.GradientTape, recording: Recording) -> Iterator[None]:
        with original(tape):
            with _noting():
                recording.stops(tape)
            yield
        with _noting():
            recording.starts(tape)

    def stop_recording(tape: tf.GradientTape) -> Any:
        recording = _active()
        return original(tape) if recording is None else recorded_pause(tape, recording)

    return stop_recording


def _asks(
    derivative: Derivative, asked: Callable[..., tuple[Any, ...]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a wrapper for a method or function that returns derivatives.

    Args:
      derivative: Computes what it returns.
      asked: Returns the tape or None, targets, sources, what comes in, and stops.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        def ask(*args: Any, **kwargs: Any) -> Any:
            recording = _active()
            if recording is None:
                return original(*args, **kwargs)
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError:
                return original(*args, **kwargs)
            given.apply_defaults()
            mode = given.arguments[_UNCONNECTED]
            # Of what the tape does not see, the graph might give another answer.
            is_zero = mode in _ZEROS and derivative is not batch_jacobians
            if is_zero:
                given.arguments[_UNCONNECTED] = tf.UnconnectedGradients.NONE
            graph = tf.compat.v1.get_default_graph()
            before = len(graph.get_operations())
            _PAUSE.is_on = True
            try:
                results = original(*given.args)
            finally:
                _PAUSE.is_on = False
            made = {op.name for op in graph.get_operations()[before:]}
            tape, *tensors = asked(*given.args)
            with _noting():
                how = as_asked(derivative, given.arguments)
                if not is_unseen(derivative, results):
                    results = recording.answered(tape, how, tensors, results, made)
            return with_zeros(derivative, tensors, results) if is_zero else results

        return ask

    return wrap


def _seeds(original: Callable[..., Any]) -> Callable[..., Any]:
    def initialize(accumulator: Any, primals: Any, tangents: Any) -> None:
        original(accumulator, primals, tangents)
        if _active() is not None:
            setattr(accumulator, _SEEDS, (primals, tangents))

    return initialize


def _call(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        with _noting() as recording:
            if recording is not None:
                function = recording.fresh(function)
        return original(function, *args, **kwargs)

    return call


# Installed while any thread records. In other graphs and in eager code the wrappers
# call the original with the same arguments.
_PATCHES = [
    Patch(tf.GradientTape, "__enter__", _enter),
    Patch(tf.GradientTape, "__exit__", _exit),
    Patch(tf.GradientTape, "reset", _reset),
    Patch(tf.GradientTape, "stop_recording", _stop_recording),
    Patch(
        tf.GradientTape,
        "gradient",
        _asks(gradients, lambda tape, y, x, upstream, *_: (tape, y, x, upstream, [])),
    ),
    Patch(
        tf.GradientTape,
        "jacobian",
        _asks(jacobians, lambda tape, y, x, *_: (tape, y, x, None, [])),
    ),
    Patch(
        tf.GradientTape,
        "batch_jacobian",
        _asks(batch_jacobians, lambda tape, y, x, *_: (tape, y, x, None, [])),
    ),
    Patch(
        tf,
        "gradients",
        _asks(
            gradients,
            # After them come `name`, two options and `stop_gradients`.
            lambda y, x, upstream, *rest: (None, y, x, upstream, rest[3] or []),
        ),
    ),
    Patch(tf.autodiff.ForwardAccumulator, "__init__", _seeds),
    Patch(tf.autodiff.ForwardAccumulator, "__enter__", _enter),
    Patch(tf.autodiff.ForwardAccumulator, "__exit__", _exit),
    Patch(
        tf.autodiff.ForwardAccumulator,
        "jvp",
        _asks(
            tangents,
            lambda accumulator, y, *_: (
                accumulator,
                y,
                *getattr(accumulator, _SEEDS, ([], [])),
                [],
            ),
        ),
    ),
    Patch(FUNCTION, "__call__", _call),
]
