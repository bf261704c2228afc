"""A change is imported in the place of its module, and no file is written."""

import importlib.util
import itertools

from tests.mutation import runs
from tests.mutation.changes import changes
from tests.support import pairwise

PATH = "tests/support/pairwise.py"


def test_a_module_is_imported_as_if_its_file_were_changed():
    source = (runs.ROOT / PATH).read_text()
    (change,) = (each for each in changes(PATH, source) if each.before == "2")
    first, last = change.statement
    assert "min(2, len(placed))" in "\n".join(source.splitlines()[first - 1 : last])
    finder = runs.Changed(change)
    assert finder.find_spec("tests.support.modes") is None
    spec = finder.find_spec(pairwise.__name__)
    changed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(changed)
    assert changed.__file__ == pairwise.__file__
    # Of triples each is shown by itself alone.
    every = list(itertools.product("ab", "12", "xy"))
    assert (len(pairwise.pairwise(every)), len(changed.pairwise(every))) == (4, 8)
