"""Computes the derivatives that a function asks for, from tensors of one graph."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import _compat


class Asked(NamedTuple):
    """Tensors of one graph between which a derivative is asked.

    Attributes:
      targets: Tensors that are differentiated.
      sources: Tensors to differentiate by; a variable is given by its handle.
      upstream: Incoming gradients of the targets, None for ones; for a forward
        accumulator the tangents of the sources.
      stops: Tensors at which the derivative ends.
    """

    targets: Sequence[tf.Tensor]
    sources: Sequence[tf.Tensor]
    upstream: Sequence[tf.Tensor | None]
    stops: Sequence[tf.Tensor]


# Returns one derivative for each source, or for each target of an accumulator.
Derivative = Callable[..., Sequence[Any]]


def gradients(asked: Asked) -> Sequence[Any]:
    """Returns what `tape.gradient` or `tf.gradients` returns, with zeros for None."""
    with _compat.skipped_inputs(asked.sources):
        found = tf.gradients(
            asked.targets,
            asked.sources,
            grad_ys=asked.upstream,
            stop_gradients=asked.stops,
        )
    return [
        tf.zeros(_shape(source), _dtype(source, asked)) if each is None else each
        for each, source in zip(found, asked.sources, strict=True)
    ]


def as_asked(derivative: Derivative, arguments: Mapping[str, Any]) -> Derivative:
    """Returns how to compute a derivative that was asked for with these arguments."""
    if arguments.get("experimental_use_pfor", True):
        return derivative
    return functools.partial(derivative, at_once=False)


def is_unseen(derivative: Derivative, results: Any) -> bool:
    """Returns whether the zeros of `tape.batch_jacobian` stand for None.

    It returns zeros that nothing computes for a source that the tape does not see.
    """
    return derivative is batch_jacobians and results.op.type in {"Const", "Fill"}


def _rows(
    row: Callable[[tf.Tensor], list[tf.Tensor]],
    count: tf.Tensor,
    asked: Asked,
    at_once: bool,
) -> list[tf.Tensor]:
    if at_once:
        return tf.vectorized_map(row, tf.range(count))
    dtypes = [_dtype(source, asked) for source in asked.sources]
    return tf.map_fn(row, tf.range(count), fn_output_signature=dtypes)


def jacobians(asked: Asked, at_once: bool = True) -> Sequence[Any]:
    """Returns what `tape.jacobian` returns for one target."""
    target = asked.targets[0]
    flat = tf.reshape(target, [-1])
    rows = _rows(
        lambda i: _dense(asked._replace(targets=[tf.gather(flat, i)])),
        tf.size(flat),
        asked,
        at_once,
    )
    shape = tf.shape(target)
    return [
        tf.reshape(each, tf.concat([shape, tf.shape(each)[1:]], 0)) for each in rows
    ]


def batch_jacobians(asked: Asked, at_once: bool = True) -> Sequence[Any]:
    """Returns what `tape.batch_jacobian` returns for one target and one source."""
    target = asked.targets[0]
    shape, source = tf.shape(target), tf.shape(asked.sources[0])
    flat = tf.reshape(target, [shape[0], -1])
    (columns,) = _rows(
        lambda i: _dense(asked._replace(targets=[tf.gather(flat, i, axis=1)])),
        tf.shape(flat)[1],
        asked,
        at_once,
    )
    rows = tf.transpose(
        tf.reshape(columns, [tf.shape(flat)[1], shape[0], -1]), [1, 0, 2]
    )
    return [tf.reshape(rows, tf.concat([shape, source[1:]], 0))]


def tangents(asked: Asked) -> Sequence[Any]:
    """Returns what `ForwardAccumulator.jvp` returns, one for each target."""
    # The gradient is linear in what comes in. Its derivative by that, for the tangents
    # of the sources, is the product with the Jacobian.
    incoming = [tf.ones_like(each) for each in asked.targets]
    backward = _dense(asked._replace(upstream=incoming))
    found = tf.gradients(backward, incoming, grad_ys=asked.upstream)
    return [
        tf.zeros_like(target) if each is None else each
        for each, target in zip(found, asked.targets, strict=True)
    ]


def with_zeros(derivative: Derivative, asked: Sequence[Any], results: Any) -> Any:
    """Returns results with zeros in place of None, as for `"zero"`.

    Args:
      derivative: What they are results of; not `batch_jacobians`, which has no None.
      asked: Targets and sources as they were given, and what else was asked.
      results: The results.
    """
    targets, sources = (tf.nest.flatten(each) for each in asked[:2])

    def zeros(index: int) -> tf.Tensor:
        if derivative is tangents:
            return tf.zeros_like(targets[index])
        if derivative is gradients:
            return tf.zeros_like(sources[index])
        shapes = [tf.shape(targets[0]), tf.shape(sources[index])]
        return tf.zeros(tf.concat(shapes, 0), targets[0].dtype)

    flat = [
        zeros(index) if each is None else each
        for index, each in enumerate(tf.nest.flatten(results))
    ]
    return tf.nest.pack_sequence_as(results, flat)


def _dense(asked: Asked) -> list[tf.Tensor]:
    return [tf.convert_to_tensor(each) for each in gradients(asked)]


def _shape(source: tf.Tensor) -> tf.Tensor:
    if source.dtype == tf.resource:
        return tf.raw_ops.VariableShape(input=source)
    return tf.shape(source)


def _dtype(source: tf.Tensor, asked: Asked) -> tf.DType:
    return asked.targets[0].dtype if source.dtype == tf.resource else source.dtype
