"""Switches the stable form of everything that a program runs on and off."""

import threading
import weakref
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _calls, _compat
from tfsafe._faults import contained, or_plain
from tfsafe._patching import Patch
from tfsafe.graph import is_user_function
from tfsafe.rewriting.engine import tape_recording
from tfsafe.rewriting.engine.function import (
    is_as_written,
    is_stabilized,
    stabilized,
)
from tfsafe.rewriting.rules.table import all_rules
from tfsafe.rewriting.targets.keras_model import (
    is_stable,
    restore_model,
    stabilize_model,
)

# The methods in which Keras starts to run the steps of a model.
_ENTRIES = (
    "evaluate",
    "fit",
    "predict",
    "predict_on_batch",
    "test_on_batch",
    "train_on_batch",
)


class _Switch:
    """Makes calls of functions and the steps of models run in their stable form.

    While the switch is on, a few methods of public classes are replaced.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._is_on = self._has_rewritten = False
        self._patches = [
            *(
                Patch(tape_recording.FUNCTION, name, self._calls)
                for name in ("__call__", "get_concrete_function")
            ),
            Patch(tape_recording.FUNCTION, _compat.TRACES, self._lists),
            Patch(
                tape_recording.FUNCTION, "experimental_get_tracing_count", self._counts
            ),
            *(Patch(keras.Model, name, self._enters) for name in _ENTRIES),
        ]
        self._stable: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        # What the stable forms are made of, and run where they cannot be made.
        self._written: weakref.WeakSet[Any] = weakref.WeakSet()
        self._models: weakref.WeakSet[keras.Model] = weakref.WeakSet()

    @property
    def is_on(self) -> bool:
        """Whether the patches are installed."""
        return self._is_on

    @property
    def has_rewritten(self) -> bool:
        """Whether a function or a model was called since then."""
        return self._has_rewritten

    def turn_on(self) -> None:
        """Installs the patches; does nothing if they are installed."""
        with self._lock:
            if self._is_on:
                return
            self._is_on, self._has_rewritten = True, False
            for patch in self._patches:
                patch.install()

    def turn_off(self) -> None:
        """Removes the patches; functions and models run as before."""
        with self._lock:
            self._is_on = False
            for patch in self._patches:
                patch.remove()
            self._stable.clear()
            for model in list(self._models):
                restore_model(model)
            self._models.clear()

    def _calls(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            is_due = False
            with contained("choosing what to rewrite"):
                is_ours = tape_recording.active() is not None or is_as_written()
                is_written = is_ours or function in self._written
                is_due = self._is_on and not is_written and _is_naive(function)
            if not is_due:
                return original(function, *args, **kwargs)
            return or_plain(
                "the stable form of a function",
                lambda: original(self._stable_form(function), *args, **kwargs),
                lambda: original(function, *args, **kwargs),
                lambda: self._give_up(function),
            )

        return call

    def _give_up(self, function: Any) -> None:
        self._stable[function] = _compat.with_body(function)

    def _lists(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def traces(function: Any) -> list[Any]:
            # That of an input signature is traced now, in the stable form.
            found = list(original(function))
            _, *stable = self._forms(function)
            return found + [each for one in stable for each in original(one)]

        return traces

    def _counts(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def count(function: Any) -> int:
            return sum(map(original, self._forms(function)))

        return count

    def _forms(self, function: Any) -> list[Any]:
        """Returns a function and its stable form, if that was called."""
        with contained("listing the traces of a function"):
            stable = self._stable.get(function)
            return [function] if stable is None else [function, stable]
        return [function]

    def _stable_form(self, function: Any) -> Any:
        self._has_rewritten = True
        if function not in self._stable:
            # Made of another one: the copy must not keep alive what it is known by.
            copy = _compat.with_body(function)
            self._written.add(copy)
            self._stable[function] = stabilized(copy, all_rules())
        return self._stable[function]

    def _enters(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def enter(model: keras.Model, *args: Any, **kwargs: Any) -> Any:
            with contained("the stable form of a model"):
                self._has_rewritten |= self._is_on
                if self._is_on and not is_stable(model):
                    self._models.add(stabilize_model(model, all_rules()))
            return original(model, *args, **kwargs)

        return enter


def _is_naive(function: Any) -> bool:
    """Returns whether a function is the user's and was not stabilised."""
    if tf.config.functions_run_eagerly() or is_stabilized(function):
        return False
    return is_user_function(function.python_function)


_SWITCH = _Switch()


@_calls.answered("It is for the whole program; `stabilize(f)` is for a function.")
def enable_stabilize() -> None:
    """Runs every `tf.function` and every step of a Keras model in its stable form.

    This holds from the next call on, also for functions that were traced before.
    Functions of libraries are rewritten where a function of the user calls them.
    Concrete functions that the program made itself are not rewritten.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> @tf.function
      ... def log_probability(z):
      ...     return tf.math.log(tf.sigmoid(z))
      >>> tfsafe.enable_stabilize()
      >>> print(log_probability(tf.constant(-200.0)).numpy())
      -200.0
      >>> tfsafe.disable_stabilize()
    """
    _SWITCH.turn_on()


def is_enabled() -> bool:
    """Returns whether `enable_stabilize` was called, and not undone."""
    return _SWITCH.is_on


def has_rewritten() -> bool:
    """Returns whether a function or a model ran in its stable form since then."""
    return _SWITCH.has_rewritten


def disable_stabilize() -> None:
    """Undoes `enable_stabilize`, whose docstring has an example."""
    _SWITCH.turn_off()
