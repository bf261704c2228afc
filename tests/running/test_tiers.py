"""Tier one shows every value of every parameter, in the same cases each time."""

import pathlib
import re
import textwrap

from tests.running import __main__ as runner, tiers

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
    @pytest.mark.parametrize("number", range(4))
    def test_slow(number):
        pass

    def test_listed():
        pass

    @pytest.mark.parametrize("mode", ["eager", "graph"])
    def test_promised(mode):
        pass

    def test_plain():
        pass
"""


def test_tier_one_shows_each_value_once_up_to_a_limit(pytester, monkeypatch):
    pytester.makeini("[pytest]\nmarkers = slow: as in setup.cfg")
    path = pytester.makepyfile(textwrap.dedent(SOURCE))
    promised = {f"{path.name}::test_promised"}
    monkeypatch.setattr(tiers, "MOST", 5)
    monkeypatch.setattr(tiers, "SLOW", {f"{path.name}::test_listed"} | promised)
    monkeypatch.setattr(tiers, "PROMISES", promised)
    items, _ = pytester.inline_genitems()
    sample = tiers.first_tier(items)
    assert tiers.first_tier(items[::-1]) == sample
    one = [name.removeprefix(f"{path.name}::") for name in sample]
    assert "test_plain" in one
    assert not {"test_slow", "test_listed"} & set(one)
    assert sum(name.startswith("test_promised") for name in one) == 1
    modes = " ".join(name for name in one if name.startswith("test_modes"))
    assert all(each in modes for each in ("eager", "graph", "xla", "float16", "32"))
    assert modes.count("test_modes") < 6
    assert sum(name.startswith("test_long") for name in one) == tiers.MOST


def test_each_row_runs_in_one_mode_but_for_the_tests_of_names(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("row", range(9))
        @pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
        def test_rows(mode, row):
            pass

        @pytest.mark.parametrize("row", range(2))
        @pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
        def test_two_rows(mode, row):
            pass
        """
    )
    items, _ = pytester.inline_genitems()
    names = {item.nodeid for item in items}
    rows = {item.nodeid for item in tiers.suite(items) if "test_rows" in item.nodeid}
    assert {item.nodeid for item in tiers.suite(items)} - rows == {
        name for name in names if "test_two_rows" in name
    }
    numbers = sorted(int(re.search(r"\d+(?=-|\])", name)[0]) for name in rows)
    assert numbers == list(range(9))
    for mode in ("eager", "graph", "xla"):
        assert sum(mode in name for name in rows) == 3
    monkeypatch.setattr(tiers, "NAMES", {tiers.function_of(item) for item in items})
    assert {item.nodeid for item in tiers.suite(items)} == names


def test_the_parts_of_a_tier_are_all_of_it(pytester):
    pytester.makeini("[pytest]\nmarkers = slow: as in setup.cfg")
    pytester.makepyfile(textwrap.dedent(SOURCE))
    items, _ = pytester.inline_genitems()
    two, one = (tiers.chosen(items, tier) for tier in ("two", "one"))
    halves = [tiers.chosen(items, "two", part) for part in ("1/2", "2/2")]
    assert all(halves)
    assert not halves[0] & halves[1]
    assert halves[0] | halves[1] == two
    # Either has half of the slow cases, and of those of each test.
    for test in ("test_modes", "test_long", "test_slow"):
        sizes = [sum(test in name for name in half) for half in halves]
        assert abs(sizes[0] - sizes[1]) <= 1
    assert not one & two
    assert one | two == tiers.chosen(items, "all")


def test_the_lists_name_tests_that_exist():
    root = pathlib.Path(__file__).parent.parent.parent
    assert all((root / file).exists() for file in runner.FIRST)
    for name in tiers.SLOW | tiers.PROMISES | tiers.NAMES | tiers.WHOLE:
        file, *_, function = name.split("::")
        assert (root / file).exists(), f"{file} moved: python -m tests.running.slow"
        defined = re.search(rf"def {function}\(", (root / file).read_text())
        assert defined, f"{name} is gone: remove it from the lists of tests/running"
