"""Running one function in each of TensorFlow's execution modes."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

MODES = ("eager", "graph", "xla")


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
