"""Steps with a gradient much longer than usual are left out."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import harness
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.optimizers import SafeOptimizer
from tfsafe.optimizers._clipping import log_global_norm

NAN = float("nan")
POLICIES = ["replace", "zero_variable", "skip"]
WINDOW = 8


@pytest.fixture(params=POLICIES)
def policy(request) -> str:
    return request.param


def guarded(inner=None, policy="replace", **arguments) -> SafeOptimizer:
    arguments = {
        "outlier_threshold": 4.0,
        "outlier_window": WINDOW,
        "outlier_patience": 3,
        **arguments,
    }
    return SafeOptimizer(inner or keras.optimizers.SGD(1.0), policy, **arguments)


class Steps:
    """Two numbers and a step in one mode, of gradients of a given norm."""

    def __init__(self, optimizer, mode="graph"):
        self.optimizer = optimizer
        self.variables = [keras.Variable([0.0]), keras.Variable([0.0])]
        optimizer.build(self.variables)
        self._step = modes.compile_for(
            mode, lambda *g: optimizer.apply(list(g), self.variables)
        )

    def take(self, *norms) -> SafeOptimizer:
        for norm in norms:
            self._step(tf.constant([0.6 * norm]), tf.constant([0.8 * norm]))
        return self.optimizer

    @property
    def moved(self) -> float:
        """Returns the norms of all steps that were taken, added up."""
        return -float(self.variables[1].numpy()[0]) / 0.8


def usual(count=WINDOW) -> list[float]:
    """Returns norms with a standard deviation of 0.1 around 1, in the logarithm."""
    signs = np.where(np.arange(count) % 2, -0.1, 0.1)
    return np.exp(signs).tolist()


def statistic(optimizer) -> dict[str, float]:
    names = ("mean", "variance", "count", "streak")
    (variable,) = [v for v in optimizer.variables if "statistic" in v.name]
    return dict(zip(names, variable.numpy().tolist(), strict=True))


def test_an_outlier_is_skipped_as_if_it_had_not_been_there(policy, mode):
    def make():
        return Steps(guarded(harness.make("Adam"), policy), mode)

    steps, unseen = make(), make()
    steps.take(*usual(), 1e3, *usual(3))
    unseen.take(*usual(), *usual(3))
    pairs = [
        [v.numpy() for v in [*s.variables, *s.optimizer.inner_optimizer.variables]]
        for s in (steps, unseen)
    ]
    assert harness.same_bits(*pairs)
    assert statistic(steps.optimizer) == statistic(unseen.optimizer)
    assert (steps.optimizer.outlier_steps, steps.optimizer.steps) == (1, WINDOW + 4)
    assert steps.optimizer.nonfinite_steps == 0


def test_the_statistic_is_the_mean_and_deviation_of_the_logarithm():
    norms = np.random.default_rng(0).lognormal(2, 0.3, WINDOW)
    found = statistic(Steps(guarded()).take(*norms))
    assert_close(found["mean"], np.log(norms).mean(), dtype="float32")
    assert_close(found["variance"], np.log(norms).var(), dtype="float32")
    assert (found["count"], found["streak"]) == (WINDOW, 0)


def test_after_the_window_older_steps_fade():
    found = statistic(Steps(guarded()).take(*usual(), *[1.5] * 40))
    assert abs(found["mean"] - math.log(1.5)) < 0.01
    assert found["variance"] < 1e-3
    assert found["count"] == WINDOW


@pytest.mark.parametrize(("norm", "expected"), [(2.2, 1), (1.9, 0), (1e-3, 0), (0, 0)])
def test_four_deviations_above_and_twice_the_usual_norm_make_an_outlier(norm, expected):
    # A deviation of 0.1, so that four make a factor of 1.5: less than 2.
    assert Steps(guarded()).take(*usual(), norm).outlier_steps == expected


def test_where_the_norm_scatters_more_is_needed():
    scattered = np.exp(np.where(np.arange(WINDOW) % 2, -1.0, 1.0))
    steps = Steps(guarded())
    assert steps.take(*scattered, math.exp(3.9)).outlier_steps == 0
    steps = Steps(guarded())
    assert steps.take(*scattered, math.exp(4.1)).outlier_steps == 1


def test_nothing_is_judged_before_the_window_is_full(policy):
    steps = Steps(guarded(policy=policy))
    assert steps.take(*usual()[1:], 1e3).outlier_steps == 0


@pytest.mark.parametrize("value", [NAN, math.inf, 1e20])
def test_a_nonfinite_value_never_enters_the_statistic(value, policy, mode):
    steps = Steps(guarded(policy=policy), mode)
    before = statistic(steps.take(*usual()))
    steps.take(value, value)
    assert statistic(steps.optimizer) == before
    assert steps.optimizer.nonfinite_steps == 2
    assert steps.take(1e3).outlier_steps == 1


def test_zero_gradients_do_not_enter_the_statistic(mode):
    steps = Steps(guarded(), mode)
    before = statistic(steps.take(*usual()))
    assert statistic(steps.take(0.0, 0.0)) == before
    assert steps.optimizer.iterations.numpy() == WINDOW + 2


def test_a_permanent_level_is_taken_after_some_patience(mode):
    steps = Steps(guarded(), mode)
    steps.take(*usual(), 100.0, 100.0)
    assert steps.optimizer.outlier_steps == 2
    steps.take(100.0)
    found = statistic(steps.optimizer)
    assert_close(found.pop("mean"), math.log(100), dtype="float32")
    assert found == {"variance": 0, "count": 1, "streak": 0}
    steps.take(*[100.0] * WINDOW)
    assert steps.optimizer.outlier_steps == 2
    assert steps.take(1e6).outlier_steps == 3


def test_a_usual_step_in_between_resets_the_patience():
    steps = Steps(guarded()).take(*usual(), 99.0, 99.0, 1.0, 99.0, 99.0, 1.0)
    assert steps.outlier_steps == 4


def test_a_nonfinite_step_in_between_does_not():
    steps = Steps(guarded()).take(*usual(), 99.0, NAN, 99.0, NAN, 99.0)
    assert (steps.outlier_steps, steps.nonfinite_steps) == (2, 2)
    assert statistic(steps)["count"] == 1


@pytest.mark.parametrize("scale", [1e-30, 1e14])
def test_no_norm_is_too_small_or_too_large(scale, mode):
    steps = Steps(guarded(), mode)
    steps.take(*(scale * np.array(usual())), 9 * scale)
    assert steps.optimizer.outlier_steps == 1


def test_a_loss_scale_that_changes_is_no_outlier():
    optimizer = guarded(keras.optimizers.SGD(1.0, loss_scale_factor=2.0**10))
    steps = Steps(optimizer, "eager")
    steps.take(*(2.0**10 * np.array(usual())))
    optimizer.loss_scale_factor = 2.0**20
    assert steps.take(2.0**20).outlier_steps == 0
    assert steps.take(2.0**24).outlier_steps == 1


def test_a_loss_scale_that_doubles_is_no_outlier():
    guard = guarded()
    optimizer = keras.optimizers.LossScaleOptimizer(
        guard, initial_scale=2.0, dynamic_growth_steps=1
    )
    variables = [keras.Variable([0.0])]
    optimizer.build(variables)
    for norm in [*usual(), *usual()]:
        gradient = optimizer.scale_loss(tf.constant([norm]))
        optimizer.apply([gradient], variables)
    assert (guard.steps, guard.outlier_steps) == (2 * WINDOW, 0)


def test_each_micro_batch_is_judged_by_itself():
    sgd = keras.optimizers.SGD(1.0, gradient_accumulation_steps=2)
    steps = Steps(guarded(sgd))
    steps.take(*usual(), 1.0, 1e6, 1.0)
    assert steps.optimizer.outlier_steps == 1
    assert_close(steps.moved, (sum(usual()) + 2) / 2, dtype="float32")


def test_the_rest_of_a_repaired_step_is_tested_for_outliers():
    optimizer = guarded()
    variables = [keras.Variable([0.0, 0.0])]
    optimizer.build(variables)
    for norm in usual():
        optimizer.apply([tf.constant([norm, 0.0])], variables)
    before = variables[0].numpy().tolist()
    optimizer.apply([tf.constant([1e6, NAN])], variables)
    assert variables[0].numpy().tolist() == before
    assert (optimizer.outlier_steps, optimizer.nonfinite_steps) == (1, 1)


def test_the_norm_is_judged_before_it_is_clipped():
    optimizer = guarded(global_clipnorm=1.0)
    assert Steps(optimizer).take(*usual(), 1e30).outlier_steps == 1


# -- The norm --------------------------------------------------------------------------


def test_the_norm_is_that_of_all_gradients(mode):
    rows = tf.IndexedSlices(tf.constant([[2.0]]), tf.constant([1]), tf.constant([3, 1]))
    scale = keras.Variable([1.0])
    scale.overwrite_with_gradient = True
    grads = [
        tf.constant([3.0], "float16"),
        rows,
        None,
        tf.constant([6.0], "float64"),
        tf.zeros((0, 3)),
        tf.zeros(2),
        tf.constant([99.0]),
    ]
    variables = [*[keras.Variable([0.0])] * 6, scale]
    found = modes.compile_for(mode, lambda: log_global_norm(grads, variables, 7.0))()
    assert_close(found, 0, scale=1.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.0], -math.inf),
        ([3e38, 3e38], math.log(3e38) + math.log(2) / 2),
        ([1e-37, 0.0], math.log(1e-37)),
    ],
)
def test_the_norm_neither_overflows_nor_underflows(values, expected, mode):
    variables = [keras.Variable([0.0, 0.0])]
    norm = modes.compile_for(mode, lambda x: log_global_norm([x], variables, None))
    found = norm(tf.constant(values))
    assert_close(found, expected)


@pytest.mark.parametrize("value", [NAN, math.inf, -math.inf])
def test_the_norm_of_what_is_not_finite_is_nan(value):
    x = tf.constant([value, 1.0])
    assert math.isnan(log_global_norm([x], [keras.Variable([0.0, 0.0])], None))


# -- State and arguments ---------------------------------------------------------------


def test_without_a_threshold_there_is_no_statistic():
    optimizer = Steps(SafeOptimizer("sgd")).take(*usual(), 1e6)
    assert optimizer.outlier_steps == 0
    assert "outlier_steps" not in optimizer.counters
    assert not any("statistic" in v.name for v in optimizer.variables)


def test_the_statistic_is_saved_and_restored(tmp_path):
    def model(optimizer):
        return harness.small_model(optimizer)

    trained = model(guarded("adam"))
    harness.fit(trained, *harness.small_data(count=12))
    trained.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    found = loaded.optimizer
    assert statistic(found) == statistic(trained.optimizer)
    assert statistic(found)["count"] == WINDOW
    arguments = (found.outlier_threshold, found.outlier_window, found.outlier_patience)
    assert arguments == (4.0, WINDOW, 3)
    assert found.get_config() == trained.optimizer.get_config()


@pytest.mark.parametrize("value", [0, -1.0, math.inf, NAN, True, "6"])
def test_a_threshold_that_is_no_positive_number_is_refused(value):
    with pytest.raises(ValueError, match="`outlier_threshold` must be a positive fin"):
        SafeOptimizer("sgd", outlier_threshold=value)


@pytest.mark.parametrize("value", [0, 1.5, True, "9"])
@pytest.mark.parametrize("name", ["outlier_window", "outlier_patience"])
def test_numbers_of_steps_are_positive_integers(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be an integer.*at least"):
        SafeOptimizer("sgd", **{name: value})


# -- What it is good for ---------------------------------------------------------------


@pytest.mark.parametrize("inner", ["Adam", "SGD-momentum"])
def test_one_nonfinite_batch_in_fifty_ruins_a_plain_run_and_not_the_guarded(inner):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 16, 4)).astype("float32")
    y = x @ np.array([1.0, -2.0, 3.0, 0.5], "float32")
    # Labels in another unit, as a broken record has them: finite, and far off.
    poisoned = y.copy()
    poisoned[49::50] *= 1e6

    def loss_after(optimizer, targets) -> float:
        weights = keras.Variable(np.zeros(4, "float32"))
        optimizer.build([weights])

        def step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.linalg.matvec(x, weights.value) - y) ** 2)
            optimizer.apply([tape.gradient(loss, weights.value)], [weights])

        step = modes.compile_for("graph", step)
        for batch in zip(x, targets, strict=True):
            step(*map(tf.constant, batch))
        return float(np.mean((x @ weights.numpy() - y) ** 2))

    def make():
        rate = {"Adam": 0.1, "SGD-momentum": 0.02}[inner]
        name, arguments = harness.VARIANTS[inner]
        return getattr(keras.optimizers, name)(rate, **arguments)

    clean = loss_after(make(), y)
    plain = loss_after(make(), poisoned)
    optimizer = SafeOptimizer(make(), outlier_threshold=6.0, outlier_window=20)
    assert loss_after(optimizer, poisoned) < 0.01
    assert optimizer.outlier_steps == 4
    assert clean < 0.01
    assert plain > 0.5
