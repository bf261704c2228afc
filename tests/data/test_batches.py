"""Batches that Python makes."""

import keras
import numpy as np
import pytest

from tests.support.oracle import assert_close
from tfsafe import NumericsError
from tfsafe.data import check_finite

X = np.arange(20.0).reshape(10, 2)
X[6, 1] = np.nan
Y = np.arange(10)


class Batches(keras.utils.PyDataset):
    def __init__(self, x=X, **options):
        super().__init__(**options)
        self.x, self.epochs = x, 0

    def __len__(self):
        return 3

    def __getitem__(self, index):
        rows = slice(4 * index, 4 * index + 4)
        return self.x[rows], Y[rows]

    def on_epoch_end(self):
        self.epochs += 1


def generated(x=X):
    yield from (Batches(x)[index] for index in range(3))


@pytest.fixture(params=["dataset", "generator"])
def make(request):
    return Batches if request.param == "dataset" else generated


def taken(batches):
    if isinstance(batches, keras.utils.PyDataset):
        return [batches[index] for index in range(len(batches))]
    return list(batches)


def test_raise_names_the_row_of_the_batch(make):
    with pytest.raises(NumericsError, match="row 2 of batch 1") as caught:
        taken(check_finite(make()))
    (finding,) = caught.value.findings
    assert (finding.batch, finding.row, finding.index) == (1, 2, (2, 1))
    # Batches of a PyDataset are asked for in any order.
    assert finding.element == (None if make is Batches else 6)


def test_drop_and_replace_give_a_finite_batch(make):
    with pytest.warns(UserWarning, match="dropped 1 of 4 rows"):
        kept = taken(check_finite(make(), policy="drop"))
    assert [len(labels) for _, labels in kept] == [4, 3, 2]
    with pytest.warns(UserWarning, match="replaced 1 value"):
        mended = taken(check_finite(make(), policy="replace", value=5.0))
    assert mended[1][0][2, 1] == 5.0


def test_report_counts_over_all_batches(make):
    report = check_finite(make(), policy="report")
    assert report.rows == 10
    (finding,) = report.findings
    assert (finding.element, finding.batch, finding.row) == (6, 1, 2)
    assert_close(
        report.features[1].stats.mean, float(np.nanmean(X[:, 1])), dtype=X.dtype
    )


def test_a_mean_needs_data_that_can_be_read_twice(make):
    with pytest.raises(ValueError, match='value="mean" needs a dataset'):
        check_finite(make(), policy="replace", value="mean")


def test_a_batch_of_which_nothing_is_left_is_skipped_by_a_generator():
    x = X.copy()
    x[4:8, 0] = np.inf
    with pytest.warns(UserWarning, match="dropped all 4 rows of batch 1"):
        kept = list(check_finite(generated(x), policy="drop"))
    assert [labels.tolist() for _, labels in kept] == [[0, 1, 2, 3], [8, 9]]
    with pytest.raises(NumericsError, match="would drop all 4 rows"):
        check_finite(Batches(x), policy="drop")[1]


def test_batches_of_other_widths_are_counted_as_one_feature():
    def steps():
        yield np.array([[1.0, 2.0], [np.nan, 2.5]])
        yield np.array([[3.0, np.inf, 5.0]])
        yield np.array([[7.0], [np.nan]])

    report = check_finite(steps(), policy="report")
    (feature,) = report.features
    stats = feature.stats
    assert (stats.name, stats.size, stats.posinfs, stats.nans) == ("x", 9, 1, 2)
    assert (stats.min, stats.max) == (1.0, 7.0)
    assert report.findings[0].element == 1


def test_a_pydataset_trains_and_is_reported_of_epochs():
    data = Batches(np.nan_to_num(X), workers=1, max_queue_size=3)
    checked = check_finite(data)
    assert (checked.workers, checked.max_queue_size) == (1, 3)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(checked, epochs=2, verbose=0)
    plain = Batches(np.nan_to_num(X))
    model.fit(plain, epochs=2, verbose=0)
    assert data.epochs == plain.epochs >= 2
