"""Tier one shows every value of every parameter, in the same cases each time."""

import textwrap

from tests.running import tiers

pytest_plugins = ["pytester"]

SOURCE = """
    import pytest

    @pytest.mark.parametrize("dtype", ["float16", "float32"])
    @pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
    def test_modes(mode, dtype):
        pass

    @pytest.mark.parametrize("number", range(100))
    def test_long(number):
        pass

    @pytest.mark.slow
    def test_slow():
        pass

    def test_plain():
        pass
"""


def test_tier_one_shows_each_value_once_up_to_a_limit(pytester):
    pytester.makeini("[pytest]\nmarkers = slow: as in setup.cfg")
    path = pytester.makepyfile(textwrap.dedent(SOURCE))
    items, _ = pytester.inline_genitems()
    sample = tiers.first_tier(items)
    assert tiers.first_tier(items[::-1]) == sample
    one = [name.removeprefix(f"{path.name}::") for name in sample]
    assert "test_plain" in one
    assert "test_slow" not in one
    modes = " ".join(name for name in one if name.startswith("test_modes"))
    assert all(each in modes for each in ("eager", "graph", "xla", "float16", "32"))
    assert modes.count("test_modes") < 6
    assert sum(name.startswith("test_long") for name in one) == tiers.MOST
