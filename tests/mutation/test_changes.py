"""The changes are of the kinds that the tests of formulas have to notice."""

import ast

import pytest

from tests.mutation.changes import changes

SOURCE = '''\
"""A module with 1 number in its docstring."""
LIMIT = 3


def f(x: int = 5, *, keep=True):
    """Returns 1."""
    return {}
'''


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x + y", {"x - y"}),
        ("x < y", {"x <= y"}),
        ("x and y", {"x or y"}),
        ("-x", {"x"}),
        ("not x", {"x"}),
        ("2.5", {"5.0"}),
        ("1", {"0"}),
        ("True", {"False"}),
        ("tf.where(x, y, z)", {"tf.where(x, z, y)"}),
        ("tf.maximum(x, y)", {"tf.minimum(x, y)"}),
        ("f'{x + 1}'", set()),
    ],
)
def test_an_expression_is_changed_and_nothing_else(before, after):
    source = SOURCE.format(before)
    found = changes("m.py", source)
    assert {change.after for change in found} == after
    for change in found:
        changed = change.apply(source.encode()).decode()
        assert changed == SOURCE.format(f"({change.after})")


def test_equal_changes_of_equal_lines_are_numbered():
    found = changes("m.py", SOURCE.format("x[1, 1]\n    return x[1, 1]"))
    assert [change.words for change in found] == [
        "1  ->  0",
        *(f"1  ->  0  ({number})" for number in (2, 3, 4)),
    ]
    assert len({str(change) for change in found}) == 4


def test_an_annotation_is_not_changed():
    found = changes("m.py", SOURCE.format("x\n    y: A | B = -x"))
    assert [change.words for change in found] == ["-x  ->  x"]


class _Tree:
    def __deepcopy__(self, memo):
        raise AssertionError("the tree of another file was copied")


def test_other_trees_that_hang_on_a_node_are_left_alone(monkeypatch):
    # Python has one `ast.Load()`, to which IPython gives the parent that it saw last.
    shared = ast.parse("x").body[0].value.ctx
    monkeypatch.setattr(shared, "parent", _Tree(), raising=False)
    (change,) = changes("m.py", SOURCE.format("x + y"))
    assert change.after == "x - y"


def test_no_line_moves():
    source = SOURCE.format("(x +\n            y)")
    (change,) = changes("m.py", source)
    changed = change.apply(source.encode()).decode()
    assert changed.count("\n") == source.count("\n")
    compile(changed, "m.py", "exec")
