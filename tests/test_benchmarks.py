"""What `make bench` writes."""

import pathlib
import re
import runpy
import sys

import pytest
import tensorflow as tf

from benchmarks import __main__ as bench, _results, _timing

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs benchmarks that take no time; returns the file of results."""

    def call(figure, origin, *arguments):
        rows = ["| step | ratio |", "|---|---|", f"| LSTM | watch | {figure} [1.00] |"]
        monkeypatch.setattr(bench, "measured", lambda *_: (rows, 2.0, 30.0))
        monkeypatch.setattr(_results, "origin", lambda is_trial: origin)
        monkeypatch.setattr(bench, "peers_origin", lambda *_: f"{origin}\n- torch")
        output = tmp_path / "RESULTS.md"
        given = ["--output", str(output), "--peers", sys.executable, *arguments]
        monkeypatch.setattr(sys, "argv", ["", *given])
        bench.main()
        return output

    return call


def test_one_benchmark_replaces_its_part_of_the_results(run):
    run("1.00", "- Machine: A\n- Date: yesterday")
    output = run("7.00", "- Machine: B\n- Date: today", "--only", "checks", "ops")
    parts = _results.read(output)
    assert list(parts) == list(bench.BENCHMARKS)
    for name, part in parts.items():
        is_new = name in ("checks", "ops")
        assert ("7.00" in part.body, "1.00 [" in part.body) == (is_new, not is_new)
        assert part.origin.startswith(f"- Machine: {'B' if is_new else 'A'}\n- Date: ")
        assert part.body.endswith("\n\n2 s; peak memory 30 MB.")
    assert "| 7.00 [1.00] | 1.03, **missed** |" in parts["checks"].body
    assert parts["peers"].origin.endswith("\n- torch")
    text = output.read_text()
    assert text.index("Machine: A") < text.index("\n## ")
    # At the head, and in the part that was measured with other packages.
    assert text.count("Machine: A") == 2
    assert text.count("Machine: B") == 2
    assert "## checks\n\n- Machine: B\n- Date: today\n\n| step | ratio | aim |" in text


def test_a_part_that_was_measured_again_where_the_others_were_says_nothing(run):
    whole = run("1.00", "- Machine: A").read_text()
    run("7.00", "- Machine: B", "--only", "checks")
    assert run("1.00", "- Machine: A", "--only", "checks").read_text() == whole


def test_without_torch_and_jax_their_part_is_skipped(run, capsys):
    output = run("1.00", "- Machine: A")
    before = output.read_text()
    run("1.00", "- Machine: A", "--peers", "nowhere/python")
    assert output.read_text() == before
    assert capsys.readouterr().out.count("peers is skipped: ") == 1
    output.unlink()
    run("1.00", "- Machine: A", "--peers", "")
    assert _results.read(output).keys() == bench.BENCHMARKS.keys() - {"peers"}


def test_the_origin_of_the_peers_names_the_packages_of_their_python(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(bench, "PEERS", ("pytest", "numpy"))
    found = bench.peers_origin(sys.executable, is_trial=True)
    assert re.search(r"\n- Versions: Python 3\S+, pytest \S+, numpy \S+\n", found)
    assert found.splitlines()[-1].startswith("- A trial ")


def test_the_last_array_is_read_whatever_its_shape_and_dtype():
    values = [1.0, {"a": 2.0, "b": (0, tf.fill([2, 3], tf.constant(3.0, tf.bfloat16)))}]
    assert _timing.read(values) == 3.0
    assert _timing.read(values[0]) == 1.0
    assert _timing.read(tf.constant(4.0)) == 4.0


def test_the_costs_in_findings_are_those_of_the_results():
    made = runpy.run_path(str(ROOT / "docs" / "cost.py"))["module"]()
    old = (ROOT / "tfsafe" / "_report" / "costs.py").read_text(encoding="utf-8")
    assert old == made, "outdated: run `python docs/cost.py`"


def test_the_origin_names_machine_versions_and_date_and_a_trial():
    found = _results.origin(is_trial=False)
    assert re.fullmatch(
        r"- Machine: .+, \d+ cores, \d+ GiB\n"
        r"- Versions: Python 3\S+, tensorflow 2\S+, keras 3\S+, numpy \S+\n"
        r"- Date: \d{4}-\d\d-\d\d",
        found,
    )
    assert _results.origin(is_trial=True).startswith(f"{found}\n- A trial ")
