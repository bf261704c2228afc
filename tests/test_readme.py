"""The code of the README and of the documentation runs as written."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
GENERATED = {"api", "traps"}
PAGES = [
    ROOT / "README.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.parent.name not in GENERATED
    ),
]
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{place}")
    for page in PAGES
    for place, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    )
]


def test_the_readme_is_short_and_has_code_for_each_pillar():
    assert len(README.splitlines()) <= 150
    assert sum(param.id.startswith("README") for param in BLOCKS) == 5


@pytest.mark.parametrize("block", BLOCKS)
def test_code_runs_as_written(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # From a file, so that an error can quote the line.
    script = tmp_path / "page.py"
    script.write_text(block)
    exec(compile(block, script, "exec"), {"__name__": "__page__"})


@pytest.mark.parametrize(
    "text", ["3.10 to 3.13", "TensorFlow 2.16 and later", "Keras 3.3 and later"]
)
def test_the_readme_names_the_supported_versions(text):
    assert text in README.replace("\n", " ")
