"""Two workers, each a process of its own, one bad gradient: one decision."""

import json
import socket
import subprocess
import sys

import pytest

from tests.optimizers import workers

TIMEOUT = 120


@pytest.fixture(scope="module")
def results() -> list[dict]:
    """Returns what each worker has."""
    ports = [str(port) for port in free_ports(2)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", workers.__name__, str(index), *ports],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=TIMEOUT) for process in processes]
    finally:
        # One that waits for the other would wait for ever.
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors[-3000:]
    return [json.loads(output) for output, _ in outputs]


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


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
