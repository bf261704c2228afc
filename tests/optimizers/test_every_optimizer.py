"""Each Keras optimizer, each policy, each mode: parity, survival, contrast."""

import functools

import keras
import numpy as np
import pytest

from tests.optimizers import harness
from tests.support import modes
from tfsafe.optimizers import SafeOptimizer

# XLA compiles each for half a second: tier two has the rest.
FAST_UNDER_XLA = {"Adam", "SGD-momentum", "Adam-accumulation"}


def marks(variant: str, mode: str) -> list[pytest.MarkDecorator]:
    is_slow = mode == "xla" and variant not in FAST_UNDER_XLA
    return [pytest.mark.slow] if is_slow else []


CASES = [
    pytest.param(variant, mode, marks=marks(variant, mode))
    for variant in harness.VARIANTS
    for mode in modes.MODES
]
# XLA compiles the same update, for which the clean steps have every variant.
FEWER = [
    case
    for case in CASES
    if case.values[1] != "xla" or case.values[0] in FAST_UNDER_XLA
]
CLEAN = harness.clean_gradients(6)
BAD_VALUES = [np.nan, np.inf, -np.inf, 1e20]
# The first step, and one in the middle.
BAD_STEPS = [0, 3]


@functools.cache
def training(variant: str, mode: str, policy: str | None) -> harness.Training:
    optimizer = harness.make(variant)
    if policy is not None:
        optimizer = SafeOptimizer(optimizer, policy)
    return harness.Training(optimizer, mode)


def with_bad_step(index: int, value: float) -> list[harness.Gradients]:
    bad = harness.spoiled(CLEAN[index], value)
    return [*CLEAN[:index], bad, *CLEAN[index + 1 :]]


@pytest.mark.parametrize(("variant", "mode"), CASES)
def test_clean_steps_are_those_of_the_inner_optimizer_bit_for_bit(variant, mode):
    plain = training(variant, mode, None).run(CLEAN)
    assert harness.all_finite(plain)
    # "zero_variable" differs from "replace" in a bad step only.
    policies = ["replace", "skip"]
    if mode == "xla" and variant not in FAST_UNDER_XLA:
        # By turns: what a policy makes of a step is the same for each update.
        turn = list(harness.VARIANTS).index(variant) % 2
        policies = [policies[turn]]
    for policy in policies:
        guarded = training(variant, mode, policy)
        assert harness.same_bits(guarded.run(CLEAN), plain), policy
        assert guarded.optimizer.nonfinite_steps == 0


@pytest.mark.parametrize(("variant", "mode"), FEWER)
def test_skipping_is_never_having_seen_the_batch(variant, mode):
    for index in BAD_STEPS:
        unseen = CLEAN[:index] + CLEAN[index + 1 :]
        expected = training(variant, mode, None).run(unseen)
        guarded = training(variant, mode, "skip")
        for value in BAD_VALUES:
            state = guarded.run(with_bad_step(index, value))
            assert harness.same_bits(state, expected), (index, value)
            assert guarded.optimizer.last_nonfinite_step == index + 1


@pytest.mark.parametrize(("variant", "mode"), FEWER)
def test_replacing_hides_a_step_of_which_nothing_is_left(variant, mode):
    kernel, bias = (np.full_like(gradient, np.nan) for gradient in CLEAN[0])
    for bad in [(kernel, bias), (kernel, np.zeros_like(bias))]:
        expected = training(variant, mode, None).run(CLEAN)
        guarded = training(variant, mode, "replace")
        assert harness.same_bits(guarded.run([*CLEAN[:3], bad, *CLEAN[3:]]), expected)
        assert guarded.optimizer.last_nonfinite_step == 4


@pytest.mark.parametrize(("variant", "mode"), FEWER)
def test_replacing_is_a_step_with_zero_in_the_nonfinite_elements(variant, mode):
    for index in BAD_STEPS:
        expected = training(variant, mode, None).run(with_bad_step(index, 0.0))
        guarded = training(variant, mode, "replace")
        for value in BAD_VALUES:
            state = guarded.run(with_bad_step(index, value))
            assert harness.same_bits(state, expected), (index, value)
            assert guarded.optimizer.nonfinite_steps == 1


@pytest.mark.parametrize("variant", ["Adam", "SGD-momentum", "Adafactor"])
def test_zeroing_a_variable_is_a_step_with_zeros_for_it(variant):
    kernel, bias = CLEAN[3]
    zeroed = [*CLEAN[:3], (np.zeros_like(kernel), bias), *CLEAN[4:]]
    expected = training(variant, "graph", None).run(zeroed)
    guarded = training(variant, "graph", "zero_variable")
    for value in BAD_VALUES:
        assert harness.same_bits(guarded.run(with_bad_step(3, value)), expected), value


@pytest.mark.parametrize("variant", harness.VARIANTS)
def test_p01_plain_keras_keeps_one_nan_for_ever(variant):
    plain = training(variant, "graph", None)
    assert not harness.all_finite(plain.run(with_bad_step(1, np.nan)))


@pytest.mark.parametrize("variant", ["Adam", "AdamW", "Nadam", "Adam-amsgrad"])
def test_p04_plain_keras_dies_of_a_finite_gradient_that_overflows_when_squared(variant):
    weights = training(variant, "graph", None).run(with_bad_step(1, 1e20))[:2]
    assert not harness.all_finite(weights)


# What is survived: in which steps, and the bad value of one element, or of all.
EVENTS = {
    "nan": ([40], np.nan, "one"),
    "inf": ([40], np.inf, "one"),
    "1e20": ([40], 1e20, "one"),
    "burst": (range(40, 240), np.nan, "all"),
    "burst in one element": (range(40, 240), np.nan, "one"),
    "first": ([0], np.nan, "all"),
}


def bad_course(names: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns noise, what spoils the steps, and which steps are clean, 120 of them."""
    bad: dict[int, tuple[float, str]] = {}
    for offset, name in enumerate(names):
        steps, value, what = EVENTS[name]
        bad |= {step + 2 * offset: (value, what) for step in steps}
    count = 120 + len(bad)
    noise = np.random.default_rng(0).normal(0, 0.01, (count, 3, 2)).astype("float32")
    spoilt = np.zeros((count, 3, 2), "float32")
    for step, (value, what) in bad.items():
        spoilt[(step, 1, 0) if what == "one" else step] = value
    return noise, spoilt, ~np.isin(np.arange(count), list(bad))


# XLA compiles three steps for each: what it makes of an update is compared above.
DESCENTS = [
    *((variant, "graph") for variant in harness.SEVENTEEN),
    *(pytest.param(v, "xla", marks=pytest.mark.slow) for v in ("Adam", "SGD", "Lion")),
]


@pytest.mark.parametrize(("variant", "mode"), DESCENTS)
def test_p01_nonfinite_steps_are_survived_and_the_loss_is_reached(variant, mode):
    def descent(wrap) -> harness.Descent:
        return harness.Descent(wrap(harness.make(variant)), mode)

    events = ["first", "nan", "inf", "1e20", "burst"]
    noise, spoilt, is_clean = bad_course(events)
    never = descent(lambda optimizer: optimizer)
    start = never.loss()
    expected = never.run(noise[is_clean], spoilt[is_clean])
    assert never.loss() < start
    skipping = descent(lambda optimizer: SafeOptimizer(optimizer, "skip"))
    assert harness.same_bits(skipping.run(noise, spoilt), expected)
    replacing = descent(SafeOptimizer)
    assert harness.all_finite(replacing.run(noise, spoilt))
    assert (start - replacing.loss()) / (start - never.loss()) > 0.9
    for each in (skipping, replacing):
        assert each.optimizer.nonfinite_steps == np.sum(~is_clean)


def test_lion_runs_away_with_a_weight_whose_gradient_stays_nonfinite_unless_it_skips():
    course = bad_course(["burst in one element"])[:2]
    losses = []
    for policy in ("replace", "skip"):
        descent = harness.Descent(SafeOptimizer(harness.make("Lion"), policy), "graph")
        start = descent.loss()
        descent.run(*course)
        losses.append(descent.loss())
    assert losses[0] > start > 100 * losses[1]


def test_the_table_holds_every_optimizer_of_keras():
    assert {"SGD", "Adam", "AdamW", "Lion", "Adafactor"} <= set(harness.CLASSES)
    if keras.__version__.startswith("3.15"):
        assert len(harness.SEVENTEEN) == 17
