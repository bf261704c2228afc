"""`tfsafe.coverage()` prints what is tfsafe's and counts what is Keras'."""

import re
import types

import keras
import pytest

import tfsafe
from tfsafe import _catalogue, _coverage, layers, losses, metrics, ops, regularizers


@pytest.fixture(scope="module")
def table():
    lines = []
    assert tfsafe.coverage(print_fn=lines.append) is None
    return lines


def test_it_prints_by_default(capsys):
    assert tfsafe.coverage() is None
    assert "StableCrossEntropy" in capsys.readouterr().out


def test_it_fits_a_terminal(table):
    assert max(map(len, table)) <= 88


def test_every_own_name_stands_there_with_its_purpose(table):
    text = "\n".join(table)
    for module in (losses, layers, metrics, ops, regularizers):
        for name in module.__all__:
            assert re.search(rf"^  (new |safe)  {name} +\S", text, re.MULTILINE), name
    for namespace in ("losses", "layers", "metrics", "optimizers", "callbacks", "ops"):
        assert f"tfsafe.{namespace}: " in text


def test_it_counts_the_names_that_are_keras_own_object(table):
    theirs = {name for name in dir(keras.losses) if not name.startswith("_")}
    safe = theirs & set(losses.__all__)
    assert table[0] == (
        f"tfsafe.losses: {len(losses.__all__) - len(safe)} new, {len(safe)} made safe, "
        f"{len(theirs - safe)} are Keras' own"
    )


def test_it_counts_the_traps_that_are_fixed(table):
    assert "[O122 O123]" in " ".join(" ".join(table).split())
    counted = sum(len(each.split()) for each in _catalogue.FIXES.values())
    assert counted > 200
    assert table[-1].startswith(f"{counted} measured traps are fixed by ")


def test_a_keras_name_that_is_tfsafes_class_counts_as_made_safe(monkeypatch):
    class Dense:
        """Mends what Keras has."""

    fake = types.ModuleType("tfsafe.layers")
    fake.__all__ = ["Dense"]
    fake.Dense, fake.Flatten = Dense, keras.layers.Flatten
    monkeypatch.setattr(
        _coverage.importlib,
        "import_module",
        {"tfsafe.layers": fake, "keras.layers": keras.layers}.__getitem__,
    )
    assert _coverage._table("layers") == [
        "tfsafe.layers: 0 new, 1 made safe, 1 are Keras' own",
        "  safe  Dense  Mends what Keras has.",
        "",
    ]
