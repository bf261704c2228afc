"""Bad arguments are refused with what to do."""

import math

import keras
import numpy as np
import pytest

import tfsafe
from tfsafe.optimizers import SafeOptimizer


@pytest.mark.parametrize(
    "inner", [None, 3, object(), "adm", keras.optimizers.Adam, {"class_name": "adm"}]
)
def test_what_is_no_optimizer_is_refused(inner):
    with pytest.raises(ValueError, match="must be a Keras optimizer: an instance such"):
        SafeOptimizer(inner)


@pytest.mark.parametrize(
    "inner", ["adam", keras.optimizers.Adam(), {"class_name": "Adam", "config": {}}]
)
def test_an_optimizer_is_taken_as_keras_takes_it(inner):
    assert isinstance(SafeOptimizer(inner).inner_optimizer, keras.optimizers.Adam)


@pytest.mark.parametrize("name", ["rmsprop", "RMSprop"])
def test_a_name_means_the_optimizer_that_tfsafe_has_fixed(name):
    assert type(SafeOptimizer(name).inner_optimizer) is tfsafe.optimizers.RMSprop
    # An optimizer is taken as it is.
    inner = keras.optimizers.RMSprop()
    assert SafeOptimizer(inner).inner_optimizer is inner


def test_every_name_of_tfsafe_that_keras_takes_refers_to_it():
    wrappers = {"SafeOptimizer", "LossScaleOptimizer"}
    for name in set(tfsafe.optimizers.__all__) - wrappers:
        own = getattr(tfsafe.optimizers, name)
        assert type(SafeOptimizer(name).inner_optimizer) is own


def test_wrapping_twice_is_refused():
    inner = SafeOptimizer("adam", name="guard")
    with pytest.raises(ValueError, match=r"SafeOptimizer already.*'guard'.*that one"):
        SafeOptimizer(inner)


def test_wrapping_a_loss_scale_optimizer_is_refused_with_the_right_order():
    inner = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam())
    with pytest.raises(ValueError, match=r"`LossScaleOptimizer\(SafeOptimizer\("):
        SafeOptimizer(inner)


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="`policy` must be one of 'replace', 'zero"):
        SafeOptimizer("adam", "ignore")


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), "1e15", True, [1.0]])
def test_a_limit_that_is_no_positive_number_is_refused(limit):
    with pytest.raises(ValueError, match="`limit` must be a positive number"):
        SafeOptimizer("adam", limit=limit)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        *(("limit", each, float) for each in (1, 1e3, np.float32(1e3), math.inf)),
        ("outlier_threshold", np.float32(0.5), float),
        ("max_consecutive", np.int64(1), int),
        ("outlier_patience", np.int64(1), int),
    ],
)
def test_an_argument_is_kept_as_a_python_number(name, value, kind):
    kept = getattr(SafeOptimizer("adam", **{name: value}), name)
    assert type(kept) is kind
    assert kept == value


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3"])
def test_a_bound_that_is_no_positive_integer_is_refused(count):
    with pytest.raises(ValueError, match="`max_consecutive` must be a positive int"):
        SafeOptimizer("adam", max_consecutive=count)


def test_the_other_arguments_are_by_keyword():
    with pytest.raises(TypeError, match="positional"):
        SafeOptimizer("adam", "skip", 1e3)


@pytest.mark.parametrize("name", ["clipnorm", "global_clipnorm"])
@pytest.mark.parametrize("value", [0, -1.0, math.inf, float("nan"), "1", True])
def test_a_norm_to_clip_to_that_is_no_positive_number_is_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be a positive finite number"):
        SafeOptimizer("adam", **{name: value})


def test_clipping_in_two_ways_is_refused():
    with pytest.raises(ValueError, match="Only one of `clipnorm` and `global_clip"):
        SafeOptimizer("adam", clipnorm=1.0, global_clipnorm=1.0)


@pytest.mark.parametrize("name", ["clipnorm", "global_clipnorm", "clipvalue"])
def test_clipping_twice_is_refused(name):
    inner = keras.optimizers.Adam(**{name: 2.0})
    with pytest.raises(ValueError, match=f"{name}=2.0. Leave `{name}` out of the inn"):
        SafeOptimizer(inner, clipnorm=1.0)
