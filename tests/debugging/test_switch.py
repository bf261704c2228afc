"""The numeric checks switched on for a whole program, and off again."""

import concurrent.futures
import functools
import gc
import threading
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.debugging import programs
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import debugging
from tfsafe.debugging.entry import switch
from tfsafe.debugging.tracing import earlier

ZERO = tf.constant(0.0)


@pytest.fixture(autouse=True)
def switched_off():
    yield
    debugging.disable_check_numerics()
    assert switch.SWITCH.active() is None
    assert "_patching" not in tf.GradientTape.gradient.__code__.co_filename


def failure(function, *args):
    with pytest.raises(tfsafe.NumericsError) as caught:
        function(*args)
    return caught.value.findings[0]


@pytest.mark.parametrize("jit_compile", [False, True])
def test_it_reaches_a_function_that_was_traced_before(jit_compile):
    function = tf.function(programs.forward_inf, jit_compile=jit_compile)
    assert np.isneginf(function(programs.X).numpy()).any()
    debugging.enable_check_numerics()
    finding = failure(function, programs.X)
    assert finding.op_type == "Log"
    assert programs.is_at(finding.site, "forward_inf")
    debugging.disable_check_numerics()
    assert np.isneginf(function(programs.X).numpy()).any()


def test_it_reaches_concrete_and_loaded_functions_and_methods(tmp_path):
    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([3])])
        def run(self, x):
            return tf.math.log(x)

    module = Module()
    concrete = module.run.get_concrete_function()
    tf.saved_model.save(module, str(tmp_path), signatures=concrete)
    loaded = tf.saved_model.load(str(tmp_path))
    x = tf.zeros([3])
    with debugging.check_numerics():
        for function in (module.run, concrete, loaded.run):
            assert failure(function, x).op_type == "Log"
        with pytest.raises(tfsafe.NumericsError, match="Log"):
            loaded.signatures["serving_default"](x=x)
    assert np.isneginf(loaded.run(x).numpy()).all()


@pytest.mark.filterwarnings("error:tfsafe failed")
def test_a_signature_runs_whose_saved_model_was_not_kept(tmp_path):
    """TensorFlow holds the handles of its variables, and the variables only weakly."""
    module = tf.Module()
    module.shift = tf.Variable([1.0])
    spec = tf.TensorSpec([1], name="x")
    module.run = tf.function(lambda x: tf.math.log(x + module.shift), [spec])
    tf.saved_model.save(module, str(tmp_path), signatures=module.run)
    signature = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    gc.collect()
    with debugging.check_numerics():
        (got,) = signature(x=tf.constant([0.0])).values()
        assert got.numpy() == [0.0]
        with pytest.raises(tfsafe.NumericsError, match="log of 1 zero"):
            signature(x=tf.constant([-1.0]))


def test_signature_of_tensorflow_is_taken():
    debugging.enable_check_numerics(30, 50)
    debugging.enable_check_numerics(stack_height_limit=3, path_length_limit=9)
    assert failure(tf.function(tf.math.log), ZERO).op_type == "Log"


def test_gradients_of_eager_code_are_checked():
    x = tf.Variable([0.0, 4.0])
    with debugging.check_numerics():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sqrt(x))
        with pytest.raises(tfsafe.NumericsError) as caught:
            tape.gradient(loss, x)
    finding = caught.value.findings[0]
    assert (finding.op_type, finding.forward_op) == ("SqrtGrad", "Sqrt")
    assert finding.site.source == "loss = tf.reduce_sum(tf.sqrt(x))"
    assert "gradient" in str(caught.value)


@pytest.mark.parametrize(
    ("jit_compile", "checks"), [(False, "watch"), (True, "watch"), (False, "full")]
)
def test_the_backward_function_of_an_eager_tape_is_looked_into(jit_compile, checks):
    function = tf.function(
        lambda x: tf.reduce_sum(tf.sqrt(x)), autograph=False, jit_compile=jit_compile
    )
    x = tf.Variable([0.0, 4.0])

    def step():
        with tf.GradientTape() as tape:
            loss = function(x) * 2.0
        return tape.gradient(loss, [x])

    with debugging.check_numerics(checks=checks):
        finding = failure(step)
    assert finding.is_gradient
    assert finding.forward_op == "Sqrt"
    assert "tf.sqrt(x)" in finding.site.source


def test_functions_can_be_exported_while_it_is_on(tmp_path):
    module = tf.Module()
    module.run = tf.function(tf.math.log, input_signature=[tf.TensorSpec([])])
    with debugging.check_numerics(checks="full"):
        failure(module.run, ZERO)
        tf.saved_model.save(module, str(tmp_path))
    assert np.isneginf(tf.saved_model.load(str(tmp_path)).run(ZERO).numpy())


def test_jacobians_are_checked():
    x = tf.constant([[0.0, 4.0]])
    with debugging.check_numerics():
        for name in ("jacobian", "batch_jacobian"):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.sqrt(x)
            with pytest.raises(tfsafe.NumericsError):
                getattr(tape, name)(y, x)


def test_a_variable_that_is_given_a_nonfinite_value_keeps_its_last_one():
    weight = tf.Variable([3e38, 1.0])
    with debugging.check_numerics():
        finding = failure(lambda: weight.assign(weight * 2.0))
        assert finding.op_type == "Mul"
        assert weight.numpy().tolist() == np.float32([3e38, 1.0]).tolist()
        finding = failure(lambda: weight.assign_add(weight))
        assert finding.op_type == "AssignAddVariableOp"
    assert weight.numpy().tolist() == np.float32([3e38, 1.0]).tolist()


def test_an_optimizer_takes_a_generator_of_variables():
    variable = keras.Variable([1.0, 2.0])
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build([variable])
    with debugging.check_numerics():
        optimizer.apply([tf.ones(2)], (each for each in [variable]))
    assert_close(variable.numpy(), [0.9, 1.9])


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
def test_the_checks_of_tensorflow_may_be_on_as_well(checks):
    @tf.function
    def logarithms(x):
        return tf.unstack(tf.math.log(x))

    with debugging.check_numerics(checks=checks):
        tf.debugging.enable_check_numerics()
        try:
            assert [each.numpy() for each in logarithms(tf.ones(2))] == [0.0, 0.0]
            with pytest.raises((tf.errors.InvalidArgumentError, tfsafe.NumericsError)):
                logarithms(tf.constant([1.0, -1.0]))
        finally:
            tf.debugging.disable_check_numerics()
        # Ours go on; a function that was traced keeps those of TensorFlow.
        assert failure(lambda: tf.function(tf.math.log)(-tf.ones(2))).op_type == "Log"


def test_infinities_that_the_program_writes_are_no_failure():
    with debugging.check_numerics():
        best = tf.Variable(np.inf)
        best.assign(-np.inf)
        masked = tf.where([True, False], ZERO, -np.inf)
        assert tf.nn.softmax(masked).numpy().tolist() == [1.0, 0.0]
    assert best.numpy() == -np.inf


def test_a_loss_of_nan_is_a_failure_whatever_its_gradients_are():
    x = tf.Variable(-2.0)

    def step(reduce):
        with tf.GradientTape() as tape:
            loss = reduce(tf.math.log([1.0, x]))
        return tape.gradient(loss, x)

    with debugging.check_numerics():
        finding = failure(lambda: step(tf.reduce_sum))
        # Of a vector an element may be masked later.
        assert float(step(tf.identity)) == -0.5
    assert finding.op_type == "Log"
    assert finding.cause == "log of 1 negative number (at (1,))."


def test_strict_passes_the_log_of_zero_with_which_ctc_begins():
    labels = tf.constant([[1, 2, 0], [3, 3, 1]])
    logits = tf.Variable(tf.reshape(tf.sin(tf.range(60.0)), (2, 6, 5)))

    def step(values):
        with tf.GradientTape() as tape:
            sizes = [2, 3], [6, 6]
            losses = tf.nn.ctc_loss(labels, values, *sizes, False, blank_index=0)
            loss = tf.reduce_sum(losses)
        return loss, tape.gradient(loss, logits)

    plain = [each.numpy() for each in step(logits)]
    with debugging.check_numerics(strict=True):
        for one, other in zip(step(logits), plain, strict=True):
            np.testing.assert_array_equal(one, other)
    strict = debugging.check_numerics(strict=True)
    with pytest.raises(tfsafe.NumericsError) as caught, strict:
        step(tf.math.log(logits - 9.0))
    assert caught.value.findings[0].op_type == "Log"
    assert caught.value.findings[0].kind == "NaN"


def test_eager_values_that_reach_no_result_are_no_failure_unless_strict():
    x = tf.Variable([0.0, 1.0])

    def step():
        with tf.GradientTape() as tape:
            safe = tf.where(x > 0, x, tf.ones_like(x))
            loss = tf.reduce_sum(tf.math.log(safe))
        tf.math.log(x)
        return tape.gradient(loss, x)

    with debugging.check_numerics():
        assert step().numpy().tolist() == [0.0, 1.0]
    with debugging.check_numerics(strict=True):
        finding = failure(step)
    assert finding.op_type == "Log"
    assert finding.site.source == "tf.math.log(x)"
    with debugging.check_numerics(strict=True, exclude=["op:Log"]):
        step()


def test_of_a_dataset_that_holds_nan_the_elements_count():
    numbers = tf.constant([1.0, np.nan])
    with tfsafe.check_numerics(strict=True):
        data = tf.data.Dataset.from_tensor_slices(numbers)
        mended = data.map(lambda x: tf.where(tf.math.is_nan(x), 0.0, x))
        assert [*mended.as_numpy_iterator()] == [1.0, 0.0]
        with pytest.raises(tfsafe.NumericsError, match="an element of the dataset"):
            list(data)


def test_the_number_that_pads_a_dataset_may_be_nan():
    """`PaddedBatchDatasetV2` is a dataset too, `ReduceDataset` is none."""
    numbers = tf.data.Dataset.from_tensor_slices([1.0, 4.0])
    with tfsafe.check_numerics(strict=True):
        padded = numbers.map(tf.range).padded_batch(2, padding_values=np.nan)
        mended = padded.map(lambda x: tf.where(tf.math.is_nan(x), -1.0, x))
        assert [x.tolist() for x in mended.as_numpy_iterator()] == [
            [[0, -1, -1, -1], [0, 1, 2, 3]]
        ]
        with pytest.raises(tfsafe.NumericsError, match="NaN"):
            list(padded)
        with pytest.raises(tfsafe.NumericsError, match="NaN"):
            numbers.reduce(np.nan, tf.add)


@pytest.mark.parametrize("size", [4, 400])
def test_a_constant_that_eager_code_made_is_followed_to_its_operation(size):
    """A function has a copy of a small tensor, and a large one itself."""
    with debugging.check_numerics():
        count = tf.one_hot([0, 1], size)
        weights = count / tf.reduce_sum(count, axis=0)
        step = tf.function(lambda x: tf.reduce_sum(x * weights))
        finding = failure(step, tf.ones([2, size]))
    assert finding.op_type == "RealDiv"
    assert finding.site.source.startswith("weights = count /")
    assert finding.cause.startswith(f"{size - 2} zeros in the denominator")


def test_of_an_infinite_constant_that_eager_code_made_the_use_is_named():
    with debugging.check_numerics():
        mask = tf.math.log(tf.constant([[1.0, 0.0], [0.0, 0.0]]))
        attend = tf.function(lambda scores: tf.nn.softmax(scores + mask))
        finding = failure(attend, tf.ones([2, 2]))
    assert finding.op_type == "Softmax"


def test_a_constant_is_not_followed_to_eager_code_of_a_block_that_has_ended():
    with debugging.check_numerics():
        nan = tf.constant(0.0) / 0.0
        # Something may keep what the block has followed.
        followed = earlier._LOCAL.followed()
    assert followed.origins(nan)
    choose = tf.function(lambda x: tf.where(x > 2.0, np.nan, x))
    finding = failure(tfsafe.checked(choose, checks="full", strict=True), ZERO)
    assert finding.op_type == "Const"


def test_blocks_may_be_nested_and_the_innermost_counts():
    log = tf.function(tf.math.log)
    hidden = tf.function(lambda x: tf.math.tanh(tf.math.log(x)))
    debugging.enable_check_numerics()
    hidden(ZERO)
    with debugging.check_numerics(strict=True):
        failure(hidden, ZERO)
        with debugging.check_numerics(exclude=["op:Log"]):
            log(ZERO)
        failure(hidden, ZERO)
        debugging.disable_check_numerics()
        failure(hidden, ZERO)
    log(ZERO)


def test_an_error_inside_a_block_ends_it():
    with pytest.raises(KeyError), debugging.check_numerics():
        raise KeyError
    tf.function(tf.math.log)(ZERO)


def test_it_reaches_other_threads():
    log = tf.function(tf.math.log)
    log(ZERO)
    with (
        debugging.check_numerics(),
        concurrent.futures.ThreadPoolExecutor(2) as pool,
    ):
        errors = [pool.submit(log, ZERO).exception() for _ in range(4)]
        x = tf.Variable(0.0)

        def eager():
            log(tf.constant(1.0))
            with tf.GradientTape() as tape:
                y = tf.sqrt(x)
            return tape.gradient(y, x)

        errors.append(pool.submit(eager).exception())
        assert all(isinstance(each, tfsafe.NumericsError) for each in errors)
        debugging.disable_check_numerics()
    # The thread that outlives the block is free again.
    kept = threading.Thread(target=log, args=[ZERO])
    kept.start()
    kept.join()


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}, {"run_eagerly": True}])
def test_models_are_reached_and_given_back(options):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((2,)), programs.Norm()])
    model.compile(keras.optimizers.SGD(0.1), "mse", **options)
    good, bad = np.ones([4, 2], "float32"), np.zeros([4, 2], "float32")
    y = np.ones([4, 1], "float32")
    model.fit(good, y, verbose=0)
    before = model.get_weights()
    debugging.enable_check_numerics()
    model.fit(good, y, verbose=0)
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(bad, y, verbose=0)
    finding = caught.value.findings[0]
    assert programs.is_at(finding.site, "norm")
    debugging.disable_check_numerics()
    assert "make_train_function" not in vars(model)
    model.fit(good, y, verbose=0)
    assert all(np.isfinite(each).all() for each in [*before, *model.get_weights()])


def test_the_gradients_of_a_scaled_loss_overflow_by_design():
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.1), initial_scale=1e38
    )
    weight = keras.Variable([1.0])
    optimizer.build([weight])
    with debugging.check_numerics():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight.value * 1e3)
            scaled = optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, [weight.value])
        assert np.isinf(gradients[0].numpy()).any()
        optimizer.apply(gradients, [weight])
    assert weight.numpy().tolist() == [1.0]


def test_functions_of_data_and_of_python_are_left_alone():
    inner = tf.function(tf.math.log)

    def python(x):
        return np.float32(inner(x))

    @tf.function
    def run(x):
        return tf.where(x > 0, tf.numpy_function(python, [x], tf.float32), x)

    with debugging.check_numerics():
        data = tf.data.Dataset.from_tensors(ZERO).map(tf.math.log)
        assert np.isneginf(next(iter(data)).numpy())
        assert run(ZERO).numpy() == 0.0


def test_what_a_library_calls_inside_is_no_result():
    with debugging.check_numerics():
        logs = tf.vectorized_map(tf.math.log, tf.constant([0.0, 1.0]))
        assert tf.exp(logs).numpy().tolist() == [0.0, 1.0]


def test_checks_do_not_keep_a_function_alive():
    with debugging.check_numerics():
        function = tf.function(lambda x: x * 2.0)
        function(ZERO)
        gone = weakref.ref(function)
        del function
        gc.collect()
        assert gone() is None


def test_a_gradient_can_be_taken_through_a_function(mode):
    x = tf.Variable([2.0])
    function = modes.compile_for(mode, lambda: x**3)
    with debugging.check_numerics(), tf.GradientTape() as tape:
        y = function()
        assert tape.gradient(y, x).numpy().tolist() == [12.0]


def test_switching_on_inside_a_trace_is_warned_of():
    @tf.function
    def run(x):
        debugging.enable_check_numerics()
        return x

    with pytest.warns(UserWarning, match="inside a function that is being traced"):
        run(ZERO)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"checks": "all"}, ValueError, "`checks` must be \"watch\".* checks='all'"),
        (
            {"strict": 1},
            TypeError,
            "`strict` must be True or False. Received: strict=1",
        ),
        ({"exclude": "op:Log"}, TypeError, "must be a sequence of strings"),
        (
            {"exclude": ["Log"]},
            ValueError,
            "must be one of \"op:Log\".* Received: 'Log'",
        ),
        ({"exclude": ["op:"]}, ValueError, "Received: 'op:'"),
        ({"exclude": [3]}, ValueError, "Received: 3"),
    ],
)
def test_wrong_options_are_refused(arguments, kind, message):
    for ask in (
        debugging.enable_check_numerics,
        lambda **each: debugging.check_numerics(**each).__enter__(),
        lambda **each: tfsafe.checked(tf.math.log, **each),
    ):
        with pytest.raises(kind, match=message):
            ask(**arguments)


def test_functions_that_are_run_eagerly_are_followed_as_eager_code():
    x = tf.Variable(0.0)
    function = tf.function(lambda: tf.sqrt(x), autograph=False)
    tf.config.run_functions_eagerly(True)
    try:
        with debugging.check_numerics():
            with tf.GradientTape() as tape:
                y = function()
            with pytest.raises(tfsafe.NumericsError, match="gradient of `Sqrt`"):
                tape.gradient(y, x)
    finally:
        tf.config.run_functions_eagerly(False)


def test_a_partial_function_is_the_users():
    function = tf.function(functools.partial(lambda x, y: tf.math.log(x * y), y=2.0))
    with debugging.check_numerics():
        assert failure(function, ZERO).op_type == "Log"


def test_a_model_follows_a_change_of_what_is_asked_for():
    class Hidden(keras.layers.Layer):
        def call(self, x):
            return tf.tanh(tf.math.log(x))

    model = keras.Sequential([keras.Input((1,)), Hidden()])
    model.compile(loss="mse")
    x = np.zeros([2, 1], "float32")
    with debugging.check_numerics():
        model.evaluate(x, x, verbose=0)
        with (
            debugging.check_numerics(strict=True),
            pytest.raises(tfsafe.NumericsError, match="Log"),
        ):
            model.evaluate(x, x, verbose=0)
        model.evaluate(x, x, verbose=0)


def test_a_model_that_cannot_be_checked_is_warned_of():
    class Own(keras.Model):
        def make_train_function(self, force=False):
            return super().make_train_function(force)

        def call(self, x):
            return x

    model = Own()
    model.compile(loss="mse")
    with (
        debugging.check_numerics(),
        pytest.warns(UserWarning, match="defines itself.* It is not checked"),
    ):
        model.predict(np.zeros([2, 1], "float32"), verbose=0)


def test_without_eager_execution_it_is_refused(monkeypatch):
    monkeypatch.setattr(
        tf.compat.v1, "executing_eagerly_outside_functions", lambda: False
    )
    with pytest.raises(RuntimeError, match="numeric checks need eager execution"):
        debugging.enable_check_numerics()
