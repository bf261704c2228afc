"""Two workers, each a process of its own, one bad gradient: one decision."""

import json

import pytest

from tests.optimizers import workers
from tests.support.processes import free_ports, outputs


@pytest.fixture(scope="module")
def results() -> list[dict]:
    """Returns what each worker has."""
    ports = free_ports(2)
    commands = [["-m", workers.__name__, str(index), *ports] for index in range(2)]
    return [json.loads(output) for output in outputs(commands, limit=120)]


KINDS = ["replace/float32", "replace/float16", "skip/float32", "skip/float16"]


@pytest.fixture
def summed(results) -> None:
    """Skips where plain Keras trains each worker by itself."""
    if results[0]["reduced_gradient"] != 2:
        pytest.skip("This Keras sums no gradients: its replicas drift apart anyway.")


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_is_nonfinite_on_one_worker_is_nonfinite_on_both(results, kind):
    for result in results:
        found = result[kind]
        assert (found["steps"], found["nonfinite_steps"]) == (3, 1)
        assert found["last_nonfinite_variables"] == ["w"]
        assert found["iterations"] == (2 if "skip" in kind else 3)


@pytest.mark.usefixtures("summed")
@pytest.mark.parametrize("kind", KINDS)
def test_both_workers_have_the_same_weights(results, kind):
    # A step with both gradients is 0.125. Of the bad one, "replace" keeps three.
    expected = [0.75, 0.75] if "skip" in kind else [0.6875, 0.625]
    assert [result[kind]["weights"] for result in results] == [expected] * 2


def test_an_outlier_on_one_worker_is_skipped_on_both(results):
    moved = 1 - 4 * 0.0625 * results[0]["reduced_gradient"]
    for result in results:
        assert result["outlier"] == {"weights": [moved], "outlier_steps": 1}
