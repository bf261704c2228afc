"""Structural similarity of images at several scales."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.power import constant_power

# Wang, Simoncelli and Bovik, 2003.
_POWERS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: float,
    power_factors: Sequence[float] = _POWERS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    *,
    name: str = "ssim_multiscale",
) -> tf.Tensor:
    """Computes the multi-scale structural similarity of two batches of images.

    The value is that of `tf.image.ssim_multiscale`, whose gradient is NaN for a pair of
    images as soon as they are anticorrelated at one scale: it raises 0 to a power
    below 1. Early in the training of a generator that is common.

    Args:
      img1: Floating `Tensor` of shape `[..., height, width, channels]`.
      img2: Floating `Tensor` of the shape and dtype of `img1`.
      max_val: Difference between the largest and the smallest number that a pixel may
        have.
      power_factors: Weights of the scales, the finest first; each scale has half the
        height and width of the one before.
      filter_size: Height and width of the Gaussian window, at most those of the images
        at the coarsest scale.
      filter_sigma: Width of the Gaussian.
      k1: Relative size of the constant that keeps the luminance term in range.
      k2: The same for the contrast term.
      name: Name scope of the operations created.

    Returns:
      `Tensor` of shape `[...]`, from 0 to 1.

    Raises:
      TypeError: If an image is not floating, or if their dtypes differ.
      ValueError: If the shapes differ or have fewer than three axes.

    Numerics:
      anticorrelated at a scale  value 0, gradient 0 through that scale
      NaN                        value NaN, gradient NaN
      A zero incoming gradient gives a zero gradient wherever the images are finite.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> image = tf.random.uniform([1, 16, 16, 3], seed=1)
      >>> same = tfsafe.ops.ssim_multiscale(
      ...     image, image, 1.0, power_factors=(0.5, 0.5), filter_size=5
      ... )
      >>> print(same.numpy())
      [1.]

    References:
      Wang, Simoncelli and Bovik, "Multi-scale Structural Similarity for Image Quality
      Assessment", Asilomar Conference on Signals, Systems and Computers, 2003.
    """
    with tf.name_scope(name):
        img1, img2 = _args.float_tensors(img1=img1, img2=img2)
        rank = img1.shape.rank
        if rank is None or rank < 3 or not img1.shape.is_compatible_with(img2.shape):
            raise ValueError(
                "`img1` and `img2` must have the same shape [..., height, width, "
                f"channels]. Received: img1 of shape {img1.shape}, img2 of shape "
                f"{img2.shape}."
            )
        window = _window(filter_size, filter_sigma)
        c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
        return precision.in_float32(
            lambda x, y: _multiscale(x, y, power_factors, window, c1, c2), img1, img2
        )


def _multiscale(
    x: tf.Tensor,
    y: tf.Tensor,
    powers: Sequence[float],
    window: tf.Tensor,
    c1: float,
    c2: float,
) -> tf.Tensor:
    lead, pixels = tf.shape(x)[:-3], tf.shape(x)[-3:]
    x, y = (tf.reshape(image, tf.concat([[-1], pixels], 0)) for image in (x, y))
    result = tf.ones([], x.dtype)
    for scale, power in enumerate(powers):
        if scale:
            x, y = (_halved(image) for image in (x, y))
        luminance, contrast = _terms(x, y, window, c1, c2)
        if scale == len(powers) - 1:
            contrast *= luminance
        similarity = tf.nn.relu(tf.reduce_mean(contrast, [-3, -2]))
        result *= constant_power(similarity, power)
    return tf.reshape(tf.reduce_mean(result, -1), lead)


def _terms(
    x: tf.Tensor, y: tf.Tensor, window: tf.Tensor, c1: float, c2: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the maps of the luminance and of the contrast and structure."""
    kernel = tf.tile(tf.cast(window, x.dtype), [1, 1, tf.shape(x)[-1], 1])

    def blurred(image: tf.Tensor) -> tf.Tensor:
        return tf.nn.depthwise_conv2d(image, kernel, [1, 1, 1, 1], "VALID")

    mean_x, mean_y = blurred(x), blurred(y)
    product = 2 * mean_x * mean_y
    squares = tf.square(mean_x) + tf.square(mean_y)
    covariance = blurred(2 * x * y) - product
    variances = blurred(tf.square(x) + tf.square(y)) - squares
    return (product + c1) / (squares + c1), (covariance + c2) / (variances + c2)


def _window(size: int, sigma: float) -> tf.Tensor:
    places = tf.range(size, dtype=tf.float64) - (size - 1) / 2
    line = tf.nn.softmax(-0.5 * tf.square(places / sigma))
    return (line[:, tf.newaxis] * line)[:, :, tf.newaxis, tf.newaxis]


def _halved(image: tf.Tensor) -> tf.Tensor:
    """Averages squares of four pixels; an odd row or column is doubled first."""
    odd = tf.shape(image)[1:3] % 2
    padding = tf.stack([[0, 0], [0, odd[0]], [0, odd[1]], [0, 0]])
    return tf.nn.avg_pool2d(tf.pad(image, padding, "SYMMETRIC"), 2, 2, "VALID")
