"""Argument checks: refuse early, name the argument, say what to do."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


def float_tensor(x: Any, name: str, dtype: tf.DType | None = None) -> tf.Tensor:
    """Converts `x` to a dense floating tensor.

    Args:
      x: Tensor, variable, NumPy array, Python number or nested list.
      name: The argument's name, for the error.
      dtype: Dtype for values that do not carry one of their own (Python numbers and
        lists). A tensor, variable or array of another dtype is refused by the
        caller's own op, not converted in secret.

    Returns:
      `Tensor` of dtype float16, bfloat16, float32 or float64.

    Raises:
      TypeError: If `x` is not dense or does not have one of these dtypes.
    """
    if isinstance(x, tf.SparseTensor | tf.RaggedTensor | tf.IndexedSlices):
        raise TypeError(
            f"`{name}` must be a dense tensor. Received: {type(x).__name__}. Convert "
            "it first, for example with `tf.sparse.to_dense(x)` or `x.to_tensor()`."
        )
    tensor = tf.convert_to_tensor(x, None if hasattr(x, "dtype") else dtype)
    if tensor.dtype not in FLOATS:
        raise TypeError(
            f"`{name}` must have a floating dtype (float16, bfloat16, float32 or "
            f"float64). Received: dtype={tensor.dtype.name}, shape={tensor.shape}. "
            f"Convert it first, for example `tf.cast({name}, tf.float32)`."
        )
    return tensor


def float_tensors(**named: Any) -> list[tf.Tensor]:
    """Converts several arguments to floating tensors of one common dtype.

    The dtype is that of the first argument that carries one; Python numbers adapt.

    Returns:
      The tensors, in the order of the arguments.

    Raises:
      TypeError: If one is not floating, or if two tensors differ in dtype.
    """
    dtypes = [tf.as_dtype(x.dtype) for x in named.values() if hasattr(x, "dtype")]
    dtype = next(iter(dtypes), None)
    if dtype not in FLOATS:
        dtype = None
    tensors = {name: float_tensor(x, name, dtype) for name, x in named.items()}
    if len({tensor.dtype for tensor in tensors.values()}) > 1:
        received = ", ".join(f"{n}: {t.dtype.name}" for n, t in tensors.items())
        names = " and ".join(f"`{n}`" for n in tensors)
        raise TypeError(
            f"{names} must have the same dtype. Received: {received}. Convert one of "
            "them with `tf.cast`."
        )
    return list(tensors.values())


def axes(
    axis: int | Sequence[int] | None, shape: tf.TensorShape, name: str = "axis"
) -> list[int] | None:
    """Checks `axis` against the rank and returns non-negative axes in order.

    Args:
      axis: One axis, several, or None for all of them.
      shape: Static shape of the tensor; its rank may be unknown.
      name: The argument's name, for the error.

    Returns:
      The axes as non-negative numbers, sorted. Where the rank is unknown, None for
      all axes, or the axes as they were given.

    Raises:
      TypeError: If an axis is not an integer.
      ValueError: If an axis is out of range or named twice.
    """
    rank = shape.rank
    if axis is None:
        return None if rank is None else list(range(rank))
    given = list(axis) if isinstance(axis, list | tuple) else [axis]
    for each in given:
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            raise TypeError(
                f"`{name}` must be an integer, a sequence of integers or None. "
                f"Received: {name}={axis!r}."
            )
    given = [int(each) for each in given]
    if rank is None:
        return given
    for each in given:
        if not -rank <= each < rank:
            raise ValueError(
                f"`{name}` is out of range. Received: {name}={axis!r} for a tensor of "
                f"shape {shape}, whose axes run from {-rank} to {rank - 1}."
                if rank
                else f"`{name}` must be None or empty for a scalar. Received: "
                f"{name}={axis!r}."
            )
    positive = sorted(each % rank for each in given)
    if len(set(positive)) < len(positive):
        raise ValueError(
            f"`{name}` names an axis twice. Received: {name}={axis!r} for a tensor of "
            f"shape {shape}."
        )
    return positive


def one_of(value: Any, allowed: Sequence[Any], name: str) -> Any:
    """Returns `value` if it is allowed.

    Raises:
      ValueError: If it is not; the error lists what is.
    """
    if value not in allowed:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, allowed))}. "
            f"Received: {name}={value!r}."
        )
    return value
