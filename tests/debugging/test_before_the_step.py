"""What is wrong in the data or the optimizer is found there, not in the step."""

import inspect
import types
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tfsafe.debugging.models import data_source

pytestmark = pytest.mark.slow


def signal(silent):
    waves = np.random.default_rng(0).normal(size=(12, 4)).astype("float32")
    waves[silent] = 0
    return tf.data.Dataset.from_tensor_slices((waves, np.ones((12, 1), "float32")))


def loudness(wave, label):
    return tf.math.log(tf.abs(wave)), label


def through_python(wave, label):
    return tf.py_function(loudness, (wave, label), (tf.float32, tf.float32))


def fit_error(data):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(model).fit(data, verbose=0, shuffle=False)
    return caught.value


@pytest.mark.parametrize("is_parallel", [False, True])
def test_a_mapped_function_is_named_with_its_line(is_parallel):
    workers = tf.data.AUTOTUNE if is_parallel else None
    data = signal(silent=9).batch(4).map(loudness, workers).prefetch(1)
    error = fit_error(data)
    found, argument = error.findings
    assert (found.op_type, found.site.function) == ("Log", "loudness")
    assert argument.origin == "argument `x`"
    assert str(error).startswith("-Inf from `Log`, first in row 1 of the batch.")
    assert "  data:  element 2 of the data of `Dataset.map`" in str(error)
    assert (error.epoch, error.batch) == (0, 2)


def train(step, data):
    for _, (x, y) in enumerate(data):
        step(x, y)


@pytest.mark.parametrize("way", ["eager", "traced", "switched on"])
def test_the_map_behind_a_loop_of_the_program_is_named(way):
    data = signal(silent=9).map(loudness).batch(4)
    w = tf.Variable(tf.ones([4, 1]))

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w - y) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    if way != "eager":
        step = tf.function(step)
    if way == "switched on":
        tfsafe.enable_check_numerics()
    else:
        step = tfsafe.checked(step)
    try:
        with pytest.raises(tfsafe.NumericsError) as caught:
            train(step, data)
    finally:
        tfsafe.disable_check_numerics()
    found, argument = caught.value.findings
    assert (found.op_type, found.site.function) == ("Log", "loudness")
    assert argument.origin == "argument `x`"
    assert "element 9 of the data of `Dataset.map`" in str(caught.value)


def test_data_of_another_loop_are_not_searched():
    def repeat(data):
        for _ in data:
            step(tf.constant([np.nan, 1.0]))

    step = tfsafe.checked(tf.function(lambda x: tf.reduce_sum(x * 2.0)))
    with pytest.raises(tfsafe.NumericsError) as caught:
        repeat(signal(silent=9).map(loudness))
    assert [each.origin for each in caught.value.findings] == ["argument `x`"]


def test_a_map_before_another_one_is_found():
    data = signal(silent=3).map(loudness).batch(4).map(lambda x, y: (x * 2, y))
    error = fit_error(data)
    assert error.findings[0].site.function == "loudness"
    assert "element 3 of" in str(error)


@pytest.mark.parametrize("is_concatenated", [False, True])
def test_a_map_of_data_that_are_joined_is_found(is_concatenated):
    data = signal(silent=3).map(loudness)
    if is_concatenated:
        data = signal(silent=[]).map(lambda x, y: (x * 2.0, y)).concatenate(data)
    else:
        x, y = data.map(lambda x, _: x), tf.data.Dataset.from_tensors([1.0]).repeat()
        data = tf.data.Dataset.zip((x, y))
    error = fit_error(data.batch(4))
    assert error.findings[0].site.function == "loudness"
    assert "element 3 of" in str(error)


@pytest.mark.parametrize("method", ["flat_map", "interleave", "parallel interleave"])
@pytest.mark.parametrize("is_in_a_map", [False, True])
def test_what_makes_a_dataset_of_an_element_is_named(method, is_in_a_map):
    def frames(x, y):
        inner = tf.data.Dataset.from_tensors((x, y))
        if is_in_a_map:
            return inner.repeat(2).map(loudness).batch(2)
        if tf.reduce_sum(y) < 0:
            x = x * 0.0
        return tf.data.Dataset.from_tensors(loudness(x, y)).repeat(2).batch(2)

    name, *parallel = reversed(method.split())
    workers = {"num_parallel_calls": 2} if parallel else {}
    data = getattr(signal(silent=3), name)(frames, **workers)
    error = fit_error(data.map(lambda x, y: (x * 2.0, y)))
    assert error.findings[0].site.function == "loudness"
    assert error.findings[0].op_type == "Log"
    text = " ".join(str(error).split())
    within = "element 0 of the data of `Dataset.map`, within " if is_in_a_map else ""
    assert f"{within}element 3 of the data of `Dataset.{name}`; the" in text


@pytest.mark.parametrize("is_within", [False, True])
def test_python_in_a_pipeline_is_not_called_again(is_within):
    data = signal(silent=9)
    if is_within:
        one = tf.data.Dataset.from_tensors
        data = data.flat_map(lambda x, y: one((x, y)).map(through_python))
    else:
        data = data.map(through_python)
    data = data.map(lambda x, y: (tf.ensure_shape(x, (4,)), tf.ensure_shape(y, (1,))))
    error = fit_error(data.batch(4))
    assert [each.origin for each in error.findings] == ["argument `x`"]


@pytest.mark.parametrize("is_dataset", [False, True])
def test_adapt_names_columns_and_rows(is_dataset):
    table = np.ones((6, 3), "float32")
    table[1, 2] = table[4, 2] = np.nan
    data = tf.data.Dataset.from_tensor_slices(table).batch(4) if is_dataset else table
    layer = keras.layers.Normalization()
    with pytest.raises(tfsafe.NumericsError) as caught, tfsafe.check_numerics():
        layer.adapt(data)
    found = caught.value.findings[0]
    assert found.origin == "column 2 of the data of `adapt`"
    assert (found.count, found.size, found.index) == (2, 18, (1, 2))
    assert found.cause.startswith("rows 1, 4.")
    assert 'check_finite(data, policy="report")' in str(caught.value)


@pytest.mark.parametrize(
    ("optimizer", "is_named"),
    [
        (keras.optimizers.Adam(1.0), True),
        (tfsafe.SafeOptimizer(keras.optimizers.RMSprop(1.0)), True),
        (keras.optimizers.Adam(0.01), False),
        (keras.optimizers.SGD(1.0), False),
    ],
)
def test_a_large_rate_is_named_for_an_overflow(optimizer, is_named):
    weight = keras.Variable([3.0])
    optimizer.build([weight])

    @tfsafe.checked
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.exp(x * weight))
        gradient = tape.gradient(loss, weight.value)
        optimizer.apply([gradient], [weight])
        return loss

    step(tf.constant([1.0]))
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(tf.constant([-1e6 if weight.numpy()[0] < 0 else 1e6]) + 0 * weight)
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    words = f"{type(inner).__name__} moves every weight by about the learning rate"
    assert (words in caught.value.findings[0].suggestion) == is_named
    assert (words in " ".join(str(caught.value).split())) == is_named


@pytest.mark.parametrize("rate", [tf.math.rsqrt, lambda t: 0.1 * t / (t - t)])
def test_of_a_rate_that_is_divided_by_0_steps_the_count_is_told(rate):
    class Schedule(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return rate(tf.cast(step, tf.float32))

    weight = keras.Variable([3.0])
    optimizer = keras.optimizers.SGD(Schedule())
    optimizer.build([weight])
    step = tfsafe.checked(tf.function(lambda x: optimizer.apply([x], [weight])))
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(tf.constant([1.0]))
    found = caught.value.findings[0]
    assert found.suggestion.startswith("this learning rate is infinite or NaN, and one")
    assert not found.suggested_code


def through_numpy(wave):
    return np.log(wave)


def rows_of_python():
    while True:
        yield through_numpy(np.zeros([4, 2], "float32")), np.ones([4, 1])


class Rows(keras.utils.PyDataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return through_numpy(np.zeros([4, 2], "float32")), np.ones([4, 1])


def mapped_through_numpy():
    def element(x):
        found = tf.numpy_function(through_numpy, [x], tf.float32)  # here
        return tf.ensure_shape(found, [2]), 1.0

    return tf.data.Dataset.from_tensor_slices(tf.zeros([4, 2])).map(element).batch(2)


def generated_by_numpy():
    def rows():
        yield through_numpy(np.zeros([4, 2], "float32")), np.ones([4, 1], "float32")

    of = tf.TensorSpec([4, 2]), tf.TensorSpec([4, 1])
    data = tf.data.Dataset.from_generator(rows, output_signature=of)  # here
    return data.prefetch(1)


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, each in enumerate(lines) if text in each)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(
    ("data", "line"),
    [
        (mapped_through_numpy(), line_of(mapped_through_numpy, "# here")),
        (generated_by_numpy(), line_of(generated_by_numpy, "# here")),
        (rows_of_python(), line_of(rows_of_python, "def ")),
        (Rows(), line_of(Rows, "def __getitem__")),
    ],
    ids=["map", "from_generator", "generator", "PyDataset"],
)
def test_the_python_that_makes_the_data_is_named(data, line):
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, options = data, {"steps_per_epoch": 1, "shuffle": False, "verbose": 0}
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(x, callbacks=[tfsafe.NumericsMonitor()], **options)
    finding = caught.value.findings[0]
    assert finding.cause.endswith(
        f"Python makes the data, at test_before_the_step.py:{line}."
    )
    assert "simplefilter('error', RuntimeWarning) raises" in finding.suggestion
    is_endless = "itertools.islice(x, 100)" in finding.suggested_code
    assert is_endless == isinstance(data, types.GeneratorType)


def test_numpy_raises_in_a_map_as_it_is_told_to():
    with warnings.catch_warnings(), np.errstate(divide="raise"):
        # Elements are made in other threads, to which `errstate` does not extend.
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(tf.errors.OpError, match="RuntimeWarning: divide by zero"):
            list(mapped_through_numpy())


class Rate(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, rate):
        self._rate = rate

    def __call__(self, step):
        return self._rate(tf.cast(step, tf.float32))


def failure_of_fit(optimizer, epochs=10, loss="mse", scale=1.0, **options):
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(8, "relu"), keras.layers.Dense(3)]
    model = keras.Sequential([keras.Input([4]), *layers])
    model.compile(optimizer, loss)
    x = np.random.default_rng(0).normal(size=[32, 4]).astype("float32")
    y = np.eye(3, dtype="float32")[np.arange(32) % 3] * scale
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(model).fit(
            x, y, epochs=epochs, batch_size=8, verbose=0, **options
        )
    return caught.value


def test_a_schedule_that_is_nan_after_its_end_is_told_to_stay_there():
    error = failure_of_fit(keras.optimizers.SGD(Rate(lambda t: (1 - t / 6) ** 0.9)))
    assert error.step == 7
    words = error.findings[0].suggestion
    assert words.startswith("this learning rate is NaN: its schedule goes on after")
    assert "The learning rate became nan." in " ".join(str(error).split())


def test_a_schedule_that_divides_by_0_or_rises_is_named():
    schedules = keras.optimizers.schedules
    pole = schedules.InverseTimeDecay(0.01, 1, decay_rate=-0.25)
    error = failure_of_fit(keras.optimizers.SGD(pole))
    words = error.findings[0].suggestion
    assert words.startswith("this learning rate was 0.01 at step 0 and is inf now")
    assert "ower the learning rate" not in " ".join(str(error).split())
    rising = schedules.ExponentialDecay(0.01, 1, decay_rate=2.0)
    error = failure_of_fit(keras.optimizers.SGD(rising), 40)
    words = error.findings[0].suggestion
    assert words.startswith("the schedule has raised the learning rate from 0.01 at")


class Restart(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.model.optimizer.learning_rate = 30.0 if epoch == 3 else 0.01


@pytest.mark.parametrize(
    ("callback", "who"),
    [
        (
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: 10 * rate),
            "LearningRateScheduler",
        ),
        (Restart(), "a callback or the program"),
    ],
)
def test_what_raises_the_rate_from_outside_is_named(callback, who):
    optimizer = keras.optimizers.SGD(0.001)
    words = failure_of_fit(optimizer, callbacks=[callback]).findings[0].suggestion
    assert words.startswith(f"{who} has raised the learning rate from 0.01 in the")


def test_a_rate_that_fell_has_not_been_raised():
    falling = keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.99 * rate)
    error = failure_of_fit(keras.optimizers.SGD(50.0), callbacks=[falling])
    assert "raised" not in error.findings[0].suggestion


def test_a_negative_learning_rate_is_named():
    error = failure_of_fit(keras.optimizers.SGD(Rate(lambda t: 0.1 - t)), 50)
    words = error.findings[0].suggestion
    assert words.startswith(f"the learning rate {error.learning_rate:.4g} is negative")
    assert "ower the learning rate" not in " ".join(str(error).split())


def test_targets_that_are_far_too_large_are_named():
    error = failure_of_fit(keras.optimizers.SGD(0.1), scale=1e13)
    words = error.findings[0].suggestion
    assert words.startswith("`y` reaches 1.0e+13: divide it by a number of that size")
    assert "`x` reaches" not in words


def test_the_rate_is_to_blame_for_a_probability_that_steps_made_0():
    def cross_entropy(y, logits):
        p = tf.nn.softmax(logits)
        return -tf.reduce_mean(tf.reduce_sum(y * tf.math.log(p), -1))

    error = failure_of_fit(keras.optimizers.SGD(100.0), loss=cross_entropy)
    words = error.findings[0].suggestion
    assert words.startswith("lower the learning rate 100 first: ")
    assert "Otherwise tfsafe.ops.log_softmax(logits)" in words


def test_no_rate_is_to_blame_for_a_probability_that_a_batch_makes_0():
    weight = tf.Variable([1.0])
    step = tfsafe.checked(tf.function(lambda x: tf.math.log(tf.sigmoid(weight * x))))
    step(tf.constant([1.0]))
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(tf.constant([-1000.0]))
    finding = caught.value.findings[0]
    assert finding.suggested_code == "tfsafe.ops.log_sigmoid(weight * x)"
    assert "earning rate" not in finding.suggestion


def test_a_feature_that_is_nan_in_every_row_is_not_one_to_drop_rows_for():
    step = tfsafe.checked(tf.function(lambda x: tf.reduce_sum(tf.square(x))))
    x = np.ones([4, 3], "float32")
    x[:, 1] = np.nan
    x[2, 2] = np.nan
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(x)
    assert "feature 1 is NaN in each row" in caught.value.findings[0].suggestion
    x[0, 1] = 1.0
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(x)
    assert "each row" not in caught.value.findings[0].suggestion


def test_a_rate_that_a_callback_sets_is_told_to_begin_with_1():
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.ones([2, 1], "float32")
    decay = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / np.float32(epoch))
    with (
        np.errstate(divide="ignore"),
        pytest.raises(tfsafe.NumericsError) as caught,
    ):
        model.fit(x, x, verbose=0, callbacks=[decay, tfsafe.NumericsMonitor()])
    finding = caught.value.findings[0]
    assert finding.origin == f"variable `{model.optimizer.name}/learning_rate`"
    assert "as step + 1 does" in finding.suggestion
    assert not finding.suggested_code


@pytest.mark.filterwarnings("ignore:check_finite dropped")
@pytest.mark.parametrize(
    ("parse", "op_type"),
    [
        (lambda line: tf.stack(tf.io.decode_csv(line, [0.0, 0.0])), "DecodeCSV"),
        (
            lambda line: tf.strings.to_number(tf.strings.split(line, ",")),
            "StringToNumber",
        ),
    ],
)
def test_a_missing_number_of_a_text_is_found_in_it(parse, op_type, monkeypatch):
    # TensorFlow may wait for seconds while it ends the dataset of an earlier training.
    monkeypatch.setattr(data_source, "_LIMIT", 0.0)
    lines = tf.data.Dataset.from_tensor_slices(["1,2", "3,NaN", "5,6"])
    data = lines.map(lambda line: (tf.ensure_shape(parse(line), [2]), 1.0)).batch(3)
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    monitor = tfsafe.NumericsMonitor()
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(data, verbose=0, shuffle=False, callbacks=[monitor])
    finding = caught.value.findings[0]
    text = "3,NaN" if op_type == "DecodeCSV" else "NaN"
    assert (finding.op_type, finding.cause) == (op_type, f"the text '{text}' holds it.")
    assert 'tfsafe.data.check_finite(data, policy="drop")' in finding.suggestion
    clean = tfsafe.data.check_finite(data, policy="drop")
    assert [x.numpy().tolist() for x, _ in clean] == [[[1.0, 2.0], [5.0, 6.0]]]
