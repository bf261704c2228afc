"""`stabilize` on Keras losses and models."""

import collections
import copy

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import contrast
from tests.support.oracle import assert_close
from tfsafe._patching import patches_on
from tfsafe.optimizers import SafeOptimizer
from tfsafe.rewriting import stabilize

CLASSES = 3
GENERATOR = np.random.default_rng(0)
# So large that the softmax of most rows holds exact zeros.
X = (GENERATOR.normal(size=(20, 4)) * 300).astype(np.float32)
Y = np.eye(CLASSES, dtype=np.float32)[GENERATOR.integers(0, CLASSES, 20)]

# Those that wrap others need one.
OPTIMIZERS = [
    name
    for name, kind in vars(keras.optimizers).items()
    if "update_step" in getattr(kind, "__dict__", {}) and "Optimizer" not in name
]


@keras.saving.register_keras_serializable("tests")
def naive(y_true, y_pred):
    return -tf.reduce_sum(y_true * tf.math.log(y_pred), -1)


@keras.saving.register_keras_serializable("tests")
class NaiveLoss(keras.losses.Loss):
    """Takes the softmax itself, and has an attribute of its own."""

    def __init__(self, scale=1.0, name="naive", reduction="sum_over_batch_size"):
        super().__init__(name=name, reduction=reduction)
        self.scale = scale

    def call(self, y_true, y_pred):
        return naive(y_true, tf.nn.softmax(y_pred)) * self.scale

    def get_config(self):
        return {"scale": self.scale, "reduction": self.reduction, "name": self.name}


def model(activation="softmax", loss=naive, optimizer="sgd", **options):
    keras.utils.set_random_seed(0)
    made = keras.Sequential([
        keras.Input([4]),
        keras.layers.Dense(CLASSES, activation),
    ])
    made.compile(optimizer, loss, metrics=["accuracy"], **options)
    return made


MODES = {
    "graph": {"jit_compile": False},
    "xla": {"jit_compile": True},
    "eager": {"run_eagerly": True},
    "several-steps": {"jit_compile": False, "steps_per_execution": 2},
}


def trained(made, **options):
    history = made.fit(X, Y, batch_size=5, shuffle=False, verbose=0, **options)
    return history.history["loss"][-1], made.get_weights()


@pytest.mark.usefixtures("grappler_off")
def test_the_naive_loss_destroys_the_model():
    _, weights = trained(model(jit_compile=False))
    assert not np.isfinite(weights[0]).all()


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
def test_a_model_trains_where_the_naive_loss_destroys_it(options):
    right = keras.losses.CategoricalCrossentropy(from_logits=True)
    loss, weights = trained(model(None, right, jit_compile=False))
    made = model(**options)
    assert stabilize(made) is made
    got, stable = trained(made)
    assert_close(got, loss, dtype="float32")
    for one, other in zip(stable, weights, strict=True):
        assert_close(one, other, 12, why="steps of training")
    evaluated = made.evaluate(X, Y, batch_size=5, verbose=0)
    assert np.isfinite(evaluated).all()
    assert made.predict(X, batch_size=20, verbose=0).shape == (20, CLASSES)


def rewritten(optimizer):
    made = model(None, "mse", optimizer)
    return collections.Counter(each.rule for each in stabilize.report(made, (X, Y)))


ACCURACIES = {
    "binary": ([[1.0], [0.0]], "sigmoid", 1),
    "categorical": ([[1.0, 0.0], [0.0, 1.0]], "softmax", 2),
    "sparse_categorical": ([[1], [0]], "softmax", 2),
}


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
@pytest.mark.parametrize("name", ACCURACIES)
def test_a_metric_that_looks_for_nan_leaves_the_formulas_before_it_stable(
    name, options
):
    """The second text is empty: Keras' pooling divides 0 by 0."""
    labels, activation, units = ACCURACIES[name]
    made = keras.Sequential([
        keras.layers.Embedding(5, 4, mask_zero=True),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(units, activation),
    ])
    with tfsafe.keras_scope():
        made.compile("sgd", f"{name}_crossentropy", metrics=["accuracy"], **options)
    # As many batches as several steps in one call take: older Keras warns of fewer.
    x, y = np.array([[1, 2], [0, 0]] * 2), np.array(labels * 2)
    found = stabilize(made).fit(x, y, verbose=0, batch_size=2).history
    assert np.isfinite(found["loss"] + found["accuracy"]).all()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_arithmetic_of_an_optimizer_of_keras_stays(name):
    optimizer = getattr(keras.optimizers, name)()
    assert rewritten(optimizer) == rewritten("sgd")


def test_the_arithmetic_of_an_optimizer_of_ones_own_is_rewritten():
    class Normalized(keras.optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            step = gradient / tf.sqrt(tf.reduce_sum(gradient * gradient))
            self.assign_sub(variable, learning_rate * step)

    assert (rewritten(Normalized()) - rewritten("sgd")).total() == 2


def test_a_model_may_be_compiled_after_it_was_stabilised():
    made = model()
    loss, _ = trained(stabilize(made))
    made = keras.Sequential(model().layers)
    stabilize(made)
    made.compile("sgd", naive, jit_compile=False)
    assert_close(trained(made)[0], loss, dtype="float32")
    assert np.isfinite(made.train_on_batch(X, Y))


def test_a_model_trains_with_the_safe_optimizer():
    optimizer = SafeOptimizer(keras.optimizers.SGD())
    made = stabilize(model(optimizer=optimizer, jit_compile=False))
    loss, weights = trained(made)
    assert np.isfinite(loss)
    assert np.isfinite(weights[0]).all()


class OwnStep(keras.Model):
    """A train step as the Keras guide has it."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(CLASSES, "softmax")
        self.dropout = keras.layers.Dropout(0.5, seed=1)

    def call(self, inputs, training=False):
        return self.dense(self.dropout(inputs, training=training))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(naive(y, self(x, training=True)))
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"loss": loss}


def test_a_train_step_of_ones_own_and_its_random_stream():
    def run(wrap, scale, options):
        keras.utils.set_random_seed(3)
        made = OwnStep()
        made.compile("sgd", **options)
        made(X)
        made = wrap(made)
        data = X * scale
        made.fit(data, Y, batch_size=5, shuffle=False, epochs=2, verbose=0)
        return made.get_weights(), made.dropout.seed_generator.state.numpy()

    for options in (MODES["graph"], MODES["eager"]):
        # Harmless inputs: the plain step is right as well.
        plain, seed = run(lambda made: made, 1e-3, options)
        stable, stable_seed = run(stabilize, 1e-3, options)
        np.testing.assert_array_equal(stable_seed, seed)
        for one, other in zip(stable, plain, strict=True):
            assert_close(one, other)
        weights, _ = run(stabilize, 1.0, options)
        assert np.isfinite(weights[0]).all()


def test_mixed_precision_keeps_its_dtypes():
    keras.utils.set_random_seed(0)
    made = keras.Sequential([
        keras.Input([4]),
        keras.layers.Dense(CLASSES, "softmax", dtype="mixed_float16"),
    ])
    made.compile(
        keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(), initial_scale=8.0),
        naive,
        jit_compile=False,
    )
    stabilize(made)
    made.fit(X / 100, Y, verbose=0)
    assert made.predict(X / 100, verbose=0).dtype == np.float16
    assert np.isfinite(made.get_weights()[0]).all()


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
def test_a_loss_scale_is_found_as_without_it(options):
    def run(wrap, scale):
        keras.utils.set_random_seed(0)
        made = keras.Sequential([
            keras.Input([4]),
            keras.layers.Dense(CLASSES, "softmax", dtype="mixed_float16"),
        ])
        optimizer = keras.optimizers.LossScaleOptimizer(
            keras.optimizers.SGD(0.1), initial_scale=2.0**20, dynamic_growth_steps=3
        )
        made.compile(optimizer, naive, **options)
        wrap(made).fit(X * scale, Y, batch_size=5, shuffle=False, epochs=4, verbose=0)
        return made.get_weights(), float(optimizer.dynamic_scale)

    weights, scale = run(lambda made: made, 1e-3)
    # The first steps overflow in float16 and are skipped.
    assert scale < 2.0**20
    stable, stable_scale = run(stabilize, 1e-3)
    assert stable_scale == scale
    for one, other in zip(stable, weights, strict=True):
        assert_close(one, other, 2, dtype="float16")
    stable, stable_scale = run(stabilize, 1.0)
    assert stable_scale >= 1
    assert all(np.isfinite(each).all() for each in stable)
    assert np.abs(stable[0] - weights[0]).max() > 0.1


def test_a_stable_model_is_saved_cloned_and_exported(tmp_path):
    made = stabilize(model(jit_compile=False))
    trained(made)
    expected = made.predict(X, verbose=0)
    made.export(str(tmp_path / "exported"))
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    assert_close(loaded.serve(X), expected)
    tf.saved_model.save(made, str(tmp_path / "saved"))
    path = str(tmp_path / "model.keras")
    made.save(path)
    again = keras.saving.load_model(path, compile=False)
    assert_close(again.predict(X, verbose=0), expected)
    clone = keras.models.clone_model(made)
    clone.compile("sgd", naive)
    # The clone is a new model, which nobody has stabilised.
    assert type(clone.train_step) is not type(made.train_step)


def test_a_model_is_stabilised_again_with_other_rules():
    made = stabilize(stabilize(model(jit_compile=False), exclude="log-of-softmax"))
    loss, _ = trained(made)
    assert np.isfinite(loss)
    # The first patch is gone: what is wrapped is Keras' own step.
    assert len(patches_on(made, "train_step")) == 1
    assert made.train_step.__wrapped__.__func__ is keras.Model.train_step


def test_a_model_can_be_verified():
    made = stabilize(model(run_eagerly=True), verify=True)
    loss, _ = trained(made)
    assert np.isfinite(loss)


LOGITS = tf.constant([[0.0, -300.0, 1.0], [1.0, 2.0, 3.0]])
LABELS = tf.constant([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum", None])
@pytest.mark.parametrize("weight", [None, [2.0, 0.0]], ids=["plain", "weighted"])
def test_a_loss_becomes_right_and_stays_a_loss(reduction, weight):
    loss = stabilize(NaiveLoss(2.0, reduction=reduction))
    assert isinstance(loss, keras.losses.Loss)
    assert (loss.name, loss.reduction, loss.scale) == ("naive", reduction, 2.0)
    right = keras.losses.CategoricalCrossentropy(True, reduction=reduction)
    with contrast.without_grappler():
        got = loss(LABELS, LOGITS, sample_weight=weight)
    assert_close(got, 2 * right(LABELS, LOGITS, sample_weight=weight))
    assert_close(loss.call(LABELS, LOGITS), 2 * np.array([301.3132617, 2.4076059]))


def test_a_loss_keeps_what_keras_attaches_to_a_prediction():
    # The mask of a layer, and the logits behind an activation.
    steps = keras.layers.Masking()(tf.constant([[[1.0, 2.0, 0.5]], [[0.0, 0.0, 0.0]]]))
    labels = tf.constant([[[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]])
    plain = NaiveLoss()
    assert_close(stabilize(plain)(labels, steps), plain(labels, steps))
    probs = keras.activations.softmax(LOGITS)
    loss = keras.losses.CategoricalCrossentropy()
    assert_close(stabilize(loss)(LABELS, probs), loss(LABELS, probs))
    assert float(loss(LABELS, probs)) > 100


def test_a_stable_loss_is_saved_and_copied():
    loss = stabilize(NaiveLoss(3.0), rules="log-of-softmax", exclude=["sqrt"])
    config = keras.losses.serialize(loss)
    again = keras.losses.deserialize(config)
    assert type(again) is type(loss)
    assert again.scale == 3.0
    assert again.get_config() == loss.get_config()
    for other in (again, copy.copy(loss)):
        np.testing.assert_array_equal(other(LABELS, LOGITS), loss(LABELS, LOGITS))
    with pytest.raises(AttributeError, match="absent"):
        _ = loss.absent
    with pytest.raises(AttributeError, match="_absent"):
        _ = loss._absent


def test_models_train_with_a_stable_loss_or_loss_function(tmp_path):
    @stabilize
    def of_logits(y_true, y_pred):
        return naive(y_true, tf.nn.softmax(y_pred))

    unnamed = stabilize(lambda y_true, y_pred: naive(y_true, tf.nn.softmax(y_pred)))
    for loss in (stabilize(NaiveLoss()), of_logits, unnamed):
        made = model(None, loss, jit_compile=False)
        value, weights = trained(made)
        assert np.isfinite(value)
        assert np.isfinite(weights[0]).all()
    made = model(None, stabilize(NaiveLoss()), jit_compile=False)
    value, _ = trained(made)
    path = str(tmp_path / "model.keras")
    made.save(path)
    loaded = keras.saving.load_model(path)
    assert_close(
        loaded.evaluate(X, Y, verbose=0),
        made.evaluate(X, Y, verbose=0),
        dtype="float32",
    )


def test_a_stable_loss_in_a_stable_model_meets_its_softmax():
    class OfProbabilities(NaiveLoss):
        def call(self, y_true, y_pred):
            return naive(y_true, y_pred)

    made = stabilize(model(loss=stabilize(OfProbabilities()), jit_compile=False))
    loss, weights = trained(made)
    assert np.isfinite(loss)
    assert np.isfinite(weights[0]).all()


def test_a_loss_can_be_verified():
    loss = stabilize(NaiveLoss(), verify=True)
    assert_close(loss(LABELS, LOGITS), 151.860434)
