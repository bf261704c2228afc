"""The formulas of the catalogue, untouched, are right when they are stabilised."""

import pytest

from tests.catalogue import every_row
from tfsafe import stabilize

# The rows whose usual call is a formula of the user's own.
BY_HAND = """
    O01 O02 O03 O04 O05 O06 O07 O08 O09 O10 O11 O13 O14 O15 O16 O17 O18 O19 O20 O21 O22
    O40 O41 O42 O43 O44 O45 O46 O47 O48 O49 O50 O51
    O70a O70b O70c O70d O70e O70f O71a O71b O71c O72a O72b O72c O73a O73b O73c
    O74 O75 O76 O78 O79 O80a O80b O80c O81 O82 O140 O141
    L45 L81 L83 L84 L85 L86
"""
ROWS = {row.id: row for row in every_row()}


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
@pytest.mark.parametrize("id", BY_HAND.split())
def test_the_usual_form_is_right_when_stabilised(id, mode):
    row = ROWS[id]
    if mode in row.modes:
        assert row.wrapped(stabilize, mode)
