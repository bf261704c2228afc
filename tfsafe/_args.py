"""Checks arguments: refuses early, names the argument, and suggests a fix."""

import inspect
import math
import numbers
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._limits import LIMITS

# Every public package imports this module.
_compat.exempt_from_autograph()

FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


def float_tensor(x: Any, name: str, dtype: tf.DType | None = None) -> tf.Tensor:
    """Converts `x` to a dense floating tensor.

    Args:
      x: Tensor, variable, NumPy array, Python number or nested list.
      name: The argument's name, for the error.
      dtype: Dtype for values that do not carry one of their own (Python numbers and
        lists). A tensor, variable or array of another dtype is refused by the
        caller's own op, not converted.

    Returns:
      `Tensor` of dtype float16, bfloat16, float32 or float64.

    Raises:
      TypeError: If `x` is not dense or does not have one of these dtypes.
      ValueError: If `x` holds lists of different lengths.
    """
    if isinstance(x, tf.Tensor) and x.dtype in FLOATS:
        return x
    _refuse_sparse(x, name)
    _refuse_none(x, name)
    try:
        tensor = tf.convert_to_tensor(x, None if hasattr(x, "dtype") else dtype)
    except ValueError as error:
        if callable(x):
            raise TypeError(
                f"`{name}` must be a tensor, an array or a number. Received: "
                f"{name}={x!r:.80} of type {type(x).__name__}. Call it, and pass its "
                "result."
            ) from error
        if not isinstance(x, list | tuple):
            raise
        raise ValueError(
            f"`{name}` must be a tensor, or lists of equal lengths. Received: "
            f"{x!r:.80}. Of unequal ones use `tf.ragged.constant({name}).to_tensor()` "
            "and a mask."
        ) from error
    if tensor.dtype not in FLOATS:
        raise TypeError(
            f"`{name}` must have a floating dtype (float16, bfloat16, float32 or "
            f"float64). Received: dtype={tensor.dtype.name}, shape={tensor.shape}. "
            f"Convert it first, for example `{_conversion(tensor.dtype, name)}`."
        )
    return tensor


def _conversion(dtype: tf.DType, name: str) -> str:
    if dtype == tf.string:
        return f"tf.strings.to_number({name})"
    return (
        f"tf.math.real({name})" if dtype.is_complex else f"tf.cast({name}, tf.float32)"
    )


def _refuse_none(x: Any, name: str) -> None:
    if x is None:
        raise TypeError(
            f"`{name}` must be a tensor. Received: {name}=None. A function without "
            "`return` returns None, and so does `tape.gradient` where nothing depends "
            "on the variable."
        )


def _refuse_sparse(x: Any, name: str) -> None:
    if isinstance(x, tf.SparseTensor | tf.RaggedTensor | tf.IndexedSlices):
        raise TypeError(
            f"`{name}` must be a dense tensor. Received: {type(x).__name__}. Convert "
            f"it first, for example with `tf.sparse.to_dense({name})` or "
            f"`{name}.to_tensor()`."
        )


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


def check_broadcast(**named: tf.Tensor) -> None:
    """Checks that two tensors broadcast, as far as their static shapes are known."""
    (x_name, x), (y_name, y) = named.items()
    if _broadcast(x.shape, y.shape) is None:
        raise ValueError(
            f"`{x_name}` and `{y_name}` must have shapes that broadcast. Received: "
            f"{x_name} of shape {x.shape}, {y_name} of shape {y.shape}. Add an axis of "
            f"size 1 where they differ, for example `{y_name}[:, tf.newaxis]`."
        )


def _broadcast(x: tf.TensorShape, y: tf.TensorShape) -> tf.TensorShape | None:
    try:
        return tf.broadcast_static_shape(x, y)
    except ValueError:
        return None


def weights(mask: Any, x: tf.Tensor, name: str = "mask") -> tf.Tensor:
    """Converts a mask or weights for the elements of `x` to a tensor of its dtype.

    Args:
      mask: None, booleans, integers, or floats of the dtype of `x`. Python numbers
        adapt.
      x: The tensor whose elements are weighted.
      name: The argument's name, for the error.

    Returns:
      `Tensor` of a shape that broadcasts to the shape of `x`, of its dtype. What has
      no floating dtype becomes float32 where `x` has half precision, which holds no
      integer beyond 2048 or 256 exactly.

    Raises:
      TypeError: If `mask` is not dense, not numeric, or of another floating dtype.
      ValueError: If its static shape does not broadcast to `x`.
    """
    _refuse_sparse(mask, name)
    mask = True if mask is None else mask
    wide = x.dtype if x.dtype.size > 2 else tf.float32
    has_dtype = hasattr(mask, "dtype")
    tensor = tf.convert_to_tensor(mask, dtype_hint=None if has_dtype else wide)
    if tensor.dtype.is_bool or tensor.dtype.is_integer:
        tensor = tf.cast(tensor, wide)
    elif tensor.dtype != (x.dtype if has_dtype else wide):
        raise TypeError(
            f"`{name}` must be boolean, of an integer dtype, or of the dtype of the "
            f"tensor that it weights, {x.dtype.name}. Received: "
            f"dtype={tensor.dtype.name}, shape={tensor.shape}. Convert it first, for "
            f"example `tf.cast({name}, tf.{x.dtype.name})`."
        )
    _check_fits(tensor, x, name)
    return tensor


def keeps(mask: Any, x: tf.Tensor, name: str = "mask") -> tf.Tensor:
    """Converts a mask for the elements of `x` to booleans.

    Args:
      mask: Booleans, True where an element counts, or numbers, which keep an element
        where they are not 0.
      x: The tensor that is masked.
      name: The argument's name, for the error.

    Returns:
      Boolean `Tensor` of a shape that broadcasts to the shape of `x`.

    Raises:
      TypeError: If `mask` is not dense, or neither boolean nor numeric.
      ValueError: If its static shape does not broadcast to `x`.
    """
    _refuse_sparse(mask, name)
    tensor = tf.convert_to_tensor(mask)
    if not (tensor.dtype.is_bool or tensor.dtype.is_integer or tensor.dtype in FLOATS):
        raise TypeError(
            f"`{name}` must be boolean or numeric. Received: "
            f"dtype={tensor.dtype.name}, shape={tensor.shape}. Pass booleans, True "
            "where an element counts."
        )
    _check_fits(tensor, x, name)
    return tensor if tensor.dtype.is_bool else tf.not_equal(tensor, 0)


def _check_fits(mask: tf.Tensor, x: tf.Tensor, name: str) -> None:
    joint = _broadcast(mask.shape, x.shape)
    if joint is None or not joint.is_compatible_with(x.shape):
        raise ValueError(
            f"`{name}` must have a shape that broadcasts to the shape of the tensor "
            f"that it weights, {x.shape}. Received: {name} of shape {mask.shape}. "
            f"A mask over the leading axes needs new axes behind them, for example "
            f"`{name}[..., tf.newaxis]`."
        )


def is_number(value: Any) -> bool:
    """Returns whether `value` is a real number; True and False are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """Returns whether `value` is an integer; True and False are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def number(value: Any, name: str, dtype: tf.DType) -> float:
    """Returns `value` as a Python float.

    Args:
      value: Python or NumPy number; infinity and NaN are allowed.
      name: The argument's name, for the error.
      dtype: Floating dtype in which it will be used.

    Raises:
      TypeError: If it is not a number.
      ValueError: If it is finite, and too large for `dtype`.
    """
    if not is_number(value):
        raise TypeError(f"`{name}` must be a number. Received: {name}={value!r}.")
    result = float(value)
    largest = LIMITS[dtype.name].max
    if math.isfinite(result) and abs(result) > largest:
        raise ValueError(
            f"`{name}` must fit the dtype of the result, {dtype.name}, whose largest "
            f"number is {largest:.6g}. Received: {name}={value!r}."
        )
    return result


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
    entries: list[Any] = list(axis) if isinstance(axis, list | tuple) else [axis]
    for each in entries:
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            raise TypeError(
                f"`{name}` must be an integer, a sequence of integers or None. "
                f"Received: {name}={axis!r}."
            )
    given = [int(each) for each in entries]
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


def refuse_deferred(target: Any, decorator: str) -> None:
    """Refuses functions whose body does not run when they are called.

    Args:
      target: What is decorated.
      decorator: Name of the decorator.

    Raises:
      TypeError: If it is a generator or coroutine function.
    """
    for kind, is_kind in (
        ("generator", inspect.isgeneratorfunction),
        ("coroutine", inspect.iscoroutinefunction),
        ("asynchronous generator", inspect.isasyncgenfunction),
    ):
        if is_kind(target):
            raise TypeError(
                "`target` must be a function that computes its results when it is "
                f"called. Received: target={target.__name__}, a {kind} function. Put "
                f"`@tfsafe.{decorator}` on the function that computes one item."
            )
