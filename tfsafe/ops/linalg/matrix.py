"""Checks, batches and zero gradients for functions of matrices."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import custom_gradient, nan_where

_Tensors = Sequence[tf.Tensor]


def matrix(x: Any, name: str) -> tf.Tensor:
    """Converts `x` to a floating tensor of shape `[..., m, n]`."""
    tensor = _args.float_tensor(x, name)
    if tensor.shape.rank is not None and tensor.shape.rank < 2:
        raise ValueError(
            f"`{name}` must be a matrix or a batch of them, of shape [..., m, n]. "
            f"Received: shape={tensor.shape}. A vector becomes a column by "
            f"`{name}[:, tf.newaxis]`."
        )
    return tensor


def square(x: Any, name: str) -> tf.Tensor:
    """Converts `x` to a floating tensor of shape `[..., n, n]`."""
    tensor = matrix(x, name)
    if tensor.shape.rank is not None:
        rows, columns = tensor.shape[-2:]
        if rows is not None and columns is not None and rows != columns:
            raise ValueError(
                f"`{name}` must hold square matrices, of shape [..., n, n]. Received: "
                f"shape={tensor.shape}. For others see `tfsafe.ops.pinv` and "
                "`tfsafe.ops.singular_value_function`."
            )
    return tensor


def over_batch(function: Callable[..., Any], *args: tf.Tensor) -> Any:
    """Calls `function` with all leading axes as one.

    Args:
      function: Of tensors of shape `[batch, m, n]`; returns a tensor with the same
        first axis, or a tuple of them.
      *args: Tensors of shape `[..., m, n]`, whose leading axes are the same.

    Returns:
      What `function` returns, with the leading axes of `args`.
    """
    lead = tf.shape(args[0])[:-2]
    static = tf.TensorShape(None) if args[0].shape.rank is None else args[0].shape[:-2]
    batch = tf.reduce_prod(lead)[tf.newaxis]

    def flat(x: tf.Tensor) -> tf.Tensor:
        inner = tf.TensorShape([None] * 2) if x.shape.rank is None else x.shape[-2:]
        result = tf.reshape(x, tf.concat([batch, tf.shape(x)[-2:]], 0))
        return tf.ensure_shape(result, [static.num_elements(), *inner])

    def unflat(x: tf.Tensor) -> tf.Tensor:
        result = tf.reshape(x, tf.concat([lead, tf.shape(x)[1:]], 0))
        return tf.ensure_shape(result, static.concatenate(x.shape[1:]))

    return tf.nest.map_structure(unflat, function(*map(flat, args)))


def over_squares(function: Callable[[tf.Tensor], Any], x: tf.Tensor) -> Any:
    """Calls `over_batch` so that `function` never sees matrices without elements.

    Args:
      function: Of a tensor of shape `[batch, n, n]`, n > 0; returns tensors of shape
        `[batch]` or `[batch, n, n]` that a further row and column of the unit matrix
        would not change.
      x: Tensor of shape `[..., n, n]`, n >= 0.

    Returns:
      What `function` returns, without that row and column, with the leading axes of
      `x`.
    """

    def padded(x: tf.Tensor) -> Any:
        if x.shape[2]:
            return function(x)
        size = tf.shape(x)[2]
        more = tf.maximum(1 - size, 0)
        one = tf.eye(more, batch_shape=tf.shape(x)[:1], dtype=x.dtype)
        # Either the matrix or what is added to it is empty.
        whole = tf.pad(x, [[0, 0], [0, more], [0, more]])
        whole += tf.pad(one, [[0, 0], [0, size], [0, size]])

        def cut(value: tf.Tensor) -> tf.Tensor:
            if value.shape.rank == 1:
                return value
            return tf.ensure_shape(value[:, :size, :size], x.shape)

        return tf.nest.map_structure(cut, function(whole))

    return over_batch(padded, x)


def finite(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Puts zeros in place of the matrices that hold NaN or infinity.

    Kernels raise an error for them in one mode, and return numbers in another.

    Args:
      x: Tensor of shape `[batch, m, n]`.

    Returns:
      The tensor, and what to add to results: NaN for these matrices and 0 for the
      others, shape `[batch, 1, 1]`.
    """
    is_finite = tf.reduce_all(tf.math.is_finite(x), [1, 2], keepdims=True)
    nans = nan_where(tf.logical_not(is_finite), x.dtype)
    return tf.where(is_finite, x, tf.zeros([], x.dtype)), nans


def guarded(
    function: Callable[[_Tensors, _Tensors], _Tensors],
    upstreams: _Tensors,
    args: _Tensors,
) -> list[tf.Tensor]:
    """Returns `function(upstreams, args)`, and 0 where nothing comes in.

    A matrix all of whose incoming gradients are 0 gets 0 for what is not finite; the
    gradients of the result keep this rule, whatever their order.

    Args:
      function: Returns gradients, of shape `[batch, ...]`.
      upstreams: Incoming gradients, of shape `[batch, ...]`.
      args: What else the gradients depend on, of shape `[batch, ...]`.
    """
    count = len(upstreams)

    def silenced(tensors: _Tensors) -> list[tf.Tensor]:
        slopes = function(tensors[:count], tensors[count:])
        return [zero_unused(slope, tensors[:count]) for slope in slopes]

    @custom_gradient
    def with_gradient(*tensors: tf.Tensor) -> Any:
        def vjp(*outer: tf.Tensor) -> list[tf.Tensor]:
            def again(outer: _Tensors, tensors: _Tensors) -> _Tensors:
                with tf.GradientTape() as tape:
                    tape.watch(tensors)
                    slopes = silenced(tensors)
                gradients = tape.gradient(
                    slopes, list(tensors), list(outer), unconnected_gradients="zero"
                )
                # Linear in what came in, and so is the derivative in the others.
                others = [
                    zero_unused(each, tensors[:count]) for each in gradients[count:]
                ]
                return [*gradients[:count], *others]

            return guarded(again, outer, tensors)

        return silenced(tensors), vjp

    return with_gradient(*upstreams, *args)


def zero_unused(slope: tf.Tensor, upstreams: _Tensors) -> tf.Tensor:
    """Replaces what is not finite by 0 for the matrices that no gradient comes into."""
    is_unused = tf.ones([], tf.bool)
    for each in upstreams:
        zero = tf.reduce_all(tf.equal(each, 0), list(range(1, each.shape.rank)))
        is_unused = tf.logical_and(is_unused, zero)
    for _ in range(slope.shape.rank - 1):
        is_unused = is_unused[..., tf.newaxis]
    unused = tf.logical_and(is_unused, tf.logical_not(tf.math.is_finite(slope)))
    return tf.where(unused, tf.zeros_like(slope), slope)


def svd(
    x: tf.Tensor, full_matrices: bool = False
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Calls `tf.linalg.svd`; XLA has none of matrices without elements."""
    if 0 not in x.shape[1:]:
        return tf.linalg.svd(x, full_matrices=full_matrices)
    batch, rows, columns = tf.unstack(tf.shape(x))
    u, v = (
        tf.eye(size, size if full_matrices else 0, [batch], x.dtype)
        for size in (rows, columns)
    )
    return tf.zeros([batch, 0], x.dtype), u, v


def last(value: tf.Tensor, name: str, reason: str, *args: tf.Tensor) -> tf.Tensor:
    """Returns `value`, which refuses to be differentiated.

    Inside of a function with a gradient of its own this refuses forward accumulators,
    which look there and not at that gradient.

    Args:
      value: A derivative.
      name: The public function that it belongs to, for the error.
      reason: Which derivative is missing.
      *args: What it depends on.
    """

    @custom_gradient
    def end(value: tf.Tensor, *_: tf.Tensor) -> Any:
        def vjp(_: tf.Tensor) -> NoReturn:
            raise LookupError(
                f"`tfsafe.ops.{name}` has no {reason}. Put "
                "`tf.stop_gradient` around what does not need it."
            )

        return tf.identity(value), vjp

    return end(tf.stop_gradient(value), *args)
