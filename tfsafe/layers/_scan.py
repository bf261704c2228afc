"""The loop over time of a recurrent layer, with a gradient written for speed.

A step is a function of rows, `step(projected, recurrent, states, dropped, weights)`,
which returns the new states, the output first:

- `projected`: the input times the kernel, of shape `(batch, gates * units)`;
- `recurrent`: the last output times the recurrent kernel, of the same shape;
- `states`: tuple of tensors of shape `(batch, units)`, the last output first;
- `dropped`: dropout's factors for the candidate, `(batch, units)`, or None;
- `weights`: list of tensors whose first axis is the batch, so that the gradient of one
  step need not be summed over it.

What the gradient of TensorFlow's own loop does at every step stands outside of the loop
here: the matrix products for the gradients of the two kernels are one each, and nothing
but the states is kept for the way back; the rest of the step is computed again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

States = tuple[tf.Tensor, ...]
Step = Callable[
    [tf.Tensor, tf.Tensor, States, tf.Tensor | None, Sequence[tf.Tensor]], States
]


def project(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Computes `x @ kernel`; rows without an incoming gradient get and give none.

    With NaN in such a row, the gradient of `tf.matmul` in the kernel is 0 * NaN.
    """

    @tf.custom_gradient
    def function(x: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Any]:
        def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return project(upstream, tf.transpose(kernel)), _outer(x, upstream)

        flat = tf.reshape(x, [-1, x.shape[-1]])
        shape = tf.concat([tf.shape(x)[:-1], [kernel.shape[-1]]], 0)
        return tf.reshape(tf.matmul(flat, kernel), shape), vjp

    return function(x, kernel)


def _outer(x: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    """Sums the outer products of rows, without those whose `upstream` is 0."""
    kept = tf.math.multiply_no_nan(x, _is_live(x.dtype, upstream))
    rows = tf.reshape(kept, [-1, x.shape[-1]])
    return tf.matmul(
        rows, tf.reshape(upstream, [-1, upstream.shape[-1]]), transpose_a=True
    )


def _is_live(dtype: tf.DType, *upstream: tf.Tensor) -> tf.Tensor:
    """Returns 1 for each row with an incoming gradient that is not 0, else 0."""
    both = tf.concat(upstream, -1) if len(upstream) > 1 else upstream[0]
    return tf.cast(tf.reduce_any(tf.not_equal(both, 0), -1, keepdims=True), dtype)


def guarded(step: Step) -> Step:
    """Returns `step` with "zero upstream, zero gradient" for each of its rows."""

    def function(
        projected: tf.Tensor,
        recurrent: tf.Tensor,
        states: States,
        dropped: tf.Tensor | None,
        weights: Sequence[tf.Tensor],
    ) -> States:
        count = len(states)

        @tf.custom_gradient
        def rows(*args: tf.Tensor) -> tuple[States, Any]:
            def vjp(*upstream: tf.Tensor) -> list[tf.Tensor]:
                return _pull_back(step, count, dropped, args, upstream)

            return _apply(step, count, dropped, args), vjp

        return rows(projected, recurrent, *states, *weights)

    return function


def _apply(
    step: Step, count: int, dropped: tf.Tensor | None, args: Sequence[tf.Tensor]
) -> States:
    projected, recurrent, *others = args
    return step(projected, recurrent, tuple(others[:count]), dropped, others[count:])


def _pull_back(
    step: Step,
    count: int,
    dropped: tf.Tensor | None,
    args: Sequence[tf.Tensor],
    upstream: Sequence[tf.Tensor],
) -> list[tf.Tensor]:
    """Returns the gradients of one step in `args`, rows and weights."""
    live = _is_live(args[0].dtype, *upstream)
    rows = [tf.math.multiply_no_nan(row, live) for row in args[: 2 + count]]
    given = [*rows, *args[2 + count :]]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(given)
        value = _apply(step, count, dropped, given)
    return tape.gradient(
        value, given, list(upstream), unconnected_gradients=tf.UnconnectedGradients.ZERO
    )


def scan(
    step: Step,
    projected: tf.Tensor,
    dropped: tf.Tensor | None,
    keep: tf.Tensor | None,
    states: States,
    kernel: tf.Tensor,
    weights: Sequence[tf.Tensor],
) -> tuple[tf.Tensor, States]:
    """Runs `step` over the first axis.

    Args:
      step: See the module's docstring.
      projected: Tensor of shape `(steps, batch, gates * units)`.
      dropped: Tensor of shape `(steps, batch, units)` or `(batch, units)`, or None.
      keep: Booleans of shape `(steps, batch, 1)`, or None. Where False, the states
        stay.
      states: The initial states, of the dtype of `projected`.
      kernel: The recurrent kernel. The last output is cast to its dtype to be
        multiplied.
      weights: See the module's docstring.

    Returns:
      The outputs, of shape `(steps, batch, units)`, and the last states.
    """
    count = len(states)
    loop = _Loop(step, dropped, keep, count)

    @tf.custom_gradient
    def function(*args: tf.Tensor) -> tuple[States, Any]:
        projected, kernel, *others = args
        initial, weights = tuple(others[:count]), others[count:]
        histories, last = loop.forwards(projected, kernel, initial, weights)

        def vjp(*upstream: tf.Tensor) -> list[tf.Tensor]:
            before = [
                tf.concat([first[tf.newaxis], history[:-1]], 0)
                for first, history in zip(initial, histories, strict=True)
            ]
            return loop.backwards(
                projected, kernel, before, weights, upstream[0], upstream[1:]
            )

        return (histories[0], *last), vjp

    outputs, *last = function(projected, kernel, *states, *weights)
    return outputs, tuple(last)


class _Loop:
    """The two directions of `scan`."""

    def __init__(
        self,
        step: Step,
        dropped: tf.Tensor | None,
        keep: tf.Tensor | None,
        count: int,
    ):
        self.step = step
        self.dropped = dropped
        self.keep = keep
        self.count = count

    def forwards(
        self,
        projected: tf.Tensor,
        kernel: tf.Tensor,
        states: States,
        weights: Sequence[tf.Tensor],
    ) -> tuple[list[tf.Tensor], States]:
        """Returns each state after each step, and the last states."""
        length = tf.shape(projected)[0]
        given = _unstacked(projected)

        def body(t: tf.Tensor, states: States, histories: Any) -> Any:
            recurrent = multiply(states[0], kernel)
            new = self.step(given.read(t), recurrent, states, self._dropped(t), weights)
            if self.keep is not None:
                new = tuple(
                    tf.where(self.keep[t], *pair)
                    for pair in zip(new, states, strict=True)
                )
            histories = [
                history.write(t, state)
                for history, state in zip(histories, new, strict=True)
            ]
            return t + 1, tuple(new), histories

        _, last, histories = tf.while_loop(
            lambda t, *_: t < length,
            body,
            (tf.constant(0), states, [_array(length, state) for state in states]),
            maximum_iterations=length,
        )
        return [history.stack() for history in histories], last

    def backwards(
        self,
        projected: tf.Tensor,
        kernel: tf.Tensor,
        before: Sequence[tf.Tensor],
        weights: Sequence[tf.Tensor],
        d_outputs: tf.Tensor,
        d_last: Sequence[tf.Tensor],
    ) -> list[tf.Tensor]:
        """Returns the gradients in the arguments of `scan`'s custom gradient."""
        length = tf.shape(projected)[0]
        recurrent = multiply(before[0], kernel)
        rows = [_unstacked(x) for x in (projected, recurrent, *before)]
        incoming = _unstacked(d_outputs)
        transposed = tf.transpose(kernel)

        def body(left: tf.Tensor, d_states: States, d_weights: Any, found: Any) -> Any:
            t = left - 1
            upstream = [d_states[0] + incoming.read(t), *d_states[1:]]
            passed = [tf.zeros([], x.dtype) for x in upstream]
            if self.keep is not None:
                keep = self.keep[t]
                passed = [tf.where(keep, tf.zeros_like(x), x) for x in upstream]
                upstream = [tf.where(keep, x, tf.zeros_like(x)) for x in upstream]
            args = [*(x.read(t) for x in rows), *weights]
            d_projected, d_recurrent, *d_others = _pull_back(
                self.step, self.count, self._dropped(t), args, upstream
            )
            d_states = [
                x + y for x, y in zip(d_others[: self.count], passed, strict=True)
            ]
            d_states[0] += multiply(d_recurrent, transposed)
            d_weights = [
                x + y for x, y in zip(d_weights, d_others[self.count :], strict=True)
            ]
            found = [found[0].write(t, d_projected), found[1].write(t, d_recurrent)]
            return t, tuple(d_states), d_weights, found

        _, d_states, d_weights, found = tf.while_loop(
            lambda left, *_: left > 0,
            body,
            (
                length,
                tuple(d_last),
                [tf.zeros_like(x) for x in weights],
                [_array(length, projected[0]) for _ in range(2)],
            ),
            maximum_iterations=length,
        )
        d_projected, d_recurrent = (x.stack() for x in found)
        d_kernel = _outer(
            tf.cast(before[0], kernel.dtype), tf.cast(d_recurrent, kernel.dtype)
        )
        return [d_projected, d_kernel, *d_states, *d_weights]

    def _dropped(self, t: tf.Tensor) -> tf.Tensor | None:
        if self.dropped is None or self.dropped.shape.rank == 2:
            return self.dropped
        return self.dropped[t]


def multiply(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Multiplies in the dtype of the kernel, and returns that of `x`."""
    return tf.cast(project(tf.cast(x, kernel.dtype), kernel), x.dtype)


def _unstacked(x: tf.Tensor) -> tf.TensorArray:
    return tf.TensorArray(
        x.dtype, tf.shape(x)[0], element_shape=x.shape[1:], clear_after_read=False
    ).unstack(x)


def _array(length: tf.Tensor, element: tf.Tensor) -> tf.TensorArray:
    return tf.TensorArray(element.dtype, length, element_shape=element.shape)
