"""Has Keras find tfsafe's classes for the strings and configs that name its own."""

import contextlib
import contextvars
import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tfsafe import _calls, _compat, _saving, _swap
from tfsafe._faults import contained
from tfsafe._patching import Patch

_PACKAGES = ("losses", "layers", "metrics", "optimizers", "regularizers")
_in_scope: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "tfsafe_keras_scope", default=False
)
_lock = threading.RLock()


@contextlib.contextmanager
@_calls.answered("It is a block, `with tfsafe.keras_scope():`.")
def keras_scope() -> Iterator[None]:
    """Makes strings such as `"mse"` and configs of Keras mean tfsafe's classes.

    In the scope `compile(loss="mse", metrics=["accuracy"])`, `Dense(3, activation=
    "softmax")`, `keras.losses.get`, `keras.layers.deserialize` and `load_model` find
    the class of tfsafe wherever it has one under the same name. A model that was
    compiled in the scope keeps its losses and metrics afterwards. Classes that the
    program names itself, such as `keras.layers.Softmax`, stay Keras' own: import them
    from tfsafe. No optimizer is wrapped in a `SafeOptimizer`.

    It holds for the thread that enters it, may be nested, and can decorate a function.
    `tfsafe.install()` does the same for a whole program. What is saved names the
    strings, and loads without tfsafe; layers that were made of configs are tfsafe's.

    Yields:
      Nothing.

    Examples:
      >>> import keras
      >>> import tfsafe
      >>> with tfsafe.keras_scope():
      ...     loss = keras.losses.get("MeanSquaredError")
      >>> type(loss) is tfsafe.losses.MeanSquaredError
      True
      >>> type(keras.losses.get("MeanSquaredError")) is keras.losses.MeanSquaredError
      True
    """
    token = _in_scope.set(True)
    _lookups().acquire()
    try:
        yield
    finally:
        _lookups().release()
        _in_scope.reset(token)


@_calls.answered("It is for all classes of tfsafe.")
def install() -> None:
    """Makes strings and configs of Keras mean tfsafe's classes, in every thread.

    What `keras_scope` does, until `uninstall()`. Calling it again changes nothing.

    Examples:
      >>> import keras
      >>> import tfsafe
      >>> tfsafe.install()
      >>> keras.metrics.get("mse").__module__
      'tfsafe.metrics'
      >>> tfsafe.uninstall()
    """
    _lookups().install(everywhere=True)


@_calls.answered()
def uninstall() -> None:
    """Ends `install()`; a model that was compiled meanwhile keeps its classes."""
    _lookups().install(everywhere=False)


class _Lookups:
    """The patches on Keras' look-ups, installed while a scope needs them."""

    def __init__(self) -> None:
        self._users = 0
        self._everywhere = False
        self._patches = [*_patches()]

    def is_active(self) -> bool:
        """Returns whether this thread's strings mean tfsafe's classes."""
        return (self._everywhere or _in_scope.get()) and not _saving.wants_plain()

    def acquire(self) -> None:
        """Installs the patches for one more scope."""
        with _lock:
            self._users += 1
            for patch in self._patches:
                patch.install()

    def release(self) -> None:
        """Removes the patches with the last scope."""
        with _lock:
            self._users -= 1
            if not self._users:
                for patch in reversed(self._patches):
                    patch.remove()

    def install(self, *, everywhere: bool) -> None:
        """Begins or ends the scope of all threads."""
        with _lock:
            if everywhere != self._everywhere:
                self._everywhere = everywhere
                (self.acquire if everywhere else self.release)()


@functools.cache
def _lookups() -> _Lookups:
    return _Lookups()


def _patches() -> Iterator[Patch]:
    for module in _compat.getters():
        yield Patch(module, "get", _of_strings(_by_name))
    yield Patch(*_compat.config_reader(), _by_config)
    utils = _compat.compile_utils()
    yield Patch(utils, "get_loss", _of_strings(_loss))
    yield Patch(utils, "get_metric", _of_strings(_metric))
    yield Patch(utils.CompileLoss, "__init__", _built_in_scope)
    yield Patch(utils.CompileMetrics, "__init__", _built_in_scope)


@functools.cache
def _counterparts() -> dict[Any, Any]:
    """Returns tfsafe's class or function for each of Keras' that it has."""
    from tfsafe.keras_formulas import logit_recovery

    found = {}
    for package in _PACKAGES:
        theirs = importlib.import_module(f"keras.{package}")
        ours = importlib.import_module(f"tfsafe.{package}")
        for name in ours.__all__:
            if hasattr(theirs, name):
                found[getattr(theirs, name)] = getattr(ours, name)
    theirs = importlib.import_module("keras.activations")
    for name in ("softmax", "log_softmax", "log_sigmoid"):
        # Keras 3.3 does not have all of them.
        if hasattr(theirs, name):
            found[getattr(theirs, name)] = getattr(logit_recovery, name)
    return found


def _of_strings(convert: Callable[[Any], Any]) -> Callable[..., Any]:
    """Makes a look-up convert what it finds for a string, in a scope."""

    def wrapped(get: Callable[..., Any]) -> Callable[..., Any]:
        def get_safe(identifier: Any, *args: Any, **kwargs: Any) -> Any:
            found = get(identifier, *args, **kwargs)
            with contained("the safe class of a string"):
                if isinstance(identifier, str) and _lookups().is_active():
                    return convert(found)
            return found

        return get_safe

    return wrapped


def _by_name(found: Any) -> Any:
    if type(found) in _counterparts():
        return _counterparts()[type(found)]()
    return _counterparts().get(found, found) if callable(found) else found


def _loss(found: Any) -> Any:
    # Keras' loss of a function multiplies by the weights, and `0 * NaN` is NaN.
    if not _compat.is_function_loss(found):
        return found
    safe = _swap.class_of("losses", found.fn.__name__)
    return found if safe is None else safe(name=found.name)


def _metric(found: Any) -> Any:
    # Keras makes `accuracy` of the class that fits the labels, without a look-up.
    safe = _counterparts().get(type(found))
    return found if safe is None else safe(name=found.name)


def _by_config(retrieve: Callable[..., Any]) -> Callable[..., Any]:
    def retrieve_safe(*args: Any, **kwargs: Any) -> Any:
        found = retrieve(*args, **kwargs)
        with contained("the safe class of a config"):
            if _lookups().is_active():
                return _counterparts().get(found, found)
        return found

    return retrieve_safe


def _built_in_scope(init: Callable[..., None]) -> Callable[..., None]:
    """Has an object that looks its strings up later do so in the scope as well."""

    def init_safe(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        with contained("the safe classes of a `compile`"):
            if _lookups().is_active():
                # Not the decorator: another thread may build it.
                Patch(self, "build", lambda build: keras_scope()(build)).install()

    return init_safe
