"""Runs a recurrent step over time, with a gradient written for speed.

A step has two functions of rows. `advance(gates, states, dropped, weights)` returns the
new states, the output first, and a list of what its gradient needs:

- `gates`: the input times the kernel, and the last output times the recurrent kernel,
  each of shape `(batch, gates * units)`; or the sum of both alone;
- `states`: tensors of shape `(batch, units)`, the last output first;
- `dropped`: dropout's factors for the candidate, `(batch, units)`, or None;
- `weights`: tensors whose first axis is the batch or has size 1.

`pull_back(kept, states, dropped, weights, upstream, live)` returns the gradients in
gates, states and weights, the last ones for each row of the batch:

- `kept`: the second result of `advance`;
- `upstream`: the gradients in the new states;
- `live`: 1 for each row where one of them may not be 0, else 0, `(batch, 1)`. In the
  other rows, which may hold NaN, all gradients must be 0.

TensorFlow's own loop adds to the gradient of each kernel in every step; here it is one
matrix product after the loop.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from tfsafe._gradients import custom_gradient, unbroadcast
from tfsafe.layers.recurrent import compiled

_Rows = Sequence[tf.Tensor]
# None where the way through the gates is the only one.
_Gradients = Sequence[tf.Tensor | None]


class Step(Protocol):
    """One step and its gradient; see the module's docstring."""

    @property
    def is_joint(self) -> bool:
        """Whether the step takes the sum of the two products."""

    def advance(
        self, gates: _Rows, states: _Rows, dropped: tf.Tensor | None, weights: _Rows
    ) -> tuple[_Rows, _Rows]:
        """Returns the new states, and what `pull_back` needs."""

    def pull_back(
        self,
        kept: _Rows,
        states: _Rows,
        dropped: tf.Tensor | None,
        weights: _Rows,
        upstream: _Rows,
        live: tf.Tensor,
    ) -> tuple[_Rows, _Gradients, _Rows]:
        """Returns the gradients in gates, states and weights."""


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
    # Not `tf.tensordot`, which transposes a copy.
    rows = (tf.reshape(each, [-1, each.shape[-1]]) for each in (x, upstream))
    return tf.matmul(*rows, transpose_a=True)


def _is_live(*upstream: tf.Tensor) -> tf.Tensor:
    """Returns for each row whether an incoming gradient is not 0."""
    both = tf.concat(upstream, -1) if len(upstream) > 1 else upstream[0]
    return tf.reduce_any(tf.not_equal(both, 0), -1, keepdims=True)


def one_step(
    step: Step, gates: _Rows, states: _Rows, dropped: tf.Tensor | None, weights: _Rows
) -> _Rows:
    """Runs one step, with its gradient, and returns the new states."""
    ends = len(gates), len(gates) + len(states)

    @custom_gradient
    def function(*args: tf.Tensor) -> tuple[_Rows, Any]:
        gates, states, weights = args[: ends[0]], args[slice(*ends)], args[ends[1] :]
        new, _ = step.advance(gates, states, dropped, weights)

        def vjp(*upstream: tf.Tensor) -> _Rows:
            # Computed a second time: the gradient of the gradient reaches it here.
            _, kept = step.advance(gates, states, dropped, weights)
            live = tf.cast(_is_live(*upstream), upstream[0].dtype)
            *rows, in_weights = step.pull_back(
                kept, states, dropped, weights, upstream, live
            )
            in_weights = list(map(unbroadcast, in_weights, weights))
            return [gradient for part in (*rows, in_weights) for gradient in part]

        return new, vjp

    return function(*gates, *states, *weights)


def scan(
    step: Step,
    projected: tf.Tensor,
    kernel: tf.Tensor,
    states: _Rows,
    weights: _Rows,
    *,
    dropped: tf.Tensor | None = None,
    keep: tf.Tensor | None = None,
    may_compile: bool = False,
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Runs `step` over the first axis of `projected`.

    Args:
      step: See the module's docstring.
      projected: Tensor of shape `(steps, batch, gates * units)`.
      kernel: The recurrent kernel. The last output is cast to its dtype for the
        product.
      states: The initial states, of the dtype of `projected`.
      weights: See the module's docstring; the first axis is the batch.
      dropped: Tensor of shape `(steps, batch, units)` or `(batch, units)`, or None.
      keep: Booleans of shape `(steps, batch, 1)`, or None. Where False, the states
        stay.
      may_compile: Whether XLA may compile the loop where the rest is not compiled.

    Returns:
      The outputs, of shape `(steps, batch, units)`, and the last states.
    """
    count = len(states)
    loop = _Loop(step, dropped, keep)

    @custom_gradient
    def function(
        projected: tf.Tensor, kernel: tf.Tensor, *others: tf.Tensor
    ) -> tuple[list[tf.Tensor], Any]:
        initial, weights = others[:count], others[count:]
        outputs, kept, last = loop.forwards(projected, kernel, initial, weights)
        read_back = _reader(kept)

        def vjp(*upstream: tf.Tensor) -> list[tf.Tensor]:
            before = tf.concat([initial[0][tf.newaxis], outputs[:-1]], 0)
            return loop.backwards(kernel, before, read_back(), weights, upstream)

        return [outputs, *last], vjp

    if may_compile and compiled.is_faster([projected, kernel, *states, *weights]):
        function = compiled.both_ways(loop, _unstacked, count, function)
    outputs, *last = function(projected, kernel, *states, *weights)
    return outputs, last


class _Loop(NamedTuple):
    """The two directions of `scan`."""

    step: Step
    dropped: tf.Tensor | None
    keep: tf.Tensor | None

    def forwards(
        self, projected: tf.Tensor, kernel: tf.Tensor, states: _Rows, weights: _Rows
    ) -> tuple[tf.Tensor, list[tf.TensorArray], _Rows]:
        """Returns the outputs, what the steps kept, and the last states."""
        length = tf.shape(projected)[0]
        given = _unstacked(projected)

        def body(t: tf.Tensor, states: _Rows, outputs: Any, arrays: Any) -> Any:
            gates = self._gates(given.read(t), _multiply(states[0], kernel))
            new, kept = self.step.advance(gates, states, self._dropped(t), weights)
            if self.keep is not None:
                keep = tf.gather(self.keep, t)
                new = [tf.where(keep, *pair) for pair in _zip(new, states)]
            arrays = [x.write(t, y) for x, y in _zip(arrays, [*states[1:], *kept])]
            return t + 1, list(new), outputs.write(t, new[0]), arrays

        # For the shapes of what is kept.
        zeros = tf.zeros(tf.shape(projected)[1:], projected.dtype)
        zeros = tf.ensure_shape(zeros, projected.shape[1:])
        _, kept = self.step.advance(self._gates(zeros, zeros), states, None, weights)
        _, last, outputs, arrays = tf.while_loop(
            lambda t, *_: t < length,
            body,
            (
                tf.constant(0),
                list(states),
                _array(length, states[0].dtype, states[0].shape),
                [_array(length, x.dtype, x.shape) for x in (*states[1:], *kept)],
            ),
            maximum_iterations=length,
        )
        return outputs.stack(), arrays, last

    def backwards(
        self,
        kernel: tf.Tensor,
        before: tf.Tensor,
        kept: list[tf.TensorArray],
        weights: _Rows,
        upstream: _Rows,
    ) -> list[tf.Tensor]:
        """Returns the gradients in the arguments of `scan`'s custom gradient."""
        length = tf.shape(upstream[0])[0]
        count, live = len(upstream) - 2, self._live(upstream)
        transposed = tf.transpose(kernel)

        def body(left: tf.Tensor, d_states: Any, d_weights: Any, found: Any) -> Any:
            t = left - 1
            d_after = [d_states[0] + tf.gather(upstream[0], t), *d_states[1:]]
            passed, incoming = self._around(t, d_after)
            rows = [x.read(t) for x in kept]
            d_gates, d_direct, more = self.step.pull_back(
                rows[count:],
                [tf.gather(before, t), *rows[:count]],
                self._dropped(t),
                weights,
                incoming,
                tf.gather(live, t),
            )
            d_states = [_sum(x) for x in _zip(d_direct, passed)]
            d_states[0] = _sum([_multiply(d_gates[-1], transposed), d_states[0]])
            d_weights = [x + y for x, y in _zip(d_weights, more)]
            found = [x.write(t, y) for x, y in _zip(found, d_gates)]
            return t, d_states, d_weights, found

        none = [tf.zeros_like(x) for x in weights]
        shape = [before.shape[1], kernel.shape[1]]
        start = [
            _array(length, before.dtype, shape)
            for _ in range(1 if self.step.is_joint else 2)
        ]
        _, d_states, d_weights, found = tf.while_loop(
            lambda left, *_: left > 0,
            body,
            (length, list(upstream[1:]), none, start),
            maximum_iterations=length,
        )
        d_gates = [x.stack() for x in found]
        outputs = tf.math.multiply_no_nan(before, live)
        d_kernel = _outer(*(tf.cast(x, kernel.dtype) for x in (outputs, d_gates[-1])))
        return [d_gates[0], d_kernel, *d_states, *d_weights]

    def _gates(self, projected: tf.Tensor, recurrent: tf.Tensor) -> list[tf.Tensor]:
        if self.step.is_joint:
            return [projected + recurrent]
        return [projected, recurrent]

    def _dropped(self, t: tf.Tensor) -> tf.Tensor | None:
        if self.dropped is None or self.dropped.shape.rank == 2:
            return self.dropped
        return tf.gather(self.dropped, t)

    def _around(self, t: tf.Tensor, x: _Rows) -> tuple[_Gradients, _Rows]:
        """Splits gradients into those around a masked step and through the step."""
        if self.keep is None:
            return [None] * len(x), x
        keep, zero = tf.gather(self.keep, t), tf.zeros([], x[0].dtype)
        return [tf.where(keep, zero, y) for y in x], [
            tf.where(keep, y, zero) for y in x
        ]

    def _live(self, upstream: _Rows) -> tf.Tensor:
        """Returns 1 where a gradient may come in at a step or later, else 0.

        Elsewhere the gradients must not be 0 * NaN.
        """
        outputs, *last = upstream
        later = tf.cast(_is_live(outputs), tf.int32)
        later = tf.cumsum(later, reverse=True) + tf.cast(_is_live(*last), tf.int32)
        live = later > 0
        if self.keep is not None:
            live = tf.logical_and(live, self.keep)
        return tf.cast(live, outputs.dtype)


def _sum(terms: Sequence[tf.Tensor | None]) -> Any:
    """Sums what is not None; None if all are."""
    rest = [x for x in terms if x is not None]
    return sum(rest[1:], rest[0]) if rest else None


def _zip(*sequences: Any) -> Any:
    return zip(*sequences, strict=True)


def _multiply(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    # Inside of the loops, where the gradient of `multiply` is not needed.
    return tf.cast(tf.matmul(tf.cast(x, kernel.dtype), kernel), x.dtype)


def _unstacked(x: tf.Tensor) -> tf.TensorArray:
    return _array(tf.shape(x)[0], x.dtype, x.shape[1:]).unstack(x)


def _reader(arrays: list[tf.TensorArray]) -> Callable[[], list[tf.TensorArray]]:
    """Returns a function that returns the arrays, also in the graph of a gradient.

    XLA does not return arrays from what it compiled: if the gradient is outside, their
    elements are stacked for the way, which copies them.
    """
    if tf.executing_eagerly():
        return lambda: arrays
    graph = tf.compat.v1.get_default_graph()
    stacks = [x.stack() for x in arrays]

    def read_back() -> list[tf.TensorArray]:
        if tf.compat.v1.get_default_graph() is graph:
            return arrays
        return [_unstacked(x) for x in stacks]

    return read_back


def _array(length: tf.Tensor, dtype: tf.DType, shape: Any) -> tf.TensorArray:
    return tf.TensorArray(dtype, length, element_shape=shape, clear_after_read=False)
