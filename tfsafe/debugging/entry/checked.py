"""Puts a function or a model under the numeric checks."""

import contextlib
import functools
import inspect
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import keras
import tensorflow as tf

from tfsafe import _args, _calls, _compat
from tfsafe.debugging.checks import enclosing, tally
from tfsafe.debugging.checks.eager.function import EagerCheck
from tfsafe.debugging.checks.options import Level, Options, options_of
from tfsafe.debugging.checks.traced.compiled import CompiledCheck
from tfsafe.debugging.checks.traced.in_graph import asserting
from tfsafe.debugging.checks.traced.late import LateCheck
from tfsafe.debugging.models import data_source
from tfsafe.debugging.models.model import check_model

_Target = TypeVar("_Target", bound=Callable[..., Any])


@overload
def checked(
    target: _Target,
    *,
    checks: Level = ...,
    strict: bool = ...,
    exclude: Sequence[str] = ...,
    look_every: int = ...,
) -> _Target: ...
@overload
def checked(
    *,
    checks: Level = ...,
    strict: bool = ...,
    exclude: Sequence[str] = ...,
    look_every: int = ...,
) -> Callable[[_Target], _Target]: ...
@_calls.answered()
def checked(
    target: Any = ...,
    *,
    checks: Level = "watch",
    strict: bool = False,
    exclude: Sequence[str] = (),
    look_every: int = 1,
) -> Any:
    """Makes a function or a model raise `NumericsError` on non-finite results.

    A call whose outputs and written variables are finite returns unchanged. Otherwise
    the error says which operation made the first non-finite value, on which line, why,
    and what to write instead, and the variables are as before the call. A non-finite
    value that reaches no result, such as the `-inf` of a mask, passes. The guide
    "How the checks work" in the documentation says what they add to a function, and
    what they cannot replay.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> @tfsafe.checked
      ... @tf.function
      ... def normalise(x):
      ...     return x / tf.reduce_sum(x)
      >>> print(normalise(tf.constant([1.0, 3.0])).numpy())
      [0.25 0.75]
      >>> try:
      ...     normalise(tf.constant([0.0, 0.0]))
      ... except tfsafe.NumericsError as error:
      ...     print(error.findings[0].op_type, error.findings[0].cause)
      RealDiv 1 zero in the denominator.

    Args:
      target: What to check: a Python function, whose operations are checked as they
        run; a `tf.function`, with `jit_compile` or without; a bound method or another
        callable; a Keras model, whose `fit`, `evaluate`, `predict` and their
        `_on_batch` siblings are checked from then on. Without it, a decorator is
        returned.
      checks: Which operations of a `tf.function` have flags of their own: `"watch"`
        none; `"domain"` those that make NaN or Inf of finite numbers other than by
        overflow, such as a logarithm or a quotient; `"full"` all that compute floating
        numbers.
      strict: Whether to report the first non-finite output of any operation, even if
        it reaches no result; of those of `"domain"` alone at that level. An infinity
        that the function writes, such as the `-inf` of a mask, is none.
      exclude: Operations whose NaN and Inf are not errors, each as `"op:<type>"`,
        `"name:<name or layer scope>"`, both with `*` for any text, or
        `"line:<end of a path>:<line>"`, without the line for a whole file:
        `["op:Log", "name:*/attention/*", "line:train.py:33"]`.
      look_every: After how many calls of a `tf.function` to look at its results, which
        waits for the device. No call writes a variable after the one that failed, so
        that the later error explains that one. `look()` of what is returned looks at
        once, as after the last step.

    Returns:
      A callable with the arguments and results of `target`; for a model the model
      itself. `get_concrete_function` returns one with the checks in its graph, for
      `tf.saved_model.save(..., signatures=)`. Within a `tf.function` it is `target`,
      unchanged: the outermost function is the one to check.

    Raises:
      TypeError: If `target` is a class or cannot be called, or another argument is of
        the wrong type.
      ValueError: If a model builds its own training function, `checks` is not a
        level, a rule of `exclude` cannot be read, or `look_every` is less than 1, or
        more for another target than a `tf.function`.
    """
    options = options_of(checks, strict, exclude)
    _refuse_unless_number(look_every)
    if target is ...:
        return functools.partial(
            checked,
            checks=checks,
            strict=strict,
            exclude=tuple(exclude),
            look_every=look_every,
        )
    if isinstance(target, type):
        raise TypeError(
            "`target` must be a function or a model, not a class. Received: "
            f"target={target.__name__}. Check an instance, or put `@tfsafe.checked` "
            "on a method of the class."
        )
    _args.refuse_deferred(target, "checked")
    if look_every > 1 and not _is_traced(target):
        raise ValueError(
            "`look_every` needs a `tf.function`: of a Python function each operation "
            "is looked at as it runs, and `fit` of a model reads the loss of each "
            f"step. Received: look_every={look_every}, target={target!r}. Put "
            "`@tf.function` under `@tfsafe.checked`, or leave `look_every` out."
        )
    if isinstance(target, keras.Model):
        return check_model(target, options)
    if not callable(target):
        raise TypeError(
            "`target` must be a function, a `tf.function`, a method or a Keras model. "
            f"Received: target={target!r} of type {type(target).__name__}. Pass the "
            "function itself, as in `checked(f)`, not its result; all other arguments "
            'go by keyword, as in `checked(f, checks="full")`.'
        )
    return CheckedFunction(target, options, look_every)


class CheckedFunction:
    """A function under the numeric checks; answers to the function's attributes."""

    def __init__(
        self, function: Callable[..., Any], options: Options, look_every: int = 1
    ):
        self._function = function
        self._options = options
        self._look_every = look_every
        self._eager = EagerCheck(function, options=options)
        self._compiled = _compiled(function, options, look_every)
        self._bound: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._has_warned = False
        functools.update_wrapper(self, function, updated=())
        # `inspect.getfullargspec`, which Keras uses, does not follow `__wrapped__`.
        with contextlib.suppress(TypeError, ValueError):
            self.__signature__ = inspect.signature(function)
        if self._compiled is None:
            enclosing.follow(_options_of)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function under its checks."""
        if not tf.executing_eagerly():
            self._warn_unless_checked()
            return _compat.as_converted(self._function)(*args, **kwargs)
        check = None if tf.config.functions_run_eagerly() else self._compiled
        with data_source.named():
            return (check or self._eager)(*args, **kwargs)

    def look(self) -> None:
        """Looks at the calls since the last look; see `look_every` of `checked`.

        Raises:
          NumericsError: If one of them failed.
        """
        for check in [
            self._compiled,
            *(each._compiled for each in self._bound.values()),
        ]:
            if isinstance(check, LateCheck):
                check.look()

    def _warn_unless_checked(self) -> None:
        is_due = not (tally.is_inside() or _compat.is_stateless())
        if is_due and not self._has_warned:
            self._has_warned = True
            name = getattr(self._function, "__name__", type(self._function).__name__)
            warnings.warn(
                f"`{name}` is called while a `tf.function` is traced that is not "
                "checked: what it computes there is not checked either. Put "
                "`@tfsafe.checked` above the outermost `@tf.function`; in a Keras "
                "model, use `tfsafe.NumericsMonitor`.",
                RuntimeWarning,
                stacklevel=3,
            )

    def around(self, change: Callable[[Any], Any]) -> "CheckedFunction":
        """Returns the same check of a changed function; see `graph.Wrapper`."""
        return CheckedFunction(change(self._function), self._options, self._look_every)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Binds a checked method to its object."""
        if instance is None:
            return self
        if self._compiled is None:
            return types.MethodType(self, instance)
        if instance not in self._bound:
            method = self._function.__get__(instance, owner)
            self._bound[instance] = CheckedFunction(
                method, self._options, self._look_every
            )
        return self._bound[instance]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """That of a `tf.function`, because `tf.Module` saves no other methods."""
        return type(self) if self._compiled is None else type(self._function)

    def __getattr__(self, name: str) -> Any:
        # `copy` and `pickle` ask for special methods, before `__init__` has run too:
        # they are to get those of this class.
        if name.startswith("__") or name == "_function":
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        if name == "get_concrete_function" and hasattr(self._function, name):
            return asserting(self._function, self._options).get_concrete_function
        return getattr(self._function, name)


def _refuse_unless_number(look_every: Any) -> None:
    if isinstance(look_every, bool) or not isinstance(look_every, int):
        raise TypeError(
            "`look_every` must be a whole number of calls. Received: "
            f"look_every={look_every!r} of type {type(look_every).__name__}."
        )
    if look_every < 1:
        raise ValueError(
            f"`look_every` must be at least 1. Received: look_every={look_every}."
        )


def _compiled(function: Any, options: Options, look_every: int) -> CompiledCheck | None:
    if not _is_traced(function):
        return None
    if look_every == 1:
        return CompiledCheck(function, options=options)
    return LateCheck(function, options=options, look_every=look_every)


def _options_of(function: Any) -> Options | None:
    return function._options if isinstance(function, CheckedFunction) else None


def _is_traced(function: Any) -> bool:
    experimental = tf.types.experimental
    return isinstance(
        function, experimental.GenericFunction | experimental.ConcreteFunction
    )
