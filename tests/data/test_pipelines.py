"""The check as a stage of a `tf.data` pipeline."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close
from tests.support.warned import ours
from tfsafe import NumericsError
from tfsafe.data import check_finite
from tfsafe.data.checks import pipeline, policies
from tfsafe.data.faults.explain import Origin
from tfsafe.data.faults.tally import Limits

BATCH = 4


def features(rows=10, bad=(6,), dtype="float32"):
    """Returns features and labels; row 6 has a NaN in column 1, others an infinity."""
    x = np.arange(rows * 3, dtype=dtype).reshape(rows, 3)
    for number, row in enumerate(bad):
        x[row, 1] = np.inf if number else np.nan
    return x, np.arange(rows)


def of(*parts, batch=BATCH, **options):
    dataset = tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])
    return dataset.batch(batch, **options) if batch else dataset


def drain(dataset):
    return [tf.nest.map_structure(lambda t: t.numpy(), each) for each in dataset]


def text_of(error):
    return error.value.message.partition("NumericsError: ")[2]


@pytest.mark.parametrize("policy", ["raise", "drop", "replace"])
@pytest.mark.parametrize("batch", [BATCH, None])
def test_finite_elements_flow_through_unchanged(policy, batch):
    dataset = of(*features(bad=()), batch=batch)
    checked = check_finite(dataset, policy=policy)
    assert checked.element_spec[0].dtype == tf.float32
    if policy != "drop":
        assert checked.element_spec == dataset.element_spec
        assert checked.cardinality() == dataset.cardinality()
    for got, expected in zip(drain(checked), drain(dataset), strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, got, expected)


def test_raise_names_row_batch_feature_and_value():
    dataset = of(*features())
    flowing = iter(check_finite(dataset))
    next(flowing)
    with pytest.raises(tf.errors.UnknownError) as caught:
        next(flowing)
    text = text_of(caught)
    assert text.startswith("NaN in `x[:, 1]`, first in row 6 (row 2 of batch 1).\n")
    assert "1 of 12 values, the first is nan at index (2, 1); float32" in text
    assert 'dataset = check_finite(dataset, policy="drop")' in text


def test_raise_names_the_element_of_an_unbatched_dataset():
    with pytest.raises(tf.errors.UnknownError) as caught:
        drain(check_finite(of(*features(), batch=None)))
    assert text_of(caught).startswith("NaN in `x[1]`, first in row 6.\n")


def test_raise_ends_a_fit_with_the_text():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(tf.errors.UnknownError, match="row 2 of batch 1"):
        model.fit(check_finite(of(*features())), verbose=0, shuffle=False)


def test_the_findings_can_be_had_before_the_training():
    report = check_finite(of(*features(bad=(6, 9))), policy="report")
    with pytest.raises(NumericsError, match="row 2 of batch 1") as caught:
        report.raise_if_bad()
    (finding,) = caught.value.findings
    assert (finding.element, finding.batch, finding.row) == (6, 1, 2)
    assert (finding.index, finding.shape) == ((2, 1), (4, 3))
    assert (finding.kind, finding.count, finding.size) == ("NaN and +Inf", 2, 30)
    assert report.rows == 10


def test_drop_hides_rows_and_batches_without_any():
    x, y = features(bad=(1, 4, 5, 6, 7))
    with pytest.warns(UserWarning, match="dropped") as told:
        batches = drain(check_finite(of({"a": x}, y, y * 0.1), policy="drop"))
    assert [labels.tolist() for _, labels, _ in batches] == [[0, 2, 3], [8, 9]]
    np.testing.assert_array_equal(batches[0][0]["a"], x[[0, 2, 3]])
    assert_close(batches[1][2], [0.8, 0.9])
    # At the first row, and when their number reaches the next powers of 2.
    assert [str(each.message).split(":")[0] for each in ours(told)] == [
        "check_finite dropped 1 row so far",
        "check_finite dropped 5 rows so far",
    ]


def test_drop_hides_elements():
    with pytest.warns(UserWarning, match="dropped 1 row so far"):
        kept = drain(check_finite(of(*features(), batch=None), policy="drop"))
    assert [int(label) for _, label in kept] == [0, 1, 2, 3, 4, 5, 7, 8, 9]


@pytest.mark.parametrize("batch", [BATCH, None])
@pytest.mark.parametrize("value", [-1.0, "mean"])
def test_replace_writes_numbers(batch, value):
    x, y = features(bad=(6, 9))
    flowing = check_finite(of(x, y, batch=batch), policy="replace", value=value)
    with pytest.warns(UserWarning, match=r"replaced values in \d rows? so far"):
        elements = drain(flowing)
    got = np.concatenate([part.reshape(-1, 3) for part, _ in elements])
    good = x[np.isfinite(x[:, 1]), 1].mean(dtype="f8")
    expected = np.where(np.isfinite(x), x, good if value == "mean" else value)
    assert_close(got, expected)


@pytest.mark.parametrize(("value", "expected"), [(5.0, 5 + 2j), ("mean", 2 + 2j)])
def test_the_nonfinite_part_of_a_complex_number_is_replaced(value, expected):
    x = np.array([1 + 1j, complex(np.nan, 2), 3 + 3j])
    with pytest.warns(UserWarning, match="replaced"):
        (got,) = drain(check_finite(of(x), policy="replace", value=value))
    with pytest.warns(UserWarning, match="replaced"):
        at_hand = check_finite(x, policy="replace", value=value)
    np.testing.assert_array_equal(got, [1 + 1j, expected, 3 + 3j])
    np.testing.assert_array_equal(got, at_hand)


def test_a_pass_restarts():
    checked = check_finite(of(*features()))
    for _ in range(2):
        with pytest.raises(tf.errors.UnknownError, match=r"row 6 \(row 2 of batch 1"):
            drain(checked)


def test_an_infinite_dataset_flows_and_is_not_read_to_its_end():
    endless = of(*features(bad=())).repeat()
    assert check_finite(endless).cardinality() == tf.data.INFINITE_CARDINALITY
    assert len(drain(check_finite(endless).take(7))) == 7
    assert check_finite(endless.take(7), policy="report").rows == 24
    for options in ({"policy": "report"}, {"policy": "replace", "value": "mean"}):
        with pytest.raises(ValueError, match="a dataset without end"):
            check_finite(endless, **options)


def test_a_dataset_of_unknown_size_and_shape_flows():
    def rows():
        yield from (np.array(row, "float32") for row in ([1, 2], [3], [np.nan, 4]))

    dataset = tf.data.Dataset.from_generator(
        rows, output_signature=tf.TensorSpec((None,), "float32")
    )
    unbatched = check_finite(dataset, batched=False, policy="report")
    assert unbatched.findings[0].element == 2
    assert unbatched.findings[0].origin == "`x`"
    with pytest.raises(tf.errors.UnknownError, match=r"row 3 \(row 0 of batch 2"):
        drain(check_finite(dataset))
    padded = dataset.padded_batch(2)
    report = check_finite(padded, policy="report")
    assert report.findings[0].index == (0, 0)
    assert [each.stats.name for each in report.features] == ["x"]
    unknown = tf.data.Dataset.from_generator(
        rows, output_signature=tf.TensorSpec(None, "float32")
    )
    with pytest.raises(tf.errors.UnknownError, match="first in row 2"):
        drain(check_finite(unknown))


def test_batches_of_fixed_size_are_elements_unless_specified():
    dataset = of(*features(), drop_remainder=True)
    with pytest.raises(
        tf.errors.UnknownError, match=r"`x\[..., 1\]`, first in row 1\."
    ):
        drain(check_finite(dataset))
    with pytest.raises(tf.errors.UnknownError, match=r"row 6 \(row 2 of batch 1"):
        drain(check_finite(dataset, batched=True))
    with pytest.warns(UserWarning, match="dropped"):
        kept = drain(check_finite(dataset, batched=True, policy="drop"))
    assert [len(labels) for _, labels in kept] == [4, 3]


def test_an_empty_dataset_is_found():
    dataset = of(*features()).take(0)
    assert drain(check_finite(dataset)) == []
    with pytest.raises(NumericsError, match="No rows"):
        check_finite(dataset, policy="report").raise_if_bad()


@pytest.mark.parametrize("policy", ["raise", "drop", "replace"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_every_floating_dtype_is_checked(policy, dtype):
    x = tf.cast([1.0, np.nan, 3.0], dtype)
    checked = check_finite(of(x), policy=policy)
    if policy == "raise":
        with pytest.raises(tf.errors.UnknownError, match="NaN in `x"):
            drain(checked)
        return
    with pytest.warns(UserWarning, match="1 row so far"):
        (got,) = drain(checked)
    assert got.dtype == tf.as_dtype(dtype).as_numpy_dtype
    expected = [1.0, 3.0] if policy == "drop" else [1.0, 0.0, 3.0]
    np.testing.assert_array_equal(got.astype("c8"), expected)


def test_what_has_no_nan_is_left_alone():
    parts = {
        "b": np.array([True, False]),
        "i": np.array([1, 2]),
        "s": np.array(["nan", "b"]),
    }
    assert len(drain(check_finite(of(parts), policy="drop"))) == 1
    assert check_finite(of(parts), policy="report").is_finite


def test_text_is_judged_by_the_report():
    lines = tf.data.Dataset.from_tensor_slices([[b"age"], [b"31"], [b"47"]]).batch(2)
    (finding,) = check_finite(lines, policy="report").findings
    assert finding.kind == "Header row read as data"
    assert finding.suggested_code == 'lines = check_finite(lines, policy="drop")'
    assert "tf.data.TextLineDataset(...).skip(1)" in finding.suggestion


def test_numbers_beyond_the_dtype_are_found():
    dataset = of(np.array([1.0, 1e39, 2.0]))
    with pytest.raises(tf.errors.UnknownError, match="Value beyond float32 in `x`"):
        drain(check_finite(dataset))
    assert len(drain(check_finite(dataset, dtype="float64"))) == 1
    half = of(tf.constant([1.0, 1e5], tf.bfloat16))
    with pytest.raises(tf.errors.UnknownError, match="Value beyond float16 in `x`"):
        drain(check_finite(half, dtype="float16"))


@pytest.mark.parametrize("labels", [[0, 3, 1], [0.0, 0.5, 1.0]])
def test_labels_are_checked(labels):
    dataset = of(np.ones(3), np.array(labels))
    with pytest.raises(tf.errors.UnknownError, match="Label out of range in `y`"):
        drain(check_finite(dataset, num_classes=3))
    with pytest.warns(UserWarning, match="Label out of range"):
        kept = drain(check_finite(dataset, num_classes=3, policy="drop"))
    assert kept[0][1].tolist() == [labels[0], labels[2]]
    with pytest.raises(tf.errors.UnknownError, match="has no number for this"):
        drain(check_finite(dataset, num_classes=3, policy="replace", value="mean"))
    with pytest.raises(ValueError, match="`num_classes` is for labels"):
        check_finite(of(np.ones(3)), num_classes=3)


RAGGED = tf.ragged.constant([[1.0], [], [2.0, np.nan], [3.0]])
DEEP = tf.ragged.constant([[[1.0], []], [], [[np.nan, 2.0]], [[3.0]]])
SPARSE = tf.SparseTensor([[0, 1], [2, 0], [3, 4]], [1.0, np.nan, 3.0], [4, 5])


@pytest.mark.parametrize("x", [RAGGED, DEEP, SPARSE], ids=["ragged", "deep", "sparse"])
def test_ragged_and_sparse_batches_are_checked(x):
    dataset = of(x, np.arange(4), batch=3)
    with pytest.raises(tf.errors.UnknownError, match=r"row 2 \(row 2 of batch 0"):
        drain(check_finite(dataset))
    with pytest.warns(UserWarning, match="dropped 1 row"):
        kept = list(check_finite(dataset, policy="drop"))
    assert [labels.numpy().tolist() for _, labels in kept] == [[0, 1], [3]]
    with pytest.warns(UserWarning, match="replaced"):
        mended = list(check_finite(dataset, policy="replace"))
    whole = tf.sparse.to_dense if x is SPARSE else lambda t: t.to_tensor(0.0)
    zeros = tf.where(tf.math.is_nan(whole(x)), 0.0, whole(x)).numpy()
    assert (whole(kept[0][0]).numpy() != 0).sum() == 1
    got = whole(mended[0][0]).numpy()
    np.testing.assert_array_equal(got, zeros[tuple(map(slice, got.shape))])
    assert check_finite(dataset, policy="report").findings[0].element == 2


@pytest.mark.parametrize("x", [RAGGED, SPARSE], ids=["ragged", "sparse"])
def test_ragged_and_sparse_elements_are_checked(x):
    dataset = of(x, batch=None)
    with pytest.raises(tf.errors.UnknownError, match="first in row 2"):
        list(check_finite(dataset, batched=False))
    assert check_finite(dataset, batched=False, policy="report").rows == 4


def test_a_header_among_the_first_elements_is_named():
    x = np.arange(8.0).reshape(4, 2)
    x[0] = np.nan
    with pytest.raises(tf.errors.UnknownError, match="Header row read as data"):
        drain(check_finite(of(x)))


def test_windows_are_refused_with_a_suggestion():
    with pytest.raises(TypeError, match="flat_map"):
        check_finite(of(np.ones(3), batch=None).window(2))


def test_a_none_among_the_parts_is_kept():
    dataset = (
        tf.data.Dataset
        .from_tensor_slices({"x": [1.0, np.nan]})
        .map(lambda d: (d["x"], None))
        .batch(2)
    )
    with pytest.warns(UserWarning, match="dropped"):
        (element,) = list(check_finite(dataset, policy="drop"))
    assert element[0].numpy().tolist() == [1.0]
    assert element[1] is None


def test_a_mirrored_strategy_takes_the_checked_dataset():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    distributed = strategy.experimental_distribute_dataset(
        check_finite(of(*features(bad=())))
    )
    assert sum(int(labels.shape[0]) for _, labels in distributed) == 10


@pytest.mark.parametrize("policy", ["raise", "drop", "replace"])
def test_what_a_pipeline_calls_reports_its_element(policy):
    # In a pipeline it runs in a thread of TensorFlow's, where no coverage is taken.
    x, y = features()
    chosen = policies.policy_of(policy, 0.0, Limits(np.dtype("float32")))
    stage = pipeline.Stage(of(x, y), chosen, None, Origin())
    element = [tf.constant(part[4:8]) for part in (x, y)]
    counts = [tf.constant(number, tf.int64) for number in (1, 4, 0, 1)]
    if policy == "raise":
        with pytest.raises(NumericsError, match="first in row 6"):
            stage._tell(*counts, *element)
        return
    with pytest.warns(UserWarning, match="1 row so far: NaN in `x"):
        stage._tell(*counts, *element)
    # The third is not told of.
    counts[2] += 2
    stage._tell(*counts, *element)
