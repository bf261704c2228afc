"""The page shows the row that failed: an image, a series or a table."""

import numpy as np
import pytest
import tensorflow as tf

import tfsafe


def failure_in(function, *args):
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(tf.function(function))(*args)
    return caught.value


def failure_of(x):
    return failure_in(lambda x: tf.reduce_sum(x * 2.0), tf.constant(x, tf.float32))


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


def test_a_series_shows_the_features_that_are_not_finite_three_at_most():
    series = np.arange(4 * 7 * 8, dtype=float).reshape([4, 7, 8])
    series[1, 2, [3, 4, 5, 6]] = np.nan
    sample = failure_of(series).sample
    assert sample.words == "step 2, features 3\u20136"
    assert (len(sample.cells), sample.mark) == (3, -1)
    for line, feature in zip(sample.cells, (3, 4, 5), strict=True):
        known = series[1, :, feature]
        assert line == (*known[:2], None, *known[3:])


def test_of_a_finite_series_the_first_features_are_shown():
    series = np.ones([4, 7, 8])
    series[2] = np.arange(56).reshape([7, 8]) - 27.5
    sample = failure_in(
        lambda x: tf.math.log(tf.reduce_sum(x, [1, 2])), tf.constant(series)
    ).sample
    assert (sample.row, sample.words, sample.mark) == (2, "", -1)
    assert sample.cells == tuple(map(tuple, series[2, :, :3].T))


@pytest.mark.parametrize(
    ("scales", "numbers"),
    [
        (tf.constant([[1.0, 1e30]]), lambda scales: scales),
        (
            tf.RaggedTensor.from_row_lengths(tf.fill([2, 1], 1e30), [2]),
            lambda scales: scales.flat_values,
        ),
    ],
    ids=["dense", "ragged"],
)
def test_an_argument_without_the_row_is_passed_over(scales, numbers):
    # The product takes the scales themselves, and they have row 0 alone.
    sample = failure_in(
        lambda x, scales: tf.exp(x) * numbers(scales),
        *(tf.constant([[1.0, 2.0], [3.0, 60.0]]), scales),
    ).sample
    assert (sample.name, sample.row) == ("x", 1)
    assert sample.cells == ((0.0, 3.0), (1.0, 60.0))


def test_where_every_row_fails_none_is_shown_unless_the_argument_is_the_cause():
    x = tf.ones([3, 2])
    assert failure_in(lambda x: tf.math.log(x - 1.0), x).sample is None
    assert failure_in(lambda x: tf.reduce_sum(x - 1.0), x * np.nan).sample.row == 0


def test_without_a_row_there_is_no_sample():
    assert failure_of(np.array(np.nan)).sample is None


@pytest.mark.parametrize("shape", [[3, 0], [3, 0, 2], [3, 0, 5, 2]])
def test_of_an_argument_without_values_there_is_no_sample(shape):
    y = tf.constant([1.0, 0.0, 1.0])
    assert failure_in(lambda x, y: tf.math.log(y), tf.zeros(shape), y).sample is None


@pytest.mark.parametrize(
    ("x", "words", "mark"),
    [
        (np.ones([4, 5]), "column 3", 3),
        (np.ones([4, 9, 2]), "step 3, feature 1", 3),
        (np.ones([4, 6, 6, 3]), "channel 2, row 3, column 4", -1),
        (np.ones([4, 6, 6, 8]), "channel 2, row 3, column 4", -1),
    ],
    ids=["table", "series", "image", "channels"],
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


LOGARITHMS = tf.function(lambda rows: tf.math.log(rows))


@pytest.mark.parametrize("is_eager", [False, True])
def test_a_ragged_row_is_shown_as_its_tokens(is_eager):
    rows = tf.ragged.constant([[1.0, 2.0], [], [3.0, 0.0, 5.0]])
    function = LOGARITHMS.python_function if is_eager else LOGARITHMS
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(function)(rows)
    sample = caught.value.sample
    assert (sample.kind, sample.row, sample.length) == ("tokens", 2, 3)
    assert sample.cells == ((0.0, 3.0), (1.0, 0.0), (2.0, 5.0))
    assert sample.mark == 1
    page = caught.value.to_html()
    assert "Row 2 of rows, of 3 tokens: token 1 made the operation fail" in page
    assert (
        '<th>2</th></tr><tr><td>Value</td><td>3</td><td class="nonfinite">0</td>'
        in page
    )
    np.testing.assert_array_equal(caught.value.inputs["rows"], [1, 2, 3, 0, 5])
    np.testing.assert_array_equal(caught.value.inputs["rows.row_splits"], [0, 2, 2, 5])


def test_an_empty_ragged_row_says_so():
    rows = tf.ragged.constant([[1.0, 2.0], [], [3.0]])

    @tf.function
    def means(rows):
        lengths = tf.cast(rows.row_lengths(), tf.float32)
        return tf.reduce_sum(rows, axis=1) / lengths

    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(means)(rows)
    sample = caught.value.sample
    assert (sample.row, sample.length, sample.cells) == (1, 0, ())
    assert "Row 1 of rows is empty" in caught.value.to_html()


def test_tokens_that_are_words_are_shown_around_the_one_that_failed():
    words = tf.ragged.constant([["a"], [f"w{i}" for i in range(40)]])

    @tf.function
    def weights(words, numbers):
        return tf.math.log(numbers)

    numbers = tf.ragged.map_flat_values(
        lambda each: tf.cast(each != "w30", tf.float32), words
    )
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(weights)(words, numbers)
    sample = caught.value.sample
    assert (sample.name, sample.row, sample.words) == ("numbers", 1, "token 30")
    assert sample.cells[sample.mark] == (30.0, 0.0)
    assert len(sample.cells) <= 16


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (tf.ragged.constant([["a"], ["b", "\u00fc"]]), ("b", "\u00fc")),
        (tf.ragged.constant([[True], [True, False]]), ("True", "False")),
        (
            tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0]] * 2], ragged_rank=1),
            ("2 numbers", "2 numbers"),
        ),
    ],
    ids=["words", "booleans", "vectors"],
)
def test_without_a_token_that_failed_the_first_are_shown(rows, columns):
    numbers = tf.constant([1.0, -1.0])
    sample = failure_in(lambda x, rows: tf.math.log(x), numbers, rows).sample
    assert (sample.name, sample.row, sample.length) == ("rows", 1, 2)
    assert sample.cells == ((0.0, None), (1.0, None))
    assert (sample.columns, sample.words, sample.mark) == (columns, "", -1)
