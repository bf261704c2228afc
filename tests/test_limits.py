import ml_dtypes
import pytest
import tensorflow as tf

from tfsafe._limits import LIMITS

NAMES = ["float16", "bfloat16", "float32", "float64"]


def test_there_are_limits_for_the_four_floating_dtypes():
    assert list(LIMITS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_limits_agree_with_ml_dtypes(name):
    info = ml_dtypes.finfo(tf.as_dtype(name).as_numpy_dtype)
    assert LIMITS[name] == (float(info.eps), float(info.tiny), float(info.max))


@pytest.mark.parametrize("name", NAMES)
def test_the_limits_are_python_floats(name):
    assert {type(limit) for limit in LIMITS[name]} == {float}


@pytest.mark.parametrize("name", NAMES)
def test_tensorflow_agrees_on_the_gap_above_1(name):
    one, eps = tf.ones([], name), tf.cast(LIMITS[name].eps, name)
    assert one + eps > one
    assert one + eps / 2 == one
