"""Variables in float16 and bfloat16: trained as float32 ones, rounded at the end."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import harness
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.optimizers import LossScaleOptimizer, SafeOptimizer

NAN = float("nan")
HALF = ["float16", "bfloat16"]
POLICIES = ["replace", "zero_variable", "skip"]
START = np.linspace(-1, 1, 6, dtype="float32").reshape(3, 2)


@pytest.fixture(params=HALF)
def half(request) -> str:
    return request.param


class Steps:
    """A matrix and a vector of one dtype, which start where bfloat16 has numbers."""

    def __init__(self, optimizer, dtype, mode="graph", **arguments):
        start = tf.cast(START, "bfloat16"), tf.ones(2, "bfloat16")
        names = ("kernel", "bias")
        self.variables = [
            keras.Variable(tf.cast(value, dtype), dtype=dtype, name=name, **arguments)
            for value, name in zip(start, names, strict=True)
        ]
        self.optimizer = optimizer
        optimizer.build(self.variables)
        self._step = modes.compile_for(
            mode, lambda *g: optimizer.apply(list(g), self.variables)
        )
        self._dtype = dtype

    def take(self, gradients) -> list[np.ndarray]:
        """Returns the variables after these steps, in float32."""
        for step in gradients:
            # All of them are numbers of bfloat16 and of float16.
            self._step(*(tf.cast(tf.cast(g, "bfloat16"), self._dtype) for g in step))
        return self.values()

    def values(self) -> list[np.ndarray]:
        return [tf.cast(v.value, tf.float32).numpy() for v in self.variables]


def rounded(values, dtype) -> list[np.ndarray]:
    return [tf.cast(tf.cast(v, dtype), tf.float32).numpy() for v in values]


CLEAN = harness.clean_gradients(6)


@pytest.mark.parametrize("variant", harness.VARIANTS)
def test_every_optimizer_trains_them_as_float32_rounded_once(variant):
    expected = Steps(harness.make(variant), "float32").take(CLEAN)
    found = Steps(SafeOptimizer(harness.make(variant)), "bfloat16").take(CLEAN)
    assert harness.same_bits(found, rounded(expected, "bfloat16"))


@pytest.mark.parametrize("policy", POLICIES)
def test_in_every_mode_and_policy(policy, half, mode):
    optimizer = SafeOptimizer(harness.make("Adam"), policy)
    found = Steps(optimizer, half, mode).take(CLEAN)
    expected = Steps(harness.make("Adam"), "float32", mode).take(CLEAN)
    assert harness.same_bits(found, rounded(expected, half))
    assert optimizer.nonfinite_steps == 0


def test_slots_are_float32(half):
    steps = Steps(SafeOptimizer("adam"), half)
    floating = [v for v in steps.optimizer.variables if "int" not in v.dtype]
    assert {v.dtype for v in floating} == {"float32"}


def test_p05_adam_moves_a_bfloat16_weight():
    def moved(optimizer, gradient, dtype="bfloat16"):
        steps = Steps(optimizer, dtype)
        before = steps.values()[1]
        after = steps.take([(gradient * np.ones((3, 2)), gradient * np.ones(2))] * 10)
        return after[1] - before

    assert not moved(keras.optimizers.Adam(1e-2), 1.0).any()
    # Ten steps of 0.01; 0.90 has neighbours in bfloat16 that are 0.004 away.
    guarded = moved(SafeOptimizer(keras.optimizers.Adam(1e-2)), 1.0)
    assert_close(guarded, [-0.1, -0.1], 0.5, scale=0.9, dtype="bfloat16")


def test_p05b_tiny_gradients_do_not_blow_a_float16_weight_up():
    gradients = [(np.full((3, 2), 1e-4), np.full(2, 1e-4))] * 10
    plain = Steps(keras.optimizers.Adam(1e-2), "float16").take(gradients)
    assert np.all(plain[1] < -4)
    guarded = Steps(SafeOptimizer(keras.optimizers.Adam(1e-2)), "float16")
    assert_close(guarded.take(gradients)[1], [0.9, 0.9], dtype="float16")


@pytest.mark.parametrize("epsilon", [1e-7, 1e-8])
def test_p05b_a_gradient_of_zeros_leaves_a_float16_weight_alone(epsilon):
    zeros = [(np.zeros((3, 2)), np.zeros(2))]
    adam = keras.optimizers.Adam(1e-2, epsilon=epsilon)
    steps = Steps(SafeOptimizer(adam), "float16")
    before = steps.values()
    assert harness.same_bits(steps.take(zeros), before)


def test_p17_weight_decay_adds_up(half):
    def decayed(optimizer):
        zeros = [(np.zeros((3, 2)), np.zeros(2))] * 300
        return Steps(optimizer, half).take(zeros)[1]

    def adamw():
        return keras.optimizers.AdamW(1e-2, weight_decay=4e-3)

    assert decayed(adamw()).tolist() == [1.0, 1.0]
    expected = (1 - 4e-5) ** 300
    assert_close(decayed(SafeOptimizer(adamw())), [expected] * 2, 0.5, dtype=half)


def test_a_nonfinite_step_is_skipped_bit_for_bit(half, mode):
    bad = harness.spoiled(CLEAN[2], NAN)
    steps = Steps(SafeOptimizer(harness.make("Adam"), "skip"), half, mode)
    found = steps.take([*CLEAN[:2], bad, *CLEAN[3:]])
    unseen = Steps(SafeOptimizer(harness.make("Adam"), "skip"), half, mode)
    assert harness.same_bits(found, unseen.take(CLEAN[:2] + CLEAN[3:]))
    assert steps.optimizer.last_nonfinite_variables == ("kernel",)


def test_a_nonfinite_element_is_replaced(half):
    steps = Steps(SafeOptimizer(keras.optimizers.SGD(0.5)), half)
    before = steps.values()
    gradient = np.ones((3, 2), "float32")
    gradient[1, 0] = np.inf
    after = steps.take([(gradient, np.ones(2, "float32"))])
    assert after[0][1, 0] == before[0][1, 0]
    assert after[1].tolist() == [0.5, 0.5]


def test_the_largest_float16_gradients_are_squared_without_overflow():
    steps = Steps(SafeOptimizer(keras.optimizers.Adam(0.1)), "float16")
    after = steps.take([(np.full((3, 2), 60000.0), np.full(2, 60000.0))] * 3)
    assert_close(after[1], [0.7, 0.7], 1, dtype="float16")


def test_sparse_gradients_stay_sparse(half):
    def trained(optimizer, dtype):
        table = keras.Variable(tf.ones((4, 2), dtype), dtype=dtype)
        values = tf.constant([[1.0, 2.0], [3.0, 4.0]], dtype)
        rows = tf.IndexedSlices(values, tf.constant([0, 2]), tf.constant([4, 2]))
        for _ in range(3):
            optimizer.apply([rows], [table])
        return [tf.cast(table.value, tf.float32).numpy()]

    expected = trained(keras.optimizers.Adam(0.1), "float32")
    found = trained(SafeOptimizer(keras.optimizers.Adam(0.1)), half)
    assert harness.same_bits(found, rounded(expected, half))


def test_variables_may_be_excluded_once_the_optimizer_is_built(half):
    variable = keras.Variable([1.0], dtype=half)
    optimizer = SafeOptimizer(keras.optimizers.SGD(2.0**-4), global_clipnorm=8.0)
    optimizer.build([variable])
    for _ in range(4):
        optimizer.apply([tf.constant([1.0], half)])
    assert variable.numpy().tolist() == [0.75]


def test_variables_of_several_dtypes_train_together(half):
    dtypes = [half, "float32", "float64", half]
    variables = [keras.Variable([1.0, 1.0], dtype=dtype) for dtype in dtypes]
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.25), global_clipnorm=2.0)
    grads = [tf.constant([1.0, 1.0], dtype) for dtype in dtypes]
    optimizer.apply(grads, variables)
    moved = 1 - 0.25 * 2.0 / 8**0.5
    for variable in variables:
        assert_close(variable.value, [moved] * 2, 0.5)


def test_float32_variables_have_no_copies():
    optimizer = SafeOptimizer("adam")
    optimizer.build([keras.Variable([1.0]), keras.Variable([1.0], dtype="float64")])
    assert not any("copy" in v.name for v in optimizer.variables)
    own = len(optimizer.variables) - len(optimizer.inner_optimizer.variables)
    assert own == 6


def test_tensorflow_variables_in_a_function_that_builds_the_optimizer(half, mode):
    weights = tf.Variable([1.0, 1.0], dtype=half, name="scope/weights")
    optimizer = SafeOptimizer(keras.optimizers.Adam(1e-2))
    step = modes.compile_for(mode, lambda g: optimizer.apply([g], [weights]))
    for _ in range(10):
        step(tf.ones(2, half))
    assert_close(weights, [0.9, 0.9], 4 if half == "float16" else 0.6)


# -- What is written to the variables from outside -------------------------------------


def test_a_value_that_was_assigned_is_gone_on_from(half, mode):
    steps = Steps(SafeOptimizer(keras.optimizers.SGD(2.0**-6)), half, mode)
    steps.take(CLEAN[:2])
    _, bias = steps.variables
    bias.assign(tf.constant([3.0, 5.0], half))
    ones = np.ones((3, 2), "float32"), np.ones(2, "float32")
    assert (
        steps.take([ones])[1].tolist()
        == rounded([[3 - 2**-6, 5 - 2**-6]], half)[0].tolist()
    )


def test_elements_that_were_not_assigned_keep_their_digits():
    # 2**-10 is an eighth of the gap between two numbers of bfloat16 around 1.
    steps = Steps(SafeOptimizer(keras.optimizers.SGD(2.0**-10)), "bfloat16")
    ones = np.ones((3, 2), "float32"), np.ones(2, "float32")
    for _ in range(16):
        steps.take([ones])
        value = tf.tensor_scatter_nd_update(
            steps.variables[1].value, [[0]], tf.constant([7.0], "bfloat16")
        )
        steps.variables[1].assign(value)
    assert steps.values()[1].tolist() == [7.0, 1 - 2**-6]


def test_nan_that_was_assigned_is_not_hidden(half):
    steps = Steps(SafeOptimizer(keras.optimizers.SGD(0.1)), half)
    steps.variables[1].assign(tf.constant([NAN, 1.0], half))
    assert np.isnan(steps.take(CLEAN[:1])[1][0])


# -- What Keras does with an optimizer -------------------------------------------------


def test_averages_of_the_weights_are_kept_in_float32(half):
    def finalized(optimizer, dtype):
        steps = Steps(optimizer, dtype)
        steps.take(CLEAN)
        optimizer.finalize_variable_values(steps.variables)
        return steps.values()

    expected = finalized(harness.make("Adam-ema"), "float32")
    found = finalized(SafeOptimizer(harness.make("Adam-ema")), half)
    assert harness.same_bits(found, rounded(expected, half))


def test_without_averages_there_is_nothing_to_finalize(half):
    steps = Steps(SafeOptimizer(harness.make("Adam")), half)
    before = steps.take(CLEAN)
    steps.optimizer.finalize_variable_values(steps.variables)
    assert harness.same_bits(steps.values(), before)


@pytest.mark.parametrize("by", ["name", "variable"])
@pytest.mark.parametrize("after_build", [False, True])
def test_variables_excluded_from_weight_decay_stay_excluded(by, after_build, half):
    variables = [keras.Variable([1.0], dtype=half, name=n) for n in ("kernel", "bias")]
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.5, weight_decay=0.5))
    if after_build:
        optimizer.build(variables)
    if by == "name":
        optimizer.exclude_from_weight_decay(var_names=["kernel"])
    else:
        optimizer.exclude_from_weight_decay(var_list=variables[:1])
    optimizer.apply([tf.constant([0.0], half)] * 2, variables)
    assert [v.numpy().tolist() for v in variables] == [[1.0], [0.75]]


def test_constraints_hold(half):
    variable = keras.Variable([1.0, -1.0], dtype=half)
    variable.constraint = keras.constraints.NonNeg()
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.5))
    optimizer.apply([tf.constant([1.0, 1.0], half)], [variable])
    assert variable.numpy().tolist() == [0.5, 0.0]


def test_a_fixed_loss_scale_is_removed_in_float32():
    inner = keras.optimizers.SGD(1.0, loss_scale_factor=1024.0)
    steps = Steps(SafeOptimizer(inner), "float16")
    # 2**-23 is a step that no float16 weight of 1 can take: 4096 of them are 2**-11.
    gradient = np.full((3, 2), 2.0**-13), np.full(2, 2.0**-13)
    assert steps.take([gradient] * 4096)[1].tolist() == [1 - 2**-11] * 2


def test_several_optimizers_under_one_wrapper(half):
    multi = getattr(keras.optimizers, "MultiOptimizer", None)
    if multi is None:
        pytest.skip("This Keras has no MultiOptimizer.")

    def make():
        biases = keras.optimizers.SGD(0.1, momentum=0.9, weight_decay=0.1)
        biases.exclude_from_weight_decay(var_names=["bias"])
        default = keras.optimizers.Adam(0.1)
        return multi(keras.optimizers.OptimizerMap(default, {".*bias": biases}))

    expected = Steps(make(), "float32").take(CLEAN)
    found = Steps(SafeOptimizer(make()), half).take(CLEAN)
    assert harness.same_bits(found, rounded(expected, half))


def test_under_a_loss_scale_optimizer_what_underflows_in_float16_is_kept():
    optimizer = LossScaleOptimizer(
        SafeOptimizer(keras.optimizers.SGD(8.0)), initial_scale=2.0**20
    )
    steps = Steps(optimizer, "float16")
    # Unscaled it is 2**-25, which is 0 in float16.
    gradient = np.full((3, 2), 2.0**-5), np.full(2, 2.0**-5)
    steps.take([gradient] * 8)
    (copy,) = [v for v in optimizer.variables if v.path == "bias"]
    assert copy.numpy().tolist() == [1 - 2.0**-19] * 2


def test_an_inner_optimizer_with_half_slots_is_refused(half):
    variable = keras.Variable([1.0], dtype=half, name="w")
    inner = keras.optimizers.Adam()
    inner.build([variable])
    optimizer = SafeOptimizer(inner)
    with pytest.raises(ValueError, match=r"slots in half precision for w,.*from_conf"):
        optimizer.build([variable])


def model_of(dtype, optimizer):
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(4, "tanh", dtype=dtype) for _ in range(2)]
    model = keras.Sequential([keras.Input((2,)), *layers, keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    return model


def state(model) -> list[np.ndarray]:
    return [v.numpy() for v in [*model.trainable_variables, *model.optimizer.variables]]


@pytest.mark.parametrize("file", ["model.keras", "model.weights.h5", "checkpoint"])
def test_a_saved_training_goes_on_bit_for_bit(file, tmp_path):
    def guarded():
        return SafeOptimizer(keras.optimizers.Adam(1e-3))

    data, path = harness.small_data(), str(tmp_path / file)
    model = model_of("bfloat16", guarded())
    harness.fit(model, *data, epochs=2)
    fresh = model_of("bfloat16", guarded())
    fresh.optimizer.build(fresh.trainable_variables)
    if file == "checkpoint":
        path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(path)
        restored = tf.train.Checkpoint(model=fresh, optimizer=fresh.optimizer)
        restored.restore(path).assert_existing_objects_matched()
    elif file == "model.keras":
        model.save(path)
        fresh = keras.saving.load_model(path)
    else:
        model.save_weights(path)
        fresh.load_weights(path)
    assert harness.same_bits(state(fresh), state(model))
    for each in (model, fresh):
        harness.fit(each, *data)
    assert harness.same_bits(state(fresh), state(model))


def test_p05_fit_learns_under_the_policy_bfloat16():
    def improvement(optimizer):
        model = model_of("bfloat16", optimizer)
        losses = harness.fit(model, *harness.small_data(), epochs=4).history["loss"]
        return losses[0] - losses[-1], model

    start = model_of("bfloat16", "sgd").layers[0].get_weights()[0]
    _, plain = improvement(keras.optimizers.Adam(1e-3))
    assert np.array_equal(plain.layers[0].get_weights()[0], start)
    gained, guarded = improvement(SafeOptimizer(keras.optimizers.Adam(1e-3)))
    assert gained > 0
    assert not np.array_equal(guarded.layers[0].get_weights()[0], start)
