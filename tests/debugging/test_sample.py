"""The page shows the row that failed: an image, a series or a table."""

import numpy as np
import pytest
import tensorflow as tf

import tfsafe

LOG = tf.function(lambda x: tf.reduce_sum(x * 2.0))


def failure_of(x):
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(LOG)(tf.constant(x, tf.float32))
    return caught.value


def test_an_image_has_the_rectangle_outlined():
    images = np.random.default_rng(0).random([4, 64, 64, 3])
    images[2, 40:44, 50:60, 1] = np.nan
    error = failure_of(images)
    sample = error.sample
    assert (sample.kind, sample.name, sample.row) == ("image", "x", 2)
    assert sample.words == "channel 1, rows 40\u201343, columns 50\u201359"
    # Every second row and column is drawn.
    assert sample.box == (20, 25, 22, 30)
    assert (len(sample.cells), len(sample.cells[0])) == (32, 32)
    page = error.to_html()
    assert '<rect class="outline" x="150" y="120" width="30" height="12"/>' in page
    assert (
        "Row 2 of x: channel 1, rows 40\u201343, columns 50\u201359 not finite" in page
    )


def test_a_series_has_its_gaps_marked():
    series = np.ones([3, 50, 2])
    series[1, 7, 1] = np.inf
    error = failure_of(series)
    assert (error.sample.kind, error.sample.words) == ("series", "step 7, feature 1")
    assert error.sample.cells[0][6:9] == (1.0, None, 1.0)
    assert error.to_html().count('class="gap"') == 1


def test_a_table_names_its_columns():
    table = np.ones([5, 30])
    table[3, 25] = np.nan
    error = failure_of(table)
    assert (error.sample.kind, error.sample.words) == ("table", "column 25")
    assert (25.0, None) in error.sample.cells
    assert len(error.sample.cells) == 16
    page = error.to_html()
    assert '<td class="nonfinite">not finite</td>' in page
    assert "<th>25</th>" in page


def test_without_a_row_there_is_no_sample():
    assert failure_of(np.array(np.nan)).sample is None


@pytest.mark.parametrize(
    ("x", "words", "mark"),
    [
        (np.ones([4, 5]), "column 3", 3),
        (np.ones([4, 9, 2]), "step 3, feature 1", 3),
        (np.ones([4, 6, 6, 3]), "channel 2, row 3, column 4", -1),
    ],
    ids=["table", "series", "image"],
)
def test_the_finite_value_that_an_operation_failed_at_is_marked(x, words, mark):
    x[(2, 3, 1) if x.ndim == 3 else (2, 3, 4, 2)[: x.ndim]] = 0.0
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(tf.function(lambda x: tf.math.log(x)))(tf.constant(x))
    sample = caught.value.sample
    assert (sample.row, sample.words, sample.mark) == (2, words, mark)
    assert sample.box == ((3, 4, 4, 5) if x.ndim == 4 else ())
    page = caught.value.to_html()
    assert f"Row 2 of x: {words} made the operation fail" in page
