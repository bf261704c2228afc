"""Known traps of Keras' optimizers: plain Keras fails where the wrapper holds.

The identifiers are those of the catalogue of measured traps. P02, P03 and P14 are in
`test_clipping.py`, P05, P05b and P17 in `test_half_precision.py`, P06 in
`test_rmsprop.py`, P08 to P10 and P15 in `test_loss_scale.py` and `test_replicas.py`,
P11 in `tests/callbacks/test_commit.py`, and all optimizers under P01 and P04 in
`test_every_optimizer.py`.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import harness
from tests.support import modes
from tfsafe.optimizers import SafeOptimizer

NAN = float("nan")
POLICIES = ["replace", "zero_variable", "skip"]


class Steps:
    """A variable of two elements, and a compiled step in which all state is fresh."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.variable = keras.Variable([1.0, 1.0])
        optimizer.build([self.variable])
        self._step = modes.compile_for(
            "graph", lambda g: optimizer.apply([g], [self.variable])
        )

    def take(self, *gradients) -> np.ndarray:
        for gradient in gradients:
            self._step(tf.constant(gradient))
        return self.variable.numpy()


@pytest.mark.parametrize("policy", POLICIES)
def test_p01_one_nan_costs_one_step(policy):
    gradients = [*[[1.0, 1.0]] * 3, [NAN, 1.0], *[[1.0, 1.0]] * 5]
    assert np.isnan(Steps(keras.optimizers.Adam(0.1)).take(*gradients)[0])
    guarded = Steps(SafeOptimizer(keras.optimizers.Adam(0.1), policy))
    # Nine steps of Adam(0.1) at a constant gradient take 0.9.
    assert np.all(np.abs(guarded.take(*gradients) - 0.15) < 0.06)
    assert guarded.optimizer.nonfinite_steps == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_p04_a_finite_outlier_whose_square_overflows_costs_one_step(policy):
    gradients = [[1.0, 1.0], [1e20, 1.0], *[[1.0, 1.0]] * 4]
    assert np.isnan(Steps(keras.optimizers.Adam(0.1)).take(*gradients)[0])
    guarded = Steps(SafeOptimizer(keras.optimizers.Adam(0.1), policy))
    assert np.all(np.abs(guarded.take(*gradients) - 0.45) < 0.06)


@pytest.mark.parametrize("variant", harness.SEVENTEEN)
def test_p07_zero_and_tiny_gradients_stay_finite(variant):
    guarded = Steps(SafeOptimizer(harness.make(variant)))
    assert np.isfinite(guarded.take([0.0, 1e-30], [0.0, 1e-30])).all()
    assert guarded.optimizer.nonfinite_steps == 0


def all_zero(optimizer) -> list[list[float]]:
    return Steps(optimizer).take([0.0, 0.0], [0.0, 0.0]).tolist()


# Keras 3.3 has no Lamb.
@pytest.mark.parametrize(
    "variant", sorted({"AdamW", "Lamb", "Adam-global-clipnorm"} & {*harness.VARIANTS})
)
def test_p14_a_gradient_of_zeros_is_stepped_as_by_the_inner_optimizer(variant):
    guarded = all_zero(SafeOptimizer(harness.make(variant)))
    assert guarded == all_zero(harness.make(variant))
    assert np.isfinite(guarded).all()


SCHEDULES = {
    "CosineDecay": {"decay_steps": 3},
    "CosineDecayRestarts": {"first_decay_steps": 3},
    "PolynomialDecay": {"decay_steps": 3, "cycle": True},
    "ExponentialDecay": {"decay_steps": 3, "decay_rate": 0.5},
    "InverseTimeDecay": {"decay_steps": 3, "decay_rate": 0.5},
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", SCHEDULES)
def test_p16_schedules_are_finite_at_step_0_and_past_their_end(name, policy):
    def trained(wrap, *gradients):
        schedule = getattr(keras.optimizers.schedules, name)(0.1, **SCHEDULES[name])
        return Steps(wrap(keras.optimizers.SGD(schedule))).take(*gradients).tolist()

    good = [[1.0, 1.0]] * 8
    plain = trained(lambda optimizer: optimizer, *good)
    guarded = trained(lambda optimizer: SafeOptimizer(optimizer, policy), *good)
    assert guarded == plain
    assert np.isfinite(plain).all()
    bad = trained(lambda optimizer: SafeOptimizer(optimizer, policy), [NAN, 1.0], *good)
    assert np.isfinite(bad).all()


def accumulating():
    return keras.optimizers.SGD(1.0, gradient_accumulation_steps=4)


def test_p12_plain_keras_accumulates_a_nan():
    gradients = [[1.0, 1.0]] * 3 + [[NAN, 1.0]] + [[1.0, 1.0]] * 4
    assert np.isnan(Steps(accumulating()).take(*gradients)[0])


def test_p12_a_nonfinite_micro_batch_is_skipped_in_the_sum():
    gradients = [[1.0, 1.0], [NAN, 1.0], *[[1.0, 1.0]] * 3]
    skipping = Steps(SafeOptimizer(accumulating(), "skip"))
    # Another one takes its place: one update, of four good micro-batches.
    assert skipping.take(*gradients).tolist() == [0.0, 0.0]
    replacing = Steps(SafeOptimizer(accumulating()))
    assert replacing.take(*gradients[:4]).tolist() == [0.25, 0.0]


@pytest.mark.parametrize("policy", POLICIES)
def test_p13_the_moving_average_of_the_weights_never_sees_the_nan(policy):
    def adam():
        return keras.optimizers.Adam(0.1, use_ema=True, ema_momentum=0.5)

    gradients = [[1.0, 1.0], [NAN, 1.0], [1.0, 1.0]]
    averages = []
    for optimizer in (adam(), SafeOptimizer(adam(), policy)):
        steps = Steps(optimizer)
        steps.take(*gradients)
        optimizer.finalize_variable_values([steps.variable])
        averages.append(steps.variable.numpy())
    plain, guarded = averages
    assert np.isnan(plain[0])
    assert np.isfinite(guarded).all()
    assert (guarded < 1.0).all()
