"""Makes the functions of a Keras model under a strategy run in their stable form.

An optimizer on replicas leaves the replica to update variables, which no inner trace
allows. So not the step of one replica is rewritten but the function around all of them.
"""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras

from tfsafe._faults import or_plain
from tfsafe._patching import Patch
from tfsafe.rewriting.engine import tape_recording
from tfsafe.rewriting.engine.function import stabilized
from tfsafe.rewriting.engine.rule import Rule


class MakeFunction:
    """Replaces `make_train_function` of a model, or one of its other two."""

    def __init__(self, make: Any, model: keras.Model, name: str, rules: Sequence[Rule]):
        self._make = make
        self._model = model
        self._name = name
        self._rules = rules

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Makes the function."""
        self._make(*args, **kwargs)
        function = getattr(self._model, self._name)
        if not isinstance(function, _Outermost):
            if self._model.run_eagerly:
                warnings.warn(
                    "A model under a strategy is rewritten in graphs only. With "
                    "`run_eagerly=True` its steps run as written.",
                    RuntimeWarning,
                    stacklevel=3,
                )
            function = _Outermost(function, self._rules)
            setattr(self._model, self._name, function)
        return function


class _Outermost:
    """Calls a function; the first `tf.function` in it runs in its stable form."""

    def __init__(self, function: Callable[..., Any], rules: Sequence[Rule]):
        self._function = function
        self._rules = rules
        # By the id of a function, which is held so that the id stays taken.
        self._stable: dict[int, tuple[Any, Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with _routed(self):
            return self._function(*args, **kwargs)

    def run(
        self, original: Callable[..., Any], function: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Runs the stable form of a `tf.function`."""
        key = id(function)

        def stable() -> Any:
            if key not in self._stable:
                self._stable[key] = function, stabilized(function, self._rules)
            return self._stable[key][1]

        return or_plain(
            "the stable form of a model on replicas",
            lambda: original(stable(), *args, **kwargs),
            lambda: original(function, *args, **kwargs),
            lambda: self._stable.update({key: (function, function)}),
        )


class _Route(threading.local):
    """Who takes the next call of a `tf.function` in this thread."""

    taker: _Outermost | None = None


_ROUTE = _Route()
_LOCK = threading.Lock()
_USERS = 0


@contextlib.contextmanager
def _routed(taker: _Outermost) -> Iterator[None]:
    global _USERS
    with _LOCK:
        _USERS += 1
        _PATCH.install()
    _ROUTE.taker = taker
    try:
        yield
    finally:
        _ROUTE.taker = None
        with _LOCK:
            _USERS -= 1
            if not _USERS:
                _PATCH.remove()


def _call(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        taker = _ROUTE.taker
        if taker is None:
            return original(function, *args, **kwargs)
        _ROUTE.taker = None
        try:
            return taker.run(original, function, *args, **kwargs)
        finally:
            _ROUTE.taker = taker

    return call


_PATCH = Patch(tape_recording.FUNCTION, "__call__", _call)
