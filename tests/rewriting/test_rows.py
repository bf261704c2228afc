"""The formulas of the catalogue, untouched, are right when they are stabilised."""

import pytest

from tests.catalogue import every_row
from tests.rewriting.emitting import in_modes
from tfsafe import stabilize

ROWS = {row.id: row for row in every_row() if row.is_by_hand}
CASES = [
    pytest.param(ROWS[name], mode, id=f"{name}-{mode}")
    for name, mode in in_modes(*ROWS)
]


@pytest.mark.parametrize(("row", "mode"), CASES)
def test_the_usual_form_is_right_when_stabilised(row, mode):
    assert row.wrapped(stabilize, mode)
