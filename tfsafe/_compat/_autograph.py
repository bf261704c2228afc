"""Says what AutoGraph converts of this package, and of the functions it is given."""

from collections.abc import Callable
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_MISSING = (ImportError, AttributeError, TypeError)


def exempt_from_autograph() -> None:
    """Has AutoGraph convert nothing of this package, as it does with Keras.

    In a `tf.function` it would convert every function that the user's calls, and their
    first trace would take seconds. `autograph.core.config.CONVERSION_RULES`, tried with
    TensorFlow 2.21.0. Without that list, or what `as_converted` needs, everything
    works, and takes longer.
    """
    try:
        from tensorflow.python.autograph.core import config

        _status()
        rule = config.DoNotConvert(_PACKAGE)
        if all(str(each) != str(rule) for each in config.CONVERSION_RULES):
            config.CONVERSION_RULES = (*config.CONVERSION_RULES, rule)
    except _MISSING:
        return


def as_converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a user's function as AutoGraph would call it here.

    For functions that this package is given: its own calls are not converted. The same
    function where AutoGraph is off. Not `tf.__internal__.autograph.tf_convert`, which
    changes the decorators of TensorFlow that a function has.
    """
    try:
        converted_call, context, is_on = _status()
    except _MISSING:
        return function
    if not is_on:
        return function
    options = context.options.call_options()

    def call(*args: Any, **kwargs: Any) -> Any:
        with context:
            return converted_call(function, args, kwargs, options=options)

    return call


def _status() -> tuple[Callable[..., Any], Any, bool]:
    """Returns what AutoGraph's code makes calls with, and whether it is on here.

    `autograph.impl.api.converted_call` and `autograph.core.ag_ctx`, tried with
    TensorFlow 2.21.0.
    """
    from tensorflow.python.autograph.core import ag_ctx
    from tensorflow.python.autograph.impl.api import converted_call

    context = ag_ctx.control_status_ctx()
    is_on = context.status == ag_ctx.Status.ENABLED and context.options is not None
    return converted_call, context, is_on
