import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import NAN, assert_rounded, documented
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import ops


def _images(shape, dtype=tf.float32):
    numbers = np.random.RandomState(0)
    first = numbers.rand(*shape)
    second = np.clip(first + 0.2 * numbers.randn(*shape), 0, 1)
    return tf.constant(first, dtype), tf.constant(second, dtype)


def _two_scales(op):
    return lambda x, y: op(x, y, 1.0, power_factors=(0.4, 0.6), filter_size=5)


@pytest.mark.parametrize("shape", [[2, 16, 16, 3], [19, 17, 1], [2, 3, 12, 11, 2]])
def test_it_is_that_of_tensorflow(shape, mode):
    images = _images(shape)
    value, slopes = modes.value_and_gradients(
        _two_scales(ops.ssim_multiscale), images, mode
    )
    truth, wanted = modes.value_and_gradients(
        _two_scales(tf.image.ssim_multiscale), images, "eager"
    )
    assert value.shape == truth.shape
    assert_close(value, truth, 18, why="both are sums over windows")
    assert_close(slopes, wanted, 50, why="both are sums over windows", scale=0.0625)


def test_its_five_scales_are_those_of_tensorflow():
    images = _images([1, 176, 180, 1])
    got = ops.ssim_multiscale(*images, 1.0)
    assert_close(
        got,
        tf.image.ssim_multiscale(*images, 1.0),
        26,
        why="both are sums over windows",
    )


def test_it_keeps_the_dtype(dtype):
    images = _images([1, 12, 12, 1], dtype)
    value = _two_scales(ops.ssim_multiscale)(*images)
    assert value.dtype == dtype
    wide = (tf.cast(image, tf.float64) for image in images)
    truth = _two_scales(ops.ssim_multiscale)(*wide)
    most = 1 if dtype.size == 2 else 8
    assert_close(value, truth, most, why="sums over windows, as in TensorFlow's")


def test_its_edges_are_those_of_its_docstring(mode):
    assert documented(ops.ssim_multiscale) == ["anticorrelated at a scale", "NaN"]
    x, _ = _images([1, 12, 12, 1])
    x = tf.concat([x, tf.fill([1, 12, 12, 1], NAN), x], 0)
    y = tf.concat([1 - x[:2], x[2:]], 0)
    value, slopes = modes.value_and_gradients(
        _two_scales(ops.ssim_multiscale), [x, y], mode
    )
    assert_rounded(value, [0.0, NAN, 1.0])
    for slope in slopes:
        assert_rounded(slope[0], 0.0)
        assert np.all(np.isnan(slope[1]))
        assert np.all(np.isfinite(slope[2]))


@pytest.mark.parametrize("shapes", [([8, 8, 1], [8, 8, 3]), ([8, 8], [8, 8])])
def test_images_of_other_shapes_are_refused(shapes):
    x, y = (tf.zeros(shape) for shape in shapes)
    with pytest.raises(ValueError, match=r"`img1` and `img2` must have the same sha"):
        ops.ssim_multiscale(x, y, 1.0)
