"""Compiles the loop of `scan` where the training step around it is not compiled."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._gradients import custom_gradient

_Rows = Sequence[tf.Tensor]
# From so many steps on, the loop is compiled, if it may be.
_LEAST_COMPILED = 32


def is_faster(args: _Rows) -> bool:
    """Returns whether a loop in a graph for a CPU is worth the seconds to compile it.

    Where the number of steps is not known, each one would be compiled. What is compiled
    has a first gradient alone: with two tapes, or none seen here, another may follow.
    """
    return (
        (args[0].shape[0] or 0) >= _LEAST_COMPILED
        and _compat.is_watched_once(args)
        and not tf.executing_eagerly()
        and not _compat.is_traced_for_xla()
        and tf.test.is_built_with_xla()
        and not tf.config.list_physical_devices("GPU")
    )


def both_ways(
    loop: Any,
    unstacked: Callable[[tf.Tensor], tf.TensorArray],
    count: int,
    function: Callable[..., Any],
) -> Callable[..., Any]:
    """Returns `function` of `scan`, each direction compiled by XLA.

    The gradient of the gradient, which XLA would have to hand lists of tensors, begins
    again from `function`.

    Args:
      loop: The two directions, `forwards` and `backwards`.
      unstacked: Makes an array of the stack of its elements.
      count: Number of the states.
      function: `function` of `scan`.
    """

    def by_xla(function: Callable[..., Any], *args: Any) -> Any:
        # Findings name the layer by the scope.
        scope = tf.get_current_name_scope() or "scan"

        @partial(tf.function, jit_compile=True, autograph=False)
        def scoped(*args: Any) -> Any:
            with tf.name_scope(f"{scope}/"):
                return function(*args)

        # No tape differentiates what is compiled.
        with _compat.stop_recording():
            return scoped(*args)

    def forwards(*args: Any) -> Any:
        outputs, arrays, last = loop.forwards(*args)
        return outputs, [x.stack() for x in arrays], last

    def backwards(
        kernel: tf.Tensor, first: tf.Tensor, outputs: tf.Tensor, kept: _Rows, *rest: Any
    ) -> list[tf.Tensor]:
        before = tf.concat([first[tf.newaxis], outputs[:-1]], 0)
        return loop.backwards(kernel, before, list(map(unstacked, kept)), *rest)

    @custom_gradient
    def call(
        projected: tf.Tensor, kernel: tf.Tensor, *others: tf.Tensor
    ) -> tuple[list[tf.Tensor], Any]:
        args = projected, kernel, *others
        initial, weights = others[:count], others[count:]
        outputs, kept, last = by_xla(forwards, projected, kernel, initial, weights)

        @custom_gradient
        def gradient(*both: tf.Tensor) -> tuple[list[tf.Tensor], Any]:
            upstream = both[len(args) :]
            slopes = by_xla(
                backwards, kernel, initial[0], outputs, kept, weights, upstream
            )

            def vjp(*outer: tf.Tensor) -> Any:
                copies = [tf.identity(x) for x in both]
                given, incoming = copies[: len(args)], copies[len(args) :]
                with tf.GradientTape() as second:
                    second.watch(copies)
                    with tf.GradientTape() as first:
                        first.watch(given)
                        values = function(*given)
                    again = first.gradient(values, given, incoming)
                return second.gradient(again, copies, outer)

            return slopes, vjp

        return [outputs, *last], lambda *upstream: gradient(*args, *upstream)

    return call
