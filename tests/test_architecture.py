"""Checks of the house itself: private names, the lazy import, pinned versions."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
SOURCES = sorted((ROOT / "tfsafe").rglob("*.py"))
PRIVATE = re.compile(r"tensorflow\.python|keras\.src|__internal__")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_private_names_stand_in_the_compat_package_alone(path):
    if path.parent.name == "_compat":
        return
    assert not PRIVATE.search(path.read_text()), path


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_readable_in_one_sitting(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= 400, f"{path} has {len(lines)} lines; split it by topic."


def test_importing_tfsafe_loads_neither_tensorflow_nor_keras_nor_numpy():
    program = (
        "import sys, tfsafe; assert tfsafe.__version__; tfsafe.NumericsError('x'); "
        "print({'tensorflow', 'keras', 'numpy'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


def test_an_unknown_name_is_refused_by_name():
    import tfsafe

    with pytest.raises(AttributeError, match="'tfsafe' has no attribute 'safe_loss'"):
        _ = tfsafe.safe_loss
    assert "NumericsError" in dir(tfsafe)


def test_pinned_tool_versions_are_the_same_everywhere():
    pinned = dict(re.findall(r"^ +([\w-]+) == ([\d.]+)$", _read("setup.cfg"), re.M))
    assert set(pinned) == {"ruff", "mypy", "import-linter"}
    hooks = set(re.findall(r"([\w-]+)==([\d.]+)", _read(".pre-commit-config.yaml")))
    assert hooks == set(pinned.items())


def test_the_oldest_versions_tested_are_those_promised():
    bounds = dict(re.findall(r"(tensorflow|keras) >= ([\d.]+)", _read("setup.cfg")))
    tested = dict(
        re.findall(r"(tensorflow|keras)==([\d.]+)", _read("tests/oldest.txt"))
    )
    assert {name: tested[name].rpartition(".")[0] for name in tested} == bounds


def _read(name: str) -> str:
    return (ROOT / name).read_text()
