"""Losses that people copy fail as they stand, and are right when stabilised."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.public_losses import LOSSES
from tests.support import contrast, modes
from tests.support.oracle import ulp_error
from tfsafe import stabilize

MODES = ["eager", "graph", "xla"]


def _is_right(loss, function, mode):
    args = [tf.constant(arg, tf.float32) for arg in loss.args]
    with contrast.without_grappler():
        value, slopes = modes.value_and_gradients(function, args, mode)
    args = [tf.cast(arg, tf.float64) for arg in args]
    right, right_slopes = modes.value_and_gradients(loss.exact, args, "eager")
    pairs = zip([value, *slopes], [right, *right_slopes], strict=True)
    return all(
        ulp_error(got, exact, scale=np.abs(exact).max()) <= 16 for got, exact in pairs
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.project)
def test_without_a_fix_it_fails(loss, mode):
    assert not _is_right(loss, loss.naive, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.project)
def test_stabilised_it_is_right(loss, mode):
    assert _is_right(loss, stabilize(loss.naive), mode)
