"""The matrix of the numeric checks: ways in x places x failures.

Each pair of a way, a run, a place and a failure is in a cell. In every cell the right
operation and the right line of the user's, and the weights as before; `EXCEPTIONS`
lists the cases where it is not so, and why.
"""

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import tfsafe
from tests.everywhere import faults, models, places, runs, ways
from tests.everywhere.faults import FAULTS, HEALTHY
from tests.support import forks
from tests.support.pairwise import pairwise
from tfsafe.errors import Finding

# (run, failure): the reason.
EXCEPTIONS = {
    ("loaded", name): "A SavedModel has no source lines; the operation is named."
    for name in ("forward_nan", "forward_inf", "backward_nan", "update_nan")
}
SWITCHED_ON = {"check_numerics", "enable_check_numerics"}
EXCEPTIONS["eager", "input_nan"] = (
    "Where the checks are switched on for a whole program, eager code has no call "
    "whose arguments have names; the value is told to be from outside."
)


def function_cells() -> list[Any]:
    cells = [
        (way, run, place, fault)
        for run in runs.RUNS
        for way in ways.FUNCTIONS
        for place in places.PLACES
        for fault in FAULTS
        # `enable_check_numerics` and its block are one switch.
        if way != "enable_check_numerics" or place == "plain"
    ]
    cells += [
        (way, run, "plain", fault)
        for way in ways.FUNCTIONS
        for run in runs.OTHER_RUNS
        for fault in FAULTS
    ]
    # XLA takes up to a second a cell: one of each failure is enough for tier one.
    return [
        _param(cell, is_slow=cell[1] == "xla" and cell[:3:2] != ("checked", "plain"))
        for cell in _in_pairs(cells)
    ]


def model_cells() -> list[Any]:
    cells = [
        (way, place, fault)
        for way in ways.MODELS
        for place in models.PLACES
        for fault in FAULTS
        if models.PLACES[place].is_training or not FAULTS[fault].is_in_training
        if way != "enable_check_numerics" or place == "fit"
    ]
    return [
        _param(
            cell,
            is_slow=("xla" in cell[1] and cell[:2] != ("NumericsMonitor", "fit_xla"))
            or (cell[0] != "NumericsMonitor" and cell[1] != "fit"),
        )
        for cell in _in_pairs(cells)
    ]


def _in_pairs(cells: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [cells[i] for i in pairwise(cells)]


def _param(cell: tuple[str, ...], *, is_slow: bool) -> Any:
    marks = [pytest.mark.slow] if is_slow else []
    return pytest.param(*cell, id="-".join(cell), marks=marks)


@pytest.mark.parametrize(("way", "run", "place", "fault"), function_cells())
def test_a_failing_function_is_explained(way, run, place, fault):
    given = FAULTS[fault]
    program = places.Program(places.PLACES[place], given)
    how = {**runs.RUNS, **runs.OTHER_RUNS}[run]
    function = how(ways.FUNCTIONS[way], program)
    with pytest.raises(tfsafe.NumericsError) as caught:
        function(faults.batch(given))
    finding = caught.value.findings[0]
    if way in SWITCHED_ON and (run, fault) == ("eager", "input_nan"):
        assert (finding.op_type, finding.index) == ("", (1, 2))
        assert finding.origin
    elif run == "loaded" and (run, fault) in EXCEPTIONS:
        assert finding.op_type == given.op
    else:
        faults.assert_is(finding, given)
    if way == "checked" or run != "eager":
        assert program.weight.numpy().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("way", ["checked", "check_numerics"])
@pytest.mark.parametrize("run", ["eager", "graph"])
@pytest.mark.parametrize("place", places.PLACES)
def test_a_function_that_is_well_is_let_through(way, run, place):
    program = places.Program(places.PLACES[place], HEALTHY)
    function = runs.RUNS[run](ways.FUNCTIONS[way], program)
    assert np.isfinite(function(faults.batch(HEALTHY)))
    assert np.isfinite(program.weight).all()


@pytest.mark.parametrize(("way", "place", "fault"), model_cells())
def test_a_failing_model_is_explained(way, place, fault):
    given, where = FAULTS[fault], models.PLACES[place]
    model = models.model_of(where, given)
    with pytest.raises(tfsafe.NumericsError) as caught:
        ways.MODELS[way](model, where, given)
    faults.assert_is(caught.value.findings[0], given)
    (scale,) = model.get_weights()
    assert scale.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("way", ["NumericsMonitor"])
@pytest.mark.parametrize("place", [name for name in models.PLACES if "xla" not in name])
def test_a_model_that_is_well_is_let_through(way, place):
    where = models.PLACES[place]
    model = models.model_of(where, HEALTHY)
    ways.MODELS[way](model, where, HEALTHY)
    assert np.isfinite(model.get_weights()[0]).all()


def printed_by(*arguments: str) -> dict[str, Any]:
    """Runs `python -m` in a process of its own; returns the JSON that it prints."""
    root = pathlib.Path(__file__).parent.parent
    done = forks.run("-m", *arguments, cwd=root)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


# One process for all failures of a way.
@pytest.mark.slow
@pytest.mark.parametrize(
    # `enable_check_numerics` and its block are one switch.
    "way",
    [way for way in ways.MODELS if way != "enable_check_numerics"],
)
def test_failing_models_on_two_replicas_are_explained(way):
    """Under a `MirroredStrategy` on two logical CPUs."""
    cells = printed_by("tests.everywhere.replicas", way)
    healthy = cells.pop("healthy")
    assert healthy["finding"] is None
    assert healthy["scale"][0] != [1.0, 1.0, 1.0]
    assert cells.keys() == FAULTS.keys()
    for fault, cell in cells.items():
        finding = Finding.from_dict(cell["finding"])
        if fault == "input_nan":
            assert finding.origin == "argument `x (replica 1)`"
            # Each replica has one of the two rows; the index is within its part.
            assert (finding.index, finding.row) == ((0, 2), 1)
        else:
            faults.assert_is(finding, FAULTS[fault])
        assert cell["scale"] == [[1.0, 1.0, 1.0]] * 2, fault


@pytest.mark.slow
def test_failing_scripts_are_explained():
    found = printed_by("tfsafe", "run", "-m", "tests.everywhere.script")
    for program in ("fit", "graph", "eager"):
        assert found.pop(f"{program}/healthy") is None
    assert len(found) == 3 * len(FAULTS)
    for name, given in found.items():
        program, fault = name.split("/")
        finding = Finding.from_dict(given)
        if (program, fault) in EXCEPTIONS:
            assert (finding.op_type, finding.index) == ("", (1, 2)), name
        else:
            faults.assert_is(finding, FAULTS[fault])


def test_there_are_at_most_five_exceptions():
    assert len(EXCEPTIONS) <= 5
    assert all(EXCEPTIONS.values())
