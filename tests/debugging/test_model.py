"""A Keras model under the checks: `fit` and its siblings."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.debugging import programs
from tfsafe.debugging.models.model import check_model, is_checked, uncheck_model

SEQUENCE = (3, 4)
CONFIGS = [
    pytest.param({"jit_compile": False}, id="graph"),
    pytest.param({"jit_compile": True}, id="xla"),
    pytest.param({"run_eagerly": True}, id="eager"),
]


def sequences(bad_row=None, rows=16):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, *SEQUENCE)).astype("float32")
    if bad_row is not None:
        x[bad_row, 1] = 0.0
    return x, rng.integers(0, 3, rows)


def classifier(reader=keras.layers.Flatten, **options):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input(SEQUENCE),
            programs.Standardise(name="standardise"),
            keras.layers.Dropout(0.2),
            reader(),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(3),
        ],
        name="classifier",
    )
    compile_model(model, **options)
    return model


class Snapshots(keras.callbacks.Callback):
    """Keeps the variables as they were after each batch."""

    def __init__(self):
        super().__init__()
        self.after = []

    def on_train_batch_end(self, batch, logs=None):
        self.after.append(everything(self.model))


def compile_model(model, **options):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"], **options)


def norm_model(**options):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((2,)), programs.Norm()])
    model.compile(keras.optimizers.SGD(0.1), "mse", **options)
    return model


def everything(model):
    variables = [*model.variables, *model.optimizer.variables]
    return [np.array(keras.ops.convert_to_numpy(each)) for each in variables]


def assert_same(left, right):
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("options", CONFIGS)
def test_fit_raises_from_the_failing_batch_and_undoes_it(options):
    x, y = sequences(bad_row=9)
    model = tfsafe.checked(
        classifier(functools.partial(keras.layers.LSTM, 2, use_cudnn=False), **options)
    )
    kept = Snapshots()
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(x, y, batch_size=4, shuffle=False, verbose=0, callbacks=[kept])
    finding = caught.value.findings[0]
    assert (finding.op_type, finding.row, finding.index) == ("RealDiv", 1, (1, 1, 0))
    assert programs.is_at(finding.site, "standardise")
    assert finding.cause == "1 zero in the denominator (at (1, 1, 0))."
    assert finding.suggested_code == "tfsafe.ops.divide(x - mean, std)"
    assert "standardise" in finding.scope
    assert "reach: the loss" in str(caught.value)
    # Two good batches, and nothing of the third: weights, slots, statistics, seeds.
    assert len(kept.after) == 2
    assert_same(everything(model), kept.after[-1])


@pytest.mark.parametrize("options", CONFIGS[::2])
def test_without_a_failure_a_model_does_what_it_did(options):
    x, y = sequences()
    plain, checked = classifier(**options), tfsafe.checked(classifier(**options))
    histories = [
        model.fit(x, y, batch_size=6, epochs=2, verbose=0, validation_data=(x, y))
        for model in (plain, checked)
    ]
    assert_same(everything(plain), everything(checked))
    assert histories[0].history == histories[1].history
    np.testing.assert_array_equal(
        plain.predict(x, batch_size=6, verbose=0),
        checked.predict(x, batch_size=6, verbose=0),
    )
    assert plain.evaluate(x, y, verbose=0) == checked.evaluate(x, y, verbose=0)


def test_without_a_failure_a_model_under_xla_is_the_same_to_the_last_bit():
    x, y = sequences(rows=12)
    models = [
        wrap(classifier(jit_compile=True))
        for wrap in (lambda each: each, tfsafe.checked)
    ]
    for model in models:
        model.fit(x, y, batch_size=6, epochs=2, verbose=0)
    assert_same(*map(everything, models))


@pytest.mark.parametrize("options", CONFIGS)
def test_a_failure_of_the_gradient_alone_is_found_in_fit(options):
    model = tfsafe.checked(norm_model(**options))
    x = np.array([[1.0, 2.0], [0.0, 0.0]], "float32")
    before = everything(model)
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(x, np.ones([2, 1], "float32"), verbose=0)
    finding = caught.value.findings[0]
    assert (finding.op_type, finding.forward_op) == ("SqrtGrad", "Sqrt")
    assert programs.is_at(finding.site, "norm")
    assert_same(everything(model), before)


METHODS = {
    "evaluate": lambda model, x, y: model.evaluate(x, y, verbose=0),
    "predict": lambda model, x, y: model.predict(x, verbose=0),
    "train_on_batch": lambda model, x, y: model.train_on_batch(x, y),
    "test_on_batch": lambda model, x, y: model.test_on_batch(x, y),
    "predict_on_batch": lambda model, x, y: model.predict_on_batch(x),
}


@pytest.mark.parametrize("method", METHODS)
def test_the_other_methods_are_checked_too(method):
    model = tfsafe.checked(classifier())
    x, y = sequences(bad_row=2)
    with pytest.raises(tfsafe.NumericsError, match="RealDiv"):
        METHODS[method](model, x, y)
    METHODS[method](model, *sequences())


def test_evaluate_and_predict_name_the_batch():
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    tfsafe.checked(model)
    x, bad = np.ones([6, 1], "float32"), np.ones([6, 1], "float32")
    bad[3] = np.nan
    silent = {"batch_size": 2, "verbose": 0}
    for call, when in (
        (lambda: model.evaluate(bad, x, **silent), "batch 1"),
        (lambda: model.predict(bad, **silent), "batch 1"),
        (
            lambda: model.fit(x, x, validation_data=(bad, x), **silent),
            "epoch 0, validation batch 1",
        ),
    ):
        with pytest.raises(tfsafe.NumericsError) as caught:
            call()
        assert f"  when:  {when}\n" in str(caught.value)
        assert caught.value.batch == 1


@pytest.mark.parametrize("options", CONFIGS[::2])
def test_a_nonfinite_batch_names_input_row_and_part(options):
    x, y = sequences()
    x[6, 2, 1] = np.nan
    model = tfsafe.checked(classifier(**options))
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    finding = caught.value.findings[0]
    assert finding.origin == "argument `x`"
    assert (finding.row, finding.index) == (2, (2, 2, 1))


def test_the_model_may_be_compiled_and_trained_before_or_after():
    x, y = sequences(bad_row=0)
    model = classifier()
    good = sequences()
    model.fit(*good, verbose=0)
    model.predict(good[0], verbose=0)
    assert tfsafe.checked(model) is model
    with pytest.raises(tfsafe.NumericsError):
        model.fit(x, y, verbose=0)
    compile_model(model, run_eagerly=True)
    with pytest.raises(tfsafe.NumericsError):
        model.fit(x, y, verbose=0)
    late = tfsafe.checked(keras.Sequential([programs.Standardise()]))
    with pytest.raises(tfsafe.NumericsError):
        late.predict(x, verbose=0)


def test_a_model_that_is_checked_twice_is_checked_once():
    model = tfsafe.checked(tfsafe.checked(classifier(run_eagerly=True)), strict=True)
    x, y = sequences(bad_row=0)
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(x, y, verbose=0)
    assert len(caught.value.findings) == 1


def test_several_steps_an_execution_are_checked_one_by_one():
    x, y = sequences(bad_row=13, rows=20)
    model = tfsafe.checked(classifier(steps_per_execution=3))
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    assert caught.value.findings[0].row == 1
    plain = classifier()
    plain.fit(x[:12], y[:12], batch_size=4, shuffle=False, verbose=0)
    assert_same(everything(model), everything(plain))


def test_several_steps_an_execution_end_where_the_data_end():
    x, y = sequences(rows=20)
    model = tfsafe.checked(classifier(steps_per_execution=3))
    history = model.fit(x, y, batch_size=4, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    assert model.predict(x, batch_size=4, verbose=0).shape == (20, 3)


def test_a_failure_that_depends_on_dropout_is_replayed_with_the_same_seed():
    keras.utils.set_random_seed(5)

    class Inverse(keras.layers.Layer):
        def call(self, x):
            return 1.0 / tf.reduce_sum(x, -1)

    dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = keras.Sequential([keras.layers.Dropout(0.5), dense, Inverse()])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    tfsafe.checked(model)
    x = np.ones([4, 3], "float32")

    def train():
        for _ in range(50):
            model.train_on_batch(x, np.ones([4], "float32"))

    with pytest.raises(tfsafe.NumericsError) as caught:
        train()
    assert caught.value.findings[0].op_type == "RealDiv"


def test_a_missing_part_of_the_batch_is_none_as_before():
    seen = []

    class Custom(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x["a"])

        def train_step(self, data):
            x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
            seen.append((sorted(x), y is None, weight is None))
            return super().train_step((x, tf.zeros([2, 1]), weight))

    model = tfsafe.checked(Custom())
    model.compile("sgd", "mse")
    model.fit({"a": np.ones([2, 3], "float32")}, verbose=0)
    assert seen[-1] == (["a"], True, True)


def test_a_checked_model_can_be_saved(tmp_path):
    model = tfsafe.checked(norm_model())
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(
        tmp_path / "model.keras", custom_objects={"Norm": programs.Norm}
    )
    x = np.ones([1, 2], "float32")
    assert again.predict(x, verbose=0) == model.predict(x, verbose=0)


def test_a_loss_scale_that_skips_its_overflow_is_no_failure():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    inner = keras.optimizers.SGD(0.1)
    optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=1e38)
    model.compile(optimizer, "mse", jit_compile=False)
    tfsafe.checked(model).fit(
        np.full([4, 2], 1e3, "float32"), np.zeros([4, 1], "float32"), verbose=0
    )
    assert np.isfinite(everything(model)[0]).all()


def test_a_model_with_a_training_function_of_its_own_is_refused():
    class Own(keras.Model):
        def make_train_function(self, force=False):
            return None

    with pytest.raises(ValueError, match="`make_train_function`, which this model"):
        tfsafe.checked(Own(name="own"))


def test_a_model_of_several_workers_is_refused():
    model = keras.Sequential([keras.layers.Dense(1)])

    class Workers:
        num_replicas_in_sync = 2

    model._distribute_strategy = Workers()
    with pytest.raises(ValueError, match="under Workers with 2 replicas"):
        tfsafe.checked(model)


def test_a_gradient_that_no_loss_scale_can_prevent_is_a_failure():
    model = norm_model(jit_compile=False)
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.1), initial_scale=4.0
    )
    model.compile(optimizer, "mse", jit_compile=False)
    tfsafe.checked(model)
    x = np.array([[1.0, 2.0], [0.0, 0.0]], "float32")
    y = np.ones([2, 1], "float32")
    # The scale falls to 2 and to 1.
    history = model.fit(x, y, batch_size=2, epochs=2, verbose=0).history
    assert list(history) == ["loss"]
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(x, y, verbose=0)
    assert caught.value.findings[0].op_type == "SqrtGrad"
    assert programs.is_at(caught.value.findings[0].site, "norm")
    assert "gradient of" in str(caught.value)
    assert float(optimizer.dynamic_scale.numpy()) == 1.0


def test_a_loss_scale_that_may_fall_below_one_is_let_fall():
    model = norm_model(jit_compile=False)
    optimizer = tfsafe.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.1), initial_scale=1.0, minimum_scale=0.25
    )
    model.compile(optimizer, "mse", jit_compile=False)
    x, y = np.zeros([1, 2], "float32"), np.ones([1, 1], "float32")
    tfsafe.checked(model).fit(x, y, epochs=2, verbose=0)
    with pytest.raises(tfsafe.NumericsError, match="SqrtGrad"):
        model.fit(x, y, verbose=0)


def test_gradients_are_noted_where_they_are_no_part_of_a_branch():
    class Sometimes(keras.Sequential):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.optimizer.scale_loss(self.compiled_loss_of(x, y))
            gradients = tape.gradient(loss, self.trainable_variables)

            def apply():
                self.optimizer.apply(gradients, self.trainable_variables)
                return 0

            tf.cond(tf.size(x) > 0, apply, lambda: 1)
            return {"loss": loss}

        def compiled_loss_of(self, x, y):
            return tf.reduce_mean((self(x) - y) ** 2)

    model = Sometimes([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.1), initial_scale=1.0
    )
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, jit_compile=False)
    history = tfsafe.checked(model).fit(
        np.ones([2, 2], "float32"), np.ones([2, 1], "float32"), verbose=0
    )
    assert np.isfinite(history.history["loss"]).all()


@pytest.mark.parametrize("was_trained", [False, True])
def test_a_model_may_be_unchecked_again(was_trained):
    x, y = sequences(bad_row=0)
    model = check_model(classifier(jit_compile=False))
    assert is_checked(model)
    if was_trained:
        model.fit(*sequences(), verbose=0)
    assert uncheck_model(model) is model
    assert not is_checked(model)
    assert np.isnan(model.fit(x, y, verbose=0).history["loss"]).all()
    assert uncheck_model(model) is model
