"""Checks the arguments of `SafeOptimizer`: refuses early, and suggests a fix."""

import difflib
import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _args, _compat
from tfsafe._report.text import listed
from tfsafe.optimizers._delegation import DelegatingOptimizer
from tfsafe.optimizers._master_copies import is_half
from tfsafe.optimizers._rmsprop import RMSprop

# Names that select tfsafe's optimizer in place of Keras'.
_OWN = {"rmsprop": RMSprop}


def inner_optimizer(identifier: Any) -> Any:
    """Returns the Keras optimizer that an instance, a name or a config describes.

    Raises:
      ValueError: If it describes none, or one that cannot be wrapped.
    """
    optimizer, cause = None, None
    if isinstance(identifier, str) and identifier.lower() in _OWN:
        identifier = _OWN[identifier.lower()]()
    try:
        optimizer = keras.optimizers.get(identifier)
    except (TypeError, ValueError) as error:
        cause = error
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ValueError(
            "`inner_optimizer` must be a Keras optimizer: an instance such as "
            "`keras.optimizers.Adam()`, a name such as 'adam', or a config. "
            f"Received: inner_optimizer={identifier!r}.{_hint(identifier)}"
        ) from cause
    if isinstance(optimizer, DelegatingOptimizer):
        raise ValueError(
            "`inner_optimizer` is a SafeOptimizer already. Received: "
            f"inner_optimizer={optimizer.name!r}. Use that one, or wrap its "
            "`inner_optimizer`."
        )
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise ValueError(
            "`inner_optimizer` must not be a LossScaleOptimizer: it has to see the "
            "gradients first. Wrap the other way round, `LossScaleOptimizer("
            "SafeOptimizer(optimizer))`, which `compile` does by itself under the "
            "policy mixed_float16."
        )
    return optimizer


def refuse_unless_optimizer(inner: Any) -> None:
    """Refuses what is not an instance; Keras scales the loss of nothing else.

    Raises:
      ValueError: If it is none.
    """
    if not isinstance(inner, keras.optimizers.Optimizer):
        raise ValueError(
            "`inner_optimizer` must be an instance of a Keras optimizer, such as "
            f"`keras.optimizers.Adam()`. Received: inner_optimizer={inner!r:.80}. For "
            "another one write `LossScaleOptimizer(keras.optimizers.get(...))`."
        )


def _hint(identifier: Any) -> str:
    """Says what was meant, as far as that can be seen."""
    kind = identifier if isinstance(identifier, type) else type(identifier)
    if kind.__module__.startswith("tf_keras."):
        return (
            " It belongs to Keras 2; the class of the same name in `keras.optimizers` "
            "is the one of Keras 3."
        )
    if kind is identifier:
        return f" Make an instance of the class: `SafeOptimizer({kind.__name__}())`."
    if isinstance(identifier, keras.Model):
        return " Wrap the optimizer: `model.compile(SafeOptimizer('adam'), ...)`."
    known = [name.lower() for name in dir(keras.optimizers) if name[0].isupper()]
    close = difflib.get_close_matches(str(identifier).lower(), known)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


def limit(value: Any) -> float | None:
    """Returns the limit as a float, or None for the default."""
    if value is None:
        return None
    # `not >` rather than `<=`, so that NaN is refused.
    if not _args.is_number(value) or not value > 0:
        raise ValueError(
            "`limit` must be a positive number, `math.inf` for NaN and infinity alone, "
            f"or None for the default of the dtype. Received: limit={value!r}."
        )
    return float(value)


def max_consecutive(value: Any) -> int | None:
    """Returns the bound as an int, or None for none."""
    if value is None:
        return None
    if not _args.is_integer(value) or value < 1:
        raise ValueError(
            "`max_consecutive` must be a positive integer, 1 to stop at the first "
            "non-finite step, or None to go on for ever. Received: "
            f"max_consecutive={value!r}."
        )
    return int(value)


def outlier_threshold(value: Any) -> float | None:
    """Returns the threshold as a float, or None for none."""
    if value is None:
        return None
    if not _args.is_number(value) or not 0 < value < math.inf:
        raise ValueError(
            "`outlier_threshold` must be a positive finite number of standard "
            "deviations, such as 6.0, or None to take steps of any length. Received: "
            f"outlier_threshold={value!r}."
        )
    return float(value)


def steps(value: Any, name: str, least: int) -> int:
    """Returns a number of steps as an int."""
    if not _args.is_integer(value) or value < least:
        raise ValueError(
            f"`{name}` must be an integer, the number of steps, at least {least}. "
            f"Received: {name}={value!r}."
        )
    return int(value)


def clipping(clipnorm: Any, global_clipnorm: Any, inner: Any) -> list[float | None]:
    """Returns both norms as floats, or None if the wrapper is not to clip.

    Raises:
      ValueError: If one is not a positive number, if both are given, or if the inner
        optimizer clips.
    """
    given = {"clipnorm": clipnorm, "global_clipnorm": global_clipnorm}
    norms = [_clip_norm(name, value) for name, value in given.items()]
    if None not in norms:
        raise ValueError(
            "Only one of `clipnorm` and `global_clipnorm` can be set. Received: "
            f"clipnorm={clipnorm}, global_clipnorm={global_clipnorm}."
        )
    for name in ("clipnorm", "global_clipnorm", "clipvalue"):
        value = getattr(inner, name)
        if norms != [None, None] and value is not None:
            raise ValueError(
                "Either the SafeOptimizer clips or its inner optimizer, not both. "
                f"Received: clipnorm={clipnorm}, global_clipnorm={global_clipnorm}, "
                f"and an inner optimizer with {name}={value}. Leave `{name}` out of "
                "the inner optimizer."
            )
    return norms


def _clip_norm(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if not _args.is_number(value) or not 0 < value < math.inf:
        raise ValueError(
            f"`{name}` must be a positive finite number, or None not to clip. "
            f"Received: {name}={value!r}."
        )
    return float(value)


def minimum_scale(value: Any, initial_scale: float) -> float:
    """Returns the floor of the loss scale as a float."""
    if not _args.is_number(value) or not 0 < value <= initial_scale:
        raise ValueError(
            "`minimum_scale` must be a positive number, at most `initial_scale`. "
            f"Received: minimum_scale={value!r}, initial_scale={initial_scale!r}."
        )
    return float(value)


# -- What a step is taken with ---------------------------------------------------------


def check_strategy(made_under: Any, inner: Any) -> None:
    """Checks that a step is taken in a replica of the strategy it was prepared for."""
    if tf.distribute.in_cross_replica_context():
        raise ValueError(
            "`apply` takes the step of one replica. Call it in a function that "
            "`strategy.run` runs, not directly under `strategy.scope()`."
        )
    strategy = tf.distribute.get_strategy()
    found = (made_under, _compat.strategy_of(inner))
    if tf.distribute.has_strategy() and found != (strategy, strategy):
        names = [type(each).__name__ for each in (strategy, *found)]
        raise ValueError(
            "The SafeOptimizer and its inner optimizer must be made under the strategy "
            "that runs them, so that its replicas have the same counts and slots. "
            f"Received: a step under a {names[0]}, of a SafeOptimizer made under a "
            f"{names[1]}, with an inner optimizer made under a {names[2]}. Make both "
            "within `with strategy.scope():`."
        )


def check_call(grads: Any, variables: Any) -> None:
    """Refuses one tensor, pairs for `apply_gradients`, and tensors for variables.

    Raises:
      TypeError: If there are any.
    """
    # The rows of a tensor may be the gradients of as many scalars.
    is_one = isinstance(grads, tf.Tensor) and isinstance(variables, list | tuple)
    if is_one and grads.shape[:1] != [len(variables)]:
        raise TypeError(
            f"`grads` must be a list. Received: a tensor of shape {grads.shape}. "
            "Write `apply([gradient], [variable])`."
        )
    if any(isinstance(each, tuple) for each in grads):
        raise TypeError(
            "`grads` must be gradients. Received: a tuple. Pass pairs of a gradient "
            "and its variable to `apply_gradients(zip(grads, variables))`."
        )
    for each in variables or ():
        if isinstance(each, tf.Tensor):
            raise TypeError(
                "`trainable_variables` must be variables. Received: a tensor of shape "
                f"{each.shape}. The gradients come first: `apply(grads, variables)` "
                "or `apply_gradients(zip(grads, variables))`."
            )


def gradients(grads: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
    """Returns the gradients as tensors; sparse ones and None stay unchanged.

    Raises:
      ValueError: If there are more or fewer than variables, or of another shape.
    """
    if len(grads) != len(variables):
        raise ValueError(
            "`grads` and `trainable_variables` must be of equal length. Received: "
            f"{len(grads)} gradients and {len(variables)} variables. Pass None for a "
            "variable without gradient."
        )
    for gradient, variable in zip(grads, variables, strict=True):
        shape = getattr(gradient, "shape", variable.shape)
        if not tf.TensorShape(shape).is_compatible_with(variable.shape):
            raise ValueError(
                "`grads` must have the shapes of the variables. Received: a gradient "
                f"of shape {tuple(shape)} for {variable.name!r} of shape "
                f"{tuple(variable.shape)}. Are they in the same order?"
            )
    return [
        gradient
        if gradient is None or isinstance(gradient, tf.IndexedSlices)
        else tf.convert_to_tensor(gradient)
        for gradient in grads
    ]


def refuse_half_slots(variables: Sequence[Any]) -> None:
    """Refuses variables in half precision for an optimizer that was built for them."""
    paths = [getattr(v, "path", v.name) for v in variables if is_half(v)]
    if paths:
        raise ValueError(
            "`inner_optimizer` was built already, with slots in half precision for "
            f"{listed(paths)}, in which no optimizer trains well. SafeOptimizer trains "
            "float32 copies of such variables: give it an optimizer that was not used "
            "yet, such as `type(optimizer).from_config(optimizer.get_config())`."
        )
