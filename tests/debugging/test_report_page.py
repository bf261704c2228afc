"""The report page: its structure, its safety, and how it looks in a browser."""

import dataclasses
import html.parser
import os
import re

import numpy as np
import pytest

from tests.debugging import sample
from tests.support import browser
from tfsafe import NumericsError
from tfsafe._report.html import _diff, _drawing
from tfsafe._report.html._style import STYLE
from tfsafe.debugging.inspection import pictures
from tfsafe.errors import Link, Site

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(html.parser.HTMLParser):
    """Reads a page and refuses tags that are left open or closed out of turn."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(name="page")
def make_page(tmp_path):
    return sample.error(tmp_path).to_html()


def test_the_page_is_well_formed_and_reports_everything(page, tmp_path):
    text = Reader(page).text
    for words in (
        "-Inf from Log , first in row 2 of the batch.",
        "2 of 24 values, the first at (2, 0); shape (6, 4), float32",
        f"{tmp_path}/train.py:7 in entropy",
        "7 log_probs = tf.math.log(probs)",
        "# The textbook form: fine on paper, & wrong where a < b.",
        "Inside model/softmax; loop iteration 3",
        "Log of 2 zeros (the first at (2, 0)).",
        "Softmax float32 6x4 0 to 1, mean 0.25, 2 zeros",
        "tfsafe.ops.log_softmax(logits)",
        "Takes the logits and never sees a probability of 0.",
        "Sum : NaN in 1 of 6 values",
        "1 further place",
        "NaN in argument x .",
        "It was non-finite before the call.",
        "The message as text",
        "reach: output['loss']",
    ):
        assert words in text


def test_the_suggestion_is_a_diff_of_the_line(tmp_path):
    site = Site(str(tmp_path / "train.py"), 3, "f", "return a + (b / c)  # odd")
    finding = dataclasses.replace(
        sample.finding(tmp_path), site=site, suggested_code="tfsafe.ops.divide(b, c)"
    )
    finding = dataclasses.replace(finding, replaces="b / c")
    page = NumericsError("text", [finding]).to_html()
    assert "<ins>+ import tfsafe</ins><del>- return a + (b / c)  # odd</del>" in page
    assert "<ins>+ return a + (tfsafe.ops.divide(b, c))  # odd</ins>" in page


def test_code_of_two_lines_is_one_at_the_top(tmp_path):
    code = "x = load()\ntfsafe.data.check_finite(x)"
    finding = dataclasses.replace(sample.finding(tmp_path), suggested_code=code)
    head = NumericsError("text", [finding]).to_html().partition("<h2>")[0]
    assert "<code>x = load(); tfsafe.data.check_finite(x)</code>" in head


@pytest.mark.parametrize(
    ("source", "replaced"),
    [
        ("x = b / c + b / c", "b / c"),
        ("x = b / d", "b / c"),
        ("x = (", "b / c"),
        ("x = b / c", ""),
    ],
)
def test_a_suggestion_that_fits_no_place_is_no_diff(source, replaced):
    assert _diff.of_line(source, "tfsafe.ops.divide(b, c)", replaced) is None


def test_a_diff_of_a_call_with_keywords():
    suggested, replaced = "tfsafe.ops.norm(u - v, axis=-1)", "tf.norm(u - v, axis=-1)"
    found = _diff.of_line(f"return {replaced}", suggested, replaced)
    assert found == (f"return {replaced}", f"return {suggested}", "import tfsafe")


def test_a_diff_of_a_division_in_place():
    found = _diff.of_line("y /= b - c", "tfsafe.ops.divide(y, b - c)", "y / (b - c)")
    assert found[1:] == ("y = tfsafe.ops.divide(y, b - c)", "import tfsafe")


def test_a_diff_in_the_head_of_a_block():
    head = "if tf.math.log(x) > 0:"
    found = _diff.of_line(head, "tf.math.log1p(x)", "tf.math.log(x)")
    assert found == (head, "if tf.math.log1p(x) > 0:", "")


def test_the_run_and_the_health_of_the_layers_are_shown(tmp_path):
    error = sample.error(tmp_path)
    error.facts = {"device": "GPU <0>", "XLA": "No"}
    error.layers = (
        ("conv", "Conv2D", "finite"),
        ("soft<max", "Softmax", "first"),
        ("head", "Dense", "reached"),
    )
    page = error.to_html()
    text = Reader(page).text
    assert "The run Device GPU <0> XLA No" in text
    assert "What it reached output['loss']" in text
    chips = re.findall(r'<li class="(\w+)" title="[^"]*">([^<]*)<', page)
    assert chips == [("finite", "conv"), ("first", "soft&lt;max"), ("reached", "head")]
    assert "not reached" not in text


def test_cells_of_a_picture_are_whole_pixels():
    stats = pictures.stats_of("x", np.arange(64.0 * 50).reshape(64, 50) - 1000)
    drawing = _drawing.picture(stats)
    assert not re.search(r"\d\.\d", re.sub(r'aria-label="[^"]*"', "", drawing))


def test_a_long_name_stands_above_the_counts(tmp_path):
    finding = sample.finding(tmp_path)
    link = dataclasses.replace(
        finding.chain[0], op_type="SparseSoftmaxCrossEntropyWithLogits", count=1000,
        size=10000,
    )  # fmt: skip
    page = NumericsError(
        "text", [dataclasses.replace(finding, chain=(link,))]
    ).to_html()
    ((top, name),) = re.findall(r'class="op" x="13" y="(\d+)">(Sparse[^<]*)<', page)
    assert name == "SparseSoftmaxCrossEntropyWithLogits"
    assert 13 + 9 * len(name) + 13 < 360
    amount = "-Inf, 1000 of 10000"
    ((line, place),) = re.findall(
        rf'y="(\d+)">{amount}</text>\n<text[^>]*>([^<]*)', page
    )
    assert int(line) > int(top)
    assert 13 + 7 * len(place) + 7.5 * len(amount) + 13 < 360


def test_an_argument_did_not_come_out(tmp_path):
    finding = dataclasses.replace(
        sample.finding(tmp_path), op_type="", origin="argument `x`", site=None
    )
    page = NumericsError("text", [finding]).to_html()
    assert ">Given" in page
    assert "came out" not in page


def test_captions_begin_with_a_capital(tmp_path):
    error = sample.error(tmp_path)
    finding = error.findings[0]
    alike = dataclasses.replace(finding.inputs[0], min=1.0, max=1.0)
    scalar = dataclasses.replace(finding, shape=(), index=(), inputs=(alike,))
    error.change_first(**{
        field.name: getattr(scalar, field.name) for field in dataclasses.fields(scalar)
    })
    error.facts = {"dtype policy": "float32"}
    error.layers = (("conv", "Conv2D", "first"), ("head", "Dense", "reached"))
    error.losses = error.gradient_norms = (1.0, 2.0)
    page = error.to_html()
    captions = re.findall(
        r"<(?:dt|figcaption><strong|span(?: class=\"note\")?|p class=\"what\")>"
        r"([a-zA-Z][^<]*)<",
        page,
    )
    captions += re.findall(r"</svg> (\w+)</li>", page)
    captions += re.findall(r"<li class=\"(?:first|reached)\">([^<]+)<", page)
    names = {each.name for each in [*scalar.inputs, scalar.output] if each}
    names |= {scalar.op_type, *(each.origin or each.op_type for each in scalar.chain)}
    known = {
        *("The only value, float32", "Dtype policy", "Loss", "Gradient norm"),
        *("Reached by it", "First non-finite value", "Zero"),
    }
    assert known <= set(captions)
    for words in ("Went in", "Came out"):
        assert any(each.startswith(words) for each in captions)
    assert not [each for each in captions if each[0].islower() and each not in names]


def test_the_line_is_marked_among_its_neighbours(page):
    (marked,) = re.findall(r"<mark>.*?</mark>", page)
    assert "log_probs = tf.math.log(probs)" in marked
    assert page.count("<span><b aria-hidden") == 4


def test_nothing_is_loaded_and_nothing_runs(page):
    reader = Reader(page)
    assert not {"script", "link", "img", "iframe", "object", "a"} & set(reader.tags)
    names = {name for _, name, _ in reader.attributes}
    assert not {"src", "href", "xlink:href", "action", "style"} & names
    assert not [name for name in names if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?:", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    "field", ["cause", "suggestion", "suggested_code", "scope", "op_type", "kind"]
)
def test_every_text_is_escaped(field, tmp_path):
    evil = "<script>alert('\"&')</script>"
    finding = dataclasses.replace(sample.finding(tmp_path), **{field: evil})
    reader = Reader(NumericsError(evil, [finding]).to_html())
    assert "script" not in reader.tags
    assert evil in reader.text


def test_names_of_files_functions_tensors_and_steps_are_escaped(tmp_path):
    evil = '"><svg onload=alert(1)>'
    site = Site(f"{evil}.py", 3, evil, f"f({evil})")
    link = Link(evil, evil, evil, 1, 2, (2,), evil, site, evil)
    finding = dataclasses.replace(
        sample.finding(tmp_path),
        site=site,
        inputs=(pictures.stats_of(evil, np.ones(2)),),
        chain=(link, dataclasses.replace(link, origin=evil)),
    )
    reader = Reader(NumericsError("text", [finding]).to_html())
    assert not [name for _, name, _ in reader.attributes if name == "onload"]
    assert f"f({evil})" in reader.text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("net/conv", "net/conv"),
        ("mobilenetv2_1.00_96/bn_Conv1", "\u2026/bn_Conv1"),
        ("gradient of tagger/reader/cell", "gradient of \u2026/cell"),
        ("variable `tagger/reader/cell/kernel`", "variable \u2026/cell/kernel"),
    ],
)
def test_a_path_that_does_not_fit_loses_its_outer_layers(name, shown):
    assert _drawing._cut_path(name, 230) == shown


def test_every_drawing_says_what_it_shows(page):
    reader = Reader(page)
    labels = [value for tag, name, value in reader.attributes if name == "aria-label"]
    assert "Picture of float32 6x4: 0 to 1, mean 0.25, 2 zeros" in labels
    assert any("From Log to Mul to Sum to loss." in (label or "") for label in labels)
    hidden = [tag for tag, name, _ in reader.attributes if name == "aria-hidden"]
    labelled = [tag for tag, name, _ in reader.attributes if name == "aria-label"]
    assert reader.tags.count("svg") == (hidden + labelled).count("svg")


def test_the_same_error_gives_the_same_page(page, tmp_path):
    assert sample.error(tmp_path).to_html() == page


def test_a_page_can_be_written(tmp_path, page):
    path = tmp_path / "report.html"
    assert sample.error(tmp_path).to_html(path) == page
    assert path.read_text("utf-8") == page


def test_a_file_name_of_bytes_that_are_no_text_can_be_written(tmp_path):
    site = Site("caf\udce9.py", 1, "f", "x")
    finding = dataclasses.replace(sample.finding(tmp_path), site=site)
    NumericsError("text", [finding]).to_html(tmp_path / "report.html")
    assert "caf?.py:1" in (tmp_path / "report.html").read_text("utf-8")


def test_a_file_that_has_changed_since_shows_the_line_alone(tmp_path):
    site = Site(str(tmp_path / "train.py"), 7, "entropy", "an older line")
    finding = dataclasses.replace(sample.finding(tmp_path), site=site)
    page = NumericsError("text", [finding]).to_html()
    assert "an older line" in page
    assert page.count("<span><b aria-hidden") == 0


def test_a_line_that_cannot_be_read_hides_the_source(tmp_path):
    site = Site("<stdin>", 1, "f")
    finding = dataclasses.replace(sample.finding(tmp_path), site=site)
    page = NumericsError("text", [finding]).to_html()
    assert "&lt;stdin&gt;:1" in page
    assert '<pre class="source"' not in page


def test_a_finding_without_line_tensors_and_chain_has_a_page(tmp_path):
    finding = dataclasses.replace(
        sample.finding(tmp_path),
        site=None,
        cause="",
        suggestion="",
        suggested_code="",
        scope="",
        iteration=(),
        inputs=(),
        output=None,
        chain=(),
        size=0,
        dtype="",
    )
    text = Reader(NumericsError("text", [finding]).to_html()).text
    assert "No line of yours; operation loss/Log" in text
    assert "values" not in text.partition("The message")[0]
    for heading in ("Why", "What to do", "How it spread"):
        assert heading not in text


def test_an_error_without_findings_has_a_page():
    text = Reader(NumericsError("3 steps were bad.\nAll of them.").to_html()).text
    assert "3 steps were bad." in text
    assert "All of them." in text


def test_a_long_chain_is_drawn_without_its_middle_and_listed_in_full(tmp_path):
    finding = sample.finding(tmp_path)
    long = dataclasses.replace(finding, chain=finding.chain[:3] * 20)
    page = NumericsError("text", [long]).to_html()
    assert ">44 more steps</text>" in page
    assert page.count('<rect class="node') == 16 + len(finding.inputs)
    assert page.count("<li><strong>") == 60


def test_a_step_whose_values_are_not_known_is_listed_without_a_count(tmp_path):
    link = Link("Log", "loss/Log", "NaN or Inf", 0, 0)
    finding = dataclasses.replace(sample.finding(tmp_path), chain=(link,))
    page = NumericsError("text", [finding]).to_html()
    assert "<li><strong>Log</strong>: NaN or Inf</li>" in page
    assert ">NaN or Inf</text>" in page


def _luminance(color):
    levels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in levels
    ]
    return np.dot(linear, [0.2126, 0.7152, 0.0722])


def colors(*, dark):
    """Returns the colours of the style sheet by name."""
    light, _, rest = STYLE.partition("prefers-color-scheme: dark")
    return dict(re.findall(r"--(\w+): (#\w{6})", rest if dark else light))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("fore", "back"),
    [
        ("text", "back"),
        ("text", "card"),
        ("text", "mark"),
        ("text", "tint"),
        ("soft", "back"),
        ("soft", "card"),
        ("soft", "tint"),
        ("nonfinite", "back"),
        ("nonfinite", "card"),
        ("nonfinite", "tint"),
    ],
)
def test_words_stand_out_as_wcag_asks(fore, back, dark):
    named = colors(dark=dark)
    darker, lighter = sorted(_luminance(named[each]) for each in (fore, back))
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


@pytest.fixture(name="look")
def make_look():
    if not browser.find():
        if os.environ.get("TFSAFE_REQUIRE_CHROMIUM") == "1":
            pytest.fail(f"TFSAFE_REQUIRE_CHROMIUM=1 is set, but {browser.MISSING}.")
        pytest.skip(browser.MISSING)
    return browser.photograph


@pytest.mark.parametrize(
    ("width", "dark"),
    [(390, False), (390, True), (1100, True)],
    ids=["phone-light", "phone-dark", "desk-dark"],
)
def test_a_browser_shows_the_page(page, look, width, dark):
    photograph = look(page, width=width, dark=dark)
    named = colors(dark=dark)
    # The page is what the user prefers, and has something on it.
    back = photograph.share(named["back"])
    assert 0.4 < back < 0.95
    assert photograph.pixels[0, 0].max() < 50 or not dark
    assert photograph.pixels[0, 0].min() > 200 or dark
    # Nothing sticks out to the right, and nothing is loaded.
    assert photograph.width <= width
    assert photograph.right <= width
    assert photograph.loaded == 0
    # In sight are the marked line, the two bad elements, the first box of the graph.
    area = photograph.pixels.shape[0] * photograph.pixels.shape[1]
    assert photograph.share(named["mark"]) * area > 3000
    assert photograph.share(named["neginf"]) * area > 300
    assert photograph.share(named["tint"]) * area > 5000
