"""Arguments that users pass by mistake, and what the messages say."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tfsafe.data import check_finite
from tfsafe.debugging import plot, report, summarize

NAN = float("nan")


@pytest.mark.parametrize("function", [summarize, report])
@pytest.mark.parametrize("value", [None, "weights"])
def test_what_is_no_tensor_is_refused(function, value):
    with pytest.raises(TypeError, match="Expected tensors, arrays"):
        function(value)


def test_text_cannot_be_drawn():
    pytest.importorskip("matplotlib")
    with pytest.raises(TypeError, match="`plot` needs numbers"):
        plot(tf.constant("text"))
    with pytest.raises(TypeError, match="at least one tensor"):
        plot([])


def test_weights_are_drawn_one_by_one():
    pytest.importorskip("matplotlib")
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(3, name="head")])
    for drawn in (plot(model.weights), plot(model)):
        assert len(drawn) == 2
        assert drawn[0].get_title().endswith("2x3 float32")


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (tf.sparse.from_dense([[NAN, 0.0, 2.0]]), 1),
        (tf.ragged.constant([[1.0], [2.0, NAN]]), 1),
        (tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 1])), 1),
        ({"kernel": np.ones([2, 2]), "none": None}.values(), 1),
        (types.MappingProxyType({"a": np.ones(2), "b": np.ones([2, 2])}), 2),
        ([None, tf.ragged.constant([[1.0], [2.0, NAN]]), np.ones(2)], 2),
    ],
)
def test_what_is_summarized_is_drawn(value, count):
    pytest.importorskip("matplotlib")
    assert len(summarize(value)) == count
    drawn = plot(value)
    assert len(drawn if isinstance(drawn, list) else [drawn]) == count


def test_a_page_goes_into_a_new_folder(tmp_path):
    path = tmp_path / "new" / "page.html"
    tfsafe.NumericsError("1 step was not finite.").to_html(path)
    assert path.read_text().startswith("<!DOCTYPE html>")


def test_the_name_of_a_file_is_not_data():
    with pytest.raises(ValueError, match=r"pandas.read_csv\('data.csv'\)"):
        check_finite("data.csv")


def test_parts_go_into_one_tuple():
    with pytest.raises(TypeError, match=r"check_finite\(\(x, y\)\)"):
        check_finite(np.ones(2), np.ones(2))


def test_an_empty_column_gets_a_suggestion_that_works():
    x = np.ones([4, 2])
    x[:, 1] = np.nan
    (finding,) = check_finite(x, policy="report").findings
    scope = {"x": x, "check_finite": check_finite}
    with pytest.warns(UserWarning, match="replaced 4 values"):
        exec(finding.suggested_code, scope)
    np.testing.assert_array_equal(scope["x"], [[1, 0]] * 4)


def test_exploded_values_name_the_learning_rate():
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(tf.exp)(tf.constant([1e11]))
    words = " f. Values of 1.0e+11 have exploded: lower the learning rate, "
    assert words in caught.value.findings[0].suggestion
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(tf.exp)(tf.constant([100.0]))
    assert "learning rate" not in str(caught.value)
