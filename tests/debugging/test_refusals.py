"""`tfsafe run` explains errors that TensorFlow raises for numeric reasons."""

import itertools
import re
import sys
import textwrap
from typing import NamedTuple

import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe import __main__ as cli, _faults, debugging
from tfsafe.debugging.explain import refusals
from tfsafe.rewriting.targets import switch

pytestmark = pytest.mark.skipif(
    modes.HAS_GPU, reason="kernels on a GPU give NaN or 0 instead"
)
_PROGRAMS = itertools.count()
HEAD = "import keras, numpy as np, tensorflow as tf, tfsafe\n"


class Case(NamedTuple):
    """A program that fails on the line with `# here`, and what is said of it."""

    program: str
    operation: str
    cause: str
    fix: str
    mended: tuple[str, str]


CASES = {
    "labels of fit": Case(
        """
        x, y = tf.ones([6, 2]), tf.constant([1, 2, 1, 3, 2, 1])
        model = keras.Sequential([keras.layers.Dense(3, activation="softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy")
        model.fit(x, y, shuffle=False, verbose=0)  # here
        """,
        "SparseSoftmaxCrossEntropyWithLogits",
        "a label value of 3 is outside the valid range of [0, 3) (at (3,)); those of "
        "this step are 1 to 3.",
        "as `labels - 1` does if they begin at 1",
        ("(x, y, ", "(x, y - 1, "),
    ),
    "labels by hand": Case(
        """
        loss_of = tf.nn.sparse_softmax_cross_entropy_with_logits
        def loss(labels, logits):
            return loss_of(labels, logits)  # here
        print(loss(tf.constant([0, -1]), tf.zeros([2, 2])))
        """,
        "SparseSoftmaxCrossEntropyWithLogits",
        "a label value of -1 is outside the valid range of [0, 2) (at (1,))",
        "np.unique(labels, return_inverse=True)[1]",
        ("tf.constant([0, -1])", "np.unique([0, -1], return_inverse=True)[1]"),
    ),
    "one output": Case(
        """
        model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
        model.compile("sgd", "sparse_categorical_crossentropy")
        model.fit(tf.ones([2, 3]), tf.constant([0, 1]), verbose=0)  # here
        """,
        "SparseSoftmaxCrossEntropyWithLogits",
        "as for a model with 1 output.",
        "a single output goes with binary_crossentropy",
        ("sparse_categorical_crossentropy", "binary_crossentropy"),
    ),
    "categories": Case(
        """
        labels = np.array([1, 2])
        print(keras.utils.to_categorical(labels, 2))  # here
        """,
        "to_categorical",
        "a label of 2 is outside the valid range of [0, 2).",
        "as `labels - 1` does",
        ("(labels, 2)", "(labels - 1, 2)"),
    ),
    "embedding": Case(
        """
        ids = np.array([[1, 2], [5, 3]])
        words = keras.layers.Embedding(5, 2, name="words")
        model = keras.Sequential([words, keras.layers.Flatten(), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(ids, tf.ones([2, 1]), shuffle=False, verbose=0)  # here
        """,
        "GatherV2",
        "the position 5 is outside the valid range of [0, 5), at (1, 0).",
        "keras.layers.Embedding(input_dim=int(ids.max()) + 1, ...)",
        ("Embedding(5,", "Embedding(input_dim=int(ids.max()) + 1, output_dim="),
    ),
    "padding": Case(
        """
        table = tf.Variable(tf.ones([4, 2]))
        ids = tf.constant([2, -1])
        print(tf.nn.embedding_lookup(table, ids))  # here
        """,
        "ResourceGather",
        "the position -1 is outside the valid range of [0, 4), at (1,).",
        "ids + 1, and one row more.",
        ("(table, ids)", "(table, ids + 1)"),
    ),
    "segments": Case(
        """
        @tf.function
        def pool(x, ids):
            return tf.math.unsorted_segment_sum(x, ids, num_segments=2)  # here
        print(pool(tf.ones([3]), tf.constant([0, 1, 2])))
        """,
        "UnsortedSegmentSum",
        "the position 2 is outside the valid range of [0, 2), at (2,).",
        "Make what is indexed one larger than the largest of them",
        ("num_segments=2", "num_segments=3"),
    ),
    "inverse": Case(
        """
        x = tf.ones([2, 3, 2])
        gram = tf.matmul(x, x, transpose_a=True)
        gram += tf.stack([tf.eye(2), tf.zeros([2, 2])])
        print(tf.linalg.inv(gram))  # here
        """,
        "MatrixInverse",
        "the matrix (1,) is singular, of rank 1.",
        "tfsafe.ops.pinv(gram)",
        ("tf.linalg.inv(gram)", "tfsafe.ops.pinv(gram)"),
    ),
    "solution in a function": Case(
        """
        @tf.function
        def solve(a, b):
            a = a + tf.transpose(a)
            return tf.linalg.solve(a, b)  # here
        print(solve(tf.ones([2, 2]), tf.ones([2, 1])))
        """,
        "MatrixSolve",
        "the matrix is singular, of rank 1.",
        "tfsafe.ops.lstsq(a, b)",
        ("tf.linalg.solve(a, b)", "tfsafe.ops.lstsq(a, b)"),
    ),
    "NaN before": Case(
        """
        x = tf.constant([[1.0, 2.0], [3.0, 2.0]])
        z = (x - tf.reduce_mean(x, 0)) / tf.math.reduce_std(x, 0)  # here
        print(tf.linalg.eigh(tf.matmul(z, z, transpose_a=True)))
        """,
        "RealDiv",
        "1 zero in the denominator",
        "tfsafe.ops.divide(",
        (
            "(x - tf.reduce_mean(x, 0)) / tf.math.reduce_std(x, 0)",
            "tfsafe.ops.divide(x - tf.reduce_mean(x, 0), tf.math.reduce_std(x, 0))",
        ),
    ),
    "NaN before, in a function": Case(
        """
        @tf.function
        def log_p(p):
            log_p = tf.math.log(p)  # here
            return tf.debugging.check_numerics(tf.reduce_sum(log_p), "log_p")
        print(log_p(tf.constant([0.0, 1.0])))
        """,
        "Log",
        "log of 1 zero (at (0,)).",
        "tf.maximum(p, 1e-6)",
        ("tf.math.log(p)", "tf.math.log(tf.maximum(p, 1e-6))"),
    ),
    "NaN as an index": Case(
        """
        ages = tf.constant([30.0, float("nan")])
        bins = tf.cast(ages / 10, tf.int32)
        print(tf.gather(tf.ones([9]), bins))  # here
        """,
        "GatherV2",
        "which is what a cast to an integer makes of NaN.",
        "tfsafe.data.check_finite",
        ('[30.0, float("nan")]', "[30.0]"),
    ),
    "integers": Case(
        """
        @tf.function
        def each(total, count):
            return total // count  # here
        print(each(tf.constant(5), tf.constant(0)))
        """,
        "FloorDiv",
        "an integer is divided by 0.",
        "as tf.maximum(count, 1) does",
        ("// count", "// tf.maximum(count, 1)"),
    ),
    "text": Case(
        """
        def parse(text):
            return tf.strings.to_number(text)  # here
        for x in tf.data.Dataset.from_tensor_slices(["1", "?"]).map(parse):
            print(x)
        """,
        "StringToNumber",
        "the text '?' is not a number.",
        "tf.where(text == '?', 'nan', text)",
        (
            "return tf.strings.to_number(text)",
            "x = tf.strings.to_number(tf.where(text == '?', 'nan', text))\n"
            "            return tf.where(tf.math.is_nan(x), 0.0, x)",
        ),
    ),
    "table": Case(
        """
        for row in tf.data.Dataset.from_tensor_slices(["1,2", "3,NA"]):
            print(tf.io.decode_csv(row, [0.0, 0.0]))  # here
        """,
        "DecodeCSV",
        "the text 'NA' in column 1 is not a number.",
        "na_value='NA' of decode_csv",
        ("[0.0, 0.0])", "[0.0, 0.0], na_value='NA')"),
    ),
    "NumPy": Case(
        """
        x = np.ones([2, 2])
        print(np.linalg.inv(x))  # here
        """,
        "np.linalg",
        "the matrix is singular",
        "np.linalg.pinv(x)",
        ("np.linalg.inv(x)", "np.linalg.pinv(x)"),
    ),
}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a program in this process; returns its error and what was shown of it."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", ["of python -m", *sys.path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])

    def run(text, *options):
        path = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"
        # AutoGraph takes functions of the same code on the same lines for the same.
        lines = "\n" * next(_PROGRAMS)
        path.write_text(f"{HEAD}{lines}{textwrap.dedent(text)}")
        monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
        error = None
        try:
            cli.main(["run", *options, str(path)])
        except Exception as raised:
            error = raised
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            debugging.disable_check_numerics()
            switch.disable_stabilize()
        return error, path, capsys.readouterr().err

    return run


@pytest.mark.parametrize("options", [[], ["--checks", "full", "--stabilize"]])
@pytest.mark.parametrize("name", CASES)
def test_an_error_is_explained_below_its_own_words(name, options, run):
    case = CASES[name]
    error, path, shown = run(case.program, *options)
    plain, told = re.split(r"\ntfsafe: (?!for pictures)", shown)
    assert type(error).__name__ in plain.rpartition("\nTraceback")[2]
    (number,) = (
        number
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if line.endswith("# here")
    )
    told = " ".join(told.split())
    assert f"`{case.operation}`" in told.partition(" where:")[0]
    assert f"{path}:{number} in " in told
    assert case.cause in told
    assert case.fix in told


@pytest.mark.parametrize("name", CASES)
def test_the_fix_mends_the_program(name, run):
    case = CASES[name]
    assert case.program.count(case.mended[0]) == 1
    error, _, _ = run(case.program.replace(*case.mended))
    assert error is None


def test_the_words_of_tensorflow_are_those_of_a_plain_run(run):
    program = """
        print(tf.linalg.solve(tf.ones([2, 2]), tf.ones([2, 1])))
    """
    shown = []
    for options in (["--checks", "none"], [], ["--checks", "full"]):
        error, path, text = run(program, *options)
        assert type(error) is tf.errors.InvalidArgumentError
        text = text.partition("\ntfsafe: Invalid")[0].rstrip()
        shown.append(re.sub(r"line \d+", "", text.replace(path.name, "program.py")))
    assert "tfsafe" not in shown[0]
    assert shown == shown[:1] * 3


def test_a_report_is_written_of_an_error(run, tmp_path):
    page = tmp_path / "finding.html"
    _, _, shown = run(CASES["inverse"].program, "--report", str(page))
    assert f"tfsafe: the report is {page}" in shown
    assert "is singular, of rank 1." in page.read_text()


@pytest.mark.parametrize(
    "program",
    [
        'tf.debugging.assert_equal(1, 2, message="shapes")',
        "tf.ones([2, 3]) @ tf.ones([2, 3])",
        "np.ones([2, 2])[0, 3]",
        "tf.ones([3])[5]",
        'raise ValueError("Singular matrix")',
    ],
)
def test_another_error_is_left_alone(program, run):
    error, _, shown = run(program)
    assert error is not None
    assert "tfsafe:" not in shown


def test_an_error_that_the_program_catches_is_left_alone(run):
    error, _, shown = run(
        """
        @tf.function
        def inverse(x):
            tf.print("once")
            return tf.linalg.inv(x)

        for x in (tf.ones([2, 2]), tf.eye(2)):
            try:
                print(inverse(x))
            except tf.errors.InvalidArgumentError:
                print("caught")
        """
    )
    assert error is None
    assert "singular" not in shown
    assert shown.count("once") <= 2


def test_a_fault_of_the_explanation_is_contained(run, monkeypatch):
    def boom(*_):
        raise KeyError("injected")

    monkeypatch.setattr(refusals, "_site", boom)
    with pytest.warns(RuntimeWarning, match="explaining an error.*injected"):
        error, _, shown = run("tf.linalg.inv(tf.zeros([2, 2]))")
    assert isinstance(error, tf.errors.InvalidArgumentError)
    assert "Input is not invertible" in shown
    assert "tfsafe:" not in shown
    _faults.REPORTED.clear()


def test_a_nan_beside_the_labels_is_not_what_the_labels_are_told_of(run):
    _, _, shown = run(
        """
        @tf.function
        def loss(labels, x):
            logits = tf.math.log(x)
            return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss(tf.constant([7]), tf.constant([[0.0, -1.0]]))
        """
    )
    assert "a label value of 7 is outside the valid range of [0, 2)" in shown
    assert "`Log`" not in shown


def test_variables_are_as_the_error_left_them(run):
    _, _, shown = run(
        """
        import atexit
        count = tf.Variable(0.0)
        atexit.register(print)
        @tf.function
        def step(x):
            count.assign_add(1.0)
            with tf.control_dependencies([count.assign_add(1.0)]):
                return tf.linalg.inv(x + 0.0 * count)
        import sys
        before = None
        try:
            step(tf.ones([2, 2]))
        except tf.errors.InvalidArgumentError:
            before = float(count)
            raise
        finally:
            sys.left = before, count
        """
    )
    assert "is singular, of rank 1." in " ".join(shown.split())
    before, count = sys.left
    del sys.left
    assert float(count) == before
