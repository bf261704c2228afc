"""A notebook that a real kernel executes: what its cells show."""

import re

import pytest

from tests.support import browser, processes
from tfsafe._report.html._style import SCOPED

# The whole notebook takes 20 s, most of it the kernel's own import of TensorFlow.
pytestmark = pytest.mark.slow

FUNCTION = """\
import tensorflow as tf
import tfsafe

def normalized(x):
    return x / tf.reduce_sum(x)

step = tfsafe.checked(tf.function(normalized))
step(tf.constant([0.0, 0.0]))
"""
CHECKED = """\
%%checked domain

w = tf.Variable(1.0)

w.assign(tf.math.log(w - 1.0))
"""
STABLE = """\
%%stabilize
tf.function(lambda x: tf.math.log(1 + tf.exp(x)))(tf.constant(1000.0)).numpy()
"""
FIT = """\
import keras, numpy as np
model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
model.compile(tfsafe.SafeOptimizer(keras.optimizers.SGD(0.01)), "mse")
x = np.ones([6, 1], "float32")
model.fit(x, x, batch_size=2, shuffle=False,
          callbacks=[tfsafe.NumericsMonitor(checks=None)])
x[4] = np.nan
model.fit(x, x, batch_size=2, shuffle=False,
          callbacks=[tfsafe.NumericsMonitor(checks=None)])
"""
CELLS = {
    "load": "%load_ext tfsafe",
    "function": FUNCTION,
    "last": "tfsafe.last_error()",
    "finding": "tfsafe.last_error().findings[0]",
    "checked": CHECKED,
    "stable": STABLE,
    "fit": FIT,
    "after": "1 + 1",
}


@pytest.fixture(scope="module")
def outputs():
    """Returns the outputs of each cell, by its name above."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(each) for each in CELLS.values()]
    try:
        processes.free_ports(1)
    except OSError as error:
        pytest.skip(f"a kernel and its client need a socket: {error}")
    nbclient.NotebookClient(notebook, timeout=300, allow_errors=True).execute()
    return {
        name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)
    }


def text_of(outputs):
    """Returns what cells print, and their tracebacks, without colours."""
    shown = [
        "\n".join(each["traceback"])
        if each.output_type == "error"
        else each.get("text", "")
        for each in outputs
    ]
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(shown))


def page_of(outputs):
    (shown,) = (each for each in outputs if each.output_type == "execute_result")
    return shown.data["text/html"]


def test_a_failure_names_its_cell_and_shows_no_frames_of_libraries(outputs):
    assert outputs["function"][-1].ename == "NumericsError"
    text = text_of(outputs["function"])
    assert "where: Cell In[2], line 5 in normalized\n" in text
    assert "return x / tf.reduce_sum(x)" in text
    assert text.count("Cell In[2], line 8") == 1
    assert "site-packages" not in text
    assert "tfsafe/" not in text
    # The text once, and nothing of the page's source.
    assert len(text) < 4000
    assert "<div" not in text


def test_the_last_error_and_its_finding_are_pages_of_their_own_scope(outputs):
    error, finding = page_of(outputs["last"]), page_of(outputs["finding"])
    assert "Cell In[2], line 5" in error
    assert "RealDiv" in finding
    for page in (error, finding):
        assert page.startswith('<div class="tfsafe">')
        assert not re.search(r"<(html|body|link|script|main)\b|src=|http", page)


def test_a_checked_cell_counts_lines_from_its_magic(outputs):
    assert outputs["checked"][-1].ename == "NumericsError"
    assert "where: Cell In[5], line 5 in <module>" in text_of(outputs["checked"])


def test_a_stabilized_cell_returns_its_value(outputs):
    (shown,) = outputs["stable"]
    # NumPy 1 shows the number alone.
    assert "1000.0" in shown.data["text/plain"]
    (shown,) = outputs["after"]
    assert shown.data["text/plain"] == "2"


def test_the_progress_bar_counts_steps_that_were_not_finite(outputs):
    text = text_of(outputs["fit"])
    assert "1/3" in text
    # A batch has the number once there is one, an epoch always, for its history.
    for line in re.split(r"[\r\n]+", text.replace("\b", "")):
        if line.startswith(("1/3", "2/3")):
            assert "nonfinite_steps: 0" not in line
    assert re.search(r"nonfinite_steps: 1( |$)", text, re.MULTILINE)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_cell_has_its_own_colours_on_a_notebook_of_either(outputs, dark):
    if not browser.find():
        pytest.skip(browser.MISSING)
    around = "#0f5f0f"
    page = (
        "<!DOCTYPE html>"
        f'<body style="margin: 0; background: {around}; color: {around}">'
        f"<main>{page_of(outputs['last'])}</main></body>"
    )
    shown = browser.photograph(page, width=760, dark=dark)
    backs = re.findall(r"--back: (#[0-9a-f]{6})", SCOPED)
    assert len(backs) == 2
    # Little of the notebook is in sight, and no word in its colour.
    assert shown.share(backs[dark]) > 0.4
    assert shown.share(around) < 0.2
    assert shown.right <= 760
    assert shown.loaded == 0
