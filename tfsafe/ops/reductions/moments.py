"""Mean, variance and standard deviation of what a mask keeps.

A row is scaled by a power of 2, so that no sum and no square leaves the range, and
shifted by one of its own elements, so that the spread keeps its digits however large
the mean is and that equal elements have a variance of exactly 0.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.statistics import moments as statistics
from tfsafe.ops.kernels.statistics.moments import weighted_mean

_Axis = Sequence[int] | None
_Statistic = Callable[[tf.Tensor, _Axis, tf.Tensor | None], tf.Tensor]


def mean(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    mask: Any = None,
    empty_value: float = 0.0,
    name: str = "mean",
) -> tf.Tensor:
    """Computes the mean of the elements that a mask keeps, or a weighted mean.

    Elements with a weight of 0 do not matter, NaN and infinity included. The mean of no
    element is `empty_value`, where `sum(x * mask) / sum(mask)` is NaN. `tf.reduce_mean`
    sums float16 in float16 and is NaN for an empty tensor.

    Args:
      x: Floating `Tensor`.
      axis: Axis or axes to reduce; by default all of them.
      keepdims: Whether the reduced axes stay, with size 1.
      mask: None to keep everything; a boolean `Tensor`, True where an element counts;
        or weights that are at least 0, of any integer dtype or of the dtype of `x`. Of
        a shape that broadcasts to the shape of `x`.
      empty_value: The value where the weights sum to 0, or without elements.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and its shape without the reduced axes.

    Raises:
      TypeError: If `x` does not have a floating dtype, if `mask` has a floating dtype
        other than that of `x` or is not numeric, if `axis` is not an integer, or if
        `empty_value` is not a number.
      ValueError: If `mask` does not broadcast to `x`, if `axis` is out of range or
        names an axis twice, or if `empty_value` does not fit the dtype.

    Numerics:
      error            <= 3 ulp of the largest element that counts, slopes <= 3 ulp
      weight 0         ignored; slope 0 in x; slope in the weight
                       (x - mean) / total where x is finite, else 0
      all weights 0    value empty_value, gradients 0 (a choice)
      weight < 0       value NaN, gradients NaN
      weight NaN       value NaN, gradients NaN
      NaN that counts  value NaN, slopes in x weight / total, in the weights NaN
      inf that counts  value inf, slopes in x weight / total
      no element       value empty_value
      A zero incoming gradient gives zero gradients, whatever the row holds.
      Sums are scaled, so that they cannot overflow where the mean does not.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[1.0, 3.0, float("nan")], [5.0, 6.0, 7.0]])
      >>> mask = tf.constant([[True, True, False], [False, False, False]])
      >>> print(tfsafe.ops.mean(x, axis=1, mask=mask).numpy())
      [2. 0.]
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        along = _args.axes(axis, x.shape)
        empty_value = _args.number(empty_value, "empty_value", x.dtype)
        if mask is None and not empty_value:
            # Without weights: fewer passes over the elements.
            return _reduced(statistics.mean, x, axis, keepdims, None)
        weights = tf.broadcast_to(_args.weights(mask, x, "mask"), tf.shape(x))

        def function(x: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
            return weighted_mean(x, weights, along, empty_value)

        value = precision.in_float32(function, x, weights)
        return value if keepdims else precision.drop(value, along)


def variance(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    mask: Any = None,
    name: str = "variance",
) -> tf.Tensor:
    """Computes the mean of the squared distances from the mean.

    Args:
      x: Floating `Tensor`.
      axis: Axis or axes to reduce; by default all of them.
      keepdims: Whether the reduced axes stay, with size 1.
      mask: None to keep everything, or booleans, True where an element counts; numbers
        keep what is not 0. Of a shape that broadcasts to that of `x`.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and its shape without the reduced axes, at least 0.

    Raises:
      TypeError: If `x` or `mask` has a wrong dtype, or if `axis` is not an integer.
      ValueError: If `axis` is out of range or names an axis twice, or if `mask` does
        not broadcast to `x`.

    Numerics:
      error      <= 4 ulp, gradient <= 8 ulp of the row's largest, for any mean
      all equal  value 0, gradient 0
      no entry   value 0, gradient 0 (a choice), also where all is masked
      masked     ignored, gradient 0
      inf        value NaN, gradient NaN there and infinite elsewhere
      NaN        value NaN, gradient NaN, in the whole row
      A zero incoming gradient gives zero gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([1e4, 1e4 + 1, 1e4 + 2])
      >>> print(tfsafe.ops.variance(x).numpy())
      0.6666667

    References:
      Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance: Analysis
      and Recommendations", The American Statistician 37(3), 1983.
    """
    with tf.name_scope(name):
        return _reduced(statistics.variance, x, axis, keepdims, mask)


def std(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    mask: Any = None,
    name: str = "std",
) -> tf.Tensor:
    """Computes the standard deviation, with gradient 0 where all elements are equal.

    The gradient of `tf.math.reduce_std` is NaN there, and its squares overflow above
    1e19 in float32 and above 255 in float16.

    Args:
      x: Floating `Tensor`.
      axis: Axis or axes to reduce; by default all of them.
      keepdims: Whether the reduced axes stay, with size 1.
      mask: None to keep everything, or booleans, True where an element counts; numbers
        keep what is not 0. Of a shape that broadcasts to that of `x`.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and its shape without the reduced axes, at least 0.

    Raises:
      TypeError: If `x` or `mask` has a wrong dtype, or if `axis` is not an integer.
      ValueError: If `axis` is out of range or names an axis twice, or if `mask` does
        not broadcast to `x`.

    Numerics:
      error      <= 4 ulp, gradient <= 8 ulp of the row's largest, for any mean
      all equal  value 0, gradient 0 (the subgradient of least norm)
      no entry   value 0, gradient 0 (a choice), also where all is masked
      masked     ignored, gradient 0
      inf        value NaN, gradient NaN, in the whole row
      NaN        value NaN, gradient NaN, in the whole row
      A zero incoming gradient gives zero gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[300, -300], [5, 5]], tf.float16)
      >>> print(tfsafe.ops.std(x, axis=-1).numpy())
      [300.   0.]

    References:
      Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance: Analysis
      and Recommendations", The American Statistician 37(3), 1983.
    """
    with tf.name_scope(name):
        return _reduced(statistics.std, x, axis, keepdims, mask)


def moments(
    x: Any,
    axes: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    mask: Any = None,
    name: str = "moments",
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the mean and the variance, as `mean` and `variance` do.

    Args:
      x: Floating `Tensor`.
      axes: Axis or axes to reduce; by default all of them.
      keepdims: Whether the reduced axes stay, with size 1.
      mask: None to keep everything, or booleans, True where an element counts; numbers
        keep what is not 0. Of a shape that broadcasts to that of `x`.
      name: Name scope of the operations created.

    Returns:
      Two `Tensor`s with the dtype of `x` and its shape without the reduced axes.

    Raises:
      TypeError: If `x` or `mask` has a wrong dtype, or if `axes` is not an integer.
      ValueError: If `axes` is out of range or names an axis twice, or if `mask` does
        not broadcast to `x`.

    Numerics:
      error      that of `mean` and of `variance`
      all equal  variance 0, its gradient 0
      no entry   values 0, gradients 0 (a choice), also where all is masked
      masked     ignored, gradients 0
      inf        mean inf, variance NaN
      NaN        values NaN
      Zero incoming gradients give zero gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([1.0, 3.0, float("nan")])
      >>> mean, variance = tfsafe.ops.moments(x, mask=[True, True, False])
      >>> print(mean.numpy(), variance.numpy())
      2.0 1.0
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        _args.axes(axes, x.shape, "axes")
        return (
            _reduced(statistics.mean, x, axes, keepdims, mask),
            _reduced(statistics.variance, x, axes, keepdims, mask),
        )


def _reduced(
    statistic: _Statistic,
    x: Any,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    mask: Any,
) -> tf.Tensor:
    x = _args.float_tensor(x, "x")
    along = _args.axes(axis, x.shape)
    keep = None
    if mask is not None:
        keep = tf.broadcast_to(_args.keeps(mask, x), tf.shape(x))
    value = precision.in_float32(lambda x: statistic(x, along, keep), x)
    return value if keepdims else precision.drop(value, along)
