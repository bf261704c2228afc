"""Mean of what a mask keeps, or weighted."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import precision, weighted_mean


def masked_mean(
    x: Any,
    mask: Any = None,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    empty_value: float = 0.0,
    name: str = "masked_mean",
) -> tf.Tensor:
    """Computes the mean of the elements that a mask keeps, or a weighted mean.

    What stands at a masked position does not matter, NaN and infinity included. A
    mean of nothing is `empty_value`, where `sum(x * m) / sum(m)` is NaN.

    Args:
      x: Floating `Tensor`.
      mask: None to keep everything; a boolean `Tensor`, True where an element counts;
        or weights that are at least 0, of any integer dtype or of the dtype of `x`. Of
        a shape that broadcasts to the shape of `x`.
      axis: Axis or axes to reduce; all of them where None.
      keepdims: Whether the reduced axes stay, with size 1.
      empty_value: The value where the weights sum to 0.
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
      error            <= 3 ulp of the largest element that counts
      weight 0         ignored; slope 0 in x; slope in the weight
                       (x - mean) / total where x is finite, else 0
      all weights 0    value empty_value, gradients 0 (a choice)
      weight < 0       value NaN, gradients NaN
      weight NaN       value NaN, gradients NaN
      NaN that counts  value NaN, slopes in x weight / total, in the weights NaN
      inf that counts  value inf, slopes in x weight / total
      no element       value empty_value
      A zero incoming gradient gives zero gradients, whatever stands in the row.
      Sums are scaled, so that they cannot overflow where the mean does not.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> x = tf.constant([[1.0, 3.0, float("nan")], [5.0, 6.0, 7.0]])
      >>> mask = tf.constant([[True, True, False], [False, False, False]])
      >>> print(tfsafe.ops.masked_mean(x, mask, axis=1).numpy())
      [2. 0.]
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        along = _args.axes(axis, x.shape)
        weights = tf.broadcast_to(_args.weights(mask, x, "mask"), tf.shape(x))
        empty_value = _args.number(empty_value, "empty_value", x.dtype)
        value = precision.in_float32(
            lambda x, w: weighted_mean.weighted_mean(x, w, along, empty_value),
            x,
            weights,
        )
        return value if keepdims else precision.drop(value, along)
