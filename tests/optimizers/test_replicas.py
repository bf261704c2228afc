"""Two replicas, one bad gradient: one decision."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import replicas
from tests.support import forks
from tests.support.oracle import assert_close
from tfsafe.optimizers import SafeOptimizer

KINDS = ["plain", "loss_scale", "eager"]


@pytest.fixture(scope="module")
def results() -> dict:
    process = forks.run("-m", replicas.__name__)
    assert process.returncode == 0, process.stderr[-3000:]
    assert "AutoGraph could not transform" not in process.stderr
    return json.loads(process.stdout)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["replace", "skip"])
def test_every_replica_counts_the_step_that_is_nonfinite_on_one(results, policy, kind):
    result = results[f"{policy}/{kind}"]
    assert result["steps"] == 3
    assert result["nonfinite_steps"] == 1
    assert result["last_nonfinite_step"] == 2
    assert result["last_nonfinite_elements"] == {"kernel": 1}
    assert result["iterations"] == {"replace": 3, "skip": 2}[policy]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_is_nonfinite_on_one_replica_is_skipped_on_both(results, kind):
    result = results[f"skip/{kind}"]
    # Two steps of SGD(0.1, momentum=0.5) with the gradients of both replicas: -0.1 g
    # and -0.15 g, where g = 2, or 1 where Keras leaves the replicas unreduced.
    gradient = results["reduced_gradient"]
    moved = 1 - 0.25 * gradient
    assert_close(result["kernel"], [[moved] * 3] * 2, dtype="float32")
    third = [table[2] for table in result["table"]]
    assert_close(third, [[moved] * 2] * 2, dtype="float32")
    assert [table[:2] for table in result["table"]] == [[[1, 1], [1, 1]]] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_replaced_element_leaves_the_other_replicas_part(results, kind):
    if results["reduced_gradient"] != 2:
        pytest.skip("This Keras sums no gradients: its replicas drift apart anyway.")
    kernels = results[f"replace/{kind}"]["kernel"]
    assert kernels[0] == kernels[1]
    # Gradients 2, 1, 2 and 2, 2, 2: momenta 2, 2, 3 and 2, 3, 3.5.
    assert_close(kernels[0], [1 - 0.7, 1 - 0.85, 1 - 0.85], dtype="float32", scale=1.0)


@pytest.mark.parametrize("policy", ["replace", "zero_variable"])
def test_a_step_of_which_no_replica_has_anything_left_is_skipped(results, policy):
    iterations, *weights = zip(*results[f"nothing_left/{policy}"], strict=True)
    # Zeroing a variable takes it from both replicas.
    is_taken = [True, policy == "replace", False, False, True]
    assert list(iterations) == np.cumsum(is_taken).tolist()
    for of_one in weights:
        # The last step is good: all gradients are 0, and the momentum moves on.
        assert of_one[1] == of_one[2] == of_one[3] != of_one[4]


def test_fit_under_a_strategy_skips_on_both_replicas(results):
    expected = {"iterations": 2, "nonfinite_steps": 1, "is_finite": True}
    assert results["fit"] == expected


def test_p08_the_loss_scale_falls_on_both_replicas_for_a_nan_on_one(results):
    result = results["loss_scale_optimizer/True"]
    moved = 1 - 0.5 * results["reduced_gradient"]
    assert result == {"weights": [[moved]] * 2, "scales": [2.0] * 2, "iterations": 1}


def test_p08_plain_keras_takes_the_nan_of_the_second_replica(results):
    weights = np.array(results["loss_scale_optimizer/False"]["weights"])
    assert np.isnan(weights).any()


def test_variables_in_half_precision_have_one_copy_on_each_replica(results):
    result = results["half"]
    gradient = results["reduced_gradient"]
    # 16 steps of 2**-11, each for the gradients of both replicas.
    moved = 1 - gradient * 2**-7
    assert result["stepped"] == [[moved] * 2] * 2
    assert result["assigned"] == [[3.0, 1.0]] * 2
    assert result["finalized"] == result["assigned"]
    assert result["nonfinite_steps"] == 2


def test_an_outlier_on_one_replica_is_skipped_on_both(results):
    result = results["outlier"]
    assert (result["outlier_steps"], result["iterations"]) == (1, 8)
    first, second = result["statistics"]
    assert first == second
    assert_close(first, [np.log(2) / 2, 0, 8, 1], dtype="float32", scale=1.0)


@pytest.mark.parametrize("part", ["wrapper", "inner"])
def test_an_optimizer_made_out_of_the_scope_is_refused(results, part):
    message = results["outside"][part]
    assert "Received: a step under a MirroredStrategy" in message
    assert "Make both within `with strategy.scope():`" in message


@pytest.mark.parametrize("policy", ["replace", "skip"])
def test_a_strategy_of_one_device_works_too(policy):
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with strategy.scope():
        variable = keras.Variable([1.0, 1.0])
        optimizer = SafeOptimizer(keras.optimizers.SGD(0.5), policy)
        optimizer.build([variable])
    for second in (0.0, float("nan")):
        gradient = tf.constant([1.0, second])
        strategy.run(lambda g: optimizer.apply([g], [variable]), args=(gradient,))
    assert variable.numpy().tolist() == {"replace": [0, 1], "skip": [0.5, 1]}[policy]
    assert optimizer.nonfinite_steps == 1


def test_a_step_outside_of_the_replicas_is_refused():
    optimizer = SafeOptimizer("sgd")
    refused = pytest.raises(ValueError, match=r"Call it in a .* `strategy\.run` runs")
    with tf.distribute.OneDeviceStrategy("CPU:0").scope(), refused:
        optimizer.apply([tf.constant(1.0)], [keras.Variable(1.0)])
