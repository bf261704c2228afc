"""Every row of the catalogue: the usual form fails, and ours is right."""

import importlib
import pkgutil

import pytest

import tests.catalogue

AREAS = [
    importlib.import_module(f"tests.catalogue.{module.name}")
    for module in pkgutil.iter_modules(tests.catalogue.__path__)
]
ROWS = [row for area in AREAS for row in getattr(area, "ROWS", [])]


def _cases(attribute):
    return [
        pytest.param(row, mode, id=f"{row.id}-{mode}")
        for row in ROWS
        for mode in getattr(row, attribute)
    ]


@pytest.mark.parametrize(("row", "mode"), _cases("modes"))
def test_ours_is_right(row, mode):
    assert row.ours(mode)


@pytest.mark.parametrize(("row", "mode"), _cases("fails_in"))
def test_the_usual_form_still_fails(row, mode):
    try:
        right = row.usual(mode)
    except Exception:  # noqa: BLE001 - an error in one mode is a trap of its own.
        right = False
    assert not right, f"{row.id} is mended in TensorFlow or Keras: {row.trap}"


def test_every_row_stands_once():
    identifiers = [row.id for row in ROWS]
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_its_cure_is_a_public_name(row):
    package, _, name = row.cure.partition(".")
    assert name in importlib.import_module(f"tfsafe.{package}").__all__
