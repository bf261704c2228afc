"""A capsule finds the same operation without the script, and runs no foreign code."""

import io
import json
import pickle
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import forks, modes
from tfsafe import __main__ as cli
from tfsafe.debugging import replay
from tfsafe.debugging.capsule import records


def failure_of(function, *args):
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(function)(*args)
    # A replay has its file.
    caught.value.hide_capsule()
    return caught.value


@pytest.fixture
def path(tmp_path):
    return tmp_path / "nan.zip"


def branches(weight, x):
    """Changes a variable in a loop with a branch, prints, returns a structure."""
    total = tf.zeros([])
    for i in tf.range(4):
        total += tf.math.log(x[0] - 1.0) if i > 2 else 1.0
    weight.assign_add(x * total)
    tf.print("a step", output_stream="file:///dev/null")
    return {"total": total, "parts": [x, weight + 1.0]}


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_a_division_with_a_gradient(path, jit):
    weight = tf.Variable([1.0, 2.0], name="weight")

    @tf.function(jit_compile=jit)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sqrt(x * weight))
        weight.assign_sub(tape.gradient(loss, weight))
        return loss

    error = failure_of(step, tf.constant([4.0, 0.0]))
    # What follows does not change what is saved.
    weight.assign([7.0, 7.0])
    error.save(path)
    found = replay(path)
    assert str(found) == str(error)
    assert found.findings == error.findings
    assert found.inputs["x"].tolist() == [4.0, 0.0]


def test_operations_are_replayed_in_the_order_of_the_program(path):
    weight = tf.Variable([1.0, 2.0], name="weight")

    @tf.function
    def step(x, mask):
        with tf.GradientTape() as tape:
            scores = x * weight
            # Its gradient adds inputs to the loop, which TensorFlow reads after them.
            for _ in tf.range(2):
                scores = tf.tanh(scores)
            loss = tf.reduce_sum(scores * mask / tf.reduce_sum(mask))
        weight.assign_sub(tape.gradient(loss, weight))
        return loss

    error = failure_of(step, tf.constant([4.0, 1.0]), tf.constant([0.0, 0.0]))
    assert not error.findings[0].is_gradient
    error.save(path)
    assert str(replay(path)) == str(error)


def test_loops_branches_and_structures(path):
    weight = tf.Variable([1.0, 2.0], name="weight")
    step = tf.function(lambda x: branches(weight, x))
    error = failure_of(step, tf.constant([1.0, 2.0]))
    error.save(path)
    assert str(replay(path)) == str(error)
    assert "output['total'], output['parts'][1]" in str(error)


def test_full_checks_and_a_transformation(path):
    normalize = tf.function(lambda x: x / tf.reduce_sum(x))
    failure_of(normalize, tf.constant([0.0, 0.0])).save(path)
    assert replay(path, checks="full").findings[0].op_type == "RealDiv"
    assert replay(path, transform=tfsafe.stabilize) is None


def test_random_numbers_of_a_dataset_and_of_a_kernel_are_kept(path):
    rows = iter(tf.data.Dataset.from_tensor_slices([3.0, 0.0]).repeat())

    @tf.function
    def step(rows):
        return tf.math.log(next(rows)), tf.random.normal([3]), tf.math.log(next(rows))

    failure_of(step, rows).save(path)
    for _ in range(2):
        assert replay(path).findings[0].cause == "log of 1 zero."


def test_a_generator_draws_the_same_numbers(path):
    generator = tf.random.Generator.from_seed(3)
    step = tf.function(lambda x: tf.math.log(generator.normal([1000]) + 3.0) * x)
    error = failure_of(step, tf.constant(2.0))
    error.save(path)
    assert str(replay(path)) == str(error)


@pytest.mark.parametrize(
    "x",
    [
        tf.constant([-1.0, 1.0], tf.bfloat16),
        tf.constant([-1.0, 1.0], tf.float64),
        tf.ragged.constant([[1.0, -1.0], [2.0]]),
    ],
    ids=["bfloat16", "float64", "ragged"],
)
def test_dtypes_of_the_batch(path, x):
    step = tf.function(lambda x, text: (tf.math.log(x), tf.strings.length(text)))
    error = failure_of(step, x, tf.constant([b"ab\0", b""]))
    error.save(path)
    assert replay(path).findings == error.findings


class RowNorm(keras.layers.Layer):
    """Divides by the sum of each row."""

    def call(self, x):
        return x / tf.reduce_sum(x, -1, keepdims=True)


def fit_to_failure(**options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input([4]),
            RowNorm(name="rownorm"),
            keras.layers.Dropout(0.5),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1),
        ],
        name="pricing",
    )
    model.compile(keras.optimizers.Adam(0.5), "mse", jit_compile=False)
    x = np.ones([16, 4], "float32")
    x[9] = 0.0
    monitor = tfsafe.callbacks.NumericsMonitor(**options)
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(
            x, np.ones([16, 1]), batch_size=4, shuffle=False, verbose=0,
            callbacks=[monitor],
        )  # fmt: skip
    caught.value.hide_capsule()
    return caught.value


@pytest.mark.slow
def test_a_step_of_fit_in_another_process(path, tmp_path):
    error = fit_to_failure(capsule=path)
    page = tmp_path / "page.html"
    shown = forks.run("-m", "tfsafe", "replay", path, "--html", page)
    assert shown.returncode == 1
    assert shown.stdout == f"{error}\nThe page is {page}\n"
    assert "pricing/rownorm" in shown.stdout
    assert "when:  step 2, epoch 0, batch 2, learning rate 0.5" in shown.stdout
    text = page.read_text()
    assert "pricing/rownorm" in text
    for fact in ("Optimizer", "Versions of the replay"):
        assert f"<dt>{fact}</dt>" in text


def test_the_finding_and_the_versions_are_plain_data(path):
    error = failure_of(tf.function(tf.math.log), tf.constant(-1.0))
    error.save(path)
    with zipfile.ZipFile(path) as file:
        record = json.loads(file.read("finding.json"))
        assert not [each for each in file.namelist() if "pkl" in each]
    assert record["versions"]["tensorflow"] == tf.__version__
    assert tfsafe.Finding.from_dict(record["findings"][0]) == error.findings[0]


@pytest.mark.slow
def test_run_saves_the_step_of_a_script(path, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import tensorflow as tf\n"
        "tf.function(lambda x: tf.math.log(x))(tf.constant([1.0, -1.0]))\n"
    )
    shown = forks.run("-m", "tfsafe", "run", "--capsule", path, script)
    assert f"tfsafe: the capsule is {path}; `tfsafe replay {path}`" in shown.stderr
    assert replay(path).findings[0].site.path == str(script)


def test_the_command_says_that_all_is_finite(path, capsys):
    normalize = tf.function(lambda x: x / tf.reduce_sum(x))
    failure_of(normalize, tf.constant([0.0, 0.0])).save(path)
    cli.main(["replay", str(path), "--stabilize"])
    assert capsys.readouterr().out == "All values of the step are finite.\n"
    with pytest.raises(SystemExit) as end:
        cli.main(["replay", str(path), "--max-bytes", "10"])
    assert end.value.code == 2
    assert "more than max_bytes=10" in capsys.readouterr().err


def slope_of_the_root(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        root = tf.reduce_sum(tf.sqrt(x))
    return tape.gradient(root, x)


@pytest.mark.parametrize(
    ("function", "x", "words"),
    [
        (lambda x: x + 1.0, np.nan, "a value that was non-finite before the step."),
        (lambda x: 1.0 - tf.math.log(x), -1.0, "a change of the program."),
        (slope_of_the_root, 0.0, "before the step is differentiated."),
    ],
)
def test_the_command_says_why_the_stable_form_fails_too(
    path, capsys, function, x, words
):
    failure_of(tf.function(function), tf.constant([x])).save(path)
    with pytest.raises(SystemExit) as end:
        cli.main(["replay", str(path), "--stabilize"])
    assert end.value.code == 1
    assert capsys.readouterr().out.endswith(f"{words}\n")


def test_what_cannot_be_saved(path):
    step = tf.function(lambda x: tf.math.log(tf.py_function(lambda x: x, [x], x.dtype)))
    error = failure_of(step, tf.constant(-1.0))
    assert "again:" not in str(error)
    with pytest.raises(ValueError, match="uses EagerPyFunc, which a capsule does not"):
        error.save(path)
    with pytest.raises(ValueError, match=r"no traced step.*Eager code has none"):
        failure_of(modes.compile_for("eager", tf.math.log), tf.constant(-1.0)).save(
            path
        )
    error = failure_of(tf.function(tf.math.log), tf.constant(-1.0))
    with pytest.raises(ValueError, match="more than max_bytes=3 bytes"):
        error.save(path, max_bytes=3)
    assert not path.exists()


def test_the_last_error_can_be_saved_while_the_error_is_alive(path):
    error = failure_of(tf.function(tf.math.log), tf.constant(-1.0))
    tfsafe.last_error().save(path)
    assert str(replay(path)) == str(error)
    with pytest.raises(ValueError, match="a pickle gives is a copy"):
        pickle.loads(pickle.dumps(error)).save(path)


def changed(path, name, data):
    """Replaces one part of a capsule."""
    with zipfile.ZipFile(path) as file:
        parts = {each: file.read(each) for each in file.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for each, old in {**parts, name: b""}.items():
            file.writestr(each, data if each == name else old)


@pytest.fixture
def capsule(path):
    failure_of(tf.function(tf.math.log), tf.constant([-1.0, 1.0])).save(path)
    return path


def graph_of(build):
    with tf.Graph().as_default() as graph:
        build()
    return graph.as_graph_def().SerializeToString()


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (lambda: tf.io.write_file("written", "x"), "WriteFile"),
        (lambda: tf.io.read_file("/etc/passwd"), "ReadFile"),
        (lambda: tf.py_function(print, [], []), "EagerPyFunc"),
        (lambda: tf.numpy_function(print, [], []), "PyFunc"),
        (lambda: tf.print("x", output_stream="file:///tmp/x"), "PrintV2"),
        (lambda: tf.raw_ops.Abort(), "Abort"),
        (
            lambda: tf.raw_ops.ImmutableConst(
                dtype=tf.float32, shape=[1], memory_region_name="/etc/passwd"
            ),
            "ImmutableConst",
        ),
        (lambda: tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[]), "VarHandleOp"),
        (
            lambda: tf.raw_ops.TextLineDataset(
                filenames=["/etc/passwd"], compression_type="", buffer_size=1
            ),
            "TextLineDataset",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_graph_of_a_stranger_reaches_nothing(capsule, build, kind):
    changed(capsule, "graphs/0.pb", graph_of(build))
    with pytest.raises(ValueError, match=rf"may not hold: .*{kind}"):
        replay(capsule)


def test_every_operation_that_reaches_a_file_is_refused():
    # Read off the names and arguments that TensorFlow lists.
    reaches = "File|Reader|PyFunc|Dataset|Save|Restore|Checkpoint|Rpc|Remote|Summary"
    suspects = [
        each
        for each in dir(tf.raw_ops)
        if any(part in each for part in reaches.split("|"))
    ]
    assert len(suspects) > 150
    assert set(records.refused(suspects)) == set(suspects)


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("arrays/0.npy", npy(np.array([print]), allow_pickle=True), "another size"),
        ("arrays/0.npy", npy(np.zeros(7, np.uint8)), "another size"),
        ("arrays/0.npy", npy(np.zeros(8, np.uint8))[:-3], "another size"),
        ("arrays/0.npy", b"nothing", "unreadable array"),
        ("graphs/0.pb", b"\xff\xff", "cannot be read"),
        ("step.json", b"{", "unreadable step.json"),
        ("step.json", b"{}", "not a whole capsule"),
        ("finding.json", b"{}", "capsules of format 1"),
        ("large", bytes(2**20), "more than max_bytes=1,000,000"),
    ],
)
def test_a_damaged_or_hostile_file_is_refused(capsule, name, data, message):
    changed(capsule, name, data)
    with pytest.raises(ValueError, match=message):
        replay(capsule, max_bytes=10**6)


def test_what_is_no_capsule_is_refused(tmp_path):
    (tmp_path / "text").write_text("no zip")
    for name in ("text", "missing"):
        with pytest.raises(ValueError, match=r"A capsule is a file that `error.save`"):
            replay(tmp_path / name)


def test_names_of_parts_are_never_paths(capsule, tmp_path):
    changed(capsule, "../outside", b"x")
    assert replay(capsule) is not None
    assert [each.name for each in tmp_path.iterdir()] == ["nan.zip"]
