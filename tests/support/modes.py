"""Running one function in each of TensorFlow's execution modes."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

MODES = ("eager", "graph", "xla")
HAS_GPU = bool(tf.config.list_physical_devices("GPU"))


def compile_for(mode: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function` as it runs in `mode`.

    Autograph is off, so that coverage counts the lines that are traced.
    """
    if mode == "eager":
        return function
    return tf.function(function, autograph=False, jit_compile=mode == "xla")


def value_and_gradients(
    function: Callable[..., tf.Tensor],
    args: Sequence[tf.Tensor],
    mode: str,
    upstream: Any = None,
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Runs `function(*args)` and its gradient in `mode`.

    Args:
      function: Returns one tensor.
      args: Floating tensors, all differentiated.
      mode: One of `MODES`.
      upstream: Incoming gradient; ones where None.

    Returns:
      The value and one gradient for each argument.
    """

    def run(*args: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            tape.watch(args)
            value = function(*args)
        seed = None if upstream is None else tf.cast(upstream, value.dtype)
        return value, tape.gradient(value, list(args), seed)

    return compile_for(mode, run)(*args)


def second_gradient(
    function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor, mode: str
) -> tf.Tensor:
    """Returns the gradient of the summed gradient of `function` at `x`."""

    def run(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                value = function(x)
            slope = inner.gradient(value, x)
        return outer.gradient(slope, x, unconnected_gradients="zero")

    return compile_for(mode, run)(x)


def second_gradients(
    function: Callable[..., tf.Tensor], args: Sequence[tf.Tensor], mode: str
) -> list[list[tf.Tensor]]:
    """Returns the gradients of each summed gradient of `function`, in `mode`.

    For an elementwise function, entry `[i][j]` is the derivative in `args[i]` and
    `args[j]`, for each element.
    """

    def run(*args: tf.Tensor) -> list[list[tf.Tensor]]:
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(args)
            with tf.GradientTape() as inner:
                inner.watch(args)
                value = function(*args)
            slopes = inner.gradient(value, list(args))
        return [
            outer.gradient(slope, list(args), unconnected_gradients="zero")
            for slope in slopes
        ]

    return compile_for(mode, run)(*args)


def silent_gradients(
    function: Callable[..., tf.Tensor], args: Sequence[tf.Tensor], mode: str
) -> list[tf.Tensor]:
    """Returns what must be 0: all gradients where the incoming gradient is 0.

    Args:
      function: Returns one tensor.
      args: Floating tensors, at singular points above all.
      mode: One of `MODES`.

    Returns:
      The gradients for a zero incoming gradient; the gradients of these; and the
      gradients, for a zero incoming gradient, of the gradients for ones.
    """

    def run(*args: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(args)
            with tf.GradientTape(persistent=True) as inner:
                inner.watch(args)
                value = function(*args)
            firsts = inner.gradient(value, list(args), tf.zeros_like(value))
            slopes = inner.gradient(value, list(args))
        zeros = [tf.zeros_like(slope) for slope in slopes]
        return [
            *firsts,
            *outer.gradient(firsts, list(args), unconnected_gradients="zero"),
            *outer.gradient(slopes, list(args), zeros, unconnected_gradients="zero"),
        ]

    return compile_for(mode, run)(*args)
