"""Chooses the cases of the suite, and of tier one, the sample that `make test` runs.

Of a test with three parameters or more the suite has as many cases as it takes to see
each pair of values once: each op in each mode and in each dtype, each mode with each
dtype, but not each op in each mode and dtype at once. Parameters that one `parametrize`
names together, rows of a table, count as one. A row runs in one mode, by turns, and an
op in one mode for each dtype: what reads a graph, such as the rules of `stabilize`,
reads the same one in each mode, and a function that is wrong in one mode alone is seen
by one of its tests. `WHOLE` and `NAMES` take the public names through every mode.
Without `--tier`, pytest runs every case.

Tier one has every test function that is fast, and of its parametrised cases as many as
it takes to see each value of each parameter once, up to `MOST`: each dtype, each mode,
rows of each table, but not each of their combinations. `WHOLE` lists tests of the
public names that keep all cases; `NAMES` those that show each public name once, however
many there are. Tier two is the rest: with all that is marked `slow`, and the functions
that `slow.txt` lists because a case of them takes long (`python -m tests.running.slow`
measures and writes it). `PROMISES` are slow, and in tier one all the same, with one
case each. The names of the cases decide which are chosen, so that the tiers are the
same in each run and on each machine.
"""

import collections
import hashlib
import pathlib
from collections.abc import Hashable
from typing import Any

import pytest

from tests.support.pairwise import pairwise

TIERS = ("one", "two", "all")
MOST = 2
SLOW = frozenset(pathlib.Path(__file__).with_name("slow.txt").read_text().split())
WHOLE = {
    "tests/ops/test_all.py::test_an_empty_batch_has_an_empty_result_and_gradient",
}
NAMES = {
    "tests/test_traps.py::test_ours_is_right",
    "tests/layers/test_at_home_in_keras.py::test_every_layer_is_at_home_in_keras",
    "tests/layers/test_at_home_in_keras.py::test_so_is_every_sibling",
    "tests/losses/test_at_home_in_keras.py::test_every_loss_is_at_home_in_keras",
    "tests/losses/test_crossentropy.py::test_no_probability_costs_infinity_or_nan",
    "tests/metrics/test_every_metric.py::test_it_is_keras_metric_where_that_is_right",
}
PROMISES = {
    "tests/callbacks/test_commit.py::test_a_skipped_step_leaves_no_trace_bit_for_bit",
    "tests/callbacks/test_monitor_checks.py::test_a_finding_is_raised_and_leaves_the_"
    "model_as_before_the_step",
    "tests/callbacks/test_several_steps.py::test_the_third_of_eight_steps_is_named_and_"
    "not_committed",
    "tests/debugging/test_capsule.py::test_a_graph_of_a_stranger_reaches_nothing",
    "tests/debugging/test_matrix.py::test_the_first_nonfinite_operation_and_its_line_are_named",
    "tests/debugging/test_model.py::test_fit_raises_from_the_failing_batch_and_undoes_it",
    "tests/layers/test_recurrent.py::TestAgainstKerasLoop::test_masked",
    "tests/optimizers/test_fit.py::test_skipping_a_batch_is_training_without_it",
    "tests/rewriting/test_grammar.py::test_forty_formulas_of_families",
    "tests/rewriting/test_grammar.py::test_sixty_programs",
    "tests/rewriting/test_grammar.py::test_two_hundred_losses",
    "tests/rewriting/test_stabilize_keras.py::test_a_model_trains_where_the_naive_loss_"
    "destroys_it",
    "tests/rewriting/test_value_contract.py::test_ordinary_values_and_slopes_stay_and_"
    "a_nan_comes_out",
    "tests/test_compositions.py::test_fit",
    "tests/test_examples.py::test_a_constant_column_kills_the_model_behind_a_finite_"
    "loss",
    "tests/test_run.py::test_fit_of_a_script_nobody_edits_stops_at_the_nonfinite_batch",
    "tests/test_saving.py::test_a_file_loads_after_the_import_of_the_package_alone",
}
# XLA takes up to a second to compile a case: one value in so many is run under XLA.
XLA_EVERY = 8


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=TIERS,
        help="one: the sample of `make test`; two: what it leaves out; all: both",
    )
    parser.addoption(
        "--part",
        default="1/1",
        help="which of how many equal parts of the tier's cases to run, as in 2/3",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    kept = chosen(items, config.getoption("tier"), config.getoption("part"))
    config.hook.pytest_deselected(items=[it for it in items if it.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def chosen(items: list[pytest.Item], tier: str | None, part: str = "1/1") -> set[str]:
    """Returns the node ids of the cases in a part of a tier."""
    cases = suite(items) if tier else items
    sample = first_tier(cases) if tier in ("one", "two") else set()
    names = {item.nodeid for item in cases}
    in_tier = {"one": sample, "two": names - sample}.get(tier, names)
    return _part([item for item in cases if item.nodeid in in_tier], part)


def _part(items: list[pytest.Item], part: str) -> set[str]:
    """Returns the cases of a part: each has as many slow ones, and of each test."""
    number, parts = map(int, part.split("/"))
    ranked = sorted(
        items,
        key=lambda item: (not _is_slow(item), function_of(item), _number(item)),
    )
    # Which part is the larger one by a case differs from file to file.
    first = _number(ranked[0]) if ranked else 0
    return {
        item.nodeid
        for place, item in enumerate(ranked, first)
        if place % parts == number % parts
    }


def suite(items: list[pytest.Item]) -> list[pytest.Item]:
    """Returns the cases that show each pair of values, or each row in one mode."""
    by_function = collections.defaultdict(list)
    for item in sorted(items, key=_rank):
        by_function[function_of(item)].append(item)
    kept = set()
    for function, cases in by_function.items():
        combinations = [_factors(case) for case in cases]
        is_whole = function in WHOLE or len(combinations[0]) < 3
        if not is_whole:
            cases = [cases[i] for i in pairwise(combinations)]
        if function not in WHOLE | NAMES:
            cases = _in_turns(cases)
        kept |= {case.nodeid for case in cases}
    return [item for item in items if item.nodeid in kept]


def _in_turns(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Returns each row in the mode that the rows before it have least."""
    rows = collections.defaultdict(list)
    for case in sorted(cases, key=lambda case: case.nodeid):
        rows[frozenset(_values(case, but="mode"))].append(case)
    if len(rows) < len({_mode(case) for case in cases}):
        return cases
    used: collections.Counter = collections.Counter()
    chosen = []
    for row in rows.values():
        chosen.append(min(row, key=lambda case: used[_mode(case)]))
        used[_mode(chosen[-1])] += 1
    return chosen


def _params(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params) if callspec else {}


def _mode(item: pytest.Item) -> Any:
    return _params(item).get("mode")


def _factors(item: pytest.Item) -> list[Hashable]:
    """Returns what a case has of each parameter, or of those named together."""
    params = _params(item)
    factors = []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        if isinstance(names, str):
            names = [name.strip() for name in names.split(",")]
        factors.append(tuple(_identity(params.pop(name, None)) for name in names))
    return [*factors, *map(_identity, params.values())]


def first_tier(items: list[pytest.Item]) -> set[str]:
    """Returns the node ids of the cases in tier one."""
    seen: set[Any] = set()
    chosen: collections.Counter = collections.Counter()
    sample = set()
    for item in sorted(items, key=_rank):
        function = function_of(item)
        values = _values(item)
        most = 1 if function in PROMISES else MOST
        is_new = bool(values - seen) and (chosen[function] < most or function in NAMES)
        is_fast = function in NAMES | WHOLE | PROMISES or not _is_slow(item)
        if is_fast and (is_new or function in WHOLE):
            seen |= values
            chosen[function] += 1
            sample.add(item.nodeid)
    return sample


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None or function_of(item) in SLOW


def function_of(item: pytest.Item) -> str:
    """Returns the node id of the test without what tells its cases apart."""
    return item.nodeid.partition("[")[0]


def _values(item: pytest.Item, but: str = "") -> set[Any]:
    """Returns what a case may be the first to show: the value of each parameter."""
    return {
        (function_of(item), name, _identity(value))
        for name, value in _params(item).items()
        if name != but
    } or {function_of(item)}


def _identity(value: Any) -> Any:
    simple = isinstance(value, (str, bytes, int, float, complex, type(None)))
    return repr(value) if simple else id(value)


def _rank(item: pytest.Item) -> tuple[bool, int]:
    """Orders the cases by chance, those under XLA mostly behind the others."""
    is_xla = "xla" in str(_mode(item)).lower()
    number = _number(item)
    return is_xla and number % XLA_EVERY > 0, number


def _number(item: pytest.Item) -> int:
    """Returns a number drawn from the name of the case."""
    return int(hashlib.sha256(item.nodeid.encode()).hexdigest(), 16)
