"""Checks a `tf.function` whose Python function is a checked one.

`tf.function(checked(f))` is `checked(tf.function(f))` in the other order: the call to
check is that of the `tf.function`, which TensorFlow makes and does not know of it.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import contained
from tfsafe._patching import Patch
from tfsafe.debugging.checks import tally
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.traced.compiled import CompiledCheck

_CHECKS: weakref.WeakKeyDictionary[Any, CompiledCheck | None] = (
    weakref.WeakKeyDictionary()
)


def is_outermost() -> bool:
    """Returns whether a call made now is inside no other that is traced or checked."""
    # A thread that Python did not start runs a `tf.py_function` of some function.
    return (
        tf.executing_eagerly() and not tally.is_inside() and _compat.is_python_thread()
    )


@functools.cache
def follow(options_of: Callable[[Any], Options | None]) -> None:
    """Has each `tf.function` checked for whose Python function there are options."""

    def calls(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            check = None
            with contained("choosing what to check"):
                if is_outermost() and not tf.config.functions_run_eagerly():
                    if function not in _CHECKS:
                        _CHECKS[function] = _check(function, options_of)
                    check = _CHECKS[function]
            if check is None:
                return original(function, *args, **kwargs)
            return check(*args, **kwargs)

        return call

    for kind in tf.types.experimental.GenericFunction.__subclasses__():
        Patch(kind, "__call__", calls).install()


def _check(
    function: Any, options_of: Callable[[Any], Options | None]
) -> CompiledCheck | None:
    inner = getattr(function, "python_function", None)
    while inner is not None:
        options = options_of(inner)
        if options is not None:
            return CompiledCheck(weakref.proxy(function), options=options)
        # Behind a method, a `functools.partial` or a decorator.
        inner = next(
            (
                getattr(inner, name)
                for name in ("__func__", "func", "__wrapped__")
                if hasattr(inner, name)
            ),
            None,
        )
    return None
