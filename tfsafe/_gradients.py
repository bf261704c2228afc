"""Defines functions with custom gradients, and helpers for them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat


def local(tensor: Any) -> Any:
    """Returns a tensor; if it is of another graph, its copy in the one being made.

    In the gradient of a traced function or of a loop, a gradient function holds tensors
    of that graph. No tape records that they are captured, and the gradient of the
    gradient cannot reach them; it can reach a copy that is made here.
    """
    if tf.executing_eagerly():
        return tensor
    graph = tf.compat.v1.get_default_graph()
    is_other = getattr(tensor, "graph", graph) is not graph
    return tf.identity(tensor) if is_other else tensor


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `tf.custom_gradient(function)`, also usable inside of gradients.

    A graph that calls it can be collected; TensorFlow alone would keep it for ever.
    """

    @tf.custom_gradient
    @functools.wraps(function)
    def of_local(*args: Any) -> Any:
        if not tf.executing_eagerly():
            args = tuple(map(local, args))
        values, vjp = function(*args)
        return values, _of_dense(vjp)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        result = of_local(*args)
        if not tf.executing_eagerly():
            _compat.release_gradient(tf.nest.flatten(result)[0].op)
        return result

    return call


def custom_gradient_in(count: int) -> Callable[[Callable[..., Any]], Any]:
    """Returns `custom_gradient` for functions of `count` tensors and of constants."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            @functools.wraps(function)
            def of_tensors(*tensors: Any) -> Any:
                return function(*tensors, *args[count:], **options)

            return custom_gradient(of_tensors)(*args[:count])

        return call

    return decorate


def _of_dense(vjp: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `vjp`, which also accepts the sparse gradients that `tf.gather` makes."""

    def of_dense(*upstream: Any) -> Any:
        return vjp(
            *(
                tf.convert_to_tensor(each)
                if isinstance(each, tf.IndexedSlices)
                else each
                for each in upstream
            )
        )

    return of_dense


def nan_where(condition: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns NaN where `condition` holds, and 0 elsewhere.

    The NaN is the result of a root, not a constant: a check of every operation must not
    find a NaN where the condition never holds.
    """
    return tf.sqrt(-tf.cast(condition, dtype))


def zero_unused_rows(
    slope: tf.Tensor, upstream: tf.Tensor, axis: Sequence[int] | None
) -> tf.Tensor:
    """Replaces non-finite slopes by 0 in rows with zero incoming gradients.

    For gradients that couple the elements of a row: such a row gets zero gradients if
    all its incoming gradients are 0, whatever it holds.

    Returns:
      `slope`, with 0 at those places.
    """
    has_no_upstream = tf.reduce_all(tf.equal(upstream, 0), axis, keepdims=True)
    unused = tf.logical_and(has_no_upstream, tf.logical_not(tf.math.is_finite(slope)))
    return tf.where(unused, tf.zeros_like(slope), slope)


def unbroadcast(cotangent: tf.Tensor, primal: tf.Tensor) -> tf.Tensor:
    """Sums a cotangent over the axes along which `primal` was broadcast."""
    if primal.shape.is_fully_defined() and cotangent.shape.rank is not None:
        new = cotangent.shape.rank - primal.shape.rank
        single = [new + axis for axis, size in enumerate(primal.shape) if size == 1]
        axes = [axis for axis in (*range(new), *single) if cotangent.shape[axis] != 1]
        total = tf.reduce_sum(cotangent, axes, keepdims=True) if axes else cotangent
        return tf.reshape(total, primal.shape) if new else total
    target = tf.shape(primal)
    # Only the reduction axes for `primal` are wanted, which do not depend on what
    # the other operand was, as long as it broadcasts to the cotangent's shape.
    axes, _ = tf.raw_ops.BroadcastGradientArgs(s0=target, s1=tf.shape(cotangent))
    return tf.reshape(tf.reduce_sum(cotangent, axes), target)


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
