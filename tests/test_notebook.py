"""Notebooks: places by cell, short tracebacks, cell magics, and scoped HTML."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import browser
from tfsafe import debugging
from tfsafe._report.html._style import SCOPED

FUNCTION = """\
import tensorflow as tf
import tfsafe

@tfsafe.checked
def f(x):
    return tf.math.log(x - x)
"""


@pytest.fixture
def shell():
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    found = interactive.InteractiveShell.instance()
    yield found
    found.reset()
    interactive.InteractiveShell.clear_instance()


def run(shell, cell):
    return shell.run_cell(cell, store_history=True)


def test_a_cell_shows_its_own_lines_and_the_finding(shell, capsys):
    run(shell, FUNCTION)
    result = run(shell, "f(tf.constant([1.0]))")
    assert not result.success
    shown = capsys.readouterr().out
    first = shell.execution_count - 2
    assert f"  where: Cell In[{first}], line 6 in f\n" in shown
    assert f"  Cell In[{first + 1}], line 1 in <module>\n" in shown
    assert "return tf.math.log(x - x)" in shown
    assert "File " not in shown
    assert "IPython" not in shown


def test_the_last_error_is_shown_as_a_page(shell):
    run(shell, FUNCTION)
    run(shell, "f(tf.constant([1.0]))")
    error = run(shell, "tfsafe.last_error()").result
    assert error.findings[0].op_type == "Log"
    assert error.__traceback__ is None
    page = error._repr_html_()
    assert f"Cell In[{shell.execution_count - 3}], line 6" in page
    assert "tf.math.log(x - x)" in page


def test_a_checked_cell_ends_at_its_first_finding(shell, capsys):
    run(shell, "%load_ext tfsafe")
    run(shell, "import tensorflow as tf")
    cell = "%%checked domain\n\n\nw = tf.Variable(1.0)\nw.assign(1.0 / (w - 1.0))\n3"
    result = run(shell, cell)
    assert isinstance(result.error_in_exec, tfsafe.NumericsError)
    where = f"where: Cell In[{shell.execution_count - 1}], line 5 in <module>"
    assert where in capsys.readouterr().out
    assert run(shell, "%%checked\na = 3\na + 1").result == 4
    assert run(shell, "a").result == 3
    assert not debugging.disable_check_numerics()
    wrong = run(shell, "%%checked nope\n1").error_in_exec
    assert "`%%checked` takes one of watch, domain, full" in str(wrong)


@pytest.mark.parametrize(
    ("last", "reach"),
    [
        ("x / x", "the value of the cell"),
        ("y = x / x", "`y`"),
        ("d = {'a': [1 + x / x]}", "`d['a'][0]`"),
        ("print((x / x).numpy())", "a value that no operation uses"),
        ("for each in range(2):\n    x / x", "a value that no operation uses"),
    ],
)
def test_a_checked_cell_fails_for_what_it_computes_eagerly(shell, last, reach):
    run(shell, "%load_ext tfsafe")
    run(shell, "import tensorflow as tf")
    cell = f"%%checked\nx = tf.constant([0.0, 1.0])\n{last}"
    error = run(shell, cell).error_in_exec
    assert isinstance(error, tfsafe.NumericsError)
    first = error.findings[0]
    assert (first.op_type, first.inputs[0].name) == ("RealDiv", "`x`")
    assert f"  reach: {reach}" in str(error).splitlines()


@pytest.mark.parametrize(
    "cell",
    [
        "y = tf.where(x > 0, tf.math.log(x), 0.0)",
        "mask = tf.where(x > 0, 0.0, -np.inf)\ny = tf.nn.softmax(mask)",
        "data = np.array([np.nan])\nt = tf.constant(data)",
        "y = tf.math.is_nan(x / x)",
        "with tf.GradientTape() as tape:\n"
        "    tape.watch(x)\n"
        "    y = tf.reduce_sum(tf.where(x > 0, x / x, x))\n"
        "z = tape.gradient(y, x * 1.0)",
    ],
)
def test_a_checked_cell_passes_what_no_result_has(shell, cell):
    run(shell, "%load_ext tfsafe")
    run(shell, "import numpy as np, tensorflow as tf\nx = tf.constant([0.0, 1.0])")
    assert run(shell, f"%%checked\n{cell}").error_in_exec is None


def test_a_stabilized_cell_rewrites_the_functions_that_it_names(shell, capsys):
    run(shell, "%load_ext tfsafe")
    run(shell, "import tensorflow as tf\nx = tf.constant(1000.0)")
    run(shell, "def f(x):\n    return tf.math.log(1 + tf.exp(x))")
    assert run(shell, "%%stabilize\nf(x)").result == np.inf
    assert "write %%stabilize f." in capsys.readouterr().out
    assert run(shell, "%%stabilize f\nf(x)").result == 1000.0
    g = "def g(x):\n    return f(x) + tf.math.log(1 + tf.exp(x))"
    assert run(shell, f"%%stabilize g, f\n{g}\ng(x)").result == 2000.0
    assert "nothing was rewritten" not in capsys.readouterr().out
    # They are plain again, whatever ended the cell.
    run(shell, "%%stabilize f\n1 / 0")
    assert run(shell, "f(x), g(x)").result == (np.inf, np.inf)
    wrong = run(shell, "%%stabilize nope\n1").error_in_exec
    assert isinstance(wrong, ValueError)
    assert "names of functions" in str(wrong)


@pytest.mark.parametrize("magic", ["checked", "stabilize"])
def test_a_cell_under_a_magic_is_a_cell_of_ipython(shell, capsys, magic):
    run(shell, "%load_ext tfsafe")
    future = "from __future__ import annotations\ndef f(x: nope): return x\nf(3)"
    assert run(shell, f"%%{magic}\n{future}").result == 3
    capsys.readouterr()
    assert run(shell, f"%%{magic}\na = 2\na + 1;").result is None
    assert "3" not in capsys.readouterr().out
    assert run(shell, f"%%{magic}\n%%capture shown\nprint(a)").success
    assert run(shell, "shown.stdout").result == "2\n"
    assert run(shell, f"%%{magic}\nb = !echo 5\nb[0]").result == "5"
    wrong = run(shell, f"%%{magic}\nawait f(3)").error_in_exec
    assert "'await' outside function" in str(wrong)


def test_a_stabilized_cell_ends_with_its_end(shell):
    run(shell, "%load_ext tfsafe")
    run(shell, "import tensorflow as tf\nx = tf.constant(1000.0)")
    # Each a function of its own: a trace belongs to one of the two.
    f = "tf.function(lambda x: tf.math.log(1 + tf.exp(x)))(x)"
    assert run(shell, f"%%stabilize\n{f}").result == 1000.0
    assert run(shell, f).result == np.inf


def shown():
    """Returns one of each object that a notebook shows, with a word of it."""
    try:
        tfsafe.checked(tf.math.log)(tf.constant([0.0, 1.0]))
    except tfsafe.NumericsError as error:
        caught = error
    softplus = tfsafe.stabilize(tf.function(lambda x: tf.math.log(1 + tf.exp(x))))
    optimizer = tfsafe.SafeOptimizer(keras.optimizers.SGD(0.5))
    optimizer.build([keras.Variable([1.0])])
    return {
        "error": (caught, "log of 1 zero"),
        "finding": (caught.findings[0], "log of 1 zero"),
        "summaries": (debugging.summarize({"w": np.array([1.0, np.nan])}), "50 %"),
        "data": (tfsafe.check_finite(np.array([np.nan, 1]), policy="report"), "NaN in"),
        "rewrites": (tfsafe.stabilize.report(softplus, tf.constant(1.0)), "softplus"),
        "optimizer": (optimizer, "nonfinite_steps"),
    }


def test_objects_are_shown_in_their_own_scope():
    for name, (value, word) in shown().items():
        page = value._repr_html_()
        assert word in page, name
        assert page.startswith('<div class="tfsafe">'), name
        assert page.count("<div") == page.count("</div>"), name
        # Neither loads anything nor ends the page of the notebook.
        assert not re.search(r"<(html|body|link|script|main)\b|src=|http", page), name


def test_the_style_touches_nothing_outside_of_its_scope():
    heads = re.findall(r"([^{}]+)\{", SCOPED)
    rules = [head.strip() for head in heads if not head.strip().startswith("@")]
    assert len(rules) > 40
    for rule in rules:
        assert all(part.strip().startswith(".tfsafe") for part in rule.split(",")), rule
    # Its own text on its own background, in a dark notebook as well.
    assert re.search(r"\.tfsafe \{[^}]*background: var\(--back\); color: var", SCOPED)


# Those of Jupyter for lists of definitions in an output.
JUPYTER = """
.jp-OutputArea-output dt { font-weight: bold; float: left; width: 20%; padding: 0 }
.jp-OutputArea-output dd { float: left; width: 80%; padding: 0; margin: 0 }
"""


@pytest.mark.skipif(not browser.find(), reason=browser.MISSING)
def test_an_output_of_jupyter_has_its_answers_in_rows():
    page = shown()["error"][0]._repr_html_()
    plain, framed = (
        browser.photograph(
            f"<!DOCTYPE html><style>{style}</style>"
            f'<main class="jp-OutputArea-output">{page}</main>',
            width=900, dark=False,
        )
        for style in ("", JUPYTER)
    )  # fmt: skip
    assert framed.height == plain.height


def test_the_last_error_keeps_what_was_added_later():
    error = tfsafe.NumericsError("1 of 3 values is NaN.")
    error.step, error.learning_rate, error.inputs = 7, 0.5, {"x": np.ones(2)}
    error.add_time()
    found = tfsafe.last_error()
    assert str(found) == "1 of 3 values is NaN.\n  when:  step 7, learning rate 0.5"
    assert (found.step, found.inputs.keys()) == (7, {"x"})
