"""The formulas of the catalogue, untouched, are right when they are stabilised."""

import pytest

from tests.catalogue import every_row
from tfsafe import stabilize

CASES = [
    pytest.param(row, mode, id=f"{row.id}-{mode}")
    for row in every_row()
    if row.is_by_hand
    for mode in row.modes
]


@pytest.mark.parametrize(("row", "mode"), CASES)
def test_the_usual_form_is_right_when_stabilised(row, mode):
    assert row.wrapped(stabilize, mode)
