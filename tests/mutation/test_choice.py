"""The tests of a module come first, and each change that is listed can be made."""

import itertools

import pytest

from tests.mutation import equivalent
from tests.mutation.__main__ import every_change
from tests.mutation.choice import test_files as files_of
from tests.mutation.runs import ROOT


@pytest.mark.parametrize(
    ("module", "file"),
    [
        ("ops/linalg/spectral.py", "ops/test_spectral.py"),
        ("ops/formulas/limits/removable.py", "ops/test_formulas_of_limits.py"),
        ("rewriting/rules/masks/masking.py", "rewriting/test_masking_rules.py"),
        (
            "rewriting/rules/differences/distances.py",
            "rewriting/test_distance_rules.py",
        ),
        ("debugging/explain/training/history.py", "debugging/test_history.py"),
    ],
)
def test_the_tests_of_a_module_come_first(module, file):
    assert files_of(ROOT, f"tfsafe/{module}")[0] == f"tests/{file}"


def test_each_change_that_is_listed_can_be_made_and_has_a_reason():
    every = itertools.chain.from_iterable(every_change().values())
    listed = equivalent.reasons()
    assert set(listed) <= {equivalent.key(change) for change in every}
    assert all(listed.values())
