"""`python -m tfsafe run`: as `python` runs a script, and the checks besides."""

import re
import signal
import subprocess
import sys
import textwrap

import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tfsafe import __main__ as cli, _run, debugging
from tfsafe.rewriting.targets import switch


@pytest.fixture
def write(tmp_path):
    """Writes a file of Python and returns its path."""

    def write(source, name="script.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return str(path)

    return write


@pytest.fixture
def here(monkeypatch):
    """Runs a script in this process, of which everything is put back afterwards."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", ["of python -m", *sys.path])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    yield lambda *arguments: cli.main(["run", *arguments])
    debugging.disable_check_numerics()
    switch.disable_stabilize()


def process(*arguments, cwd, own=False, **options):
    """Runs a script in a process of its own, with the checks or by `python` alone."""
    command = [sys.executable, *([] if own else ["-m", "tfsafe", "run"]), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, **options)


def uncaught(raised):
    """Has an error that left `run` shown, as Python does in the end."""
    sys.excepthook(raised.type, raised.value, raised.tb)


LOOKS = """
    'Shows what it was given.'
    import sys
    assert __name__ == "__main__" and sys.modules["__main__"].__file__ == __file__
    print(sys.argv, __file__, sys.path[0], __package__, __doc__, sys.stdin.readline())
    sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("module", [False, True], ids=["script", "module"])
def test_a_script_finds_what_python_gives_it(module, write, tmp_path):
    path = write(LOOKS, "folder/looks.py")
    program = ["-m", "folder.looks"] if module else ["folder/looks.py"]
    arguments = [*program, "3", "--checks", "--", "-m", "-h"]
    given = {"cwd": tmp_path, "input": "line\n"}
    ours, pythons = process(*arguments, **given), process(*arguments, own=True, **given)
    assert ours.stdout == pythons.stdout
    assert path in ours.stdout
    assert "'3', '--checks', '--', '-m', '-h']" in ours.stdout
    assert "line" in ours.stdout
    assert ours.returncode == pythons.returncode == 3


@pytest.mark.parametrize(
    "last",
    [
        "raise ValueError('of the script')",
        "raise KeyboardInterrupt",
        "import missing",
        "sys.exit('in words')",
        "open('folder/broken.py', 'w').write('1 +'); import folder.broken",
        "f = lambda: f(); f()",
    ],
)
def test_an_error_looks_and_ends_as_under_python(last, write, tmp_path):
    write("", "folder/__init__.py")
    path = write(f"import sys\nsys.path.insert(0, '.')\n\n{last}\n")
    ours, pythons = (process(path, cwd=tmp_path, own=own) for own in (False, True))
    assert ours.returncode == pythons.returncode != 0
    if "Keyboard" in last:
        assert ours.returncode == -signal.SIGINT
    told = re.sub("^tfsafe: nothing was checked.*\n", "", ours.stderr, flags=re.M)
    # Of an endless recursion Python shows fewer frames, where there are some before.
    told, right = (re.sub(r"\d+ more", "", each) for each in (told, pythons.stderr))
    assert told == right


@pytest.mark.parametrize("code", [None, 0, 4, "in words"])
def test_the_exit_code_passes_through(code, here, write):
    with pytest.raises(SystemExit) as raised:
        here(write(f"import sys\nsys.exit({code!r})"))
    assert raised.value.code == code


def test_an_error_of_the_script_has_its_own_lines(here, write, capsys):
    path = write("def f():\n    raise OSError('of the disk')\n\nf()\n")
    with pytest.raises(OSError, match="of the disk") as raised:
        here(path)
    uncaught(raised)
    lines = capsys.readouterr().err.splitlines()
    # Python 3.13 underlines the call.
    assert [line for line in lines if line.strip(" ~^")] == [
        "Traceback (most recent call last):",
        f'  File "{path}", line 4, in <module>',
        "    f()",
        f'  File "{path}", line 2, in f',
        "    raise OSError('of the disk')",
        "OSError: of the disk",
    ]


OF_THE_USER = """
    import keras
    import tensorflow as tf
    import tfsafe

    class Of7(keras.layers.Layer):
        def call(self, x):
            return x @ tf.ones([7, 2])

    model = keras.Sequential([Of7()])
    model.compile("sgd", "mse")
    try:
        {call}
    except (RuntimeError, ValueError) as error:
        raise KeyError("of the user") from error
"""
FIT = "model.fit(tf.ones([4, 3]), tf.ones([4, 2]), verbose=0)"


@pytest.mark.parametrize(
    ("call", "is_ours"),
    [
        (FIT, False),
        (f"keras.config.disable_traceback_filtering(); {FIT}", True),
        ("tfsafe.checked(model.call, checks='some')", True),
    ],
    ids=["of the user", "not filtered", "ours"],
)
def test_frames_of_tfsafe_are_shown_for_its_own_errors(
    call, is_ours, here, write, capsys
):
    path = write(OF_THE_USER.format(call=call))
    try:
        with pytest.raises(KeyError, match="of the user") as raised:
            here("--stabilize", path)
    finally:
        tf.keras.config.enable_traceback_filtering()
    uncaught(raised)
    shown = capsys.readouterr().err
    assert f'File "{path}"' in shown
    assert (tfsafe.__path__[0] in shown) is is_ours


@pytest.mark.parametrize(
    ("last", "absent"),
    [
        ("tf.function(lambda x: x @ tf.ones([7]))(tf.ones([2, 3]))", "in get_concrete"),
        ("model.fit(tf.ones([4, 3]), [0, 1, 2, 9], verbose=0)", tfsafe.__path__[0]),
        # The third argument is `loss_weights`: Keras multiplies the loss by a string.
        (f"model.compile('sgd', 'mse', ['mae']); {FIT}", tfsafe.__path__[0]),
    ],
    ids=["traced", "kernel", "Keras"],
)
def test_an_error_of_tensorflow_shows_the_frames_of_a_plain_run(
    last, absent, here, write, capsys
):
    path = write(f"""
        import keras
        import tensorflow as tf

        model = keras.Sequential([keras.layers.Dense(3, "softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy")
        {last}
    """)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)) as raised:
        here(path)
    uncaught(raised)
    frames, _, _ = capsys.readouterr().err.partition("\n" + raised.typename)
    frames, _, _ = frames.partition("\ntensorflow.python.framework.errors_impl")
    assert f'File "{path}"' in frames
    assert absent not in frames


@pytest.mark.skipif(modes.HAS_GPU, reason="this kernel gives NaN on a GPU")
@pytest.mark.parametrize("options", [[], ["--stabilize"], ["--checks", "full"]])
def test_an_error_of_a_kernel_names_the_line_of_the_program(
    options, here, write, capsys
):
    path = write("""
        import keras
        import tensorflow as tf

        def loss(y_true, y_pred):
            cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            return cross_entropy(y_true, tf.math.log(1.0 + tf.exp(y_pred)))

        model = keras.Sequential([keras.layers.Dense(3)])
        model.compile("sgd", loss)
        model.fit(tf.ones([4, 3]), tf.constant([[0], [1], [2], [9]]), verbose=0)
    """)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        here(*options, path)
    uncaught(raised)
    shown = capsys.readouterr().err
    _, _, noted = shown.partition("defined at (most recent call last)")
    (loss,) = re.finditer(rf'File "{path}", line \d+, in loss\n', noted)
    assert re.search(r'File ".*keras.*", line \d+, in', noted[loss.end() :])
    assert tfsafe.__path__[0] not in shown


def test_an_error_that_a_script_prints_shows_no_frames_of_tfsafe(here, write, capsys):
    path = write("""
        import traceback

        import keras
        import tensorflow as tf

        model = keras.Sequential([keras.layers.Dense(3)])
        model.compile("sgd", "categorical_crossentropy")
        try:
            model.fit(tf.ones([4, 3]), tf.ones([4, 5]), verbose=0)
        except ValueError:
            traceback.print_exc()
    """)
    here(path)
    shown = capsys.readouterr().err
    assert "must have the same shape" in shown
    assert tfsafe.__path__[0] not in shown


def test_an_error_in_a_trace_has_the_words_of_a_plain_run(here, write, capsys):
    path = write("""
        import tensorflow as tf

        def inner(x):
            if tf.reduce_sum(x) > 0.0:
                x = x + 1.0
            raise ValueError("not here")

        for outer in (inner, lambda x: tf.function(inner)(x)):
            try:
                tf.function(outer)(tf.ones([3]))
            except ValueError as error:
                print(error)
    """)
    printed = []
    for options in (["--checks", "none"], [], ["--stabilize"]):
        here(*options, path)
        printed.append(capsys.readouterr().out)
    assert printed[0].count("ValueError: not here") == 2
    assert printed == printed[:1] * 3


def test_arguments_that_do_not_fit_a_signature_have_the_words_of_a_plain_run(
    here, write, capsys
):
    path = write("""
        import tensorflow as tf

        @tf.function(input_signature=[tf.TensorSpec([None, 3])])
        def total(x):
            return tf.reduce_sum(x)

        for x in (tf.ones([2, 3]), tf.ones([2, 3], tf.int32), tf.ones([2, 4]), "a"):
            try:
                print(total(x))
            except TypeError as error:
                print(error)
    """)
    printed = []
    for options in (["--checks", "none"], [], ["--checks", "full", "--stabilize"]):
        here(*options, path)
        printed.append(capsys.readouterr().out)
    assert printed[0].count("Binding inputs to tf.function failed") == 3
    assert printed == printed[:1] * 3


def test_a_folder_runs_as_under_python(write, tmp_path, here, capsys):
    write("import sys; print(sys.path[0])\nimport helper", "app/__main__.py")
    write("print('helped')", "app/helper.py")
    here("--checks", "none", str(tmp_path / "app"))
    assert capsys.readouterr().out == f"{tmp_path / 'app'}\nhelped\n"
    assert "of python -m" not in sys.path


def test_a_script_leads_the_path_unless_python_is_reported_not_to(
    write, here, capsys, monkeypatch
):
    path = write("import sys; print(sys.path[0])")

    class Flags:
        safe_path = True

    monkeypatch.setattr(sys, "flags", Flags)
    here("--checks", "none", path)
    assert capsys.readouterr().out == "of python -m\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py"], r"cannot find the file .*nowhere\.py"),
        (["-c", "print(1)"], r"Received: -c print\(1\)\. Write the program to a file"),
        ([], r"the following arguments are required: script\.py$"),
        (["--checks", "some", "x.py"], "argument --checks: invalid choice: 'some'"),
        (["--report", "no/such/page.html", __file__], "cannot find the folder .*such"),
        (
            ["--exclude", "Log", "{path}"],
            "argument --exclude: A rule .* Received: 'Log'",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(arguments, message, here, write, capsys):
    path = write("")
    with pytest.raises(SystemExit) as error:
        here(*(each.format(path=path) for each in arguments))
    assert error.value.code == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))


def test_a_module_that_is_not_there_is_named(here, capsys):
    with pytest.raises(ImportError, match="No module named nosuchmodule"):
        here("-m", "nosuchmodule")


FORWARD = """
    import sys
    import tensorflow as tf

    @tf.function
    def rate(hits, total):
        return tf.reduce_mean(hits / total)

    def main():
        return rate(tf.constant([1.0, 0.0]), tf.constant([2.0, 0.0]))

    {call}
"""


def test_a_finding_is_shown_with_the_users_lines_alone(here, write, capsys):
    path = write(FORWARD.format(call="main()"))
    with pytest.raises(tfsafe.NumericsError) as raised:
        here(path)
    uncaught(raised)
    told = capsys.readouterr().err
    assert told.startswith(
        f'Traceback (most recent call last):\n  File "{path}", line 12, in <module>\n'
    )
    assert re.findall(r'File "(.*?)", line (\d+)', told) == [(path, "12"), (path, "10")]
    assert "\ntfsafe.NumericsError: NaN from `RealDiv`" in told
    assert f"where: {path}:7 in rate" in told
    assert "1 zero in the denominator" in told
    assert told.endswith("repeat the run with `--report finding.html`\n")
    assert "\x1b" not in told


OUTSIDE = """
    import tensorflow as tf

    logs = tf.math.log([1.0, 0.0, 2.0])

    @tf.function
    def step(x):
        return x / tf.reduce_sum(x)

    step(logs - tf.reduce_mean(logs))
"""


def test_of_an_argument_that_the_script_computed_the_operation_is_named(
    here, write, capsys
):
    path = write(OUTSIDE)
    with pytest.raises(tfsafe.NumericsError, match="-Inf from `Log`") as raised:
        here(path)
    assert f"{path}:4 in <module>" in str(raised.value)
    assert "reach: output" in str(raised.value)
    uncaught(raised)
    assert "`--strict`" not in capsys.readouterr().err


def test_of_an_argument_that_numpy_held_the_operation_is_named_by_strict(
    here, write, capsys
):
    path = write(OUTSIDE.replace("step(logs", "step(logs.numpy()"))
    hint = "and not in a dataset, `--strict` names the operation\n"
    with pytest.raises(tfsafe.NumericsError, match="in argument `x`") as raised:
        here(path)
    uncaught(raised)
    assert capsys.readouterr().err.endswith(hint)
    with pytest.raises(tfsafe.NumericsError, match="-Inf from `Log`") as raised:
        here("--strict", path)
    uncaught(raised)
    assert hint not in capsys.readouterr().err


PRIOR = """
    import tensorflow as tf

    prior = tf.Variable({value})

    @tf.function
    def step(x):
        return tf.reduce_sum(prior * x)

    {between}
    step(tf.constant([3.0, 1.0]))
"""


@pytest.mark.parametrize(
    ("value", "between", "named"),
    [
        ("tf.math.log([1.0, 0.0])", "", "-Inf from `Log`."),
        ("lambda: tf.ones([2]) / tf.zeros([2])", "", "+Inf from `RealDiv`."),
        ("[1.0, float('inf')]", "", "+Inf in variable `Variable`."),
        # What was computed is no longer there.
        (
            "tf.math.log([1.0, 0.0])",
            "prior.assign([float('inf'), 0.0])",
            "+Inf in variable `Variable`.",
        ),
    ],
)
def test_of_a_variable_that_the_script_computed_the_operation_is_named(
    value, between, named, here, write
):
    path = write(PRIOR.format(value=value, between=between))
    with pytest.raises(tfsafe.NumericsError) as raised:
        here(path)
    text = str(raised.value)
    assert text.startswith(named), text
    assert (f"{path}:4 in <" in text) == (" from " in named)


INITIALIZED = """
    import keras
    import numpy as np
    import tensorflow as tf

    def of_fan(shape, dtype=None):
        return tf.ones(shape) / tf.sqrt(tf.cast(shape[0] - 2, tf.float32))

    dense = keras.layers.Dense(1, kernel_initializer=of_fan)
    model = keras.Sequential([keras.Input([2]), dense])
    model.compile("sgd", "mse")
    model.fit(np.ones([4, 2]), np.ones([4, 1]), verbose=0)
"""


def test_of_a_weight_the_operation_of_its_initializer_is_named(here, write):
    path = write(INITIALIZED)
    with pytest.raises(tfsafe.NumericsError, match="Inf from `RealDiv`") as raised:
        here(path)
    assert f"{path}:7 in of_fan" in str(raised.value)
    assert "1 zero in the denominator" in str(raised.value)


SCHEDULED = """
    import keras
    import numpy as np

    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    rate = keras.callbacks.LearningRateScheduler(lambda epoch: float({rate}))
    with np.errstate(all="ignore"):
        model.fit(np.ones([2, 1]), np.ones(2), verbose=0, callbacks=[rate])
"""


@pytest.mark.parametrize("rate", ["np.cos(np.log(epoch))", "0.1 / np.float32(epoch)"])
def test_a_rate_that_is_not_finite_is_called_one(rate, here, write):
    path = write(SCHEDULED.format(rate=rate))
    with pytest.raises(tfsafe.NumericsError) as raised:
        here(path)
    (finding,) = raised.value.findings
    assert finding.suggestion.startswith("this learning rate is infinite or NaN")
    assert "If it is data" not in finding.suggestion
    assert "/learning_rate`" in str(raised.value)


STANDARDIZED = """
    import numpy as np
    import tensorflow as tf

    table = np.array([[1.0, 5.0, 7.0], [2.0, 5.0, 8.0], [3.0, 5.0, 8.0]])
    with np.errstate(invalid="ignore"):
        table = (table - table.mean(0)) / table.std(0)
    weights = tf.Variable(tf.ones([3, 1]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul({rows}, weights))
    tape.gradient(loss, weights)
"""


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ("tf.constant(table, tf.float32)", "NaN in `table`."),
        ("tf.constant(table[:2], tf.float32)", "NaN in a constant, or a tensor from"),
    ],
)
def test_an_array_of_the_script_is_named_and_its_constant_feature(
    rows, named, here, write
):
    path = write(STANDARDIZED.format(rows=rows))
    with pytest.raises(tfsafe.NumericsError) as raised:
        here(path)
    (finding,) = raised.value.findings
    assert named in str(raised.value)
    assert f"{path}:10 in <module> (which reads it first)" in str(raised.value)
    code = 'tfsafe.data.check_finite(table, policy="report")'
    assert finding.suggested_code == (code if "`table`" in named else "")
    assert "feature 1 is NaN in each row, as a constant one is" in finding.suggestion
    assert "where NumPy makes it, warnings.simplefilter" in finding.suggestion.replace(
        "W", "w"
    )


def test_a_finding_is_coloured_on_a_terminal(here, write, capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    with pytest.raises(tfsafe.NumericsError) as raised:
        here(write(FORWARD.format(call="main()")))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    uncaught(raised)
    assert "\x1b[1;31mNaN from `RealDiv`" in capsys.readouterr().err


def test_a_script_may_catch_the_finding_itself(here, write, capsys):
    caught = "try:\n        main()\n    except ArithmeticError: print('caught')"
    here(write(FORWARD.format(call=caught)))
    assert capsys.readouterr() == ("caught\n", "")


def test_a_script_may_show_errors_in_its_own_way(here, write, capsys):
    call = "sys.excepthook = lambda kind, value, lines: print('mine', lines.tb_lineno)"
    with pytest.raises(tfsafe.NumericsError) as raised:
        here(write(FORWARD.format(call=f"{call}\n    main()")))
    uncaught(raised)
    assert capsys.readouterr().out == "mine 13\n"


def test_a_report_is_written_of_a_finding_in_other_clothes(
    here, write, capsys, tmp_path
):
    page = tmp_path / "finding.html"
    call = "try:\n        main()\n    except ArithmeticError as e: raise OSError from e"
    with pytest.raises(OSError, match=r"^$") as raised:
        here("--report", str(page), write(FORWARD.format(call=call)))
    uncaught(raised)
    told = capsys.readouterr().err
    assert "OSError" in told
    assert told.endswith(f"tfsafe: the report is {page}\n")
    assert "RealDiv" in page.read_text()


def test_without_a_finding_there_is_no_report(here, write, capsys, tmp_path):
    page = tmp_path / "finding.html"
    here("--report", str(page), write("print('done')"))
    assert f"no finding, so that {page} was not written" in capsys.readouterr().err
    assert not page.exists()


def test_the_options_reach_the_checks(here, write, monkeypatch):
    asked = {}
    monkeypatch.setattr(debugging, "enable_check_numerics", asked.update)
    rules = ["--exclude", "op:Log", "--exclude", "line:train.py"]
    here("--checks", "domain", "--strict", *rules, write(""))
    assert asked == {
        "checks": "domain", "strict": True, "exclude": ["op:Log", "line:train.py"],
    }  # fmt: skip


def test_without_checks_nothing_is_raised(here, write, capsys):
    here("--checks", "none", write(FORWARD.format(call="print(main().numpy())")))
    assert capsys.readouterr() == ("nan\n", "")


def test_without_tensorflow_it_says_so(here, write, capsys, monkeypatch):
    monkeypatch.setattr(_run, "_PACKAGES", ("nosuchpackage",))
    here(write("print('ran')"))
    ran, told = capsys.readouterr()
    assert ran == "ran\n"
    assert told.startswith("tfsafe: nothing was checked: the script imported neither")


def test_without_eager_execution_it_says_so(here, write, capsys, monkeypatch):
    path = write("")
    monkeypatch.setattr(
        tf.compat.v1, "executing_eagerly_outside_functions", lambda: False
    )
    here("--checks", "none", path)
    assert "the script switched eager execution off" in capsys.readouterr().err


def test_another_backend_of_keras_is_not_checked(here, write, capsys, monkeypatch):
    def refuse():
        raise ImportError("Received: backend 'jax'.")

    monkeypatch.setattr(_run._compat, "require_tensorflow_backend", refuse)
    here("--stabilize", write("print('ran')"))
    assert capsys.readouterr() == (
        "ran\n", "tfsafe: nothing is checked. Received: backend 'jax'.\n",
    )  # fmt: skip


NAIVE = """
    import tensorflow as tf

    weights = tf.Variable([[-60.0, 60.0]])

    @tf.function
    def step(x, labels):
        with tf.GradientTape() as tape:
            p = tf.nn.softmax(x @ weights)
            loss = -tf.reduce_mean(tf.reduce_sum(labels * tf.math.log(p), 1))
        weights.assign_sub(tape.gradient(loss, weights))
        return loss

    loss = step(tf.constant([[2.0]]), tf.constant([[1.0, 0.0]]))
    print(loss.numpy(), weights.numpy())
"""


def test_a_naive_loss_is_right_once_stabilised(here, write, capsys):
    path = write(NAIVE)
    with pytest.raises(tfsafe.NumericsError, match="Log"):
        here(path)
    debugging.disable_check_numerics()
    here("--stabilize", path)
    ran, told = capsys.readouterr()
    assert ran == "240.0 [[-58.  58.]]\n"
    assert "tfsafe: formulas were rewritten to their stable form:\n" in told
    assert re.search(rf"^  {path}:10 in step: .*log-of-softmax", told, re.M)


@pytest.mark.parametrize("home", ["keras", "tfsafe"])
def test_formulas_of_libraries_are_not_listed_as_those_of_the_script(
    home, here, write, capsys
):
    path = write(f"""
        from {home} import metrics
        import tensorflow as tf

        mean = metrics.Mean()

        @tf.function
        def {home}_step(x):
            loss = tf.math.log(tf.nn.softmax(x))
            mean.update_state(loss)
            return mean.result()

        {home}_step(tf.constant([1.0, 2.0]))
    """)
    here("--stabilize", path)
    told = capsys.readouterr().err.splitlines()
    heading, line, last = told[-3:]
    assert heading == "tfsafe: formulas were rewritten to their stable form:"
    assert line == f"  {path}:9 in {home}_step: log-of-softmax"
    assert last.startswith("  formulas of Keras and tfsafe: ")
    assert "divide-no-nan" in last


def test_a_line_that_is_not_finite_in_its_stable_form_is_said_to_be_so(
    here, write, capsys
):
    path = write("""
        import tensorflow as tf
        import tfsafe

        @tf.function
        def log_complement(x):
            y = tf.math.log(tf.nn.softmax(x))
            return y + tf.math.log(1.0 - tf.exp(x))

        try:
            log_complement(tf.constant([-1.0, 1.0]))
        except tfsafe.NumericsError:
            print("caught")
    """)
    here("--stabilize", path)
    ran, told = capsys.readouterr()
    assert ran == "caught\n"
    first, second = told.splitlines()[-2:]
    assert first == f"  {path}:7 in log_complement: log-of-softmax"
    assert second.startswith(f"  {path}:8 in log_complement: ")
    assert second.endswith(
        ", which is not finite in its stable form either: see the finding"
    )


def test_of_many_rewrites_the_first_lines_are_named(here, write, capsys):
    lines = [f"    x{n} = tf.math.log(tf.nn.softmax(x))" for n in range(23)]
    body = "\n".join(["@tf.function", "def many(x):", *lines, "    return x0"])
    used = "".join(f" + x{n}" for n in range(23))
    source = f"import tensorflow as tf\n{body.replace('return x0', f'return 0{used}')}"
    here("--stabilize", write(f"{source}\nmany(tf.constant([1.0, 2.0]))\n"))
    told = capsys.readouterr().err
    assert told.count("log-of-softmax") == 20
    assert told.endswith("  and 3 more lines\n")


def test_a_stable_script_has_nothing_to_rewrite(here, write, capsys):
    here("--stabilize", write("print('ran')"))
    told = capsys.readouterr()
    assert told.out == "ran\n"
    steps, formulas = told.err.splitlines()
    assert steps.startswith("tfsafe: no step was checked: ")
    assert formulas == "tfsafe: no formula of the script had to be rewritten."


FIT = """
    import os
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import numpy as np
    import tensorflow as tf

    # After TensorFlow is set up there is no choosing.
    cpu = tf.config.list_physical_devices("CPU")[0]
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)

    class Share(keras.layers.Layer):
        def call(self, x):
            return x / keras.ops.sum(x, axis=-1, keepdims=True)

    model = keras.Sequential([keras.Input((3,)), Share(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.ones((4, 3), "float32")
    x[2] = 0
    model.fit(x, np.ones(4), verbose=0)
    print("not reached")
"""


def test_fit_of_a_script_nobody_edits_stops_at_the_nonfinite_batch(write, tmp_path):
    path = write(FIT)
    result = process("--checks", "domain", "--report", "it.html", path, cwd=tmp_path)
    assert result.returncode == 1
    assert not result.stdout
    assert f"where: {path}:15 in call" in result.stderr
    assert "tfsafe.NumericsError: NaN from `RealDiv`" in result.stderr
    assert "keras/src" not in result.stderr
    assert "\ntfsafe: the report is it.html\n" in result.stderr
    assert "Share" in (tmp_path / "it.html").read_text()


def test_the_environment_that_a_script_sets_has_its_effect(write, tmp_path):
    source = """
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os.environ["KERAS_BACKEND"] = "tensorflow"
        os.environ["TF_USE_LEGACY_KERAS"] = "0"
        import sys
        assert not {"tensorflow", "keras", "numpy"} & set(sys.modules)
        from tensorflow import math, constant
        math.log(constant(1.0))
        print("reached", "tfsafe.debugging" in sys.modules)
    """
    result = process(write(source), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "reached True\n")
    (told,) = re.findall("^.*tfsafe.*$", result.stderr, re.MULTILINE)
    assert told.startswith("tfsafe: no step was checked: ")


@pytest.mark.parametrize(("checks", "is_said"), [("none", True), ("watch", False)])
def test_a_list_of_rewrites_without_checks_says_that_none_was_checked(
    checks, is_said, here, write, capsys
):
    path = write("""
        import tensorflow as tf

        @tf.function
        def log_complement(x):
            return tf.math.log(1.0 - tf.exp(x))

        log_complement(tf.constant([-1.0]))
    """)
    here("--checks", checks, "--stabilize", path)
    assert ("outside its domain" in capsys.readouterr().err) is is_said
