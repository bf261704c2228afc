"""Two replicas, one bad batch on one of them."""

import json

import pytest

from tests.callbacks import replicas
from tests.support import forks
from tests.support.oracle import assert_close


@pytest.fixture(scope="module")
def results() -> dict:
    process = forks.run("-m", replicas.__name__)
    assert process.returncode == 0, process.stderr[-3000:]
    return json.loads(process.stdout)


def test_a_step_that_is_nonfinite_on_one_replica_is_undone_on_both(results):
    result = results["monitor"]
    assert result["nonfinite_steps"] == 1
    assert result["is_finite"]
    assert_close(result["mae"], result["clean_mae"], dtype="float32")
    # The moving mean of a run that never saw the batch.
    assert result["error"] == 0


def test_a_training_on_replicas_goes_back(results):
    assert results["rollback"] == {"rollbacks": 1, "is_finite": True}


def test_the_row_of_a_replica_is_that_of_the_whole_batch(results):
    found = results["finding"]
    assert found["origin"] == "argument `x (replica 1)`"
    # Of rows 4 to 7, which replica 1 has.
    assert found["index"] == [1, 0]
    assert found["row"] == 5
    assert found["bad"] == [5]
    assert len(set(found["reached"])) == len(found["reached"])


def test_a_capsule_of_a_step_on_replicas_is_refused_with_what_to_do(results):
    assert "on several replicas cannot be saved" in results["finding"]["refusal"]
    assert "Train on one device" in results["finding"]["refusal"]


def test_the_first_step_of_replicas_may_make_the_variables(results):
    checked, plain = results["unbuilt"]
    assert checked == plain
