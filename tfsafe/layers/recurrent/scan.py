"""Runs a recurrent step over time, with a gradient written for speed.

A step is a function of rows, `step(gates, states, dropped, weights)`, which returns the
new states, the output first:

- `gates`: the input times the kernel, and the last output times the recurrent kernel,
  each of shape `(batch, gates * units)`; or the sum of both alone;
- `states`: tensors of shape `(batch, units)`, the last output first;
- `dropped`: dropout's factors for the candidate, `(batch, units)`, or None;
- `weights`: tensors whose first axis is the batch or has size 1.

With `pieces`, the last of the gates is standardized before the step, which gets it in
the shape `(batch, pieces, elements)`, or in its own shape if there is one piece.

TensorFlow's own loop adds to the gradient of each kernel in every step; here it is one
matrix product after the loop. The forward loop keeps the states only: the backward loop
recomputes the rest of each step, and the standardized gates of all steps at once.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe._gradients import custom_gradient
from tfsafe.ops.kernels import layer_norm

_Rows = Sequence[tf.Tensor]
Step = Callable[[_Rows, _Rows, tf.Tensor | None, _Rows], _Rows]


def project(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Computes `x @ kernel`; rows of `x` without an incoming gradient give none."""
    # With NaN in such a row, the gradient of `tf.matmul` in the kernel is 0 * NaN.

    @custom_gradient
    def function(x: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Any]:
        def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            kept = tf.math.multiply_no_nan(x, tf.cast(_is_live(upstream), x.dtype))
            return project(upstream, tf.transpose(kernel)), _outer(kept, upstream)

        return tf.tensordot(x, kernel, 1), vjp

    return function(x, kernel)


def multiply(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Computes `x @ kernel` in the dtype of the kernel, and returns that of `x`."""
    return tf.cast(project(tf.cast(x, kernel.dtype), kernel), x.dtype)


def _outer(x: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    """Sums the outer products of all rows."""
    axes = list(range(x.shape.rank - 1))
    return tf.tensordot(x, upstream, [axes, axes])


def _is_live(*upstream: tf.Tensor) -> tf.Tensor:
    """Returns for each row whether an incoming gradient is not 0."""
    both = tf.concat(upstream, -1) if len(upstream) > 1 else upstream[0]
    return tf.reduce_any(tf.not_equal(both, 0), -1, keepdims=True)


class Pieces(NamedTuple):
    """How the last of the gates is standardized."""

    number: int
    epsilon: float

    def standardized(self, x: tf.Tensor) -> tf.Tensor:
        """Returns the pieces, with their gradient."""
        return layer_norm.standardize(self._cut(x), self.epsilon)

    def known(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the pieces and their factors, with which their gradient is known."""
        return layer_norm.with_inverse(self._cut(x), self.epsilon)

    def _cut(self, x: tf.Tensor) -> tf.Tensor:
        if self.number == 1:
            return x
        shape = [self.number, x.shape[-1] // self.number]
        return tf.reshape(x, tf.concat([tf.shape(x)[:-1], shape], 0))


class _Flat(NamedTuple):
    """A step as a function of one list: gates, states and weights."""

    step: Step
    gates: int
    states: int
    pieces: Pieces | None

    def __call__(self, args: _Rows, dropped: tf.Tensor | None) -> list[tf.Tensor]:
        gates, states, weights = self.split(args)
        if self.pieces is not None:
            gates = [*gates[:-1], self.pieces.standardized(gates[-1])]
        return list(self.step(gates, states, dropped, weights))

    def split(self, args: _Rows) -> tuple[_Rows, _Rows, _Rows]:
        rows = self.gates + self.states
        return args[: self.gates], args[self.gates : rows], args[rows:]

    def pull_back(
        self, args: _Rows, dropped: tf.Tensor | None, upstream: _Rows
    ) -> tuple[_Rows, _Rows, _Rows]:
        """Returns the gradients in gates, states and weights."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(args)
            value = self(args, dropped)
        zero = tf.UnconnectedGradients.ZERO
        return self.split(
            tape.gradient(value, list(args), list(upstream), unconnected_gradients=zero)
        )


def guarded_step(
    step: Step,
    gates: _Rows,
    states: _Rows,
    dropped: tf.Tensor | None,
    weights: _Rows,
    pieces: Pieces | None = None,
) -> list[tf.Tensor]:
    """Runs one step; rows without an incoming gradient get and give none."""
    flat = _Flat(step, len(gates), len(states), pieces)
    rows = len(gates) + len(states)

    @custom_gradient
    def function(*args: tf.Tensor) -> tuple[list[tf.Tensor], Any]:
        def vjp(*upstream: tf.Tensor) -> list[tf.Tensor]:
            live = tf.cast(_is_live(*upstream), args[0].dtype)
            kept = [tf.math.multiply_no_nan(x, live) for x in args[:rows]]
            found = flat.pull_back([*kept, *args[rows:]], dropped, upstream)
            return [gradient for part in found for gradient in part]

        return flat(args, dropped), vjp

    return function(*gates, *states, *weights)


def scan(
    step: Step,
    projected: tf.Tensor,
    kernel: tf.Tensor,
    states: _Rows,
    weights: _Rows,
    *,
    is_joint: bool,
    pieces: Pieces | None = None,
    dropped: tf.Tensor | None = None,
    keep: tf.Tensor | None = None,
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Runs `step` over the first axis of `projected`.

    Args:
      step: See the module's docstring.
      projected: Tensor of shape `(steps, batch, gates * units)`.
      kernel: The recurrent kernel. The last output is cast to its dtype for the
        product.
      states: The initial states, of the dtype of `projected`.
      weights: See the module's docstring; the first axis is the batch.
      is_joint: Whether the step takes the sum of the two products.
      pieces: See the module's docstring.
      dropped: Tensor of shape `(steps, batch, units)` or `(batch, units)`, or None.
      keep: Booleans of shape `(steps, batch, 1)`, or None. Where False, the states
        stay.

    Returns:
      The outputs, of shape `(steps, batch, units)`, and the last states.
    """
    count = len(states)
    loop = _Loop(_Flat(step, 1 if is_joint else 2, count, pieces), dropped, keep)

    @custom_gradient
    def function(
        projected: tf.Tensor, kernel: tf.Tensor, *others: tf.Tensor
    ) -> tuple[list[tf.Tensor], Any]:
        initial, weights = others[:count], others[count:]
        histories, last = loop.forwards(projected, kernel, initial, weights)

        def vjp(*upstream: tf.Tensor) -> list[tf.Tensor]:
            before = [
                tf.concat([first[tf.newaxis], history[:-1]], 0)
                for first, history in zip(initial, histories, strict=True)
            ]
            return loop.backwards(projected, kernel, before, weights, upstream)

        return [histories[0], *last], vjp

    outputs, *last = function(projected, kernel, *states, *weights)
    return outputs, last


class _Loop(NamedTuple):
    """The two directions of `scan`."""

    flat: _Flat
    dropped: tf.Tensor | None
    keep: tf.Tensor | None

    def forwards(
        self, projected: tf.Tensor, kernel: tf.Tensor, states: _Rows, weights: _Rows
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Returns each state after each step, and the last states."""
        length = tf.shape(projected)[0]
        given = _unstacked(projected)

        def body(t: tf.Tensor, states: _Rows, histories: Any) -> Any:
            gates = self._gates(given.read(t), _multiply(states[0], kernel))
            new = self.flat([*gates, *states, *weights], self._dropped(t))
            if self.keep is not None:
                new = [tf.where(self.keep[t], *pair) for pair in _zip(new, states)]
            histories = [x.write(t, state) for x, state in _zip(histories, new)]
            return t + 1, new, histories

        start = [_array(length, state) for state in states]
        _, last, histories = tf.while_loop(
            lambda t, *_: t < length,
            body,
            (tf.constant(0), list(states), start),
            maximum_iterations=length,
        )
        return [history.stack() for history in histories], last

    def backwards(
        self,
        projected: tf.Tensor,
        kernel: tf.Tensor,
        before: _Rows,
        weights: _Rows,
        upstream: _Rows,
    ) -> list[tf.Tensor]:
        """Returns the gradients in the arguments of `scan`'s custom gradient."""
        length = tf.shape(projected)[0]
        gates = self._gates(projected, multiply(before[0], kernel))
        rows, inverses = self._rows(gates, before, upstream)
        arrays = [_unstacked(x) for x in rows]
        step = self.flat._replace(pieces=None)
        d_outputs = _unstacked(upstream[0])
        transposed = tf.transpose(kernel)

        def body(left: tf.Tensor, d_states: Any, d_weights: Any, found: Any) -> Any:
            t = left - 1
            d_after = [d_states[0] + d_outputs.read(t), *d_states[1:]]
            passed, incoming = self._around(t, d_after)
            args = [*(x.read(t) for x in arrays), *weights]
            d_gates, d_direct, more = step.pull_back(args, self._dropped(t), incoming)
            if inverses is not None:
                value = args[step.gates - 1]
                cut = layer_norm.slope(value, inverses.read(t), d_gates[-1])
                d_gates = [*d_gates[:-1], tf.reshape(cut, tf.shape(projected)[1:])]
            d_states = [x if y is None else x + y for x, y in _zip(d_direct, passed)]
            d_states[0] += _multiply(d_gates[-1], transposed)
            d_weights = [x + y for x, y in _zip(d_weights, more)]
            found = [x.write(t, y) for x, y in _zip(found, d_gates)]
            return t, d_states, d_weights, found

        none = [tf.zeros_like(x) for x in weights]
        start = [_array(length, projected[0]) for _ in gates]
        _, d_states, d_weights, found = tf.while_loop(
            lambda left, *_: left > 0,
            body,
            (length, list(upstream[1:]), none, start),
            maximum_iterations=length,
        )
        d_gates = [x.stack() for x in found]
        d_kernel = _outer(
            tf.cast(rows[len(gates)], kernel.dtype), tf.cast(d_gates[-1], kernel.dtype)
        )
        return [d_gates[0], d_kernel, *d_states, *d_weights]

    def _rows(
        self, gates: _Rows, before: _Rows, upstream: _Rows
    ) -> tuple[_Rows, tf.TensorArray | None]:
        """Returns the rows of all steps, and the factors of the standardized gates."""
        live = self._live(upstream)
        rows = [tf.math.multiply_no_nan(x, live) for x in (*gates, *before)]
        if self.flat.pieces is None:
            return rows, None
        last = len(gates) - 1
        rows[last], inverse = self.flat.pieces.known(rows[last])
        return rows, _unstacked(inverse)

    def _gates(self, projected: tf.Tensor, recurrent: tf.Tensor) -> list[tf.Tensor]:
        is_joint = self.flat.gates == 1
        return [projected + recurrent] if is_joint else [projected, recurrent]

    def _dropped(self, t: tf.Tensor) -> tf.Tensor | None:
        if self.dropped is None or self.dropped.shape.rank == 2:
            return self.dropped
        return self.dropped[t]

    def _around(self, t: tf.Tensor, x: _Rows) -> tuple[Sequence[Any], _Rows]:
        """Splits gradients into those around a masked step and through the step."""
        if self.keep is None:
            return [None] * len(x), x
        keep, zero = self.keep[t], tf.zeros([], x[0].dtype)
        return [tf.where(keep, zero, y) for y in x], [
            tf.where(keep, y, zero) for y in x
        ]

    def _live(self, upstream: _Rows) -> tf.Tensor:
        """Returns 1 where a gradient may come in at a step or later, else 0.

        The step is recomputed with zeros elsewhere, because 0 * NaN is NaN.
        """
        outputs, *last = upstream
        later = tf.cast(_is_live(outputs), tf.int32)
        later = tf.cumsum(later, reverse=True) + tf.cast(_is_live(*last), tf.int32)
        live = later > 0
        if self.keep is not None:
            live = tf.logical_and(live, self.keep)
        return tf.cast(live, outputs.dtype)


def _zip(*sequences: Any) -> Any:
    return zip(*sequences, strict=True)


def _multiply(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    # Inside of the loops, where the gradient of `multiply` is not needed.
    return tf.cast(tf.matmul(tf.cast(x, kernel.dtype), kernel), x.dtype)


def _unstacked(x: tf.Tensor) -> tf.TensorArray:
    array = tf.TensorArray(
        x.dtype, tf.shape(x)[0], element_shape=x.shape[1:], clear_after_read=False
    )
    return array.unstack(x)


def _array(length: tf.Tensor, element: tf.Tensor) -> tf.TensorArray:
    return tf.TensorArray(element.dtype, length, element_shape=element.shape)
