"""Records the gradients that a function asks of its tapes while it is traced.

The trace of a train step contains the gradient of the formulas as written. So each
result of `tape.gradient` is marked in the graph and the request is recorded. When the
graph is emitted again, the gradient is recomputed from the rewritten formulas, and the
first gradient disappears with the operations that only it used.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._patching import Patch
from tfsafe.rewriting.engine.gradient_requests import Mark, Request, frontier, inside


class Recording:
    """The gradients that were asked of tapes while one function was traced."""

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._spans: dict[int, _Spans] = {}
        self._fresh: dict[int, tuple[Any, Any]] = {}

    def requests(self, graph: tf.Graph) -> list[Request]:
        """Returns the requests made in one graph; the body of a loop is another."""
        return [each for each in self._requests if each.graph is graph]

    def add(self, request: Request) -> None:
        """Notes a request."""
        self._requests.append(request)

    def starts(self, tape: tf.GradientTape, restart: bool = False) -> None:
        """Notes that a tape records from here on; `restart` if it forgot the rest."""
        if restart or id(tape) not in self._spans:
            self._spans[id(tape)] = _Spans(tape)
        self._spans[id(tape)].begin()

    def stops(self, tape: tf.GradientTape) -> None:
        """Notes that a tape records no more."""
        if id(tape) in self._spans:
            self._spans[id(tape)].end()

    def answered(
        self,
        tape: tf.GradientTape,
        target: Any,
        sources: Any,
        upstream: Any,
        gradients: Any,
    ) -> Any:
        """Notes a request that a tape has answered.

        Args:
          tape: The tape.
          target: Tensors that it differentiated.
          sources: Tensors or variables to differentiate by.
          upstream: Incoming gradients, or None.
          gradients: Its answer.

        Returns:
          The answer with marks, or unchanged where it cannot be recomputed.
        """
        spans = self._spans.get(id(tape))
        graph = tf.compat.v1.get_default_graph()
        if spans is None or spans.graph is not graph:
            return gradients
        flat = tf.nest.flatten(gradients)
        asked = tf.nest.flatten(sources)
        given = tf.nest.flatten(target)
        if upstream is None:
            seeds: list[Any] = [None] * len(given)
        else:
            seeds = tf.nest.flatten(upstream)
        known = [i for i, each in enumerate(flat) if each is not None]
        wanted = [getattr(asked[i], "handle", asked[i]) for i in known]
        if not known or not all(map(_is_plain, [*given, *wanted])):
            return gradients
        targets = [inside(each) for each in given]
        held = [inside(each) for each in wanted]
        marks: list[Mark] = []
        for place, index in enumerate(known):
            flat[index] = _marked(flat[index], place, marks)
        self.add(
            Request(
                graph,
                targets,
                held,
                [None if s is None else inside(tf.convert_to_tensor(s)) for s in seeds],
                frontier(targets, held, spans.names()),
                marks,
            )
        )
        return tf.nest.pack_sequence_as(sources, flat)

    def fresh(self, function: Any) -> Any:
        """Returns a `tf.function` like this one that was not traced before.

        Earlier traces have no marks.
        """
        known = self._fresh.get(id(function))
        if known is None:
            known = function, _compat.with_body(function)
            self._fresh[id(function)] = self._fresh[id(known[1])] = known
        return known[1]


def _is_plain(tensor: Any) -> bool:
    return isinstance(tensor, tf.Tensor)


def _marked(gradient: Any, source: int, marks: list[Mark]) -> Any:
    def mark(tensor: tf.Tensor, part: str) -> tf.Tensor:
        # No rule looks through it, but a tape does.
        copy = tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=tensor.shape)
        marks.append(Mark(copy.op, source, part))
        return copy

    if not isinstance(gradient, tf.IndexedSlices):
        return mark(gradient, "dense")
    return tf.IndexedSlices(
        mark(gradient.values, "values"),
        mark(gradient.indices, "indices"),
        gradient.dense_shape,
    )


class _Spans:
    """Which operations of a graph a tape has recorded."""

    def __init__(self, tape: tf.GradientTape):
        self.graph = tf.compat.v1.get_default_graph()
        # Held, so that no other tape is given its id.
        self._tape = tape
        self._starts: list[int] = []
        self._ends: list[int] = []

    def begin(self) -> None:
        self._starts.append(len(self.graph.get_operations()))

    def end(self) -> None:
        if len(self._ends) < len(self._starts):
            self._ends.append(len(self.graph.get_operations()))

    def names(self) -> set[str]:
        ops = self.graph.get_operations()
        ends = [*self._ends, len(ops)]
        return {
            op.name
            for start, end in zip(self._starts, ends, strict=False)
            for op in ops[start:end]
        }


_RECORDINGS: dict[int, Recording] = {}
_LOCK = threading.Lock()
FUNCTION: Any = type(tf.function(lambda: None))


def active() -> Recording | None:
    """Returns the recording of the function that is being traced, or None."""
    graph = tf.compat.v1.get_default_graph() if _RECORDINGS else None
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


def _enter(original: Callable[..., Any]) -> Callable[..., Any]:
    def enter(tape: tf.GradientTape) -> Any:
        result = original(tape)
        recording = active()
        if recording is not None:
            recording.starts(tape)
        return result

    return enter


def _exit(original: Callable[..., Any]) -> Callable[..., Any]:
    def leave(tape: tf.GradientTape, *error: Any) -> Any:
        recording = active()
        if recording is not None:
            recording.stops(tape)
        return original(tape, *error)

    return leave


def _reset(original: Callable[..., Any]) -> Callable[..., Any]:
    def reset(tape: tf.GradientTape) -> None:
        original(tape)
        recording = active()
        if recording is not None:
            recording.starts(tape, restart=True)

    return reset


def _stop_recording(original: Callable[..., Any]) -> Callable[..., Any]:
    @contextlib.contextmanager
    def recorded_pause(tape: tf.GradientTape, recording: Recording) -> Iterator[None]:
        with original(tape):
            recording.stops(tape)
            yield
        recording.starts(tape)

    def stop_recording(tape: tf.GradientTape) -> Any:
        recording = active()
        return original(tape) if recording is None else recorded_pause(tape, recording)

    return stop_recording


def _gradient(original: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(
        tape: tf.GradientTape,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = tf.UnconnectedGradients.NONE,
    ) -> Any:
        recording = active()
        result = original(
            tape, target, sources, output_gradients, unconnected_gradients
        )
        if recording is None:
            return result
        return recording.answered(tape, target, sources, output_gradients, result)

    return gradient


def _call(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        recording = active()
        if recording is not None:
            function = recording.fresh(function)
        return original(function, *args, **kwargs)

    return call


# Installed while any thread records. In other graphs and in eager code the wrappers
# call the original with the same arguments.
_PATCHES = [
    Patch(tf.GradientTape, "__enter__", _enter),
    Patch(tf.GradientTape, "__exit__", _exit),
    Patch(tf.GradientTape, "gradient", _gradient),
    Patch(tf.GradientTape, "reset", _reset),
    Patch(tf.GradientTape, "stop_recording", _stop_recording),
    Patch(FUNCTION, "__call__", _call),
]
