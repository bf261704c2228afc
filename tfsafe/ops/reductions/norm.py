"""Norms without overflow in the powers, with gradient 0 at 0."""

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import chain, custom_gradient, nan_where
from tfsafe.ops.elementwise.division import _reciprocal, ratio
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.known import known

_Axis = Sequence[int] | None
_Gradient = Callable[[tf.Tensor], tf.Tensor]


def norm(
    x: Any,
    ord: str | float = "euclidean",
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = "norm",
) -> tf.Tensor:
    """Computes the Euclidean norm or another p-norm, with gradient 0 at 0.

    Use it for distances, gradient penalties and normalisation. The gradient of
    `tf.norm` is NaN at 0, and its squares overflow above 1e19 in float32 and above
    255 in float16.

    Args:
      x: Floating `Tensor`.
      ord: `"euclidean"` or 2; `"fro"`, the same for matrices; 1; infinity; or another
        p above 0.
      axis: Axis or axes to reduce; all of them where None. Several axes only with
        `"euclidean"` and `"fro"`, over all their entries.
      keepdims: Whether the reduced axes stay, with size 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and its shape without the reduced axes.

    Raises:
      TypeError: If `x` does not have a floating dtype, or if `axis` is not an
        integer.
      ValueError: If `ord` is not one of these, if it asks for a matrix norm, or if
        `axis` is out of range or names an axis twice.

    Numerics:
      error     <= 3 ulp; second order <= 8 ulp of the row's largest; other p <= 8 ulp
      all 0     value 0, gradient 0 (the subgradient of least norm)
      inf       value inf, gradient NaN there and 0 elsewhere
      NaN       value NaN, gradient NaN
      no entry  value 0
      A zero incoming gradient gives zero gradients, whatever stands in the row.
      The gradient is right even where the norm itself overflows.
      p = 1 has slope 0 at 0; p = inf shares its slope among the largest, and p < 1 has
      slope 0 at a 0, where it is infinite.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[3e20, 4e20], [0.0, 0.0]])
      >>> with tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     y = tfsafe.ops.norm(x, axis=-1)
      >>> print(y.numpy())
      [5.e+20 0.e+00]
      >>> print(tape.gradient(y, x).numpy())
      [[0.6 0.8]
       [0.  0. ]]

    References:
      Blue, "A Portable Fortran Program to Find the Euclidean Norm of a Vector",
      ACM Transactions on Mathematical Software 4(1), 1978, for the scaling.
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        along = _args.axes(axis, x.shape)
        function = norm_of_order(ord, axis)
        value = precision.in_float32(lambda x: function(x, along), x)
        return value if keepdims else precision.drop(value, along)


def norm_of_order(
    ord: str | float,
    axis: int | Sequence[int] | None,
) -> Callable[[tf.Tensor, _Axis], tf.Tensor]:
    """Returns the function of a tensor and its axes; it keeps these with size 1.

    Raises:
      ValueError: If `ord` is not known, or does not go with several axes.
    """
    if isinstance(ord, str):
        _args.one_of(ord, ("euclidean", "fro"), "ord")
        return euclidean
    is_number = isinstance(ord, numbers.Real) and not isinstance(ord, bool)
    if not is_number or not ord > 0:
        raise ValueError(
            "`ord` must be 'euclidean', 'fro', or a number above 0, infinity included. "
            f"Received: ord={ord!r}."
        )
    if isinstance(axis, list | tuple) and len(axis) > 1:
        raise ValueError(
            "`ord` must be 'euclidean' or 'fro' for several axes. Received: "
            f"ord={ord!r}, axis={axis!r}. With two axes a number asks for a matrix "
            "norm: see `tf.norm`."
        )
    if ord == 2:
        return euclidean
    if ord == 1:
        return _sum_of_magnitudes
    if math.isinf(ord):
        return _largest_magnitude
    return lambda x, axis: _p_norm(x, axis, float(ord))


def euclidean(x: tf.Tensor, axis: _Axis) -> tf.Tensor:
    """Computes the Euclidean norm; the axes stay, with size 1."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        scaled, power, _ = precision.scaled(x, axis)
        length = _length(scaled, axis)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            unit = over(scaled, length)
            return chain(upstream, known(unit, lambda x: direction(x, axis), x))

        return power * length, vjp

    return function(x)


def direction(x: tf.Tensor, axis: _Axis) -> tf.Tensor:
    """Computes `x` over its Euclidean norm, and 0 where the norm is 0."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        scaled, power, _ = precision.scaled(x, axis)
        length = _length(scaled, axis)
        value = over(scaled, length)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            unit = known(value, lambda x: direction(x, axis), x)
            total = known(power * length, lambda x: euclidean(x, axis), x)
            along = tf.reduce_sum(chain(upstream, unit), axis, keepdims=True)
            return chain(upstream - chain(along, unit), _reciprocal(total))

        return value, vjp

    return function(x)


def over(x: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """Divides by a length that is 0 only where `x` is 0 as well."""
    return x / tf.where(tf.equal(length, 0), tf.ones_like(length), length)


def _length(x: tf.Tensor, axis: _Axis) -> tf.Tensor:
    return tf.sqrt(tf.reduce_sum(tf.square(x), axis, keepdims=True))


def _sum_of_magnitudes(x: tf.Tensor, axis: _Axis) -> tf.Tensor:
    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            return chain(upstream, tf.sign(x))

        return tf.reduce_sum(tf.abs(x), axis, keepdims=True), vjp

    return function(x)


def _largest_magnitude(x: tf.Tensor, axis: _Axis) -> tf.Tensor:
    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        magnitude = tf.abs(x)
        # The magnitude of nothing is 0, and a NaN is not to be passed over.
        largest = tf.maximum(tf.reduce_max(magnitude, axis, keepdims=True), 0)
        has_nan = tf.reduce_any(tf.math.is_nan(x), axis, keepdims=True)
        largest += nan_where(has_nan, x.dtype)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            is_largest = tf.cast(tf.equal(magnitude, largest), x.dtype)
            ties = tf.reduce_sum(is_largest, axis, keepdims=True)
            # A row with NaN has no largest, and 0 / 0 is the NaN that it should have.
            return chain(upstream, tf.sign(x) * (is_largest / ties))

        return largest, vjp

    return function(x)


def _p_norm(x: tf.Tensor, axis: _Axis, p: float) -> tf.Tensor:
    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        largest = tf.reduce_max(tf.abs(x), axis, keepdims=True)
        usable = tf.logical_and(largest > 0, tf.math.is_finite(largest))
        largest = tf.where(usable, largest, tf.ones_like(largest))
        shares = x / largest
        total = tf.reduce_sum(tf.abs(shares) ** p, axis, keepdims=True) ** (1 / p)

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            relative = known(
                ratio(shares, total), lambda x: ratio(x, _p_norm(x, axis, p)), x
            )
            return chain(upstream, _signed_power(relative, p - 1))

        return largest * total, vjp

    return function(x)


def _signed_power(x: tf.Tensor, power: float) -> tf.Tensor:
    """Computes `sign(x) * abs(x)**power`, and 0 at 0."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            at_zero = float(power == 1)
            return chain(upstream, power * _magnitude_power(x, power - 1, at_zero))

        return tf.sign(x) * _magnitude_power(x, power, 0.0), vjp

    return function(x)


def _magnitude_power(x: tf.Tensor, power: float, at_zero: float) -> tf.Tensor:
    is_zero = tf.equal(x, 0)
    regular = tf.abs(tf.where(is_zero, tf.ones_like(x), x)) ** power
    return tf.where(is_zero, tf.constant(at_zero, x.dtype), regular)
