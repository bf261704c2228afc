"""Names that TensorFlow, Keras and NumPy use lead to those of `tfsafe.ops`."""

import re

import pytest

from tfsafe import ops
from tfsafe.ops import _names


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("reduce_mean", "Use `tfsafe.ops.mean(x, axis)`."),
        ("reduce_std", "Use `tfsafe.ops.std(x, axis)`."),
        ("reduce_logsumexp", "Use `tfsafe.ops.logsumexp(x, axis)`."),
        ("clip_by_value", "Use `tfsafe.ops.clip(x, low, high)`."),
        ("divide_no_nan", "Use `tfsafe.ops.divide(x, y)`."),
        ("masked_mean", "Use `tfsafe.ops.mean(x, axis, mask=mask)`."),
        ("where", "two tensors, use `tf.where(condition, a, b)`."),
        ("softplus", "Use `tf.nn.softplus(x)`"),
        ("lgamma", "`tfsafe.ops.log_pochhammer(x, y)`"),
        ("logsumexpp", "Did you mean 'logsumexp'"),
        ("floordiv", "Use TensorFlow's own `tf.math.floordiv`."),
        ("eigh", "Use TensorFlow's own `tf.linalg.eigh`."),
    ],
)
def test_an_unknown_name_leads_to_what_there_is(name, hint):
    with pytest.raises(AttributeError, match=re.escape(hint)) as error:
        getattr(ops, name)
    assert f"module 'tfsafe.ops' has no attribute '{name}'." in str(error.value)


def test_a_name_that_nothing_knows_gets_no_hint():
    with pytest.raises(AttributeError, match=r"no attribute 'frobnicate'\.$"):
        _ = ops.frobnicate


def test_every_hint_names_a_public_op_and_answers_a_name_that_is_none():
    named = {call.partition("(")[0] for call in _names._OURS.values()}
    named |= set(re.findall(r"tfsafe\.ops\.(\w+)", " ".join(_names._NOTES.values())))
    assert named <= set(ops.__all__)
    assert not (set(_names._OURS) | set(_names._NOTES)) & set(ops.__all__)
