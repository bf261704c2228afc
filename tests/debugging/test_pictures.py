"""A tensor in figures and in letters."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tfsafe.debugging.inspection import pictures
from tfsafe.errors import Picture

NAN, INF = np.nan, np.inf


def test_every_kind_of_element_has_its_letter():
    picture = pictures.picture(np.array([[NAN, INF, -INF], [0.0, 1e3, -1e-2]]))
    assert picture == Picture(("NPM", "09a"), -2.0, 3.0)


def test_letters_grow_with_the_magnitude():
    numbers = 10.0 ** np.arange(10)
    assert pictures.picture(numbers).rows == ("1123456789",)
    assert pictures.picture(-numbers).rows == ("aabcdefghi",)


def test_a_nonfinite_element_among_many_is_seen_in_its_block():
    numbers = np.ones([1000, 500])
    numbers[700, 13] = INF
    numbers[701, 13] = NAN
    numbers[0, 499] = -INF
    picture = pictures.picture(numbers)
    assert {len(row) for row in picture.rows} == {64}
    assert len(picture.rows) == 64
    assert picture.rows[0] == "1" * 63 + "M"
    assert picture.rows[44] == "1N" + "1" * 62


def test_a_scalar_a_vector_and_a_cube_are_matrices():
    assert pictures.picture(np.array(0.0)).rows == ("0",)
    assert pictures.picture(np.zeros(3)).rows == ("000",)
    assert pictures.picture(np.zeros([2, 2, 3])).rows == ("000",) * 4


def test_the_figures_of_a_tensor_are_counted():
    x = np.array([[0.0, -3.0, NAN], [INF, -INF, 5.0]], "float32")
    stats = pictures.stats_of("Mul", x)
    assert dataclasses.replace(stats, picture=None) == pictures.TensorStats(
        "Mul",
        "float32",
        (2, 3),
        min=-3.0,
        max=5.0,
        mean=2 / 3,
        zeros=1,
        negatives=1,
        nans=1,
        posinfs=1,
        neginfs=1,
        subnormals=0,
        first_nonfinite=(0, 2),
    )
    assert stats.picture == Picture(("0eN", "PM7"), 0.0, 1.0)


def test_no_elements_have_no_picture_and_no_range():
    stats = pictures.stats_of("x", np.zeros([0, 2]))
    assert (stats.min, stats.max, stats.mean) == (None, None, None)
    assert stats.picture is None


@pytest.mark.parametrize("kind", ["bool", "int32", "bfloat16", "complex64"])
def test_other_dtypes_are_seen_as_real_numbers(kind):
    stats = pictures.stats_of("x", np.asarray(tf.cast([0.0, 1.0], kind)))
    assert (stats.dtype, stats.min, stats.max) == (kind, 0.0, 1.0)
    assert stats.picture.rows == ("01",)
