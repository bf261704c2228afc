"""`tfsafe.coverage()` prints what is tfsafe's and counts what is Keras'."""

import re
import types

import keras
import pytest

import tfsafe
from tfsafe import _coverage, layers, losses, metrics, ops, regularizers
from tfsafe._report import catalogue


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


def test_every_own_name_is_listed_with_its_purpose(table):
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
    counted = sum(map(len, catalogue.TRAPS.values()))
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


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        ("layers.Softmax", [("keras.layers.Softmax", "plain")]),
        ("tfsafe.layers.Softmax", [("tfsafe.layers.Softmax", "safe")]),
        (keras.losses.MeanSquaredError, [("keras.losses.MeanSquaredError", "plain")]),
        (keras.layers.Dense, [("keras.layers.Dense", "other")]),
        (keras.layers.Dense(2), [("keras.layers.Dense", "other")]),
        (losses.MeanSquaredError(), [("tfsafe.losses.MeanSquaredError", "safe")]),
        (losses.StableCrossEntropy, [("tfsafe.losses.StableCrossEntropy", "new")]),
        (ops.log, [("tfsafe.ops.log", "new")]),
        ("Poisson", [
            ("keras.losses.Poisson", "plain", "tfsafe.losses.Poisson"),
            ("keras.metrics.Poisson", "plain", "tfsafe.metrics.Poisson"),
        ]),
        ("o42", [("tfsafe.ops.divide", "new")]),
        ("mse", [
            ('"mse"', "string", "tfsafe.losses.MeanSquaredError"),
            ('"mse"', "string", "tfsafe.metrics.MeanSquaredError"),
        ]),
    ],
)  # fmt: skip
def test_a_name_or_an_object_is_looked_up(thing, expected):
    found = tfsafe.coverage(thing).parts
    rows = [(part.name, part.status, part.safe) for part in found]
    assert [row[: len(want)] for row, want in zip(rows, expected, strict=True)] == (
        expected
    )


def test_the_traps_of_a_name_are_listed():
    text = " ".join(str(tfsafe.coverage("losses.MeanSquaredError")).split())
    assert "fixes L70: keras.losses.MeanSquaredError, a NaN target with weight" in text
    model = keras.Sequential([keras.layers.BatchNormalization()])
    assert "fixes" not in str(tfsafe.coverage(model))


def test_a_package_is_listed_and_an_unknown_name_refused_with_what_was_meant():
    found = tfsafe.coverage("regularizers")
    assert repr(found).startswith("tfsafe.regularizers.OrthogonalRegularizer (safe): ")
    assert len(tfsafe.coverage("losses").parts) == len(losses.__all__)
    with pytest.raises(
        ValueError, match=r"Received: 'Sofmax'\. Did you mean 'Softmax'"
    ):
        tfsafe.coverage("Sofmax")


def test_a_model_is_counted_and_its_strings_named():
    inner = keras.Sequential([keras.layers.Dropout(0.5)])
    model = keras.Sequential([
        keras.Input((3,)), keras.layers.Dense(4), keras.layers.LayerNormalization(),
        layers.Softmax(), inner,
    ])  # fmt: skip
    assert tfsafe.coverage(model).summary == (
        "4 layers, 2 have a safe version, 1 is tfsafe's."
    )
    model.compile(loss="mse", metrics=["accuracy", "mae", keras.metrics.AUC()])
    found = tfsafe.coverage(model)
    assert found.summary == (
        "4 layers, 2 have a safe version, 1 is tfsafe's; the loss "
        '"mse" is a string; the metrics "accuracy", "mae" are strings; '
        "keras.metrics.AUC has a safe version."
    )
    text = " ".join(str(found).split())
    assert 'loss: "mse" -> tfsafe.losses.MeanSquaredError: Mean of' in text
    assert f"{inner.layers[0].name}: keras.layers.Dropout -> tfsafe.layers" in text
    assert "dense" not in text


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (losses.Huber(), ("tfsafe.losses.Huber", "safe")),
        ([keras.losses.huber], ("keras.losses.huber", "plain")),
        ({"a": "kl_divergence"}, ('"kl_divergence"', "string")),
        ("crossentropy", ('"crossentropy"', "string")),
        *(
            (getattr(keras.losses, name)(), (f"keras.losses.{name}", "other"))
            for name in ("Circle",)
            if hasattr(keras.losses, name)
        ),
    ],
)
def test_a_loss_is_looked_up_however_it_is_given(loss, expected):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, name="a")])
    model.compile(loss=loss)
    found = tfsafe.coverage(model).parts[-1]
    assert (found.name, found.status, found.where) == (*expected, "loss")
