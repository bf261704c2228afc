"""Findings and errors: their words, their colours, and what survives a journey."""

import dataclasses
import io
import json
import pickle
import sys

import pytest

from tests.debugging import sample
from tfsafe._report import explain as _explain, text as _text
from tfsafe.errors import Finding, Link, NumericsError, Picture, Site, TensorStats

SITE = Site("/home/me/train.py", 12, "loss", "return tf.math.log(p)")
FINDING = Finding("NaN", "Log", "Log", "float32", 2, 6, (0, 1), SITE, shape=(2, 3))
LINK = Link("Log", "Log", "NaN", 2, 6, (2, 3), "float32", SITE)
END = Link("", "", "NaN", 1, 1, (), "float32", origin="output")
STATS = TensorStats("Mul", "float32", (2, 3), -1.0, 2.0, 0.5)


@pytest.fixture(autouse=True)
def no_wish_about_colors(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "-1 to 2, mean 0.5"),
        ({"zeros": 1, "negatives": 2}, "-1 to 2, mean 0.5, 1 zero, 2 negatives"),
        ({"min": 0.0, "max": 0.0, "zeros": 6}, "all 0"),
        ({"min": 3.0, "max": 3.0, "shape": ()}, "3"),
        ({"nans": 1, "posinfs": 2, "neginfs": 3}, "0.5, 1 NaN, 2 +Inf, 3 -Inf"),
        ({"min": None, "max": None, "mean": None, "nans": 6}, "6 NaN"),
        ({"min": None, "max": None, "mean": None, "shape": (0,)}, "no elements"),
    ],
    ids=["plain", "counts", "constant", "scalar", "bad", "only-bad", "empty"],
)
def test_a_tensor_is_reported_in_figures(change, words):
    stats = dataclasses.replace(STATS, **change)
    told = _explain.figures(stats)
    assert told == words or (words.startswith("0.5") and told.endswith(words))


def test_the_inputs_are_below_the_cause():
    other = dataclasses.replace(STATS, name="Tile", shape=())
    finding = dataclasses.replace(FINDING, cause="1 zero.", inputs=(STATS, other))
    assert str(finding).splitlines()[-3:] == [
        "  why:   1 zero.",
        "  input: Mul, float32 2x3: -1 to 2, mean 0.5",
        "         Tile, float32 scalar: -1 to 2, mean 0.5",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "2 of 6 values, the first at (0, 1); shape (2, 3), float32"),
        ({"count": 1}, "1 of 6 values, at (0, 1); shape"),
        (
            {"kind": "NaN and +Inf", "count": 3, "output": "both"},
            "1 NaN and 2 +Inf of 6 values, the first at",
        ),
        ({"count": 2, "output": "both"}, "2 of 6 values, the first at"),
        ({"shape": (), "size": 1}, "the only value, float32"),
    ],
    ids=["plain", "one", "kinds", "born-here", "scalar"],
)
def test_what_is_nonfinite_is_counted(change, words):
    if "output" in change:
        both = dataclasses.replace(STATS, nans=1, posinfs=2)
        change = {**change, "output": both}
    assert f"  what:  {words}" in str(dataclasses.replace(FINDING, **change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"row": 0}, "NaN from `Log`, first in row 0 of the batch."),
        (
            {"row": 0, "origin": "argument `x`"},
            "argument `x`, first in row 0 of the batch, feature 1.",
        ),
        (
            {"row": 4, "origin": "argument `x`", "index": (4, 1, 1)},
            "in row 4 of the batch.",
        ),
        ({"origin": "argument `x`"}, "NaN in argument `x`."),
    ],
    ids=["operation", "table", "images", "no-batch"],
)
def test_the_row_is_named_and_of_a_table_the_feature(change, words):
    head = str(dataclasses.replace(FINDING, **change)).splitlines()[0]
    assert head.endswith(words)


def test_the_chain_is_reported_on_request_only():
    finding = dataclasses.replace(FINDING, chain=(LINK, LINK, END))
    assert "chain" not in finding.explain(color=False)
    assert finding.explain(chain=True, color=False).splitlines()[-3:] == [
        "  chain: 1  Log     NaN  2 of 6  train.py:12  return tf.math.log(p)",
        "         2  Log     NaN  2 of 6  train.py:12  return tf.math.log(p)",
        "         3  output  NaN  1 of 1",
    ]
    error = NumericsError("what it says", [finding])
    told = error.explain(chain=True, color=False).splitlines()
    assert told[0] == "what it says"
    assert len(told) == 4


def test_no_chain_and_no_findings_are_no_trouble():
    assert FINDING.explain(chain=True, color=False) == str(FINDING)
    assert NumericsError("text").explain(chain=True, color=False) == "text"


def test_the_middle_of_a_long_chain_is_omitted_and_long_lines_are_cut():
    wide = dataclasses.replace(SITE, source="x" * 200)
    steps = [dataclasses.replace(LINK, op_type=f"Op{i}", site=wide) for i in range(30)]
    finding = dataclasses.replace(FINDING, chain=tuple(steps))
    lines = finding.explain(chain=True, color=False).split("  chain: ")[1].split("\n")
    assert len(lines) == 17
    assert lines[8].strip() == "... 14 more ..."
    assert "Op7 " in lines[7]
    assert "Op22 " in lines[9]
    assert {len(line.strip()) for line in lines if "Op" in line} <= {99, 100}


def test_a_step_without_a_line_shows_its_layers_or_nothing():
    inside = dataclasses.replace(LINK, site=None, scope="model/dense")
    outside = dataclasses.replace(LINK, op_type="", site=None, size=0)
    lines = _explain.chain_lines([inside, outside])
    assert lines[0].endswith("NaN  2 of 6  model/dense")
    assert lines[1].strip() == "2  from outside  NaN"


def test_a_path_names_the_update_behind_the_last_gradient():
    training = dataclasses.replace(SITE, source="model.fit(x, y)")
    loss = dataclasses.replace(LINK, site=training)
    slope = dataclasses.replace(loss, is_gradient=True)
    to_weight = dataclasses.replace(END, origin="variable `kernel`")
    steps = _explain.folded([slope, loss, slope, slope, loss, loss, to_weight])
    assert [_explain.name_of(each) for each in steps] == [
        "Log", "loss", "gradient of the loss", "update by the optimizer",
        "variable `kernel`",
    ]  # fmt: skip
    to_loss = dataclasses.replace(END, origin="output['loss']")
    steps = _explain.folded([slope, loss, to_loss])
    assert [_explain.name_of(each) for each in steps] == ["Log", "loss"]


def test_what_adds_up_a_gradient_belongs_to_its_layer():
    fit = Site("train.py", 9, "<module>", "model.fit(x, y)")
    made = [
        Link("LogGrad", "g", "NaN", 1, 6, (6,), "float32", fit, "", is_gradient=True),
        Link("MatMul", "h", "NaN", 1, 6, layer="net/a", site=fit, is_gradient=True),
        Link("AddN", "i", "NaN", 2, 6, site=fit, is_gradient=True),
        Link("", "", "NaN", 3, 6, origin="variable `net/a/kernel`"),
    ]
    first, gradient, end = _explain.folded(made)
    assert (first.op_type, end.count) == ("LogGrad", 3)
    assert (gradient.origin, gradient.count) == ("gradient of net/a", 2)


def test_the_nearest_trap_is_below_the_chain():
    finding = dataclasses.replace(FINDING, suggested_code="tfsafe.ops.divide(x, y)")
    lines = finding.explain(chain=True, color=False).splitlines()
    assert lines[-1].startswith("  trap:  ")
    assert "tfsafe coverage" in lines[-1]
    assert "trap:" not in str(finding)


def test_a_path_begins_in_its_layer_and_leaves_metrics_out():
    line = dataclasses.replace(SITE, source="self.total.update_state(loss)")
    first = dataclasses.replace(LINK, layer="model/head")
    metric = dataclasses.replace(LINK, op_type="AddV2", site=line)
    end = dataclasses.replace(END, origin="output['loss']")
    steps = _explain.folded([first, LINK, metric, end])
    names = [_explain.name_of(each) for each in steps]
    assert names == ["Log in model/head", "Log", "loss"]


@pytest.mark.parametrize(
    ("count", "shape", "where"),
    [
        (6, (2, 3), "in every row of the batch"),
        (3, (1, 3), "first in row 0 of the batch"),
        (5, (2, 3), "first in row 0 of the batch"),
    ],
)
def test_a_row_is_named_only_where_there_are_others(count, shape, where):
    size = shape[0] * shape[1]
    facts = {"count": count, "size": size, "shape": shape, "row": 0}
    found = dataclasses.replace(FINDING, **facts)
    assert _explain.headline(found) == f"NaN from `Log`, {where}."


def test_colors_are_for_terminals_and_str_is_plain(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    finding = dataclasses.replace(
        FINDING,
        cause="1 zero.",
        suggestion="is safe.",
        suggested_code="f(x)",
        chain=(LINK, END),
    )
    error = NumericsError(str(finding), [finding])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert "\x1b" not in finding.explain(chain=True)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert "\x1b" not in str(finding) + str(error)
    assert finding.explain() == error.explain()
    assert finding.explain(chain=True).splitlines() == [
        "\x1b[1;31mNaN from `Log`.\x1b[0m",
        "\x1b[2m  what:  \x1b[0m2 of 6 values, the first at (0, 1); shape (2, 3), "
        "float32",
        "\x1b[2m  where: \x1b[0m/home/me/train.py:12 in loss",
        "\x1b[36m             return tf.math.log(p)\x1b[0m",
        "\x1b[2m  why:   \x1b[0m1 zero.",
        "\x1b[2m  fix:   \x1b[0m\x1b[32mf(x)\x1b[0m",
        "         is safe.",
        "\x1b[2m  chain: \x1b[0m"
        "1  Log     NaN  2 of 6  train.py:12  return tf.math.log(p)",
        "         2  output  NaN  1 of 1",
    ]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in finding.explain()
    assert "\x1b" in finding.explain(color=True)


def test_a_suggestion_without_code_is_not_colored():
    finding = dataclasses.replace(FINDING, suggestion="bound it: tf.minimum(x, 1.0).")
    assert "\x1b[2m  fix:   \x1b[0mbound it" in finding.explain(color=True)


def test_a_line_to_paste_may_be_an_assignment():
    finding = dataclasses.replace(
        FINDING,
        suggestion="drops them.",
        suggested_code="x = f(x, y=1)",
    )
    assert "\x1b[32mx = f(x, y=1)\x1b[0m" in finding.explain(color=True)


def test_another_stream_than_the_standard_output_may_be_asked_about():
    assert not _text.wants_color(io.StringIO())
    assert not _text.wants_color(object())


def test_a_finding_is_json_and_comes_back(tmp_path):
    finding = sample.finding(tmp_path)
    text = json.dumps(dataclasses.asdict(finding), allow_nan=False)
    again = Finding.from_dict(json.loads(text))
    assert again == finding
    assert isinstance(again.inputs[0].picture, Picture)
    assert isinstance(again.chain[0].site, Site)
    assert (
        NumericsError("", [again]).to_html() == NumericsError("", [finding]).to_html()
    )


def test_the_barest_finding_comes_back():
    finding = Finding("NaN", "", "", "float32", 1, 1, ())
    assert (
        Finding.from_dict(json.loads(json.dumps(dataclasses.asdict(finding))))
        == finding
    )


def test_an_error_is_pickled_with_its_chain(tmp_path):
    error = sample.error(tmp_path)
    again = pickle.loads(pickle.dumps(error))
    assert again.findings == error.findings
    assert again.to_html() == error.to_html()
