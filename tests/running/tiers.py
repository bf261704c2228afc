"""Chooses the cases of tier one, the sample that `make test` runs.

Tier one has every test function, and of its parametrised cases as many as it takes to
see each value of each parameter once, up to `MOST`: each dtype, each mode, rows of each
table, but not each of their combinations. `WHOLE` lists the tests that take the public
names through every mode and keep all cases; `NAMES` those that show each public name
once, however many there are. Tier two is the rest, with all that is marked `slow`. The
names of the cases decide which are chosen, so that the tiers are the same in each run
and on each machine.
"""

import collections
import hashlib
from typing import Any

import pytest

TIERS = ("one", "two", "all")
MOST = 5
WHOLE = {
    "tests/ops/test_all.py::test_an_empty_batch_has_an_empty_result_and_gradient",
}
NAMES = {
    "tests/test_traps.py::test_ours_is_right",
    "tests/layers/test_at_home_in_keras.py::test_every_layer_is_at_home_in_keras",
    "tests/layers/test_at_home_in_keras.py::test_so_is_every_sibling",
    "tests/losses/test_at_home_in_keras.py::test_every_loss_is_at_home_in_keras",
    "tests/metrics/test_every_metric.py::test_it_is_keras_metric_where_that_is_right",
}
# XLA takes up to a second to compile a case: one value in so many is run under XLA.
XLA_EVERY = 8


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=TIERS,
        default="all",
        help="one: the sample of `make test`; two: what it leaves out; all: both",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    tier = config.getoption("tier")
    if tier == "all":
        return
    sample = first_tier(items)
    kept = [item for item in items if (item.nodeid in sample) == (tier == "one")]
    left = [item for item in items if (item.nodeid in sample) != (tier == "one")]
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def first_tier(items: list[pytest.Item]) -> set[str]:
    """Returns the node ids of the cases in tier one."""
    seen: set[Any] = set()
    chosen: collections.Counter = collections.Counter()
    sample = set()
    for item in sorted(items, key=_rank):
        function = _function(item)
        values = _values(item)
        is_new = bool(values - seen) and (chosen[function] < MOST or function in NAMES)
        is_fast = item.get_closest_marker("slow") is None
        if is_fast and (is_new or function in WHOLE):
            seen |= values
            chosen[function] += 1
            sample.add(item.nodeid)
    return sample


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _values(item: pytest.Item) -> set[Any]:
    """Returns what a case may be the first to show: the value of each parameter."""
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec else {}
    return {
        (_function(item), name, _identity(value)) for name, value in params.items()
    } or {_function(item)}


def _identity(value: Any) -> Any:
    simple = isinstance(value, (str, bytes, int, float, complex, type(None)))
    return repr(value) if simple else id(value)


def _rank(item: pytest.Item) -> tuple[bool, str]:
    """Orders the cases by chance, those under XLA mostly behind the others."""
    digest = hashlib.sha256(item.nodeid.encode()).hexdigest()
    callspec = getattr(item, "callspec", None)
    is_xla = callspec is not None and "xla" in str(callspec.params.get("mode")).lower()
    return is_xla and int(digest, 16) % XLA_EVERY > 0, digest
