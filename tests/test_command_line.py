"""The commands `run`, `demo`, `coverage` and `completion`: help, last line, log."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import warnings

import pytest
import tensorflow as tf

import tfsafe
from tests.support.warned import ours
from tfsafe import __main__ as cli, _after_import, debugging
from tfsafe.debugging.checks.tally import TALLY
from tfsafe.errors import NumericsError
from tfsafe.rewriting.targets import switch


@pytest.mark.parametrize(
    "command", ["", "run", "demo", "coverage", "completion", "replay"]
)
def test_help_needs_no_tensorflow(command):
    code = (
        "import sys\n"
        "from tfsafe.__main__ import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'tensorflow', 'keras', 'numpy'} & set(sys.modules)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, *command.split(), "--help"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert shown.startswith(f"usage: {' '.join(['tfsafe', *command.split()])} ")


def test_without_a_command_the_help_is_printed(capsys):
    cli.main([])
    assert "{completion,coverage,demo,replay,run}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["train.py", "--epochs", "3"], "run train.py --epochs 3"),
        (["coverge", "Softmax"], "coverage"),
        (["--checks", "full", "run", "train.py"], "run --checks full train.py"),
    ],
)
def test_an_unknown_command_is_answered_with_what_is_meant(words, meant, capsys):
    with pytest.raises(SystemExit):
        cli.main(words)
    assert f"Did you mean `tfsafe {meant}`?" in capsys.readouterr().err


def test_the_demo_has_the_options_of_its_example(capsys):
    with pytest.raises(SystemExit):
        cli.demo(["--help"])
    example = (cli._examples() / "rescue_lstm.py").read_text()
    options = re.findall(r'add_argument\(\s*"(--\w+)"', example)
    assert set(re.findall(r"--\w+", capsys.readouterr().out)) == {"--help", *options}


def test_coverage_of_names(capsys):
    cli.main(["coverage", "Softmax", "keras.layers.Dense"])
    found = [str(tfsafe.coverage(n)) for n in ("Softmax", "keras.layers.Dense")]
    assert capsys.readouterr().out.splitlines() == "\n".join(found).splitlines()
    with pytest.raises(SystemExit):
        cli.main(["coverage", "Softmx"])
    assert "Did you mean 'Softmax'" in capsys.readouterr().err


def test_bash_completes_commands_and_options(capsys):
    bash = shutil.which("bash") or pytest.skip("there is no bash")
    cli.main(["completion", "bash"])
    script = capsys.readouterr().out
    for words, expected in (("co", "completion coverage"), ("run --st", "--st")):
        *before, last = words.split()
        line = (
            f"{script}\nCOMP_WORDS=(tfsafe {words}); COMP_CWORD={len(before) + 1}\n"
            '_tfsafe; echo "${COMPREPLY[@]}"'
        )
        told = subprocess.run([bash, "-c", line], capture_output=True, text=True)
        assert told.stdout.split()[0].startswith(expected.split()[0])
        assert all(word.startswith(last) for word in told.stdout.split())


FUNCTION = "f = tf.function(tf.math.log)\n"
CALLS = f"{FUNCTION}for _ in range(3): f(tf.constant(2.0))\n"
LOOP = """
w = tf.Variable([1.0, 2.0])
for _ in range(2):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
    w.assign_sub(0.1 * tape.gradient(loss, w))
"""
NO_STEP = (
    "no step was checked: no call of a tf.function, training step or gradient. The "
    "results of eager operations are finite.\n"
)
CAUGHT = """
try:
    f(tf.constant(-1.0))
except tfsafe.NumericsError:
    pass
"""


@pytest.mark.parametrize(
    ("source", "options", "last"),
    [
        (f"{FUNCTION}f(tf.constant(2.0))", [], "1 step checked, all finite\n"),
        (LOOP, [], "2 steps checked, all finite\n"),
        (f"{LOOP}{FUNCTION}f(tf.constant(2.0))", [], "2 steps checked, all finite\n"),
        (f"{CALLS}{LOOP}", [], "3 steps checked, all finite\n"),
        (LOOP, ["--checks", "none"], ""),
        (f"{FUNCTION}f(tf.constant(2.0)){CAUGHT}", [], ""),
        ("", [], NO_STEP),
        ("print(1 / tf.constant(2.0))", [], NO_STEP),
        ("raise SystemExit(0)", [], NO_STEP),
        (f"{LOOP}print(1 / tf.constant(0.0))", [], "2 steps checked, all finite\n"),
        (
            f"{LOOP}share = (w - w) / tf.reduce_sum(w - w)",
            [],
            "2 steps checked, all finite. Outside of them, `RealDiv` at script.py:9 "
            "makes NaN, which reached none: `--strict` explains it\n",
        ),
    ],
    ids=[
        "function",
        "loop",
        "both",
        "gradients-after",
        "no-checks",
        "caught",
        "nothing",
        "eager",
        "exit",
        "measure",
        "nan",
    ],
)
def test_a_clean_run_ends_with_the_number_of_steps(
    source, options, last, script, capsys
):
    TALLY.failed = 5  # of a run before
    with contextlib.suppress(SystemExit):
        script(source, *options)
    assert capsys.readouterr().err == (f"tfsafe: {last}" if last else "")


@pytest.mark.parametrize(
    "choice",
    [
        "tf.argmax(p)",
        "tf.random.stateless_categorical(tf.math.log(p)[None], 1, [0, 1])",
    ],
)
def test_a_script_without_steps_fails_for_a_choice_among_nan(choice, script):
    source = f"p = tf.constant([{{}}, 1.0])\np = p / p\nprint({choice}.numpy())"
    script(source.format("2.0"))
    with pytest.raises(NumericsError, match="RealDiv"):
        script(source.format("0.0"))


@pytest.mark.parametrize("end", ["", "print(y.numpy())", "tf.print(y)", "exit(0)"])
def test_a_script_without_steps_fails_for_what_it_computes(end, script):
    with pytest.raises(NumericsError, match="Log") as caught:
        script(f"x = tf.constant(-1.0)\ny = tf.math.log(x)\n{end}")
    (finding,) = caught.value.findings
    assert finding.site.line == 4
    assert caught.value.reached == ("`y`",)


INFINITIES = {
    "psnr": ("x = tf.zeros([1, 4, 4, 3])\nprint(tf.image.psnr(x, x, 1.0))", "Log", 4),
    "printed": ("print(tf.math.log(0.0))", "Log", 3),
    "kept": ("x = 1 / tf.constant([0.0, 1.0])\nprint(x.numpy())", "RealDiv", 3),
    "empty": ("print(tf.reduce_min(tf.zeros([0])))", "Min", 3),
    "mask": ("bias = tf.math.log(tf.eye(2))\nprint(bias)", "Log", 3),
    "many": ("x = [tf.math.log(0.0) for _ in range(30)]", "Log", 3),
    "variable": ("v = tf.Variable(1.0)\nv.assign_add(1 / tf.zeros([]))", "RealDiv", 4),
}


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
@pytest.mark.parametrize("kind", INFINITIES)
def test_an_infinity_that_reaches_no_step_is_said_at_the_end(
    kind, checks, script, capsys
):
    source, operation, line = INFINITIES[kind]
    script(source, "--checks", checks)
    said = NO_STEP.removesuffix("finite.\n") + (
        f"free of NaN. `{operation}` at script.py:{line} makes an infinity, which may "
        "be meant: `--strict` explains it\n"
    )
    assert capsys.readouterr().err == f"tfsafe: {said}"


def test_an_infinity_that_a_metric_is_given_is_said_at_the_end(script, capsys):
    script(
        "tf.function(tf.identity)(1.0)\nimport keras\nm = keras.metrics.Mean()\n"
        "m.update_state(tf.math.log(0.0))\nprint(m.result())"
    )
    assert capsys.readouterr().err == (
        "tfsafe: 1 step checked, finite but for measures. `Log` at script.py:6 makes "
        "an infinity, which is in variable `mean/total` alone: `--strict` explains it\n"
    )


RIGHT_INFINITIES = {
    "psnr": (
        "f = tf.function(tf.image.psnr)\nx = tf.zeros([1, 4, 4, 3])\n"
        "print(f(x, x, 1.0))",
        "Log",
        5,
    ),
    "empty": ("tf.function(tf.reduce_min)(tf.zeros([0]))", "Min", 3),
    "mask": (
        "f = tf.function(lambda m: tf.where(m > 0, 0.0, -float('inf')))\nf(tf.eye(2))",
        "Const",
        3,
    ),
    "start": (
        "@tf.function\ndef f(x):\n  best = tf.constant(float('inf'))\n  for e in x:\n"
        "    best = tf.minimum(best, e)\n  return best\nf(tf.zeros([0]))",
        "Const",
        5,
    ),
    "metric": (
        "import keras\ndef psnr(y, p): return tf.image.psnr(y, p, 1.0)\n"
        "m = keras.Sequential([keras.Input((4, 4, 3)), keras.layers.Conv2D(3, 1)])\n"
        "m.compile(loss='mse', metrics=[psnr])\nx = tf.zeros([2, 4, 4, 3])\n"
        "print(m.evaluate(x, x, batch_size=1, verbose=0))",
        "Log",
        4,
    ),
}


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
@pytest.mark.parametrize("kind", RIGHT_INFINITIES)
def test_an_infinity_that_a_function_should_return_is_said_at_the_end(
    kind, checks, script, capsys
):
    source, operation, line = RIGHT_INFINITIES[kind]
    script(source, "--checks", checks)
    count = "2 steps" if kind == "metric" else "1 step"
    assert capsys.readouterr().err == (
        f"tfsafe: {count} checked, free of NaN. `{operation}` at script.py:{line} "
        "makes an infinity, which may be meant: `--strict` explains it\n"
    )


_DISTANCES = """
d = tf.linalg.set_diag(tf.fill([3, 3], float("inf")), tf.zeros(3))
d = tf.tensor_scatter_nd_update(d, [[0, 1], [1, 2]], [1.0, 2.0])
w = tf.Variable(0.0)
@tf.function
def shortest(d):
    for k in tf.range(3):
        d = tf.minimum(d, d[:, k, None] + d[None, k, :])
    {}
print(shortest(d))
"""


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
@pytest.mark.parametrize("end", ["return d", "return tf.math.top_k(d, 2).values"])
def test_infinities_that_an_argument_hands_on_are_said_at_the_end(
    end, checks, script, capsys
):
    script(_DISTANCES.format(end), "--checks", checks)
    ran, said = capsys.readouterr()
    assert "inf" in ran
    assert said == (
        "tfsafe: 1 step checked, free of NaN. The argument `d` at script.py:10 holds "
        "an infinity, which may be meant: `--strict` explains it\n"
    )


@pytest.mark.parametrize(
    "end",
    [
        "return {'loss': d}",
        "return tf.reduce_mean(d)",
        "return d - d",
        "w.assign(d[1, 0])\n    return d",
        "w.assign(1.0)\n    return d",
    ],
    ids=["loss", "mean", "nan", "variable", "training"],
)
def test_other_results_of_an_infinite_argument_are_a_finding(end, script):
    with pytest.raises(NumericsError, match=r"argument `d`|`Sub`"):
        script(_DISTANCES.format(end))


def test_under_strict_an_infinite_argument_is_a_finding(script):
    with pytest.raises(NumericsError, match="argument `d`"):
        script(_DISTANCES.format("return d"), "--strict")


WRITTEN = {
    "absent": (
        "@tf.function\ndef shares(total, count):\n"
        "    return tf.where(count > 0, total / count, float('nan'))\n"
        "print(shares(tf.constant([1.0, 0.0]), tf.constant([2.0, 0.0])))",
        5,
    ),
    "lagged": (
        "@tf.function(jit_compile=True)\ndef lagged(x):\n"
        "    gap = tf.fill([2], float('nan'))\n"
        "    return {'lag': tf.concat([gap, x[:-2]], 0)}\n"
        "print(lagged(tf.range(4.0)))",
        5,
    ),
    "padded": (
        "f = tf.function(lambda x: tf.pad(x, [[1, 0]], constant_values=float('nan')))\n"
        "print(f(tf.range(4.0)))",
        3,
    ),
}


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
@pytest.mark.parametrize("kind", WRITTEN)
def test_nan_that_the_program_writes_is_said_at_the_end(kind, checks, script, capsys):
    source, line = WRITTEN[kind]
    script(source, "--checks", checks)
    ran, said = capsys.readouterr()
    assert "nan" in ran
    assert said == (
        "tfsafe: 1 step checked, finite but for NaN that the program writes, `Const` "
        f"at script.py:{line}: `--strict` explains it\n"
    )


@pytest.mark.parametrize("kind", WRITTEN)
def test_under_strict_nan_that_the_program_writes_is_a_finding(kind, script):
    with pytest.raises(NumericsError):
        script(WRITTEN[kind][0], "--strict")


_NAN = "NAN = float('nan')\nw = tf.Variable(1.0)\n@tf.function\ndef f(x):\n"


@pytest.mark.parametrize(
    "source",
    [
        f"{_NAN}    loss = tf.where(x > 0, x, NAN)\n    return {{'loss': loss}}",
        f"{_NAN}    w.assign(tf.where(x > 0, x, NAN))\n    return x",
        f"{_NAN}    w.assign(1.0)\n    return tf.where(x > 0, x, NAN)",
        f"{_NAN}    return x + tf.constant([1.0, NAN])",
        f"{_NAN}    return tf.exp(tf.where(x > 0, x, NAN))",
        f"{_NAN}    return tf.where(x > 0, NAN, x / x)",
        f"{_NAN}    return tf.where(x > 0, x, x / x) + tf.where(x > 0, x, NAN)",
        f"{_NAN}    return tf.where([True, False], tf.where(x > 0, x, NAN), x / x)",
    ],
    ids=[
        "loss",
        "variable",
        "training",
        "data",
        "computed",
        "other",
        "both",
        "beside",
    ],
)
def test_other_nan_of_a_function_is_a_finding(source, script):
    with pytest.raises(NumericsError):
        script(f"{source}\nf(tf.constant(0.0))")


def test_without_a_last_line_each_infinity_of_a_function_is_a_finding():
    x = tf.zeros([1, 4, 4, 3])
    with debugging.check_numerics(), pytest.raises(NumericsError, match="Log"):
        tf.function(tf.image.psnr)(x, x, 1.0)


@pytest.mark.parametrize("kind", RIGHT_INFINITIES)
def test_under_strict_such_an_infinity_is_a_finding(kind, script):
    source, operation, line = RIGHT_INFINITIES[kind]
    with pytest.raises(NumericsError) as caught:
        script(source, "--strict")
    found = caught.value.findings[0]
    assert (found.op_type, found.site.line) == (operation, line)


@pytest.mark.parametrize(
    "body",
    [
        "return tf.math.log(x)",
        "return -tf.reduce_mean(tf.where(x > 0, x, -float('inf')))",
        "return {'loss': tf.reduce_min(x[1:])}",
        "y = tf.image.psnr(x * x, x * x, 1.0)\n  return y - y",
        "w.assign(tf.reduce_min(tf.reshape(x, [-1])[:0]))",
        "return tf.reduce_sum(tf.reduce_min(x[1:], 0))",
    ],
    ids=["log", "mean", "loss", "nan", "weight", "sum"],
)
def test_another_infinity_of_a_function_is_a_finding(body, script):
    with pytest.raises(NumericsError):
        script(
            f"w = tf.Variable(1.0)\n@tf.function\ndef f(x):\n  {body}\n"
            "f(tf.zeros([1, 4, 4, 3]))"
        )


@pytest.mark.parametrize("kind", INFINITIES)
def test_under_strict_an_infinity_is_a_finding(kind, script):
    source, operation, line = INFINITIES[kind]
    with pytest.raises(NumericsError) as caught:
        script(source, "--strict")
    (finding,) = caught.value.findings
    assert (finding.op_type, finding.site.line) == (operation or "Log", line)


def test_an_excluded_infinity_is_not_mentioned(script, capsys):
    script("print(tf.math.log(0.0))", "--exclude", "op:Log")
    assert capsys.readouterr().err == f"tfsafe: {NO_STEP}"


@pytest.mark.parametrize(
    "end",
    [
        "print(x - x)",
        "y = [tf.math.log(0.0) for _ in range(30)]\nz = x - x",
        "v = tf.Variable(1.0)\nv.assign(x)\nv.assign_sub(x)",
        "w = tf.Variable(0.0)\nwith tf.GradientTape() as t: y = tf.math.log(w)\n"
        "t.gradient(y, w)",
        "w = tf.Variable(1.0)\nwith tf.GradientTape() as t: y = w * w\n"
        "w.assign_sub(t.gradient(y, w) * x)",
        "w = tf.Variable(1.0)\nw.assign(x)\nwith tf.GradientTape() as t: y = w * w\n"
        "t.gradient(y, w)",
        "tf.function(tf.identity)(1.0)\ntf.Variable(1.0).assign(x)",
    ],
    ids=["nan", "many", "variable", "loss", "update", "weight", "after-a-step"],
)
def test_an_infinity_that_makes_nan_or_reaches_a_step_is_a_finding(end, script):
    with pytest.raises(NumericsError, match="Log"):
        script(f"x = tf.math.log(tf.zeros([]))\n{end}")


def test_a_value_that_a_script_uses_is_not_its_result(script):
    script("""
        x = tf.math.log(tf.constant([0.0, 1.0]))
        print(tf.where(tf.math.is_inf(x), 0.0, x))
    """)


def test_a_script_that_fails_itself_keeps_its_exit_code(script, capsys):
    with pytest.raises(SystemExit) as caught:
        script("tf.math.log(tf.constant(0.0))\nraise SystemExit(3)")
    assert caught.value.code == 3
    assert not capsys.readouterr().err


def test_the_start_up_log_is_dropped_and_all_else_is_kept(capfd, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    with _after_import.quiet():
        os.write(2, b"WARNING: All log messages before absl::InitializeLog()\n")
        os.write(2, b"I0000 00:00:1795380610.588065 1552 port.cc:153] oneDNN\n")
        os.write(2, b"a message\n")
        sys.stderr.write("another one\n")
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
    os.write(2, b"I0000 later\n")
    lines = capfd.readouterr().err.splitlines()
    assert sorted(lines) == ["I0000 later", "a message", "another one"]


def test_a_log_level_that_the_user_chose_stays(capfd, monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    with _after_import.quiet():
        os.write(2, b"I0000 00:00:1795380610.588065 1552 port.cc:153] oneDNN\n")
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
    assert "oneDNN" in capfd.readouterr().err


def test_stable_forms_in_branches_are_checked_and_differentiated(script, capsys):
    with contextlib.ExitStack() as open_:
        open_.callback(switch.disable_stabilize)
        told = open_.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        script(
            """
            w = tf.Variable(1.5)

            @tf.function
            def chosen(i, x):
                y = tf.switch_case(i, [lambda: tf.sqrt(x), lambda: tf.math.log(x) * w])
                return y + tf.cond(
                    x > 1.0,
                    lambda: tf.cond(i > 0, lambda: tf.math.log(x) * w, lambda: x),
                    lambda: -x,
                )

            with tf.GradientTape() as tape:
                y = chosen(tf.constant(1), tf.constant(2.0))
            print(f"{tape.gradient(y, w) - 2 * tf.math.log(2.0):.6f}")
            """,
            "--checks",
            "full",
            "--stabilize",
        )
    assert not ours(told)
    assert float(capsys.readouterr().out) == 0.0
