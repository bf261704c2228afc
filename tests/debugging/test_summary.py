"""Statistics of tensors, as records and as a table."""

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close
from tfsafe.debugging import TensorStats, summarize

NAN, INF = np.nan, np.inf


def test_it_counts_each_kind_of_value(dtype):
    limits = ml_dtypes.finfo(dtype.as_numpy_dtype)
    small = float(limits.smallest_normal) / 4
    array = np.array([[NAN, INF, -INF, 0], [1, 2, 3, small]], dtype.as_numpy_dtype)
    (found,) = summarize(array)
    assert (found.name, found.shape, found.dtype) == ("tensor", (2, 4), dtype.name)
    names = ("nans", "posinfs", "neginfs", "zeros", "subnormals")
    assert [getattr(found, name) for name in names] == [1] * 5
    assert [found.fraction(name) for name in names] == [1 / 8] * 5
    assert (found.nonfinite, found.size, found.negatives) == (3, 8, 0)
    assert (found.min, found.max, found.first_nonfinite) == (0, 3, (0, 0))
    assert_close(found.mean, (6 + small) / 5)


def test_the_mean_does_not_overflow():
    assert_close(summarize([np.array([1e308, 1.5e308])])[0].mean, 1.25e308)


@pytest.mark.parametrize(
    "array",
    [np.zeros((0, 3)), np.array([NAN, NAN]), np.array(INF)],
    ids=["empty", "all NaN", "scalar"],
)
def test_without_a_finite_element_there_is_no_range(array):
    (found,) = summarize(array)
    assert found.min is found.max is found.mean is None


@pytest.mark.parametrize("kind", ["bool", "int8", "int64", "uint8"])
def test_it_takes_whole_numbers(kind):
    (found,) = summarize(tf.constant(np.array([0, 1, 1, 0], kind)))
    assert (found.min, found.max, found.mean, found.zeros) == (0, 1, 0.5, 2)


def test_complex_numbers_are_described_by_their_moduli():
    (found,) = summarize(tf.constant([3 + 4j, 0, complex(NAN, 1), complex(INF, 1)]))
    assert (found.max, found.nans, found.posinfs) == (5, 1, 1)
    assert found.first_nonfinite == (2,)


def test_it_walks_through_nested_structures_and_names_the_leaves():
    gradients = {
        "encoder": [tf.constant([1.0]), None],
        "table": tf.IndexedSlices(tf.constant([[NAN]]), tf.constant([7])),
        "name": tf.constant("text"),
    }
    found = summarize(gradients)
    assert [each.name for each in found] == ["encoder[0]", "table"]
    assert [each.name for each in found.nonfinite] == ["table"]


def test_it_names_the_weights_of_a_model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="head")])
    model.layers[0].kernel.assign([[NAN], [1.0]])
    assert [each.name for each in summarize(model)] == [v.path for v in model.weights]
    (bad,) = summarize(model).nonfinite
    assert (bad.name, bad.nans) == (model.layers[0].kernel.path, 1)
    assert summarize(model.layers[0].kernel)[0].first_nonfinite == (0, 0)


def test_it_prints_the_columns_that_are_needed():
    text = str(summarize({"kernel": np.array([[1, NAN], [3, 0]]), "bias": [2.0]}))
    assert text.splitlines() == [
        "tensor   shape  dtype    min  max   mean   NaN  zeros  first non-finite",
        "kernel   2x2    float64    0    3  1.333  25 %   25 %            (0, 1)",
        "bias[0]  -      float64    2    2      2     -      -                 -",
    ]


def test_a_fraction_is_never_rounded_to_none_or_all():
    almost = np.full(10**6, NAN)
    almost[0] = 1
    assert "99.99 %" in str(summarize(almost))
    one = np.ones(10**6)
    one[5] = NAN
    assert "<0.01 %" in str(summarize(one))
    assert "100 %" in str(summarize(np.array([NAN])))
    # The index of the one element of a scalar is empty.
    assert str(summarize(np.array(NAN))).endswith("()")


def test_a_tensor_without_values_is_refused():
    @tf.function
    def traced(x):
        summarize({"x": x})

    with pytest.raises(TypeError, match=r"`summarize` needs tensors with values.*`tfs"):
        traced(tf.constant(1.0))


def test_an_uncounted_number_has_no_fraction():
    with pytest.raises(ValueError, match="`zeros` of w were not counted"):
        TensorStats("w", "float32", (2,)).fraction("zeros")


def test_a_scalar_tensor_has_statistics(dtype):
    (found,) = summarize(tf.constant(2, dtype))
    assert (found.shape, found.size, found.mean) == ((), 1, 2)
