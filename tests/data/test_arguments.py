"""What is refused, and with which words."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tfsafe.data import check_finite

X = np.ones((3, 2))


@pytest.mark.parametrize(
    ("data", "options", "error", "match"),
    [
        (X, {"policy": "ignore"}, ValueError, "`policy` must be one of 'raise'"),
        (X, {"value": "median"}, TypeError, "`value` must be a number"),
        (X, {"value": np.nan}, ValueError, "`value` must be a finite number"),
        (X, {"value": 1e39}, ValueError, "`value` must fit the dtype"),
        (X, {"dtype": "int32"}, ValueError, "`dtype` must be the floating dtype"),
        (X, {"num_classes": 0}, ValueError, "`num_classes` must be at least 1"),
        (X, {"num_classes": 2.5}, TypeError, "`num_classes` must be an integer"),
        (X, {"num_classes": True}, TypeError, "`num_classes` must be an integer"),
        (X, {"num_classes": 3}, ValueError, "`num_classes` is for labels"),
        (X, {"batched": True}, ValueError, "`batched` is for the elements"),
        (3.0, {}, ValueError, "x=3.0, a scalar"),
        (object(), {}, TypeError, "Received: x of type object"),
        ({"a": X, "b": {1}}, {}, TypeError, r'Received: x\["b"\] of type set'),
        ([[1.0], [2.0, 3.0]], {}, TypeError, "2 rows of several lengths"),
        (np.array([[1.0], [2.0, 3.0]], object), {}, TypeError, "cell of type list"),
        ((X, np.ones(4)), {}, ValueError, "x: 3 rows, y: 4 rows"),
        (((1.0, 2.0), X), {}, ValueError, r"x\[0\]=1.0, a scalar"),
    ],
)
def test_wrong_arguments_are_refused_with_a_suggestion(data, options, error, match):
    with pytest.raises(error, match=match):
        check_finite(data, **options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.zeros(3),
        lambda: tf.ragged.constant([[1.0]]),
        lambda: tf.sparse.from_dense([[1.0]]),
    ],
    ids=["dense", "ragged", "sparse"],
)
def test_a_tensor_that_is_being_traced_has_no_values(make):
    @tf.function
    def step():
        return check_finite(make())

    with pytest.raises(TypeError, match=r"has none yet.*@tfsafe.checked"):
        step()


def test_the_parts_of_nested_data_are_named():
    Pair = collections.namedtuple("Pair", ["left", "right"])
    bad = np.array([np.nan])
    cases = {
        "`x`": bad,
        "`y`": (np.ones(1), bad),
        "`sample_weight`": (np.ones(1), None, bad),
        "`part_3`": (np.ones(1), np.ones(1), np.ones(1), bad),
        "`x.right`": Pair(np.ones(1), bad),
        '`x["a"][1]`': {"a": [np.ones(1), bad]},
        "`y[7][0]`": (np.ones(1), {7: (bad,)}),
    }
    for subject, data in cases.items():
        (finding,) = check_finite(data, policy="report").findings
        assert finding.origin == subject


def test_a_named_tuple_comes_back_as_one():
    Pair = collections.namedtuple("Pair", ["left", "right"])
    with pytest.warns(UserWarning, match="dropped"):
        pair = check_finite(
            Pair(np.array([1.0, np.nan]), np.array([1, 2])), policy="drop"
        )
    assert isinstance(pair, Pair)
    assert pair.right.tolist() == [1]
