"""The names of the package itself: loaded when used, and found when misspelled."""

import pytest

import tfsafe


def test_every_name_is_what_its_home_has():
    for name in tfsafe.__all__:
        value = getattr(tfsafe, name)
        if name in tfsafe._HOMES:
            assert value is getattr(
                getattr(tfsafe, tfsafe._HOMES[name], None), name, 0
            ) or (name == "coverage")
    assert set(tfsafe._HOMES) | set(tfsafe._PACKAGES) < set(tfsafe.__all__)
    assert dir(tfsafe) == sorted(tfsafe.__all__)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("SafeOptimiser", "Did you mean `tfsafe.SafeOptimizer`"),
        ("stabilise", "Did you mean `tfsafe.stabilize`"),
        ("LayerNormLSTM", "It is `tfsafe.layers.LayerNormLSTM`"),
        ("logsumexp", "It is `tfsafe.ops.logsumexp`"),
    ],
)
def test_an_unknown_name_is_answered_with_a_known_one(name, hint):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'.*{hint}"):
        getattr(tfsafe, name)


@pytest.mark.parametrize("name", ["zzzz", "__wrapped__", "_zzzz"])
def test_a_name_unlike_all_others_has_no_hint(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'.$"):
        getattr(tfsafe, name)
