"""Selections whose unselected side cannot reach the gradient."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args, _compat
from tfsafe._gradients import custom_gradient_in, unbroadcast
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import times_upstream


def where_apply(
    condition: Any,
    fn: Callable[[Any], Any],
    x: Any,
    otherwise: Any = None,
    *,
    safe: Any = None,
    name: str = "where_apply",
) -> tf.Tensor:
    """Computes `fn(x)` where `condition` holds, and `otherwise` elsewhere.

    `tf.where(condition, fn(x), otherwise)` has the gradient NaN wherever the unselected
    `fn(x)` has an infinite slope, because 0 times infinity is NaN. Here `fn` never sees
    an element where `condition` is False: another number replaces it, and the gradient
    of such an element is 0. This is the "double `tf.where`", for any function.

    Args:
      condition: Boolean `Tensor`.
      fn: Elementwise function of `x`, called once, with the structure of `x`.
      x: `Tensor`, or a nested structure of tensors, whose shapes broadcast with
        `condition`.
      otherwise: The value where `condition` is False: a number, a `Tensor` that
        broadcasts, or a function of `x`, which then never sees an element where
        `condition` holds.
      safe: Number, or structure like `x`, that replaces the elements that a function
        must not see. By default one of the elements that the function may see: the
        largest of a single tensor, the first of several; 1 if there is none. A number
        costs what the double `tf.where` does, the default one more search.
      name: Name scope of the operations created.

    Returns:
      `Tensor` of the dtype that `fn` returns, and the broadcast shape.

    Raises:
      TypeError: If `condition` is not boolean, if `fn` cannot be called, or if
        `otherwise` is missing.
      ValueError: If the shapes do not broadcast, or the structure of `safe` is neither
        that of `x` nor a single number.

    Numerics:
      condition False  value otherwise; gradient of fn 0, whatever x is
      condition True   value and gradient of fn(x), NaN included
      The same holds for the gradient of the gradient, and for variables that `fn` uses.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([0.0, 4.0])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.where_apply(x > 0, tf.math.log, x, 0.0)
      >>> print(tape.gradient(y, x).numpy())
      [0.   0.25]
      >>> a, b = tf.constant([1.0, 1.0]), tf.constant([0.0, 2.0])
      >>> ratio = lambda ab: ab[0] / ab[1]
      >>> print(tfsafe.ops.where_apply(b != 0, ratio, (a, b), -1.0).numpy())
      [-1.   0.5]
    """
    with tf.name_scope(name):
        condition = tf.convert_to_tensor(condition)
        if condition.dtype != tf.bool:
            raise TypeError(
                "`condition` must be boolean. Received: "
                f"dtype={condition.dtype.name}, shape={condition.shape}. Compare it "
                "first, for example `condition > 0`."
            )
        if not callable(fn):
            raise TypeError(
                "`fn` must be a function of `x`, as in `where_apply(x > 0, tf.math.log,"
                f" x, 0.0)`. Received: fn={_short(fn)}. To choose between two tensors "
                "that are computed already, use `tf.where(condition, a, b)`."
            )
        if otherwise is None:
            raise TypeError(
                "`otherwise` must be a number, a tensor or a function of `x`: the "
                "value where `condition` is False. Received: otherwise=None."
            )
        x = tf.nest.map_structure(tf.convert_to_tensor, x)
        selected = _compat.as_converted(fn)(_shown(x, condition, safe))
        if callable(otherwise):
            other = _compat.as_converted(otherwise)
            otherwise = other(_shown(x, ~condition, safe))
        otherwise = tf.convert_to_tensor(otherwise, dtype=selected.dtype)
        return tf.where(condition, selected, otherwise)


def _short(value: Any) -> str:
    if isinstance(value, tf.Tensor | tf.Variable):
        return f"a tensor of shape {value.shape}"
    return repr(value)


def _shown(x: Any, condition: tf.Tensor, safe: Any) -> Any:
    """Replaces the elements of `x` where `condition` is False."""
    tensors = tf.nest.flatten(x)
    for tensor in tensors:
        _args.check_broadcast(x=tensor, condition=condition)
    if safe is None and len(tensors) == 1 and tensors[0].dtype.is_floating:
        replacements = [_largest(tensors[0], condition)]
    elif safe is None:
        replacements = _first(tensors, condition)
    elif tf.nest.is_nested(safe) or tf.nest.is_nested(x):
        replacements = _like(x, safe)
    else:
        replacements = [safe]
    return tf.nest.pack_sequence_as(
        x,
        [
            tf.where(condition, tensor, tf.cast(number, tensor.dtype))
            for tensor, number in zip(tensors, replacements, strict=True)
        ],
    )


def _like(x: Any, safe: Any) -> list[Any]:
    if not tf.nest.is_nested(safe):
        return [safe for _ in tf.nest.flatten(x)]
    try:
        tf.nest.assert_same_structure(x, safe)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`safe` must be a single number or have the structure of `x`. Received: "
            f"safe={safe!r} for x={x!r}."
        ) from error
    return tf.nest.flatten(safe)


def _largest(x: tf.Tensor, condition: tf.Tensor) -> tf.Tensor:
    """Returns the largest element where `condition` holds, or 1."""
    # Stop the gradient: the slope of the replacement may be infinite.
    seen = tf.where(condition, tf.stop_gradient(x), x.dtype.min)
    is_seen = tf.reduce_any(condition)
    return tf.where(is_seen, tf.reduce_max(seen), tf.ones([], x.dtype))


def _first(tensors: list[tf.Tensor], condition: tf.Tensor) -> list[tf.Tensor]:
    """Returns one element of each tensor: the first where `condition` holds, or 1."""
    shape = tf.shape(condition)
    for tensor in tensors:
        shape = tf.broadcast_dynamic_shape(shape, tf.shape(tensor))
    # One more that always holds, so that there is a first.
    holds = tf.reshape(tf.broadcast_to(condition, shape), [-1])
    place = tf.argmax(tf.cast(tf.concat([holds, [True]], 0), tf.int8))
    result = []
    for tensor in tensors:
        values = tf.reshape(tf.broadcast_to(tensor, shape), [-1])
        values = tf.concat([values, tf.ones([1], tensor.dtype)], 0)
        result.append(tf.stop_gradient(tf.gather(values, place)))
    return result


def clip(
    x: Any,
    low: Any,
    high: Any,
    *,
    keep_gradient: bool | str = False,
    name: str = "clip",
) -> tf.Tensor:
    """Computes `min(max(x, low), high)`, and keeps the gradient outside where asked.

    The gradient of a clipped value is 0: a parameter that has left the interval never
    comes back. `keep_gradient` lets it through.

    Args:
      x: Floating `Tensor`.
      low: Number or `Tensor` of the dtype of `x`, of a shape that broadcasts with it.
      high: The same for the upper bound, at least `low`.
      keep_gradient: What becomes of the incoming gradient where `x` is outside. False:
        it is dropped, as by `tf.clip_by_value`. True: it is passed on, as if nothing
        were clipped. `"inward"`: it is passed on where a step against it leads back
        towards the interval, and dropped where it leads further away.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If an argument is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast, if `low` and `high` are numbers in the
        wrong order, or if `keep_gradient` is none of the three.

    Numerics:
      x = low  value low, slope 1
      x < low  value low, slope 0; slope 1 if kept
      x = inf  value high, slope 0; slope 1 if kept
      x = NaN  value NaN, slope 0; slope 1 if kept
      `low` and `high` have slope 1 where they are the value, also where the gradient
      is kept for `x`.
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([-3.0, 0.5])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.clip(x, 0.0, 1.0, keep_gradient=True)
      >>> print(y.numpy(), tape.gradient(y, x).numpy())
      [0.  0.5] [1. 1.]
    """
    with tf.name_scope(name):
        _args.one_of(keep_gradient, (False, True, "inward"), "keep_gradient")
        x, low_, high_ = _args.float_tensors(x=x, low=low, high=high)
        _args.check_broadcast(x=x, low=low_)
        _args.check_broadcast(x=x, high=high_)
        are_numbers = isinstance(low, int | float) and isinstance(high, int | float)
        if are_numbers and not low <= high:
            raise ValueError(
                f"`low` must be at most `high`. Received: low={low!r}, high={high!r}."
            )
        return precision.in_float32(
            lambda x, low, high: _clip(x, low, high, keep_gradient), x, low_, high_
        )


@custom_gradient_in(3)
def _clip(
    x: tf.Tensor, low: tf.Tensor, high: tf.Tensor, keep_gradient: bool | str
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, ...]]]:
    is_below, is_above = x < low, x > high

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
        zero = tf.zeros_like(upstream)
        in_low = tf.where(is_below, upstream, zero)
        in_high = tf.where(is_above, upstream, zero)
        if keep_gradient == "inward":
            # A descent step goes against the gradient.
            leaves = (is_below & (upstream > 0)) | (is_above & (upstream < 0))
            in_x = tf.where(leaves, zero, upstream)
        elif keep_gradient:
            in_x = upstream
        else:
            in_x = tf.where((x >= low) & (x <= high), upstream, zero)
        return (
            unbroadcast(in_x, x),
            unbroadcast(in_low, low),
            unbroadcast(in_high, high),
        )

    # Selections, so that NaN stays NaN.
    return tf.where(is_below, low, tf.where(is_above, high, x)), vjp


def multiply_no_nan(x: Any, y: Any, *, name: str = "multiply_no_nan") -> tf.Tensor:
    """Computes `x * y`, and 0 where `y` is 0, whatever `x` is.

    Use it for masks and weights `y`: what they exclude may be NaN or infinite.

    Args:
      x: Floating `Tensor`.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      error            value <= 1 ulp, slopes exact
      x = NaN, y = 0   value 0, slopes 0 and NaN
      x = inf, y = 0   value 0, slopes 0 and inf
      x = NaN, y = 1   value NaN, slopes 1 and NaN
      x = 0, y = NaN   value NaN, slopes NaN and 0
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([float("nan"), 3.0])
      >>> print(tfsafe.ops.multiply_no_nan(x, [0.0, 2.0]).numpy())
      [0. 6.]
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        return precision.in_float32(lambda x, y: times_upstream(y, x), x, y)
