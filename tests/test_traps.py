"""Every row of the catalogue: the usual form fails, and ours is right."""

import importlib

import keras
import pytest

import tfsafe._report.catalogue
from tests.catalogue import __main__ as made, every_row
from tests.catalogue.exceptions import EXCEPTIONS

ROWS = every_row()


def _case(row, mode):
    return pytest.param(row, mode, id=f"{row.id}-{mode}")


@pytest.mark.parametrize(
    ("row", "mode"), [_case(row, mode) for row in ROWS for mode in row.modes]
)
def test_ours_is_right(row, mode):
    assert row.ours(mode)


# In the first of its modes, which is that without a compiler wherever there is one.
@pytest.mark.parametrize(
    ("row", "mode"), [_case(row, row.fails_in[0]) for row in ROWS if row.fails_in]
)
def test_the_usual_form_still_fails(row, mode):
    try:
        right = row.usual(mode)
    except Exception:
        # An error in one mode is a trap as well.
        right = False
    assert not right, f"{row.id} is right in TensorFlow or Keras by now: {row.trap}"


def test_every_identifier_occurs_once():
    identifiers = [row.id for row in ROWS]
    assert len(identifiers) == len(set(identifiers))


def test_every_row_is_fixed_by_a_public_name():
    unknown = []
    for row in ROWS:
        package, _, name = row.fixed_by.partition(".")
        if name not in importlib.import_module(f"tfsafe.{package}").__all__:
            unknown.append(row.id)
    assert not unknown


# Keras 3.3 lacks some of the classes, so that there are fewer rows.
with_every_row = pytest.mark.skipif(
    keras.__version__.startswith("3.3."), reason="some rows need a later Keras"
)


@with_every_row
def test_the_pages_made_from_the_catalogue_are_those_of_today():
    files = {"COVERAGE.md": made.page(), "tfsafe/_report/catalogue.py": made.module()}
    for path, text in files.items():
        old = (made.ROOT / path).read_text()
        assert old == text, f"{path} is outdated: run `python -m tests.catalogue`."


@with_every_row
def test_every_row_is_counted():
    counted = [
        each for traps in tfsafe._report.catalogue.TRAPS.values() for each in traps
    ]
    assert sorted(counted) == sorted(row.id for row in ROWS)


def test_few_rows_are_left_to_the_user():
    assert len(EXCEPTIONS) <= 15
    assert not EXCEPTIONS.keys() & {row.id for row in ROWS}
