"""A finding on a label that is no class names the label, its row and what to write."""

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tfsafe import losses

X = tf.constant(np.random.default_rng(0).normal(size=(10, 10)).astype("float32"))
FROM_ONE = tf.constant(np.arange(1, 11))


def checked(loss, mode, **options):
    def run(y_true, y_pred):
        return loss(y_true, y_pred)

    compiled = tf.function(run, autograph=False, jit_compile=mode == "xla")
    return tfsafe.checked(compiled, **options)


@pytest.mark.parametrize("mode", ["graph", "xla"])
@pytest.mark.parametrize(
    "loss", [losses.SparseCategoricalCrossentropy, losses.StableCrossEntropy]
)
def test_a_check_names_label_row_and_range(loss, mode):
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(loss(from_logits=True), mode)(FROM_ONE, X)
    text = " ".join(str(caught.value).split())
    assert "a label value of 10 is outside the valid range of [0, 10)" in text
    assert "first in row 9 of the batch" in text
    assert "`y_true - 1`" in text


def test_without_any_known_class_the_label_is_named():
    with pytest.raises(tfsafe.NumericsError, match="a label value of -3 is outside"):
        checked(losses.SparseCategoricalCrossentropy(), "graph")(tf.fill([10], -3), X)


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
def test_an_ignored_label_is_no_finding(checks):
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=10)
    assert np.isfinite(checked(loss, "graph", checks=checks)(FROM_ONE, X))
