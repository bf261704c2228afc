"""Every policy on every kind of container."""

import json

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests.data import containers
from tests.data.containers import BAD_ROW, CASES, MEAN, VALUES
from tests.support.oracle import assert_close
from tfsafe import NumericsError
from tfsafe.data import DataReport, check_finite

kinds = pytest.mark.parametrize("case", CASES, ids=str)


@kinds
@pytest.mark.parametrize("policy", ["raise", "drop", "replace"])
def test_finite_data_come_back_as_the_same_object(case, policy):
    data = case.make([1.0, 2.0, 4.0])
    assert check_finite(data, policy=policy) is data


@kinds
def test_the_row_the_feature_and_the_value_are_named(case):
    with pytest.raises(NumericsError) as caught:
        check_finite(case.make(VALUES))
    (finding,) = caught.value.findings
    assert finding.element == BAD_ROW
    assert finding.origin == f"`{case.path}`"
    assert finding.value.strip("'") in {"nan", "<NA>", "(nan+0j)"}
    assert finding.index[0] == BAD_ROW
    assert f"in `{case.path}`, first in row 1." in str(caught.value)
    assert 'policy="drop"' in str(caught.value)


@kinds
def test_a_report_counts_and_changes_nothing(case):
    data = case.make(VALUES)
    report = check_finite(data, policy="report")
    assert isinstance(report, DataReport)
    assert report.rows == 3
    (feature,) = [each for each in report.features if each.stats.name == case.path]
    stats = feature.stats
    assert stats.nans + feature.missing == stats.size // 3 or case.name == "ragged"
    assert (stats.min, stats.max) == (1.0, 7.0 if case.name == "ragged" else 4.0)
    assert feature.first_row == BAD_ROW
    assert not feature.is_constant
    assert not report.is_finite
    assert json.loads(json.dumps(report.as_dict(), allow_nan=False))["rows"] == 3
    np.testing.assert_array_equal(
        np.isnan(np.asarray(case.read(data), "f8")), [0, 1, 0]
    )


@kinds
def test_drop_hides_the_row_in_all_parts(case):
    y, weights = np.array([0, 1, 2]), np.array([0.1, 0.2, 0.3])
    data = (case.make(VALUES), y, weights)
    with pytest.warns(UserWarning, match="dropped 1 of 3 rows"):
        x, labels, kept = check_finite(data, policy="drop")
    assert type(x) is type(data[0])
    np.testing.assert_array_equal(np.asarray(case.read(x), "f8"), [1.0, 4.0])
    np.testing.assert_array_equal(labels, [0, 2])
    np.testing.assert_array_equal(kept, [0.1, 0.3])


@kinds
@pytest.mark.parametrize("value", [-1.5, "mean"])
def test_replace_writes_one_number(case, value):
    data = case.make(VALUES)
    with pytest.warns(UserWarning, match=r"replaced \d value"):
        x = check_finite(data, policy="replace", value=value)
    assert type(x) is type(data)
    assert x is not data
    mean = (1 + 7 + 7 + 7 + 4) / 5 if case.name == "ragged" else MEAN
    number = mean if value == "mean" else value
    found = np.asarray(case.read(x), "f8")
    assert_close(found, [1.0, number, 4.0], dtype="float32")
    # What came in is as it was.
    assert np.isnan(np.asarray(case.read(data), "f8")[BAD_ROW])


@kinds
def test_all_rows_are_never_dropped(case):
    data = case.make([np.nan] * 3)
    with pytest.raises(NumericsError, match="would drop all 3 rows"):
        check_finite(data, policy="drop")


def test_a_frame_keeps_its_index_and_its_other_columns():
    frame = containers.frame(VALUES)
    with pytest.warns(UserWarning, match="dropped"):
        kept = check_finite(frame, policy="drop")
    assert list(kept.index) == [7, 9]
    with pytest.warns(UserWarning, match="replaced"):
        mended = check_finite(frame, policy="replace")
    assert list(mended.index) == [7, 8, 9]
    assert mended["age"].tolist() == [1.0, 0.0, 4.0]
    assert mended["sex"] is not None
    assert mended.dtypes.equals(frame.dtypes)


def test_nests_keep_their_shape_and_their_none():
    data = ({"a": [np.ones(3), np.array(VALUES)]}, np.zeros(3), None)
    with pytest.warns(UserWarning, match="dropped"):
        x, y, weights = check_finite(data, policy="drop")
    assert list(x) == ["a"]
    assert [len(part) for part in x["a"]] == [2, 2]
    assert len(y) == 2
    assert weights is None


def test_ragged_rows_of_rank_three_are_counted_by_the_outer_row():
    x = tf.ragged.constant([[[1.0], []], [], [[2.0, 3.0], [4.0, np.inf]]])
    with pytest.raises(NumericsError) as caught:
        check_finite(x)
    assert caught.value.findings[0].element == 2
    assert caught.value.findings[0].index == (2, 1, 1)
    with pytest.warns(UserWarning, match="dropped 1 of 3"):
        assert check_finite(x, policy="drop").to_list() == [[[1.0], []], []]


def test_features_of_ragged_steps_have_columns():
    steps = np.ones((3, 2), "float32")
    steps[2, 1] = np.nan
    x = tf.RaggedTensor.from_row_splits(steps, [0, 1, 3])
    (finding,) = check_finite(x, policy="report").findings
    assert (finding.origin, finding.index) == ("`x[..., 1]`", (1, 1, 1))


def test_a_masked_batch_of_objects_keeps_its_dtype():
    x = np.array([[1, "n/a"], [2, 3.5], [None, 4]], object)
    with pytest.warns(UserWarning, match="replaced 2 values"):
        mended = check_finite(x, policy="replace", value="mean")
    assert mended.dtype == object
    assert mended.tolist() == [[1, 3.75], [2, 3.5], [1.5, 4]]


def test_long_arrays_are_read_in_chunks_and_not_copied():
    x = np.zeros((70_000, 7), "float32")
    x[69_999, 6] = np.inf
    x[40_000, 2] = -np.inf
    report = check_finite(x, policy="report")
    (finding,) = report.findings
    assert (finding.index, finding.element) == ((40_000, 2), 40_000)
    assert finding.kind == "+Inf and -Inf"
    assert finding.count == 2
    with pytest.warns(UserWarning, match="dropped 2 of 70000"):
        assert check_finite(x, policy="drop").shape == (69_998, 7)
    with pytest.warns(UserWarning, match="replaced 2"):
        assert not check_finite(x, policy="replace").any()


def test_statistics_agree_with_numpy():
    x = np.random.default_rng(0).normal(size=(70_001, 5)).astype("float32")
    x[7, 3] = np.nan
    for array in (x, np.asfortranarray(x)):
        features = check_finite(array, policy="report").features
        stats = [each.stats for each in features]
        figures = [(each.min, each.max, each.mean) for each in stats]
        wide = x.astype("f8")
        expected = [np.nanmin(wide, 0), np.nanmax(wide, 0), np.nanmean(wide, 0)]
        assert_close(figures, np.transpose(expected))


def test_what_has_an_array_interface_is_read_as_one():
    class Foreign:
        shape = (3,)

        def __array__(self, dtype=None, copy=None):
            return np.array(VALUES, dtype)

    for data in (keras.Variable(VALUES), Foreign()):
        with pytest.raises(NumericsError, match="first in row 1"):
            check_finite(data)
    with pytest.raises(NumericsError, match="first in row 1"):
        check_finite(tf.Variable(VALUES))


@pytest.mark.parametrize("dtype", ["string", "category", "Int64"])
def test_every_dtype_of_pandas_is_read_and_replaced(dtype):
    words = dtype in {"string", "category"}
    series = pd.Series(["1", None, "4"] if words else [1, None, 4], dtype=dtype)
    with pytest.warns(UserWarning, match="replaced 1 value"):
        mended = check_finite(series, policy="replace", value="mean")
    assert float(mended[1]) in {2.0, 2.5}
    with pytest.warns(UserWarning, match="dropped 1"):
        assert list(check_finite(series, policy="drop").index) == [0, 2]
    good = series[[0, 2]]
    assert check_finite(good) is good
