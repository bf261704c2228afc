"""Norms without overflow in the powers, with gradient 0 at 0."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import lengths, precision

_Axis = Sequence[int] | None


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
      axis: Axis or axes to reduce; by default all of them. Several axes only with
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
      A zero incoming gradient gives zero gradients, whatever the row holds.
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
        return lengths.euclidean
    if not _args.is_number(ord) or not ord > 0:
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
        return lengths.euclidean
    if ord == 1:
        return lengths.sum_of_magnitudes
    if math.isinf(ord):
        return lengths.largest_magnitude
    return lambda x, axis: lengths.p_norm(x, axis, float(ord))
