"""Values from the forward pass, used again in gradients without losing their own."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe._gradients import custom_gradient


def known(
    value: tf.Tensor, function: Callable[..., tf.Tensor], *args: tf.Tensor
) -> tf.Tensor:
    """Returns `value`, which is `function(*args)`, with the gradient of the function.

    A gradient that needs the result of the forward pass takes it from there. The result
    alone would hand the gradient of a gradient to TensorFlow's own operations, which do
    not keep our promises; computing it again costs a pass. Here the function runs again
    only if the gradient of the gradient is asked for.

    Args:
      value: Result of the forward pass.
      function: Of `args`; returns one tensor.
      *args: Floating tensors.
    """
    value = tf.stop_gradient(value)

    @custom_gradient
    def remembered(*args: tf.Tensor) -> tuple[tf.Tensor, Any]:
        def vjp(upstream: tf.Tensor) -> Any:
            # Copies: in the gradient of a loop, `args` belong to the graph of the
            # loop, and no tape records that they are captured.
            copies = [tf.identity(each) for each in args]
            with tf.GradientTape() as tape:
                tape.watch(copies)
                again = function(*copies)
            gradients = tape.gradient(again, copies, upstream)
            return gradients[0] if len(args) == 1 else gradients

        return tf.identity(value), vjp

    return remembered(*args)
