"""`tfsafe.debugging.report`: of what it makes a page."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.debugging import sample
from tfsafe._report.html import _suggestion
from tfsafe.data import check_finite
from tfsafe.debugging import report, retain_gradients, summarize


def test_the_report_of_an_error_is_its_page(tmp_path):
    error = sample.error(tmp_path)
    assert report(error) == error.to_html()


def test_the_report_of_a_dataset_is_a_page():
    x = {"age": np.array([20.0, np.nan]), "one": np.ones(2)}
    page = report(check_finite(x, policy="report"))
    assert "NaN in <code>x[&quot;age&quot;]</code>, first in row 1.</h1>" in page
    assert "Constant values in <code>x[&quot;one&quot;]</code>.</summary>" in page


def test_a_title_is_above_the_first_finding(tmp_path):
    page = report(sample.error(tmp_path), title="Run 7 & last")
    assert '<h1 class="nonfinite">Run 7 &amp; last</h1>' in page
    assert '<p class="lead">-Inf from <code>Log</code>' in page
    assert "<title>Run 7 &amp; last</title>" in page


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: [f], lambda f: (f, f)])
def test_findings_are_reported_alone_or_together(tmp_path, wrap):
    finding = sample.finding(tmp_path)
    page = report(wrap(finding))
    assert "log of 2 zeros" in page
    assert ("1 further place" in page) == (wrap(finding) == (finding, finding))


def test_a_report_is_written_to_a_file(tmp_path):
    path = tmp_path / "page.html"
    assert report(tf.constant([1.0]), path) == path.read_text("utf-8")


def test_tensors_are_drawn_with_their_figures():
    page = report({"kernel": tf.constant([[1.0, np.nan], [-2.0, 0.0]]), "steps": 3})
    assert "<h1>2 tensors</h1>" in page
    assert "<strong>kernel</strong> float32 2x2<span>-2 to 1, mean -0.3333, " in page
    assert "1 zero, 1 negative, 1 NaN" in page
    assert '<path class="nan"' in page


def test_the_weights_of_a_model_are_drawn():
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(3, name="top")])
    assert "top/kernel</strong> float32 2x3" in report(model)


def test_retained_gradients_are_drawn():
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(3, name="top")])
    with retain_gradients(model, "top") as gradients, tf.GradientTape() as tape:
        tape.gradient(model(np.ones([1, 2])), model.weights)
    assert "<strong>top</strong> float32 1x3<span>All 1</span>" in report(gradients)


@pytest.mark.parametrize("wrap", [lambda s: s, list, lambda s: s[0]])
def test_summaries_are_written_in_figures_alone(wrap):
    summaries = summarize({"x": np.array([[0.0, np.inf], [np.nan, -np.inf]])})
    page = report(wrap(summaries), title="Sums")
    assert "<strong>x</strong> float64 2x2" in page
    assert "<span>All 0, 1 NaN, 1 +Inf, 1 -Inf</span>" in page
    assert "<svg" not in page


def test_nothing_has_a_page_too():
    assert "<h1>No tensors</h1>" in report({})


def test_a_symbolic_tensor_is_refused():
    with pytest.raises(TypeError, match="`summarize` needs tensors with values"):
        tf.function(report).get_concrete_function(tf.TensorSpec([2]))


def test_a_finding_names_the_measured_traps_with_the_most_similar_line(monkeypatch):
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(lambda x: tf.math.log(tf.nn.softmax(x)))(
            tf.constant([0.0, -200])
        )
    rows = list(caught.value.findings[0].traps)
    assert rows[0] == "O01"
    assert '<p class="note">Measured: O01, tf.math.log(tf.nn.softmax(z))' in (
        caught.value.to_html()
    )
    monkeypatch.setattr(_suggestion, "documentation", lambda: "https://example.org")
    assert '<a href="https://example.org/traps/O01.html">O01</a>' in (
        caught.value.to_html()
    )
