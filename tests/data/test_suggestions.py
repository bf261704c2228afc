"""Suggested code repairs the data that it was made for, in the user's own names."""

import warnings

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfsafe
from tfsafe.data import check_finite

NAN = np.nan
EMPTY = np.c_[np.arange(4.0), np.full(4, NAN)]
# Data under the name that their owner gave them, and what is left after the repair.
SCENES = {
    "a NaN": (np.array([1.0, NAN, 3.0]), [1, 3]),
    "an infinity": (np.array([[1.0, np.inf], [2.0, 3.0]]), [[2, 3]]),
    "an empty column": (EMPTY, [[0, 0], [1, 0], [2, 0], [3, 0]]),
    "one row": (np.array([[1.0, NAN]]), [[1, 0]]),
    "a fault in each row": (np.array([[1, NAN], [NAN, 2.0]]), [[1, 0], [0, 2]]),
    "a header": (
        np.array([["a", "b"], ["1", "2"], ["3", "4"]]),
        [["1", "2"], ["3", "4"]],
    ),
    "an empty cell": (pd.DataFrame({"a": [1.0, None], "b": [3.0, 4.0]}), [[1, 3]]),
    "empty cells": (pd.DataFrame({"a": [None] * 3}, dtype=object), [[0], [0], [0]]),
    "text": (np.array([1.0, "x", 3.0], object), [1, 3]),
    "a dataset": (
        tf.data.Dataset.from_tensor_slices([1.0, NAN, 3.0]).batch(3),
        [[1, 3]],
    ),
}


def rows_of(data):
    if isinstance(data, tf.data.Dataset):
        return [batch.numpy().tolist() for batch in data]
    return np.asarray(data).tolist()


@pytest.mark.parametrize("scene", SCENES)
def test_suggested_code_repairs_its_scene(scene):
    ages, repaired = SCENES[scene]
    finding = check_finite(ages, policy="report").findings[0]
    assert finding.suggested_code.startswith("ages = check_finite(ages, policy=")
    scope = {"ages": ages, "check_finite": check_finite}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        exec(finding.suggested_code, scope)
        assert rows_of(scope["ages"]) == repaired
        assert check_finite(scope["ages"], policy="report").is_finite


def test_the_suggested_call_keeps_names_targets_and_options():
    heights, weights = np.array([1.0, NAN]), np.array([0, 1])
    with pytest.raises(tfsafe.NumericsError) as caught:
        heights, weights = tfsafe.data.check_finite(
            (heights, weights),
            num_classes=2,
        )
    (finding,) = caught.value.findings
    assert finding.suggested_code == (
        "heights, weights = tfsafe.data.check_finite((heights, weights), "
        'policy="drop", num_classes=2)'
    )
    with pytest.warns(UserWarning, match="dropped 1 of 2 rows"):
        exec(finding.suggested_code)


def test_without_the_source_the_suggestion_is_in_words():
    scope = {"check_finite": check_finite, "values": np.array([1.0, NAN])}
    exec("report = check_finite(values, policy='report')", scope)
    (finding,) = scope["report"].findings
    assert not finding.suggested_code
    assert finding.suggestion.startswith('check_finite(..., policy="drop") removes')


@pytest.mark.parametrize("fault", [None, NAN, pd.NaT])
def test_words_that_are_all_missing_have_no_row_to_drop(fault):
    cities = np.array(["Bonn", fault], object)
    assert check_finite(cities, policy="report").findings[0].suggested_code
    missing = {"city": np.array([fault] * 4, object), "age": np.arange(4)}
    finding = check_finite(missing, policy="report").findings[0]
    assert "drop" not in finding.suggested_code


def test_a_finding_in_an_argument_names_what_the_caller_passed():
    @tfsafe.checked
    def double(x):
        return 2 * x

    prices = tf.constant([1.0, NAN])
    with pytest.raises(tfsafe.NumericsError) as caught:
        double(prices)
    code = caught.value.findings[0].suggested_code
    assert code == 'tfsafe.data.check_finite(prices, policy="report")'
    assert not eval(code).is_finite


def test_an_expression_is_computed_once_and_gets_a_name():
    finding = check_finite(np.array([1.0, NAN]), policy="report").findings[0]
    code = finding.suggested_code
    assert code == 'x = check_finite(np.array([1.0, NAN]), policy="drop")'
