"""Every example runs as a user would run it, with few steps."""

import contextlib
import importlib.util
import io
import pathlib
import re
import subprocess
import sys

import pytest

from tests.support import forks
from tfsafe import __main__ as cli

ROOT = pathlib.Path(__file__).parent.parent


def run(*command: str, cwd: pathlib.Path) -> str:
    result = forks.run(*command, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_example_has_a_test():
    examples = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert examples == {
        "check_fit.py",
        "constant_column.py",
        "custom_loop.py",
        "find_the_nan.py",
        "long_sequences.py",
        "rescue_lstm.py",
        "stabilize_legacy.py",
    }


def test_a_constant_column_kills_the_model_behind_a_finite_loss():
    output = run("examples/constant_column.py", cwd=ROOT)
    losses = [float(each) for each in re.findall(r"loss: ([\d.]+)", output)]
    assert len(losses) == 3
    assert all(0.69 < each < 0.7 for each in losses)
    assert "first kernel: 16 of 64 weights are NaN" in output


@pytest.mark.slow
def test_the_demo(tmp_path):
    output = run("-m", "tfsafe", "demo", "--epochs", "1", cwd=tmp_path)
    assert_it_shows_the_failure_and_three_rescues(output)
    assert_it_names_the_line_the_cause_and_the_image(output)
    page = tmp_path / "rescue_lstm.html"
    assert output.rstrip().endswith(f"The page of the finding is {page}")
    assert "What to do" in page.read_text()
    assert (tmp_path / "rescue_lstm.png").stat().st_size > 20_000
    assert "</svg>" in (tmp_path / "rescue_lstm.svg").read_text()


def assert_it_shows_the_failure_and_three_rescues(output):
    rows = re.findall(r"^(\w.*?) +0 +([\d.]+) +(\d+) of 45 +(\w+)", output, re.M)
    assert [row[0] for row in rows] == [
        "plain Keras", "SafeOptimizer", "ops.divide", "both",
    ]  # fmt: skip
    assert [row[3] for row in rows] == ["NaN", "finite", "finite", "finite"]
    bad = [int(row[2]) for row in rows]
    # The four images without ink in a window, at most one bad step each; after the
    # first of them every step of the plain run is bad.
    assert bad[0] > bad[1] >= 1
    assert bad[1] <= 4
    assert bad[2:] == [0, 0]
    plain, *saved = [float(row[1]) for row in rows]
    assert plain < 0.15
    assert min(saved) > 0.5


def assert_it_names_the_line_the_cause_and_the_image(output):
    example = (ROOT / "examples" / "rescue_lstm.py").read_text().splitlines()
    line = 1 + example.index("        return (x - mean) / std")
    assert f"rescue_lstm.py:{line}" in output
    assert "return (x - mean) / std" in output
    assert "in the denominator" in output
    assert "tfsafe.ops.divide(" in output
    image = int(re.search(r"is image (\d+) of the data set", output)[1])
    assert image in {1264, 1394, 1585, 1626, 1631, 1648}


def test_the_command_line_shows_its_version_and_help(tmp_path):
    import tfsafe

    assert run("-m", "tfsafe", "--version", cwd=tmp_path).strip() == tfsafe.__version__
    assert "demo" in run("-m", "tfsafe", "--help", cwd=tmp_path)
    assert "--epochs" in run("-m", "tfsafe", "demo", "--help", cwd=tmp_path)


def test_an_unknown_command_is_refused(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "tfsafe", "fly"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2
    assert "'fly' is none of completion, coverage" in result.stderr


def test_the_demo_says_what_to_install(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "sklearn" else found(name, *rest),
    )
    with pytest.raises(SystemExit, match=r"needs scikit-learn.*tfsafe\[examples\]"):
        cli.main(["demo"])


@pytest.mark.parametrize("where", ["beside the package", "inside the package"])
def test_the_demo_is_found_in_a_checkout_and_in_a_wheel(where, tmp_path, monkeypatch):
    package = tmp_path / "site" / "tfsafe"
    home = package if where == "inside the package" else package.parent
    (home / "examples").mkdir(parents=True)
    script = "import sys; print('ran with', sys.argv[1:])"
    (home / "examples" / "rescue_lstm.py").write_text(script)
    monkeypatch.setattr(cli.tfsafe, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr(sys, "argv", ["tfsafe"])
    ran = io.StringIO()
    with contextlib.redirect_stdout(ran):
        cli.main(["demo", "--epochs", "2"])
    assert ran.getvalue() == "ran with ['--epochs', '2']\n"


def test_long_sequences_end_plain_lstms_and_not_wrapped_ones(tmp_path):
    example = str(ROOT / "examples" / "long_sequences.py")
    output = run(
        example, "--steps", "12", "--runs", "LSTM, clipped", "LSTM, safe", cwd=tmp_path
    )
    clipped, safe = re.findall(r"^LSTM, \w+ +0 +[\d.]+ +(\d+) +(.*?)  ", output, re.M)
    assert clipped == ("5", "NaN at 7")
    assert safe == ("1", "survives")
    assert (tmp_path / "long_sequences.png").stat().st_size > 20_000


def test_the_custom_loop_survives_and_the_checks_name_the_nonfinite_row(tmp_path):
    output = run(
        str(ROOT / "examples" / "custom_loop.py"), "--steps", "10", cwd=tmp_path
    )
    assert re.search(r"^Adam .* weights NaN$", output, re.M)
    assert re.search(r"^SafeOptimizer .* 1 of 10 +weights finite$", output, re.M)
    assert "NaN in argument `sequences`, first in row 29 of the batch" in output
    assert "16 variables were restored" in output


@pytest.mark.slow
def test_old_losses_are_right_once_stabilised(tmp_path):
    modes = ["eager", "graph", "XLA"]
    example = str(ROOT / "examples" / "stabilize_legacy.py")
    output = run(example, "--modes", *modes, cwd=tmp_path)
    plain, stabilized, total = re.search(
        r"^plain: (\d+) of \d+ right, stabilized: (\d+) of (\d+) right$", output, re.M
    ).groups()
    assert stabilized == total == str(24 * len(modes))
    assert int(plain) < int(total) / 10
    assert " rewrites in `focal`" in output
    assert "log-of-sigmoid" in output


@pytest.mark.slow
def test_five_failures_are_found_explained_and_fixed(tmp_path):
    example = ROOT / "examples" / "find_the_nan.py"
    output = run(str(example), cwd=tmp_path)
    stories = output.split("\n=== ")[1:]
    lines = example.read_text().splitlines()
    told = [
        ("NaN in argument `x`", "x", "Header row read as data"),
        ("-Inf from `Log`", "tf.math.log(y_pred)", "StableCrossEntropy"),
        ("in the gradient of `Sqrt`", "tf.math.reduce_std(h", "infinite at 0"),
        ("+Inf from `Exp`", "weights = tf.exp(scores)", "overflows float16"),
        ("+Inf from `Square`", "model.fit(", "_velocity`"),
    ]
    for number, (story, (what, source, why)) in enumerate(
        zip(stories, told, strict=True), 1
    ):
        assert story.startswith(f"{number}. ")
        assert what in story
        assert source in story
        assert why in story
        for line in re.findall(r"find_the_nan.py:(\d+) in ", story):
            assert source in lines[int(line) - 1]
        first, last = re.findall(r"^loss (\S+) -> ([^,\s]+)", story, re.M)[0]
        assert float(last) < float(first)


@pytest.mark.slow
def test_fit_is_checked_at_each_level_and_continues_as_configured(tmp_path):
    example = ROOT / "examples" / "check_fit.py"
    output = run(str(example), "--epochs", "2", cwd=tmp_path)
    levels = re.findall(r"^(\w+) +[\d.]+s +[\d.]+s +[\d.]+$", output, re.M)
    assert levels == ["none", "watch", "domain", "full"]
    stopped, went_on, ended = output.split("\n--- ")[1:]
    assert "NumericsError: NaN from `RealDiv`, first in row 8" in stopped
    for story in (stopped, went_on, ended):
        assert "return images / norm" in story
        assert "tfsafe.ops.divide(images, norm)" in story
    # Once in each of two epochs; or at the 32nd step of the first.
    assert "steps skipped: 2; steps done: 126 of 128" in went_on
    assert "steps done: 31 of 128" in stopped
    assert "steps skipped: 1; steps done: 31 of 128" in ended
