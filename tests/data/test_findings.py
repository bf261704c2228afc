"""What is found, how it is called, and what it says."""

import datetime
import decimal
import json
import pickle

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfsafe
from tfsafe import NumericsError
from tfsafe.data import check_finite


def report(data, **options):
    return check_finite(data, policy="report", **options)


def only(findings):
    (finding,) = findings
    return finding


def test_the_text_says_what_where_why_and_what_to_write():
    x = np.ones((4, 3))
    x[2, 1], x[3, 2] = np.nan, -np.inf
    with pytest.raises(NumericsError) as caught:
        check_finite((x, np.arange(4)))
    assert str(caught.value) == (
        "NaN and -Inf in `x[:, 1]`, first in row 2.\n"
        "  what:  2 of 12 values, the first is nan at index (2, 1); float64\n"
        "  why:   in 2 of 3 columns (1, 2): a NaN is most often an empty cell, or text "
        "where a\n"
        "         number was asked for, when a file is read. An infinity is most often "
        "1 / 0 or\n"
        "         log(0), while data are prepared. One such value makes the loss, the "
        "gradients\n"
        "         and every weight NaN.\n"
        '  fix:   x, y = check_finite((x, np.arange(4)), policy="drop")\n'
        '         removes such rows, of x and y alike; policy="replace" writes '
        "value=0.0 or\n"
        '         value="mean" in their place.'
    )


def test_the_error_carries_plain_data():
    with pytest.raises(NumericsError) as caught:
        check_finite({"age": np.array([1.0, np.inf])})
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.findings == caught.value.findings
    finding = only(again.findings)
    assert (finding.kind, finding.element, finding.row) == ("+Inf", 1, None)
    assert (finding.index, finding.shape, finding.value) == ((1,), (2,), "inf")
    assert type(finding).from_dict(json.loads(json.dumps(finding.__dict__))) == finding


def test_the_rows_of_several_problems_are_in_order():
    x = np.array([1.0, 2.0, np.nan])
    with pytest.raises(NumericsError, match="1 further problem, see"):
        check_finite((x, np.array([0.0, np.inf, 1.0])))
    findings = report((x, np.array([0.0, np.inf, 1.0]))).findings
    assert [each.origin for each in findings] == ["`y`", "`x`"]


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [("float16", 65519.0), ("bfloat16", 3.39e38), ("float32", 3.4028235e38)],
)
def test_finite_numbers_beyond_the_dtype_are_found(dtype, largest):
    x = np.array([largest, -1.0])
    assert report(x, dtype=dtype).is_finite
    finding = only(report(x * 1.01, dtype=dtype).findings)
    assert finding.kind == f"Value beyond {dtype}"
    assert "becomes infinite" in finding.cause
    with pytest.warns(UserWarning, match="replaced 1 value"):
        mended = check_finite(x * 1.01, dtype=dtype, policy="replace", value="mean")
    np.testing.assert_array_equal(mended, [-1.01, -1.01])


def test_the_dtype_is_that_of_keras_policy():
    import keras

    x = np.array([70000.0])
    assert report(x).is_finite
    keras.config.set_dtype_policy("mixed_float16")
    try:
        assert "set_dtype_policy" in only(report(x).findings).suggestion
    finally:
        keras.config.set_dtype_policy("float32")
    assert "set_floatx" in only(report(x * 1e40).findings).suggestion
    assert report(x * 1e40, dtype="float64").is_finite


@pytest.mark.parametrize(
    ("dtype", "exact"),
    [("float16", 2**11), ("bfloat16", 2**8), ("float32", 2**24), ("float64", 2**53)],
)
def test_integers_that_the_dtype_rounds_are_a_remark(dtype, exact):
    ids = np.array([0, 1, exact, -exact], np.int64)
    assert not report(ids, dtype=dtype).notes
    found = report(ids + 1, dtype=dtype)
    assert found.is_finite
    note = only(found.notes)
    assert note.kind == f"Integers that {dtype} rounds"
    assert (note.count, note.value, str(exact) in note.cause) == (
        1, str(exact + 1), True,
    )  # fmt: skip
    assert check_finite(ids + 1, dtype=dtype) is not None


@pytest.mark.parametrize(
    "x",
    [
        np.full((5, 2), 3.3),
        np.full(5, True),
        np.full(5, 7, np.int64),
        # Different in float64, and the same in float32.
        np.array([1.7e9, 1.7e9 + 1]),
        np.array(["7", "7.0"]),
    ],
    ids=["floats", "booleans", "integers", "time stamps", "text"],
)
def test_constant_features_are_a_remark(x):
    found = report(x)
    assert found.is_finite
    note = next(each for each in found.notes if each.kind == "Constant values")
    assert "deviation is 0" in note.cause
    assert "tfsafe.layers.Normalization()" in note.suggested_code
    assert all(feature.is_constant for feature in found.features)
    # What it says is so.
    layer = tfsafe.layers.Normalization()
    layer.adapt(np.full((5, 2), 3.3))
    assert not layer(np.full((5, 2), 3.3)).numpy().any()


def test_one_row_is_not_constant_and_weights_may_be():
    assert not report(np.ones((1, 3))).notes
    assert not report((np.arange(3.0), np.arange(3), np.ones(3))).notes
    assert "nothing to learn" in only(report((np.arange(3), np.ones(3))).notes).cause


def test_columns_are_counted_one_by_one():
    x = np.ones((3, 4))
    x[:, :2] = [[1, 2], [3, 4], [5, 6]]
    note = only(report(x).notes)
    assert note.origin == "`x[:, 2]`"
    assert note.cause.startswith("in 2 of 4 columns (2, 3): every value is 1.")


def test_a_header_row_read_as_text_is_found():
    x = np.array([["age", "income"], ["31", "1e5"], ["47", "2e5"]])
    finding = only(report(x).findings)
    assert finding.kind == "Header row read as data"
    assert finding.element == 0
    assert "row 0 reads like a header: 'age', 'income'" in finding.cause
    assert "skip_header=1" in finding.suggestion
    with pytest.warns(UserWarning, match="dropped 1 of 3 rows"):
        assert check_finite(x, policy="drop").tolist() == x[1:].tolist()
    with pytest.raises(NumericsError, match="no number for this"):
        check_finite(x, policy="replace")


def test_a_header_row_of_a_frame_is_found_with_a_fix(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,city\n31,Bonn\n47,Jena\n")
    frame = pd.read_csv(path, header=None)
    finding = only(report(frame).findings)
    assert finding.kind == "Header row read as data"
    assert "'age'" in finding.cause
    assert "pd.read_csv(..., header=0)" in finding.suggestion
    assert report(pd.read_csv(path, header=0)).is_finite


def test_a_header_row_that_numpy_made_nan_is_found_with_a_fix(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,income\n31,1e5\n47,2e5\n")
    finding = only(report(np.genfromtxt(path, delimiter=",")).findings)
    assert finding.kind == "Header row read as data"
    assert "row 0 is NaN in every column" in finding.cause
    assert "np.genfromtxt(..., skip_header=1)" in finding.suggestion
    assert report(np.genfromtxt(path, delimiter=",", skip_header=1)).is_finite


def test_one_nan_in_row_0_is_a_nan_that_may_be_a_header():
    x = np.arange(10.0).reshape(5, 2)
    x[0, 1] = np.nan
    finding = only(report(x).findings)
    assert finding.kind == "NaN"
    assert "a header that is read as data" in finding.cause


def test_a_first_row_of_data_that_became_the_names_is_a_remark(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("5.1,5.1,2\n4.9,3.0,1\n5.0,3.2,7\n")
    note = report(pd.read_csv(path)).notes[0]
    assert note.kind == "Row of data read as header"
    assert "'5.1'" in note.cause
    assert note.suggestion == "read that row as data: pd.read_csv(..., header=None)."
    assert str(note).startswith("Row of data read as header.\n  why:")
    assert not report(pd.read_csv(path, header=None)).notes
    assert not report(pd.DataFrame({"a": [1.0, 2.0], "2": [1.0, 2.0]})).notes


@pytest.mark.parametrize("cell", ["oops", b"oops", datetime.date(2024, 1, 1)])
def test_text_among_numbers_is_found(cell):
    x = np.array([1.5, cell, 2, decimal.Decimal("3")], object)
    finding = only(report(x).findings)
    assert finding.kind == "Text among numbers"
    assert finding.element == 1
    frame = pd.DataFrame({"age": x})
    with pytest.raises(NumericsError) as caught:
        check_finite(frame)
    exec(only(caught.value.findings).suggested_code)
    assert frame["age"].isna().tolist() == [False, True, False, False]


@pytest.mark.parametrize("cell", ["", " N/A ", b"null", "?", "nan"])
def test_blanks_among_numbers_are_missing_values(cell):
    x = np.array(["1", "2.5", cell], object)
    finding = only(report(x).findings)
    assert (finding.kind, finding.element) == ("Missing value", 2)
    assert "becomes NaN" in finding.cause
    # What it says is so: neither of the two ways to read it as a number succeeds.
    assert pd.isna(pd.to_numeric(pd.Series([cell]), errors="coerce")[0])


@pytest.mark.parametrize("cell", [None, np.nan, pd.NA, pd.NaT])
def test_missing_cells_among_words_are_found_and_not_replaced(cell):
    x = np.array(["Bonn", cell, "Jena"], object)
    finding = only(report(x).findings)
    assert (finding.kind, finding.element) == ("Missing value", 1)
    with pytest.raises(NumericsError, match='policy="drop" removes the row'):
        check_finite(x, policy="replace")


def test_words_and_codes_are_no_numbers():
    words = np.array(["a", "b", "n/a", ""])
    codes = np.array(["101", "102", "103", "A7"])
    assert report({"word": words, "code": codes}).is_finite


def test_numbers_as_text_are_a_remark():
    note = only(report(np.array(["1", "2"])).notes)
    assert note.kind == "Numbers written as text"
    assert '.astype("float32")' in note.suggestion


def test_infinite_and_large_numbers_in_text_are_found():
    kinds = [each.kind for each in report(np.array(["1", "inf", "1e300"])).findings]
    assert kinds == ["+Inf", "Value beyond float32"]


@pytest.mark.parametrize(
    "x",
    [np.full(4, np.nan), np.array([None] * 4), np.array([""] * 4)],
    ids=["NaN", "None", "blank"],
)
def test_an_empty_feature_is_found(x):
    finding = only(report({"full": np.arange(4.0), "empty": x}).findings)
    assert finding.origin == '`x["empty"]`'
    assert finding.count == 4
    with pytest.raises(NumericsError, match="has no finite value"):
        check_finite(x, policy="replace", value="mean")


def test_an_empty_column_says_so():
    assert "an empty column" in only(report(np.full(4, np.nan)).findings).cause


def test_missing_times_are_found():
    times = np.array(["2024-01-01", "NaT"], "datetime64[s]")
    finding = only(report(times).findings)
    assert (finding.kind, finding.element) == ("NaT", 1)
    with pytest.warns(UserWarning, match="dropped 1"):
        assert len(check_finite(times, policy="drop")) == 1
    with pytest.raises(NumericsError, match="no number for this"):
        check_finite(times, policy="replace")
    frame = pd.DataFrame({"t": pd.to_datetime(["2024-01-01", None], utc=True)})
    assert only(report(frame).findings).element == 1


def test_labels_that_are_no_class_are_found():
    x, y = np.arange(4.0), np.array([0, 3, 2, -1])
    finding = only(report((x, y), num_classes=3).findings)
    assert (finding.kind, finding.count, finding.value) == (
        "Label out of range",
        2,
        "3",
    )
    assert report((x, y % 3), num_classes=3).is_finite
    assert not report((x, np.array([0.0, 0.5, 1.0, 2.0])), num_classes=3).is_finite
    with pytest.warns(UserWarning, match="dropped 2 of 4"):
        assert check_finite((x, y), policy="drop", num_classes=3)[1].tolist() == [0, 2]
    with pytest.raises(NumericsError, match="no number for this"):
        check_finite((x, y), policy="replace", num_classes=3)


@pytest.mark.parametrize(
    "data",
    [np.zeros((0, 3)), pd.DataFrame({"a": []}), tf.zeros((0,)), []],
    ids=["array", "frame", "tensor", "list"],
)
@pytest.mark.parametrize("policy", ["raise", "drop", "replace"])
def test_data_without_rows_are_found(data, policy):
    with pytest.raises(NumericsError, match="No rows"):
        check_finite(data, policy=policy)


def test_rows_without_values_are_a_remark():
    note = only(report(tf.ragged.constant([[1.0, 2.0], [], []])).notes)
    assert (note.kind, note.count, note.size) == ("Rows without values", 2, 3)


def test_booleans_integers_and_columns_of_no_width_are_accepted():
    data = {"a": np.array([True, False]), "b": np.array([1, 2]), "c": np.ones((2, 0))}
    assert check_finite(data) is data
    report(data).raise_if_bad()


def test_a_wide_report_shows_the_nonfinite_features_first():
    x = np.random.default_rng(0).normal(size=(3, 40))
    x[1, 33] = np.nan
    text = str(report(x))
    assert text.startswith("1 problem and no notes in 3 rows of 40 features.\n")
    assert text.splitlines()[3].split()[0:2] == ["x[:,", "33]"]
    assert "  and 20 more features\n" in text


def test_the_page_of_the_error_shows_the_finding(tmp_path):
    with pytest.raises(NumericsError) as caught:
        check_finite({"age": np.array([1.0, np.inf])})
    page = caught.value.to_html(tmp_path / "page.html")
    assert "+Inf in `x[&quot;age&quot;]`" in page or "x[" in page
