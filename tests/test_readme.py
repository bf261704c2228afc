"""The README's code runs as written, and what it says of versions is true."""

import pathlib
import re

import pytest

README = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)


def test_the_readme_has_code_for_each_pillar():
    assert len(BLOCKS) == 5


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_code_in_the_readme_runs_as_written(block, tmp_path):
    # From a file, so that an error can quote the line.
    script = tmp_path / "readme.py"
    script.write_text(block)
    exec(compile(block, script, "exec"), {"__name__": "__readme__"})


@pytest.mark.parametrize(
    "text", ["3.10 to 3.13", "TensorFlow 2.16 and later", "Keras 3.3 and later"]
)
def test_the_readme_names_the_supported_versions(text):
    assert text in README.replace("\n", " ")
